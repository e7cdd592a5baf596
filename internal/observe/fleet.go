package observe

import (
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// local is where the objects are that stay beside the XR while the service runs in
// other clusters.
func (j *judgement) local() *plan.Deployment {
	return &plan.Deployment{Target: j.plan.Local(), Base: j.plan.Service.Name}
}

// placement tells of each cluster what was decided.
func (j *judgement) placement() []v1alpha1.PlacementStatus {
	if j.plan.Fleet == nil {
		return nil
	}
	all := make([]v1alpha1.PlacementStatus, 0, len(j.plan.Fleet.Decisions))
	for i := range j.plan.Fleet.Decisions {
		d := &j.plan.Fleet.Decisions[i]
		s := v1alpha1.PlacementStatus{Cluster: d.Name, State: v1alpha1.PlacementState(d.State), Reason: d.Reason, Message: oneLine(d.Message)}
		for _, u := range d.Units {
			if slices.ContainsFunc(u.Replicas, func(r fleet.Replica) bool { return d.Run[r.Name] }) {
				s.Units = append(s.Units, u.Name)
			}
		}
		if j.plan.Hub != nil {
			for _, b := range j.plan.Hub.Backends {
				if b.Cluster == d.Name {
					s.Weight = &b.Weight
				}
			}
		}
		all = append(all, s)
	}
	return all
}

// settled tells that nobody waits for room, and nothing is on its way from one cluster
// to another.
func (j *judgement) settled() bool {
	if j.plan.Fleet == nil {
		return true
	}
	return !slices.ContainsFunc(j.plan.Fleet.Decisions, func(d fleet.Decision) bool {
		return len(d.Wait) > 0 || d.State == fleet.Leaving || d.State == fleet.Waiting || d.Reason == fleet.ReasonUnreachable || d.Reason == fleet.ReasonUnknown
	})
}

// timed tells that the service leaves a cluster at some time that is still to come.
func (j *judgement) timed() bool {
	return j.plan.Fleet != nil && slices.ContainsFunc(j.plan.Fleet.Decisions, func(d fleet.Decision) bool { return d.Timed })
}

// placed is True while all of the service has a place, and tells of each cluster that
// keeps it from that what is missing.
func (j *judgement) placed() Condition {
	if j.plan.Fleet == nil {
		return Condition{Type: IsPlaced, Status: True, Reason: ReasonNoFleet}
	}
	var missing, other []string
	reason, runs := "", false
	for i := range j.plan.Fleet.Decisions {
		d := &j.plan.Fleet.Decisions[i]
		runs = runs || len(d.Run) > 0
		text := d.Name + ": " + oneLine(d.Message)
		switch {
		case len(d.Wait) > 0 || d.State == fleet.Leaving:
			missing = append(missing, text)
			if reason == "" {
				reason = d.Reason
			}
		case d.State == fleet.NotPlaced && d.Reason != fleet.ReasonNotNeeded:
			other = append(other, text)
			if len(other) == 1 && reason == "" {
				reason = d.Reason
			}
		}
	}
	switch {
	case len(j.plan.Fleet.Decisions) == 0:
		return Condition{Type: IsPlaced, Status: False, Reason: ReasonNoCluster, Message: "no InferenceCluster is selected"}
	case len(missing) > 0 || !runs && len(other) > 0:
		return Condition{Type: IsPlaced, Status: False, Reason: reason, Message: join(append(missing, other...), maxList)}
	}
	return Condition{Type: IsPlaced, Status: True, Reason: ReasonPlaced, Message: join(other, maxList)}
}

// secretsInPlace says which Secrets somebody has to bring to other clusters.
func (j *judgement) secretsInPlace() Condition {
	if len(j.plan.Secrets) == 0 {
		return Condition{Type: SecretsInPlace, Status: True, Reason: ReasonNoSecrets}
	}
	var where []string
	for i := range j.plan.Deployments {
		if t := j.plan.Deployments[i].Target; t.Remote() {
			where = append(where, "namespace "+t.Namespace+" of cluster "+t.Cluster)
		}
	}
	return Condition{
		Type: SecretsInPlace, Status: Unknown, Reason: ReasonNotChecked,
		Message: cut("Secrets are not carried to other clusters. Pods need "+strings.Join(j.plan.Secrets, ", ")+" in "+strings.Join(where, ", "), maxList),
	}
}
