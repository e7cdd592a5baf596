package v1alpha1

import (
	"time"

	"k8s.io/utils/ptr"
)

// Default sets the defaults that are the same for every service. Planning decides those
// that depend on the rest of the service or on the Input. The schema has no defaults: once
// stored, a default looks like a user's choice, and a later version could not change it.
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

// FailoverAfter is how long a cluster may be unreachable before its replicas are started
// elsewhere.
func (p *Placement) FailoverAfter() time.Duration {
	return time.Duration(ptr.Deref(p.FailoverAfterSeconds, 300)) * time.Second
}

// StartTimeout is how long replicas may take to become ready in a cluster for the first time. 0
// means any time.
func (p *Placement) StartTimeout() time.Duration {
	return time.Duration(ptr.Deref(p.StartTimeoutSeconds, 3600)) * time.Second
}

// Default sets the kind if it is not set.
func (r *ProviderConfigRef) Default() {
	if r.Kind == "" {
		r.Kind = KindClusterProviderConfig
	}
}

func defaultRole(r *Role) {
	// What a role with scaling runs is known only from its InferenceRole.
	if r.Replicas == nil && r.Scaling == nil {
		r.Replicas = ptr.To[int32](1)
	}
	if r.Multinode != nil && r.Multinode.Launcher == "" {
		r.Multinode.Launcher = LauncherRay
	}
	for i := range r.ServedModels {
		for j := range r.ServedModels[i].Targets {
			if t := &r.ServedModels[i].Targets[j]; t.Weight == nil {
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
