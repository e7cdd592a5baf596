package observe

import (
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A refusal is a condition by which a gateway does not use a route or a pool, or not all of it.
type refusal struct {
	condition string
	bad       composite.Status
	reason    string
	says      string
	// whole tells that it is about the whole object. Then it holds until the gateway reports on a newer generation.
	whole bool
}

// notAccepted is the refusal of the whole object.
var notAccepted = refusal{string(gateway.RouteConditionAccepted), composite.False, ReasonNotAccepted, "refuses it", true}

// refusals are all that count, the worst first.
var refusals = []refusal{
	notAccepted,
	{string(gateway.RouteConditionResolvedRefs), composite.False, ReasonNotResolved, "does not find what it references", true},
	{string(gateway.RouteConditionPartiallyInvalid), composite.True, ReasonPartiallyInvalid, "does not use all of it", false},
}

// refuses tells whether a gateway refuses the newest generation of a route or a pool, or lacks what that references.
func (s *objectState) refuses(p parent) bool {
	return slices.ContainsFunc(refusals, func(r refusal) bool {
		c := find(p.Conditions, r.condition)
		return r.whole && s.current(c) && c.Status == r.bad
	})
}

// parents finds a route or pool that a gateway refuses, or that one has not accepted.
func parents(notReported string) check {
	return func(s *objectState) (string, string, bool) {
		if s.kind == kindPool && !s.routed {
			// A gateway reports on a pool only once a route references the pool.
			return "", "", false
		}
		reported := s.reports()
		if reason, why := s.refusedBy(reported); reason != "" {
			return reason, why, true
		}
		why := s.unreported(reported)
		return notReported, text.List(why), len(why) > 0
	}
}

// A report is the newest that is said of a route or pool by one of its gateways.
type report int

const (
	reportsNothing report = iota
	// reportsFormer is a gateway that has accepted or refused an earlier generation, and not the newest.
	reportsFormer
	reportsNewest
)

// reports returns what each gateway has reported on. It is one report for all listeners of a gateway: some controllers leave out the
// port, or name the only listener where the route names none (internal/controller/status/prepare_requests.go of NGINX Gateway
// Fabric at e55bfe3).
func (s *objectState) reports() map[parentRef]report {
	all := map[parentRef]report{}
	for _, p := range s.view.Status.Parents {
		c := find(p.Conditions, string(gateway.RouteConditionAccepted))
		if c.Status != composite.True && c.Status != composite.False {
			continue
		}
		found := reportsFormer
		if s.current(c) {
			found = reportsNewest
		}
		at := s.gatewayOf(p.ParentRef)
		all[at] = max(all[at], found)
	}
	return all
}

// gatewayOf returns a reference to the same object, without a listener.
func (s *objectState) gatewayOf(p parentRef) parentRef {
	return p.in(s.actual.Namespace()).gateway()
}

// refusedBy returns why gateways do not use a route or a pool, or not all of it, and the worst of the reasons. The reason is empty if
// none does. What one has said of an earlier generation counts while it has not reported on the newest, as long as the route
// names it. A gateway whose name is taken out of a route may never report on it again, and a pool names none.
func (s *objectState) refusedBy(reported map[parentRef]report) (reason, message string) {
	named := map[parentRef]bool{}
	for _, p := range s.view.Spec.ParentRefs {
		named[s.gatewayOf(p)] = true
	}
	var all []string
	for _, r := range refusals {
		var texts []string
		for _, p := range s.view.Status.Parents {
			c, at := find(p.Conditions, r.condition), s.gatewayOf(p.ParentRef)
			holds := s.current(c) || r.whole && named[at] && reported[at] != reportsNewest
			if c.Status == r.bad && holds {
				texts = append(texts, s.verdict(s.nameOf(p.ParentRef), r, c))
			}
		}
		if len(texts) > 0 && reason == "" {
			reason = r.reason
		}
		// Controllers may write them in any order.
		slices.Sort(texts)
		all = append(all, texts...)
	}
	return reason, text.List(all)
}

// verdict says how a gateway refuses a route or a pool.
func (s *objectState) verdict(who string, r refusal, c condition) string {
	if s.current(c) {
		return who + " " + r.says + ": " + cause(c)
	}
	return who + " " + r.says + ", by its report on an earlier generation: " + cause(c)
}

// nameOf names a gateway for a message.
func (s *objectState) nameOf(p parentRef) string {
	if p.Name == "" {
		return "a gateway"
	}
	return p.in(s.actual.Namespace()).String()
}

// unreported says which gateways that a route names have not reported on its newest generation. Of a pool, which names none, it
// says whether any has.
func (s *objectState) unreported(reported map[parentRef]report) []string {
	const newest, nothing = "has not reported on its newest generation", "has not reported on it"
	var all []string
	for _, p := range s.view.Spec.ParentRefs {
		switch reported[s.gatewayOf(p)] {
		case reportsNothing:
			all = append(all, s.nameOf(p)+" "+nothing)
		case reportsFormer:
			all = append(all, s.nameOf(p)+" "+newest)
		case reportsNewest:
		}
	}
	if len(s.view.Spec.ParentRefs) > 0 {
		return all
	}
	best := reportsNothing
	for _, r := range reported {
		best = max(best, r)
	}
	switch best {
	case reportsNothing:
		return []string{"no gateway has reported on it"}
	case reportsFormer:
		return []string{"no gateway has reported on its newest generation"}
	case reportsNewest:
	}
	return nil
}
