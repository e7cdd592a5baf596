package scheduling

import (
	"maps"
	"slices"

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
		if s := v.snapshot.States[m.target.Cluster]; s != nil {
			for _, replica := range reservation.Replicas(d.Groups) {
				if s.Present[replica.Name] {
					at.Running = append(at.Running, replica.Name)
				}
			}
		}
		r.Clusters[m.inferenceCluster] = at
	}
	r.AssignGenerations(v.snapshot.Request, v.answeredGeneration())
	return r
}

// withdrawn returns the clusters that have grants for the service, and are not in its request.
func (v *view) withdrawn(request *reservation.CapacityRequest) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(v.snapshot.Clusters)) {
		if _, requested := request.Clusters[name]; !requested && reservationOf(v.snapshot.Clusters[name], v.demand.ServiceID) != nil {
			all = append(all, name)
		}
	}
	return all
}

// answeredGeneration returns the highest generation of the service's requests that clusters
// have answered.
func (v *view) answeredGeneration() int64 {
	var highest int64
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
