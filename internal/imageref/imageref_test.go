package imageref_test

import (
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
