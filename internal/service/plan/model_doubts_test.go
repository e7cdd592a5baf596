package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestWarnWithoutModel plans engines that are told of no model, and others that may be.
func TestWarnWithoutModel(t *testing.T) {
	vllm := []Warning{{"spec.roles[0]", "vLLM gets no model, so it loads a small one by default: set spec.model, or write the model in args"}}
	sglang := []Warning{{"spec.roles[0]", "SGLang gets no --model-path, without which it ends at once: set spec.model, or write --model-path in args"}}
	cases := map[string]struct {
		reason    string
		container string
		want      []Warning
	}{
		"Nothing":       {container: `image: x, command: [vllm, serve]`, want: vllm},
		"Flags":         {container: `image: x, command: [vllm, serve], args: [--max-model-len, "4096", --enable-prefix-caching]`, want: vllm},
		"Module":        {container: `image: x, command: [python3, -m, vllm.entrypoints.openai.api_server, --port, "8000"]`, want: vllm},
		"Script":        {container: `image: x, command: [sh, -c, "exec vllm serve --max-model-len 4096"]`, want: vllm},
		"Image":         {reason: "The entrypoint of vLLM's image is known.", container: `image: "vllm/vllm-openai:v0.19.0", args: [--max-model-len, "4096"]`, want: vllm},
		"ServedName":    {reason: "The name for clients is no model.", container: `image: x, command: [vllm, serve, --served-model-name, m]`, want: vllm},
		"SGLang":        {container: `image: x, command: [python3, -m, sglang.launch_server], args: [--tp, "1"]`, want: sglang},
		"SGLangServes":  {container: `image: x, command: [sglang, serve, --tp, "1"]`, want: sglang},
		"First":         {container: `image: x, command: [vllm, serve, m]`},
		"Last":          {container: `image: x, command: [vllm, serve], args: [--max-model-len, "4096", m]`},
		"AfterDashes":   {container: `image: x, command: [vllm, serve, --enable-prefix-caching, --, m]`},
		"Flag":          {container: `image: x, command: [vllm, serve], args: [--model=m]`},
		"ModelPath":     {container: `image: x, command: [python3, -m, sglang.launch_server], args: [--model-path, m]`},
		"SGLangModel":   {container: `image: x, command: [python3, -m, sglang.launch_server], args: [--model, m]`},
		"SGLangFirst":   {container: `image: x, command: [sglang, serve, m]`},
		"Config":        {reason: "A file may name it.", container: `image: x, command: [vllm, serve, --config, /etc/vllm.yaml]`},
		"Variable":      {reason: "A variable may name it.", container: `image: x, command: [sh, -c, "vllm serve $MODEL"]`},
		"Arguments":     {reason: "The shell may add it.", container: `image: x, command: [sh, -c, 'vllm serve "$@"']`},
		"KubeVariable":  {container: `image: x, command: [vllm, serve], args: [$(MODEL)]`},
		"UnknownFlag":   {reason: "A plugin's switch may be before it.", container: `image: x, command: [vllm, serve], args: [--my-switch, m]`},
		"OptionalValue": {reason: "It may follow a flag that need not have a value.", container: `image: x, command: [vllm, serve], args: [--hf-token, t, m]`},
		"OtherImage":    {reason: "The entrypoint of another image may add it.", container: `image: x, args: [--max-model-len, "4096"]`},
		"OtherProgram":  {container: `image: x, command: [serve.sh]`},
		"OtherServer":   {reason: "Another server of the same command has its own flags.", container: `image: x, command: [sglang, serve, --VSA-sparsity, "0.9"]`},
		"Help":          {container: `image: x, command: [vllm, serve, --help=all]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, flagDoubts(t, tc.container, 1, "")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfSource plans services whose model the hub probably does not have, and others.
func TestWarnOfSource(t *testing.T) {
	organization := Warning{"spec.model.uri", `"Qwen3-8B" has no organization, and the hub has only a few old models without one, such as gpt2: write hf://{organization}/Qwen3-8B`}
	commit := func(part string) Warning {
		return Warning{"spec.model.revision", `"` + part + `" looks like a part of a commit, and the hub finds a commit by all of its 40 digits only: write all of them, or the name of a branch or a tag`}
	}
	const long = "9c925d64d72725edaf899c6cb9c377fd0709d9c5"
	cases := map[string]struct {
		reason, model string
		want          []Warning
	}{
		"Hub":            {reason: "It has an organization and a name.", model: `uri: "hf://Qwen/Qwen3-8B"`},
		"NoOrganization": {reason: "The organization is forgotten easily.", model: `uri: "hf://Qwen3-8B"`, want: []Warning{organization}},
		"Both":           {reason: "Each field has its warning.", model: `uri: "hf://Qwen3-8B", revision: 9c925d6`, want: []Warning{organization, commit("9c925d6")}},
		"Long":           {reason: "One digit is missing.", model: `uri: "hf://Qwen/Qwen3-8B", revision: "` + long[1:] + `"`, want: []Warning{commit(long[1:])}},
		"Upper":          {reason: "Digits of a hash may be written large.", model: `uri: "hf://Qwen/Qwen3-8B", revision: 9C925D64`, want: []Warning{commit("9C925D64")}},
		"Commit":         {reason: "It is whole.", model: `uri: "hf://Qwen/Qwen3-8B", revision: "` + long + `"`},
		"Branch":         {reason: "It has other letters.", model: `uri: "hf://Qwen/Qwen3-8B", revision: refs/pr/7`},
		"Short":          {reason: "Nobody shortens a commit that much.", model: `uri: "hf://Qwen/Qwen3-8B", revision: fed`},
		"Date":           {reason: "A date is a likely name of a tag.", model: `uri: "hf://Qwen/Qwen3-8B", revision: "20260101"`},
		"Claim":          {reason: "A claim is no repository.", model: `uri: "pvc://weights"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, "model: {"+tc.model+"}\nroles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: x, command: [vllm, serve]}]}}}]", "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, p.Warnings); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnWithoutModelOnce plans leaders and workers with commands of their own.
func TestWarnWithoutModelOnce(t *testing.T) {
	const leader = `{spec: {containers: [{name: engine, image: x, readinessProbe: {exec: {command: [ok]}}, command: [vllm, serve, m]}]}}`
	const workers = `{spec: {containers: [{name: engine, image: x, readinessProbe: {exec: {command: [ok]}}, command: [vllm, serve, --headless]}]}}`
	cases := map[string]struct {
		leader   string
		launcher v1alpha1.Launcher
		want     int
	}{
		"Both":       {workers, v1alpha1.LauncherNone, 1},
		"Workers":    {leader, v1alpha1.LauncherNone, 1},
		"RayWorkers": {leader, v1alpha1.LauncherRay, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, workers), LeaderTemplate: document(t, tc.leader), Multinode: multinode(2, tc.launcher)}
			_, warnings, errs := planRole(0, role, loads{}, defaultInput(), false)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := 0
			for _, w := range warnings {
				if w.Path == "spec.roles[0]" {
					got++
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%v: -want, +got:\n%s", warnings, diff)
			}
		})
	}
}
