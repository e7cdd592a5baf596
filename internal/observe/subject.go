package observe

import (
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// A subject is one desired object and what was observed of it, in the terms of
// the place where it lives.
type subject struct {
	key     string
	at      *plan.Deployment
	desired kube.Object
	// kind is {kind}.{group}.
	kind string
	// routed tells that there is a route to the service's pool.
	routed bool
	// actual and seen, what is read of it, are nil where nothing was observed, or
	// nothing that can be trusted.
	actual *structpb.Struct
	seen   *view
	// ready, or what is missing. An object that no controller has spoken about is
	// ready with a reason.
	ready           bool
	reason, message string
}

// subject unwraps a desired object and what was observed of it.
func (r *Reality) subject(o kube.Object, at *plan.Deployment) *subject {
	s := &subject{key: o.Key, at: at, desired: o, routed: r.plan.Router != nil && r.plan.Router.HasRoute}
	if at.Target.Remote() {
		s.desired.Resource = placement.Manifest(o.Resource)
	}
	group, _, grouped := strings.Cut(s.desired.APIVersion(), "/")
	if !grouped {
		group = ""
	}
	s.kind = s.desired.Kind() + "." + group
	if !r.Observed(o.Key) {
		s.reason, s.message = ReasonNotCreated, "not created yet"
		return s
	}
	actual, state := placement.Unwrap(r.observed[o.Key].GetResource())
	if !state.Readable() {
		s.reason, s.message = state.Reason, state.Message
		if state.Reason == placement.NotSynced {
			s.message = "provider-kubernetes cannot reach or change it: " + oneLine(state.Message)
		}
		return s
	}
	s.actual, s.seen = actual, &view{}
	_ = kube.Decode(actual, nil, s.seen) // Fields of the wrong type are as good as absent.
	s.judge()
	return s
}

// judge applies the checks of the object's kind. The first that fails speaks.
func (s *subject) judge() {
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
	s.reason, s.message, s.ready = reason, message, silent(reason)
}

// String names the object for people.
func (s *subject) String() string {
	return place(s.at) + s.desired.Kind() + " " + s.desired.Name()
}

// place names the cluster of a deployment, if it has one.
func place(d *plan.Deployment) string {
	if !d.Target.Remote() {
		return ""
	}
	return "cluster " + d.Target.Cluster + ": "
}
