package scheduling

import (
	"cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A Target is where a service runs: beside the XR, or in a namespace of another cluster.
type Target struct {
	// Cluster is the name in the placement. Empty beside the XR.
	Cluster string
	// Namespace of the objects in that cluster.
	Namespace string
	// ProviderConfig reaches the cluster.
	ProviderConfig v1alpha1.ProviderConfigRef
}

// Remote tells whether the target is reached through provider-kubernetes.
func (t Target) Remote() bool { return t.Cluster != "" }

// OutsideFleet returns where a service outside the fleet runs: beside the XR, or in each cluster
// that its placement names by a provider configuration. Nothing has to be scheduled there,
// because the whole service runs in each, and no capacity is counted.
func OutsideFleet(namespace string, placement *v1alpha1.Placement) []Target {
	if placement == nil || len(placement.Clusters) == 0 {
		return []Target{{Namespace: namespace}}
	}
	all := make([]Target, 0, len(placement.Clusters))
	for i := range placement.Clusters {
		if placement.Clusters[i].ProviderConfigRef != nil {
			all = append(all, targetOf(namespace, &placement.Clusters[i]))
		}
	}
	return all
}

// targetOf is the target of an entry of a placement. The entry of a cluster of the fleet names
// no provider configuration.
func targetOf(namespace string, c *v1alpha1.PlacementCluster) Target {
	t := Target{Cluster: c.Name, Namespace: cmp.Or(c.Namespace, namespace)}
	if c.ProviderConfigRef != nil {
		t.ProviderConfig = *c.ProviderConfigRef
	}
	return t
}
