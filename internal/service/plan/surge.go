package plan

import (
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// An extraUnit is a unit beyond those that are wanted. They are numbered from 0. Numbers below 0 are those of groups that
// are wanted, and have replicas beyond those of their roles.
type extraUnit struct {
	number int32
	// kept ones are more than the rollout asks for. They serve in the place of others.
	kept bool
	// exist has the replicas that exist of the extra units of the cluster.
	exist existing
}

// An existing is some replicas that exist, by their groups and roles. All units of a cluster share it, because there may be
// thousands of both.
type existing struct {
	has     map[key.ReplicaID]bool
	indexes map[roleOfGroup][]int32
}

type roleOfGroup struct {
	group int32
	role  string
}

func existingOf(ids []key.ReplicaID) existing {
	e := existing{has: make(map[key.ReplicaID]bool, len(ids)), indexes: map[roleOfGroup][]int32{}}
	for _, id := range ids {
		group, role, index, _ := id.Parts()
		at := roleOfGroup{group, role}
		e.has[id], e.indexes[at] = true, append(e.indexes[at], index)
	}
	return e
}

// extraDemand returns what a rollout runs in clusters of the fleet beyond what is wanted, by the
// cluster. Capacity has to be reserved for it, so it is part of what the service requests. Each
// cluster has its own: one without room does not hold up the others.
func (p *Plan) extraDemand(running *Running, pods []map[string]int64) map[string][]reservation.ReplicaGroup {
	all := make(map[string][]reservation.ReplicaGroup, len(p.snapshot.States))
	p.extra = make(map[string]map[string][]extraUnit, len(p.snapshot.States))
	for name := range p.snapshot.States {
		ids := p.beyond(name, running, func() *ClusterPlan { return p.wanted(name) })
		if *p.Rollout.MaxSurge == 0 && len(ids) == 0 {
			continue
		}
		p.extra[name] = p.extraUnits(p.wanted(name), ids, running)
		all[name] = p.requestExtra(p.empty(name), p.extra[name], pods)
	}
	return all
}

// empty is the plan of a cluster before anything is placed there.
func (p *Plan) empty(cluster string) *ClusterPlan {
	c := p.layout(scheduling.Target{Cluster: cluster})
	return &c
}

// wanted is the plan of a cluster with the replicas that exist there, and those that the service last
// requested of it. The others run elsewhere.
func (p *Plan) wanted(cluster string) *ClusterPlan {
	here := maps.Clone(p.snapshot.States[cluster].Present)
	if p.snapshot.Request != nil {
		for _, at := range p.snapshot.Request.Clusters {
			if at.Name != cluster {
				continue
			}
			for _, r := range reservation.Replicas(at.Groups) {
				here[r.Name] = true
			}
		}
	}
	c := p.empty(cluster)
	for i := range c.Groups {
		g := &c.Groups[i]
		g.Replicas = slices.DeleteFunc(g.Replicas, func(r Replica) bool { return !here[r.ID] })
	}
	return c
}

// requestExtra returns what extra units of a cluster request. A part of a unit is of no use.
func (p *Plan) requestExtra(c *ClusterPlan, units map[string][]extraUnit, pods []map[string]int64) []reservation.ReplicaGroup {
	type id struct {
		kind  string
		index int32
	}
	var all []reservation.ReplicaGroup
	at := map[id]int{}
	for _, r := range p.extraReplicas(c, units) {
		of, name := id{p.kind(r.Role), p.unitIndex(&r)}, key.GroupID(r.ID)
		if p.Service.Grouped && r.Group >= p.groups {
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
	case p.InPair(r.Role):
		return p.pair(r.Role, r.Index)
	}
	return r.Index
}

// surge adds units beyond those that are wanted, while replicas have to get the newest template. They
// are at most as many as the units that have to get it, or do not serve with it so far. In the fleet
// that is decided earlier (extraDemand).
func (p *Plan) surge(running *Running) {
	if p.inFleet {
		return
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		ids := p.beyond(c.Target.Cluster, running, func() *ClusterPlan { return c })
		if *p.Rollout.MaxSurge == 0 && len(ids) == 0 {
			continue
		}
		extra := p.extraReplicas(c, p.extraUnits(c, ids, running))
		p.Rollout.Surge = p.Rollout.Surge || len(extra) > 0
		c.addExtra(p, extra)
	}
}

// beyond returns the replicas of the extra units that exist in a cluster. Replicas that the service is scaled
// down by become extra ones only while nothing that is wanted of their kind serves: it may be the turn of that
// in a rollout. Those that are known to be broken do not. Once they are extra, they leave one by one as what is
// wanted serves (keep). wanted returns the plan of the cluster without extra replicas.
func (p *Plan) beyond(cluster string, running *Running, wanted func() *ClusterPlan) []key.ReplicaID {
	all := slices.DeleteFunc(slices.Clone(running.Extra[cluster]), func(id key.ReplicaID) bool { _, _, is := p.extraNumber(id); return !is })
	var serves map[string]bool
	for _, id := range running.Others[cluster] {
		kind, _, is := p.extraNumber(id)
		if s := running.Replica(key.New(cluster, key.LeaderWorkerSet, string(id))); !is || s.Broken {
			continue
		}
		if serves == nil {
			serves = map[string]bool{}
			for _, u := range p.unitsOf(wanted(), running) {
				serves[u.kind] = serves[u.kind] || u.state(running).Serving
			}
		}
		if !serves[kind] {
			all = append(all, id)
		}
	}
	return all
}

// numbersOf returns the numbers of the extra units in which replicas are, by their kinds.
func (p *Plan) numbersOf(ids []key.ReplicaID) map[string][]int32 {
	all := map[string][]int32{}
	for _, id := range ids {
		if kind, number, is := p.extraNumber(id); is && !slices.Contains(all[kind], number) {
			all[kind] = append(all[kind], number)
		}
	}
	for _, numbers := range all {
		slices.Sort(numbers)
	}
	return all
}

// extraNumber returns the kind and the number of the extra unit in which a replica would be, if it is
// beyond those that are wanted.
func (p *Plan) extraNumber(id key.ReplicaID) (kind string, number int32, is bool) {
	group, name, index, ok := id.Parts()
	i := slices.IndexFunc(p.Roles, func(r *Role) bool { return r.Name == name })
	if !ok || i < 0 || id.Grouped() != p.Service.Grouped {
		return "", 0, false
	}
	r := p.Roles[i]
	beyond := index - r.Replicas
	wanted := beyond < 0
	switch {
	case p.Service.Grouped:
		beyond = group - p.groups
		wanted = wanted && beyond < 0
	case p.InPair(r):
		beyond /= p.perPair(r)
	}
	if wanted || r.Replicas == 0 {
		return "", 0, false
	}
	return p.kind(r), beyond, true
}

// extraUnits returns the units of each kind that run in a cluster beyond those that are wanted, of
// which some replicas exist. The plan of the cluster has none of them so far. A rollout asks for whole groups only.
func (p *Plan) extraUnits(c *ClusterPlan, ids []key.ReplicaID, running *Running) map[string][]extraUnit {
	all, inGroups, exist := map[string][]extraUnit{}, map[string][]extraUnit{}, existingOf(ids)
	for kind, numbers := range p.numbersOf(ids) {
		for _, number := range numbers {
			if u := (extraUnit{number: number, exist: exist}); number < 0 {
				inGroups[kind] = append(inGroups[kind], u)
			} else {
				all[kind] = append(all[kind], u)
			}
		}
	}
	asked := p.unfinished(c, all, running)
	for _, kind := range p.kinds() {
		all[kind] = append(p.keep(c, kind, all[kind], asked[kind], running), p.keep(c, kind, inGroups[kind], 0, running)...)
	}
	return all
}

// keep returns the extra units of a kind that run. The rollout asks for some, and those that exist come
// first. If the surge was lowered, or the partition raised, more exist than it asks for. They go once
// the units that are wanted serve without them, the last one first. What is known to be broken goes at
// once. What is not known may serve: a status is older than the spec after each edit. In a cluster of the
// fleet where nothing is wanted any more, scheduling decides when they go.
func (p *Plan) keep(c *ClusterPlan, kind string, exist []extraUnit, asked int32, running *Running) []extraUnit {
	missing, wanted := 0, p.unitsOf(c, running)
	left := p.inFleet && len(wanted) == 0
	for _, u := range wanted {
		if u.kind == kind && !u.state(running).Serving {
			missing++
		}
	}
	var all []extraUnit
	for i, u := range exist {
		u.kept = i >= int(asked)
		replicas := p.replicasOf(c, kind, u)
		serves := func(r Replica) bool { return running.Replica(r.Key).Serving }
		broken := slices.ContainsFunc(replicas, func(r Replica) bool { return running.Replica(r.Key).Broken })
		if !u.kept || (missing > 0 || left) && (slices.ContainsFunc(replicas, serves) || !broken) {
			all = append(all, u)
		}
		missing -= p.serving(replicas, running)
	}
	for number := int32(0); len(all) < int(asked); number++ {
		if !slices.ContainsFunc(exist, func(u extraUnit) bool { return u.number == number }) {
			all = append(all, extraUnit{number: number})
		}
	}
	return all
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
	case len(extra) == 0 || !p.InPair(extra[0].Role):
		return n
	case n < len(extra):
		return 0
	}
	u := unit{kind: pairKind, both: p.needBoth()}
	for i := range extra {
		u.replicas = append(u.replicas, &extra[i])
	}
	if !u.state(running).Serving {
		return 0
	}
	return 1
}

// unfinished returns for each kind of unit how many extra ones the rollout asks for: as many as have to get the newest template. Extra
// units that exist are also asked for while the rollout is paused, and while the others do not serve. These causes add no more of them.
func (p *Plan) unfinished(c *ClusterPlan, exist map[string][]extraUnit, running *Running) map[string]int32 {
	// Replicas of one group and kind get one extra group.
	type indexes map[int32]bool
	outdated, unfinished := map[string]indexes{}, map[string]indexes{}
	add := func(to map[string]indexes, s rollout.Unit) {
		if to[s.Kind] == nil {
			to[s.Kind] = indexes{}
		}
		to[s.Kind][s.Index] = true
	}
	for _, u := range p.unitsOf(c, running) {
		s := u.state(running)
		if s.Index < *p.Rollout.Partition {
			continue
		}
		if s.Outdated && !p.Rollout.Paused {
			add(outdated, s)
		}
		if s.Outdated || !s.Serving {
			add(unfinished, s)
		}
	}
	n := map[string]int32{}
	for _, kind := range p.kinds() {
		n[kind] = min(*p.Rollout.MaxSurge, int32(max(len(outdated[kind]), min(len(unfinished[kind]), len(exist[kind]))))) //nolint:gosec // The API allows a few thousand.
	}
	return n
}

// kind of the units that the replicas of a role are in.
func (p *Plan) kind(r *Role) string {
	if p.InPair(r) {
		return pairKind
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
func (p *Plan) extraReplicas(c *ClusterPlan, units map[string][]extraUnit) []Replica {
	var all []Replica
	for _, kind := range p.kinds() {
		for _, u := range units[kind] {
			for _, r := range p.replicasOf(c, kind, u) {
				// Nothing is added to a unit that goes.
				if r.Kept = u.kept; !u.kept || u.exist.has[r.ID] {
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// replicasOf returns the replicas of an extra unit. In a group that is wanted they are those that exist.
func (p *Plan) replicasOf(c *ClusterPlan, kind string, u extraUnit) []Replica {
	var all []Replica
	for _, r := range p.Roles {
		if p.kind(r) != kind || r.Replicas == 0 {
			continue
		}
		add := func(group, index int32) {
			replica := p.replica(c, r, group, index)
			replica.Extra = true
			all = append(all, replica)
		}
		group, first, n := int32(0), r.Replicas+u.number, int32(1)
		switch {
		case p.Service.Grouped:
			group, first, n = p.groups+u.number, 0, r.Replicas
			if u.number < 0 {
				n = 0
			}
			// The role may have had more replicas before.
			for _, index := range u.exist.indexes[roleOfGroup{group, r.Name}] {
				if index >= n {
					add(group, index)
				}
			}
		case p.InPair(r):
			n = p.perPair(r)
			first = r.Replicas + u.number*n
		}
		for i := range n {
			add(group, first+i)
		}
	}
	return all
}

// addExtra adds extra replicas to their groups, which they may make.
func (c *ClusterPlan) addExtra(p *Plan, replicas []Replica) {
	at, grown := map[int32]int{}, map[int]bool{}
	for i := range c.Groups {
		at[c.Groups[i].Index] = i
	}
	for _, r := range replicas {
		i, known := at[r.Group]
		if !known {
			i = len(c.Groups)
			at[r.Group] = i
			c.Groups = append(c.Groups, Group{Index: r.Group})
		}
		c.Groups[i].Replicas, grown[i] = append(c.Groups[i].Replicas, r), true
	}
	for i := range grown {
		c.addGang(p, &c.Groups[i], p.gang)
	}
}
