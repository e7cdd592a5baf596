package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

const (
	// defaultPort is where an engine serves unless it says otherwise.
	defaultPort = 8000
	// movedPort is where it listens behind the routing sidecar.
	movedPort = 8200
	// rayPort is Ray's, wherever the platform has put it: templates have it too.
	rayPort = 6379
)

// ports decides who listens where. A decode pod that gets the routing sidecar
// serves through it, and its engine moves out of the way.
func (p *rolePlanner) ports() {
	leader := &p.role.Leader
	p.role.Port = p.servingPort(leader.engine())
	p.role.EnginePort = p.role.Port
	if !p.disaggregated || p.role.Type != v1alpha1.ComponentTypeDecoder {
		return
	}
	if own := leader.routingSidecar(); own != nil {
		p.role.Port = p.servingPort(own)
		p.warnOfSidecar(own)
		return
	}
	p.role.EnginePort = freePort(&leader.Spec, p.role.Port)
	p.role.Sidecar = p.sidecar(&leader.Spec)
}

// servingPort is the port that a container serves on: the one that is named
// http, else the one that its command names too, else the first one.
func (p *rolePlanner) servingPort(c *corev1.Container) int32 {
	said := launch.Port(launch.Command{Command: c.Command, Args: c.Args})
	first := int32(0)
	for _, port := range c.Ports {
		switch n := port.ContainerPort; {
		case port.Protocol != "" && port.Protocol != corev1.ProtocolTCP, n == rayPort, n == *p.input.Ray.Port:
		case port.Name == "http":
			return n
		case first == 0, n == said:
			first = n
		}
	}
	switch {
	case first != 0:
		return first
	case said != 0:
		return said
	}
	return defaultPort
}

// freePort returns a port that nothing in the pod has.
func freePort(spec *corev1.PodSpec, taken int32) int32 {
	used := map[int32]bool{taken: true}
	for _, c := range slices.Concat(spec.Containers, spec.InitContainers) {
		for _, p := range c.Ports {
			used[p.ContainerPort] = true
		}
	}
	n := int32(movedPort)
	for used[n] {
		n++
	}
	return n
}
