package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// Claimed tells whether a kind is one of cluster-scoped XRs behind claims.
func Claimed(kind string) bool {
	return kind == KindClaimedService || kind == KindClaimedModel || kind == KindClaimedCache
}

// Identity returns the name of a service, a model or a cache as its users know it, and the namespace of its
// tenant. For the XR behind a claim they are those of the claim. An XR of the namespaced
// kind has no claim, whatever labels it carries. An API server always gives it a namespace.
// Without one it comes from a file, and is in the namespace default, as with kubectl.
func Identity(kind string, meta *metav1.ObjectMeta, claim ClaimReference) (name, namespace string) {
	if !Claimed(kind) || meta.Namespace != "" {
		return meta.Name, cmp.Or(meta.Namespace, "default")
	}
	return cmp.Or(meta.Labels[LabelClaimName], claim.Name, meta.Name), cmp.Or(meta.Labels[LabelClaimNamespace], claim.Namespace)
}
