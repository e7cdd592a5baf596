/*
Package launch turns the command of an engine's container into the commands of the
leader and the workers of a multi-node replica. It works on text alone. Every
argument that the user wrote reaches the engine unchanged. A command that cannot be
changed safely is refused with the reason.

Ray needs two programs in one container, and so a shell. If no argument contains
$(, the command is quoted and becomes part of the shell's script. Kubernetes
replaces $(VAR) in that script before the shell reads it, so a value with a quote
could inject shell code. So a command with $( is passed as arguments of the shell,
which Kubernetes expands one by one.

The other launchers only add flags, so they need no shell. Only the first data-parallel
rank of a worker has to be computed, by a shell that gets the command as arguments. A user's
shell script is always kept. Flags are added to a script only if its last command is provably the
engine. Under Ray a script also works without the flag: vLLM selects Ray itself for
a model that does not fit on one node.
*/
package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A Command is what a container runs: its command and its args.
type Command struct {
	Command, Args []string
}

// Options say how an engine is launched.
type Options struct {
	// Launcher connects leader and workers. It is None for a replica on one node.
	Launcher v1alpha1.Launcher
	// RayPort of the Ray head.
	RayPort int32
	// Port that the engine listens on.
	Port int32
	// Nodes of the replica.
	Nodes int32
	// MovePort makes the engine listen on Port, even if its command sets another port.
	MovePort bool
}

// Leader returns what the leader runs.
func Leader(c Command, o Options) (Command, error) {
	l := Parse(c)
	if err := l.checkLauncher(o, true); err != nil {
		return Command{}, err
	}
	if o.MovePort {
		if err := l.movePort(o.Port); err != nil {
			return Command{}, err
		}
	}
	switch o.Launcher {
	case v1alpha1.LauncherRay:
		return l.rayHead(o.RayPort)
	case v1alpha1.LauncherVLLM:
		return l.vllm(true)
	case v1alpha1.LauncherVLLMDataParallel:
		return l.vllmDataParallel(true, o.Nodes)
	case v1alpha1.LauncherSGLang:
		return l.sglang(true, o.Port)
	case v1alpha1.LauncherNone:
	}
	return l.join(), nil
}

// Worker returns what the worker pods run.
func Worker(c Command, o Options) (Command, error) {
	l := Parse(c)
	if err := l.checkLauncher(o, false); err != nil {
		return Command{}, err
	}
	switch o.Launcher {
	case v1alpha1.LauncherRay:
		return l.rayWorker(o.RayPort), nil
	case v1alpha1.LauncherVLLM:
		return l.vllm(false)
	case v1alpha1.LauncherVLLMDataParallel:
		return l.vllmDataParallel(false, o.Nodes)
	case v1alpha1.LauncherSGLang:
		return l.sglang(false, o.Port)
	case v1alpha1.LauncherNone:
	}
	return l.join(), nil
}

func (l Line) port() int32 {
	words := l.words()
	text := valueOf(words, "--port")
	// Elsewhere in a script it counts if the command may get it from there. It may also stand in a comment.
	if text == "" && l.script > 0 && (words == nil || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "$") })) {
		script := l.argv[l.script]
		if m := visiblePort.FindAllStringSubmatch(script, 2); len(m) == 1 && visiblePort.MatchString(rayCommand.ReplaceAllString(script, "")) {
			text = m[0][1]
		}
	}
	return portIn(text)
}

func portIn(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || n > check.MaxPort {
		return 0
	}
	return int32(n)
}

// movePort makes the engine listen on another port, for the routing sidecar.
func (l *Line) movePort(port int32) error {
	text := strconv.Itoa(int(port))
	switch {
	case l.script > 0:
		return l.movePortInScript(text)
	case l.program() && l.Engine() == EngineUnknown && !has(l.argv, "--port"):
		return fmt.Errorf("the routing sidecar takes the serving port, so the engine has to listen on %s, and it is unknown how %q takes its port: add --port", text, l.argv[0])
	}
	found := false
	for i, w := range l.argv {
		name, _, joined := cut(w)
		if name != "--port" {
			continue
		}
		switch {
		case joined:
			l.argv[i] = "--port=" + text
		case i+1 < len(l.argv):
			l.argv[i+1] = text
		default:
			l.argv = append(l.argv, text)
		}
		found = true
	}
	if !found {
		l.argv = append(l.argv, "--port", text)
	}
	return nil
}

func (l *Line) movePortInScript(port string) error {
	script := l.argv[l.script]
	if last, ok := l.lastCommand(); ok {
		l.setScript(last.withPort(script, port))
		return nil
	}
	if m := visiblePort.FindAllStringSubmatchIndex(script, 2); len(m) == 1 && !startsRay(script) {
		l.setScript(script[:m[0][2]] + port + script[m[0][3]:])
		return nil
	}
	return fmt.Errorf("the routing sidecar takes the serving port, so the engine has to listen on %s, and it is unclear where this script sets its port: write --port with a number once, make the engine's command the script's last line, or run the engine without a shell", port)
}

// add adds the flags that the command lacks: at the end of the container's arguments, or to the
// engine's command in a script.
func (l *Line) add(launcher v1alpha1.Launcher, flags ...flag) error {
	switch {
	case l.append(flags...):
	case l.startsShell():
		return fmt.Errorf("launcher %s adds flags to the engine's command, which it does not look for in the script of a shell behind %.80q: start the shell first, or run the engine without a shell", launcher, l.argv[0])
	default:
		return fmt.Errorf("launcher %s adds flags to the engine's command, which it cannot find in this script: make the engine's command the script's last line and leave out conditions, loops, functions, backquotes and here-documents, run the engine without a shell, or set launcher: None and tell leader and workers apart by $LWS_WORKER_INDEX", launcher)
	}
	return nil
}

// append adds the flags that the command lacks, and tells whether there is a place for them.
func (l *Line) append(flags ...flag) bool {
	missing := slices.DeleteFunc(flags, func(f flag) bool { return has(l.engineWords(), f.names...) })
	switch {
	case len(missing) == 0:
		return true
	case l.startsShell():
		return false
	}
	if l.script == 0 {
		for _, f := range missing {
			l.argv = append(l.argv, f.argv()...)
		}
		return true
	}
	last, ok := l.lastCommand()
	if !ok {
		return false
	}
	texts := make([]string, len(missing))
	for i, f := range missing {
		texts[i] = f.shell()
	}
	l.setScript(last.with(l.argv[l.script], strings.Join(texts, " ")))
	return true
}
