package reservation

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// AssignGenerations sets the generations of a request. A replica keeps that of the last request
// if it requests the same. A replica that is added, or requests something else, gets a new one.
// Answered is the highest generation that clusters have answered. It matters when the last
// request is lost: a new one must not start with generations that were answered before.
func (req *CapacityRequest) AssignGenerations(last *CapacityRequest, answered int64) {
	if last == nil {
		last = &CapacityRequest{Generation: answered}
	}
	next := max(last.Generation, answered) + 1
	req.Generation = last.Generation
	was, is := podTexts(last.PodRequirements), podTexts(req.PodRequirements)
	for name, cr := range req.Clusters {
		before := map[key.ReplicaID]ReplicaRequest{}
		for _, r := range Replicas(last.Clusters[name].Groups) {
			before[r.Name] = r
		}
		groups := make([]ReplicaGroup, len(cr.Groups))
		for i, group := range cr.Groups {
			groups[i] = ReplicaGroup{Name: group.Name, Replicas: slices.Clone(group.Replicas)}
			for j := range groups[i].Replicas {
				r := &groups[i].Replicas[j]
				if old, requested := before[r.Name]; requested && was(old.Pods) == is(r.Pods) {
					r.Generation = old.Generation
				} else {
					r.Generation, req.Generation = next, next
				}
			}
		}
		cr.Groups = groups
		req.Clusters[name] = cr
	}
}

// Reserved returns those of the requested replicas that are granted as they are requested. An
// older grant of a replica is kept, and is for what the replica requested before.
func (cr *ClusterRequest) Reserved(generations map[key.ReplicaID]int64) map[key.ReplicaID]bool {
	reserved := map[key.ReplicaID]bool{}
	for _, r := range Replicas(cr.Groups) {
		if granted, ok := generations[r.Name]; ok && granted >= r.Generation {
			reserved[r.Name] = true
		}
	}
	return reserved
}

// Newest returns the highest generation of what is requested of the cluster.
func (cr *ClusterRequest) Newest() int64 {
	var newest int64
	for _, r := range Replicas(cr.Groups) {
		newest = max(newest, r.Generation)
	}
	return newest
}
