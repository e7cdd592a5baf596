package v1alpha1

import "cmp"

// Labels that Crossplane puts on the XR behind a claim.
const (
	LabelClaimName      = "crossplane.io/claim-name"
	LabelClaimNamespace = "crossplane.io/claim-namespace"
)

// A ClaimReference is what the XR behind a claim has in spec.claimRef. It belongs
// to Crossplane, and is not in the schema of the spec.
type ClaimReference struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Identity returns the name of a service as its users know it, and the namespace
// of its tenant: the claim's, where there is one. An XR of the namespaced kind has
// no claim, whatever labels it carries. In a cluster it always has a namespace;
// without one it comes from a file, and is in default as it would be with kubectl.
func Identity(xr *InferenceService, claim ClaimReference) (name, namespace string) {
	if xr.Kind != ClusterKind || xr.Namespace != "" {
		return xr.Name, cmp.Or(xr.Namespace, "default")
	}
	return cmp.Or(xr.Labels[LabelClaimName], claim.Name, xr.Name), cmp.Or(xr.Labels[LabelClaimNamespace], claim.Namespace)
}
