package observe

import (
	"cmp"
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A fleetRoute is the part of the fleet route that is read.
type fleetRoute struct {
	Metadata struct {
		Generation int64  `json:"generation"`
		Namespace  string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		ParentRefs []parentRef `json:"parentRefs"`
		Rules      []struct {
			BackendRefs []struct {
				Name   string `json:"name"`
				Weight int32  `json:"weight"`
			} `json:"backendRefs"`
		} `json:"rules"`
	} `json:"spec"`
	Status struct {
		Parents []parent `json:"parents"`
	} `json:"status"`
}

var fleetRouteView = incoming.NewView[fleetRoute]()

// backendsOf returns the backends that receive traffic from the fleet route, those that
// may receive traffic, and those to which the route gives a weight. None receives any while a gateway cannot use one of them. A gateway that has not accepted the current generation may still
// follow an earlier one. That may reference any backend whose Service exists, because a
// Service stays until no gateway follows a route that references it.
//
// If no gateway ever accepted the route, no requests come by it. Then it holds nothing back, and
// the backends of its current generation count.
func backendsOf(route incoming.Object, services []string) (receives, may, weighted map[string]bool) {
	r := fleetRouteView.In(route)
	settled := r.settled()
	resolved := settled && r.resolved()
	receives, may, weighted = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, rule := range r.Spec.Rules {
		for _, b := range rule.BackendRefs {
			// A host of Istio begins with the name of its ServiceEntry, see naming.FleetHost. Names
			// of Services have no dots.
			name, _, _ := strings.Cut(b.Name, ".")
			if b.Weight > 0 {
				weighted[name] = true
			}
			if b.Weight > 0 || !settled {
				may[name] = true
			}
			if b.Weight > 0 && resolved {
				receives[name] = true
			}
		}
	}
	if !settled {
		for _, name := range services {
			may[name] = true
		}
	}
	return receives, may, weighted
}

// settled tells whether no gateway that the route names may follow an earlier generation of it.
func (r *fleetRoute) settled() bool {
	for _, p := range r.Spec.ParentRefs {
		if state, _ := r.follows(p); state == followsFormer {
			return false
		}
	}
	return len(r.Spec.ParentRefs) > 0
}

// resolved tells whether no gateway that follows the route lacks one of its backends. A gateway
// answers with an error in place of a backend that it cannot use.
func (r *fleetRoute) resolved() bool {
	for _, p := range r.Spec.ParentRefs {
		state, says := r.follows(p)
		c := find(says, string(gateway.RouteConditionResolvedRefs))
		if state == followsCurrent && c.Status == composite.False && c.ObservedGeneration >= r.Metadata.Generation {
			return false
		}
	}
	return true
}

// A following tells which generation of a route a gateway follows.
type following int

// A gateway follows what it has accepted. The later ones take precedence, if several controllers
// report on one gateway.
const (
	// followsNone is a gateway that never reported on the route. It may not exist, or have no
	// controller.
	followsNone following = iota
	// followsRefused is a gateway that refuses the route. Such a route is not attached to it.
	followsRefused
	// followsFormer is a gateway that may follow an earlier generation of the route.
	followsFormer
	// followsCurrent is a gateway that has accepted the current generation.
	followsCurrent
)

// reportsOn tells whether a status is about a reference of the route. One that has a reference of its own is about that alone. Others are
// about the references to the same gateway: some controllers leave out the port, or name the only listener where the route names none
// (internal/controller/status/prepare_requests.go of NGINX Gateway Fabric at e55bfe3).
func (r *fleetRoute) reportsOn(status, p parentRef) bool {
	status, p = status.in(r.Metadata.Namespace), p.in(r.Metadata.Namespace)
	named := slices.ContainsFunc(r.Spec.ParentRefs, func(ref parentRef) bool { return ref.in(r.Metadata.Namespace) == status })
	return status == p || !named && status.gateway() == p.gateway()
}

// follows tells which generation a gateway follows, and what its controller says of the route.
func (r *fleetRoute) follows(p parentRef) (following, []condition) {
	best, says := followsNone, []condition(nil)
	for _, s := range r.Status.Parents {
		if !r.reportsOn(s.ParentRef, p) {
			continue
		}
		c := find(s.Conditions, string(gateway.RouteConditionAccepted))
		state := followsFormer
		switch {
		case c.Status == composite.False:
			state = followsRefused
		case c.Status == composite.True && c.ObservedGeneration >= r.Metadata.Generation:
			state = followsCurrent
		}
		if state > best {
			best, says = state, s.Conditions
		}
	}
	return best, says
}

// fleetParents finds the gateways that do not follow the current generation of the fleet route.
func fleetParents(s *objectState) (string, string, bool) {
	if s.key != key.FleetRoute {
		return "", "", false
	}
	r := fleetRouteView.In(s.actual)
	var refused, former, none []string
	for _, p := range r.Spec.ParentRefs {
		name := p.in(r.Metadata.Namespace).String()
		switch state, says := r.follows(p); state {
		case followsRefused:
			refused = append(refused, s.verdict(name, notAccepted, find(says, notAccepted.condition)))
		case followsFormer:
			former = append(former, name+" has not accepted its newest generation, and may send requests to clusters that it left out: these keep their copies until then")
		case followsNone:
			none = append(none, name+" has never reported on it, so no requests come from there")
		case followsCurrent:
		}
	}
	if len(refused) > 0 {
		return ReasonNotAccepted, text.Join(append(refused, former...), text.MaxMessage), true
	}
	return ReasonRouteNotReported, text.Join(append(former, none...), text.MaxMessage), len(former)+len(none) > 0
}

// in returns the reference with its defaults, in a route of that namespace.
func (p parentRef) in(namespace string) parentRef {
	p.Group, p.Kind = cmp.Or(p.Group, gateway.GroupName), cmp.Or(p.Kind, "Gateway")
	p.Namespace = cmp.Or(p.Namespace, namespace)
	return p
}

// gateway returns a reference to the same object, without a listener.
func (p parentRef) gateway() parentRef {
	p.SectionName, p.Port = "", 0
	return p
}

// String names the parent for a message.
func (p parentRef) String() string {
	name := p.Kind + " " + p.Namespace + "/" + p.Name
	if p.SectionName != "" {
		name += " (" + p.SectionName + ")"
	}
	return text.OneLine(strings.TrimSpace(name))
}
