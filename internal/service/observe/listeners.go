package observe

import (
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A listenerStatus has what a controller reports on one listener of a Gateway.
type listenerStatus struct {
	Name       string      `json:"name"`
	Conditions []condition `json:"conditions"`
}

// programmed finds a Gateway that receives no traffic, or none on one of its listeners.
func programmed(s *objectState) (string, string, bool) {
	accepted := find(s.view.Status.Conditions, string(gateway.GatewayConditionAccepted))
	programmed := find(s.view.Status.Conditions, string(gateway.GatewayConditionProgrammed))
	broken := s.brokenListeners()
	switch {
	case s.current(accepted) && accepted.Status == composite.False:
		return ReasonNotAccepted, text.List(append([]string{cause(accepted)}, broken...)), true
	case s.current(programmed) && programmed.Status == composite.False:
		return ReasonNotProgrammed, text.List(append([]string{cause(programmed)}, broken...)), true
	case len(broken) > 0:
		return ReasonNotProgrammed, text.List(broken), true
	case s.current(programmed) && programmed.Status == composite.True:
		return "", "", false
	}
	return ReasonGatewayNotReported, "no gateway controller has reported on it", true
}

// brokenListeners says which listeners receive no traffic. The conditions of the Gateway hide that: those of Istio stay True while
// one of its listeners has no certificate (buildListener in pilot/pkg/config/kube/gateway/conversion.go at 86c9f01). They are
// sorted, because controllers may write them in any order.
func (s *objectState) brokenListeners() []string {
	var all []string
	for _, l := range s.view.Status.Listeners {
		if c, broken := s.fault(l); broken {
			all = append(all, "listener "+text.OneLine(l.Name)+": "+cause(c))
		}
	}
	slices.Sort(all)
	return all
}

// listenerFaults are the conditions by which a listener receives no traffic. The first one says most: the reason of Programmed
// is often no more than Invalid.
var listenerFaults = []struct {
	name gateway.ListenerConditionType
	bad  composite.Status
}{
	{gateway.ListenerConditionConflicted, composite.True},
	{gateway.ListenerConditionResolvedRefs, composite.False},
	{gateway.ListenerConditionAccepted, composite.False},
	{gateway.ListenerConditionProgrammed, composite.False},
}

// fault returns the condition by which a listener receives no traffic, and whether there is one. What nobody has reported is no
// fault: controllers leave conditions out. Nor is a reference without which the listener is programmed all the same, such as one
// of several certificates (validateListenerConditions in internal/gatewayapi/validate.go of Envoy Gateway at d32f282).
func (s *objectState) fault(l listenerStatus) (condition, bool) {
	programmed := find(l.Conditions, string(gateway.ListenerConditionProgrammed))
	works := s.current(programmed) && programmed.Status == composite.True
	for _, f := range listenerFaults {
		c := find(l.Conditions, string(f.name))
		if works && f.name == gateway.ListenerConditionResolvedRefs {
			continue
		}
		if s.current(c) && c.Status == f.bad {
			return c, true
		}
	}
	return condition{}, false
}
