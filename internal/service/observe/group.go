package observe

import (
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A conditionGroup has the objects and the failures that one condition is about.
type conditionGroup struct {
	objects  []*objectState
	deferred []plan.Deferred
	failures []string
}

// conditionGroups assigns each object to the condition that is about it.
func (e *evaluator) conditionGroups() map[string]*conditionGroup {
	groups := map[string]*conditionGroup{ModelReady: {}, GangScheduled: {}, WorkloadsReady: {}, Scaled: {}, RouterReady: {}, RouteReady: {}}
	for _, s := range e.objects {
		if s.key == key.CapacityRequest || s.kind == kindWorkload {
			continue // The condition Placed is about it.
		}
		g := groups[e.conditionOf(s.key)]
		g.objects = append(g.objects, s)
	}
	for _, d := range e.deferred {
		g := groups[e.conditionOf(d.Key)]
		g.deferred = append(g.deferred, d)
	}
	return groups
}

// conditionOf returns the condition that is about an object, by its key. A deferred object is
// not rendered, so only its key is known.
func (e *evaluator) conditionOf(k key.Key) string {
	kind := k.Kind
	switch {
	case kind == key.LeaderWorkerSet, kind == key.NetworkPolicy, kind == key.PodMonitor, plan.IsForAdapters(k), plan.IsBudgetOfRole(k), plan.IsOfSidecars(k):
		return WorkloadsReady
	case kind == key.PersistentVolumeClaim, kind == key.NamedClaim, kind == key.Job, kind == key.LoaderPods:
		return ModelReady
	case kind == key.InferenceRole, slices.Contains(key.AutoscalerKinds(), kind):
		return Scaled
	case kind == key.PodGroup:
		return GangScheduled
	case e.plan.Router == nil:
		return WorkloadsReady
	case e.plan.Router.HasRoute && (kind == key.HTTPRoute || kind == key.InferencePool || kind == key.Gateway):
		return RouteReady
	}
	return RouterReady
}

// hasReplicas tells whether replicas are among the objects. Others are there without any: what lets Prometheus
// read the endpoint picker, and who may reach engines.
func (g *conditionGroup) hasReplicas() bool {
	return slices.ContainsFunc(g.objects, func(s *objectState) bool { return s.key.Kind == key.LeaderWorkerSet }) ||
		slices.ContainsFunc(g.deferred, func(d plan.Deferred) bool { return d.Key.Kind == key.LeaderWorkerSet })
}

// condition tells of the most severe class only: failures, unknown states, deferred
// objects, objects in progress, and objects that nobody has reported on.
func (g *conditionGroup) condition(name, reason string) composite.Condition {
	found := g.sort()
	if len(g.failures) > 0 {
		f := &found[failedClass]
		f.texts = append(append([]string{}, g.failures...), f.texts...)
		f.reason = ReasonFailed
	}
	for _, d := range g.deferred {
		found[deferredClass].add(d.Reason, text.InCluster(d.Key.Cluster, d.Message))
	}
	for i, f := range found {
		if len(f.texts) > 0 {
			return composite.Condition{Type: name, Status: statusOf[i], Reason: f.reason, Message: text.Join(f.texts, text.MaxMessage)}
		}
	}
	return composite.Condition{Type: name, Status: composite.True, Reason: reason}
}

// The classes of findings, the most severe first. A condition is True in spite of objects
// that nobody has reported on: the service may work without a report.
const (
	failedClass = iota
	unknownClass
	deferredClass
	progressingClass
	notReportedClass
	classes
)

var statusOf = [classes]composite.Status{failedClass: composite.False, unknownClass: composite.Unknown, deferredClass: composite.False, progressingClass: composite.False, notReportedClass: composite.True}

// findings are those of one class, in the order in which they were found.
type findings struct {
	reason string
	texts  []string
	// lacking has the names of the objects, by what they lack.
	lacking map[string][]string
	order   []string
}

func (f *findings) add(reason, text string) {
	if len(f.texts) == 0 {
		f.reason = reason
	}
	f.texts = append(f.texts, text)
}

// lack notes that an object lacks something. One text names all objects that lack the
// same.
func (f *findings) lack(reason, who, what string) {
	if f.lacking == nil {
		f.lacking = map[string][]string{}
	}
	if f.lacking[what] == nil {
		f.order = append(f.order, what)
	}
	f.lacking[what] = append(f.lacking[what], who)
	// Gateways report on a pool only after they have reported on the route.
	if f.reason == "" || reason == ReasonRouteNotReported {
		f.reason = reason
	}
}

// maxNames is the most objects that one text names.
const maxNames = 8

func (f *findings) close() {
	for _, what := range f.order {
		f.texts = append(f.texts, objectNames(f.lacking[what])+": "+what)
	}
}

// objectNames lists objects as String writes them. A cluster that all of them are in is named once.
func objectNames(who []string) string {
	in, _, _ := strings.Cut(who[0], ": ")
	in += ": "
	if len(who) == 1 || slices.ContainsFunc(who, func(s string) bool { return !strings.HasPrefix(s, in) }) {
		return text.Names(who, maxNames)
	}
	short := make([]string, 0, len(who))
	for _, s := range who {
		short = append(short, strings.TrimPrefix(s, in))
	}
	return in + text.Names(short, maxNames)
}

func (g *conditionGroup) sort() [classes]findings {
	var found [classes]findings
	for _, s := range g.objects {
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
	case ReasonFailed, ReasonApplyRefused, ReasonNotAccepted, ReasonNotResolved, ReasonPartiallyInvalid, ReasonNotProgrammed, ReasonUnschedulable:
		return failedClass
	case remote.CannotBeRead, ReasonGenerationNotObserved:
		return unknownClass
	case ReasonRouteNotReported, ReasonPoolNotReported, ReasonGatewayNotReported:
		return notReportedClass
	}
	return progressingClass
}
