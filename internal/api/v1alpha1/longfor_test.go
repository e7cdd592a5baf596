package v1alpha1_test

import (
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestLongFor shows which objects texts stand for.
func TestLongFor(t *testing.T) {
	for written, want := range map[string]string{
		"hf://Qwen/Qwen3-8B": "{uri: hf://Qwen/Qwen3-8B}",
		"pvc://models/qwen":  "{uri: pvc://models/qwen}",
		"Qwen/Qwen3-8B":      "{uri: hf://Qwen/Qwen3-8B}",
		"/mnt/models":        "{uri: hf://Qwen/Qwen3-8B}",
	} {
		if got := (v1alpha1.Model{}).LongFor(written); got != want {
			t.Errorf("model %q: want %s, got %s", written, want, got)
		}
	}
	for written, want := range map[string]string{
		"east": "{name: east, inferenceClusterRef: {name: east}}",
		"a, b": "{name: us-east, inferenceClusterRef: {name: us-east}}",
	} {
		if got := (v1alpha1.PlacementCluster{}).LongFor(written); got != want {
			t.Errorf("cluster %q: want %s, got %s", written, want, got)
		}
	}
}
