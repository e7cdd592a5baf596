package scheduling

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// mustStay tells whether what exists of a group has to stay in a cluster that the group is not
// wanted in.
func (p *scheduler) mustStay(i int, group *reservation.ReplicaGroup) bool {
	c := &p.Candidates[i]
	switch {
	case !p.eligibility[i].mustLeave && !p.eligibility[i].eligible():
		return true
	case c.StopPolicy == v1alpha1.StopAbandon:
		return !c.Orphaned
	case c.Used || !p.hasMoved(i, group):
		return true
	case p.failedIn(i, group):
		return false
	case !p.replaced(i, group):
		return true
	}
	// The last ready group stays until no more requests can reach the cluster.
	return c.MayReceiveTraffic && p.allReplaced(i)
}

// allReplaced tells whether all that answers in a cluster is ready in others. Each of a thousand groups asks that.
func (p *scheduler) allReplaced(i int) bool {
	all, known := p.emptied[i]
	if !known {
		all = !slices.ContainsFunc(p.Groups, func(g reservation.ReplicaGroup) bool { return p.canAnswer(&g, i) && !p.replaced(i, &g) })
		p.emptied[i] = all
	}
	return all
}

// keepsQueue tells whether requests may wait in a cluster in which nothing of the service is to run any more. The
// endpoint picker stays there until the fleet's gateway sends them elsewhere. While the service has no other place, it also
// stays when the gateway sends it nothing, such as after it was not ready. Without a fleet route, or where that does not lead, it
// stays until the next one is ready.
func (p *scheduler) keepsQueue(i int, d *Decision) bool {
	c := &p.Candidates[i]
	if !p.Waits || len(p.Groups) == 0 || d.State != v1alpha1.StateNotPlaced || d.Abandoned || !c.Exists {
		return false
	}
	nowhere := !slices.ContainsFunc(p.assigned, func(groups []reservation.ReplicaGroup) bool { return len(groups) > 0 })
	if nowhere {
		return c.mayEverReceive()
	}
	return c.MayReceiveTraffic || !p.takenOver(i)
}

// takenOver tells whether requests can wait, or be answered, where a service is to run instead.
func (p *scheduler) takenOver(i int) bool {
	return p.another(i, func(j int, c *Candidate) bool { return len(p.assigned[j]) > 0 && c.takesOver(&p.Candidates[i]) })
}

// queueLeaves says when a cluster is left in which requests wait.
func (p *scheduler) queueLeaves(i int) string {
	switch j := p.unroutableTarget(i); {
	case j != "":
		return cannotLeave(j)
	case !p.Candidates[i].MayReceiveTraffic:
		return ", and is left once requests can wait elsewhere"
	}
	return ", and is left once no gateway sends requests there"
}

// cannotLeave says that a cluster cannot be left for another one.
func cannotLeave(target string) string {
	return ", and cannot be left: " + target + " has no entrypoint to which requests can be sent"
}

// withoutReplicas returns groups of which nothing is requested.
func withoutReplicas(groups []reservation.ReplicaGroup) []reservation.ReplicaGroup {
	all := make([]reservation.ReplicaGroup, 0, len(groups))
	for i := range groups {
		all = append(all, reservation.ReplicaGroup{Name: groups[i].Name})
	}
	return all
}

// hasMoved tells whether the home of a group is another cluster, and was that already in the
// request that was read back. So two reads of different age never stop both copies: each stops
// only what the same written record has given up.
func (p *scheduler) hasMoved(i int, group *reservation.ReplicaGroup) bool {
	if p.Policy != v1alpha1.PlacementFailover && p.Policy != v1alpha1.PlacementSpread {
		return true // Each cluster has a copy of its own.
	}
	recorded, now := p.Homes[group.Name], p.homes[group.Name]
	return recorded.Epoch > 0 && !p.recordedIn(group.Name, i) && recorded.Cluster == now.Cluster && now.Epoch > 0
}

// failedIn tells whether a group could never answer in a cluster, and nothing of it is ready there. If the
// cluster cannot be read, some may have become ready since.
func (p *scheduler) failedIn(i int, group *reservation.ReplicaGroup) bool {
	c, h := &p.Candidates[i], p.homes[group.Name]
	if h.FailedIn == "" || h.FailedIn != c.Name || p.Homes[group.Name].FailedIn != c.Name || c.Unknown != "" || c.Unreachable != nil {
		return false
	}
	return !slices.ContainsFunc(group.Replicas, func(r reservation.ReplicaRequest) bool { return c.Ready[r.Name] || c.WasReady[r.Name] })
}

// replaced tells whether what a cluster has of a group is ready in another one. If requests may
// reach it here, they also have to reach it there.
func (p *scheduler) replaced(i int, group *reservation.ReplicaGroup) bool {
	return p.readyElsewhere(i, group, func(c *Candidate) bool { return c.takesOver(&p.Candidates[i]) })
}

// readyElsewhere tells whether what a cluster has of a group is ready in another one that the
// group is assigned to, and for which the predicate is true. The group has to be able to answer there, or to have
// all replicas ready that it requires. Required replicas that fit nowhere keep no second copy for ever, nor do roles
// of which none is required.
func (p *scheduler) readyElsewhere(i int, group *reservation.ReplicaGroup, is func(*Candidate) bool) bool {
	return p.another(i, func(j int, c *Candidate) bool {
		return c.StopPolicy != v1alpha1.StopAbandon && p.runs[j][group.Name] && c.covers(&p.Candidates[i], group) && (p.canAnswer(group, j) || c.hasRequired(group)) && is(c)
	})
}

// unroutableTarget returns a cluster to which the service moves, and to which no requests can
// be sent.
func (p *scheduler) unroutableTarget(i int) string {
	for j := range p.Candidates {
		if c := &p.Candidates[j]; j != i && len(p.assigned[j]) > 0 && p.Candidates[i].mayEverReceive() && c.RouterReady && c.NoEntrypoint {
			return c.Name
		}
	}
	return ""
}

// mayServeCopy tells whether a cluster that takes nothing new may still serve its copy of the service, so that its traffic stays: it
// cannot be read, or what was edited would have the copy elsewhere. It does not if it stopped receiving traffic before.
func (p *scheduler) mayServeCopy(i int) bool {
	c, reason := &p.Candidates[i], p.eligibility[i].reason
	return p.Policy == v1alpha1.PlacementReplicate && !c.Deselected && c.StopPolicy != v1alpha1.StopDrain &&
		(reason == ReasonUnknown || reason != "" && reason == c.OutOfScope)
}

// servedElsewhere tells whether all that exists in a cluster is ready to serve in others that
// it is assigned to. Of two copies that both leave, neither counts for the other. Once some is ready
// elsewhere, groups that answer nothing do not count: they may have to wait there until the others have
// left (moveInParts).
func (p *scheduler) servedElsewhere(i int) bool {
	c, some, silent := &p.Candidates[i], false, false
	serves := func(o *Candidate) bool { return o.RouterReady && !o.NoEntrypoint && o.acceptsFor(c) }
	for _, group := range p.Groups {
		switch {
		case !c.present(group):
		case p.readyElsewhere(i, &group, serves):
			some = true
		case p.canAnswer(&group, i):
			return false
		default:
			silent = true
		}
	}
	return some || !silent
}
