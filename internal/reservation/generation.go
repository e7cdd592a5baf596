package reservation

import "github.com/fusioninfer/function-inferenceservice/internal/key"

// AssignGenerations sets the generations of a request. Replicas of the last request keep
// theirs, and replicas that are added get a new one. Answered is the highest generation that
// clusters have answered. It matters when the last request is lost: a new one must not start
// with generations that were answered before.
func (req *CapacityRequest) AssignGenerations(last *CapacityRequest, answered int64) {
	if last == nil {
		last = &CapacityRequest{Generation: answered}
	}
	next := max(last.Generation, answered) + 1
	req.Generation = last.Generation
	for name, cr := range req.Clusters {
		before := map[key.ReplicaID]int64{}
		for _, r := range Replicas(last.Clusters[name].Groups) {
			before[r.Name] = r.Generation
		}
		groups := make([]ReplicaGroup, len(cr.Groups))
		for i, group := range cr.Groups {
			groups[i] = ReplicaGroup{Name: group.Name, Replicas: make([]ReplicaRequest, len(group.Replicas))}
			for j, r := range group.Replicas {
				generation, requested := before[r.Name]
				if !requested {
					generation, req.Generation = next, next
				}
				r.Generation = generation
				groups[i].Replicas[j] = r
			}
		}
		cr.Groups = groups
		req.Clusters[name] = cr
	}
}

// generation returns the generation with which a ledger answers this request.
func (cr *ClusterRequest) generation() int64 {
	var highest int64
	for _, r := range Replicas(cr.Groups) {
		highest = max(highest, r.Generation)
	}
	return highest
}

// Reserved returns those of the replicas that are still requested, and that a ledger of this
// generation reserves.
func (cr *ClusterRequest) Reserved(generation int64, replicas []key.ReplicaID) map[key.ReplicaID]bool {
	answered := make(map[key.ReplicaID]bool, len(replicas))
	for _, name := range replicas {
		answered[name] = true
	}
	reserved := map[key.ReplicaID]bool{}
	for _, r := range Replicas(cr.Groups) {
		if answered[r.Name] && r.Generation <= generation {
			reserved[r.Name] = true
		}
	}
	return reserved
}
