package launch

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// An Engine is a program that serves models.
type Engine string

// The engines that launchers support.
const (
	EngineUnknown Engine = ""
	EngineVLLM    Engine = "vLLM"
	EngineSGLang  Engine = "SGLang"
)

// A Line is a container's command and args in one list. A shell's script is scanned once, when somebody asks what is in it.
type Line struct {
	argv []string
	// command is the number of words from the container's command. If it is 0, the words are
	// arguments of the image's entrypoint.
	command int
	// script is the index of a shell's script. It is 0 without a shell.
	script int
	// scan scans the script, once however often it is called. Without a script, it finds no command.
	scan func() (simpleCommand, bool)
}

// Parse reads a command.
func Parse(c Command) Line {
	l := Line{argv: slices.Concat(c.Command, c.Args), command: len(c.Command)}
	l.scan = func() (simpleCommand, bool) { return simpleCommand{}, false }
	l.script = findScript(l.argv)
	if l.script > 0 {
		l.setScript(l.argv[l.script])
	}
	return l
}

// setScript sets the shell's script.
func (l *Line) setScript(script string) {
	l.argv[l.script] = script
	l.scan = sync.OnceValues(func() (simpleCommand, bool) { return scan(script) })
}

// lastCommand finds the last command of the shell's script, and tells whether arguments can be added to it.
// For this it must be a simple command that starts an engine. Compound commands, functions,
// here-documents, backquotes, and pipes or redirections around the engine prevent it.
func (l Line) lastCommand() (simpleCommand, bool) {
	c, ok := l.scan()
	return c, ok && c.engine != EngineUnknown
}

func (l Line) join() Command {
	return Command{Command: l.argv[:l.command:l.command], Args: l.argv[l.command:]}
}

// program tells whether the words start with a program, rather than with
// arguments for the image's entrypoint.
func (l Line) program() bool {
	if l.command > 0 || l.script > 0 {
		return true
	}
	if len(l.argv) == 0 {
		return false
	}
	base, dir := path.Base(l.argv[0]), path.Dir(l.argv[0])
	if dir != "." && path.Base(dir) != "bin" {
		return false // A model may be called /models/python.
	}
	switch base {
	case "vllm", "sglang":
		return len(l.argv) > 1 && l.argv[1] == "serve"
	case "ray", "env", "tini", "nice", "numactl", "nsys":
		return true
	default:
		return python.MatchString(base)
	}
}

// startsWithServe tells whether the words are arguments for an entrypoint that is the engine without serve.
func (l Line) startsWithServe() bool { return !l.program() && len(l.argv) > 0 && l.argv[0] == "serve" }

// afterEntrypoint returns the words with vLLM's program before them, if the image's entrypoint would start it.
func (l Line) afterEntrypoint() []string {
	switch {
	case l.program():
		return l.argv
	case l.startsWithServe():
		return slices.Concat([]string{"vllm"}, l.argv)
	}
	return slices.Concat([]string{"vllm", "serve"}, l.argv)
}

// words returns the words of the engine's command. They are nil if a script hides them.
func (l Line) words() []string {
	if l.script == 0 {
		return l.argv
	}
	last, ok := l.lastCommand()
	if !ok {
		return nil
	}
	return last.literals
}

// Engine returns the engine that the command starts.
func (l Line) Engine() Engine {
	if !l.program() {
		return EngineUnknown
	}
	return engineOf(l.words())
}

var python = regexp.MustCompile(`^python[0-9.]*$`)

// findEngine finds the engine anywhere in a command, because it may follow tini, env or numactl. It also returns the index of the first word
// after the engine's name, which has two words. The index is 0 without an engine.
func findEngine(words []string) (e Engine, after int) {
	for i := range len(words) - 1 {
		switch next := words[i+1]; {
		case path.Base(words[i]) == "vllm" && next == "serve", words[i] == "-m" && strings.HasPrefix(next, "vllm.entrypoints."):
			return EngineVLLM, i + 2
		case path.Base(words[i]) == "sglang" && next == "serve", words[i] == "-m" && strings.HasPrefix(next, "sglang."):
			return EngineSGLang, i + 2
		}
	}
	return EngineUnknown, 0
}

func engineOf(words []string) Engine {
	e, _ := findEngine(words)
	return e
}

var shells = []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}

// findScript returns the index of the script in a call of a shell with -c, or 0.
// The option may be one of several in a word (-lc, -euxo pipefail -c).
func findScript(argv []string) int {
	if len(argv) < 2 || !slices.Contains(shells, path.Base(argv[0])) {
		return 0
	}
	command := false
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		switch {
		case w == "--" || w == "-":
			i++
			fallthrough
		case len(w) < 2 || w[0] != '-' && w[0] != '+':
			if command && i < len(argv) {
				return i
			}
			return 0
		case w == "--rcfile" || w == "--init-file":
			i++
		case strings.HasPrefix(w, "--"):
		default:
			command = command || w[0] == '-' && strings.Contains(w, "c")
			// Each o and O takes the next word as its own.
			i += strings.Count(w, "o") + strings.Count(w, "O")
		}
	}
	return 0
}

// passesOn finds a shell's words for all its arguments. It does not find $*, which joins them if it is quoted, nor ${@:2}, which leaves out
// the first flag.
var passesOn = regexp.MustCompile(`\$@|\$\{@\}`)

// startsShell tells whether a program before, such as tini, starts a shell with a script that does not pass on its arguments. Words that are added
// are such arguments.
func (l Line) startsShell() bool {
	if l.script > 0 || !l.program() || l.Engine() != EngineUnknown {
		return false
	}
	for i := range l.argv {
		if at := i + findScript(l.argv[i:]); at > i {
			return at == len(l.argv)-1 || !passesOn.MatchString(l.argv[at])
		}
	}
	return false
}

// A flag is a flag that a launcher adds.
type flag struct {
	// names that the engine accepts. The first one is added.
	names []string
	// value is text with a variable of LeaderWorkerSet as {VAR}. It is empty for a switch.
	value string
}

// argv returns the flag as container arguments, in which Kubernetes replaces $(VAR).
func (f flag) argv() []string {
	if f.value == "" {
		return f.names[:1]
	}
	return []string{f.names[0], strings.NewReplacer("{", "$(", "}", ")").Replace(f.value)}
}

// shell returns the flag for a script, in which the shell replaces $VAR. The values are addresses
// and numbers, which need no quotes.
func (f flag) shell() string {
	if f.value == "" {
		return f.names[0]
	}
	return f.names[0] + " " + strings.NewReplacer("{", "$", "}", "").Replace(f.value)
}

// cut splits --name=value. Engines accept both - and _ in a name, so cut returns -.
func cut(word string) (name, value string, joined bool) {
	name, value, joined = strings.Cut(word, "=")
	if strings.HasPrefix(name, "--") {
		name = strings.ReplaceAll(name, "_", "-")
	}
	return name, value, joined
}

// has tells whether one of the flags is among words.
func has(words []string, names ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		name, _, _ := cut(w)
		return slices.Contains(names, name)
	})
}

// lastFlag returns the last flag that has one of the names, and its value, because engines take the last value of a
// repeated flag. It returns nothing without such a flag.
func lastFlag(words []string, names ...string) (name, value string) {
	for i, w := range slices.Backward(words) {
		switch flag, text, joined := cut(w); {
		case !slices.Contains(names, flag):
		case joined || i+1 == len(words):
			return flag, text
		default:
			return flag, words[i+1]
		}
	}
	return "", ""
}

// valueOf returns the last value of a flag by any of its names, or nothing.
func valueOf(words []string, names ...string) string {
	_, value := lastFlag(words, names...)
	return value
}
