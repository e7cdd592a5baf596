package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// A Rollout says how the pods that run get the newest template.
type Rollout struct {
	v1alpha1.Rollout

	// Now is the time of the call.
	Now time.Time
	// Surge tells that replicas beyond those that are wanted run.
	Surge bool
}

// A Running is what is observed of the replicas that may run.
type Running struct {
	Now time.Time
	// Revision of the newest template of each role, by the role's name.
	Revision map[string]string
	// Replica returns the state of a replica, by its key.
	Replica func(key.Key) rollout.State
	// PodGroup returns the PodGroup of a gang, by its key.
	PodGroup func(key.Key) PodGroupView
}

// RollOut decides which replicas get the newest template of their pods now. The others are held.
func (p *Plan) RollOut(running *Running) {
	p.Rollout.Now = running.Now
	p.surge(running)
	units := p.units()
	states := make([]rollout.Unit, len(units))
	for i := range units {
		states[i] = units[i].state(running)
	}
	policy := rollout.Policy{MaxUnavailable: *p.Rollout.MaxUnavailable, Partition: *p.Rollout.Partition, Paused: p.Rollout.Paused}
	for i, released := range rollout.Release(states, policy) {
		for _, r := range units[i].replicas {
			r.BelowPartition = units[i].index < *p.Rollout.Partition
			r.hold(running, released)
		}
	}
	p.holdLeaving(running)
	p.recount(running)
}

// hold holds a replica that has a former template and is not released.
func (r *Replica) hold(running *Running, released bool) {
	state, revision := running.Replica(r.Key), running.Revision[r.Role.Name]
	r.Updated = state.Exists && state.Updated(revision) && !r.Held
	r.Held = r.Held || state.Exists && !state.Updated(revision) && !released
}

// holdLeaving holds what leaves its cluster, unless it is broken. It is removed once it runs
// elsewhere, and has to serve until then.
func (p *Plan) holdLeaving(running *Running) {
	for c, r := range p.Replicas() {
		if c.Leaving {
			r.hold(running, running.Replica(r.Key).Broken)
		}
	}
}

// recount makes the gangs of held replicas count the pods that run, and not those to come.
func (p *Plan) recount(running *Running) {
	for i := range p.Clusters {
		c := &p.Clusters[i]
		for j := range c.Groups {
			g := &c.Groups[j]
			if g.PodGroup == nil || !slices.ContainsFunc(g.Replicas, func(r Replica) bool { return r.Held }) {
				continue
			}
			view := running.PodGroup(g.PodGroup.Key)
			for k := range g.Replicas {
				if r := &g.Replicas[k]; r.Held {
					r.Nodes = cmp.Or(view.MinTaskMember[r.Task], view.SubGroupSizes[r.Role.Name], r.Nodes)
				}
			}
			c.addGang(p, g, p.gang)
		}
	}
}

// A unit is what changes together.
type unit struct {
	replicas []*Replica
	index    int32
	extra    bool
}

// state of the unit, by the states of its replicas.
func (u *unit) state(running *Running) rollout.Unit {
	s := rollout.Unit{Index: u.index, Serving: true, Extra: u.extra}
	for _, r := range u.replicas {
		state := running.Replica(r.Key)
		updated := state.Updated(running.Revision[r.Role.Name])
		s.Outdated = s.Outdated || state.Exists && !updated
		s.Started = s.Started || state.Exists && updated && !state.Serving
		s.Serving = s.Serving && state.Serving
		s.Broken = s.Broken || state.Broken
		s.Blocked = s.Blocked || r.Held
	}
	return s
}

// units returns the units of all clusters that are not left.
func (p *Plan) units() []unit {
	var all []unit
	for i := range p.Clusters {
		if c := &p.Clusters[i]; !c.Leaving {
			all = append(all, p.unitsOf(c)...)
		}
	}
	return all
}

// unitsOf returns the units of a cluster. Prefill and decode of different versions may refuse
// each other, so they change together: in a grouped service by groups, and otherwise the first
// replicas of each role with each other. Other replicas are units by themselves.
func (p *Plan) unitsOf(c *ClusterPlan) []unit {
	var all []unit
	if !p.changesInPairs() {
		for r := range c.Replicas() {
			index := r.Index
			if p.Service.Grouped {
				index = r.Group
			}
			all = append(all, unit{replicas: []*Replica{r}, index: index, extra: r.Extra})
		}
		return all
	}
	at := map[int32]int{}
	for r := range c.Replicas() {
		index := r.Group
		if !p.Service.Grouped {
			index = p.pair(r.Role, r.Index)
		}
		i, has := at[index]
		if !has {
			i = len(all)
			at[index] = i
			all = append(all, unit{index: index, extra: r.Extra})
		}
		all[i].replicas = append(all[i].replicas, r)
	}
	return all
}

// changesInPairs tells whether the service has prefill and decode replicas.
func (p *Plan) changesInPairs() bool {
	has := func(t v1alpha1.ComponentType) bool {
		return slices.ContainsFunc(p.Roles, func(r *Role) bool { return r.Type == t })
	}
	return has(v1alpha1.ComponentTypePrefiller) && has(v1alpha1.ComponentTypeDecoder)
}

// pairs is the number of units of a service without groups that has prefill and decode replicas:
// each unit has a replica of each role at least.
func (p *Plan) pairs() int32 {
	n := int32(0)
	for _, r := range p.Roles {
		if r.Replicas > 0 && (n == 0 || r.Replicas < n) {
			n = r.Replicas
		}
	}
	return max(n, 1)
}

// pair is the unit of a replica of a role: the replicas of each role are spread evenly.
func (p *Plan) pair(r *Role, index int32) int32 {
	units := p.pairs()
	if index < r.Replicas {
		return index * units / r.Replicas
	}
	return units + (index-r.Replicas)/p.perPair(r)
}

// perPair is the most replicas of a role in one unit.
func (p *Plan) perPair(r *Role) int32 {
	units := p.pairs()
	return max((r.Replicas+units-1)/units, 1)
}

// surge adds units beyond those that are wanted, while replicas have to get the newest template.
// They stay until all of the others serve. A cluster of the fleet has reserved no capacity for
// them, so a service in the fleet has none.
func (p *Plan) surge(running *Running) {
	more := *p.Rollout.MaxSurge
	if more == 0 || p.Schedule != nil {
		return
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		extra := p.extraReplicas(c, more)
		if !p.surges(c, extra, running) {
			continue
		}
		p.Rollout.Surge = true
		for _, r := range extra {
			c.addExtra(p, r)
		}
	}
}

// surges tells whether extra replicas are needed in a cluster: some replicas have to be released,
// or have been and do not serve so far.
func (p *Plan) surges(c *ClusterPlan, extra []Replica, running *Running) bool {
	exists := slices.ContainsFunc(extra, func(r Replica) bool { return running.Replica(r.Key).Exists })
	for _, u := range p.unitsOf(c) {
		s := u.state(running)
		toRelease := s.Outdated && s.Index >= *p.Rollout.Partition && !p.Rollout.Paused
		if toRelease || exists && (s.Outdated || !s.Serving) && s.Index >= *p.Rollout.Partition {
			return true
		}
	}
	return false
}

// extraReplicas returns the replicas of some units beyond those of a cluster.
func (p *Plan) extraReplicas(c *ClusterPlan, units int32) []Replica {
	var all []Replica
	if p.Service.Grouped {
		for i := range units {
			all = append(all, p.group(c, int32(len(c.Groups))+i).Replicas...) //nolint:gosec // The API allows a few hundred.
		}
	} else {
		for _, r := range p.Roles {
			n := units
			if p.changesInPairs() {
				n = units * p.perPair(r)
			}
			for i := range n {
				if r.Replicas > 0 {
					all = append(all, p.replica(c, r, 0, r.Replicas+i))
				}
			}
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
