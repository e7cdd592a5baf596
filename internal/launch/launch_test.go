package launch

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

var (
	ray    = Options{Launcher: v1alpha1.LauncherRay, RayPort: 6379, Port: 8000}
	vllm   = Options{Launcher: v1alpha1.LauncherVLLM, Port: 8000}
	sglang = Options{Launcher: v1alpha1.LauncherSGLang, Port: 8000}
	dp     = Options{Launcher: v1alpha1.LauncherVLLMDataParallel, Nodes: 2, Port: 8000}
	none   = Options{Launcher: v1alpha1.LauncherNone, Port: 8000}
)

func moved(o Options) Options {
	o.Port, o.MovePort = 8200, true
	return o
}

// lastCommand is that of a shell with a script. A script that starts with a dash is an option of the shell instead.
func lastCommand(script string) (simpleCommand, bool) {
	return Parse(sh(script)).lastCommand()
}

func sh(script string, args ...string) Command {
	return Command{Command: []string{"/bin/sh", "-c"}, Args: append([]string{script}, args...)}
}

func TestLaunch(t *testing.T) {
	const join = "ray start --address=$LWS_LEADER_ADDRESS:6379 --block"
	nodes := []string{"--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)"}
	dist := []string{"--dist-init-addr", "$(LWS_LEADER_ADDRESS):20000", "--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(LWS_WORKER_INDEX)"}
	with := func(words []string, more ...string) []string { return append(append([]string{}, words...), more...) }
	cases := map[string]struct {
		reason         string
		command        Command
		options        Options
		leader, worker Command
	}{
		"DataParallel": {
			reason:  "Each node runs as many ranks. A shell computes the first of a worker, and gets all else as arguments.",
			command: Command{Args: []string{"--model", "M", "--name", "$(NAME) it's", "--data-parallel-size-local=8"}},
			options: dp,
			leader:  Command{Args: []string{"--model", "M", "--name", "$(NAME) it's", "--data-parallel-size-local=8", "--data-parallel-size", "16", "--data-parallel-address", "$(LWS_LEADER_ADDRESS)"}},
			worker: sh(`exec "$@" --data-parallel-start-rank "$((LWS_WORKER_INDEX * 8))"`, "sh", "vllm", "serve", "--model", "M", "--name", "$(NAME) it's", "--data-parallel-size-local=8",
				"--data-parallel-size", "16", "--data-parallel-address", "$(LWS_LEADER_ADDRESS)", "--headless"),
		},
		"DataParallelOfAll": {
			reason:  "The ranks of a node follow from all ranks, by the short name too.",
			command: Command{Command: []string{"nice", "-n", "5", "vllm", "serve"}, Args: []string{"M", "-dp", "4"}},
			options: dp,
			leader:  Command{Command: []string{"nice", "-n", "5", "vllm", "serve"}, Args: []string{"M", "-dp", "4", "--data-parallel-size-local", "2", "--data-parallel-address", "$(LWS_LEADER_ADDRESS)"}},
			worker: sh(`exec "$@" --data-parallel-start-rank "$((LWS_WORKER_INDEX * 2))"`, "sh", "nice", "-n", "5", "vllm", "serve", "M", "-dp", "4",
				"--data-parallel-size-local", "2", "--data-parallel-address", "$(LWS_LEADER_ADDRESS)", "--headless"),
		},
		"DataParallelServe": {
			reason:  "The image's entrypoint is vllm, without serve.",
			command: Command{Args: []string{"serve", "M", "-dpl=2"}},
			options: dp,
			leader:  Command{Args: []string{"serve", "M", "-dpl=2", "--data-parallel-size", "4", "--data-parallel-address", "$(LWS_LEADER_ADDRESS)"}},
			worker: sh(`exec "$@" --data-parallel-start-rank "$((LWS_WORKER_INDEX * 2))"`, "sh", "vllm", "serve", "M", "-dpl=2",
				"--data-parallel-size", "4", "--data-parallel-address", "$(LWS_LEADER_ADDRESS)", "--headless"),
		},
		"DataParallelTwice": {
			reason:  "vLLM takes the last value of a flag, by whichever name.",
			command: Command{Args: []string{"--data-parallel-size", "16", "-dp", "8"}},
			options: dp,
			leader:  Command{Args: []string{"--data-parallel-size", "16", "-dp", "8", "--data-parallel-size-local", "4", "--data-parallel-address", "$(LWS_LEADER_ADDRESS)"}},
			worker: sh(`exec "$@" --data-parallel-start-rank "$((LWS_WORKER_INDEX * 4))"`, "sh", "vllm", "serve", "--data-parallel-size", "16", "-dp", "8",
				"--data-parallel-size-local", "4", "--data-parallel-address", "$(LWS_LEADER_ADDRESS)", "--headless"),
		},
		"ValueLikeShell": {
			reason:  "The value of a flag is no shell.",
			command: Command{Args: []string{"--tokenizer", "/m/bash", "-dcp", "8"}},
			options: vllm,
			leader:  Command{Args: with([]string{"--tokenizer", "/m/bash", "-dcp", "8"}, nodes...)},
			worker:  Command{Args: with(with([]string{"--tokenizer", "/m/bash", "-dcp", "8"}, nodes...), "--headless")},
		},
		"ShellWithArguments": {
			reason:  "A script may pass its arguments to the engine.",
			command: Command{Args: []string{"tini", "--", "bash", "-c", `exec vllm serve M "$@"`, "--"}},
			options: vllm,
			leader:  Command{Args: with([]string{"tini", "--", "bash", "-c", `exec vllm serve M "$@"`, "--"}, nodes...)},
			worker:  Command{Args: with(with([]string{"tini", "--", "bash", "-c", `exec vllm serve M "$@"`, "--"}, nodes...), "--headless")},
		},
		"ShellWithUnquotedArguments": {
			reason:  "A script passes them on without quotes, too.",
			command: Command{Args: []string{"tini", "--", "bash", "-c", "exec vllm serve M ${@}", "--"}},
			options: vllm,
			leader:  Command{Args: with([]string{"tini", "--", "bash", "-c", "exec vllm serve M ${@}", "--"}, nodes...)},
			worker:  Command{Args: with(with([]string{"tini", "--", "bash", "-c", "exec vllm serve M ${@}", "--"}, nodes...), "--headless")},
		},
		"DataParallelScript": {
			reason:  "A script keeps its shell.",
			command: sh("prepare && vllm serve M -dpl 2 # end"),
			options: dp,
			leader:  sh("prepare && vllm serve M -dpl 2 --data-parallel-size 4 --data-parallel-address $LWS_LEADER_ADDRESS # end"),
			worker:  sh(`prepare && vllm serve M -dpl 2 --data-parallel-size 4 --data-parallel-address $LWS_LEADER_ADDRESS --headless --data-parallel-start-rank "$((LWS_WORKER_INDEX * 2))" # end`),
		},
		"RayArgsOnly": {
			reason:  "Without a command, args are those of vLLM's server.",
			command: Command{Args: []string{"--model", "deepseek-ai/DeepSeek-R1", "--tensor-parallel-size", "32"}},
			options: ray,
			leader:  sh("ray start --head --port=6379 && vllm serve --model deepseek-ai/DeepSeek-R1 --tensor-parallel-size 32 --distributed-executor-backend ray"),
			worker:  sh(join),
		},
		"RayArgsWithProgram": {
			reason:  "Args that start with vllm serve get no second one.",
			command: Command{Args: []string{"vllm", "serve", "deepseek-ai/DeepSeek-R1"}},
			options: ray,
			leader:  sh("ray start --head --port=6379 && vllm serve deepseek-ai/DeepSeek-R1 --distributed-executor-backend ray"),
			worker:  sh(join),
		},
		"RayArgsWithServe": {
			reason:  "An image whose entrypoint is vllm has serve in its args.",
			command: Command{Args: []string{"serve", "M"}},
			options: ray,
			leader:  sh("ray start --head --port=6379 && vllm serve M --distributed-executor-backend ray"),
			worker:  sh(join),
		},
		"RayModelCalledPython": {
			reason:  "A path to a model is no program.",
			command: Command{Args: []string{"/models/python3"}},
			options: ray,
			leader:  sh("ray start --head --port=6379 && vllm serve /models/python3 --distributed-executor-backend ray"),
			worker:  sh(join),
		},
		"RayPython": {
			reason:  "The module that is vLLM's older server works too.",
			command: Command{Command: []string{"python3", "-m", "vllm.entrypoints.openai.api_server"}, Args: []string{"--model", "M"}},
			options: ray,
			leader:  sh("ray start --head --port=6379 && python3 -m vllm.entrypoints.openai.api_server --model M --distributed-executor-backend ray"),
			worker:  sh(join),
		},
		"RayQuotes": {
			reason:  "Quotes, JSON, blanks, newlines and nothing at all are quoted.",
			command: Command{Args: []string{"--a", `{"k":"it's"}`, "--b", "x y\nz", "", "$HOME"}},
			options: ray,
			leader:  sh(`ray start --head --port=6379 && vllm serve --a '{"k":"it'\''s"}' --b 'x y` + "\n" + `z' '' '$HOME' --distributed-executor-backend ray`),
			worker:  sh(join),
		},
		"RayVariable": {
			reason:  "What Kubernetes replaces is handed over as an argument of the shell.",
			command: Command{Args: []string{"--model", "$(MODEL)"}},
			options: ray,
			leader:  sh(`ray start --head --port=6379 && "$@" --distributed-executor-backend ray`, "sh", "vllm", "serve", "--model", "$(MODEL)"),
			worker:  sh(join),
		},
		"RayBackendGiven": {
			reason:  "A backend is not repeated, however it is written.",
			command: Command{Args: []string{"--model", "M", "--distributed_executor_backend=ray"}},
			options: ray,
			leader:  sh("ray start --head --port=6379 && vllm serve --model M --distributed_executor_backend=ray"),
			worker:  sh(join),
		},
		"RayOtherPort": {
			reason:  "The platform may move Ray.",
			command: Command{Args: []string{"--model", "M"}},
			options: Options{Launcher: v1alpha1.LauncherRay, RayPort: 6380},
			leader:  sh("ray start --head --port=6380 && vllm serve --model M --distributed-executor-backend ray"),
			worker:  sh("ray start --address=$LWS_LEADER_ADDRESS:6380 --block"),
		},
		"RayScript": {
			reason:  "A script that is the engine alone reads like any other command.",
			command: sh("vllm serve M --max-model-len $LEN"),
			options: ray,
			leader:  sh("ray start --head --port=6379 && vllm serve M --max-model-len $LEN --distributed-executor-backend ray"),
			worker:  sh(join),
		},
		"RayLongScript": {
			reason:  "A longer script is kept, with its shell and its own arguments.",
			command: Command{Command: []string{"bash", "-lc"}, Args: []string{"set -e\nexport A=$1\nexec vllm serve M", "bash", "one"}},
			options: ray,
			leader:  Command{Command: []string{"bash", "-lc"}, Args: []string{"ray start --head --port=6379 || exit 1\nset -e\nexport A=$1\nexec vllm serve M --distributed-executor-backend ray", "bash", "one"}},
			worker:  Command{Command: []string{"bash", "-lc"}, Args: []string{join}},
		},
		"RayUnclearScript": {
			reason:  "A script whose end is not clear is kept as it is: vLLM picks Ray by itself.",
			command: sh("if true; then vllm serve M; fi"),
			options: ray,
			leader:  sh("ray start --head --port=6379 || exit 1\nif true; then vllm serve M; fi"),
			worker:  sh(join),
		},
		"RayScriptInArgs": {
			reason:  "A shell may be in args as well.",
			command: Command{Args: []string{"bash", "-o", "pipefail", "-ec", "vllm serve M"}},
			options: ray,
			leader:  Command{Command: []string{"bash", "-o", "pipefail", "-ec"}, Args: []string{"ray start --head --port=6379 && vllm serve M --distributed-executor-backend ray"}},
			worker:  Command{Command: []string{"bash", "-o", "pipefail", "-ec"}, Args: []string{join}},
		},
		"RayPortMoved": {
			reason:  "The leader of decode pods moves out of the sidecar's way.",
			command: Command{Args: []string{"--model", "M", "--port=8000"}},
			options: moved(ray),
			leader:  sh("ray start --head --port=6379 && vllm serve --model M --port=8200 --distributed-executor-backend ray"),
			worker:  sh(join),
		},
		"VLLMArgsOnly": {
			reason:  "vLLM needs no shell, and so Kubernetes fills in the variables.",
			command: Command{Args: []string{"--model", "$(MODEL)"}},
			options: vllm,
			leader:  Command{Args: with([]string{"--model", "$(MODEL)"}, nodes...)},
			worker:  Command{Args: with([]string{"--model", "$(MODEL)"}, with(nodes, "--headless")...)},
		},
		"VLLMGiven": {
			reason:  "Flags that are there are not repeated.",
			command: Command{Command: []string{"vllm", "serve"}, Args: []string{"M", "--nnodes", "2", "--node_rank=$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)"}},
			options: vllm,
			leader:  Command{Command: []string{"vllm", "serve"}, Args: []string{"M", "--nnodes", "2", "--node_rank=$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)"}},
			worker:  Command{Command: []string{"vllm", "serve"}, Args: []string{"M", "--nnodes", "2", "--node_rank=$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)", "--headless"}},
		},
		"VLLMScript": {
			reason:  "In a script the shell fills in the variables.",
			command: sh("export A=b; vllm serve M # the engine\n"),
			options: moved(vllm),
			leader:  sh("export A=b; vllm serve M --port 8200 --nnodes $LWS_GROUP_SIZE --node-rank $LWS_WORKER_INDEX --master-addr $LWS_LEADER_ADDRESS # the engine\n"),
			worker:  sh("export A=b; vllm serve M --nnodes $LWS_GROUP_SIZE --node-rank $LWS_WORKER_INDEX --master-addr $LWS_LEADER_ADDRESS --headless # the engine\n"),
		},
		"SGLang": {
			reason:  "SGLang listens on localhost, and elsewhere, unless it is told.",
			command: Command{Command: []string{"python3", "-m", "sglang.launch_server"}, Args: []string{"--model-path", "M"}},
			options: sglang,
			leader:  Command{Command: []string{"python3", "-m", "sglang.launch_server"}, Args: with([]string{"--model-path", "M"}, with(dist, "--host", "0.0.0.0", "--port", "8000")...)},
			worker:  Command{Command: []string{"python3", "-m", "sglang.launch_server"}, Args: with([]string{"--model-path", "M"}, dist...)},
		},
		"None": {
			reason:  "The user's own commands are not touched.",
			command: Command{Command: []string{"/start.sh"}, Args: []string{"$(LWS_WORKER_INDEX)"}},
			options: none,
			leader:  Command{Command: []string{"/start.sh"}, Args: []string{"$(LWS_WORKER_INDEX)"}},
			worker:  Command{Command: []string{"/start.sh"}, Args: []string{"$(LWS_WORKER_INDEX)"}},
		},
		"NonePortMoved": {
			reason:  "A visible port moves even in a script that is not understood.",
			command: sh("if true; then\nvllm serve M --port 8000\nfi"),
			options: moved(none),
			leader:  sh("if true; then\nvllm serve M --port 8200\nfi"),
			worker:  sh("if true; then\nvllm serve M --port 8000\nfi"),
		},
		"PortOfTheLastCommand": {
			reason:  "Only the engine's own port moves, not that of a program before it.",
			command: sh(`wait-for --port 8000 && vllm serve M --port "$PORT"`),
			options: moved(none),
			leader:  sh(`wait-for --port 8000 && vllm serve M --port 8200`),
			worker:  sh(`wait-for --port 8000 && vllm serve M --port "$PORT"`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for who, f := range map[string]func(Command, Options) (Command, error){"leader": Leader, "worker": Worker} {
				want := map[string]Command{"leader": tc.leader, "worker": tc.worker}[who]
				got, err := f(tc.command, tc.options)
				if err != nil {
					t.Fatalf("%s\n%s: %v", tc.reason, who, err)
				}
				if diff := cmp.Diff(text(want), text(got)); diff != "" {
					t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, who, diff)
				}
			}
		})
	}
}

// text shows where command ends and args start; an empty list is no list.
func text(c Command) []string {
	return append(append(append([]string{}, c.Command...), "|"), c.Args...)
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		reason  string
		command Command
		options Options
		want    string
	}{
		"DataParallelWithoutRanks": {
			reason:  "How many ranks fit on a node depends on the model.",
			command: Command{Args: []string{"--model", "M"}}, options: dp, want: "needs --data-parallel-size-local: how many ranks run on each node",
		},
		"DataParallelContradicts": {
			reason:  "vLLM would wait for ranks that never start.",
			command: Command{Args: []string{"-dpl=8", "-dp=8"}}, options: dp, want: "--data-parallel-size 8 contradicts --data-parallel-size-local 8 on 2 nodes, which is 16",
		},
		"DataParallelOdd": {
			reason:  "Each node has as many.",
			command: Command{Args: []string{"-dp=3"}}, options: dp, want: "--data-parallel-size 3 cannot be divided among 2 nodes",
		},
		"DataParallelVariable": {
			reason:  "The value of a variable is not known.",
			command: Command{Args: []string{"-dpl", "$(RANKS)"}}, options: dp, want: "--data-parallel-size-local $(RANKS) has to be a number from 1 to 65536",
		},
		"DataParallelOtherBalancer": {
			reason:  "The leader serves all ranks.",
			command: Command{Args: []string{"-dpl=8", "--data_parallel_hybrid_lb"}}, options: dp, want: "contradicts --data-parallel-hybrid-lb",
		},
		"DataParallelRay": {
			reason:  "There is no Ray cluster.",
			command: Command{Args: []string{"-dpl=8", "--data-parallel-backend=ray"}}, options: dp, want: "--data-parallel-backend ray needs: leave the flag out",
		},
		"DataParallelSGLang": {
			reason:  "SGLang has flags of its own.",
			command: Command{Command: []string{"sglang", "serve"}}, options: dp, want: "set launcher: SGLang",
		},
		"DataParallelHeadless": {
			reason:  "Somebody has to serve.",
			command: Command{Args: []string{"-dpl=8", "--headless"}}, options: dp, want: "the leader serves requests",
		},
		"DataParallelHiddenInScript": {
			reason:  "What runs last is not known.",
			command: sh("if true; then vllm serve M -dpl 8; fi"), options: dp, want: "make the engine's command the script's last line",
		},
		"VLLMShellBehindTini": {
			reason:  "What follows the script are its arguments, and no flags of the engine.",
			command: Command{Command: []string{"tini", "--", "bash", "-c"}, Args: []string{"exec vllm serve M -tp 16"}}, options: vllm,
			want: "start the shell first",
		},
		"SGLangShellBehindEnv": {
			reason:  "The same, for the other engine.",
			command: Command{Command: []string{"env", "X=1", "sh", "-ec"}, Args: []string{"sglang serve M"}}, options: sglang,
			want: "start the shell first",
		},
		"RayWithMP": {
			reason:  "Workers would wait in a Ray cluster that the engine does not use.",
			command: Command{Args: []string{"--distributed-executor-backend", "mp"}},
			options: ray,
			want:    "set launcher: VLLM",
		},
		"RayWithMPInAScript": {
			reason:  "The same, in a script.",
			command: sh("if true; then vllm serve M --distributed-executor-backend=mp; fi"),
			options: ray,
			want:    "set launcher: VLLM",
		},
		"RayTwice": {
			reason:  "A script that starts Ray itself must not get a second one.",
			command: sh("ray  start --head; vllm serve M"),
			options: ray,
			want:    "set launcher: None",
		},
		"RayOfTheImage": {
			reason:  "The script of vLLM's images starts Ray as well.",
			command: sh("bash /vllm-workspace/examples/online_serving/multi-node-serving.sh leader --ray_cluster_size=2; vllm serve M"),
			options: ray,
			want:    "set launcher: None",
		},
		"RayWithoutCommand": {
			reason:  "An unknown entrypoint cannot be put behind Ray.",
			options: ray,
			want:    "set command or args",
		},
		"RayWithSGLang": {
			reason:  "SGLang does not know vLLM's flag.",
			command: Command{Command: []string{"python3", "-m", "sglang.launch_server"}},
			options: ray,
			want:    "set launcher: SGLang",
		},
		"VLLMWithRay": {
			reason:  "There is no Ray cluster.",
			command: Command{Args: []string{"--distributed-executor-backend=ray"}},
			options: vllm,
			want:    "set launcher: Ray",
		},
		"VLLMWithHeadless": {
			reason:  "The leader has to answer.",
			command: Command{Args: []string{"--headless"}},
			options: vllm,
			want:    "launcher VLLM adds it on workers",
		},
		"VLLMWithSGLang": {
			reason:  "Flags differ from engine to engine.",
			command: sh("python -m sglang.launch_server"),
			options: vllm,
			want:    "set launcher: SGLang",
		},
		"SGLangWithVLLM": {
			reason:  "Flags differ from engine to engine.",
			command: Command{Args: []string{"vllm", "serve", "M"}},
			options: sglang,
			want:    "set launcher: VLLM",
		},
		"VLLMUnclearScript": {
			reason:  "Flags in the wrong place would start every pod on its own.",
			command: sh("vllm serve M | tee log"),
			options: vllm,
			want:    "make the engine's command the script's last line",
		},
		"PortUnclearScript": {
			reason:  "Two ports, and no way to know whose they are.",
			command: sh("if a; then vllm serve M --port 8000; else vllm serve M --port 8000; fi"),
			options: moved(none),
			want:    "write --port with a number once",
		},
		"PortOfAnUnknownProgram": {
			reason:  "A program that is not known may not take --port.",
			command: Command{Command: []string{"/start.sh"}},
			options: moved(none),
			want:    "takes its port: add --port",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Leader(tc.command, tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestLastCommand(t *testing.T) {
	cases := map[string]struct {
		reason string
		script string
		want   string // The script with X at the end of its engine's command, or "".
	}{
		"Alone":          {"The engine alone.", "vllm serve M", "vllm serve M X"},
		"Exec":           {"exec does not change what is started.", "exec vllm serve M", "exec vllm serve M X"},
		"Assignment":     {"Nor do assignments.", `A=b C="d e" vllm serve M`, `A=b C="d e" vllm serve M X`},
		"Path":           {"Nor a path.", "/usr/local/bin/vllm serve M", "/usr/local/bin/vllm serve M X"},
		"Lines":          {"Arguments over several lines.", "vllm serve M \\\n  --a b \\\n", "vllm serve M \\\n  --a b X \\\n"},
		"Trailing":       {"Blanks, semicolons and comments at the end.", "vllm serve M ; # end", "vllm serve M X ; # end"},
		"HashInAWord":    {"A # inside a word starts no comment.", "vllm serve a#b", "vllm serve a#b X"},
		"Quotes":         {"Quotes, with an operator in them.", `vllm serve 'a;b' "c|d\"" e\&f`, `vllm serve 'a;b' "c|d\"" e\&f X`},
		"Variables":      {"Variables in all forms.", `vllm serve $M "${A}" $(nproc) "$@"`, `vllm serve $M "${A}" $(nproc) "$@" X`},
		"NotASCII":       {"Letters of more than one byte.", "vllm serve ü", "vllm serve ü X"},
		"Before":         {"Commands before it, with pipes and redirections.", "ls | sort > f || true\nvllm serve M", "ls | sort > f || true\nvllm serve M X"},
		"Echo":           {"Another program may name an engine.", "echo vllm serve M", ""},
		"Pipe":           {"Behind a pipe is another program.", "vllm serve M | tee log", ""},
		"IntoAPipe":      {"The engine in a pipe.", "cat x | vllm serve M", ""},
		"Or":             {"It may not run at all.", "vllm serve A || vllm serve M", ""},
		"Redirected":     {"A redirection may be anywhere in a command.", "vllm serve M 2>&1", ""},
		"Background":     {"wait is the last command.", "vllm serve M & wait", ""},
		"Subshell":       {"In brackets.", "(vllm serve M)", ""},
		"Block":          {"In braces.", "{ vllm serve M; }", ""},
		"If":             {"In a condition.", "if a; then vllm serve M; fi", ""},
		"HereDocument":   {"A here-document looks like commands.", "cat <<E\nvllm serve M\nE", ""},
		"Backquotes":     {"Backquotes may hold anything.", "vllm serve `echo M`", ""},
		"Nested":         {"Quotes in a substitution.", `vllm serve "$(echo ")")"`, ""},
		"OpenQuote":      {"No script at all.", "vllm serve 'M", ""},
		"OpenExpansion":  {"No script at all.", "vllm serve ${M", ""},
		"EndsInSlash":    {"A backslash at the very end would take the blank.", `vllm serve M\`, ""},
		"Dollar":         {"The quotes of bash alone.", `vllm serve $'a'`, ""},
		"Empty":          {"Nothing.", "", ""},
		"CommentedOut":   {"Only a comment.", "# vllm serve M", ""},
		"AnotherProgram": {"Not an engine.", "./start.sh", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if c, ok := lastCommand(tc.script); ok {
				got = c.with(tc.script, "X")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestScriptsAreBounded proves that no script takes much memory to read, and that one above the limit is not read. A command line reads its
// script once.
func TestScriptsAreBounded(t *testing.T) {
	const most = 8 << 20
	for _, part := range []string{"(", "{ ", "$(", "${a:-", "`", "if ", "a|", "a && ", "a;", "a\n", "a ", "'a'", "\"\\\\\"", "<<a ", "a>b ", "# "} {
		for _, script := range []string{strings.Repeat(part, maxScript/len(part)), "vllm serve M " + strings.Repeat(part, maxScript/len(part)-20)} {
			var before, after runtime.MemStats
			l := Parse(sh(script))
			runtime.ReadMemStats(&before)
			for range 100 {
				_, _ = l.engineWords(), l.Engine()
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > most {
				t.Errorf("%q takes %d bytes, want at most %d", script[:40], took, most)
			}
		}
	}
	script := "vllm serve" + strings.Repeat(" M", maxScript/2)
	if _, ok := lastCommand(script[:maxScript]); !ok {
		t.Error("a script at the limit is not read")
	}
	if _, ok := lastCommand(script); ok {
		t.Error("a script above the limit is read")
	}
}

// TestPortInScript shows that the port moves in a script as it moves in the same words without a shell.
func TestPortInScript(t *testing.T) {
	lists := [][]string{{"vllm", "serve", "M"}}
	for from := 0; len(lists[from]) < 3+5; from++ {
		for _, w := range []string{"--port", "--port=1", "--portly", "23"} {
			lists = append(lists, append(slices.Clone(lists[from]), w))
		}
	}
	for _, words := range lists {
		moved := Parse(Command{Command: words})
		if err := moved.movePort(8200); err != nil {
			t.Fatal(err)
		}
		const before, after = "A=1\n exec ", " # --port 7\n"
		script := before + strings.Join(words, " ") + after
		want := before + strings.Join(moved.argv, " ") + after
		last, _ := lastCommand(script)
		if got := last.withPort(script, "8200"); got != want {
			t.Errorf("%q:\nwant %q\ngot  %q", script, want, got)
		}
	}
}

func TestPort(t *testing.T) {
	cases := map[string]struct {
		reason  string
		command Command
		want    int32
	}{
		"Apart":    {"In a word of its own.", Command{Args: []string{"--port", "8001"}}, 8001},
		"Joined":   {"With =.", Command{Args: []string{"--port=8001"}}, 8001},
		"Last":     {"The last one wins.", Command{Args: []string{"--port=1", "--port", "2"}}, 2},
		"Script":   {"In the engine's command, and not in another.", sh("x --port 1; vllm serve M --port 2"), 2},
		"Beside":   {"Another command has one, and the engine none.", sh("metrics.sh --port 9100; vllm serve M"), 0},
		"Comment":  {"A comment is no argument.", sh("vllm serve M # --port 9000"), 0},
		"Argument": {"A variable may bring it.", sh("ARGS='--port 9000'; vllm serve M $ARGS"), 9000},
		"Unclear":  {"Once in a script that is not understood.", sh("if a; then b --port=8001; fi"), 8001},
		"Twice":    {"Not twice.", sh("if a; then b --port=8001; else c --port 1; fi"), 0},
		"Ray":      {"That of the Ray head is none.", sh("ray start --head \\\n --port=6380 && vllm serve M"), 0},
		"Address":  {"Nor behind a command that tells the address.", sh("ray start --head --node-ip-address=$(hostname -I | awk '{print $1}') --port=6380 && vllm serve M"), 0},
		"Quoted":   {"With backquotes, too.", sh("ray start --head --node-ip-address=`hostname -I | cut -d' ' -f1` --port=6380 && vllm serve M"), 0},
		"Behind":   {"With another port behind it, it is not clear either.", sh("ray start --head --port 6380; metrics.sh --port 9100; serve.sh"), 0},
		"AfterRay": {"A Ray head without a port leaves one.", sh("ray start --head; serve.sh --port 8001"), 8001},
		"Absent":   {"Nowhere.", Command{Args: []string{"--model", "M"}}, 0},
		"NotOne":   {"No number.", Command{Args: []string{"--port", "$(PORT)"}}, 0},
		"TooHigh":  {"No port.", Command{Args: []string{"--port", "70000"}}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Parse(tc.command).Port(nil, true); got != tc.want {
				t.Errorf("%s\nwant %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

func TestMistyped(t *testing.T) {
	cases := map[string]struct {
		reason string
		arg    string
		want   []string
	}{
		"FlagAndValue": {"A flag with its value.", "--model M", []string{"--model", "M"}},
		"JSON":         {"And with quotes.", `--kv-transfer-config '{"a": "b"}'`, []string{"--kv-transfer-config", `{"a": "b"}`}},
		"Short":        {"A short flag.", "-tp 8", []string{"-tp", "8"}},
		"CommandLine":  {"All of it in one element.", "vllm serve M --x", []string{"vllm", "serve", "M", "--x"}},
		"QuotedValue":  {"Quotes behind =.", `--x='{"a":1}'`, []string{`--x={"a":1}`}},
		"Quoted":       {"Quotes around all of it.", `'{"a":1}'`, []string{`{"a":1}`}},
		"Joined":       {"Blanks behind = are fine.", `--x={"a": 1}`, nil},
		"Value":        {"So are those in a value.", `{"a": "b c"}`, nil},
		"Negative":     {"A number is no flag.", "-1 2", nil},
		"Text":         {"Quotes inside are fine.", "it's what it's", nil},
		"Flag":         {"A flag alone.", "--enforce-eager", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, mistyped := Mistyped(tc.arg)
			if diff := cmp.Diff(tc.want, got); diff != "" || mistyped != (tc.want != nil) {
				t.Errorf("%s\n%t, -want, +got:\n%s", tc.reason, mistyped, diff)
			}
		})
	}
}

func TestWords(t *testing.T) {
	if got := Words(Command{Command: []string{"vllm"}, Args: []string{"serve"}}); !cmp.Equal(got, []string{"vllm", "serve"}) {
		t.Errorf("want the command's words and then the args', got %q", got)
	}
	if got := Words(sh("vllm serve 'M'")); got != nil {
		t.Errorf("want no words in front of a shell, got %q", got)
	}
}

// TestWorkerRefusals is about commands that only a leader can have.
func TestWorkerRefusals(t *testing.T) {
	const noServers, noModule = "move it to leaderTemplate", "which only vllm serve knows: start vllm serve in place of -m vllm.entrypoints.openai.api_server"
	cases := map[string]struct {
		reason  string
		command Command
		want    string
	}{
		"Servers":   {"vLLM starts no headless worker with API servers.", Command{Command: []string{"vllm", "serve"}, Args: []string{"M", "-dpl=8", "-asc=1"}}, noServers},
		"NoServers": {"A worker has none.", Command{Command: []string{"vllm", "serve"}, Args: []string{"M", "-dpl=8", "--api-server-count", "0"}}, ""},
		"Module":    {"The module has no headless mode.", Command{Command: []string{"python3", "-m", "vllm.entrypoints.openai.api_server"}, Args: []string{"-dpl=8"}}, noModule},
		"Main":      {"This module is the program vllm.", Command{Command: []string{"python3", "-m", "vllm.entrypoints.cli.main", "serve"}, Args: []string{"M", "-dpl=8"}}, ""},
	}
	for name, tc := range cases {
		for launcher, o := range map[string]Options{"VLLM": vllm, "DataParallel": dp} {
			t.Run(name+launcher, func(t *testing.T) {
				if _, err := Leader(tc.command, o); err != nil {
					t.Errorf("the leader is refused: %v", err)
				}
				if _, err := Worker(tc.command, o); (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.want, err)
				}
			})
		}
	}
}

// TestRayPort reads the port of the Ray head that the launcher starts, with and without a script of the user's.
func TestRayPort(t *testing.T) {
	head := Options{Launcher: v1alpha1.LauncherRay, RayPort: 6380}
	for _, c := range []Command{{Args: []string{"--model", "M"}}, {Args: []string{"--model", "$(M)"}}, sh("a && vllm serve M"), sh("a; vllm serve M")} {
		leader, err := Leader(c, head)
		if err != nil {
			t.Fatal(err)
		}
		if got := RayPort(leader); got != 6380 {
			t.Errorf("%q: want 6380, got %d", leader, got)
		}
	}
	for _, c := range []Command{{}, {Args: []string{"--model", "M"}}, sh("ray start --head --port=6380\nvllm serve M")} {
		if got := RayPort(c); got != 0 {
			t.Errorf("%q: want 0, got %d", c, got)
		}
	}
}
