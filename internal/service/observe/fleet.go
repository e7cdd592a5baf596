package observe

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// local is the cluster plan of the objects that are in the cluster of the XR while the
// service runs in others.
func (e *evaluator) local() *plan.ClusterPlan {
	return &plan.ClusterPlan{Target: e.plan.Local(), Base: e.plan.Service.Name}
}

// clusters has what was decided about each cluster. Outside of the fleet the service runs
// in the clusters that the placement names.
func (e *evaluator) clusters() []v1alpha1.ClusterStatus {
	var all []v1alpha1.ClusterStatus
	if e.plan.Schedule == nil {
		for i := range e.plan.Clusters {
			if t := e.plan.Clusters[i].Target; t.Remote() {
				all = append(all, v1alpha1.ClusterStatus{Name: t.Cluster, State: v1alpha1.StatePlaced})
			}
		}
		return all
	}
	for i := range e.plan.Schedule.Assignments {
		d := &e.plan.Schedule.Assignments[i]
		s := v1alpha1.ClusterStatus{Name: d.Name, State: d.State, Reason: d.Reason, Message: text.OneLine(d.Message)}
		s.Assigned = assigned(d)
		if e.plan.FleetRoute != nil {
			for _, b := range e.plan.FleetRoute.Backends {
				if b.Cluster == d.Name {
					s.Weight = &b.Weight
				}
			}
		}
		all = append(all, s)
	}
	return all
}

// assigned are the replicas that run in a cluster: whole groups, or some of a role's.
func assigned(a *scheduling.Assignment) []v1alpha1.Replicas {
	var groups []v1alpha1.Replicas
	var single []key.ReplicaID
	for _, g := range a.Groups {
		if !slices.ContainsFunc(g.Replicas, func(r reservation.ReplicaRequest) bool { return a.Run[r.Name] }) {
			continue
		}
		if index, ok := g.Name.Index(); ok {
			groups = append(groups, v1alpha1.Replicas{Group: ptr.To(index)})
			continue
		}
		single = append(single, key.ReplicaID(g.Name))
	}
	return append(groups, scheduling.ReplicasToStatus(single)...)
}

// stable tells that no replica waits for capacity, and none moves from one cluster to
// another.
func (e *evaluator) stable() bool {
	if e.plan.Schedule == nil {
		return true
	}
	return !slices.ContainsFunc(e.plan.Schedule.Assignments, func(d scheduling.Assignment) bool {
		waits := len(d.Pending) > 0
		for r := range d.Extra {
			waits = waits || !d.Run[r]
		}
		return waits || d.State == v1alpha1.StateLeaving || d.State == v1alpha1.StatePending || d.Reason == scheduling.ReasonUnreachable || d.Reason == scheduling.ReasonUnknown
	})
}

// placed is True while all replicas have a cluster. Otherwise it says for each cluster what
// is missing. A service that sleeps has a cluster, too: requests wait there. A cluster that is out of
// reach keeps its reservations. One whose InferenceCluster cannot be read may have none for the service.
func (e *evaluator) placed() composite.Condition {
	if e.plan.Schedule == nil {
		return composite.Condition{Type: IsPlaced, Status: composite.True, Reason: ReasonNoFleet}
	}
	var missing, other []string
	silent := map[string][]string{} // The clusters where it is placed that do not answer, by the reason.
	reason, has := "", false
	for i := range e.plan.Schedule.Assignments {
		d := &e.plan.Schedule.Assignments[i]
		has = has || len(d.Run) > 0 || d.State == v1alpha1.StatePlaced
		message := text.Cluster(d.Name) + ": " + text.OneLine(d.Message)
		switch w := e.waitIn(d.Name, d.State, d.Reason, text.OneLine(d.Message)); {
		case len(d.Pending) > 0 || d.State == v1alpha1.StateLeaving:
			missing = append(missing, message)
			if reason == "" {
				reason = d.Reason
			}
		case w != nil && w.ofKueue:
			missing = append(missing, text.Cluster(d.Name)+": "+w.message)
			reason = cmp.Or(reason, w.reason)
		case d.State == v1alpha1.StatePlaced && (d.Reason == scheduling.ReasonUnreachable || d.Reason == scheduling.ReasonUnknown):
			silent[d.Reason] = append(silent[d.Reason], message)
		case d.State == v1alpha1.StateNotPlaced && d.Reason != scheduling.ReasonNotNeeded:
			other = append(other, message)
			if len(other) == 1 && reason == "" {
				reason = d.Reason
			}
		case d.Reason == scheduling.ReasonStartTimedOut:
			other = append(other, message)
		}
	}
	unknown, lost := silent[scheduling.ReasonUnknown], silent[scheduling.ReasonUnreachable]
	c := composite.Condition{Type: IsPlaced, Status: composite.True, Reason: ReasonPlaced, Message: text.List(slices.Concat(missing, unknown, lost, other))}
	switch {
	case len(e.plan.Schedule.Assignments) == 0:
		return composite.Condition{Type: IsPlaced, Status: composite.False, Reason: ReasonNoCluster, Message: text.WithReason("no InferenceCluster is selected", e.unselected())}
	case len(missing) > 0 || !has && len(other) > 0:
		c.Status, c.Reason = composite.False, reason
	case len(unknown) > 0:
		c.Status, c.Reason = composite.Unknown, scheduling.ReasonUnknown
	case len(lost) > 0:
		c.Reason = scheduling.ReasonUnreachable
	}
	return c
}

// unselected says by which labels no cluster is selected.
func (e *evaluator) unselected() string {
	if e.plan.Schedule.Selector == "" {
		return ""
	}
	return "none that the service may use has the labels " + e.plan.Schedule.Selector
}

// secretsInPlace says which Secrets users have to create in other clusters.
func (e *evaluator) secretsInPlace() composite.Condition {
	if len(e.plan.Secrets) == 0 {
		return composite.Condition{Type: SecretsInPlace, Status: composite.True, Reason: ReasonNoSecrets}
	}
	var where []string
	for i := range e.plan.Clusters {
		if t := e.plan.Clusters[i].Target; t.Remote() {
			where = append(where, "namespace "+t.Namespace+" of cluster "+t.Cluster)
		}
	}
	if len(where) == 0 {
		// No cluster of the fleet has taken any of it yet. In all of them, the namespace has the name of its own.
		where = []string{"namespace " + e.plan.Service.Namespace + " of each cluster where they run"}
	}
	return composite.Condition{
		Type: SecretsInPlace, Status: composite.True, Reason: ReasonNotChecked,
		Message: text.Cut("Secrets are not copied to other clusters. Pods need "+strings.Join(e.plan.Secrets, ", ")+" in "+strings.Join(where, ", "), text.MaxMessage),
	}
}
