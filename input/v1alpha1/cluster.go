package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// ClusterInput is what a platform team sets for all InferenceClusters. All fields are
// optional.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type ClusterInput struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Namespace of the clusters' ledgers, of what services read of the clusters, and of the
	// Objects that observe the clusters. Only the platform team should have write access to it.
	// fleet.namespace of the services' Input has to be the same. Defaults to crossplane-system.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// ServiceNamespaces is the metadata of the namespaces that an InferenceCluster creates
	// for services. They also have the Pod Security labels of their tenant.
	// +optional
	ServiceNamespaces NamespaceMeta `json:"serviceNamespaces,omitempty"`

	// PodSecurity is the Pod Security Standard that these namespaces enforce. Set the same
	// standard in the Input. Defaults to baseline.
	// +optional
	PodSecurity *PodSecurity `json:"podSecurity,omitempty"`

	// Tenants are Pod Security Standards for some namespaces. For each field of
	// podSecurity, the first tenant that selects the namespace and sets the field counts.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Tenants []ClusterTenant `json:"tenants,omitempty"`

	// Labels of every object that a cluster composes. Labels that the function sets itself
	// take precedence.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of every object, in the same way.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A ClusterTenant is a Pod Security Standard for some namespaces.
type ClusterTenant struct {
	// Namespaces of the services, as names or patterns with '*'.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Namespaces []string `json:"namespaces"`

	// PodSecurity is the Pod Security Standard of these namespaces. Fields that are not set
	// have the values for all namespaces.
	// +optional
	PodSecurity *PodSecurity `json:"podSecurity,omitempty"`
}

// NamespaceMeta is the metadata of the namespaces that are created for services.
type NamespaceMeta struct {
	// Labels of the namespaces.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the namespaces.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// DefaultCluster sets the defaults of a ClusterInput.
func DefaultCluster(in *ClusterInput) {
	if in.Namespace == "" {
		in.Namespace = DefaultNamespace
	}
}

// ValidateCluster returns all errors of a ClusterInput. No API server validates it, because
// it is part of a Composition.
func ValidateCluster(in *ClusterInput, root *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, check.Optional(root.Child("namespace"), in.Namespace, check.Label)...)
	meta := root.Child("serviceNamespaces")
	errs = append(errs, check.Labels(meta.Child("labels"), in.ServiceNamespaces.Labels)...)
	errs = append(errs, check.Annotations(meta.Child("annotations"), in.ServiceNamespaces.Annotations)...)
	errs = append(errs, validatePodSecurity(root.Child("podSecurity"), in.PodSecurity)...)
	tenants, more := check.Capped(root.Child("tenants"), in.Tenants, maxTenants)
	errs = append(errs, more...)
	for i := range tenants {
		at, t := root.Child("tenants").Index(i), &tenants[i]
		errs = append(errs, validateTenantNamespaces(at.Child("namespaces"), t.Namespaces)...)
		errs = append(errs, validatePodSecurity(at.Child("podSecurity"), t.PodSecurity)...)
	}
	return append(errs, validateMetadata(root, in.Labels, in.Annotations)...)
}

// PodSecurityOf returns the Pod Security Standard of a namespace, with its defaults. Each
// field is that of the first tenant that selects the namespace and sets the field, or else
// the one for all namespaces.
func (in *ClusterInput) PodSecurityOf(namespace string) *PodSecurity {
	s := in.PodSecurity
	for i := range slices.Backward(in.Tenants) {
		if t := &in.Tenants[i]; MatchesAny(t.Namespaces, namespace) {
			s = merge(s, t.PodSecurity)
		}
	}
	return s.defaulted()
}
