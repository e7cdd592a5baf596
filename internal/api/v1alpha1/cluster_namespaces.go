package v1alpha1

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// MaxAllowedNamespaces is the limit of the number of names in allowedNamespaces.
const MaxAllowedNamespaces = 1000

// FromNamespaces says from which namespaces services may use a cluster.
// +kubebuilder:validation:Enum=All;Names;Selector
type FromNamespaces string

// The values of FromNamespaces.
const (
	// NamespacesAll allows all namespaces.
	NamespacesAll FromNamespaces = "All"
	// NamespacesNames allows those that are named.
	NamespacesNames FromNamespaces = "Names"
	// NamespacesSelector allows those whose labels a selector matches.
	NamespacesSelector FromNamespaces = "Selector"
)

// AllowedNamespaces are the namespaces whose services may use a cluster, in the manner of
// allowedRoutes of the Gateway API. The namespaces are those of the control plane in which
// InferenceServices and claims are.
// +kubebuilder:validation:XValidation:rule="has(self.names) == (has(self.from) && self.from == 'Names')",fieldPath=".names",message="must be set if from is Names, and left out otherwise"
// +kubebuilder:validation:XValidation:rule="has(self.selector) == (has(self.from) && self.from == 'Selector')",fieldPath=".selector",message="must be set if from is Selector, and left out otherwise"
type AllowedNamespaces struct {
	// From says which namespaces are allowed: All, Names (those that names lists) or
	// Selector (those that selector matches). Defaults to All.
	// +optional
	From FromNamespaces `json:"from,omitempty"`

	// Names of the namespaces.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	Names []string `json:"names,omitempty"`

	// Selector selects namespaces by their labels. It needs the permission of Crossplane to
	// read namespaces.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// Allows tells whether the services of a namespace with these labels may use the cluster.
// An unknown value of from and an invalid selector allow no namespace.
func (a *AllowedNamespaces) Allows(namespace string, namespaceLabels map[string]string) bool {
	if a == nil {
		return true
	}
	switch a.From {
	case "", NamespacesAll:
		return true
	case NamespacesNames:
		return slices.Contains(a.Names, namespace)
	case NamespacesSelector:
		if a.Selector == nil {
			return false
		}
		all := maps.Clone(namespaceLabels)
		if all == nil {
			all = map[string]string{}
		}
		// The API server sets this label on every namespace, and nobody can change it.
		all[corev1.LabelMetadataName] = namespace
		s, err := metav1.LabelSelectorAsSelector(a.Selector)
		return err == nil && s.Matches(labels.Set(all))
	}
	return false
}

// ReadsLabels tells whether the labels of a namespace have to be read to tell whether it
// is allowed. Its name is known without that.
func (a *AllowedNamespaces) ReadsLabels() bool {
	if a == nil || a.From != NamespacesSelector || a.Selector == nil {
		return false
	}
	other := func(key string) bool { return key != corev1.LabelMetadataName }
	for key := range a.Selector.MatchLabels {
		if other(key) {
			return true
		}
	}
	return slices.ContainsFunc(a.Selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return other(r.Key) })
}

func validateAllowedNamespaces(path *field.Path, a *AllowedNamespaces) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := check.OneOf(path.Child("from"), a.From, NamespacesAll, NamespacesNames, NamespacesSelector)
	switch {
	case a.From == NamespacesNames && len(a.Names) == 0:
		errs = append(errs, field.Required(path.Child("names"), "must list the namespaces whose services may use the cluster"))
	case a.From != NamespacesNames && a.Names != nil:
		errs = append(errs, field.Forbidden(path.Child("names"), fmt.Sprintf("must be left out unless from is %s", NamespacesNames)))
	}
	names, more := check.Capped(path.Child("names"), a.Names, MaxAllowedNamespaces)
	errs = append(errs, more...)
	listed := unique{}
	for i, name := range names {
		errs = append(errs, check.Label(path.Child("names").Index(i), name)...)
		errs = append(errs, listed.check(path.Child("names").Index(i), name)...)
	}
	switch {
	case a.From == NamespacesSelector && a.Selector == nil:
		errs = append(errs, field.Required(path.Child("selector"), "must select the namespaces whose services may use the cluster"))
	case a.From != NamespacesSelector && a.Selector != nil:
		errs = append(errs, field.Forbidden(path.Child("selector"), fmt.Sprintf("must be left out unless from is %s", NamespacesSelector)))
	}
	if a.Selector != nil {
		errs = append(errs, check.Selector(path.Child("selector"), a.Selector)...)
	}
	return errs
}
