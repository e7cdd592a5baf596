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
	// Gaps are the clusters in which nothing serves while a change of pods takes place: prefill with
	// decode is the only unit there, without an extra one, and the fleet route leads to no other cluster.
	Gaps []string
	// Silent are names of replicas that leave a cluster, have no place in another one so far, and answer nothing: one of each unit. They
	// count as unavailable.
	Silent []string
}

// RollOut decides which replicas get the newest template of their pods now. The others are held. It
// also decides which pods are read to say why a replica is not ready.
//
// Each step needs what those before it have decided.
func (p *Plan) RollOut(running *RunningView) {
	p.Rollout.Now = running.Now
	// Which replicas there are.
	p.leaveTaken(running)
	p.surge(running)
	p.leaveTaken(running) // Extra replicas have names, too.
	p.load(running)       // Extra replicas wait for weights, too.
	p.keepClosed(running)
	p.recover(running)
	// Which of them get the newest template, and which are held.
	p.waitForGangKind(running)
	units := p.units(running)
	p.Rollout.Gaps, p.Rollout.Silent = p.gaps(units), silent(units)
	p.release(units, running)
	p.holdLeaving(running)
	p.recount(running)
	p.leaveAbsent(running)
	p.forgetLeaders()
	// What stays as it was while former templates run.
	p.keepEndpoints(running)
	p.keepSelectors(running)
	p.keepAccounts(running)
	p.keepMetrics(running)
	p.pausePickers(running)
	p.holdAwake(running)
	p.pauseScaleIn(running)
	p.keepHeld()
	p.selectPods(running)
	// What is read of pods, and what is noted of their crashes.
	p.inspect(running)
	p.remember(running)
}

// release gives the newest template to the replicas whose turn it is, and holds the others.
func (p *Plan) release(units []unit, running *RunningView) {
	states := make([]rollout.Unit, len(units))
	for i := range units {
		states[i] = units[i].state(running)
	}
	policy := rollout.Policy{
		MaxUnavailable: *p.Rollout.MaxUnavailable, Partition: *p.Rollout.Partition,
		Paused: p.Rollout.Paused || !told(units, running),
	}
	released := rollout.Release(states, policy)
	p.leaveFirst(units, states, released)
	needed := p.needed(units, states, released, running)
	for i := range units {
		starts := released[i] && units[i].startsDecode(running)
		for _, r := range units[i].replicas {
			r.BelowPartition = units[i].index < *p.Rollout.Partition
			s := running.Replica(r.Key)
			waits := starts && r.Role.Type == v1alpha1.ComponentTypePrefiller && s.Exists && !s.Broken
			r.hold(running, released[i] && !waits && !needed[r.Key])
		}
	}
}

// told tells whether each replica was read with the newest template, which may wait behind a partition. One that was not may have been read as it was
// before an earlier call released it, so others would stop in the belief that it serves.
func told(units []unit, running *RunningView) bool {
	return !slices.ContainsFunc(units, func(u unit) bool {
		return slices.ContainsFunc(u.replicas, func(r *Replica) bool {
			s := running.Replica(r.Key)
			return s.Exists && r.Template == nil && s.Revision != running.Revision[r.Role.Name]
		})
	})
}

// silent returns the names of replicas that answer nothing where they leave, one of each unit.
func silent(units []unit) []string {
	var all []string
	for _, u := range units {
		if u.left != nil {
			all = append(all, u.left.Name)
		}
	}
	return all
}

// gaps returns the clusters whose only unit is prefill with decode, if nothing answers in its place. What
// is ready does not count, so the answer is the same before, during and after a rollout.
func (p *Plan) gaps(units []unit) []string {
	if *p.Rollout.MaxSurge > 0 {
		return nil
	}
	units = slices.DeleteFunc(slices.Clone(units), func(u unit) bool { return u.left != nil })
	n := map[string]int{}
	for _, u := range units {
		n[u.cluster]++
	}
	var all []string
	for _, u := range units {
		if u.kind == pairKind && n[u.cluster] == 1 && !p.elsewhere(u.cluster, n) {
			all = append(all, u.cluster)
		}
	}
	return all
}

// elsewhere tells whether the fleet route leads to another cluster with units.
func (p *Plan) elsewhere(cluster string, units map[string]int) bool {
	return p.FleetRoute != nil && slices.ContainsFunc(p.FleetRoute.Backends, func(b Backend) bool {
		return b.Cluster != cluster && units[b.Cluster] > 0
	})
}

// leaveFirst takes a cluster out of the fleet route before its last serving unit is changed, if another
// cluster serves. The unit is held until the other one gets requests, and until no gateway sends requests
// to this one any more. It is held, too, while the other one serves and only lacks an endpoint picker that is ready. One cluster
// leaves after the other.
func (p *Plan) leaveFirst(units []unit, states []rollout.Unit, released []bool) {
	if p.FleetRoute == nil {
		return
	}
	serves, stays, left := map[string]bool{}, map[string]bool{}, map[string]bool{}
	// Other clusters get no weight, however many replicas serve there. Those that are routed answer once their endpoint picker is
	// ready again.
	answers, routed := map[string]bool{}, map[string]bool{}
	for i := range p.Schedule.Assignments {
		a := &p.Schedule.Assignments[i]
		c := a.Target.Cluster
		answers[c] = p.answered(a)
		routed[c] = a.Existing != nil && a.Existing.Routed() && !a.Existing.Refused()
	}
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
		serving := func(in map[string]bool) bool {
			return slices.ContainsFunc(p.FleetRoute.Backends, func(b Backend) bool {
				return b.Cluster != c && serves[b.Cluster] && !left[b.Cluster] && in[b.Cluster]
			})
		}
		other := serving(answers)
		switch {
		case left[c] || other && p.FleetRoute.leave(c):
			left[c] = true
			released[i] = !p.mayReceiveTraffic(c)
		case other || len(left) > 0 || answers[c] && serving(routed):
			released[i] = false
		}
	}
}

// answered tells whether requests that reach the cluster of an assignment get to a pod. Without an endpoint picker that is ready they do where
// gateways send them to any pod, and the fleet route leads there only if no other cluster has one.
func (p *Plan) answered(a *scheduling.Assignment) bool {
	return a.Existing.Answered() && !a.Existing.Refused() || p.unpicked(a, 1) > 0 && p.FleetRoute.leadsTo(a.Target.Cluster)
}

// leadsTo tells whether requests go to a cluster.
func (r *FleetRoute) leadsTo(cluster string) bool {
	return slices.ContainsFunc(r.Backends, func(b Backend) bool { return b.Cluster == cluster && b.Weight > 0 })
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

// hold holds a replica that has a former template and is not released. One that is being replaced goes on with the newest template: its
// pods may be gone already, and nobody would know which of two templates those have that it keeps.
func (r *Replica) hold(running *RunningView, released bool) {
	state, revision := running.Replica(r.Key), running.Revision[r.Role.Name]
	released = released || state.Replacing()
	r.broken, r.serving = state.Broken, state.Serving
	if r.Template != nil {
		r.Revision = state.Revision
	}
	r.Updated = state.Exists && state.Updated(revision) && !r.Held
	r.Held = r.Held || state.Exists && !state.Updated(revision) && !released
	// Pods that are being replaced count as those from before until their controller reports others.
	pods := cmp.Or(state.FormerRevision, state.RunningRevision)
	if !r.Held && state.Exists && (state.Replacing() || !state.Updated(revision)) {
		r.FormerRevision = pods
	}
	if r.Held {
		r.RunningRevision, r.RunningPodGroup = pods, state.RunningPodGroup
		if r.Template == nil && state.Size > 0 && state.Size != r.Nodes {
			// A LeaderWorkerSet that is recreated meanwhile makes pods of the newest template, and as many as before. No
			// generation was granted for these.
			r.Generation = 0
		}
		r.Size, r.Nodes = state.Size, cmp.Or(state.Size, r.Nodes)
	}
}

// holdLeaving holds what leaves its cluster, unless it is broken. It is removed once it runs
// elsewhere, and has to serve until then.
func (p *Plan) holdLeaving(running *RunningView) {
	for c, r := range p.Replicas() {
		if c.Leaving {
			r.hold(running, running.Replica(r.Key).Broken)
		}
	}
}

// recount makes the gangs of held replicas count the pods that run, and not those to come. Volcano schedules no pod of a gang that
// counts pods which nobody makes (pkg/scheduler/api/job_info.go of v1.14.1, CheckTaskValid).
func (p *Plan) recount(running *RunningView) {
	for i := range p.Clusters {
		c := &p.Clusters[i]
		for j := range c.Groups {
			g := &c.Groups[j]
			wait := c.waitForWeights(g, running.Observed)
			if len(wait) == len(g.Replicas) {
				clear(wait) // Nothing runs.
			}
			if len(wait) > 0 || slices.ContainsFunc(g.Replicas, func(r Replica) bool { return r.Held }) {
				c.recount(p, g, running.PodGroup(c.podGroupKey(p, g)), wait)
			}
		}
	}
}

// recount makes the gang of one group count its replicas, without those that wait.
func (c *ClusterPlan) recount(p *Plan, g *Group, view PodGroupView, wait map[key.Key]bool) {
	name := podGroupName(c.Base, p.Service, g.Index)
	if !p.gang.exists() {
		if view.Observed || slices.ContainsFunc(g.Replicas, func(r Replica) bool { return r.Held && r.RunningPodGroup == name }) {
			g.PodGroup = c.former(p, g, view, name)
		}
		return
	}
	counted := Group{Index: g.Index, Replicas: slices.DeleteFunc(g.counted(view, name), func(r Replica) bool { return wait[r.Key] })}
	// A PodGroup that exists stays: leaving it out would delete it.
	if c.addGang(p, &counted, p.gang); counted.PodGroup != nil || !view.Observed {
		g.PodGroup = counted.PodGroup
	}
}

// leaveAbsent finds the replicas without pods, which no budget counts: those that are left out for now, and those that Kueue keeps
// from starting. A replica in an unknown state still counts: a minAvailable that is too low would protect nothing.
func (p *Plan) leaveAbsent(running *RunningView) {
	deferred := map[key.Key]bool{}
	for _, d := range append(p.DeferForGang(running.PodGroup, running.Observed), p.DeferForWeights(running.Observed)...) {
		deferred[d.Key] = true
	}
	for c, r := range p.Replicas() {
		// The pods of a replica that Kueue evicts serve until they have ended.
		r.Absent = deferred[r.Key] || r.Workload != "" && !r.serving && running.Awaits(c.WorkloadKey(r))
	}
}

// former returns the PodGroup of held replicas after their service has lost its gang. Their pods name it, so
// Volcano could not schedule one that was evicted without it.
func (c *ClusterPlan) former(p *Plan, g *Group, view PodGroupView, name string) *PodGroup {
	held := slices.DeleteFunc(g.counted(view, name), func(r Replica) bool { return !r.Held })
	if len(held) == 0 {
		held = slices.DeleteFunc(slices.Clone(g.Replicas), func(r Replica) bool { return !r.Held })
	}
	gang := p.gang
	gang.mode = v1alpha1.GangAllOrNothing
	if len(view.SubGroupSizes) > 0 {
		gang.mode = v1alpha1.GangMinimumFirst
	}
	kept := Group{Index: g.Index, Replicas: held}
	c.addGang(p, &kept, gang)
	return kept.PodGroup
}

// counted gives held replicas the nodes that their gang counts, and returns the replicas that it is to
// count. A subgroup's size is the smallest in the role, so it is used only where the replica's own size is unknown.
// Held replicas whose pods are in no gang are left out. What is noted of their pods tells, and else what the PodGroup counts.
func (g *Group) counted(view PodGroupView, name string) []Replica {
	unknown := view.Observed && len(view.MinTaskMember)+len(view.SubGroupSizes) == 0
	var all []Replica
	for k := range g.Replicas {
		r := &g.Replicas[k]
		nodes := cmp.Or(view.MinTaskMember[r.Task], view.SubGroupSizes[r.Role.Name])
		if r.Held && (r.Size == 0 || view.MinTaskMember[r.Task] > 0) {
			r.Nodes = cmp.Or(nodes, r.Nodes)
		}
		in := nodes > 0 || unknown
		if r.RunningRevision != "" {
			in = r.RunningPodGroup == name
		}
		if !r.Held || in {
			all = append(all, *r)
		}
	}
	return all
}
