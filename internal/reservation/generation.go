package reservation

import (
	"maps"
	"slices"
	"strconv"
	"strings"

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
	was, is := last.podTexts(), req.podTexts()
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

// podTexts returns a function that returns the same text for equal pods, whatever the names of
// their requirements.
func (req *CapacityRequest) podTexts() func(map[string]int64) string {
	texts := map[string]string{}
	for name, r := range req.PodRequirements {
		texts[name] = r.Key()
	}
	return func(pods map[string]int64) string {
		counts := map[string]int64{}
		for name, n := range pods {
			if n > 0 {
				counts[texts[name]] += n
			}
		}
		var b strings.Builder
		for _, text := range slices.Sorted(maps.Keys(counts)) {
			b.WriteString(strconv.FormatInt(counts[text], 10) + " x " + strconv.Quote(text) + "\n")
		}
		return b.String()
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
