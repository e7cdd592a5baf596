package launch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// sglangPort is the leader's port at which the pods of a replica connect under SGLang.
const sglangPort = "20000"

// apiServers are modules that only serve requests.
var apiServers = []string{"vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"}

// checkWorker refuses a command that cannot run with --headless. Only vllm serve has that mode (vllm/entrypoints/cli/serve.py), and it runs no
// API server then.
func (l Line) checkWorker(launcher v1alpha1.Launcher) error {
	words := l.words()
	for i := range len(words) - 1 {
		if words[i] == "-m" && slices.Contains(apiServers, words[i+1]) {
			return fmt.Errorf("launcher %s runs workers with --headless, which only vllm serve knows: start vllm serve in place of -m %s", launcher, words[i+1])
		}
	}
	if count := []string{"--api-server-count", "-asc"}; has(l.engineWords(), count...) && valueOf(l.engineWords(), count...) != "0" {
		return errAPIServers
	}
	return nil
}

// vllm adds vLLM's multi-node flags. Workers get --headless, because only the leader serves HTTP.
func (l Line) vllm(leader bool) (Command, error) {
	if l.Engine() == EngineSGLang {
		return Command{}, wrongLauncher(EngineSGLang, v1alpha1.LauncherVLLM, v1alpha1.LauncherSGLang)
	}
	if used := valueOf(l.words(), backend); used == "ray" {
		return Command{}, fmt.Errorf("launcher VLLM starts no Ray cluster, which an engine with %s ray needs: leave the flag out, or set launcher: Ray", backend)
	}
	flags := []flag{
		{names: []string{"--nnodes", "-n"}, value: "{LWS_GROUP_SIZE}"},
		{names: []string{"--node-rank", "-r"}, value: "{LWS_WORKER_INDEX}"},
		{names: []string{"--master-addr"}, value: "{LWS_LEADER_ADDRESS}"},
	}
	switch {
	case !leader:
		if err := l.checkWorker(v1alpha1.LauncherVLLM); err != nil {
			return Command{}, err
		}
		flags = append(flags, flag{names: []string{"--headless"}})
	case has(l.words(), "--headless"):
		return Command{}, errors.New("the leader serves requests, so it cannot have --headless: leave it out, launcher VLLM adds it on workers")
	}
	err := l.add(v1alpha1.LauncherVLLM, flags...)
	return l.join(), err
}

// sglang adds SGLang's multi-node flags. The leader also gets --host, because SGLang listens on
// localhost by default.
func (l Line) sglang(leader bool, port int32) (Command, error) {
	if l.Engine() == EngineVLLM {
		return Command{}, wrongLauncher(EngineVLLM, v1alpha1.LauncherSGLang, v1alpha1.LauncherVLLM)
	}
	flags := []flag{
		{names: []string{"--dist-init-addr", "--nccl-init-addr"}, value: "{LWS_LEADER_ADDRESS}:" + sglangPort},
		{names: []string{"--nnodes"}, value: "{LWS_GROUP_SIZE}"},
		{names: []string{"--node-rank"}, value: "{LWS_WORKER_INDEX}"},
	}
	if leader {
		flags = append(flags,
			flag{names: []string{"--host"}, value: "0.0.0.0"},
			flag{names: []string{"--port"}, value: strconv.Itoa(int(port))})
	}
	err := l.add(v1alpha1.LauncherSGLang, flags...)
	return l.join(), err
}
