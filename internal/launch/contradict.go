package launch

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

var errNoScript = errors.New("a shell with -c needs a script as the next argument: add it as one element of args")

// CheckCommand returns an error if a container cannot run its command, with or without an engine.
func CheckCommand(c Command) error {
	if len(c.Command) > 0 && lacksScript(c.Command, c.Args) {
		return errNoScript
	}
	return nil
}

// lacksScript tells whether a shell has -c without a script, or with an empty one.
func lacksScript(command, args []string) bool {
	argv := slices.Concat(command, args)
	if !slices.Contains(shells, path.Base(argv[0])) {
		return false
	}
	if i := findScript(argv); i > 0 {
		return strings.TrimSpace(argv[i]) == ""
	}
	// The options of a shell come first. The first word that is no option is a file to run.
	for i := 1; i < len(argv) && argv[i] != "--" && argv[i] != "-" && strings.HasPrefix(argv[i], "-"); i++ {
		if !strings.HasPrefix(argv[i], "--") && strings.Contains(argv[i], "c") {
			return true
		}
	}
	return false
}

// unsupportedEngines are engines that only the launcher None can run, by the names of their
// programs and Python modules.
var unsupportedEngines = map[string]string{
	"trtllm-serve":             "TensorRT-LLM",
	"trtllm-llmapi-launch":     "TensorRT-LLM",
	"tensorrt_llm":             "TensorRT-LLM",
	"lmdeploy":                 "LMDeploy",
	"text-generation-launcher": "Text Generation Inference",
	"tritonserver":             "Triton",
	"llama-server":             "llama.cpp",
	"llama_cpp":                "llama.cpp",
	"mlc_llm":                  "MLC",
	"ollama":                   "Ollama",
}

// unsupportedEngine returns the unsupported engine that a command starts, or nothing. The engine may
// follow tini, env or numactl. The value of a flag is never taken for an engine.
func unsupportedEngine(words []string) string {
	for i, w := range words {
		flag := i > 0 && strings.HasPrefix(words[i-1], "-") && words[i-1] != "--" && !strings.Contains(words[i-1], "=")
		module := i > 0 && words[i-1] == "-m"
		name := path.Base(w)
		if module {
			name, _, _ = strings.Cut(w, ".")
		}
		if e := unsupportedEngines[name]; e != "" && (module || !flag) {
			return e
		}
	}
	return ""
}

// checkLauncher refuses a command that the launcher cannot run.
func (l *Line) checkLauncher(o Options, leader bool) error {
	if o.Launcher == v1alpha1.LauncherNone || o.Launcher == "" {
		return nil
	}
	words := l.argv
	if l.script > 0 {
		last, _ := l.scan()
		words = last.literals
	}
	if e := unsupportedEngine(words); e != "" && engineOf(words) == EngineUnknown {
		return fmt.Errorf("this command starts %s, which launcher %s does not know: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX", e, o.Launcher)
	}
	return l.checkNodeFlags(o, leader)
}

// checkNodeFlags refuses a node count or rank that contradicts the replica's nodes: the engine
// would wait for nodes that never start. The values of variables are unknown, so they are allowed.
func (l *Line) checkNodeFlags(o Options, leader bool) error {
	if o.Nodes < 2 || o.Launcher == v1alpha1.LauncherVLLMDataParallel {
		return nil
	}
	ray := o.Launcher == v1alpha1.LauncherRay
	for _, f := range nodeFlags(l.engineWords(), ray || o.Launcher == v1alpha1.LauncherVLLM) {
		switch rank := f.name == nodeRank; {
		case ray && !rank && f.number != 1:
			return fmt.Errorf("launcher Ray starts one engine, which learns its nodes from Ray and not from %s %d: leave the flag out, or set launcher: VLLM", f.flag, f.number)
		case ray:
		case !rank && f.number != int(o.Nodes):
			return fmt.Errorf("%s %d contradicts multinode.nodeCount, which is %d: leave the flag out, launcher %s sets it", f.flag, f.number, o.Nodes, o.Launcher)
		case rank && leader && f.number != 0:
			return fmt.Errorf("%s %d contradicts the leader's rank, which is 0: leave the flag out, launcher %s sets it", f.flag, f.number, o.Launcher)
		case rank && !leader && (o.Nodes > 2 || f.number != 1):
			return fmt.Errorf("%s %d cannot be the rank of every worker: their ranks are 1 to %d: leave the flag out, launcher %s sets it", f.flag, f.number, o.Nodes-1, o.Launcher)
		}
	}
	return nil
}

const (
	nodeCount = "--nnodes"
	nodeRank  = "--node-rank"
)

// A nodeFlag is a node count or a node's rank in a command.
type nodeFlag struct {
	// name is the flag's long name. flag is the name as the command has it.
	name, flag string
	number     int
}

// nodeFlags returns the node count and rank of a command, if they are plain numbers. short tells whether the engine has -n and -r.
func nodeFlags(words []string, short bool) []nodeFlag {
	var all []nodeFlag
	for _, names := range [][]string{{nodeCount, "-n"}, {nodeRank, "-r"}} {
		if !short {
			names = names[:1]
		}
		flag, value := lastFlag(words, names...)
		if n, err := strconv.Atoi(value); err == nil {
			all = append(all, nodeFlag{name: names[0], flag: flag, number: n})
		}
	}
	return all
}

// WarnWithoutLauncher warns of a node count above the replica's nodes, for a command without a
// launcher. It is no error, because there the user decides how nodes connect.
func (l Line) WarnWithoutLauncher(nodes int32) string {
	for _, f := range nodeFlags(l.engineWords(), l.Engine() == EngineVLLM) {
		if f.name == nodeCount && f.number > int(nodes) {
			return fmt.Sprintf("%s %d makes the engine wait for more nodes than the %d of the replica: set multinode.nodeCount to the same number", f.flag, f.number, nodes)
		}
	}
	return ""
}

// engineWords returns the words after the engine's name. Programs before it, such as nice -n 10,
// have flags of their own.
func (l *Line) engineWords() []string {
	words := l.words()
	if l.startsWithServe() {
		return words[1:]
	}
	_, after := findEngine(words)
	return words[after:]
}
