package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// A Rollout says how the pods that run get the newest template.
type Rollout struct {
	v1alpha1.Rollout

	// Now is the time of the call.
	Now time.Time
	// Surge tells that replicas beyond those that are wanted run.
	Surge bool
	// Gap tells that nothing serves while a change of pods takes place: prefill with decode is one unit,
	// without an extra one.
	Gap bool
}

// A Running is what is observed of the replicas that may run.
type Running struct {
	Now time.Time
	// Revision of the newest template of each role, by the role's name.
	Revision map[string]string
	// Replica returns the state of a replica, by its key.
	Replica func(key.Key) rollout.State
	// Extra are the replicas that exist beyond those that were wanted, by the cluster. A replica that
	// the service was scaled down by is none.
	Extra map[string][]key.ReplicaID
	// Others are the other replicas that exist, by the cluster.
	Others map[string][]key.ReplicaID
	// Recovery returns what a replica has noted of failures, by its key.
	Recovery func(key.Key) Recovery
	// Leader returns the leader pod of a replica, if it is known.
	Leader func(*Replica) (Leader, bool)
	// PodGroup returns the PodGroup of a gang, by its key.
	PodGroup func(key.Key) PodGroupView
	// Admitted tells whether Kueue has admitted the Workload of that key.
	Admitted func(key.Key) bool
	// Observed tells whether the composed resource of that key exists.
	Observed func(key.Key) bool
	// PoolType returns the type of role whose pods the InferencePool of that key selects, and whether it
	// exists. No type means the pods of all roles.
	PoolType func(key.Key) (t v1alpha1.ComponentType, exists bool)
	// Loader is the hash of what the pods of the loading Job are made from.
	Loader string
	// Weights returns what is known of the weights in a cluster. It is nil where nothing is.
	Weights func(*ClusterPlan) WeightsView
}

// RollOut decides which replicas get the newest template of their pods now. The others are held. It
// also decides which pods are read to say why a replica is not ready.
func (p *Plan) RollOut(running *Running) {
	p.Rollout.Now = running.Now
	p.surge(running)
	p.load(running) // Extra replicas wait for weights, too.
	p.recover(running)
	units := p.units()
	p.Rollout.Gap = p.ChangesInPairs() && len(units) == 1 && *p.Rollout.MaxSurge == 0
	states := make([]rollout.Unit, len(units))
	for i := range units {
		states[i] = units[i].state(running)
	}
	policy := rollout.Policy{MaxUnavailable: *p.Rollout.MaxUnavailable, Partition: *p.Rollout.Partition, Paused: p.Rollout.Paused}
	released := rollout.Release(states, policy)
	p.leaveFirst(units, states, released)
	for i := range units {
		for _, r := range units[i].replicas {
			r.BelowPartition = units[i].index < *p.Rollout.Partition
			r.hold(running, released[i])
		}
	}
	p.holdLeaving(running)
	p.recount(running)
	p.keepEndpoints(running)
	p.selectPods(running)
	p.inspect(running)
}

// leaveFirst takes a cluster out of the fleet route before its last serving unit is changed, if another
// cluster serves. The unit is held until the other one gets requests, and until no gateway sends requests
// to this one any more. One cluster leaves after the other.
func (p *Plan) leaveFirst(units []unit, states []rollout.Unit, released []bool) {
	if p.FleetRoute == nil {
		return
	}
	serves, stays, left := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range units {
		c := units[i].cluster
		serves[c] = serves[c] || states[i].Serving
		stays[c] = stays[c] || states[i].Serving && !released[i]
	}
	for i := range units {
		c := units[i].cluster
		if !released[i] || !states[i].Serving || stays[c] {
			continue
		}
		// Its backend may get its weight in a later call: that goes by what was seen ready before.
		other := slices.ContainsFunc(p.FleetRoute.Backends, func(b Backend) bool { return b.Cluster != c && serves[b.Cluster] && !left[b.Cluster] })
		switch {
		case left[c] || other && p.FleetRoute.leave(c):
			left[c] = true
			released[i] = !p.mayReceiveTraffic(c)
		case other || len(left) > 0:
			released[i] = false
		}
	}
}

// leave gives the backend of a cluster no requests any more, unless it is the only one that gets some.
func (r *FleetRoute) leave(cluster string) bool {
	if !slices.ContainsFunc(r.Backends, func(b Backend) bool { return b.Cluster != cluster && b.Weight > 0 }) {
		return false
	}
	for i := range r.Backends {
		if b := &r.Backends[i]; b.Cluster == cluster {
			b.Weight, b.Named = 0, false
		}
	}
	return true
}

// mayReceiveTraffic tells whether a gateway may still send requests to a cluster by the fleet route.
func (p *Plan) mayReceiveTraffic(cluster string) bool {
	return slices.ContainsFunc(p.Schedule.Assignments, func(a scheduling.Assignment) bool {
		return a.Target.Cluster == cluster && a.MayReceiveTraffic
	})
}

// hold holds a replica that has a former template and is not released.
func (r *Replica) hold(running *Running, released bool) {
	state, revision := running.Replica(r.Key), running.Revision[r.Role.Name]
	r.broken = state.Broken
	if r.Template != nil {
		r.Revision = state.Revision
	}
	r.Updated = state.Exists && state.Updated(revision) && !r.Held
	r.Held = r.Held || state.Exists && !state.Updated(revision) && !released
	if r.Held {
		r.Size, r.Nodes = state.Size, cmp.Or(state.Size, r.Nodes)
	}
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
			counted := Group{Index: g.Index, Replicas: g.counted(view)}
			// A PodGroup that exists stays: leaving it out would delete it.
			if c.addGang(p, &counted, p.gang); counted.PodGroup != nil || !view.Observed {
				g.PodGroup = counted.PodGroup
			}
		}
	}
}

// counted gives held replicas the nodes that their gang counts, and returns the replicas that it is to
// count. Held replicas whose pods were in no gang before are left out.
func (g *Group) counted(view PodGroupView) []Replica {
	unknown := view.Observed && len(view.MinTaskMember)+len(view.SubGroupSizes) == 0
	var all []Replica
	for k := range g.Replicas {
		r := &g.Replicas[k]
		nodes := cmp.Or(view.MinTaskMember[r.Task], view.SubGroupSizes[r.Role.Name])
		if r.Held {
			r.Nodes = cmp.Or(nodes, r.Nodes)
		}
		if !r.Held || nodes > 0 || unknown {
			all = append(all, *r)
		}
	}
	return all
}

// pairKind is the kind of units of prefill and decode replicas.
const pairKind = ""

// A unit is what changes together.
type unit struct {
	cluster  string
	replicas []*Replica
	// kind is the role of a single replica, or pairKind.
	kind  string
	index int32
	extra bool
	// kept units are extra ones that nothing is to rely on.
	kept bool
}

// state of the unit, by the states of its replicas.
func (u *unit) state(running *Running) rollout.Unit {
	s, former := rollout.Unit{Cluster: u.cluster, Kind: u.kind, Index: u.index, Serving: len(u.replicas) > 0, Extra: u.extra}, false
	for _, r := range u.replicas {
		state := running.Replica(r.Key)
		state.Serving = state.Serving && !r.Remade && !r.Partial
		updated := state.Updated(running.Revision[r.Role.Name])
		s.Outdated = s.Outdated || state.Exists && !updated
		s.Started = s.Started || state.Exists && updated && !state.Serving
		s.Serving = s.Serving && state.Serving
		s.Broken = s.Broken || state.Broken
		// Prefill answers no request by itself. Decode does, where it has no prefill.
		answers := u.kind != pairKind || r.Role.Type != v1alpha1.ComponentTypePrefiller
		former = former || answers && state.Exists && !updated && state.Serving
		s.Unknown = s.Unknown || answers && state.Exists && !updated && !state.Broken && !r.Partial
		s.Blocked = s.Blocked || r.Held
	}
	s.Serving = s.Serving || former
	if u.kept {
		s.Serving, s.Blocked = false, true
	}
	return s
}

// units returns the units of all clusters that are not left.
func (p *Plan) units() []unit {
	var all []unit
	for i := range p.Clusters {
		if c := &p.Clusters[i]; !c.Leaving {
			all = append(all, p.unitsOf(c)...)
			all = append(all, p.absent(c)...)
		}
	}
	return all
}

// absent returns the units that are wanted in a cluster where the service runs, and have no capacity
// there. They do not serve, like those whose pods wait for a node. A cluster in which nothing of the
// service runs so far holds up no rollout in the others.
func (p *Plan) absent(c *ClusterPlan) []unit {
	there := p.unitsOf(c)
	if len(there) == 0 {
		return nil
	}
	seen := map[int32]bool{}
	for _, u := range there {
		seen[u.index] = seen[u.index] || u.kind == pairKind
	}
	var all []unit
	for i := range c.Pending {
		u := unit{cluster: c.Target.Cluster, kind: p.kind(c.Pending[i].Role), index: p.unitIndex(&c.Pending[i])}
		if u.kind == pairKind && seen[u.index] {
			continue
		}
		all = append(all, u)
		seen[u.index] = seen[u.index] || u.kind == pairKind
	}
	return all
}

// unitsOf returns the units of a cluster. Prefill and decode of different versions may refuse
// each other, so they change together: in a grouped service by groups. Otherwise the replicas of
// each role are spread evenly over the units. Each replica of a worker is a unit.
func (p *Plan) unitsOf(c *ClusterPlan) []unit {
	var all []unit
	at := map[int32]int{}
	for r := range c.Replicas() {
		u := unit{cluster: c.Target.Cluster, replicas: []*Replica{r}, kind: p.kind(r.Role), index: p.unitIndex(r), extra: r.Extra, kept: r.Kept}
		i, has := at[u.index]
		switch {
		case u.kind != pairKind:
			all = append(all, u)
		case has:
			all[i].replicas = append(all[i].replicas, r)
		default:
			at[u.index] = len(all)
			all = append(all, u)
		}
	}
	return all
}

// ChangesInPairs tells whether prefill and decode replicas change together. They then have one
// revision, which changes with the template of each of these roles.
func (p *Plan) ChangesInPairs() bool {
	return p.most(v1alpha1.ComponentTypePrefiller) >= 0 && p.most(v1alpha1.ComponentTypeDecoder) >= 0
}

// InPair tells whether the replicas of a role change together with those of other roles. Workers
// answer requests by themselves, so they never do.
func (p *Plan) InPair(r *Role) bool {
	return r.Type != v1alpha1.ComponentTypeWorker && p.ChangesInPairs()
}

// most is the number of replicas of the largest role of a type. It is -1 if there is none.
func (p *Plan) most(t v1alpha1.ComponentType) int32 {
	n := int32(-1)
	for _, r := range p.Roles {
		if r.Type == t {
			n = max(n, r.Replicas)
		}
	}
	return n
}

// pairs is the number of units of prefill and decode replicas in a service without groups: each unit
// has a replica of the largest role of both types. A further small role does not join units that can
// change one after the other. Without replicas of one type, those of the other count.
func (p *Plan) pairs() int32 {
	prefill, decode := p.most(v1alpha1.ComponentTypePrefiller), p.most(v1alpha1.ComponentTypeDecoder)
	if prefill == 0 || decode == 0 {
		return max(prefill, decode, 1)
	}
	return min(prefill, decode)
}

// pair is the unit of a replica of a role: the replicas of each role are spread evenly.
func (p *Plan) pair(r *Role, index int32) int32 {
	units := p.pairs()
	if index < r.Replicas {
		return index * units / r.Replicas
	}
	return units + (index-r.Replicas)/p.perPair(r)
}

// extraOf is how many replicas of a role a rollout may run beyond those that are wanted, in each
// group.
func (p *Plan) extraOf(r *Role) int32 {
	switch {
	case p.Service.Grouped, r.Replicas == 0:
		return 0
	case p.InPair(r):
		return *p.Rollout.MaxSurge * p.perPair(r)
	}
	return *p.Rollout.MaxSurge
}

// extraGroups is how many groups it may run beyond those that are wanted.
func (p *Plan) extraGroups() int32 {
	if p.Service.Grouped {
		return *p.Rollout.MaxSurge
	}
	return 0
}

// HasGang tells whether the pods start as a gang.
func (p *Plan) HasGang() bool { return p.gang.mode != v1alpha1.GangNone && p.gang.mode != "" }

// perPair is the most replicas of a role in one unit.
func (p *Plan) perPair(r *Role) int32 {
	units := p.pairs()
	return max((r.Replicas+units-1)/units, 1)
}
