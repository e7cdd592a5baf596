package composite

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// Existing is the name of the requirement for an object that may already have the name of the
// composed resource with the key.
func Existing(k key.Key) string { return "existing/" + k.String() }

// TenantObject selects the object of a name that the tenant of a composite resource has. That is the object of the kind in
// the namespace of the composite resource. Behind a claim, it is the XR of the claimed kind whose claim has that name, in the
// namespace of the claim.
func TenantObject(of naming.Identity, kind, claimedKind, name string) *fnv1.ResourceSelector {
	if !of.Claimed {
		return incoming.ByName(v1alpha1.APIVersion, kind, of.Namespace, name)
	}
	return incoming.ByLabels(v1alpha1.APIVersion, claimedKind, "", map[string]string{v1alpha1.LabelClaimName: name, v1alpha1.LabelClaimNamespace: of.Namespace})
}

// InferenceCluster selects an InferenceCluster by its name.
func InferenceCluster(name string) *fnv1.ResourceSelector {
	return incoming.ByName(v1alpha1.APIVersion, v1alpha1.KindInferenceCluster, "", name)
}

// InferenceClusters selects all InferenceClusters, because Crossplane can select by equal labels
// only.
func InferenceClusters() *fnv1.ResourceSelector {
	return incoming.ByLabels(v1alpha1.APIVersion, v1alpha1.KindInferenceCluster, "", nil)
}
