package plan

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

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
	// needsBoth tells that a pair answers only with both: its prefill and its decode replicas need each other.
	needsBoth bool
	// answering are the versions of which prefill and decode may serve in the cluster, whatever unit they are in.
	answering map[string]bool
	// left is a replica of a unit that silentWhereLeft has found. Nil in any other one.
	left *Replica
}

// state of the unit, by the states of its replicas.
func (u *unit) state(running *RunningView) rollout.Unit {
	s := rollout.Unit{Cluster: u.cluster, Kind: u.kind, Index: u.index, Serving: len(u.replicas) > 0, Extra: u.extra}
	// serve are the replicas that serve, and mayServe those of which that is not known, too.
	serve, mayServe, formerServe, formerMayServe := Versions{}, Versions{}, Versions{}, Versions{}
	for _, r := range u.replicas {
		state := running.stateOf(r)
		updated := state.Updated(running.Revision[r.Role.Name])
		former, may := state.Exists && !updated, mayServeOf(r, state)
		s.Outdated = s.Outdated || former
		s.Started = s.Started || state.Exists && (updated || state.Replacing()) && !state.Serving
		// What its pods answer with is not known, and may stop at any time.
		former = former && !state.Replacing()
		s.Serving = s.Serving && state.Serving
		s.Broken = s.Broken || state.Broken
		serve.addIf(r, state, state.Serving)
		mayServe.addIf(r, state, may)
		formerServe.addIf(r, state, former && state.Serving)
		formerMayServe.addIf(r, state, former && may)
		s.Answering = s.Answering || former && may && u.answering[state.RunningRevision]
		s.Blocked = s.Blocked || r.Held
	}
	if u.needsBoth {
		s.Serving = s.Serving && u.answers(serve)
		s.Broken = s.Broken || !u.answers(mayServe)
	}
	s.Serving, s.Unknown = s.Serving || u.answers(formerServe), u.answers(formerMayServe)
	if u.kept {
		s.Serving, s.Blocked = false, true
	}
	return s
}

// stateOf returns the state of a replica. It does not serve while its pods are recreated, or parts of its unit do not run.
func (r *RunningView) stateOf(replica *Replica) rollout.State {
	s := r.Replica(replica.Key)
	s.Serving = s.Serving && !replica.Recreated && !replica.Partial
	return s
}

// mayServeOf tells whether a replica serves, or is not known not to.
func mayServeOf(r *Replica, s rollout.State) bool { return s.MayServe() && !r.Partial }

// answers tells whether a unit answers requests with these replicas. Those of different versions may refuse each other.
func (u *unit) answers(serving Versions) bool {
	return serving.some(u.answersWith)
}

// answersWith tells whether a unit answers requests with nothing but replicas of these types, which run one version. In a
// pair that takes decode, and prefill if that version needs it.
func (u *unit) answersWith(version string, t types) bool {
	if u.kind != pairKind {
		return len(t) > 0
	}
	return t[v1alpha1.ComponentTypeDecoder] && (t[v1alpha1.ComponentTypePrefiller] || !u.needsBoth || answersAlone(version))
}

// startsDecode tells whether no decode replica of a unit ran before: the new ones are made, or start. Prefill
// without decode may answer requests until then.
func (u *unit) startsDecode(running *RunningView) bool {
	starts := false
	for _, r := range u.replicas {
		if r.Role.Type != v1alpha1.ComponentTypeDecoder {
			continue
		}
		s := running.Replica(r.Key)
		if s.Serving || s.Exists && !s.Updated(running.Revision[r.Role.Name]) {
			return false
		}
		starts = true
	}
	return starts
}

// units returns the units of all clusters that are not left. A cluster in which nothing of the service runs so far holds up no rollout in the
// others, unless these share the replicas with it: one that is wanted there is missing in them.
func (p *Plan) units(running *RunningView) []unit {
	elsewhere := p.servingWhereLeft(running)
	all := p.silentWhereLeft(elsewhere)
	for i := range p.Clusters {
		if c := &p.Clusters[i]; !c.Leaving {
			there := p.unitsOf(c, running)
			all = append(all, there...)
			if len(there) > 0 || p.spreads() {
				all = append(all, p.absent(c, there, elsewhere)...)
			}
		}
	}
	return all
}

// servingWhereLeft are the replicas that answer requests in a cluster which they leave for another one. Under Replicate none does: each cluster
// has its own of each name.
func (p *Plan) servingWhereLeft(running *RunningView) map[key.ReplicaID]bool {
	all := map[key.ReplicaID]bool{}
	if !p.inFleet || p.policy() == v1alpha1.PlacementReplicate {
		return all
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		at := p.snapshot.States[c.Target.Cluster]
		if !c.Leaving || p.FleetRoute != nil && (!at.Answered() || at.Refused()) {
			continue
		}
		for r := range c.Replicas() {
			all[r.ID] = all[r.ID] || running.stateOf(r).Serving
		}
	}
	return all
}

// silentWhereLeft returns units for the replicas under Spread that leave a cluster, have no place in another one so far, and answer nothing. They do
// not serve. So those that serve in other clusters stay.
func (p *Plan) silentWhereLeft(serving map[key.ReplicaID]bool) []unit {
	if !p.spreads() {
		return nil
	}
	placed := map[key.ReplicaID]bool{}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if c.Leaving {
			continue
		}
		for r := range c.Replicas() {
			placed[r.ID] = true
		}
		for k := range c.Pending {
			placed[c.Pending[k].ID] = true
		}
	}
	var all []unit
	seen := map[unitID]bool{}
	for c, r := range p.Replicas() {
		if !c.Leaving || r.Extra || serving[r.ID] || placed[r.ID] {
			continue
		}
		if id := (unitID{p.kind(r.Role), p.unitIndex(r)}); !seen[id] {
			seen[id] = true
			all = append(all, unit{cluster: c.Target.Cluster, kind: id.kind, index: id.index, left: r})
		}
	}
	return all
}

// A unitID tells the units of a cluster apart.
type unitID struct {
	kind  string
	index int32
}

// absent returns the units that are wanted in a cluster beside those that are there, and have no capacity. They do not serve, like those whose
// pods wait for a node. Replicas that answer where they leave, until they have started here, are not absent: the rollout would wait for
// the room that its own extra replica has.
func (p *Plan) absent(c *ClusterPlan, there []unit, elsewhere map[key.ReplicaID]bool) []unit {
	var all []unit
	seen := map[int32]bool{}
	for _, u := range there {
		seen[u.index] = seen[u.index] || u.kind == pairKind && !u.kept
	}
	// Where prefill and decode are matched, the replicas that are there are in the first units.
	both, next := p.needBoth(), int32(0)
	matched := both && !p.Service.Grouped
	for i := range c.Pending {
		if elsewhere[c.Pending[i].ID] {
			continue
		}
		u := unit{cluster: c.Target.Cluster, kind: p.kind(c.Pending[i].Role), index: p.unitIndex(&c.Pending[i])}
		u.needsBoth = u.kind == pairKind && both
		if u.kind == pairKind && matched {
			for seen[next] {
				next++
			}
			u.index = next
		}
		if u.kind == pairKind && (seen[u.index] || matched && u.index >= p.pairs()) {
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
func (p *Plan) unitsOf(c *ClusterPlan, running *RunningView) []unit {
	var all []unit
	type of struct {
		index int32
		kept  bool
	}
	at, both := map[of]int{}, p.needBoth()
	var matched match
	if both && !p.Service.Grouped {
		matched = p.match(c, running)
	}
	for r := range c.Replicas() {
		u := unit{cluster: c.Target.Cluster, replicas: []*Replica{r}, kind: p.kind(r.Role), index: p.unitIndex(r), extra: r.Extra, kept: r.Kept}
		u.needsBoth = both && u.kind == pairKind
		if index, is := matched.units[r.Key]; is {
			u.index, u.extra, u.answering = index, index >= p.pairs(), matched.answering
		}
		i, has := at[of{u.index, u.kept}]
		switch {
		case u.kind != pairKind:
			all = append(all, u)
		case has:
			all[i].replicas = append(all[i].replicas, r)
		default:
			at[of{u.index, u.kept}] = len(all)
			all = append(all, u)
		}
	}
	return all
}

// spreads tells whether clusters of the fleet share the replicas of the service.
func (p *Plan) spreads() bool {
	return p.inFleet && p.policy() == v1alpha1.PlacementSpread
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
