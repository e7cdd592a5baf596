package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// TestKnowsModels takes away why a service got an endpoint picker that goes by the names of models. InferenceModels of others
// may name the service, so it stays.
func TestKnowsModels(t *testing.T) {
	const (
		worker  = "- {name: w, componentType: worker, template: {spec: {containers: [{name: engine, image: x, command: [vllm, serve, /m]}]}}}\n"
		pair    = "- {name: p, componentType: prefiller, template: {spec: {containers: [{name: engine, image: x, command: [vllm, serve, /m]}]}}}\n- {name: d, componentType: decoder, template: {spec: {containers: [{name: engine, image: x, command: [vllm, serve, /m]}]}}}\n"
		plain   = "roles:\n- {name: r, componentType: router}\n"
		own     = "roles:\n- {name: r, componentType: router, endpointPickerConfig: \"{apiVersion: inference.networking.x-k8s.io/v1alpha1, kind: EndpointPickerConfig, plugins: [{type: queue-scorer}, {type: max-score-picker}], schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer, weight: 1}, {pluginRef: max-score-picker}]}]}\"}\n"
		noInput = "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input}"
		llmd    = "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, endpointPicker: {dialect: LLMD, image: \"" + inputv1alpha1.DefaultImageLLMD + "\"}}"
		gaie    = "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, endpointPicker: {dialect: GAIE, image: \"" + inputv1alpha1.DefaultImageGAIE + "\"}}"
	)
	cases := map[string]struct {
		reason                          string
		before, inputBefore, after, inp string
		image                           string
		known                           bool
	}{
		"LastModel": {
			reason: "The owner of an InferenceModel had the name removed, to take it over.",
			before: "roles:\n- {name: r, componentType: router, servedModels: [{name: chat}]}\n" + worker, after: plain + worker, image: inputv1alpha1.DefaultImageLLMD, known: true,
		},
		"Strategy": {
			reason: "A step on the way to other roles.",
			before: plain + pair, after: "roles:\n- {name: r, componentType: router, strategy: prefix-cache}\n" + pair, image: inputv1alpha1.DefaultImageLLMD, known: true,
		},
		"Unpinned": {
			reason: "The platform team leaves the choice to the services.",
			before: plain + worker, inputBefore: llmd, after: plain + worker, image: inputv1alpha1.DefaultImageLLMD, known: true,
		},
		"Pinned": {
			reason: "The platform team chooses.",
			before: plain + worker, inputBefore: llmd, after: plain + worker, inp: gaie, image: inputv1alpha1.DefaultImageGAIE,
		},
		"OwnConfig": {
			reason: "The configuration chooses.",
			before: plain + worker, inputBefore: llmd, after: own + worker, image: inputv1alpha1.DefaultImageGAIE,
		},
		"Never": {
			reason: "It never knew the names of models.",
			before: plain + worker, after: plain + worker, image: inputv1alpha1.DefaultImageGAIE,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fn := function.Start(t)
			or := func(s string) string {
				if s == "" {
					return noInput
				}
				return s
			}
			req := fixture.Request(t, fixture.Service(tc.before), or(tc.inputBefore))
			rsp, _ := fixture.Reconcile(t, fn, req, nil)
			if got := fixture.Fatals(rsp); got != "" {
				t.Fatal(got)
			}
			fixture.Observe(req, rsp)
			status := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status")
			req.Observed.Composite.Resource = kube.With(kube.With(req.GetObserved().GetComposite().GetResource(), kube.Lookup(fixture.YAML(t, fixture.Service(tc.after)), "spec"), "spec"), status, "status")
			req.Input = fixture.YAML(t, or(tc.inp))
			if rsp, _ = fixture.Reconcile(t, fn, req, nil); fixture.Fatals(rsp) != "" {
				t.Fatal(fixture.Fatals(rsp))
			}
			picker := rsp.GetDesired().GetResources()["deployment/epp"].GetResource()
			image := kube.Lookup(picker, "spec", "template", "spec", "containers").GetListValue().GetValues()[0].GetStructValue().GetFields()["image"].GetStringValue()
			if diff := cmp.Diff(tc.image, image); diff != "" {
				t.Errorf("%s The endpoint picker: -want, +got:\n%s", tc.reason, diff)
			}
			if known := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status", "modelRouting").GetStructValue() != nil; known != tc.known {
				t.Errorf("%s InferenceModels are known: %t", tc.reason, known)
			}
		})
	}
}
