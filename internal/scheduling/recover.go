package scheduling

import (
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// recovered returns the clusters of the fleet where something of a service exists that has lost
// its request: those that have grants for it, and the provider configuration of what exists.
// Without them, it would give up what it was granted in clusters that its placement no longer
// names, while it still runs there.
//
// An entry of the placement with a provider configuration of its own is not of the fleet.
func (v *view) recovered() map[string]reservation.ClusterRequest {
	outside := map[string]bool{"": true}
	for i := range v.placement.Clusters {
		if c := &v.placement.Clusters[i]; c.FleetName() == "" {
			outside[c.Name] = true
		}
	}
	all := map[string]reservation.ClusterRequest{}
	for _, name := range slices.Sorted(maps.Keys(v.snapshot.States)) {
		if outside[name] {
			continue
		}
		if inferenceCluster := v.reachedBy(name); inferenceCluster != "" {
			all[inferenceCluster] = reservation.ClusterRequest{Name: name, Namespace: v.snapshot.States[name].Namespace}
		}
	}
	return all
}

// reachedBy returns the cluster of the fleet that has grants for the service, and the provider
// configuration of its objects under a name of the placement. It is empty if there is none.
func (v *view) reachedBy(name string) string {
	config := v.asObjectsNameIt(v.snapshot.States[name].ProviderConfig)
	for _, inferenceCluster := range slices.Sorted(maps.Keys(v.snapshot.Clusters)) {
		c := v.snapshot.Clusters[inferenceCluster]
		if v.asObjectsNameIt(c.Spec.ProviderConfigRef.Ref()) == config && reservationOf(c, v.demand.ServiceID) != nil {
			return inferenceCluster
		}
	}
	return ""
}
