package launch

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

const (
	backend = "--distributed-executor-backend"
	// startsHead starts the Ray head of a leader. Its port follows.
	startsHead = "ray start --head --port="
)

// startsRay tells whether a script starts Ray itself. vLLM's images have multi-node-serving.sh to
// do so.
func startsRay(script string) bool {
	return (strings.Contains(script, "ray") || strings.Contains(script, "multi-node")) && rayStart.MatchString(script)
}

var (
	rayStart = regexp.MustCompile(`\bray\s+start\b|\bmulti-node-serving\.sh\b`)
	// rayCommand is a command that starts Ray. Its --port is that of the Ray head.
	rayCommand = regexp.MustCompile(`\bray\s+start\b(?:\\\n|\$\([^)]*\)|` + "`[^`]*`" + `|[^&;|\n])*`)
	// headPort finds the port in what rayHead writes.
	headPort          = regexp.MustCompile(`^` + startsHead + `(\d+) (?:&&|\|\|)`)
	backendInText     = regexp.MustCompile(`--distributed[-_]executor[-_]backend[= \t]+['"]?(\w+)`)
	errOwnRay         = errors.New("this command starts Ray itself, and launcher Ray would start it again: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX")
	errOnlyEntrypoint = errors.New("launcher Ray starts Ray before the engine, but does not know what the image's entrypoint starts: set command or args")
)

// rayHead starts the Ray head and then the engine. If the head fails, the engine does not start.
func (l Line) rayHead(port int32) (Command, error) {
	if err := l.checkRay(); err != nil {
		return Command{}, err
	}
	start := startsHead + strconv.Itoa(int(port))
	if l.script > 0 {
		return l.rayBeforeScript(start), nil
	}
	argv := l.afterEntrypoint()
	tail := ""
	if !has(argv, backend) {
		tail = " " + backend + " ray"
	}
	shell := []string{"/bin/sh", "-c"}
	if slices.ContainsFunc(argv, func(a string) bool { return strings.Contains(a, "$(") }) {
		return Command{Command: shell, Args: append([]string{start + ` && "$@"` + tail, "sh"}, argv...)}, nil
	}
	return Command{Command: shell, Args: []string{start + " && " + quoteAll(argv) + tail}}, nil
}

// RayPort returns the port of the Ray head that rayHead starts in a command, or 0.
func RayPort(c Command) int32 {
	if len(c.Args) == 0 {
		return 0
	}
	m := headPort.FindStringSubmatch(c.Args[0])
	if m == nil {
		return 0
	}
	return portIn(m[1])
}

// rayBeforeScript starts the Ray head before a user's script. The script, its shell and its
// arguments are kept.
func (l Line) rayBeforeScript(start string) Command {
	script := l.argv[l.script]
	last, ok := l.lastCommand()
	text := script
	if ok && last.engine == EngineVLLM && !backendInText.MatchString(script) {
		text = last.with(script, backend+" ray")
	}
	// In a script with other separators, && would guard only the first command.
	if ok && last.chained {
		text = start + " && " + text
	} else {
		text = start + " || exit 1\n" + text
	}
	args := slices.Concat([]string{text}, l.argv[l.script+1:])
	return Command{Command: slices.Clone(l.argv[:l.script]), Args: args}
}

// rayWorker joins the Ray cluster. It keeps the shell of a user's script, because the shell's
// profile may set the PATH to Ray.
func (l Line) rayWorker(port int32) Command {
	shell := []string{"/bin/sh", "-c"}
	if l.script > 0 {
		shell = slices.Clone(l.argv[:l.script])
	}
	return Command{Command: shell, Args: []string{fmt.Sprintf("ray start --address=$LWS_LEADER_ADDRESS:%d --block", port)}}
}

// checkRay refuses a command that would not use the Ray cluster, or would start a second one.
func (l Line) checkRay() error {
	if len(l.argv) == 0 {
		return errOnlyEntrypoint
	}
	if l.Engine() == EngineSGLang {
		return wrongLauncher(EngineSGLang, v1alpha1.LauncherRay, v1alpha1.LauncherSGLang)
	}
	used := valueOf(l.words(), backend)
	if l.script > 0 {
		script := l.argv[l.script]
		if startsRay(script) {
			return errOwnRay
		}
		if m := backendInText.FindStringSubmatch(script); m != nil {
			used = m[1]
		}
	} else if startsRay(strings.Join(l.argv, " ")) {
		return errOwnRay
	}
	switch used {
	case "mp", "uni", "external_launcher":
		return fmt.Errorf("launcher Ray starts a Ray cluster, which an engine with %s %s does not use: leave the flag out, or set launcher: VLLM", backend, used)
	}
	return nil
}

func wrongLauncher(e Engine, is, want v1alpha1.Launcher) error {
	return fmt.Errorf("this command starts %s, which launcher %s does not know: set launcher: %s", e, is, want)
}
