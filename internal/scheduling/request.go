package scheduling

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// requestedOf returns how many replicas are to be requested of the clusters of the fleet. There may be millions, of which nobody could read a
// request.
func requestedOf(members []member, decisions []Decision) int {
	n := 0
	for i := range decisions {
		if members[i].inferenceCluster == "" {
			continue
		}
		for j := range decisions[i].Groups {
			n += len(decisions[i].Groups[j].Replicas)
		}
	}
	return n
}

// request returns the capacity that the service requests of the clusters of the fleet.
func (v *view) request(members []member, decisions []Decision, homes map[key.GroupID]reservation.Home) *reservation.CapacityRequest {
	r := &reservation.CapacityRequest{
		UID: v.demand.UID, Namespace: v.demand.Namespace, Name: v.demand.Name, Created: v.snapshot.Created,
		PodRequirements: v.demand.PodRequirements, Clusters: map[string]reservation.ClusterRequest{}, Homes: homes,
	}
	for i, d := range decisions {
		m := members[i]
		if m.inferenceCluster == "" || len(d.Groups) == 0 {
			continue
		}
		r.Clusters[m.inferenceCluster] = reservation.ClusterRequest{
			Name: m.target.Cluster, Namespace: m.target.Namespace, Groups: d.Groups, AllOrNothing: v.placement.Policy == v1alpha1.PlacementFailover,
			ProviderConfigKind: m.target.ProviderConfig.Kind, ProviderConfig: m.target.ProviderConfig.Name,
		}
	}
	r.AssignGenerations(v.snapshot.Request, v.answeredGeneration())
	v.noteReplacing(r)
	return r
}

// claimRunning notes what runs in each cluster, or starts now, and in which pool. A cluster that has
// lost its grants counts that first.
func (v *view) claimRunning(r *reservation.CapacityRequest, members []member, decisions []Decision, pins []Pins) {
	for i, m := range members {
		at, requested := r.Clusters[m.inferenceCluster]
		if !requested {
			continue
		}
		state := v.snapshot.States[m.target.Cluster]
		for _, g := range at.Groups {
			for j := range g.Replicas {
				replica := &g.Replicas[j]
				runs, exists := decisions[i].Run[replica.Name], state != nil && state.Present[replica.Name]
				switch {
				case runs:
					replica.Pool = pins[i][replica.Name].Name()
				case exists:
					replica.Pool = state.Pins[replica.Name].Name()
				}
				if runs || exists {
					at.Running = append(at.Running, replica.Name)
				}
			}
		}
		r.Clusters[m.inferenceCluster] = at
	}
}

// noteLeft notes what the last request said to run in a cluster, and this one does not. The cluster may not
// have read the last request, and would give away the room. Nothing is noted any more once the cluster has
// freed it.
func (v *view) noteLeft(r *reservation.CapacityRequest) {
	last := v.snapshot.Request
	if last == nil {
		last = v.lost()
	}
	left := map[string][]key.ReplicaID{}
	for cluster, at := range last.Clusters {
		left[cluster] = append(left[cluster], at.Running...)
	}
	for cluster, names := range last.Left {
		left[cluster] = append(left[cluster], names...)
	}
	for cluster, names := range left {
		running := map[key.ReplicaID]bool{}
		for _, name := range r.Clusters[cluster].Running {
			running[name] = true
		}
		freed := v.freed(cluster)
		names = slices.DeleteFunc(names, func(name key.ReplicaID) bool { return running[name] || freed(name) })
		if len(names) == 0 {
			continue
		}
		if r.Left == nil {
			r.Left = map[string][]key.ReplicaID{}
		}
		slices.Sort(names)
		r.Left[cluster] = slices.Compact(names)
	}
}

// lost stands for a last request that is lost. It may have said that everything runs that was granted, and
// no cluster may have read that.
func (v *view) lost() *reservation.CapacityRequest {
	left := map[string][]key.ReplicaID{}
	for name, c := range v.snapshot.Clusters {
		if reserved := reservationOf(c, v.demand.ServiceID); reserved != nil {
			left[name] = ReplicasFromStatus(reserved.Replicas)
		}
	}
	return &reservation.CapacityRequest{Left: left}
}

// freed returns a function that tells whether a cluster has no grant for a replica any more.
func (v *view) freed(cluster string) func(key.ReplicaID) bool {
	c, exists := v.snapshot.Clusters[cluster]
	if !v.snapshot.Resolved || exists && v.snapshot.Unanswered[cluster] {
		return func(key.ReplicaID) bool { return false }
	}
	var grants map[key.ReplicaID]v1alpha1.Replicas
	if exists {
		grants = v.grantsOf(c)
	}
	return func(name key.ReplicaID) bool {
		_, has := grants[name]
		return !has
	}
}

// answeredGeneration returns the highest generation of the service's requests that clusters
// have answered, or that its replicas were granted.
func (v *view) answeredGeneration() int64 {
	var highest int64
	for _, state := range v.snapshot.States {
		for _, told := range state.Told {
			highest = max(highest, told.Generation)
		}
	}
	for _, ic := range v.snapshot.Clusters {
		if reserved := reservationOf(ic, v.demand.ServiceID); reserved != nil {
			for _, r := range reserved.Replicas {
				highest = max(highest, r.Generation)
			}
		}
		if p := pendingOf(ic, v.demand.ServiceID); p != nil {
			highest = max(highest, p.Generation)
		}
	}
	return highest
}
