package reservation

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// AssignGenerations sets the generations of a request. A replica keeps that of the last request
// if it requests the same. A replica that is added, or requests something else, gets a new one. So do
// all that have to start together, if any of them changes and none runs: the cluster may have taken
// back what it had granted before the change (giveBack), and the service may not have read that so far.
//
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
		before := last.Clusters[name]
		all := ReplicasByName(before.Groups)
		same := func(r *ReplicaRequest) bool {
			old, requested := all[r.Name]
			return requested && was(old.Pods) == is(r.Pods)
		}
		cr.Groups = slices.Clone(cr.Groups)
		for i := range cr.Groups {
			cr.Groups[i].Replicas = slices.Clone(cr.Groups[i].Replicas)
		}
		running := before.running()
		former := before.wholes(cr.AllOrNothing)
		for group, replicas := range cr.wholes(cr.AllOrNothing) {
			changed := len(replicas) != len(former[group]) || slices.ContainsFunc(replicas, func(r *ReplicaRequest) bool { return !same(r) })
			anew := changed && notStarted(slices.Concat(replicas, former[group]), cr.AllOrNothing, running)
			for _, r := range replicas {
				if same(r) && !anew {
					r.Generation = all[r.Name].Generation
				} else {
					r.Generation, req.Generation = next, next
				}
			}
		}
		req.Clusters[name] = cr
	}
}

// notStarted tells whether some replicas have to start together, and none of them runs.
func notStarted(all []*ReplicaRequest, allOrNothing bool, running map[key.ReplicaID]bool) bool {
	return (allOrNothing || slices.ContainsFunc(all, func(r *ReplicaRequest) bool { return r.Required })) &&
		!slices.ContainsFunc(all, func(r *ReplicaRequest) bool { return running[r.Name] })
}

// running returns the replicas that the service claims to run.
func (cr *ClusterRequest) running() map[key.ReplicaID]bool {
	all := make(map[key.ReplicaID]bool, len(cr.Running))
	for _, name := range cr.Running {
		all[name] = true
	}
	return all
}

// wholes returns the replicas of each group, or of all groups as one.
func (cr *ClusterRequest) wholes(allOrNothing bool) map[key.GroupID][]*ReplicaRequest {
	all := map[key.GroupID][]*ReplicaRequest{}
	for i := range cr.Groups {
		name := cr.Groups[i].Name
		if allOrNothing {
			name = ""
		}
		for j := range cr.Groups[i].Replicas {
			all[name] = append(all[name], &cr.Groups[i].Replicas[j])
		}
	}
	return all
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
