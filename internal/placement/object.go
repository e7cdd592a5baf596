/*
Package placement moves objects between this cluster and others. Wrap puts what
was rendered for another cluster into an Object, which provider-kubernetes
carries there; Unwrap takes out of an observed Object what was found in that
cluster. They are each other's inverse, so that renderers and judges do not know
where an object lives.
*/
package placement

import (
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// The two kinds of Object. A namespaced XR composes the first, the cluster-scoped
// XR behind a claim the second.
const (
	groupNamespaced = "kubernetes.m.crossplane.io"
	groupCluster    = "kubernetes.crossplane.io"

	apiVersionNamespaced = groupNamespaced + "/v1alpha1"
	apiVersionCluster    = groupCluster + "/v1alpha2"

	kindObject = "Object"
)

// An object is a provider-kubernetes Object, as far as it is written here. The
// fields are those of github.com/crossplane-contrib/provider-kubernetes v1.3.1,
// apis/namespaced/object/v1alpha1 and apis/cluster/object/v1alpha2, whose module
// brings three cloud providers' clients with it.
type object struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   metadata   `json:"metadata"`
	Spec       objectSpec `json:"spec"`
}

type metadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels"`
}

type objectSpec struct {
	ForProvider       forProvider       `json:"forProvider"`
	ProviderConfigRef providerConfigRef `json:"providerConfigRef"`
	Readiness         readiness         `json:"readiness"`
	// Watch asks for a watch of the remote object, if the provider has any.
	Watch bool `json:"watch,omitempty"`
	// ManagementPolicies say what the provider may do. Unset, it may do everything.
	ManagementPolicies []string `json:"managementPolicies,omitempty"`
}

type forProvider struct {
	Manifest *structpb.Struct `json:"manifest"`
}

type providerConfigRef struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name"`
}

type readiness struct {
	Policy   string `json:"policy"`
	CelQuery string `json:"celQuery,omitempty"`
}

// Manifest is what an Object that was made by Wrap carries.
func Manifest(o *structpb.Struct) *structpb.Struct {
	return kube.Lookup(o, "spec", "forProvider", "manifest").GetStructValue()
}

// groupOf cuts the version off.
func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}
