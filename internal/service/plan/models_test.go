package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
)

func TestModelNames(t *testing.T) {
	role := func(names launch.Names) *Role { return &Role{names: names} }
	first := role(launch.Names{Served: []string{"base"}, Adapters: []string{"b", "a"}, Complete: true})
	cases := map[string]struct {
		reason string
		roles  []*Role
		want   launch.Names
	}{
		"Joined":  {reason: "A name of any role is known.", roles: []*Role{first, role(launch.Names{Served: []string{"base"}, Adapters: []string{"c"}, Complete: true})}, want: launch.Names{Served: []string{"base"}, Adapters: []string{"a", "b", "c"}, Complete: true}},
		"Unknown": {reason: "An engine that is not known may answer other names.", roles: []*Role{first, role(launch.Names{})}, want: launch.Names{Served: []string{"base"}, Adapters: []string{"a", "b"}}},
		"Nobody":  {reason: "Without engines nothing is known."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, modelNames(tc.roles), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nmodelNames(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfTargets proves that a served model whose target no engine answers is a warning, and that there is no
// warning where the engines may answer more.
func TestWarnOfTargets(t *testing.T) {
	served := func(name string, targets ...string) v1alpha1.ServedModel {
		m := v1alpha1.ServedModel{Name: name}
		for _, target := range targets {
			m.Targets = append(m.Targets, v1alpha1.ModelTarget{Name: target})
		}
		return m
	}
	names := launch.Names{Served: []string{"base"}, Adapters: []string{"lora"}, Complete: true}
	cases := map[string]struct {
		reason string
		names  launch.Names
		models []v1alpha1.ServedModel
		want   []string
	}{
		"Cached":   {reason: "An adapter may be loaded at run time. The others are told as a doubt.", names: launch.Names{Served: []string{"base"}, CacheAlone: true}, models: []v1alpha1.ServedModel{served("base"), served("chat", "typo")}, want: []string{"spec.servedModels[1].targets[0].name"}},
		"Known":    {reason: "Adapters and the engines' own model.", names: names, models: []v1alpha1.ServedModel{served("base"), served("chat", "lora", "base")}},
		"NoTarget": {reason: "Without targets, the model's own name is the target.", names: names, models: []v1alpha1.ServedModel{served("lora"), served("chat")}, want: []string{"spec.servedModels[1].name"}},
		"Target":   {reason: "The warning has the path of the target.", names: names, models: []v1alpha1.ServedModel{served("chat", "lora", "typo")}, want: []string{"spec.servedModels[0].targets[1].name"}},
		"More":     {reason: "The engines may answer more.", names: launch.Names{Served: []string{"base"}}, models: []v1alpha1.ServedModel{served("chat")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Router{Names: tc.names}
			for _, m := range tc.models {
				r.Models = append(r.Models, modelroute.Of(m))
			}
			var got []string
			for _, w := range r.warnOfTargets(field.NewPath("spec", "servedModels"), tc.models) {
				got = append(got, w.Path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nwarnings at: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNamesOfRoles proves that variables of an engine may add names.
func TestNamesOfRoles(t *testing.T) {
	container := func(more string) string {
		return `{spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.11.0", args: [--model, base, --lora-modules, a=/a]` + more + `}]}}`
	}
	cases := map[string]struct {
		template string
		complete bool
	}{
		"Plain":    {template: container(""), complete: true},
		"Runtime":  {template: container(`, env: [{name: VLLM_ALLOW_RUNTIME_LORA_UPDATING, value: "true"}]`)},
		"EnvFrom":  {template: container(`, envFrom: [{configMapRef: {name: c}}]`)},
		"Resolver": {template: container(`, env: [{name: VLLM_LORA_RESOLVER_CACHE_DIR, value: /adapters}]`)},
		"Variable": {template: `{spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.11.0", args: [--model, $(NAME), --lora-modules, a=/a], env: [{name: NAME, value: base}]}]}}`, complete: true},
		"Flags":    {template: `{spec: {containers: [{name: vllm, image: vllm, command: [sh, -c, "vllm serve base --lora-modules a=/a --port 80 ${MORE}"]}]}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role, _, errs := planRole(0, v1alpha1.Role{Template: document(t, tc.template)}, loads{}, defaultInput(), false)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			want := launch.Names{Served: []string{"base"}, Adapters: []string{"a"}, Complete: tc.complete}
			if diff := cmp.Diff(want, role.names); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
