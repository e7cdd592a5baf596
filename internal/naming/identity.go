package naming

// An Identity identifies the InferenceService.
type Identity struct {
	// Name that users know: the claim's, or the XR's.
	Name string
	// Namespace of the tenant: the claim's, or the XR's.
	Namespace string
	// Generation of the spec.
	Generation int64
	// UID of the XR, which controls everything that is composed.
	UID string
	// Claimed tells a cluster-scoped XR behind a claim from a namespaced one.
	Claimed bool
	// Grouped tells whether spec.replicas is set, and so how objects are named.
	Grouped bool
}

// RequestName is the name of the object with the service's capacity request.
func (s Identity) RequestName() string { return s.Name + "-capacity-request" }
