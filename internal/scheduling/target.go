package scheduling

import "github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"

// A Target is a place where a service runs: beside the XR, or in a namespace of another cluster.
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
