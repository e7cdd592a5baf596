package plan

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// oneServer are flags of vLLM with which each engine has one API server, however many ranks there are.
var oneServer = []string{"--data-parallel-rank", "--data-parallel-external-lb", flagManyPorts}

const flagServers = "--api-server-count"

// servers returns how many API servers vLLM has at most, and how many ranks there are. By default its newer releases start one
// for each data-parallel rank (vllm/entrypoints/cli/serve.py). It is 0 if that is not known.
func (p *rolePlanner) servers(l *engineLine) (servers, ranks int) {
	all, _ := l.number(1, "--data-parallel-size")
	local, _ := l.number(1, "--data-parallel-size-local")
	if p.launcher() == v1alpha1.LauncherVLLMDataParallel {
		local *= int(p.role.Nodes) // Each node has as many, and the leader serves all of them.
	}
	ranks = max(all, local)
	if g, given := l.Get(flagServers); given {
		n, err := strconv.Atoi(g.Value)
		if err != nil {
			return 0, ranks
		}
		return n, ranks
	}
	if l.Has(oneServer...) {
		return 1, ranks
	}
	return ranks, ranks
}

// checkServers refuses several API servers. vLLM does not start with them where adapters are loaded at run time.
func (p *rolePlanner) checkServers() {
	l := p.role.line
	if p.adapters == nil || l == nil {
		return
	}
	const remedy = "vLLM loads adapters of spec.adapterCache only with one API server: "
	servers, ranks := p.servers(l)
	switch g, given := l.Get(flagServers); {
	case given && g.Known() && g.Value != "1":
		p.errs = append(p.errs, field.Invalid(l.pathOf(flagServers), text.Value(g.Value), remedy+"set it to 1"))
	case !given && servers > 1:
		p.errs = append(p.errs, field.Invalid(l.pathOf("--data-parallel-size", "--data-parallel-size-local"), ranks, remedy+"add "+flagServers+" 1"+p.where()))
	}
}

// where says where a flag of the leader alone has to be.
func (p *rolePlanner) where() string {
	if p.role.Nodes > 1 && !p.ownLeader() {
		return " in a leaderTemplate, because workers serve no requests"
	}
	return ""
}

// engineReady is how long API servers of vLLM wait for its engines to load the model, in seconds. Releases without the variable
// always wait for engineReadySeconds (vllm-project/vllm#27444, and MPClient in vllm/v1/engine/core_client.py).
const (
	engineReady        = "VLLM_ENGINE_READY_TIMEOUT_S"
	engineReadySeconds = 600
)

// waitForEngines has several API servers of vLLM wait as long as the startup probe does. They end before, and the engine with them. A
// single one starts to wait only once the engine has started (launch_core_engines in vllm/v1/engine/utils.py).
func (p *rolePlanner) waitForEngines(seconds int32) {
	l := p.role.line
	if l == nil || l.engine != launch.EngineVLLM || seconds <= engineReadySeconds {
		return
	}
	if servers, _ := p.servers(l); servers < 2 {
		return
	}
	for _, t := range []*PodTemplate{&p.role.Leader, &p.role.Worker} {
		if !t.Headless {
			t.Env = append(t.Env, t.missing([]corev1.EnvVar{{Name: engineReady, Value: strconv.Itoa(int(seconds))}})...)
		}
	}
}
