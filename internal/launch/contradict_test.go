package launch

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// on is a launcher of a replica on so many nodes.
func on(o Options, nodes int32) Options {
	o.Nodes = nodes
	return o
}

func TestContradictions(t *testing.T) {
	words := func(s string) Command { return Command{Command: strings.Fields(s)} }
	cases := map[string]struct {
		reason         string
		command        Command
		options        Options
		leader, worker string
	}{
		"SameNumber": {
			reason:  "What is right may be written.",
			command: words("vllm serve M --nnodes 2 --nnodes=4"),
			options: on(vllm, 4),
		},
		"Variables": {
			reason:  "What they are is not known here.",
			command: words("vllm serve M --nnodes $(LWS_GROUP_SIZE) --node-rank $(LWS_WORKER_INDEX)"),
			options: on(vllm, 4),
		},
		"OtherNumber": {
			reason:  "The engine would wait for ever.",
			command: words("vllm serve M --nnodes 4"),
			options: on(vllm, 2),
			leader:  "--nnodes 4 contradicts multinode.nodeCount, which is 2: leave the flag out, launcher VLLM sets it",
			worker:  "--nnodes 4 contradicts multinode.nodeCount, which is 2: leave the flag out, launcher VLLM sets it",
		},
		"Short": {
			reason:  "vLLM takes it short.",
			command: words("vllm serve M -n 4"),
			options: on(vllm, 2),
			leader:  "-n 4 contradicts multinode.nodeCount, which is 2: leave the flag out, launcher VLLM sets it",
			worker:  "-n 4 contradicts multinode.nodeCount, which is 2: leave the flag out, launcher VLLM sets it",
		},
		"InScript": {
			reason:  "A script's last command is the engine's.",
			command: sh("echo hi\nexec vllm serve M --nnodes=4"),
			options: on(vllm, 2),
			leader:  "--nnodes 4 contradicts multinode.nodeCount, which is 2: leave the flag out, launcher VLLM sets it",
			worker:  "--nnodes 4 contradicts multinode.nodeCount, which is 2: leave the flag out, launcher VLLM sets it",
		},
		"NotTheEngines": {
			reason:  "What stands in front of the engine has flags of its own.",
			command: words("nice -n 10 vllm serve M"),
			options: on(vllm, 2),
		},
		"SGLangNotShort": {
			reason:  "SGLang does not take it short.",
			command: words("python3 -m sglang.launch_server -n 10"),
			options: on(sglang, 2),
		},
		"SGLang": {
			reason:  "Or any other number.",
			command: words("python3 -m sglang.launch_server --nnodes 1"),
			options: on(sglang, 2),
			leader:  "--nnodes 1 contradicts multinode.nodeCount, which is 2: leave the flag out, launcher SGLang sets it",
			worker:  "--nnodes 1 contradicts multinode.nodeCount, which is 2: leave the flag out, launcher SGLang sets it",
		},
		"RankOfLeader": {
			reason:  "The leader's is right, and the only worker has the other one.",
			command: words("vllm serve M --node-rank 0"),
			options: on(vllm, 2),
			worker:  "--node-rank 0 cannot be the rank of every worker: their ranks are 1 to 1: leave the flag out, launcher VLLM sets it",
		},
		"RankOfTheWorker": {
			reason:  "With templates of their own both may be written.",
			command: words("vllm serve M -r 1"),
			options: on(vllm, 2),
			leader:  "-r 1 contradicts the leader's rank, which is 0: leave the flag out, launcher VLLM sets it",
		},
		"RankOfWorkers": {
			reason:  "Several cannot have the same.",
			command: words("vllm serve M --node_rank=1"),
			options: on(vllm, 3),
			leader:  "--node-rank 1 contradicts the leader's rank, which is 0: leave the flag out, launcher VLLM sets it",
			worker:  "--node-rank 1 cannot be the rank of every worker: their ranks are 1 to 2: leave the flag out, launcher VLLM sets it",
		},
		"RayNodes": {
			reason:  "Under Ray there is one engine.",
			command: words("vllm serve M --nnodes 2"),
			options: on(ray, 2),
			leader:  "launcher Ray starts one engine, which learns its nodes from Ray and not from --nnodes 2: leave the flag out, or set launcher: VLLM",
			worker:  "launcher Ray starts one engine, which learns its nodes from Ray and not from --nnodes 2: leave the flag out, or set launcher: VLLM",
		},
		"None": {
			reason:  "Without a launcher the user is in charge.",
			command: words("vllm serve M --nnodes 4 --node-rank 7"),
			options: on(none, 2),
		},
		"TensorRT": {
			reason:  "The flags of vLLM are not its own.",
			command: words("tini -- trtllm-serve M --tp_size 16"),
			options: on(vllm, 2),
			leader:  "this command starts TensorRT-LLM, which launcher VLLM does not know: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX",
			worker:  "this command starts TensorRT-LLM, which launcher VLLM does not know: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX",
		},
		"LMDeployArgs": {
			reason:  "Nor behind an entrypoint.",
			command: Command{Args: []string{"lmdeploy", "serve", "api_server", "M"}},
			options: on(ray, 2),
			leader:  "this command starts LMDeploy, which launcher Ray does not know: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX",
			worker:  "this command starts LMDeploy, which launcher Ray does not know: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX",
		},
		"LMDeployModule": {
			reason:  "Nor as a module.",
			command: words("python3 -m lmdeploy serve api_server M"),
			options: on(sglang, 2),
			leader:  "this command starts LMDeploy, which launcher SGLang does not know: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX",
			worker:  "this command starts LMDeploy, which launcher SGLang does not know: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX",
		},
		"TensorRTInScript": {
			reason:  "Nor in a script.",
			command: sh("cd /x && exec trtllm-llmapi-launch trtllm-serve M"),
			options: on(ray, 2),
			leader:  "this command starts TensorRT-LLM, which launcher Ray does not know: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX",
			worker:  "this command starts TensorRT-LLM, which launcher Ray does not know: set launcher: None, and tell leader and workers apart by $LWS_WORKER_INDEX",
		},
		"NotAnEngine": {
			reason:  "A model may be called like an engine.",
			command: words("vllm serve M --served-model-name lmdeploy"),
			options: on(vllm, 2),
		},
		"NotAnEngineInArgs": {
			reason:  "Also where the engine is the image's entrypoint.",
			command: Command{Args: []string{"--served-model-name", "ollama"}},
			options: on(vllm, 2),
		},
		"TensorRTAlone": {
			reason:  "Without a launcher any engine runs.",
			command: words("trtllm-serve M"),
			options: on(none, 2),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			said := func(_ Command, err error) string {
				if err == nil {
					return ""
				}
				return err.Error()
			}
			if diff := cmp.Diff(tc.leader, said(Leader(tc.command, tc.options))); diff != "" {
				t.Errorf("%s\nleader: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.worker, said(Worker(tc.command, tc.options))); diff != "" {
				t.Errorf("%s\nworker: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A flag of a program in front of the engine kept the launcher from adding its own.
func TestFlagsOfOthers(t *testing.T) {
	got, err := Leader(Command{Command: strings.Fields("nice -n 10 vllm serve M")}, on(vllm, 2))
	want := strings.Fields("nice -n 10 vllm serve M --nnodes $(LWS_GROUP_SIZE) --node-rank $(LWS_WORKER_INDEX) --master-addr $(LWS_LEADER_ADDRESS)")
	if diff := cmp.Diff(want, slices.Concat(got.Command, got.Args)); diff != "" || err != nil {
		t.Errorf("-want +got:\n%s (%v)", diff, err)
	}
}

func TestRuns(t *testing.T) {
	cases := map[string]struct {
		reason  string
		command Command
		want    error
	}{
		"Script":     {reason: "the usual", command: sh("vllm serve M")},
		"File":       {reason: "a file to run", command: Command{Command: []string{"bash", "-e", "/start.sh", "-c"}}},
		"Several":    {reason: "options in one word", command: Command{Command: []string{"bash", "-euo", "pipefail", "-c"}, Args: []string{"vllm serve M"}}},
		"Engine":     {reason: "no shell", command: Command{Command: []string{"vllm", "-c"}}},
		"Entrypoint": {reason: "what the image starts may take it", command: Command{Args: []string{"sh", "-c"}}},
		"None":       {reason: "an option without its value", command: Command{Command: []string{"sh", "-c"}}, want: errNoScript},
		"Login":      {reason: "also with others", command: Command{Command: []string{"/bin/bash"}, Args: []string{"-l", "-c"}}, want: errNoScript},
		"Joined":     {reason: "in one word", command: Command{Command: []string{"bash", "-lc"}}, want: errNoScript},
		"Empty":      {reason: "a container that ends at once, for ever", command: Command{Command: []string{"sh", "-c"}, Args: []string{" \n"}}, want: errNoScript},
	}
	for name, tc := range cases {
		if got := CheckCommand(tc.command); got != tc.want { //nolint:errorlint // One of two.
			t.Errorf("%s: %s: want %v, got %v", name, tc.reason, tc.want, got)
		}
	}
}

func TestAlone(t *testing.T) {
	l := Parse(Command{Args: []string{"--model", "M", "--nnodes", "4"}})
	const want = "--nnodes 4 makes the engine wait for more nodes than the 2 of the replica: set multinode.nodeCount to the same number"
	if got := l.WarnWithoutLauncher(2); got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	for _, nodes := range []int32{4, 8} {
		if got := l.WarnWithoutLauncher(nodes); got != "" {
			t.Errorf("%d nodes are enough, got %q", nodes, got)
		}
	}
	if got := Parse(Command{Command: []string{"prog", "-n", "9"}}).WarnWithoutLauncher(1); got != "" {
		t.Errorf("-n of a program that is not vLLM is not known, got %q", got)
	}
}
