package servingprofile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/servingprofile"
)

// TestDoubts adds containers beside the engine of a profile.
func TestDoubts(t *testing.T) {
	const engine = `image: "vllm/vllm-openai:v0.24.0", args: [--model, m]`
	want := func(name string) []servingprofile.Doubt {
		return []servingprofile.Doubt{{
			Path:    "spec.roles[0].template.spec.containers[0].name",
			Message: `"` + name + `" runs a second engine and gets nothing of profile p, which is for container "vllm": use that name, unless you want both`,
		}}
	}
	cases := map[string]struct {
		reason, profile, spec string
		want                  []servingprofile.Doubt
	}{
		"SameName":    {reason: "It is merged.", profile: engine, spec: `{containers: [{name: vllm, image: "vllm/vllm-openai:v0.23.0"}]}`},
		"SameImage":   {reason: "Both would run.", profile: engine, spec: `{containers: [{name: server, image: "registry.local/vllm-openai:v0.23.0"}]}`, want: want("server")},
		"OtherEngine": {reason: "So would another engine.", profile: engine, spec: `{containers: [{name: server, image: "lmsysorg/sglang:v0.5.18", command: [python3, -m, sglang.launch_server]}]}`, want: want("server")},
		"Command":     {reason: "The command says what it is.", profile: engine, spec: `{containers: [{name: server, image: own, command: [vllm, serve, m]}]}`, want: want("server")},
		"OwnImage":    {reason: "The platform team may have an image of its own.", profile: `image: "registry.local/llm:1"`, spec: `{containers: [{name: server, image: "registry.local/llm:2"}]}`, want: want("server")},
		"Sidecar":     {reason: "Another program is no engine.", profile: engine, spec: `{containers: [{name: logs, image: fluent-bit}]}`},
		"Tool":        {reason: "Nor is another program of the engine's image.", profile: engine, spec: `{containers: [{name: logs, image: "vllm/vllm-openai:v0.24.0", command: [tail, -F, /log]}]}`},
		"NoTemplate":  {reason: "The service adds nothing.", profile: engine, spec: `null`},
		"NoContainer": {reason: "It may add a volume.", profile: engine, spec: `{volumes: [{name: a, emptyDir: {}}]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, a, errs := servingprofile.Apply(document(t, service(tc.spec)), profiles(t, container(tc.profile)))
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if diff := cmp.Diff(tc.want, a.Doubts()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDoubtsOfNothing asks a service without a profile.
func TestDoubtsOfNothing(t *testing.T) {
	var a *servingprofile.Applied
	if got := a.Doubts(); got != nil {
		t.Errorf("got %v", got)
	}
}
