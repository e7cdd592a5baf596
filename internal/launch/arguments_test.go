package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	cases := map[string]struct {
		reason     string
		c          Command
		entrypoint Engine
		want       Arguments
		ok         bool
	}{
		"Serve":          {c: Command{Command: []string{"vllm", "serve"}, Args: []string{"m", "--a"}}, want: Arguments{Engine: EngineVLLM, Named: true, Words: []string{"m", "--a"}, At: []int{2, 3}}, ok: true},
		"Module":         {c: Command{Command: []string{"python3", "-m", "sglang.launch_server"}, Args: []string{"--a"}}, want: Arguments{Engine: EngineSGLang, Named: true, Words: []string{"--a"}, At: []int{3}}, ok: true},
		"AfterOthers":    {c: Command{Command: []string{"nice", "-n", "5", "vllm", "serve", "m"}}, want: Arguments{Engine: EngineVLLM, Named: true, Words: []string{"m"}, At: []int{5}}, ok: true},
		"Script":         {c: Command{Command: []string{"sh", "-c"}, Args: []string{"export A=b\nexec vllm serve m --a=$A"}}, want: Arguments{Engine: EngineVLLM, Named: true, Words: []string{"m", "--a=$A"}, At: []int{2, 2}, Script: true}, ok: true},
		"Entrypoint":     {c: Command{Args: []string{"--model", "m"}}, entrypoint: EngineVLLM, want: Arguments{Engine: EngineVLLM, Words: []string{"--model", "m"}, At: []int{0, 1}}, ok: true},
		"ArgsServe":      {reason: "Images with the entrypoint vllm.", c: Command{Args: []string{"serve", "m"}}, entrypoint: EngineVLLM, want: Arguments{Engine: EngineVLLM, Words: []string{"m"}, At: []int{1}}, ok: true},
		"OtherModule":    {reason: "It has flags of its own.", c: Command{Command: []string{"python3", "-m", "vllm.entrypoints.openai.run_batch", "--a"}}},
		"OtherProgram":   {c: Command{Command: []string{"/start"}, Args: []string{"--a"}}, entrypoint: EngineVLLM},
		"OtherImage":     {c: Command{Args: []string{"--a"}}},
		"HiddenInScript": {c: Command{Command: []string{"sh", "-c"}, Args: []string{"if true; then vllm serve m; fi"}}, entrypoint: EngineVLLM},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := Parse(tc.c).Arguments(tc.entrypoint)
			if ok != tc.ok {
				t.Fatalf("%s\nwant %v, got %v", tc.reason, tc.ok, ok)
			}
			if !ok {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
