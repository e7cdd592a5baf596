package plan

import (
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

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
	// both tells that prefill and decode need each other to answer.
	both bool
	// answering are the versions of which both may serve in the cluster, whatever unit they are in.
	answering map[string]bool
}

// state of the unit, by the states of its replicas.
func (u *unit) state(running *Running) rollout.Unit {
	s := rollout.Unit{Cluster: u.cluster, Kind: u.kind, Index: u.index, Serving: len(u.replicas) > 0, Extra: u.extra}
	// serve are the replicas that serve, and mayServe those of which that is not known, too.
	serve, mayServe, formerServe, formerMayServe := Versions{}, Versions{}, Versions{}, Versions{}
	for _, r := range u.replicas {
		state := running.of(r)
		updated := state.Updated(running.Revision[r.Role.Name])
		former, may := state.Exists && !updated, mayServeOf(r, state)
		s.Outdated = s.Outdated || former
		s.Started = s.Started || state.Exists && updated && !state.Serving
		s.Serving = s.Serving && state.Serving
		s.Broken = s.Broken || state.Broken
		serve.addIf(r, state, state.Serving)
		mayServe.addIf(r, state, may)
		formerServe.addIf(r, state, former && state.Serving)
		formerMayServe.addIf(r, state, former && may)
		s.Answering = s.Answering || former && may && u.answering[state.RunningRevision]
		s.Blocked = s.Blocked || r.Held
	}
	if u.both {
		s.Serving = s.Serving && u.answers(serve)
		s.Broken = s.Broken || !u.answers(mayServe)
	}
	s.Serving, s.Unknown = s.Serving || u.answers(formerServe), u.answers(formerMayServe)
	if u.kept {
		s.Serving, s.Blocked = false, true
	}
	return s
}

// of returns the state of a replica. It does not serve while its pods are made anew, or parts of its unit do not run.
func (r *Running) of(replica *Replica) rollout.State {
	s := r.Replica(replica.Key)
	s.Serving = s.Serving && !replica.Remade && !replica.Partial
	return s
}

// mayServeOf tells whether a replica serves, or is not known not to.
func mayServeOf(r *Replica, s rollout.State) bool { return s.MayServe() && !r.Partial }

// types of roles.
type types map[v1alpha1.ComponentType]bool

// Versions are the types of some replicas, by the revision that they run.
type Versions map[string]types

// addIf adds a replica, if it is one of them.
func (v Versions) addIf(r *Replica, s rollout.State, is bool) {
	if is {
		v.Add(r.Role.Type, s.RunningRevision)
	}
}

// Add adds a replica of a type that runs a revision.
func (v Versions) Add(t v1alpha1.ComponentType, revision string) {
	if v[revision] == nil {
		v[revision] = types{}
	}
	v[revision][t] = true
}

// some tells whether any version satisfies the predicate.
func (v Versions) some(are func(version string, t types) bool) bool {
	for version, t := range v {
		if are(version, t) {
			return true
		}
	}
	return false
}

// answers tells whether a unit answers requests with these replicas. Those of different versions may refuse each other.
func (u *unit) answers(serving Versions) bool {
	return serving.some(u.needsNoMore)
}

// needsNoMore tells whether a unit answers requests with replicas of these types, which run a version. In a pair that is
// decode, with prefill if that version needs it.
func (u *unit) needsNoMore(version string, t types) bool {
	if u.kind != pairKind {
		return len(t) > 0
	}
	return t[v1alpha1.ComponentTypeDecoder] && (t[v1alpha1.ComponentTypePrefiller] || !u.both || answersAlone(version))
}

// bothSuffix ends the revisions of which decode answers no request without prefill. So a former revision tells it, too,
// whatever the roles are today.
const bothSuffix = "-both"

// PairRevision is the revision of prefill and decode whose pods have a hash.
func (p *Plan) PairRevision(hash string) string {
	if needEachOther(p.Roles) {
		return hash + bothSuffix
	}
	return hash
}

// answersAlone tells whether decode of a revision is known to answer requests without prefill.
func answersAlone(revision string) bool {
	return revision != "" && !strings.HasSuffix(revision, bothSuffix)
}

// Any tells whether some version can answer whole requests: a worker, decode with prefill, or either alone where the engine
// allows it.
func (v Versions) Any() bool {
	return v.some(func(version string, t types) bool {
		return t[v1alpha1.ComponentTypeWorker] || t[v1alpha1.ComponentTypeDecoder] && t[v1alpha1.ComponentTypePrefiller] || answersAlone(version)
	})
}

// Picked tells whether some of them answer requests of an endpoint picker that picks prefill and decode apart. needsBoth tells
// that it wants prefill and decode of each version.
func (v Versions) Picked(needsBoth bool) bool {
	return v.some(func(version string, t types) bool {
		alone := !needsBoth && answersAlone(version)
		return t[v1alpha1.ComponentTypeWorker] || t[v1alpha1.ComponentTypeDecoder] && (t[v1alpha1.ComponentTypePrefiller] || alone)
	})
}

// startsDecode tells whether no decode replica of a unit ran before: the new ones are made, or start. Prefill
// without decode may answer requests until then.
func (u *unit) startsDecode(running *Running) bool {
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

// units returns the units of all clusters that are not left.
func (p *Plan) units(running *Running) []unit {
	var all []unit
	for i := range p.Clusters {
		if c := &p.Clusters[i]; !c.Leaving {
			there := p.unitsOf(c, running)
			all = append(all, there...)
			all = append(all, p.absent(c, there)...)
		}
	}
	return all
}

// absent returns the units that are wanted in a cluster beside those that are there, and have no capacity. They do not serve, like those whose pods wait for a node. A cluster in which nothing of the
// service runs so far holds up no rollout in the others.
func (p *Plan) absent(c *ClusterPlan, there []unit) []unit {
	if len(there) == 0 {
		return nil
	}
	var all []unit
	seen := map[int32]bool{}
	for _, u := range there {
		seen[u.index] = seen[u.index] || u.kind == pairKind && !u.kept
	}
	// Where prefill and decode are matched, the replicas that are there are in the first units.
	both, next := p.needBoth(), int32(0)
	matched := both && !p.Service.Grouped
	for i := range c.Pending {
		u := unit{cluster: c.Target.Cluster, kind: p.kind(c.Pending[i].Role), index: p.unitIndex(&c.Pending[i])}
		u.both = u.kind == pairKind && both
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
func (p *Plan) unitsOf(c *ClusterPlan, running *Running) []unit {
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
		u.both = both && u.kind == pairKind
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

// pairs is the number of units of prefill and decode replicas in a service without groups: each replica
// of the largest decode role is in another one. Decode whose revision has no prefill answers requests by
// itself, so one prefill replica does not make all decode replicas change at once. Where it does not, each
// unit has both. Without decode, each prefill replica is a unit.
func (p *Plan) pairs() int32 {
	prefill, decode := p.most(v1alpha1.ComponentTypePrefiller), p.most(v1alpha1.ComponentTypeDecoder)
	switch {
	case decode <= 0:
		return max(prefill, 1)
	case p.needBoth():
		return min(prefill, decode)
	}
	return decode
}

// needBoth tells whether prefill and decode need each other to answer, and there are both.
func (p *Plan) needBoth() bool {
	return p.most(v1alpha1.ComponentTypePrefiller) > 0 && p.most(v1alpha1.ComponentTypeDecoder) > 0 && needEachOther(p.Roles)
}

// needEachOther tells whether decode answers no request without prefill. SGLang's refuses a request without the room of a
// prefill engine ("without bootstrap room id", python/sglang/srt/disaggregation/decode.py).
func needEachOther(roles []*Role) bool {
	return slices.ContainsFunc(roles, func(r *Role) bool {
		return r.Type == v1alpha1.ComponentTypeDecoder && r.engine == launch.EngineSGLang
	})
}

// pair is the unit of a replica of a role: the replicas of each role are spread evenly. A single prefill
// replica is in the unit that changes last, so a change that fails leaves it to the others.
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
