package observe

import (
	"cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Types and reasons of the conditions of Kueue's Workload (v0.15.0,
// apis/kueue/v1beta2/workload_types.go).
const (
	workloadAdmitted      = "Admitted"
	workloadQuotaReserved = "QuotaReserved"
	workloadEvicted       = "Evicted"
	evictedByPreemption   = "Preempted"
)

// admitted finds a Workload that Kueue has not admitted. Kueue keeps the condition Evicted True
// until it admits the Workload again.
func admitted(s *objectState) (string, string, bool) {
	is := find(s.view.Status.Conditions, workloadAdmitted)
	if is.Status == composite.True {
		return "", "", false
	}
	evicted := find(s.view.Status.Conditions, workloadEvicted)
	quota := find(s.view.Status.Conditions, workloadQuotaReserved)
	switch {
	case evicted.Status == composite.True && evicted.Reason == evictedByPreemption:
		return ReasonPreempted, text.OneLine(evicted.Message), true
	case evicted.Status == composite.True:
		return ReasonEvicted, cause(evicted), true
	case quota.Status == composite.True:
		// It waits for the admission checks.
		return ReasonWaitingForAdmission, cmp.Or(text.OneLine(is.Message), "Kueue has reserved its quota, and not admitted it yet"), true
	}
	return ReasonWaitingForAdmission, cmp.Or(text.OneLine(quota.Message), "Kueue has not reported on it yet"), true
}

// Admitted tells whether Kueue has admitted the Workload that the Object of a key observes.
func (r *ObservedState) Admitted(k key.Key) bool {
	found, state := remote.Unwrap(r.req.Observed(k))
	v := objectView.In(found)
	return state.Readable() && find(v.Status.Conditions, workloadAdmitted).Status == composite.True
}

// Awaits tells that the Workload of a key can be read, and that Kueue has not admitted it.
func (r *ObservedState) Awaits(k key.Key) bool {
	found, state := remote.Unwrap(r.req.Observed(k))
	return found.Exists() && state.Readable() && !r.Admitted(k)
}

// stopped tells that Kueue has stopped the replica of a Workload.
func (s *objectState) stopped() bool { return stoppedByKueue(s.reason) }

func stoppedByKueue(reason string) bool { return reason == ReasonPreempted || reason == ReasonEvicted }

// heldByKueue tells whether a reason says that Kueue does not admit what is placed in a cluster.
func heldByKueue(reason string) bool {
	return reason == ReasonWaitingForAdmission || stoppedByKueue(reason)
}

// A wait is why replicas do not start in a cluster, although they are placed there.
type wait struct {
	reason, message string
	// ofKueue tells that it is Kueue that does not admit them.
	ofKueue bool
	// all tells that none of the replicas there has started.
	all bool
}

// waits returns why replicas wait in a cluster: for Kueue, or for Volcano. It is nil where none
// does.
func (e *evaluator) waits(c *plan.ClusterPlan) *wait {
	found, w := findings{}, &wait{ofKueue: c.LocalQueue != "", all: true}
	for r := range c.Replicas() {
		set, workload := e.byKey[r.Key], e.byKey[c.WorkloadKey(r)]
		switch {
		case workload != nil && workload.stopped():
			found.lack(workload.reason, r.Name, workload.message)
		case set != nil && (set.ready || set.serves) || workload != nil && workload.ready:
			w.all = false
		case workload == nil || workload.reason == ReasonNotCreated:
		case workload.reason == remote.CannotBeRead && set != nil && set.reason == remote.CannotBeRead:
			// The cluster cannot be read, which its conditions say.
		case workload.reason == remote.CannotBeRead:
			found.lack(ReasonWaitingForAdmission, r.Name, "its Workload cannot be read: "+workload.message)
		default:
			found.lack(workload.reason, r.Name, workload.message)
		}
	}
	for i := range c.Groups {
		g := c.Groups[i].PodGroup
		if g == nil {
			continue
		}
		if s := e.byKey[g.Key]; s != nil && (s.reason == ReasonUnschedulable || s.reason == ReasonNotScheduled) {
			found.lack(s.reason, "PodGroup "+g.Name, s.message)
		}
	}
	found.close()
	if len(found.texts) == 0 {
		return nil
	}
	w.reason, w.message = found.reason, text.Join(found.texts, text.MaxMessage)
	return w
}

// passAdmitted makes the Workloads of replicas ready that are, or that serve as they were before. Such a replica has started,
// whatever can be read of its Workload. One that is evicted stays ready until its pods have ended.
func (e *evaluator) passAdmitted() {
	for c, r := range e.plan.Replicas() {
		set, workload := e.byKey[r.Key], e.byKey[c.WorkloadKey(r)]
		if set != nil && (set.ready || set.serves) && workload != nil && !workload.stopped() {
			workload.ready, workload.reason, workload.message = true, "", ""
		}
	}
}

// waitIn returns why replicas wait in a cluster, unless the placement says something else of it
// that comes first. That they did not start in time is no cause, and comes after it.
func (e *evaluator) waitIn(cluster string, state v1alpha1.PlacementState, reason, message string) *wait {
	w := e.waiting[cluster]
	switch {
	case w == nil || state != v1alpha1.StatePlaced:
		return nil
	case reason == "":
		return w
	case reason == scheduling.ReasonStartTimedOut:
		both := *w
		both.message = text.Join([]string{w.message, message}, text.MaxMessage)
		return &both
	}
	return nil
}

// noteWaits writes into the status of each cluster why replicas wait there.
func (e *evaluator) noteWaits(clusters []v1alpha1.ClusterStatus) {
	for i := range clusters {
		s := &clusters[i]
		w := e.waitIn(s.Name, s.State, s.Reason, s.Message)
		if w == nil {
			continue
		}
		s.Reason, s.Message = w.reason, w.message
		if w.ofKueue && w.all {
			s.State, s.Assigned = v1alpha1.StatePending, nil
		}
	}
}
