package naming

// An Identity identifies an InferenceService, an InferenceModel or a ModelCache.
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
	// OfCache tells a ModelCache from an InferenceService, which may have the same name.
	OfCache bool
}

// RequestName is the name of the object with the capacity request.
func (s Identity) RequestName() string {
	if s.OfCache {
		return s.Name + "-cache-request"
	}
	return s.Name + "-capacity-request"
}

// Label is the label with the name, on what is composed.
func (s Identity) Label() string {
	if s.OfCache {
		return LabelModelCache
	}
	return LabelService
}
