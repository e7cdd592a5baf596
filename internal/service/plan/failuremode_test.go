package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestFailureMode shows that requests go to any pod while no endpoint picker answers, where any pod can answer
// them as they are.
func TestFailureMode(t *testing.T) {
	const vllm, sglang, unknown = "command: [vllm, serve, /m]", "command: [sglang, serve, --model-path, m]", "command: [start, --port=8000]"
	pair := []v1alpha1.ComponentType{prefiller, decoder}
	open := v1alpha1.Role{EndpointPicker: &v1alpha1.EndpointPicker{FailureMode: v1alpha1.FailOpen}}
	closed := v1alpha1.Role{EndpointPicker: &v1alpha1.EndpointPicker{FailureMode: v1alpha1.FailClose}}
	cases := map[string]struct {
		reason, engine string
		types          []v1alpha1.ComponentType
		router         v1alpha1.Role
		adapters       bool
		want           v1alpha1.FailureMode
	}{
		"Workers":       {reason: "Each worker answers whole requests.", engine: unknown, types: []v1alpha1.ComponentType{worker}, want: v1alpha1.FailOpen},
		"VLLMPairs":     {reason: "So does each pod of vLLM.", engine: vllm, types: pair, want: v1alpha1.FailOpen},
		"SGLangPairs":   {reason: "SGLang's need each other.", engine: sglang, types: pair, want: v1alpha1.FailClose},
		"UnknownPairs":  {reason: "Other engines' may.", engine: unknown, types: pair, want: v1alpha1.FailClose},
		"OtherStrategy": {reason: "No pair gets requests.", engine: sglang, types: append(pair, worker), router: v1alpha1.Role{Strategy: v1alpha1.StrategyPrefixCache}, want: v1alpha1.FailOpen},
		"Models":        {reason: "The endpoint picker writes the names of models that engines know.", engine: vllm, types: []v1alpha1.ComponentType{worker}, router: v1alpha1.Role{ServedModels: []v1alpha1.ServedModel{{Name: "m"}}}, want: v1alpha1.FailClose},
		"Adapters":      {reason: "So it does for InferenceModels.", engine: vllm, types: []v1alpha1.ComponentType{worker}, adapters: true, want: v1alpha1.FailClose},
		"OwnConfig":     {reason: "It may keep requests from some pods.", engine: vllm, types: []v1alpha1.ComponentType{worker}, router: v1alpha1.Role{EndpointPickerConfig: testConfig(t, "good/llmd/queue")}, want: v1alpha1.FailClose},
		"SetOpen":       {reason: "The user may know better.", engine: sglang, types: pair, router: open, want: v1alpha1.FailOpen},
		"SetClosed":     {reason: "Or want no request at any pod.", engine: vllm, types: []v1alpha1.ComponentType{worker}, router: closed, want: v1alpha1.FailClose},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			router := tc.router
			router.Name, router.ComponentType = "router", v1alpha1.ComponentTypeRouter
			spec := &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{router}}
			if tc.adapters {
				spec.AdapterCache = &v1alpha1.AdapterCache{}
			}
			for _, kind := range tc.types {
				spec.Roles = append(spec.Roles, v1alpha1.Role{Name: string(kind), ComponentType: kind, Replicas: ptr.To[int32](1), Template: document(t, "{spec: {containers: [{name: engine, image: x, "+tc.engine+"}]}}")})
			}
			v1alpha1.Default(spec)
			p, errs := Build(naming.Identity{Name: "svc", Namespace: "ns"}, spec, defaultInput(), scheduling.Snapshot{}, nil)
			if p == nil || p.Router == nil {
				t.Fatal(errs)
			}
			if got := p.Router.FailureMode; got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestManyPickersRefuse shows when a change of several endpoint pickers is told to refuse requests.
func TestManyPickersRefuse(t *testing.T) {
	const refuse = "all endpoint pickers end before the next ones start, and with failureMode FailClose requests are refused until the answers in progress have ended, for two minutes at most, and a new one is Ready: " +
		"set at most 1, or set endpointPicker.failureMode to FailOpen if any pod can answer any request alone"
	cases := map[string]struct {
		replicas int32
		mode     v1alpha1.FailureMode
		want     []Warning
	}{
		"One":  {1, v1alpha1.FailClose, nil},
		"Many": {2, v1alpha1.FailClose, []Warning{{Path: "spec.roles[0].replicas", Message: refuse}}},
		"Open": {2, v1alpha1.FailOpen, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Router{Replicas: tc.replicas, FailureMode: tc.mode}
			if diff := cmp.Diff(tc.want, r.warnOfReplicas(rolePath(0))); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
