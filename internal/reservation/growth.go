package reservation

import (
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
)

// Grown returns what the replicas request now in addition to what they requested before, for each
// node selector. Pods that shrink under another node selector do not make up for it.
func Grown(oldRequest *CapacityRequest, oldReplicas []ReplicaRequest, newRequest *CapacityRequest, newReplicas []ReplicaRequest) []capacity.Growth {
	type totals struct {
		was, now     capacity.Resources
		nodeSelector map[string]string
	}
	all := map[string]*totals{}
	totalsOf := func(requirements *capacity.PodRequirements) *totals {
		selector := (&capacity.PodRequirements{NodeSelector: requirements.NodeSelector}).Key()
		if all[selector] == nil {
			all[selector] = &totals{was: capacity.Resources{}, now: capacity.Resources{}, nodeSelector: requirements.NodeSelector}
		}
		return all[selector]
	}
	for _, podSet := range oldRequest.PodSets(oldReplicas) {
		totalsOf(podSet.Requirements).was.AddPods(podSet)
	}
	for _, podSet := range newRequest.PodSets(newReplicas) {
		totalsOf(podSet.Requirements).now.AddPods(podSet)
	}
	var grown []capacity.Growth
	for _, selector := range slices.Sorted(maps.Keys(all)) {
		g := capacity.Growth{More: capacity.Resources{}, NodeSelector: all[selector].nodeSelector}
		for name, amount := range all[selector].now {
			if more := amount - all[selector].was[name]; more > 0 {
				g.More[name] = more
			}
		}
		if len(g.More) > 0 {
			grown = append(grown, g)
		}
	}
	return grown
}

// Beyond returns what replicas request in addition to what is reserved for them.
func (req *CapacityRequest) Beyond(reserved capacity.Resources, replicas []ReplicaRequest) []capacity.Growth {
	more := capacity.Resources{}
	total, _ := capacity.Sum(req.PodSets(replicas))
	for name, n := range total {
		if n > reserved[name] {
			more[name] = n - reserved[name]
		}
	}
	return []capacity.Growth{{More: more}}
}

// CoveredBy tells whether what is reserved suffices for what the replicas request now. If so, the
// cluster has counted them.
func (req *CapacityRequest) CoveredBy(reserved capacity.Resources, replicas []ReplicaRequest) bool {
	return len(req.Beyond(reserved, replicas)[0].More) == 0
}
