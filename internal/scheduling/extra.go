package scheduling

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// addExtra adds to each cluster that runs the service, or waits to, what a rollout runs there beyond what
// is wanted.
// It is added after everything else is decided, so a service never moves because of it, and never
// waits for it to move. What is wanted gets its capacity first. Until then, and where a cluster is
// left, what exists stays, and nothing is added. Where nothing runs that is wanted, it stays as long as
// a gateway may send requests there. Without a route that leads to all clusters, it stays until another cluster answers.
func (v *view) addExtra(members []member, candidates []Candidate, decisions []Decision) {
	served := false
	for i := range decisions {
		served = served || decisions[i].Serves && candidates[i].answers(&decisions[i])
	}
	for i := range decisions {
		d, c, extra := &decisions[i], &candidates[i], v.demand.Extra[members[i].target.Cluster]
		// What is wanted may wait for capacity that extra replicas have. They may be all that serves until another cluster answers.
		inTheWay := len(extra) > 0 && len(d.Run) == 0 && d.State == v1alpha1.StatePending && v.placement.Policy != v1alpha1.PlacementReplicate
		if inTheWay && served && !c.MayReceiveTraffic {
			continue
		}
		if len(d.Run) == 0 && d.State != v1alpha1.StatePending {
			until := "no gateway sends requests to it"
			if !v.demand.HasFleetRoute {
				until = "another one answers"
			}
			switch {
			case len(extra) == 0, d.Abandoned && c.Orphaned:
				continue
			case !d.Abandoned && !c.MayReceiveTraffic && (served || v.demand.HasFleetRoute || len(v.demand.Groups) == 0):
				continue
			case d.Abandoned:
				d.State = v1alpha1.StateLeaving // It is forgotten only once its Objects keep what they made.
			default:
				d.State, d.Reason, d.Serves = v1alpha1.StateLeaving, ReasonNotNeeded, !served
				d.Message = "no replica is wanted here any more, and the cluster is left once " + until
			}
		}
		d.Extra, d.Partial = map[key.ReplicaID]bool{}, map[key.ReplicaID]bool{}
		for _, group := range extra {
			d.addExtra(c, group)
		}
		if inTheWay {
			d.Serves = len(d.Run) > 0 && !d.Abandoned && !served
		}
	}
}

// addExtra adds a group of extra replicas. Where something is missing that is wanted, or the cluster is
// left, only those are added that exist.
func (d *Decision) addExtra(c *Candidate, group reservation.ReplicaGroup) {
	group.Replicas = slices.Clone(group.Replicas)
	if d.State != v1alpha1.StatePlaced || len(d.Pending) > 0 {
		group.Replicas = slices.DeleteFunc(group.Replicas, func(r reservation.ReplicaRequest) bool { return !c.Present[r.Name] })
	}
	if len(group.Replicas) == 0 {
		return
	}
	d.Groups = append(slices.Clone(d.Groups), group)
	for j := range group.Replicas {
		r := &group.Replicas[j]
		d.Extra[r.Name] = true
		if c.existsOrReserved(r) {
			d.Run[r.Name] = true
		}
	}
}

// answers tells whether any replica that a cluster is to run is ready there, and gets requests.
func (c *Candidate) answers(d *Decision) bool {
	for name := range d.Run {
		if c.Ready[name] && c.RouterReady {
			return true
		}
	}
	return false
}

// wholeExtra starts no part of an extra group: its unit would count as one that serves.
func (v *view) wholeExtra(m member, c *Candidate, d *Decision) {
	for _, group := range v.demand.Extra[m.target.Cluster] {
		if !slices.ContainsFunc(group.Replicas, func(r reservation.ReplicaRequest) bool { return !d.Run[r.Name] }) {
			continue
		}
		for _, r := range group.Replicas {
			if !c.Present[r.Name] {
				delete(d.Run, r.Name)
			}
			if d.Run[r.Name] {
				d.Partial[r.Name] = true
			}
		}
	}
}

// groups returns what may run of the service in a cluster: what is wanted, and what a rollout runs
// beyond that.
func (v *view) groups(m member) []reservation.ReplicaGroup {
	return slices.Concat(v.demand.Groups, v.demand.Extra[m.target.Cluster])
}
