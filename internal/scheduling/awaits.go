package scheduling

import (
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// awaits returns the clusters whose answers the service reads: those that were asked for something
// that does not run there as it was requested, and those that have to read that nothing is
// requested of them any more. If the last request is lost, it is every cluster: any may have
// grants for what runs.
//
// So a service that runs reads no answers, and is not reconciled for them.
func (v *view) awaits() []string {
	last := v.snapshot.Request
	if last == nil {
		return slices.Sorted(maps.Keys(v.snapshot.Clusters))
	}
	all := map[string]bool{}
	for _, name := range v.snapshot.Labelled {
		_, requested := last.Clusters[name]
		_, exists := v.snapshot.Clusters[name]
		all[name] = !requested && (exists || !v.snapshot.Resolved)
	}
	for name, at := range last.Clusters {
		state := v.snapshot.States[at.Name]
		all[name] = slices.ContainsFunc(at.Groups, func(g reservation.ReplicaGroup) bool {
			return slices.ContainsFunc(g.Replicas, func(r reservation.ReplicaRequest) bool {
				return r.Held || state == nil || !state.Present[r.Name] || v.changes(state, r.Name)
			})
		})
	}
	for name := range last.Left {
		all[name] = true
	}
	maps.DeleteFunc(all, func(_ string, awaited bool) bool { return !awaited })
	return slices.Sorted(maps.Keys(all))
}

// silent returns those of the awaited clusters that have not answered in time. Their
// InferenceClusters may say why: one is paused, or cannot be reconciled.
func (v *view) silent(awaited []string, members []member, candidates []Candidate) []string {
	var all []string
	for i := range candidates {
		c := &candidates[i]
		waits := len(c.Reserved) < len(v.lastRequested(members[i].inferenceCluster))
		late := c.AskedFor >= RequestTimeout || v.snapshot.Silent[c.Name]
		if name := members[i].inferenceCluster; len(c.Requested) > 0 && !c.Evaluated && waits && late && slices.Contains(awaited, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// withdrawn returns the clusters that have read a request of the service, and are not in it any
// more. They find it by its label until they have read that.
func (v *view) withdrawn(request *reservation.CapacityRequest) []string {
	all := map[string]bool{}
	for name, c := range v.snapshot.Clusters {
		all[name] = reservationOf(c, v.demand.ServiceID) != nil
	}
	for _, name := range v.snapshot.Labelled {
		_, exists := v.snapshot.Clusters[name]
		// Without the last request the label goes: with it, the cluster would read that nothing is requested of it. It takes a
		// request that it does not find for missing, and keeps the grants.
		unread := v.snapshot.Request != nil && exists && v.snapshot.Unanswered[name]
		all[name] = all[name] || !v.snapshot.Resolved || unread
	}
	for name := range v.last.Clusters {
		all[name] = true
	}
	for name := range request.Left {
		all[name] = true
	}
	maps.DeleteFunc(all, func(name string, reads bool) bool {
		_, requested := request.Clusters[name]
		return requested || !reads
	})
	return slices.Sorted(maps.Keys(all))
}
