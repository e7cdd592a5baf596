package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// A SharedCache is the ModelCache that a service names, as far as it is known.
type SharedCache struct {
	// Name of the ModelCache that the service names.
	Name string
	// Used says where the weights are. While the ModelCache does not say that, it is what the engines
	// were told last. Nil if they were told nothing.
	Used *v1alpha1.SharedCacheStatus
	// Missing says why no new replica can use it: it is not there, or it goes. Empty if one can.
	Missing string
	// States of the weights, by the names of the InferenceClusters. That of the XR's cluster is empty.
	States map[string]v1alpha1.CacheStatus
	// Scope are the clusters of the fleet that it may be in. Nil while that is not known.
	Scope *scheduling.Scope

	// fleetNames are the InferenceClusters, by their names in the service.
	fleetNames map[string]string
}

// unknownName stands for the name of a model while the ModelCache does not say it. launch.NamesOf leaves out what only
// Kubernetes could expand, so no engine counts as one that answers it. No pod gets it: all replicas wait.
const unknownName = "$(model of the ModelCache)"

// Model returns the model of a service as engines load it from the shared claim.
func (s *SharedCache) Model(m *v1alpha1.Model) *v1alpha1.Model {
	used := s.Used
	if used == nil {
		used = &v1alpha1.SharedCacheStatus{ModelName: unknownName, ClaimName: s.Name, Directory: s.Name}
	}
	resolved := *m
	resolved.URI = used.URI()
	if resolved.Name == "" {
		resolved.Name = used.ModelName
	}
	return &resolved
}

// ModelSource is where the weights of all revisions come from. It is empty without spec.model, and while nothing is
// known of its ModelCache.
func (p *Plan) ModelSource() string {
	switch {
	case p.spec.Model == nil, p.Shared != nil && p.Shared.Used == nil:
		return ""
	case p.Shared != nil:
		return p.Shared.Used.Source
	}
	return p.spec.Model.Base()
}

// loading says how the weights get to a cluster: the ModelCache loads them, and the service waits.
func (s *SharedCache) loading(c *ClusterPlan) *Loading {
	l := &Loading{Wanted: !c.Leaving && c.hasReplicas(), Shared: &v1alpha1.CacheStatus{State: v1alpha1.CacheLoading}}
	name, of := s.fleetNames[c.Target.Cluster], "ModelCache "+s.Name
	state, known := s.States[name]
	switch {
	case s.Missing != "":
		l.Shared.Message = s.Missing
	case !known:
		l.Shared.Message = of + " has no weights there so far: see its condition Placed, and its clusters"
	case state.State == v1alpha1.CacheReady && s.Used != nil && state.ClaimName == s.Used.ClaimName:
		l.Done = true
	default:
		l.Shared.State, l.Shared.Message = state.State, of+": "+state.Message
	}
	return l
}

// nameClusters finds the InferenceClusters behind the names of the clusters in the service.
func (p *Plan) nameClusters() {
	if p.Shared == nil {
		return
	}
	p.Shared.fleetNames = map[string]string{}
	if p.Schedule == nil {
		return
	}
	for inferenceCluster, at := range p.Schedule.Request.Clusters {
		p.Shared.fleetNames[at.Name] = inferenceCluster
	}
}

// whereWeightsAre says which cache replicas wait for.
func (p *Plan) whereWeightsAre() string {
	if p.Shared != nil {
		return "ModelCache " + p.Shared.Name
	}
	return "claim " + p.Weights.ClaimName
}

// refuseOutsideFleet refuses a ModelCache for a service that runs in clusters of which the ModelCache
// knows nothing.
func refuseOutsideFleet(spec *v1alpha1.InferenceServiceSpec) field.ErrorList {
	if spec.Model == nil || spec.Model.CacheRef == nil || spec.Placement == nil {
		return nil
	}
	for i := range spec.Placement.Clusters {
		if c := &spec.Placement.Clusters[i]; c.FleetName() == "" {
			return field.ErrorList{field.Forbidden(field.NewPath("spec", "model", "cacheRef"),
				fmt.Sprintf("must be left out while cluster %q has a providerConfigRef: a ModelCache is in clusters of the fleet, or in that of its object", c.Name))}
		}
	}
	return nil
}
