package launch

import (
	"slices"
)

// Arguments are what an engine that serves models gets on its command line.
type Arguments struct {
	Engine Engine
	// Named tells that the command names the engine. Otherwise the image starts it.
	Named bool
	// Words after the engine's name.
	Words []string
	// At has the index of each word in the container's command and args together. All words of a shell's
	// script are at the script.
	At []int
	// Script tells that a shell reads the words, so that a variable may become several of them.
	Script bool
}

// servers are the modules of Python that start a server with an engine's flags.
var servers = []string{"vllm.entrypoints.openai.api_server", "sglang.launch_server"}

// Arguments returns what the engine of the command gets. It is not ok for a command that starts another
// program, or in which the engine cannot be found. entrypoint is the engine that the image itself starts.
func (l Line) Arguments(entrypoint Engine) (a Arguments, ok bool) {
	words := l.words()
	a = Arguments{Engine: entrypoint, Script: l.script > 0, At: make([]int, len(words))}
	for i := range a.At {
		a.At[i] = i
		if a.Script {
			a.At[i] = l.script
		}
	}
	if !l.program() {
		if len(words) > 0 && words[0] == "serve" {
			return a.from(words, 1), entrypoint == EngineVLLM
		}
		return a.from(words, 0), entrypoint == EngineVLLM
	}
	e, after := findEngine(words)
	if e == EngineUnknown {
		return Arguments{}, false
	}
	a.Engine, a.Named = e, true
	module, name := words[after-2] == "-m", words[after-1]
	return a.from(words, after), !module || slices.Contains(servers, name)
}

// from returns the arguments from an index on.
func (a Arguments) from(words []string, i int) Arguments {
	a.Words, a.At = words[i:], a.At[i:]
	return a
}
