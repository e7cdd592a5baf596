package observe

import (
	"fmt"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// A part is what one condition is about.
type part struct {
	subjects []*subject
	held     []plan.Held
	failures []string
}

// parts tells for each object which condition speaks of it.
func (j *judgement) parts() map[string]*part {
	parts := map[string]*part{GangScheduled: {}, WorkloadsReady: {}, RouterReady: {}, RouteReady: {}}
	for _, s := range j.subjects {
		if s.key == plan.AskKey {
			continue // Placed speaks of it.
		}
		p := parts[j.conditionOf(s.key)]
		p.subjects = append(p.subjects, s)
	}
	for _, h := range j.held {
		p := parts[j.conditionOf(h.Key)]
		p.held = append(p.held, h)
	}
	return parts
}

// conditionOf goes by the key, which starts with the kind: held objects have
// nothing else.
func (j *judgement) conditionOf(key string) string {
	_, local := plan.SplitKey(key)
	kind, _, _ := strings.Cut(local, "/")
	switch {
	case kind == "leaderworkerset", kind == "networkpolicy":
		return WorkloadsReady
	case kind == "podgroup":
		return GangScheduled
	case j.plan.Router == nil:
		return WorkloadsReady
	case j.plan.Router.HasRoute && (kind == "httproute" || kind == "inferencepool" || kind == "gateway"):
		return RouteReady
	}
	return RouterReady
}

// condition puts the gravest first: what failed, what cannot be told, what is
// held back, what is on its way, and what nobody has spoken about.
func (p *part) condition(name, reason string) Condition {
	found := p.sort()
	if len(p.failures) > 0 {
		f := &found[failed]
		f.texts = append(append([]string{}, p.failures...), f.texts...)
		f.reason = ReasonFailed
	}
	for _, h := range p.held {
		found[held].add(h.Reason, heldMessage(h))
	}
	for i, f := range found {
		if len(f.texts) > 0 {
			return Condition{Type: name, Status: statusOf[i], Reason: f.reason, Message: join(f.texts, maxList)}
		}
	}
	return Condition{Type: name, Status: True, Reason: reason}
}

// The classes of what can be missing, the gravest first.
const (
	failed = iota
	untold
	held
	waiting
	unspoken
	classes
)

var statusOf = [classes]Status{failed: False, untold: Unknown, held: False, waiting: False, unspoken: Unknown}

// findings are what is missing in one class, in the order in which it was found.
type findings struct {
	reason string
	texts  []string
	// lacking has, by what is missing, the objects that lack it.
	lacking map[string][]string
	order   []string
}

func (f *findings) add(reason, text string) {
	if len(f.texts) == 0 {
		f.reason = reason
	}
	f.texts = append(f.texts, text)
}

// lack notes that an object lacks something. Objects that lack the same are told
// of together.
func (f *findings) lack(reason, who, what string) {
	if f.lacking == nil {
		f.lacking = map[string][]string{}
	}
	if f.lacking[what] == nil {
		f.order = append(f.order, what)
	}
	f.lacking[what] = append(f.lacking[what], who)
	// A pool has nobody to speak for it before the route has.
	if f.reason == "" || reason == ReasonRouteNotReported {
		f.reason = reason
	}
}

func (f *findings) close() {
	for _, what := range f.order {
		who := f.lacking[what]
		if len(who) == 1 {
			f.texts = append(f.texts, who[0]+": "+what)
			continue
		}
		f.texts = append(f.texts, what+": "+list(who))
	}
}

// list names a few.
func list(who []string) string {
	const most = 8
	if len(who) <= most {
		return strings.Join(who, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(who[:most], ", "), len(who)-most)
}

func (p *part) sort() [classes]findings {
	var found [classes]findings
	for _, s := range p.subjects {
		if s.reason != "" {
			found[classOf(s.reason)].lack(s.reason, s.String(), s.message)
		}
	}
	for i := range found {
		found[i].close()
	}
	return found
}

func classOf(reason string) int {
	switch reason {
	case ReasonFailed, ReasonNotAccepted, ReasonNotResolved, ReasonNotProgrammed, ReasonUnschedulable:
		return failed
	case ReasonCannotBeRead, ReasonStale:
		return untold
	case ReasonRouteNotReported, ReasonPoolNotReported, ReasonGatewayNotReported:
		return unspoken
	}
	return waiting
}

func heldMessage(h plan.Held) string {
	if c := plan.ClusterOf(h.Key); c != "" {
		return "cluster " + c + ": " + h.Message
	}
	return h.Message
}
