/*
Package rollout decides when each replica of a running service gets a change of its pods. It is
pure: no client and no clock, and the same arguments give the same result.

Each replica is a LeaderWorkerSet of its own with one group. So the limits of a LeaderWorkerSet
protect nothing, and a change that all of them got at once would stop the whole service. A
LeaderWorkerSet with partition 1 takes a new template and keeps its pods. Even a pod that is
deleted meanwhile comes back as it was (pkg/controllers/pod_controller.go of
LeaderWorkerSet v0.9.0). So every replica gets the newest template at once, most of them with
that partition, and a rollout releases one after the other. Nothing has to remember a former
template.

Crossplane's caches may show a replica as it was some calls ago, so one that was released may seem to serve. Until all replicas
are read with the newest template, the caller sets Policy.Paused. By then, each release of an earlier template is seen.

# States

A unit is what changes together: a replica, or prefill replicas with decode replicas.

  - Outdated: a replica of it has a former template, or the newest one behind the partition.
  - Started: a replica of it has been released, and does not serve so far. It goes on with whatever is newest until its
    controller reports the pods that it was released for. If it was held again before, nobody would know which pods it has.
  - Serving: all of its replicas have the pods that they need, ready, and none is being replaced.
    An outdated unit serves as long as a replica with a former template answers requests. Prefill
    does not by itself.
  - Answering: a replica with a former template may answer requests together with others of its version,
    whatever units these are in.
  - Unknown: such a replica may answer requests. Its status is older than its spec, as after every
    edit, or a pod of it is being deleted.

# Rules

  - A started unit of which nothing may serve, and nothing answers, is released as a whole.
  - A unit that is known to be broken, and of which nothing may serve by itself, is released before those that
    serve. While as many units are started as may be unavailable, or one, it waits: the newest template
    may be what is wrong, and a crash must not spread it. One that answers with others comes after those
    that do not. If nothing serves, and nothing answers, all broken units are released at once.
  - A unit that serves is released while as many others serve as the policy requires, of its kind
    and of all kinds. The highest index comes first. An extra unit serves in the place of units of its
    own cluster only, because requests reach a cluster as long as anything serves there.
  - Where an extra unit takes its place, a unit is released whatever does not serve in other clusters. So one
    without room for a replica does not hold up the others.

# Invariants

  - A release never leaves fewer units serving than the number of units that are wanted, less
    MaxUnavailable, of each kind and of all (TestRandomRollouts). Where an extra unit takes the place of the released
    one, that number may be missed, and stays as it is (TestRelease).
  - If every released unit comes to serve, all units are released in the end (TestRandomRollouts).
  - If no released unit ever serves, no more than MaxUnavailable units that served are released
    (TestRandomRollouts).
*/
package rollout

import (
	"cmp"
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

// A State is what is observed of one replica.
type State struct {
	// Exists tells that its LeaderWorkerSet exists.
	Exists bool
	// Revision of the template that it was given last. Empty if that is not known.
	Revision string
	// Held tells that this template waits behind a partition. Runs tells that its pods are made from
	// it all the same: they have been, and another one that was held meanwhile was put back.
	Held, Runs bool
	// RunningRevision is that of the template that its pods are made from. Empty if that is not known.
	RunningRevision string
	// FormerRevision is that of the template that its pods may still be made from, while they are being replaced. Empty if none are.
	FormerRevision string
	// RunningPodGroup is the PodGroup that its pods name. Empty if they name none, or that is not known.
	RunningPodGroup string
	// Size is how many pods it was told to have last. 0 if that is not known.
	Size int32
	// Serving tells that all of its pods are ready, and that none of them is being replaced, or known to be deleted.
	Serving bool
	// Broken tells that its controller has reported on its newest spec, and that it is not ready.
	Broken bool
	// Since is when it was made, or its controller last reported otherwise. Zero if that is not known.
	Since time.Time
}

// Updated tells whether the replica was given a revision, and no partition holds it back.
func (s State) Updated(revision string) bool { return s.Revision == revision && (!s.Held || s.Runs) }

// Replacing tells that the replica was given its template without a partition, and is not known to have pods of it.
func (s State) Replacing() bool { return s.FormerRevision != "" }

// MayServe tells whether the replica serves, or it is not known that it does not. Its status may be older than its
// spec, or its cluster out of reach.
func (s State) MayServe() bool { return s.Exists && !s.Broken }

// A Unit is what changes together.
type Unit struct {
	Cluster string
	// Kind of the unit: its role, or empty for prefill with decode.
	Kind string
	// Index in its role, or of its group.
	Index int32
	// Outdated, Started, Serving, Answering and Unknown are the states of the package documentation.
	Outdated, Started, Serving, Answering, Unknown bool
	// Broken tells that one of its replicas is known not to be ready, or that its replicas are of versions that
	// answer no request together.
	Broken bool
	// Blocked units are not released, such as one whose cluster has not reserved what it needs.
	Blocked bool
	// Extra units are beyond the number that is wanted. They count if they serve.
	Extra bool
}

// useless tells that the unit is broken, and answers no requests with others either.
func (u Unit) useless() bool { return u.Broken && !u.Answering }

// A Policy says how many units may be changed at once.
type Policy struct {
	// MaxUnavailable is how many of the wanted units may not serve because of a release.
	MaxUnavailable int32
	// Partition: units with a lower index are not released.
	Partition int32
	// Paused: only started units are released.
	Paused bool
}

// A count has the units of one kind, or of all.
type count struct {
	clusters map[string]*inCluster
	// missing is how many of the wanted units do not serve, and have no extra one in their place.
	missing int32
}

// An inCluster has the units of a count in one cluster.
type inCluster struct{ wanted, serving int32 }

func (c *inCluster) missing() int32 { return max(c.wanted-c.serving, 0) }

func (c *count) add(u Unit) {
	if c.clusters == nil {
		c.clusters = map[string]*inCluster{}
	}
	at := c.clusters[u.Cluster]
	if at == nil {
		at = &inCluster{}
		c.clusters[u.Cluster] = at
	}
	c.missing -= at.missing()
	if !u.Extra {
		at.wanted++
	}
	if u.Serving {
		at.serving++
	}
	c.missing += at.missing()
}

// covers tells whether an extra unit of a cluster serves in the place of one more that stops.
func (c *count) covers(cluster string) bool {
	at := c.clusters[cluster]
	return at.serving > at.wanted
}

// spares tells whether one more unit of a cluster may stop.
func (c *count) spares(cluster string, p Policy) bool {
	return c.missing < p.MaxUnavailable || c.missing == p.MaxUnavailable && c.covers(cluster)
}

// mayStop tells whether one more unit of a cluster may stop, by all of these counts.
func mayStop(cluster string, p Policy, counts ...*count) bool {
	covered, spared := true, true
	for _, c := range counts {
		covered, spared = covered && c.covers(cluster), spared && c.spares(cluster, p)
	}
	return covered || spared
}

// stop counts a unit of a cluster as one that does not serve.
func (c *count) stop(cluster string) {
	at := c.clusters[cluster]
	c.missing -= at.missing()
	at.serving--
	c.missing += at.missing()
}

// Release tells for each unit whether its replicas may get the newest template now. A unit that is
// not outdated needs no release.
func Release(units []Unit, p Policy) []bool {
	all, kinds, started, nothingServes := &count{}, map[string]*count{}, 0, true
	for _, u := range units {
		if kinds[u.Kind] == nil {
			kinds[u.Kind] = &count{}
		}
		all.add(u)
		kinds[u.Kind].add(u)
		if u.Started {
			started++
		}
		nothingServes = nothingServes && !u.Serving && !u.Answering
	}
	released := make([]bool, len(units))
	for _, i := range inOrder(units) {
		u, kind := units[i], kinds[units[i].Kind]
		switch {
		case !u.Outdated || u.Blocked:
		case u.Started && !u.Serving && !u.Unknown && !u.Answering:
			released[i] = true
		case p.Paused || u.Index < p.Partition:
		case u.Broken && !u.Serving && !u.Unknown:
			released[i] = started < max(int(p.MaxUnavailable), 1)
			if released[i] && !nothingServes {
				started++
			}
		case u.Serving && mayStop(u.Cluster, p, all, kind):
			released[i] = true
			all.stop(u.Cluster)
			kind.stop(u.Cluster)
		}
	}
	return released
}

// inOrder returns the indices of the units: those that are broken first, and then the highest index
// of a unit. Among equals the first unit comes first. A broken unit that answers with others comes after
// those that are of no use to anybody.
func inOrder(units []Unit) []int {
	order := make([]int, len(units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(sorting.First(units[a].Broken, units[b].Broken), sorting.First(units[a].useless(), units[b].useless()), cmp.Compare(units[b].Index, units[a].Index))
	})
	return order
}
