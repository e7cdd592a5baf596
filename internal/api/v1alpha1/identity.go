package v1alpha1

import "cmp"

// Labels that Crossplane puts on the XR behind a claim.
const (
	LabelClaimName      = "crossplane.io/claim-name"
	LabelClaimNamespace = "crossplane.io/claim-namespace"
)

// A ClaimReference is spec.claimRef of the XR behind a claim. Crossplane writes it, and the
// schema of the spec does not have it.
type ClaimReference struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Identity returns the name of a service as its users know it, and the namespace of its
// tenant. For the XR behind a claim they are those of the claim. An XR of the namespaced
// kind has no claim, whatever labels it carries. An API server always gives it a namespace.
// Without one it comes from a file, and is in the namespace default, as with kubectl.
func Identity(xr *InferenceService, claim ClaimReference) (name, namespace string) {
	if xr.Kind != KindClaimedService || xr.Namespace != "" {
		return xr.Name, cmp.Or(xr.Namespace, "default")
	}
	return cmp.Or(xr.Labels[LabelClaimName], claim.Name, xr.Name), cmp.Or(xr.Labels[LabelClaimNamespace], claim.Namespace)
}
