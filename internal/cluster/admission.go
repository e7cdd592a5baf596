package cluster

import "github.com/fusioninfer/function-inferenceservice/internal/reservation"

// dropPods drops the pods that requests, which this call has decoded, request of a cluster. All of them fit
// then. The ledger of a cluster whose admission is Kueue's says who is there, and counts nothing.
func dropPods(cluster string, requests []reservation.CapacityRequest) {
	for i := range requests {
		for _, g := range requests[i].Clusters[cluster].Groups {
			for r := range g.Replicas {
				g.Replicas[r].Pods = nil
			}
		}
	}
}
