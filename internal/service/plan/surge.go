package plan

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// surge adds units beyond those that are wanted, while replicas have to get the newest template. They
// are at most as many as the units that have to get it, or do not serve with it so far. In the fleet
// that is decided earlier (extraDemand).
func (p *Plan) surge(running *RunningView) {
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
func (p *Plan) beyond(cluster string, running *RunningView, wanted func() *ClusterPlan) []key.ReplicaID {
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

// extraUnits returns the units of each kind that run in a cluster beyond those that are wanted, of
// which some replicas exist. The plan of the cluster has none of them so far. A rollout asks for whole groups only.
func (p *Plan) extraUnits(c *ClusterPlan, ids []key.ReplicaID, running *RunningView) map[string][]extraUnit {
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
	wanted := p.unitsOf(c, running)
	asked := p.extraToRun(wanted, all, running)
	for _, kind := range p.kinds() {
		all[kind] = append(p.keep(c, kind, all[kind], asked[kind], wanted, running), p.keep(c, kind, inGroups[kind], 0, wanted, running)...)
	}
	return all
}

// keep returns the extra units of a kind that run. The rollout asks for some, and those that exist come
// first. If the surge was lowered, or the partition raised, more exist than it asks for. They go once
// the units that are wanted serve without them, the last one first. A unit goes at once if none of its replicas
// may serve. What is not known may: a status is older than the spec after each edit. In a cluster of the fleet where
// nothing is wanted any more, scheduling decides when they go.
func (p *Plan) keep(c *ClusterPlan, kind string, exist []extraUnit, asked int32, wanted []unit, running *RunningView) []extraUnit {
	missing, left := 0, p.inFleet && len(wanted) == 0
	for _, u := range wanted {
		if u.kind == kind && !u.state(running).Serving {
			missing++
		}
	}
	var all []extraUnit
	for i, u := range exist {
		u.kept = i >= int(asked)
		replicas := p.replicasOf(c, kind, u)
		mayServe := func(r Replica) bool { return running.Replica(r.Key).MayServe() }
		if !u.kept || (missing > 0 || left) && slices.ContainsFunc(replicas, mayServe) {
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
func (p *Plan) serving(extra []Replica, running *RunningView) int {
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
	u := unit{kind: pairKind, needsBoth: p.needBoth()}
	for i := range extra {
		u.replicas = append(u.replicas, &extra[i])
	}
	if !u.state(running).Serving {
		return 0
	}
	return 1
}

// extraToRun returns for each kind of unit how many extra ones the rollout asks for: as many as have to get the newest template. Extra
// units that exist are also asked for while the rollout is paused, and while the others do not serve. These causes add no more of them.
func (p *Plan) extraToRun(wanted []unit, exist map[string][]extraUnit, running *RunningView) map[string]int32 {
	// Replicas of one group and kind get one extra group.
	type indexes map[int32]bool
	outdated, unfinished := map[string]indexes{}, map[string]indexes{}
	add := func(to map[string]indexes, s rollout.Unit) {
		if to[s.Kind] == nil {
			to[s.Kind] = indexes{}
		}
		to[s.Kind][s.Index] = true
	}
	for _, u := range wanted {
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
