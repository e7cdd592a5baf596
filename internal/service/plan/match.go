package plan

import (
	"cmp"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

// A match has the units of prefill and decode replicas that need each other.
type match struct {
	// units are the indexes of the units, by the keys of the replicas.
	units map[key.Key]int32
	// answering are the versions of which prefill and decode may serve.
	answering map[string]bool
}

// A side has the prefill or the decode replicas of a cluster, in the order in which they are spread over the units.
type side []*Replica

// match spreads prefill and decode replicas that need each other evenly over units. Their indexes do not say which of
// them have one version: in a rollout, scaling removes updated ones, or adds some. So those of one version are put
// together, as far as there are as many. Without a partition, if some version has prefill and decode that serve, one unit has
// such replicas of both. So a version goes on answering as long as one unit has to serve. Replicas below the partition come
// first, because they keep their version. With several roles of one type, one may still be in a unit above it.
func (p *Plan) match(c *ClusterPlan, running *RunningView) match {
	var prefill, decode side
	for r := range c.Replicas() {
		switch {
		case r.Kept:
		case r.Role.Type == v1alpha1.ComponentTypePrefiller:
			prefill = append(prefill, r)
		case r.Role.Type == v1alpha1.ComponentTypeDecoder:
			decode = append(decode, r)
		}
	}
	o := newOrder(slices.Concat(prefill, decode), running)
	if *p.Rollout.Partition > 0 {
		for _, r := range slices.Concat(prefill, decode) {
			o.below[r.Key] = p.unitIndex(r) < *p.Rollout.Partition
		}
	}
	all := match{units: make(map[key.Key]int32, len(prefill)+len(decode)), answering: o.answering()}
	units := max(1, min(p.pairs(), prefill.wanted(), decode.wanted()))
	extra := max(1, min(prefill.extraUnits(p), decode.extraUnits(p)))
	for _, s := range []side{prefill, decode} {
		slices.SortStableFunc(s, o.compare)
		wanted, more := s.wanted(), s.extra()
		for i, r := range s {
			n := int32(i)
			if n < wanted {
				all.units[r.Key] = n * units / wanted
			} else {
				all.units[r.Key] = p.pairs() + (n-wanted)*extra/more
			}
		}
	}
	return all
}

// needed returns prefill and decode replicas that a release leaves as they are. Those of a unit that does not serve may
// answer requests with replicas of other units, such as kept ones. So where no unit serves, and not all may be unavailable,
// one replica of each side of a version stays.
func (p *Plan) needed(units []unit, states []rollout.Unit, released []bool, running *RunningView) map[key.Key]bool {
	all := map[key.Key]bool{}
	if !p.needBoth() {
		return all
	}
	type inCluster struct {
		wanted   int32
		serves   bool
		replicas []*Replica
	}
	clusters, stopped := map[string]*inCluster{}, map[key.Key]bool{}
	for i := range units {
		u := &units[i]
		if !u.needsBoth {
			continue
		}
		c := clusters[u.cluster]
		if c == nil {
			c = &inCluster{}
			clusters[u.cluster] = c
		}
		if !u.extra {
			c.wanted++
		}
		c.serves = c.serves || states[i].Serving && !released[i]
		c.replicas = append(c.replicas, u.replicas...)
		for _, r := range u.replicas {
			stopped[r.Key] = released[i]
		}
	}
	for _, c := range clusters {
		if c.serves || c.wanted <= *p.Rollout.MaxUnavailable {
			continue
		}
		for _, r := range newOrder(c.replicas, running).best(c.replicas, stopped) {
			all[r.Key] = true
		}
	}
	return all
}

// best returns a prefill and a decode replica of a version that serves. Where none is known to, they are those of each version
// that may.
func (o *order) best(replicas []*Replica, stopped map[key.Key]bool) []*Replica {
	sorted := slices.Clone(replicas)
	slices.SortStableFunc(sorted, func(a, b *Replica) int {
		x, y := o.ranked[a.Key], o.ranked[b.Key]
		return cmp.Or(cmp.Compare(o.ranks[x.RunningRevision], o.ranks[y.RunningRevision]), sorting.First(x.newest, y.newest), cmp.Compare(x.RunningRevision, y.RunningRevision),
			cmp.Compare(x.health(), y.health()), sorting.First(!stopped[a.Key], !stopped[b.Key]))
	})
	type one struct {
		version string
		of      v1alpha1.ComponentType
	}
	var all []*Replica
	has, first := map[one]bool{}, ""
	for i, r := range sorted {
		it := one{o.ranked[r.Key].RunningRevision, r.Role.Type}
		if i == 0 {
			first = it.version
		}
		if rank := o.ranks[it.version]; rank == rankBroken || it.version != first && o.ranks[first] == rankServes {
			break
		}
		if !has[it] {
			has[it] = true
			all = append(all, r)
		}
	}
	return all
}

// wanted is how many replicas of a side are not extra ones.
func (s side) wanted() int32 { return int32(len(s)) - s.extra() } //nolint:gosec // The API allows a few thousand.

// extra is how many replicas of a side are extra ones.
func (s side) extra() int32 {
	n := int32(0)
	for _, r := range s {
		if r.Extra {
			n++
		}
	}
	return n
}

// extraUnits is in how many units the extra replicas of a side are.
func (s side) extraUnits(p *Plan) int32 {
	seen := map[int32]bool{}
	for _, r := range s {
		if r.Extra {
			seen[p.unitIndex(r)] = true
		}
	}
	return int32(len(seen)) //nolint:gosec // As above.
}

// An order of prefill and decode replicas. The newest version comes last, and before it a version of which both serve comes
// first. In each version those that serve are the outermost ones.
type order struct {
	ranked map[key.Key]ranked
	// ranks of the versions.
	ranks map[string]int
	// below tells which replicas the partition leaves as they are.
	below map[key.Key]bool
}

// A ranked replica has its state, and tells whether it runs the newest version.
type ranked struct {
	rollout.State
	newest bool
}

// Ranks of versions: prefill and decode serve, may serve, or do not.
const (
	rankServes = iota
	rankMayServe
	rankBroken
)

func newOrder(replicas []*Replica, running *RunningView) *order {
	o := &order{ranked: make(map[key.Key]ranked, len(replicas)), ranks: map[string]int{}, below: map[key.Key]bool{}}
	serve, mayServe := Versions{}, Versions{}
	for _, r := range replicas {
		s := running.stateOf(r)
		o.ranked[r.Key] = ranked{State: s, newest: !s.Exists || s.Updated(running.Revision[r.Role.Name])}
		serve.addIf(r, s, s.Serving)
		mayServe.addIf(r, s, mayServeOf(r, s))
		o.ranks[s.RunningRevision] = rankBroken
	}
	u := unit{kind: pairKind, needsBoth: true}
	for version := range o.ranks {
		switch {
		case u.answersWith(version, serve[version]):
			o.ranks[version] = rankServes
		case u.answersWith(version, mayServe[version]):
			o.ranks[version] = rankMayServe
		}
	}
	return o
}

// answering returns the versions of which prefill and decode may serve.
func (o *order) answering() map[string]bool {
	all := map[string]bool{}
	for version, rank := range o.ranks {
		all[version] = rank < rankBroken
	}
	return all
}

// compare is the order of two replicas.
func (o *order) compare(a, b *Replica) int {
	x, y := o.ranked[a.Key], o.ranked[b.Key]
	if first := sorting.First(o.below[a.Key], o.below[b.Key]); first != 0 {
		return first
	}
	if x.newest && y.newest {
		return cmp.Compare(y.health(), x.health())
	}
	return cmp.Or(sorting.First(y.newest, x.newest), cmp.Compare(o.ranks[x.RunningRevision], o.ranks[y.RunningRevision]), cmp.Compare(x.RunningRevision, y.RunningRevision), cmp.Compare(x.health(), y.health()), cmp.Compare(a.Index, b.Index))
}

// health is 0 for what serves, and higher the less it may.
func (r ranked) health() int {
	switch {
	case r.Serving:
		return 0
	case r.MayServe():
		return 1
	}
	return 2
}
