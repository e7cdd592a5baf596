package launch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// Flags of vLLM's data parallelism, by their long names, with the short ones (vllm/engine/arg_utils.py).
var (
	dataParallelSize      = []string{"--data-parallel-size", "-dp"}
	dataParallelLocal     = []string{"--data-parallel-size-local", "-dpl"}
	dataParallelStartRank = []string{"--data-parallel-start-rank", "-dpr"}
	dataParallelAddress   = []string{"--data-parallel-address", "-dpa"}
	dataParallelBackend   = []string{"--data-parallel-backend", "-dpb"}
)

// notDataParallel are flags with which vLLM would divide its ranks, or requests, in another way.
var notDataParallel = []string{
	"--data-parallel-rank", "-dpn", "--data-parallel-start-rank", "-dpr", "--data-parallel-external-lb", "-dpe",
	"--data-parallel-hybrid-lb", "-dph", "--data-parallel-multi-port-external-lb", "-dpm", "--nnodes", "-n", "--node-rank", "-r",
}

var (
	errRanksOfScript = errors.New("launcher VLLMDataParallel needs the number of ranks of each node, which it cannot find in this script: make the engine's command the script's last line, or run the engine without a shell")
	errNoRanks       = errors.New("launcher VLLMDataParallel needs --data-parallel-size-local: how many ranks run on each node, which is its GPUs divided by --tensor-parallel-size")
	errHeadless      = errors.New("the leader serves requests, so it cannot have --headless: leave it out, launcher VLLMDataParallel adds it on workers")
	errAPIServers    = errors.New("workers are --headless, so they cannot have --api-server-count: move it to leaderTemplate")
)

// vllmDataParallel adds the flags of vLLM's data-parallel ranks on several nodes. Each node has as
// many, the leader's come first, and the leader serves requests for all of them.
func (l Line) vllmDataParallel(leader bool, nodes int32) (Command, error) {
	local, err := l.ranks(nodes)
	switch words := l.engineWords(); {
	case err != nil:
		return Command{}, err
	case leader && has(words, "--headless"):
		return Command{}, errHeadless
	}
	flags := []flag{
		{names: dataParallelSize, value: strconv.Itoa(local * int(nodes))},
		{names: dataParallelLocal, value: strconv.Itoa(local)},
		{names: dataParallelAddress, value: "{LWS_LEADER_ADDRESS}"},
	}
	if !leader {
		if err := l.checkWorker(v1alpha1.LauncherVLLMDataParallel); err != nil {
			return Command{}, err
		}
		flags = append(flags, flag{names: []string{"--headless"}})
	}
	if err := l.add(v1alpha1.LauncherVLLMDataParallel, flags...); err != nil || leader {
		return l.join(), err
	}
	return l.withStartRank(local), nil
}

// withStartRank tells a worker the first of its ranks. Only a shell can multiply. Kubernetes leaves
// $((...)) as it is, because that is no variable's name (third_party/forked/golang/expansion/expand.go).
func (l Line) withStartRank(local int) Command {
	rank := fmt.Sprintf(`%s "$((LWS_WORKER_INDEX * %d))"`, dataParallelStartRank[0], local)
	if l.script > 0 {
		// The flags before were added there, so there is a last command.
		last, _ := l.lastCommand()
		l.setScript(last.with(l.argv[l.script], rank))
		return l.join()
	}
	argv := l.afterEntrypoint()
	return Command{Command: []string{"/bin/sh", "-c"}, Args: slices.Concat([]string{`exec "$@" ` + rank, "sh"}, argv)}
}

// RanksDiffer returns an error if a leader and a worker of launcher VLLMDataParallel, whose commands are
// right for themselves, would count different ranks on each node. vLLM would wait for the others for ever.
func RanksDiffer(leader, worker Command, nodes int32) error {
	there, err := Parse(leader).ranks(nodes)
	if err != nil {
		return err
	}
	here, err := Parse(worker).ranks(nodes)
	if err != nil || here == there {
		return err
	}
	return fmt.Errorf("each node has as many data-parallel ranks, and workers have %d here while the leader has %d in leaderTemplate: set the same %s in both", here, there, dataParallelLocal[0])
}

// ranks returns how many ranks run on each node.
func (l Line) ranks(nodes int32) (int, error) {
	if l.Engine() == EngineSGLang {
		return 0, wrongLauncher(EngineSGLang, v1alpha1.LauncherVLLMDataParallel, v1alpha1.LauncherSGLang)
	}
	words := l.engineWords()
	if l.script > 0 && l.words() == nil {
		return 0, errRanksOfScript
	}
	for _, name := range notDataParallel {
		if has(words, name) {
			return 0, fmt.Errorf("launcher VLLMDataParallel divides the ranks among the nodes and its leader serves all of them, which contradicts %s: leave the flag out, or set another launcher", name)
		}
	}
	if valueOf(words, dataParallelBackend...) == "ray" {
		return 0, fmt.Errorf("launcher VLLMDataParallel starts no Ray cluster, which an engine with %s ray needs: leave the flag out", dataParallelBackend[0])
	}
	local, err := count(words, dataParallelLocal)
	if err != nil {
		return 0, err
	}
	all, err := count(words, dataParallelSize)
	switch {
	case err != nil:
		return 0, err
	case local == 0 && all == 0:
		return 0, errNoRanks
	case local == 0 && all%int(nodes) != 0:
		return 0, fmt.Errorf("%s %d cannot be divided among %d nodes: set it to a multiple", dataParallelSize[0], all, nodes)
	case local == 0:
		return all / int(nodes), nil
	case all != 0 && all != local*int(nodes):
		return 0, fmt.Errorf("%s %d contradicts %s %d on %d nodes, which is %d: leave it out, launcher VLLMDataParallel sets it",
			dataParallelSize[0], all, dataParallelLocal[0], local, nodes, local*int(nodes))
	}
	return local, nil
}

// maxRanks is the most ranks of a node, and of all. It is far above what vLLM runs.
const maxRanks = 1 << 16

// count returns the number that a flag has, or 0 without the flag.
func count(words, names []string) (int, error) {
	if !has(words, names...) {
		return 0, nil
	}
	text := valueOf(words, names...)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxRanks {
		return 0, fmt.Errorf("%s %s has to be a number from 1 to %d, because launcher VLLMDataParallel counts the ranks of each node", names[0], strings.TrimSpace(text), maxRanks)
	}
	return n, nil
}
