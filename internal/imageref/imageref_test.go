package imageref_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
)

func TestSplit(t *testing.T) {
	cases := map[string][2]string{
		"":                          {".", ""},
		"vllm":                      {"vllm", ""},
		"vllm/vllm-openai:v0.11.0":  {"vllm-openai", "v0.11.0"},
		"example.com:5000/a/engine": {"engine", ""},
		"example.com:5000/a/engine:v1@sha256:0123": {"engine", "v1"},
		"example.com/a/engine@sha256:0123":         {"engine", ""},
	}
	for of, want := range cases {
		t.Run(of, func(t *testing.T) {
			name, tag := imageref.Split(of)
			if diff := cmp.Diff(want, [2]string{name, tag}); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestParseVersion(t *testing.T) {
	cases := map[string]string{
		"v0.11.0": "0.11.0", "0.5.3": "0.5.3", "v0.5.3.post1-cu126": "0.5.3", "v0.11.0-rocm": "0.11.0",
		"": "", "latest": "", "nightly": "", "v0.11": "", "v0.11.0rc1": "", "v12345.0.0": "",
	}
	for tag, want := range cases {
		t.Run(tag, func(t *testing.T) {
			got := ""
			if v, ok := imageref.ParseVersion(tag); ok {
				got = v.String()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestValid shows that what a kubelet can pull is valid, and nothing else.
func TestValid(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	cases := map[string]bool{
		"qwen": true, "qwen:8b": true, "acme/qwen": true, "ghcr.io/acme/qwen:8b": true, "qwen" + digest: true,
		"ghcr.io/acme/qwen:8b" + digest: true, "qwen@sha512:" + strings.Repeat("0a", 64): true,
		"localhost/qwen": true, "localhost:5000/qwen:8b": true, "registry:5000/qwen": true, "10.0.0.1:5000/a/b/c__d--e.f:V_1.2": true,
		"Registry.example.com/qwen": true, "registry:5000": true,
		"": false, "Qwen": false, "ghcr.io/Acme/qwen": false, "ghcr.io/acme/": false, "ghcr.io//qwen": false, "qwen:": false, "qwen:a:b": false,
		"qwen@": false, "qwen@sha256:00": false, "qwen@8b": false, "qwen" + digest + ":8b": false, "a/-b": false, "a..b/c..d": false,
		"qwen:" + strings.Repeat("a", 129): false, strings.Repeat("0a", 32): false, "ghcr.io/" + strings.Repeat("a/", 128) + "a": false,
	}
	for image, want := range cases {
		t.Run(image, func(t *testing.T) {
			if diff := cmp.Diff(want, imageref.Valid(image)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
