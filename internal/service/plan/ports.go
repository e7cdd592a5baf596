package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

const (
	// defaultPort is the port of an engine whose template names none.
	defaultPort = 8000
	// movedPort is the preferred port of an engine behind the routing sidecar.
	movedPort = 8200
	// rayPort is Ray's default. Templates list it even if the platform team chose another port.
	rayPort = 6379
)

// ports decides the ports of the engine and of the routing sidecar. In a decode pod the sidecar
// gets the serving port, and the engine moves to a free one.
func (p *rolePlanner) ports() {
	if p.launcher() == v1alpha1.LauncherRay {
		p.role.RayPort = *p.input.Ray.Port
	}
	p.choosePorts()
	p.checkRayPort()
}

func (p *rolePlanner) choosePorts() {
	leader := &p.role.Leader
	p.role.Port = p.servingPort(leader.engine(), leader.flagPort())
	p.role.EnginePort = p.role.Port
	if !p.paired || p.role.Type != v1alpha1.ComponentTypeDecoder {
		return
	}
	if own := leader.routingSidecar(); own != nil {
		p.role.Port = p.servingPort(own, portOfFlag(own))
		p.warnOfSidecar(own)
		return
	}
	p.role.EnginePort = freePort(&leader.Spec, p.role.Port, p.role.RayPort)
	p.role.Sidecar = p.sidecar(&leader.Spec)
}

// checkRayPort refuses the port of the Ray head for what serves in the same pod.
func (p *rolePlanner) checkRayPort() {
	if ray := p.role.RayPort; ray != 0 && (p.role.Port == ray || p.role.EnginePort == ray) {
		p.errs = append(p.errs, field.Invalid(p.leaderPath().Child("spec", "containers"), ray,
			"must be another port: the Ray head takes it, by ray.port of the Composition's input"))
	}
}

// servingPort returns the port that a container serves on, whose command sets a port or 0.
func (p *rolePlanner) servingPort(c *corev1.Container, flagPort int32) int32 {
	return cmp.Or(p.namedPort(c, flagPort), defaultPort)
}

// PortOf returns the port that clients of a rendered leader use: that of its routing sidecar, or else that of its engine.
func PortOf(leader *corev1.PodSpec) int32 {
	t := &PodTemplate{Spec: *leader}
	c := t.routingSidecar()
	for i := range leader.InitContainers {
		// The image of the function's own may have any name.
		sidecar := &leader.InitContainers[i]
		if strings.HasPrefix(sidecar.Name, SidecarContainer) && ptr.Deref(sidecar.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			c = sidecar
		}
	}
	if c == nil {
		c = EngineOf(leader.Containers)
	}
	ray := launch.RayPort(commandOf(c))
	return cmp.Or(namedPort(c, portOfFlag(c), ray, ray), defaultPort)
}

// namedPort returns the port that a container of the role names, or 0.
func (p *rolePlanner) namedPort(c *corev1.Container, flagPort int32) int32 {
	return namedPort(c, flagPort, p.role.RayPort, *p.input.Ray.Port)
}

// namedPort returns the port that a container names, or 0. It prefers the port named http, then the one that the command sets with
// --port, then the first one. The port of the role's Ray head does not count. That of the Input comes last if nothing here starts Ray:
// the engine's own script may.
func namedPort(c *corev1.Container, flagPort, ofRole, ofInput int32) int32 {
	first, last := int32(0), int32(0)
	for _, port := range c.Ports {
		switch n := port.ContainerPort; {
		case port.Protocol != "" && port.Protocol != corev1.ProtocolTCP, n == rayPort, n == ofRole:
		case port.Name == "http":
			return n
		case n == ofInput && n != flagPort:
			last = n
		case first == 0, n == flagPort:
			first = n
		}
	}
	return cmp.Or(first, flagPort, last)
}

// portOfFlag returns the port that a container's command sets with --port, or 0 if it sets none or that is not known.
func portOfFlag(c *corev1.Container) int32 {
	return launch.Parse(commandOf(c)).Expand(c.Env).Port(c.Env, len(c.EnvFrom) > 0)
}

// flagPort returns the port that the engine's command sets with --port, or 0 if it sets none or that is not known.
func (t *PodTemplate) flagPort() int32 {
	return t.expanded.Port(t.engine().Env, len(t.engine().EnvFrom) > 0)
}

// freePort returns a port that no container of the pod names, in its ports or in a variable such as VLLM_NIXL_SIDE_CHANNEL_PORT, and that
// is not taken otherwise.
func freePort(spec *corev1.PodSpec, taken ...int32) int32 {
	used := map[int32]bool{}
	for _, n := range taken {
		used[n] = true
	}
	for _, c := range slices.Concat(spec.Containers, spec.InitContainers) {
		for _, p := range c.Ports {
			used[p.ContainerPort] = true
		}
		for _, e := range c.Env {
			if n, err := strconv.ParseInt(e.Value, 10, 32); err == nil && strings.HasSuffix(e.Name, "_PORT") {
				used[int32(n)] = true
			}
		}
	}
	n := int32(movedPort)
	for used[n] {
		n++
	}
	return n
}
