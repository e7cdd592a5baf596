/*
Package remote moves objects between this cluster and others. Wrap puts an object for another
cluster into an Object, which provider-kubernetes applies there. Unwrap returns the remote
object from the status of an observed Object. They are inverse, so that packages that render
and observe do not know in which cluster an object is.
*/
package remote

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// The two kinds of Objects. A namespaced XR composes the first. The cluster-scoped XR of a
// claim composes the second.
const (
	groupNamespaced = v1alpha1.GroupNamespacedObjects
	groupCluster    = v1alpha1.GroupClusterScopedObjects

	apiVersionNamespaced = groupNamespaced + "/v1alpha1"
	apiVersionCluster    = groupCluster + "/v1alpha2"
	// apiVersionCollections is that of cluster-scoped collections of Objects. Namespaced ones have
	// that of their Objects.
	apiVersionCollections = groupCluster + "/v1alpha1"

	kindObject     = "Object"
	kindCollection = "ObservedObjectCollection"
)

// An object is a provider-kubernetes Object, with the fields that are set here:
// apis/namespaced/object/v1alpha1 and apis/cluster/object/v1alpha2 of
// github.com/crossplane-contrib/provider-kubernetes v1.3.1. Its Go module would bring the
// clients of three cloud providers.
type object struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   kube.Metadata `json:"metadata"`
	Spec       objectSpec    `json:"spec"`
}

type objectSpec struct {
	ForProvider       forProvider                `json:"forProvider"`
	ProviderConfigRef v1alpha1.ProviderConfigRef `json:"providerConfigRef"`
	Readiness         readiness                  `json:"readiness"`
	// Watch requests a watch of the remote object, if the provider has watches enabled.
	Watch bool `json:"watch,omitempty"`
	// ManagementPolicies say what the provider may do. Unset means everything.
	ManagementPolicies []string `json:"managementPolicies,omitempty"`
}

type forProvider struct {
	Manifest *structpb.Struct `json:"manifest"`
}

type readiness struct {
	Policy   string `json:"policy"`
	CelQuery string `json:"celQuery,omitempty"`
}

// Manifest returns the remote object in an Object that Wrap made.
func Manifest(o *structpb.Struct) *structpb.Struct {
	return kube.Lookup(o, "spec", "forProvider", "manifest").GetStructValue()
}
