package v1alpha1

import "k8s.io/utils/ptr"

// Default fills in what is not set and means the same in every service. The
// schema has the same defaults, so that they show in a live object; the one for
// failureMode it cannot have, since only a router may have a failureMode. What
// depends on the rest of the service, or on the input, is decided by the plan.
func Default(s *InferenceServiceSpec) {
	for i := range s.Roles {
		defaultRole(&s.Roles[i])
	}
	if t := networkTopology(s); t != nil && t.Mode == "" {
		t.Mode = TopologyHard
	}
	defaultPlacement(s.Placement)
}

func defaultPlacement(p *Placement) {
	if p == nil {
		return
	}
	if p.Policy == "" {
		p.Policy = PlacementReplicate
	}
	if p.FailoverAfter == "" {
		p.FailoverAfter = DefaultFailoverAfter
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if c.ProviderConfigRef != nil {
			c.ProviderConfigRef.Default()
		}
		if c.Weight == nil {
			c.Weight = ptr.To[int32](1)
		}
	}
}

// DefaultFailoverAfter is how long a cluster may be out of reach.
const DefaultFailoverAfter = "5m"

// Default fills in the kind.
func (r *ProviderConfigRef) Default() {
	if r.Kind == "" {
		r.Kind = KindClusterProviderConfig
	}
}

func defaultRole(r *Role) {
	if r.Replicas == nil {
		r.Replicas = ptr.To[int32](1)
	}
	if r.Multinode != nil && r.Multinode.Launcher == "" {
		r.Multinode.Launcher = LauncherRay
	}
	if r.ComponentType == ComponentTypeRouter && r.FailureMode == "" {
		r.FailureMode = FailClose
	}
	for i := range r.Models {
		for j := range r.Models[i].Targets {
			if t := &r.Models[i].Targets[j]; t.Weight == nil {
				t.Weight = ptr.To[int32](1)
			}
		}
	}
}

func networkTopology(s *InferenceServiceSpec) *NetworkTopology {
	if s.SchedulingStrategy == nil || s.SchedulingStrategy.Gang == nil {
		return nil
	}
	return s.SchedulingStrategy.Gang.NetworkTopology
}
