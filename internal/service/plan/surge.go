package plan

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// An extraCount is how many units of one kind run beyond those that are wanted.
type extraCount struct {
	// asked is how many the rollout asks for. Those from there on are kept, because they serve in the
	// place of others.
	asked, all int32
}

// extraDemand returns what a rollout runs in clusters of the fleet beyond what is wanted, by the
// cluster. Capacity has to be reserved for it, so it is part of what the service requests. Each
// cluster has its own: one without room does not hold up the others.
func (p *Plan) extraDemand(running *Running, pods []map[string]int64) map[string][]reservation.ReplicaGroup {
	all := make(map[string][]reservation.ReplicaGroup, len(p.snapshot.States))
	p.extra = make(map[string]map[string]extraCount, len(p.snapshot.States))
	for name := range p.snapshot.States {
		if *p.Rollout.MaxSurge == 0 && !p.surges(&ClusterPlan{Target: scheduling.Target{Cluster: name}}, running) {
			continue
		}
		p.extra[name] = p.extraUnits(p.present(name), running)
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

// requestExtra returns what extra units of a cluster request. A part of a unit is of no use.
func (p *Plan) requestExtra(c *ClusterPlan, units map[string]extraCount, pods []map[string]int64) []reservation.ReplicaGroup {
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
	if p.inFleet {
		return
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if *p.Rollout.MaxSurge == 0 && !p.surges(c, running) {
			continue
		}
		for _, r := range p.extraReplicas(c, p.extraUnits(c, running)) {
			p.Rollout.Surge = true
			c.addExtra(p, r)
		}
	}
}

// surges tells whether extra units exist in a cluster.
func (p *Plan) surges(c *ClusterPlan, running *Running) bool {
	return slices.ContainsFunc(p.kinds(), func(kind string) bool { return running.hasExtra(p.extraUnit(c, kind, 0)) })
}

// extraUnits returns how many units of each kind run in a cluster beyond those that are wanted. The
// plan of the cluster has none of them so far.
func (p *Plan) extraUnits(c *ClusterPlan, running *Running) map[string]extraCount {
	asked, all := p.unfinished(c, running), map[string]extraCount{}
	for _, kind := range p.kinds() {
		all[kind] = extraCount{asked: asked[kind], all: p.keep(c, kind, asked[kind], running)}
	}
	return all
}

// keep returns how many extra units of a kind run. If the surge was lowered, or the partition raised,
// there are more than the rollout asks for. Those that serve go once the units that are wanted serve
// without them, the last one first. What does not serve goes at once.
func (p *Plan) keep(c *ClusterPlan, kind string, asked int32, running *Running) int32 {
	missing, all := 0, asked
	for _, u := range p.unitsOf(c) {
		if u.kind == kind && !u.state(running).Serving {
			missing++
		}
	}
	for n := int32(0); ; n++ {
		u := p.extraUnit(c, kind, n)
		if n >= asked && !running.hasExtra(u) {
			return all
		}
		serving := p.serving(u, running)
		// A unit that stays keeps those before it, so that they are found again.
		if n >= asked && serving > 0 && missing > 0 {
			all = n + 1
		}
		missing -= serving
	}
}

// serving counts the units that serve, of an extra one: in a group each replica counts, unless they
// change in pairs.
func (p *Plan) serving(extra []Replica, running *Running) int {
	n := 0
	for i := range extra {
		if running.Replica(extra[i].Key).Serving {
			n++
		}
	}
	switch {
	case !p.ChangesInPairs():
		return n
	case n == len(extra):
		return 1
	}
	return 0
}

// hasExtra tells whether a replica of an extra unit exists. A replica that the service was scaled down
// by may have the same name, and is none.
func (r *Running) hasExtra(unit []Replica) bool {
	return slices.ContainsFunc(unit, func(replica Replica) bool {
		s := r.Replica(replica.Key)
		return s.Exists && s.Extra
	})
}

// unfinished returns for each kind of unit how many have to get the newest template. While extra
// units of the kind exist, those that do not serve count too.
func (p *Plan) unfinished(c *ClusterPlan, running *Running) map[string]int32 {
	surging := map[string]bool{}
	for _, kind := range p.kinds() {
		surging[kind] = running.hasExtra(p.extraUnit(c, kind, 0))
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

// kinds of the units, in the order of the roles.
func (p *Plan) kinds() []string {
	var all []string
	for _, r := range p.Roles {
		if k := p.kind(r); !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}

// extraReplicas returns the replicas of some units beyond those of a cluster, by their kinds.
func (p *Plan) extraReplicas(c *ClusterPlan, units map[string]extraCount) []Replica {
	var all []Replica
	for _, kind := range p.kinds() {
		for n := range units[kind].all {
			for _, r := range p.extraUnit(c, kind, n) {
				r.Kept = n >= units[kind].asked
				all = append(all, r)
			}
		}
	}
	return all
}

// extraUnit returns the replicas of one unit beyond those of a cluster. The first one has the number 0.
func (p *Plan) extraUnit(c *ClusterPlan, kind string, number int32) []Replica {
	var all []Replica
	for _, r := range p.Roles {
		if p.kind(r) != kind || r.Replicas == 0 {
			continue
		}
		group, first, n := int32(0), r.Replicas+number, int32(1)
		switch {
		case p.Service.Grouped:
			group, first, n = p.groups+number, 0, r.Replicas
		case p.ChangesInPairs():
			n = p.perPair(r)
			first = r.Replicas + number*n
		}
		for i := range n {
			replica := p.replica(c, r, group, first+i)
			replica.Extra = true
			all = append(all, replica)
		}
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
