package cluster

import (
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// uncounted returns the requests without the pods that they request of a cluster. All of them fit
// then. The ledger of a cluster whose admission is Kueue's says who is there, and counts nothing.
func uncounted(cluster string, requests []reservation.CapacityRequest) []reservation.CapacityRequest {
	all := slices.Clone(requests)
	for i := range all {
		at, requested := all[i].Clusters[cluster]
		if !requested {
			continue
		}
		at.Groups = slices.Clone(at.Groups)
		for g := range at.Groups {
			at.Groups[g].Replicas = slices.Clone(at.Groups[g].Replicas)
			for r := range at.Groups[g].Replicas {
				at.Groups[g].Replicas[r].Pods = nil
			}
		}
		all[i].Clusters = maps.Clone(all[i].Clusters)
		all[i].Clusters[cluster] = at
	}
	return all
}
