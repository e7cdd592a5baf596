package launch

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A machine runs commands as a container would, with programs that only write
// down how they were called.
type machine struct {
	t   testing.TB
	dir string
	env map[string]string
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir(), env: map[string]string{
		"LWS_LEADER_ADDRESS": "a-0.a.default",
		"LWS_GROUP_SIZE":     "4",
		"LWS_WORKER_INDEX":   "1",
		"NASTY":              `it's "two" words; $HOME $(id) \ *`,
	}}
	const stub = `#!/bin/sh
{ printf '%s\0' "$#" "${0##*/}"; [ $# -eq 0 ] || printf '%s\0' "$@"; } >> "$CALLS"
exit ${RAY_FAILS:-0}
`
	for _, name := range []string{"ray", "vllm", "python3", "sglang", "prepare"} {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// run returns how programs were called, in order. The entrypoint is the image's,
// and shell replaces /bin/sh.
func (m *machine) run(c Command, entrypoint []string, shell string) [][]string {
	m.t.Helper()
	argv := append([]string{}, c.Command...)
	if len(argv) == 0 {
		argv = append(argv, entrypoint...)
	}
	argv = append(argv, c.Args...)
	for i := range argv {
		argv[i] = expand(argv[i], m.env)
	}
	switch {
	case argv[0] == "/bin/sh":
		argv[0] = shell
	case !strings.Contains(argv[0], "/"):
		if p := filepath.Join(m.dir, argv[0]); exists(p) {
			argv[0] = p
		}
	}
	calls := filepath.Join(m.t.TempDir(), "calls")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + m.dir + ":/usr/bin:/bin", "CALLS=" + calls}
	for k, v := range m.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if out, err := cmd.CombinedOutput(); err != nil && m.env["RAY_FAILS"] == "" {
		m.t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return read(m.t, calls)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func read(t testing.TB, path string) [][]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	words := bytes.Split(bytes.TrimSuffix(data, []byte{0}), []byte{0})
	var all [][]string
	for len(words) > 0 {
		n, err := strconv.Atoi(string(words[0]))
		if err != nil {
			t.Fatalf("cannot read calls: %v", err)
		}
		call := make([]string, n+1)
		for i := range call {
			call[i] = string(words[i+1])
		}
		all, words = append(all, call), words[n+2:]
	}
	return all
}

// expand is what Kubernetes does to each word of command and args: $(VAR) is
// replaced if it is known, $$ is one $, and everything else stays.
func expand(s string, env map[string]string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case '$':
			b.WriteByte('$')
		case '(':
			end := strings.IndexByte(s[i:], ')')
			if end < 0 {
				b.WriteString("$(")
				continue
			}
			name := s[i+1 : i+end]
			if v, ok := env[name]; ok {
				b.WriteString(v)
			} else {
				b.WriteString("$(" + name + ")")
			}
			i += end
		default:
			b.WriteString(s[i-1 : i+1])
		}
	}
	return b.String()
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "x"}
	for in, want := range map[string]string{
		"$(A)": "x", "$$(A)": "$(A)", "$$$(A)": "$x", "$(B)": "$(B)", "$(A": "$(A", "$A": "$A", "$$": "$", "$": "$", "a$": "a$", "$(A)$(A)": "xx", "$()": "$()",
	} {
		if got := expand(in, env); got != want {
			t.Errorf("%q: want %q, got %q", in, want, got)
		}
	}
}

var (
	headCall = []string{"ray", "start", "--head", "--port=6379"}
	joinCall = []string{"ray", "start", "--address=a-0.a.default:6379", "--block"}
	backends = []string{"--distributed-executor-backend", "ray"}
	nnodes   = []string{"--nnodes", "4", "--node-rank", "1", "--master-addr", "a-0.a.default"}
	dist     = []string{"--dist-init-addr", "a-0.a.default:20000", "--nnodes", "4", "--node-rank", "1"}
	listen   = []string{"--host", "0.0.0.0", "--port", "8000"}
)

func join(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// hard are arguments that have been lost before.
var hard = []string{
	"--kv-transfer-config", `{"kv_connector":"NixlConnector","kv_role":"kv_both"}`,
	`--kv-transfer-config '{"a": "b"}'`, "it's", `"`, `\`, `\n`, "a\nb", "", " ", "$HOME", "${HOME}", "$LWS_LEADER_ADDRESS",
	"`id`", "$", "$$", "$$$", "a$", "$'", "*", "~", "#", "!", ";", "&&", "a=b", "--x={1,2}", "ü", "-", "--", "vllm", "serve",
}

// expanded are arguments that Kubernetes changes.
var expanded = []string{"$(NASTY)", "x=$(NASTY)'", "$$(NASTY)", "$(UNKNOWN)", "$(UNCLOSED", "$(LWS_GROUP_SIZE)", ")"}

func TestEveryArgumentArrives(t *testing.T) {
	m := newMachine(t)
	server := []string{"python3", "-m", "vllm.entrypoints.openai.api_server"}
	type who struct {
		launcher string
		options  Options
		leader   bool
	}
	engines := map[string]struct {
		reason string
		make   func(args []string) Command
		// called is how the engine is called without a launcher, and what Ray
		// starts in place of the image's entrypoint.
		called, underRay []string
		sglang           bool
	}{
		"ArgsOnly":   {"The image's entrypoint is the engine.", func(a []string) Command { return Command{Args: a} }, server, []string{"vllm", "serve"}, false},
		"Command":    {"The engine is the command.", func(a []string) Command { return Command{Command: []string{"vllm", "serve"}, Args: a} }, []string{"vllm", "serve"}, []string{"vllm", "serve"}, false},
		"AllCommand": {"All is the command.", func(a []string) Command { return Command{Command: append([]string{"vllm", "serve"}, a...)} }, []string{"vllm", "serve"}, []string{"vllm", "serve"}, false},
		"Python":     {"The engine is a module.", func(a []string) Command { return Command{Command: server, Args: a} }, server, server, false},
		"SGLang":     {"The other engine.", func(a []string) Command { return Command{Command: []string{"sglang", "serve"}, Args: a} }, []string{"sglang", "serve"}, nil, true},
	}
	for name, e := range engines {
		for _, args := range [][]string{append([]string{"--model", "M"}, hard...), append(append([]string{"--model", "M"}, hard...), expanded...)} {
			whole := make([]string, len(args))
			for i, a := range args {
				whole[i] = expand(a, m.env)
			}
			for _, w := range []who{{"Ray", ray, true}, {"Ray", ray, false}, {"VLLM", vllm, true}, {"VLLM", vllm, false}, {"SGLang", sglang, true}, {"SGLang", sglang, false}, {"None", none, true}, {"None", none, false}} {
				engine := append(append([]string{}, e.called...), whole...)
				var want [][]string
				switch {
				case w.launcher == "Ray" && e.sglang, w.launcher == "VLLM" && (e.sglang || name == "Python" && !w.leader), w.launcher == "SGLang" && !e.sglang && name != "ArgsOnly":
					continue // Refused.
				case w.launcher == "Ray" && w.leader:
					want = [][]string{headCall, join(e.underRay, whole, backends)}
				case w.launcher == "Ray":
					want = [][]string{joinCall}
				case w.launcher == "VLLM" && w.leader:
					want = [][]string{join(engine, nnodes)}
				case w.launcher == "VLLM":
					want = [][]string{join(engine, nnodes, []string{"--headless"})}
				case w.launcher == "SGLang" && w.leader:
					want = [][]string{join(engine, dist, listen)}
				case w.launcher == "SGLang":
					want = [][]string{join(engine, dist)}
				default:
					want = [][]string{engine}
				}
				launch := Worker
				if w.leader {
					launch = Leader
				}
				c, err := launch(e.make(args), w.options)
				if err != nil {
					t.Fatalf("%s %s: %v", name, w.launcher, err)
				}
				for _, shell := range []string{"/bin/sh", "/usr/bin/bash", "/usr/bin/dash"} {
					if !exists(shell) {
						continue
					}
					if diff := cmp.Diff(want, m.run(c, server, shell)); diff != "" {
						t.Errorf("%s, %s, leader %t, %s: %s\n-want, +got:\n%s", name, w.launcher, w.leader, shell, e.reason, diff)
					}
				}
			}
		}
	}
}

// TestRanksArrive runs workers with data-parallel ranks: they get the first of theirs, and every
// argument of the user.
func TestRanksArrive(t *testing.T) {
	m := newMachine(t)
	options := Options{Launcher: v1alpha1.LauncherVLLMDataParallel, Nodes: 4, Port: 8000}
	// Among them are the words vllm serve, after which flags are looked for.
	for _, args := range [][]string{join(hard, []string{"-dpl", "3"}), join(hard, expanded, []string{"-dpl", "3"})} {
		whole := make([]string, len(args))
		for i, a := range args {
			whole[i] = expand(a, m.env)
		}
		ranks := []string{"--data-parallel-size", "12", "--data-parallel-address", "a-0.a.default", "--headless", "--data-parallel-start-rank", "3"}
		for name, tc := range map[string]struct {
			command Command
			called  []string
		}{
			"ArgsOnly": {Command{Args: args}, []string{"vllm", "serve"}},
			"Command":  {Command{Command: []string{"vllm", "serve"}, Args: args}, []string{"vllm", "serve"}},
			"Script":   {sh(`vllm serve -dpl 3 "$@"`, append([]string{"sh"}, args...)...), []string{"vllm", "serve", "-dpl", "3"}},
		} {
			c, err := Worker(tc.command, options)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, shell := range []string{"/bin/sh", "/usr/bin/bash", "/usr/bin/dash"} {
				if !exists(shell) {
					continue
				}
				if diff := cmp.Diff([][]string{join(tc.called, whole, ranks)}, m.run(c, nil, shell)); diff != "" {
					t.Errorf("%s, %s: -want, +got:\n%s", name, shell, diff)
				}
			}
		}
	}
}

func TestEveryScriptRuns(t *testing.T) {
	m := newMachine(t)
	cases := map[string]struct {
		reason  string
		command Command
		options Options
		leader  [][]string
		worker  [][]string
	}{
		"RaySimple": {
			reason:  "One command.",
			command: sh(`vllm serve M --json '{"a": "$(LWS_GROUP_SIZE)"}'`),
			options: ray,
			leader:  [][]string{headCall, join([]string{"vllm", "serve", "M", "--json", `{"a": "4"}`}, backends)},
			worker:  [][]string{joinCall},
		},
		"RayArguments": {
			reason:  "A script's own arguments are its own.",
			command: Command{Command: []string{"bash", "-euo", "pipefail", "-c"}, Args: []string{"prepare \"$0\" \"$1\"\nshift\nexec vllm serve \"$@\"", "me", "one two", "M", "$(NASTY)"}},
			options: ray,
			leader:  [][]string{headCall, {"prepare", "me", "one two"}, join([]string{"vllm", "serve", "M", m.env["NASTY"]}, backends)},
			worker:  [][]string{joinCall},
		},
		"RayBlock": {
			reason:  "A script that is kept as it is.",
			command: sh("if prepare; then\n  vllm serve M\nfi"),
			options: ray,
			leader:  [][]string{headCall, {"prepare"}, {"vllm", "serve", "M"}},
			worker:  [][]string{joinCall},
		},
		"RayComment": {
			reason:  "A script that starts with a comment.",
			command: sh("#!/bin/sh\n# The engine:\nvllm serve M"),
			options: ray,
			leader:  [][]string{headCall, join([]string{"vllm", "serve", "M"}, backends)},
			worker:  [][]string{joinCall},
		},
		"RayPort": {
			reason:  "A decode leader's port moves.",
			command: sh("prepare && vllm serve M --port 8000"),
			options: moved(ray),
			leader:  [][]string{headCall, {"prepare"}, join([]string{"vllm", "serve", "M", "--port", "8200"}, backends)},
			worker:  [][]string{joinCall},
		},
		"VLLM": {
			reason:  "Flags go into the script.",
			command: sh("prepare; vllm serve M \\\n  --x \"$1\" # last\n", "sh", "a b"),
			options: vllm,
			leader:  [][]string{{"prepare"}, join([]string{"vllm", "serve", "M", "--x", "a b"}, nnodes)},
			worker:  [][]string{{"prepare"}, join([]string{"vllm", "serve", "M", "--x", "a b"}, nnodes, []string{"--headless"})},
		},
		"SGLang": {
			reason:  "Flags go into the script.",
			command: sh("A=b exec sglang serve --model-path M"),
			options: sglang,
			leader:  [][]string{join([]string{"sglang", "serve", "--model-path", "M"}, dist, listen)},
			worker:  [][]string{join([]string{"sglang", "serve", "--model-path", "M"}, dist)},
		},
		"None": {
			reason:  "Nothing is touched.",
			command: sh(`[ $LWS_WORKER_INDEX = 0 ] && ray start --head || ray start --address=$LWS_LEADER_ADDRESS`),
			options: none,
			leader:  [][]string{{"ray", "start", "--address=a-0.a.default"}},
			worker:  [][]string{{"ray", "start", "--address=a-0.a.default"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, shell := range []string{"/bin/sh", "/usr/bin/bash", "/usr/bin/dash"} {
				if !exists(shell) {
					continue
				}
				for who, f := range map[string]func(Command, Options) (Command, error){"leader": Leader, "worker": Worker} {
					want := map[string][][]string{"leader": tc.leader, "worker": tc.worker}[who]
					c, err := f(tc.command, tc.options)
					if err != nil {
						t.Fatalf("%s\n%s: %v", tc.reason, who, err)
					}
					if diff := cmp.Diff(want, m.run(c, nil, shell)); diff != "" {
						t.Errorf("%s\n%s, %s: -want, +got:\n%s", tc.reason, who, shell, diff)
					}
				}
			}
		})
	}
}

func TestNoEngineWithoutRay(t *testing.T) {
	m := newMachine(t)
	m.env["RAY_FAILS"] = "1"
	for name, c := range map[string]Command{
		"Args":      {Args: []string{"--model", "M"}},
		"Variables": {Args: []string{"--model", "$(M)"}},
		"Script":    sh("vllm serve M"),
		"Long":      sh("set -e\nprepare\nvllm serve M"),
		"Block":     sh("{ vllm serve M; }"),
	} {
		c, err := Leader(c, ray)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]string{headCall}, m.run(c, nil, "/bin/sh")); diff != "" {
			t.Errorf("%s: a Ray head that fails must keep the engine from starting: -want, +got:\n%s", name, diff)
		}
	}
}

// TestAddedArgumentsArrive makes scripts up and compares what runs with and
// without an added argument: it arrives at the last call, and nothing else
// changes.
func TestAddedArgumentsArrive(t *testing.T) {
	m := newMachine(t)
	random := rand.New(rand.NewPCG(1, 2))
	before := []string{"prepare", "prepare 'a;b' # c", `prepare "x\"y"`, "A=1", "export B='vllm serve'", "prepare | prepare", "prepare >/dev/null 2>&1", "false || true", "echo vllm serve", "[ -n \"$X\" ] || prepare"}
	separators := []string{"\n", "; ", " && ", "\n\n", " &&\n  ", "\n# vllm serve no\n", " ;\n"}
	words := []string{" M", " 'a b'", ` "c $A d"`, ` \'`, " \\\n --e", ` "${A:-x}"`, " $(echo f)", " g#h", " --i=\"j;k\"", ` "$@"`, " é", " a{b,c}", " ''", " $1$2"}
	ends := []string{"", "\n", ";", " # end", " \\\n", "\\\n", "\n# end\n", " ;# end"}
	added := 0
	for range 120 {
		script := ""
		var scriptSb367 strings.Builder
		for range random.IntN(4) {
			scriptSb367.WriteString(before[random.IntN(len(before))] + separators[random.IntN(len(separators))])
		}
		script += scriptSb367.String()
		script += []string{"vllm serve", "exec vllm serve", "C=d vllm serve", "python3 -m vllm.entrypoints.openai.api_server"}[random.IntN(4)]
		var scriptSb371 strings.Builder
		for range random.IntN(5) {
			scriptSb371.WriteString(words[random.IntN(len(words))])
		}
		script += scriptSb371.String()
		script += ends[random.IntN(len(ends))]
		c, ok := lastCommand(script)
		if !ok {
			continue
		}
		added++
		for _, shell := range []string{"/bin/sh", "/usr/bin/bash"} {
			want := m.run(sh(script, "sh", "p q"), nil, shell)
			last := len(want) - 1
			want[last] = append(want[last], "X", "Y")
			if diff := cmp.Diff(want, m.run(sh(c.with(script, "X Y"), "sh", "p q"), nil, shell)); diff != "" {
				t.Errorf("%s\n%s\n-want, +got:\n%s", shell, script, diff)
			}
		}
	}
	if added < 100 {
		t.Errorf("only %d of 120 scripts were understood", added)
	}
}

func FuzzArguments(f *testing.F) {
	for i := 0; i+2 < len(hard); i += 3 {
		f.Add(hard[i], hard[i+1], hard[i+2])
	}
	f.Add("$(NASTY)", "'", "$$(NASTY)")
	f.Add("$", "$(", ")")
	m := newMachine(f)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		args := []string{"--model", a, b, c}
		for _, s := range args {
			// No process can be given a zero byte.
			if strings.ContainsRune(s, 0) {
				t.Skip()
			}
		}
		run := &machine{t: t, dir: m.dir, env: m.env}
		command := Command{Args: args}
		whole := make([]string, len(args))
		for i := range args {
			whole[i] = expand(args[i], m.env)
		}
		if leader, err := Leader(command, ray); err == nil {
			want := join([]string{"vllm", "serve"}, whole)
			if !has(args, backend) {
				want = append(want, backends...)
			}
			for _, shell := range []string{"/bin/sh", "/usr/bin/bash"} {
				if diff := cmp.Diff([][]string{headCall, want}, run.run(leader, nil, shell)); diff != "" {
					t.Errorf("%q under %s: -want, +got:\n%s", args, shell, diff)
				}
			}
		}
		if leader, err := Leader(command, vllm); err == nil {
			if diff := cmp.Diff(args, leader.Args[:len(args)]); diff != "" {
				t.Errorf("%q: -want, +got:\n%s", args, diff)
			}
		}
	})
}

// FuzzScript asks the shells whether a script that arguments were added to is
// still one. It runs none of them.
func FuzzScript(f *testing.F) {
	for _, s := range []string{"vllm serve M", "a && vllm serve 'M' # x", "a; vllm serve \"$X\" \\\n b", "if a; then vllm serve M; fi", "vllm serve $(a) ${b}", "--rc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		c, ok := lastCommand(script)
		if !ok || strings.ContainsRune(script, 0) {
			return
		}
		for _, shell := range []string{"/bin/sh", "/usr/bin/bash"} {
			if !exists(shell) || exec.Command(shell, "-n", "-c", script).Run() != nil {
				continue
			}
			for _, more := range []string{c.with(script, "--x y"), c.withPort(script, "8200")} {
				if err := exec.Command(shell, "-n", "-c", more).Run(); err != nil {
					t.Errorf("%s: %q became %q, which is no script: %v", shell, script, more, err)
				}
			}
		}
	})
}
