package plan

import (
	"cmp"
	"slices"
	"sync"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

/*
Where a service is small, all of its pods in the cluster of the XR are read, by one requirement. Each
pod is about 10 KB of a request. So of a large service, only pods of replicas that are not ready are
read, each by its name, and no more of them than of a small service. A large service that is settled
reads none.

In another cluster an Object observes each of these pods. It costs requests to both clusters for as
long as it exists, so there are only a few, and none for a replica that waits for room. Such an Object
stays until its replica is ready: the phase of a PodGroup changes whenever one of its pods is made
anew, and the Object must not come and go with it.

Only what fails in these pods is used, and which of them are being deleted where all are read. How many are ready, the
LeaderWorkerSets say: an Object may be older than its LeaderWorkerSet's, and of some replicas not all pods are read.
*/

// MaxObservedPods is how many pods of a service Objects observe in one other cluster.
const MaxObservedPods = 8

// ReadsPods tells whether all pods of the service in a cluster are read. It counts those that are wanted: which extra replicas
// stay, and which replicas keep the nodes that they have, depends on these pods. The requirement for pods must not come and go with
// the answer to it.
func (p *Plan) ReadsPods(c *ClusterPlan) bool {
	n := int32(0)
	for r := range c.Replicas() {
		if !r.Extra {
			n += r.Role.Nodes
		}
	}
	return !c.Target.Remote() && n > 0 && n <= p.PodLimit
}

// PodName is the name of a pod of the replica. LeaderWorkerSet names the pods of its only group so.
// The leader is pod 0.
func (r *Replica) PodName(i int32) string {
	if i == 0 {
		return r.Name + groupSuffix
	}
	return r.Name + groupSuffix + "-" + key.Number(i)
}

// PodKey is the key of the Object that observes a pod of a replica in another cluster.
func (c *ClusterPlan) PodKey(r *Replica, i int32) key.Key {
	return c.Key(key.Pod, string(r.ID), key.Number(i))
}

// inspect decides which pods are read by their names.
func (p *Plan) inspect(running *RunningView) {
	for i := range p.Clusters {
		c := &p.Clusters[i]
		switch {
		case c.Target.Remote():
			c.inspect(min(p.PodLimit, MaxObservedPods), running)
		case !p.ReadsPods(c):
			c.inspect(p.PodLimit, running)
		}
	}
}

// inspect reads the leaders of replicas that are not ready, and then their workers, up to a limit.
// Most failures show in the leader.
func (c *ClusterPlan) inspect(limit int32, running *RunningView) {
	suspects := c.suspects(running)
	suspects = suspects[:min(len(suspects), int(limit))]
	for _, r := range suspects {
		r.PodsRead = 1
		limit--
	}
	for _, r := range suspects {
		n := min(limit, r.Nodes-r.PodsRead)
		r.PodsRead += n
		limit -= n
	}
}

// suspects are the replicas that are not ready, those first whose pods are most likely to say why. A
// replica that waits for room has pods that cannot fail.
func (c *ClusterPlan) suspects(running *RunningView) []*Replica {
	const observedRank, startedRank, waitingRank = 0, 1, 2
	rank := map[*Replica]int{}
	var all []*Replica
	for i := range c.Groups {
		g := &c.Groups[i]
		started := c.started(g, running)
		for j := range g.Replicas {
			r := &g.Replicas[j]
			// While its LeaderWorkerSet has been changed, nothing is known of it, and the Object stays.
			observed := c.Target.Remote() && running.Observed(c.PodKey(r, 0)) && !r.serving
			if !r.broken && !observed {
				continue
			}
			switch {
			case observed:
				rank[r] = observedRank
			case started(r):
				rank[r] = startedRank
			case c.Target.Remote():
				continue
			default:
				rank[r] = waitingRank
			}
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b *Replica) int { return cmp.Compare(rank[a], rank[b]) })
	return all
}

// started returns a function that tells whether nothing is known to keep the pods of a group's replica
// from starting. A PodGroup may be large, so it is read once.
func (c *ClusterPlan) started(g *Group, running *RunningView) func(*Replica) bool {
	if g.PodGroup != nil {
		gang := sync.OnceValue(func() bool { return running.PodGroup(g.PodGroup.Key).Started })
		return func(*Replica) bool { return gang() }
	}
	return func(r *Replica) bool { return c.LocalQueue == "" || running.Admitted(c.WorkloadKey(r)) }
}
