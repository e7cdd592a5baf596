package plan

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// extraDemand returns what a rollout runs in clusters of the fleet beyond what is wanted, by the
// cluster. Capacity has to be reserved for it, so it is part of what the service requests. Each
// cluster has its own: one without room does not hold up the others.
func (p *Plan) extraDemand(running *Running, pods []map[string]int64) map[string][]reservation.ReplicaGroup {
	if *p.Rollout.MaxSurge == 0 {
		return nil
	}
	all := make(map[string][]reservation.ReplicaGroup, len(p.snapshot.States))
	p.extra = make(map[string]map[string]int32, len(p.snapshot.States))
	for name := range p.snapshot.States {
		p.extra[name] = p.unfinished(p.present(name), running)
		all[name] = p.requestExtra(p.empty(name), p.extra[name], pods)
	}
	return all
}

// empty is the plan of a cluster before anything is placed there.
func (p *Plan) empty(cluster string) *ClusterPlan {
	c := p.layout(scheduling.Target{Cluster: cluster}, p.spec.Replicas)
	return &c
}

// present is the plan of a cluster with the replicas that exist there. The others may run elsewhere.
func (p *Plan) present(cluster string) *ClusterPlan {
	c := p.empty(cluster)
	for i := range c.Groups {
		g := &c.Groups[i]
		g.Replicas = slices.DeleteFunc(g.Replicas, func(r Replica) bool { return !p.snapshot.States[cluster].Present[r.ID] })
	}
	return c
}

// mostExtra is the most units of each kind that may run beyond those that are wanted.
func (p *Plan) mostExtra() map[string]int32 {
	most := map[string]int32{}
	for _, r := range p.Roles {
		most[p.kind(r)] = *p.Rollout.MaxSurge
	}
	return most
}

// requestExtra returns what extra units of a cluster request. A part of a unit is of no use.
func (p *Plan) requestExtra(c *ClusterPlan, units map[string]int32, pods []map[string]int64) []reservation.ReplicaGroup {
	type unit struct {
		kind  string
		index int32
	}
	var all []reservation.ReplicaGroup
	at := map[unit]int{}
	for _, r := range p.extraReplicas(c, units) {
		of, name := unit{p.kind(r.Role), p.unitIndex(&r)}, key.GroupOfReplica(r.ID)
		if p.Service.Grouped {
			of.kind, name = "", key.GroupOf(r.Group)
		}
		i, known := at[of]
		if !known {
			i = len(all)
			at[of] = i
			all = append(all, reservation.ReplicaGroup{Name: name})
		}
		all[i].Replicas = append(all[i].Replicas, reservation.ReplicaRequest{Name: r.ID, Pods: pods[slices.Index(p.Roles, r.Role)], Required: true})
	}
	return all
}

// unitIndex is the index of the unit that a replica is in.
func (p *Plan) unitIndex(r *Replica) int32 {
	switch {
	case p.Service.Grouped:
		return r.Group
	case p.ChangesInPairs():
		return p.pair(r.Role, r.Index)
	}
	return r.Index
}

// surge adds units beyond those that are wanted, while replicas have to get the newest template:
// at most as many as there are units that have to, or do not serve with it so far. In the fleet that
// is decided earlier (extraDemand).
func (p *Plan) surge(running *Running) {
	if *p.Rollout.MaxSurge == 0 || p.inFleet {
		return
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		for _, r := range p.extraReplicas(c, p.unfinished(c, running)) {
			p.Rollout.Surge = true
			c.addExtra(p, r)
		}
	}
}

// unfinished returns for each kind of unit how many have to get the newest template. While extra
// units of the kind exist, those that do not serve count too.
func (p *Plan) unfinished(c *ClusterPlan, running *Running) map[string]int32 {
	surging := map[string]bool{}
	for _, r := range p.extraReplicas(c, p.mostExtra()) {
		if running.Replica(r.Key).Exists {
			surging[p.kind(r.Role)] = true
		}
	}
	// Replicas of one group and kind get one extra group.
	seen, n := map[string]map[int32]bool{}, map[string]int32{}
	for _, u := range p.unitsOf(c) {
		s := u.state(running)
		release := s.Outdated && !p.Rollout.Paused || surging[s.Kind] && (s.Outdated || !s.Serving)
		if !release || s.Index < *p.Rollout.Partition || seen[s.Kind][s.Index] {
			continue
		}
		if seen[s.Kind] == nil {
			seen[s.Kind] = map[int32]bool{}
		}
		seen[s.Kind][s.Index] = true
		n[s.Kind] = min(n[s.Kind]+1, *p.Rollout.MaxSurge)
	}
	return n
}

// kind of the units that the replicas of a role are in.
func (p *Plan) kind(r *Role) string {
	if p.ChangesInPairs() {
		return ""
	}
	return r.Name
}

// extraReplicas returns the replicas of some units beyond those of a cluster, by their kinds.
func (p *Plan) extraReplicas(c *ClusterPlan, units map[string]int32) []Replica {
	var all []Replica
	for _, r := range p.Roles {
		n := units[p.kind(r)]
		switch {
		case r.Replicas == 0:
			continue
		case p.Service.Grouped:
			for i := range n {
				for j := range r.Replicas {
					all = append(all, p.replica(c, r, int32(len(c.Groups))+i, j)) //nolint:gosec // The API allows a few hundred.
				}
			}
			continue
		case p.ChangesInPairs():
			n *= p.perPair(r)
		}
		for i := range n {
			all = append(all, p.replica(c, r, 0, r.Replicas+i))
		}
	}
	for i := range all {
		all[i].Extra = true
	}
	return all
}

// addExtra adds an extra replica to its group, which it may make.
func (c *ClusterPlan) addExtra(p *Plan, r Replica) {
	i := slices.IndexFunc(c.Groups, func(g Group) bool { return g.Index == r.Group })
	if i < 0 {
		i = len(c.Groups)
		c.Groups = append(c.Groups, Group{Index: r.Group})
	}
	g := &c.Groups[i]
	g.Replicas = append(g.Replicas, r)
	c.addGang(p, g, p.gang)
}
