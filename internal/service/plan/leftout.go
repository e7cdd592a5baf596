package plan

import (
	"iter"
	"slices"
)

// leaveTaken leaves out replicas that do not exist, and whose names or whose gang's name somebody else has. What runs goes on as if they
// were not wanted: no rollout, gang or budget waits for them. Of a group of spec.replicas, all that does not exist is left out, because its
// roles need each other.
func (p *Plan) leaveTaken(running *RunningView) {
	if running.Taken == nil {
		return
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		for j := range c.Groups {
			g := &c.Groups[j]
			absent := func(r Replica) bool { return !running.Observed(r.Key) }
			taken := func(r Replica) bool { return absent(r) && running.Taken(r.Key, r.Name) }
			if p.Service.Grouped && (slices.ContainsFunc(g.Replicas, taken) || g.gangTaken(running)) {
				taken = absent
			}
			c.leaveOut(p, g, taken, running)
		}
	}
}

// gangTaken tells whether the PodGroup of a group does not exist, and somebody else has its name.
func (g *Group) gangTaken(running *RunningView) bool {
	return g.PodGroup != nil && !running.Observed(g.PodGroup.Key) && running.Taken(g.PodGroup.Key, g.PodGroup.Name)
}

// leaveOut leaves some replicas of a group out, and its gang if there are no others.
func (c *ClusterPlan) leaveOut(p *Plan, g *Group, out func(Replica) bool, running *RunningView) {
	if !slices.ContainsFunc(g.Replicas, out) {
		return
	}
	left := Group{Index: g.Index}
	var stay []Replica
	for _, r := range g.Replicas {
		if out(r) {
			left.Replicas = append(left.Replicas, r)
		} else {
			stay = append(stay, r)
		}
	}
	if len(stay) == 0 && g.PodGroup != nil && !running.Observed(g.PodGroup.Key) {
		left.PodGroup = g.PodGroup
	}
	g.Replicas = stay
	c.addGang(p, g, p.gang)
	c.LeftOut = append(c.LeftOut, left)
}

// LeftOutReplicas yields the replicas of the cluster that are left out.
func (c *ClusterPlan) LeftOutReplicas() iter.Seq[*Replica] {
	return func(yield func(*Replica) bool) { eachReplica(c.LeftOut, yield) }
}

// NamedReplicas yields the replicas of all clusters that have names: those that are rendered, and those that are left out.
func (p *Plan) NamedReplicas() iter.Seq2[*ClusterPlan, *Replica] {
	return func(yield func(*ClusterPlan, *Replica) bool) {
		for i := range p.Clusters {
			c := &p.Clusters[i]
			next := func(r *Replica) bool { return yield(c, r) }
			if !eachReplica(c.Groups, next) || !eachReplica(c.LeftOut, next) {
				return
			}
		}
	}
}

// eachReplica yields the replicas of some groups, and tells whether to go on with other groups.
func eachReplica(groups []Group, yield func(*Replica) bool) bool {
	for i := range groups {
		for j := range groups[i].Replicas {
			if !yield(&groups[i].Replicas[j]) {
				return false
			}
		}
	}
	return true
}
