package observe

import (
	"fmt"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// An objectState is a desired object and what is observed of it. Objects of another
// cluster are unwrapped: both are the object there, not the Object that carries it.
type objectState struct {
	key     key.Key
	cluster *plan.ClusterPlan
	desired kube.Object
	// kind is {kind}.{group}.
	kind string
	// routed tells whether there is a route to the service's pool.
	routed bool
	// actual is the observed object, and view the part of it that is read. Where the
	// object is not observed or cannot be read, actual does not exist and view is nil.
	actual incoming.Object
	view   *view
	// ready, or why not. An object that staysReady has both.
	ready           bool
	reason, message string
	// refused tells that the cluster does not take the newest spec. What was read of the object is then judged
	// by the spec that it has there, and serves tells that it is ready with that.
	refused, serves bool
}

// objectState evaluates a desired object of a cluster.
func (r *ObservedState) objectState(o kube.Object, c *plan.ClusterPlan) *objectState {
	s := &objectState{key: o.Key, cluster: c, desired: o, routed: r.plan.Router != nil && r.plan.Router.HasRoute}
	if m := remote.Manifest(o.Resource); c.Target.Remote() && m != nil {
		s.desired.Resource = m
	}
	s.kind = s.desired.Kind() + "." + incoming.KindOf(s.desired).Group()
	if o.Key.OnlyObserved() && o.Key.Kind != key.Workload {
		s.ready = true // It is there to be read, and nothing waits for it.
		return s
	}
	if !r.Observed(o.Key) {
		s.reason, s.message = ReasonNotCreated, "not created yet"
		return s
	}
	actual, state := remote.Unwrap(r.req.Observed(o.Key))
	if state.Refused && !o.Key.OnlyObserved() {
		s.applyRefused(actual, text.OneLine(state.Message))
		return s
	}
	if !state.Readable() {
		s.reason, s.message = state.Reason, state.Message
		if state.Reason == remote.CannotBeRead {
			s.message = "provider-kubernetes cannot reach or change it: " + text.OneLine(state.Message)
		}
		return s
	}
	v := objectView.In(actual)
	s.actual, s.view = actual, &v
	s.evaluate()
	return s
}

// applyRefused judges an object whose newest spec its cluster does not take. It is not ready: it is not as it is to be.
func (s *objectState) applyRefused(actual incoming.Object, why string) {
	v := objectView.In(actual)
	s.actual, s.view, s.refused = actual, &v, true
	s.evaluate()
	why = "the cluster does not take its newest spec: " + why
	if !s.ready {
		why = s.message + ", and " + why
	}
	s.serves, s.ready, s.reason, s.message = s.ready, false, ReasonApplyRefused, why
}

// formerPods tells that a LeaderWorkerSet does not have the pods that it is to have, because its cluster refuses them.
func (s *objectState) formerPods() bool {
	return s != nil && s.refused && (behindPartition(s.actual) || specHash.Text(s.actual) != specHash.Text(incoming.ObjectOf(s.desired.Resource)))
}

// lacksKind tells that the cluster of an object does not have its kind. The text is that of NoKindMatchError
// (k8s.io/apimachinery/pkg/api/meta/errors.go), as provider-kubernetes quotes it.
func (s *objectState) lacksKind() bool {
	return s.reason == remote.CannotBeRead && strings.Contains(s.message, fmt.Sprintf("no matches for kind %q", s.desired.Kind()))
}

// stateOf returns an object that can be read, without an evaluation.
func stateOf(actual incoming.Object) *objectState {
	v := objectView.In(actual)
	return &objectState{actual: actual, view: &v}
}

// evaluate applies the checks of the object's kind. The first that fails gives the reason.
func (s *objectState) evaluate() {
	reason, message, failed := deleting(s)
	for _, c := range chains[s.kind] {
		if failed {
			break
		}
		reason, message, failed = c(s)
	}
	if !failed {
		s.ready = true
		return
	}
	s.reason, s.message, s.ready = reason, message, staysReady(reason)
}

// String is the cluster, the kind and the name of the object, for messages.
func (s *objectState) String() string {
	return text.InCluster(s.cluster.Target.Cluster, s.desired.Kind()+" "+s.desired.Name())
}
