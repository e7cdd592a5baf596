package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestNames(t *testing.T) {
	cases := map[string]struct {
		reason  string
		command Command
		engine  Engine
		want    Names
	}{
		"Adapters": {
			reason:  "All words after --lora-modules are adapters, up to the next flag.",
			command: Command{Args: []string{"--model=base", "--lora-modules", "a=/a", `{"name":"b","path":"/b"}`, "--port", "8000"}},
			engine:  EngineVLLM,
			want:    Names{Served: []string{"base"}, Adapters: []string{"a", "b"}, Complete: true},
		},
		"ServedNames": {
			reason:  "A model may have several names, and no longer has that of its weights.",
			command: Command{Command: []string{"vllm", "serve", "base"}, Args: []string{"--served-model-name", "chat", "chat-large", "--lora-modules=a=/a"}},
			engine:  EngineVLLM,
			want:    Names{Served: []string{"chat", "chat-large"}, Adapters: []string{"a"}, Complete: true},
		},
		"Serve": {
			reason:  "The image's entrypoint may be vllm, without serve.",
			command: Command{Args: []string{"serve", "base"}},
			engine:  EngineVLLM,
			want:    Names{Served: []string{"base"}, Complete: true},
		},
		"Underscores": {
			reason:  "Flags may be written with underscores.",
			command: Command{Args: []string{"--model", "base", "--served_model_name", "chat"}},
			engine:  EngineVLLM,
			want:    Names{Served: []string{"chat"}, Complete: true},
		},
		"Script": {
			reason:  "The last command of a script is the engine's.",
			command: Command{Command: []string{"sh", "-c", "sleep 1; exec vllm serve base --lora-modules a=/a"}},
			engine:  EngineVLLM,
			want:    Names{Served: []string{"base"}, Adapters: []string{"a"}, Complete: true},
		},
		"HiddenInScript": {
			reason:  "Of a script that cannot be read, nothing is known.",
			command: Command{Command: []string{"sh", "-c", "if true; then vllm serve base; fi"}},
			engine:  EngineVLLM,
		},
		"Variable": {
			reason:  "What Kubernetes expands is not known here.",
			command: Command{Args: []string{"--model", "base", "--lora-modules", "$(NAME)=/a", "b=/b"}},
			engine:  EngineVLLM,
			want:    Names{Served: []string{"base"}, Adapters: []string{"b"}},
		},
		"ConfigurationFile": {
			reason:  "A file may have more flags.",
			command: Command{Args: []string{"--model", "base", "--config", "/etc/vllm.yaml"}},
			engine:  EngineVLLM,
			want:    Names{Served: []string{"base"}},
		},
		"Malformed": {
			reason:  "What cannot be read may have any name.",
			command: Command{Args: []string{"--model", "base", "--lora-modules", "{", "c"}},
			engine:  EngineVLLM,
			want:    Names{Served: []string{"base"}},
		},
		"SGLang": {
			reason:  "SGLang answers any name.",
			command: Command{Command: []string{"python3", "-m", "sglang.launch_server"}, Args: []string{"--model-path", "base", "--lora-paths", "a=/a"}},
			engine:  EngineSGLang,
			want:    Names{Served: []string{"base"}, Adapters: []string{"a"}},
		},
		"UnknownEngine": {
			reason:  "Of another engine, nothing is known.",
			command: Command{Command: []string{"serve-it", "--model", "base"}},
		},
		"NoModel": {
			reason:  "Without a model, the engine has a default of its own.",
			command: Command{Command: []string{"vllm", "serve"}},
			engine:  EngineVLLM,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Parse(tc.command).Names(tc.engine), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nNames(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
