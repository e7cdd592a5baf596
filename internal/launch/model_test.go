package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithModel(t *testing.T) {
	hub := Model{Path: "Qwen/Qwen3-8B", Name: "qwen", Revision: "9c925d64"}
	claim := Model{Path: "/mnt/models/qwen", Name: "Qwen/Qwen3-8B"}
	cases := map[string]struct {
		command Command
		engine  Engine
		model   Model
		want    Command
		err     string
	}{
		"Serve": {
			Command{Command: []string{"vllm", "serve"}, Args: []string{"--port", "8000"}}, EngineVLLM, hub,
			Command{Command: []string{"vllm", "serve"}, Args: []string{"Qwen/Qwen3-8B", "--port", "8000", "--served-model-name", "qwen", "--revision", "9c925d64"}}, "",
		},
		"ServeInCommand": {
			Command{Command: []string{"vllm", "serve", "--port=8000"}}, EngineVLLM, claim,
			Command{Command: []string{"vllm", "serve", "/mnt/models/qwen", "--port=8000"}, Args: []string{"--served-model-name", "Qwen/Qwen3-8B"}}, "",
		},
		"ServeInArgs": {
			Command{Args: []string{"vllm", "serve"}}, EngineVLLM, claim,
			Command{Args: []string{"vllm", "serve", "/mnt/models/qwen", "--served-model-name", "Qwen/Qwen3-8B"}}, "",
		},
		"ServeOfEntrypoint": {
			Command{Args: []string{"serve", "--port=8000"}}, EngineVLLM, claim,
			Command{Args: []string{"serve", "/mnt/models/qwen", "--port=8000", "--served-model-name", "Qwen/Qwen3-8B"}}, "",
		},
		"Entrypoint": {
			Command{Args: []string{"--max-model-len=8192"}}, EngineVLLM, claim,
			Command{Args: []string{"--max-model-len=8192", "--model", "/mnt/models/qwen", "--served-model-name", "Qwen/Qwen3-8B"}}, "",
		},
		"NoArgs": {
			Command{}, EngineVLLM, claim,
			Command{Args: []string{"--model", "/mnt/models/qwen", "--served-model-name", "Qwen/Qwen3-8B"}}, "",
		},
		"Module": {
			Command{Command: []string{"python3", "-m", "vllm.entrypoints.openai.api_server"}}, EngineVLLM, claim,
			Command{Command: []string{"python3", "-m", "vllm.entrypoints.openai.api_server"}, Args: []string{"--model", "/mnt/models/qwen", "--served-model-name", "Qwen/Qwen3-8B"}}, "",
		},
		"SGLang": {
			Command{Command: []string{"python3", "-m", "sglang.launch_server"}, Args: []string{"--tp", "2"}}, EngineSGLang, hub,
			Command{Command: []string{"python3", "-m", "sglang.launch_server"}, Args: []string{"--tp", "2", "--model-path", "Qwen/Qwen3-8B", "--served-model-name", "qwen", "--revision", "9c925d64"}}, "",
		},
		"OwnName": {
			Command{Command: []string{"vllm", "serve"}, Args: []string{"--served_model_name=mine"}}, EngineVLLM, claim,
			Command{Command: []string{"vllm", "serve"}, Args: []string{"/mnt/models/qwen", "--served_model_name=mine"}}, "",
		},
		"Script": {
			Command{Command: []string{"sh", "-c", "ulimit -n 65536\nexec vllm serve --port 8000 # now"}}, EngineVLLM, hub,
			Command{Command: []string{"sh", "-c", "ulimit -n 65536\nexec vllm serve Qwen/Qwen3-8B --port 8000 --served-model-name qwen --revision 9c925d64 # now"}}, "",
		},
		"Flag": {
			Command{Args: []string{"--model=other"}}, EngineVLLM, claim, Command{},
			`it names the model "other", and so does spec.model: leave one of them out`,
		},
		"Positional": {
			Command{Command: []string{"vllm", "serve", "other"}}, EngineVLLM, claim, Command{},
			`it names the model "other", and so does spec.model: leave one of them out`,
		},
		"Revision": {
			Command{Command: []string{"vllm", "serve"}, Args: []string{"--revision=main"}}, EngineVLLM, hub, Command{},
			`it names the revision "main", and spec.model "9c925d64": leave one of them out`,
		},
		"SameRevision": {
			Command{Command: []string{"vllm", "serve"}, Args: []string{"--revision=9c925d64"}}, EngineVLLM, hub,
			Command{Command: []string{"vllm", "serve"}, Args: []string{"Qwen/Qwen3-8B", "--revision=9c925d64", "--served-model-name", "qwen"}}, "",
		},
		"Unknown": {
			Command{Command: []string{"my-server", "--x"}}, EngineUnknown, claim, Command{},
			`it is unknown how "my-server" takes the model of spec.model: start vLLM or SGLang, or leave spec.model out`,
		},
		"UnknownImage": {
			Command{Args: []string{"--x"}}, EngineUnknown, claim, Command{},
			"it is unknown which engine the image starts, and so how it takes the model of spec.model: name the container vllm or sglang, set its command, or leave spec.model out",
		},
		"HiddenInScript": {
			Command{Command: []string{"sh", "-c", "for i in 1 2; do vllm serve; done"}}, EngineVLLM, claim, Command{},
			"spec.model adds flags to the engine's command, which cannot be found in this script: make the engine's command the script's last line and leave out conditions, loops, functions, backquotes and here-documents, or run the engine without a shell",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := WithModel(tc.command, tc.engine, tc.model)
			if err != nil {
				if diff := cmp.Diff(tc.err, err.Error()); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				return
			}
			if len(got.Command) == 0 {
				got.Command = nil
			}
			if len(got.Args) == 0 {
				got.Args = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || tc.err != "" {
				t.Errorf("want the error %q; -want +got:\n%s", tc.err, diff)
			}
		})
	}
}
