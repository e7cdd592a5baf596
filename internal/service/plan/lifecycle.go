package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// A Probe asks an engine whether it serves. vLLM and SGLang answer at /health, and not before the
// model is loaded (vllm/entrypoints/openai/api_server.py of vLLM v0.11.0,
// python/sglang/srt/entrypoints/http_server.py of SGLang v0.5.3).
type Probe struct {
	Port int32
	// TimeoutSeconds and PeriodSeconds of the probe. SGLang generates a token before it answers, and
	// waits for 20 seconds for it.
	TimeoutSeconds, PeriodSeconds int32
	// HTTPS tells that the engine serves TLS itself.
	HTTPS bool
	// StartupSeconds is how long the model may take to load.
	StartupSeconds int32
}

// lifecycle decides how the pods tell that they serve, and how they stop.
func (p *rolePlanner) lifecycle() {
	times := p.spec.LifecycleOf()
	for _, t := range []*PodTemplate{&p.role.Leader, &p.role.Worker} {
		t.drain(times.DrainSeconds, times.ShutdownSeconds)
	}
	leader := &p.role.Leader
	p.role.TLS = leader.parsed.Listener().TLS
	leader.Proxies = leader.proxies(p.role.Port)
	if leader.engine().ReadinessProbe != nil {
		return
	}
	unknown := p.healthUnknown(leader)
	if unknown != "" {
		p.warn(leader.enginePath(p.leaderPath()), "has no readinessProbe, and %s", unknown)
		return
	}
	leader.Readiness = &Probe{Port: p.role.EnginePort, TimeoutSeconds: 5, PeriodSeconds: 5, HTTPS: p.role.TLS, StartupSeconds: times.StartupSeconds}
	if p.engineOf(leader) == launch.EngineSGLang {
		leader.Readiness.TimeoutSeconds, leader.Readiness.PeriodSeconds = 30, 10
	}
	if leader.engine().StartupProbe != nil {
		leader.Readiness.StartupSeconds = 0
		return
	}
	p.waitForEngines(times.StartupSeconds)
}

// drain decides how long the pods of a template go on once they are deleted. What the template says
// itself stays.
func (t *PodTemplate) drain(drain, shutdown int32) {
	grace := drain + shutdown
	if own := t.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = int32(min(max(*own, 0), maxGrace)) //nolint:gosec // An hour at most.
		t.GraceSeconds = 0
		drain = max(min(drain, grace-shutdown), 0)
	} else {
		t.GraceSeconds = grace
	}
	if ownPreStop(t.engine()) {
		drain = 0
	}
	t.DrainSeconds = drain
}

// firstShutdown is the first release of vLLM in the tables that has --shutdown-timeout (internal/engineflags).
var firstShutdown = imageref.Version{0, 19, 0}

// stopSeconds is the time that an engine needs to stop, after the last request is finished.
const stopSeconds = 5

// endsInTime returns how many seconds an engine may finish requests after SIGTERM, or 0 if it is not told. Only
// vLLM of a release that is known to have the flag is: another one would not start. The workers of a replica
// on several nodes end with their leader, so nothing can be finished there.
func (p *rolePlanner) endsInTime(t *PodTemplate) int32 {
	v, known := vllmVersion(t.engine())
	if p.role.Nodes > 1 || !known || v.Compare(firstShutdown) < 0 || p.engineOf(t) != launch.EngineVLLM || t.parsed.Listener().File {
		return 0
	}
	shutdown := p.spec.LifecycleOf().ShutdownSeconds
	if own := t.Spec.TerminationGracePeriodSeconds; own != nil {
		shutdown = int32(min(int64(shutdown), max(*own, 0))) //nolint:gosec // An hour at most.
	}
	return max(shutdown-stopSeconds, 0)
}

// ownPreStop tells whether a container of a template has a preStop hook of its own.
func ownPreStop(c *corev1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PreStop != nil }

// proxies are the containers that have the port to which requests come, beside the engine's, and a routing
// sidecar of the user's. The kubelet ends all containers at once. Init containers are the exception: those
// that run on are ended after the others.
func (t *PodTemplate) proxies(port int32) []int {
	if t.DrainSeconds == 0 {
		return nil
	}
	var all []int
	sidecar := t.routingSidecar()
	for i := range t.Spec.Containers {
		c := &t.Spec.Containers[i]
		if (c == sidecar || hasPort(c, port)) && i != t.Engine && !ownPreStop(c) {
			all = append(all, i)
		}
	}
	return all
}

// hasPort tells whether a container lists a port of TCP.
func hasPort(c *corev1.Container, port int32) bool {
	return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
		return p.ContainerPort == port && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP)
	})
}

// proxied tells whether another container than the engine's lists a port, so that it takes what comes there. Init containers count if
// they run beside the engine. The others have ended when it starts.
func (t *PodTemplate) proxied(port int32) bool {
	beside := slices.Concat(t.Spec.Containers[:t.Engine], t.Spec.Containers[t.Engine+1:])
	for _, c := range t.Spec.InitContainers {
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			beside = append(beside, c)
		}
	}
	return slices.ContainsFunc(beside, func(c corev1.Container) bool { return hasPort(&c, port) })
}

// vllmImage is the name of the image that vLLM's project releases, whose entrypoint is vLLM.
const vllmImage = "vllm-openai"

// healthUnknown says why it is not known where a template's engine answers at /health, and what follows. It is
// empty if it is known.
func (p *rolePlanner) healthUnknown(t *PodTemplate) string {
	why := cmp.Or(p.hidden(t), p.portUnknown(t))
	switch {
	case !p.knowsEngine(t):
		return "the engine is not known: requests come, and rollouts go on, before the model is loaded"
	case why != "":
		return "the function adds none, because " + why + ". Requests come, and rollouts go on, before the model is loaded"
	}
	return ""
}

// knowsEngine tells whether a template's engine is vLLM or SGLang, by the command, by the launcher or by
// the entrypoint of the image.
func (p *rolePlanner) knowsEngine(t *PodTemplate) bool {
	if l := p.launcher(); l.OfVLLM() || l == v1alpha1.LauncherSGLang || t.parsed.Engine() != launch.EngineUnknown {
		return true
	}
	name, _ := imageref.Split(t.engine().Image)
	return len(t.engine().Command) == 0 && name == vllmImage
}

// hidden says why an engine does not answer HTTP at the pod's address, and what helps. It is empty if the
// engine does. SGLang counts by its command only: an entrypoint of someone's own may set the host.
func (p *rolePlanner) hidden(t *PodTemplate) string {
	switch l := t.parsed.Listener(); {
	case l.Headless:
		return "the engine answers no requests with --headless"
	case l.Socket:
		return "the engine listens on a Unix socket"
	case l.GRPC:
		return "the engine speaks gRPC"
	case l.ClientCertificates:
		return "the engine wants certificates of its clients"
	case l.Local():
		return "the engine listens on localhost: set --host 0.0.0.0"
	case l.Host == "" && !l.File && t.parsed.Engine() == launch.EngineSGLang && p.launcher() != v1alpha1.LauncherSGLang:
		return "SGLang listens on localhost without --host: set --host 0.0.0.0"
	}
	return ""
}

// portUnknown says why an engine may listen on another port than the default, and what helps. It is empty if
// the template says the port, or the engine is told to take one.
func (p *rolePlanner) portUnknown(t *PodTemplate) string {
	switch {
	case p.role.Sidecar != nil, p.namedPort(t.engine(), t.flagPort()) != 0:
	case p.role.line != nil && p.role.line.Has("--port"):
		return "the port that --port sets is not known: name the port in ports"
	case p.launcher() == v1alpha1.LauncherSGLang:
	case t.parsed.Listener().File:
		return "the file of --config may say the port: set --port, or name the port in ports"
	case t.parsed.Engine() == launch.EngineSGLang:
		// python/sglang/srt/server_args.py of SGLang v0.5.5.
		return fmt.Sprintf("SGLang listens on port 30000 without --port: set --port %d", p.role.EnginePort)
	}
	return ""
}
