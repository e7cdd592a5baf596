package scheduling

import (
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

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
		at := reservation.ClusterRequest{
			Name: m.target.Cluster, Namespace: m.target.Namespace, Groups: d.Groups, AllOrNothing: d.AllOrNothing,
			ProviderConfigKind: m.target.ProviderConfig.Kind, ProviderConfig: m.target.ProviderConfig.Name,
		}
		r.Clusters[m.inferenceCluster] = at
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
		if !requested || m.inferenceCluster == "" {
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
