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

var errNoScript = errors.New("a shell with -c runs the script that comes next, and there is none: add it as one element of args")

// Runs says why a container cannot run its command, whatever engine it starts.
func Runs(c Command) error {
	if len(c.Command) > 0 && lacksScript(c.Command, c.Args) {
		return errNoScript
	}
	return nil
}

// lacksScript tells a shell with -c and no script, or an empty one.
func lacksScript(command, args []string) bool {
	argv := slices.Concat(command, args)
	if !slices.Contains(shells, path.Base(argv[0])) {
		return false
	}
	if i := findScript(argv); i > 0 {
		return strings.TrimSpace(argv[i]) == ""
	}
	// Options of a shell are its first words. The first that is none is a file to run.
	for i := 1; i < len(argv) && argv[i] != "--" && argv[i] != "-" && strings.HasPrefix(argv[i], "-"); i++ {
		if !strings.HasPrefix(argv[i], "--") && strings.Contains(argv[i], "c") {
			return true
		}
	}
	return false
}

// others are engines that no launcher but None knows, by their programs, and by the
// modules that Python runs.
var others = map[string]string{
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

// other is the engine that a command starts, if it is one of those that no launcher
// knows. It may stand behind tini, env or numactl; the value of a flag is none.
func other(words []string) string {
	for i, w := range words {
		flag := i > 0 && strings.HasPrefix(words[i-1], "-") && words[i-1] != "--" && !strings.Contains(words[i-1], "=")
		module := i > 0 && words[i-1] == "-m"
		name := path.Base(w)
		if module {
			name, _, _ = strings.Cut(w, ".")
		}
		if e := others[name]; e != "" && (module || !flag) {
			return e
		}
	}
	return ""
}

// fits refuses what contradicts a launcher.
func (l *line) fits(o Options, leader bool) error {
	if o.Launcher == v1alpha1.LauncherNone || o.Launcher == "" {
		return nil
	}
	words := l.argv
	if l.script > 0 {
		last, _ := scan(l.argv[l.script])
		words = last.literals()
	}
	if e := other(words); e != "" && engineOf(words) == EngineUnknown {
		return fmt.Errorf("this command starts %s, which launcher %s does not know: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX", e, o.Launcher)
	}
	return l.counts(o, leader)
}

// counts refuses a number of nodes, or of this one, that is not the replica's. The
// engine would wait for nodes that never come. A variable may be anything.
func (l *line) counts(o Options, leader bool) error {
	if o.Nodes < 2 {
		return nil
	}
	ray := o.Launcher == v1alpha1.LauncherRay
	for _, f := range sizes(l.engineWords(), ray || o.Launcher == v1alpha1.LauncherVLLM) {
		switch rank := f.of == nodeRank; {
		case ray && !rank && f.number != 1:
			return fmt.Errorf("launcher Ray starts one engine, which has its nodes from Ray and not by %s %d: leave the flag out, or set launcher: VLLM", f.flag, f.number)
		case ray:
		case !rank && f.number != int(o.Nodes):
			return fmt.Errorf("%s %d contradicts multinode.nodeCount, which is %d: leave the flag out, launcher %s sets it", f.flag, f.number, o.Nodes, o.Launcher)
		case rank && leader && f.number != 0:
			return fmt.Errorf("%s %d is no rank of the leader, which is 0: leave the flag out, launcher %s sets it", f.flag, f.number, o.Launcher)
		case rank && !leader && (o.Nodes > 2 || f.number != 1):
			return fmt.Errorf("%s %d is not the rank of every worker, which are from 1 to %d: leave the flag out, launcher %s sets it", f.flag, f.number, o.Nodes-1, o.Launcher)
		}
	}
	return nil
}

const (
	nodeCount = "--nnodes"
	nodeRank  = "--node-rank"
)

// A size is a number of nodes, or of one of them, that a command names.
type size struct {
	// of is the flag's long name, flag how it is written.
	of, flag, value string
	number          int
}

// sizes that a command has as plain numbers. The last one of a flag wins, as in the
// engines.
func sizes(words []string, short bool) []size {
	var all []size
	for _, names := range [][]string{{nodeCount, "-n"}, {nodeRank, "-r"}} {
		if !short {
			names = names[:1]
		}
		var last *size
		for i, w := range words {
			name, v, joined := cut(w)
			if !slices.Contains(names, name) {
				continue
			}
			if !joined && i+1 < len(words) {
				v = words[i+1]
			}
			last = &size{of: names[0], flag: name, value: v}
		}
		if last == nil {
			continue
		}
		if n, err := strconv.Atoi(last.value); err == nil {
			last.number = n
			all = append(all, *last)
		}
	}
	return all
}

// Alone says what of a command contradicts the number of nodes where no launcher is in
// charge. The user is, and may know why.
func Alone(c Command, nodes int32) string {
	l := parse(c)
	for _, f := range sizes(l.engineWords(), l.engine() == EngineVLLM) {
		if f.of == nodeCount && f.number > int(nodes) {
			return fmt.Sprintf("%s %d has the engine wait for more nodes than the replica has, which is %d: set multinode.nodeCount to as many", f.flag, f.number, nodes)
		}
	}
	return ""
}

// engineWords are the words behind the engine's name. What stands in front of it, such
// as nice -n 10, has flags of its own.
func (l *line) engineWords() []string {
	words := l.words()
	for i := range len(words) - 1 {
		if engineOf(words[i:i+2]) != EngineUnknown {
			return words[i+2:]
		}
	}
	return words
}
