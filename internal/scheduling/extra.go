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
	answered, accepted := v.answered(candidates, decisions)
	for i := range decisions {
		c := &candidates[i]
		v.addExtraTo(&decisions[i], c, v.demand.Extra[members[i].target.Cluster], accepted || answered && c.Refused)
	}
}

// answered tells whether requests get an answer in any cluster, and whether they do in one whose gateways accept the service.
func (v *view) answered(candidates []Candidate, decisions []Decision) (answered, accepted bool) {
	for i := range decisions {
		if c := &candidates[i]; decisions[i].Serves && v.answers(c, &decisions[i]) {
			answered, accepted = true, accepted || !c.Refused
		}
	}
	return answered, accepted
}

// addExtraTo adds extra replicas to one cluster. served tells that requests get an answer without them.
func (v *view) addExtraTo(d *Decision, c *Candidate, extra []reservation.ReplicaGroup, served bool) {
	alone := len(extra) > 0 && v.runsAlone(d, c)
	switch {
	case len(d.Run) > 0:
	case d.State != v1alpha1.StatePending:
		if v.endsExtra(d, c, len(extra), served) {
			return
		}
	case alone && served && !c.MayReceiveTraffic:
		return
	}
	d.Extra, d.Partial = map[key.ReplicaID]bool{}, map[key.ReplicaID]bool{}
	for _, group := range extra {
		d.addExtra(c, group)
	}
	if alone {
		d.Serves = d.Serves || c.hasAny(d.Run) && !served
	}
}

// runsAlone tells whether nothing that is wanted in a cluster exists there so far. It may wait for capacity that extra replicas have, or be about
// to start. Extra replicas may be all that serves until then.
func (v *view) runsAlone(d *Decision, c *Candidate) bool {
	expected := d.State == v1alpha1.StatePending || d.State == v1alpha1.StatePlaced
	return expected && !d.Abandoned && v.placement.Policy != v1alpha1.PlacementReplicate && !c.hasAny(d.Run)
}

// endsExtra tells whether extra replicas end in a cluster in which nothing is wanted any more. If not, the service leaves the cluster.
func (v *view) endsExtra(d *Decision, c *Candidate, extra int, served bool) bool {
	until := "no gateway sends requests to it"
	if !v.demand.HasFleetRoute {
		until = "another one answers"
	}
	switch {
	case extra == 0, d.Abandoned && c.Orphaned:
		return true
	case !d.Abandoned && !c.MayReceiveTraffic && (served || v.demand.HasFleetRoute || len(v.demand.Groups) == 0):
		return true
	case d.Abandoned:
		d.State = v1alpha1.StateLeaving // It is forgotten only once its Objects keep what they made.
	default:
		d.State, d.Reason, d.Serves = v1alpha1.StateLeaving, ReasonNotNeeded, !served
		d.Message = "no replica is wanted here any more, and the cluster is left once " + until
	}
	return false
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

// answers tells whether requests reach a cluster and get an answer there, from a group that it is to run.
func (v *view) answers(c *Candidate, d *Decision) bool {
	if !c.RouterReady || c.NoEntrypoint && v.demand.HasFleetRoute {
		return false
	}
	return slices.ContainsFunc(d.Groups, func(g reservation.ReplicaGroup) bool {
		g.Replicas = slices.DeleteFunc(slices.Clone(g.Replicas), func(r reservation.ReplicaRequest) bool { return !d.Run[r.Name] && c.Present[r.Name] })
		return c.canAnswer(&g, v.demand.AnswerAlone)
	})
}

// hasAny tells whether any of some replicas exists in a cluster.
func (c *Candidate) hasAny(replicas map[key.ReplicaID]bool) bool {
	for name := range replicas {
		if c.Present[name] {
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
