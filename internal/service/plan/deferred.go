package plan

import (
	"fmt"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// A Deferred is a wanted object that is left out of the desired state for now. An observed
// object is never deferred: Crossplane deletes observed objects that are left out.
type Deferred struct {
	Key key.Key
	// Reason for the condition, one of the constants below.
	Reason  string
	Message string
}

// The reasons to defer an object.
const (
	// DeferredForGang: the PodGroup in the cluster does not count the replica yet.
	DeferredForGang = "WaitingForGang"
	// DeferredForKind: the cluster does not have the kind.
	DeferredForKind = "KindMissing"
	// DeferredForCapacity: no cluster has reserved capacity for the replica yet.
	DeferredForCapacity = "WaitingForCapacity"
	// DeferredForWeights: the weights of spec.model are not in the cluster yet.
	DeferredForWeights = "WaitingForModel"
	// DeferredForCluster: no cluster accepts the replica, so no capacity is requested.
	DeferredForCluster = "NoCluster"
	// DeferredForName: somebody else has a name that the replica needs, or another one of its group.
	DeferredForName = "NameConflict"
	// DeferredForProviderConfigs: Crossplane has not listed the clusters of the fleet yet.
	DeferredForProviderConfigs = "ClustersNotKnown"
)

// A PodGroupView is the observed state of a PodGroup.
type PodGroupView struct {
	// Observed tells whether the PodGroup exists.
	Observed bool
	// MinTaskMember as it is in the cluster.
	MinTaskMember map[string]int32
	// SubGroupSizes as they are in the cluster, by the role's name.
	SubGroupSizes map[string]int32
	// Started tells that Volcano has started the gang, or a part of it.
	Started bool
}

// DeferForGang defers new replicas of a gang until the existing PodGroup counts them. Until
// then Volcano would schedule their pods one by one. The first time there is no PodGroup, so
// the PodGroup and all replicas are created together.
func (p *Plan) DeferForGang(view func(key.Key) PodGroupView, observed func(key.Key) bool) []Deferred {
	var deferred []Deferred
	for i := range p.Clusters {
		for j := range p.Clusters[i].Groups {
			g := &p.Clusters[i].Groups[j]
			if g.PodGroup == nil {
				continue
			}
			v := view(g.PodGroup.Key)
			if !v.Observed {
				continue
			}
			deferred = append(deferred, g.uncounted(v, observed)...)
		}
	}
	return deferred
}

// uncounted returns the new replicas that the observed PodGroup does not count.
func (g *Group) uncounted(v PodGroupView, observed func(key.Key) bool) []Deferred {
	var deferred []Deferred
	for k := range g.Replicas {
		r := &g.Replicas[k]
		if g.PodGroup.counts(r, v) || observed(r.Key) {
			continue
		}
		deferred = append(deferred, Deferred{
			Key:     r.Key,
			Reason:  DeferredForGang,
			Message: fmt.Sprintf("LeaderWorkerSet %s waits until PodGroup %s counts task %s", r.Name, g.PodGroup.Name, r.Task),
		})
	}
	return deferred
}

// counts tells whether the observed PodGroup requires of a replica what the wanted PodGroup
// does.
func (pg *PodGroup) counts(r *Replica, v PodGroupView) bool {
	for _, s := range pg.SubGroups {
		if s.Role == r.Role.Name {
			return v.SubGroupSizes[s.Role] == s.Size
		}
	}
	want, required := pg.MinTaskMember[r.Task]
	return !required || v.MinTaskMember[r.Task] == want
}
