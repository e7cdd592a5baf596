package v1alpha1

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// ModelInput is what a platform team sets for all InferenceModels. All fields are optional.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type ModelInput struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Priorities are those that the owner of a model may choose, as priority or as
	// criticality. A model with another one is refused.
	// +optional
	Priorities *PriorityRange `json:"priorities,omitempty"`

	// Tenants are the settings above for some namespaces. For each field of priorities, the
	// first tenant that selects the namespace and sets the field counts.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Tenants []ModelTenant `json:"tenants,omitempty"`

	// ModelLoader configures the Jobs that load adapters. They run as users of the engines.
	// A change applies to adapters that are not loaded yet.
	// +optional
	ModelLoader LoaderSettings `json:"modelLoader,omitempty"`

	// MissingKinds says what happens while the control plane does not have InferenceObjectives
	// or InferenceModelRewrites. Fail returns them all the same, and applying them fails. Skip
	// leaves them out. Defaults to Fail.
	// +optional
	MissingKinds MissingKinds `json:"missingKinds,omitempty"`

	// Labels of every object that a model composes. Labels that the function sets itself take
	// precedence.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of every object, in the same way.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A PriorityRange are the priorities from one to another.
type PriorityRange struct {
	// Minimum is the lowest priority. Defaults to -10, which is Sheddable.
	// +optional
	Minimum *int32 `json:"minimum,omitempty"`

	// Maximum is the highest priority. Defaults to 10, which is Critical.
	// +optional
	Maximum *int32 `json:"maximum,omitempty"`
}

// A ModelTenant has settings for the models of some namespaces.
type ModelTenant struct {
	// Namespaces of the models, as names or patterns with '*'.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Namespaces []string `json:"namespaces"`

	// Priorities that the owners of models there may choose. Fields that are not set have the
	// values for all namespaces.
	// +optional
	Priorities *PriorityRange `json:"priorities,omitempty"`
}

// The priorities that owners may choose by default: those of the criticalities.
const (
	DefaultMinimumPriority = -10
	DefaultMaximumPriority = 10
)

// DefaultModel sets the defaults of a ModelInput.
func DefaultModel(in *ModelInput) {
	in.MissingKinds = cmp.Or(in.MissingKinds, MissingKindsFail)
	in.ModelLoader.setDefaults()
}

// ValidateModel returns all errors of a ModelInput. No API server validates it, because it is
// part of a Composition.
func ValidateModel(in *ModelInput, root *field.Path) field.ErrorList {
	errs := validatePriorities(root.Child("priorities"), in.Priorities)
	tenants, more := check.Capped(root.Child("tenants"), in.Tenants, maxTenants)
	errs = append(errs, more...)
	for i := range tenants {
		at, t := root.Child("tenants").Index(i), &tenants[i]
		errs = append(errs, validateTenantNamespaces(at.Child("namespaces"), t.Namespaces)...)
		errs = append(errs, validatePriorities(at.Child("priorities"), t.Priorities)...)
	}
	errs = append(errs, validateLoader(root.Child("modelLoader"), &in.ModelLoader)...)
	errs = append(errs, check.OneOf(root.Child("missingKinds"), in.MissingKinds, MissingKindsFail, MissingKindsSkip)...)
	return append(errs, validateMetadata(root, in.Labels, in.Annotations)...)
}

func validatePriorities(path *field.Path, r *PriorityRange) field.ErrorList {
	if r == nil || r.Minimum == nil || r.Maximum == nil || *r.Minimum <= *r.Maximum {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("minimum"), *r.Minimum, "must be at most the maximum")}
}

// PrioritiesOf returns the lowest and the highest priority that the owners of models in a namespace may
// choose. If the lowest is above the highest, they may choose none.
func (in *ModelInput) PrioritiesOf(namespace string) (lowest, highest int32) {
	lowest, highest = DefaultMinimumPriority, DefaultMaximumPriority
	set := func(r *PriorityRange) {
		if r == nil {
			return
		}
		if r.Minimum != nil {
			lowest = *r.Minimum
		}
		if r.Maximum != nil {
			highest = *r.Maximum
		}
	}
	set(in.Priorities)
	for i := range slices.Backward(in.Tenants) {
		if t := &in.Tenants[i]; MatchesAny(t.Namespaces, namespace) {
			set(t.Priorities)
		}
	}
	return lowest, highest
}
