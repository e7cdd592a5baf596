package scheduling

import (
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// A view is the fleet as the tenant may see it.
type view struct {
	demand   *Demand
	snapshot *Snapshot
	// placement of the service. Where the spec has none, it names no cluster: the whole service
	// runs beside the XR.
	placement *v1alpha1.Placement
	// clusters that the tenant may know of.
	clusters map[string]*v1alpha1.InferenceCluster
	// notAllowed are those of them that the tenant may no longer use. undecided are those of them
	// about which this is not known yet.
	notAllowed, undecided map[string]bool
	// readsNamespace tells that a cluster allows namespaces by their labels.
	readsNamespace bool
	// podsHashes are those of the replicas as the service wants them now. Nothing of the request
	// that was read back is in them.
	podsHashes map[key.ReplicaID]string
	// last is the last request. It is empty if there is none.
	last reservation.CapacityRequest
	// requested has what the last request has of each cluster. If there is none, it is what recovered returns.
	requested map[string]reservation.ClusterRequest
}

// newView leaves out the clusters that the tenant may not use. Such a cluster is in no
// decision, no status and no message. If the placement names it, messages are those for a
// cluster that does not exist. So nobody can find out which clusters exist.
//
// A cluster where the service runs is not left out. The tenant knows it, and what runs there
// leaves as it leaves any cluster. Nothing is decided about it while the labels of the tenant's
// namespace are not known.
func newView(demand *Demand, snapshot *Snapshot) *view {
	all := slices.Clone(demand.Groups)
	for _, extra := range demand.Extra {
		all = append(all, extra...) // Replicas of one name have equal pods.
	}
	v := &view{
		demand: demand, snapshot: snapshot, placement: demand.Placement,
		clusters:   make(map[string]*v1alpha1.InferenceCluster, len(snapshot.Clusters)),
		notAllowed: map[string]bool{}, undecided: map[string]bool{},
		podsHashes: reservation.PodsHashes(demand.PodRequirements, all),
	}
	if v.placement == nil {
		v.placement = &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate}
	}
	if snapshot.Request != nil {
		v.last, v.requested = *snapshot.Request, snapshot.Request.Clusters
	} else {
		v.requested = v.recovered()
	}
	for name, c := range snapshot.Clusters {
		reads := c.Spec.AllowedNamespaces.ReadsLabels()
		v.readsNamespace = v.readsNamespace || reads
		unknown := reads && !snapshot.NamespaceResolved
		allowed := !unknown && c.Spec.AllowedNamespaces.Allows(demand.Namespace, snapshot.NamespaceLabels)
		_, runs := v.runsIn(name)
		switch {
		case allowed:
			v.clusters[name] = c
		case runs:
			v.clusters[name], v.notAllowed[name], v.undecided[name] = c, !unknown, unknown
		}
	}
	return v
}

// runsIn returns what the last request has of a cluster of the fleet, and tells whether
// something of the service exists there. If there is no last request, its objects tell.
func (v *view) runsIn(inferenceCluster string) (reservation.ClusterRequest, bool) {
	at, requested := v.requested[inferenceCluster]
	return at, requested && v.snapshot.States[at.Name] != nil && v.mayBe(inferenceCluster, at.Name)
}

// requestedAs returns the cluster of the fleet that the last request has under a name of the
// placement. If there is no last request, it is one where something of the service exists.
func (v *view) requestedAs(name string) (inferenceCluster string, requested bool) {
	for _, inferenceCluster := range slices.Sorted(maps.Keys(v.requested)) {
		if v.requested[inferenceCluster].Name == name && v.mayBe(inferenceCluster, name) {
			return inferenceCluster, true
		}
	}
	return "", false
}

// mayBe tells whether what exists under a name may be in a cluster of the fleet. It is not if its
// objects have another provider configuration. Then somebody has written into the request, and would
// start in one cluster what another has reserved.
func (v *view) mayBe(inferenceCluster, name string) bool {
	c, at := v.snapshot.Clusters[inferenceCluster], v.snapshot.States[name]
	return c == nil || at == nil || at.ProviderConfig.Name == "" || v.asObjectsNameIt(c.Spec.ProviderConfigRef.Ref()) == v.asObjectsNameIt(at.ProviderConfig)
}

// InFleet tells whether a placement uses clusters of the fleet.
func InFleet(p *v1alpha1.Placement) bool {
	return p != nil && (p.ClusterSelector != nil || slices.ContainsFunc(p.Clusters, func(c v1alpha1.PlacementCluster) bool { return c.FleetName() != "" }))
}

// LeavesFleet tells whether a service still runs in clusters of the fleet, and so still
// requests capacity.
func LeavesFleet(snapshot *Snapshot) bool {
	if snapshot.Request == nil {
		return false
	}
	for _, at := range snapshot.Request.Clusters {
		if snapshot.States[at.Name] != nil {
			return true
		}
	}
	return false
}

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
