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
