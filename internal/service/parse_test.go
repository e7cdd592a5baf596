package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
)

// No API server looks at an input. What is misspelt in it must not be passed over.
func TestUnknownInput(t *testing.T) {
	in := &structpb.Struct{}
	if err := in.UnmarshalJSON([]byte(`{
		"apiVersion": "fn.fusioninfer.io/v1alpha1", "kind": "Input", "metadata": {"name": "x"},
		"podSecurty": {"enforce": "restricted"},
		"limits": {"device": 8},
		"tenants": [{"namespaces": ["a"], "allowedQueue": ["b"]}],
		"networkPolicy": {"ingressFrom": [{"namespaceSelector": {"matchLabels": {"any": "label"}}}]},
		"endpointPicker": {"resources": {"limits": {"cpu": "1"}}}
	}`)); err != nil {
		t.Fatal(err)
	}
	_, errs := composite.Input(in)
	var got []string
	for _, e := range errs {
		got = append(got, e.Error())
	}
	want := []string{
		"input.limits.device: Forbidden: is not a field of Input: see docs/api.md",
		"input.podSecurty: Forbidden: is not a field of Input: see docs/api.md",
		"input.tenants[0].allowedQueue: Forbidden: is not a field of Input: see docs/api.md",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
