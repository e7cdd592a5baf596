package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// KindInferenceRole is the kind of a namespaced XR in both Configurations. InferenceServices compose
// it, so there are no claims of it.
const KindInferenceRole = "InferenceRole"

// An InferenceRole is the scale target of one role of an InferenceService that has scaling. The
// service makes it, with the name {service}-{role}. Its scale subresource sets the number of replicas of
// the role. It composes nothing.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=inferenceroles,shortName=infrole,categories=fusioninfer
// +kubebuilder:printcolumn:name="SERVICE",type=string,JSONPath=`.spec.serviceName`,description="The InferenceService with the role."
// +kubebuilder:printcolumn:name="ROLE",type=string,JSONPath=`.spec.roleName`,description="The role."
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.spec.replicas`,description="Replicas that are asked for."
// +kubebuilder:printcolumn:name="CURRENT",type=integer,JSONPath=`.status.replicas`,description="Replicas that exist."
// +kubebuilder:printcolumn:name="SCALED",type=string,JSONPath=`.status.conditions[?(@.type=='Scaled')].reason`,description="AsRequested, or why the role has another number of replicas than is asked for."
type InferenceRole struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the number of replicas that is asked for. The service writes the rest.
	Spec InferenceRoleSpec `json:"spec"`

	// Status is what runs, for the scale subresource. Crossplane and the function write it.
	// +optional
	Status InferenceRoleStatus `json:"status,omitempty"`
}

// An InferenceRoleSpec has the number of replicas that is asked for. The service writes the rest.
type InferenceRoleSpec struct {
	// ServiceName is the InferenceService with the role, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ServiceName string `json:"serviceName"`

	// RoleName is the name of the role in spec.roles of the service.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=46
	RoleName string `json:"roleName"`

	// Replicas that are asked for. The service starts it with the number that runs, and writes it no
	// more once anybody else has changed it: kubectl scale, a HorizontalPodAutoscaler or KEDA.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	Replicas *int32 `json:"replicas,omitempty"`

	// Current is what runs. The service writes it.
	// +optional
	Current CurrentReplicas `json:"current,omitempty"`
}

// CurrentReplicas are the replicas of a role that exist.
type CurrentReplicas struct {
	// Replicas that exist, without those that a rollout runs beside them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	Replicas int32 `json:"replicas,omitempty"`

	// Selector of the leader pods of the role. No other scale target selects any of them.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Selector string `json:"selector,omitempty"`

	// Limit is why the role has another number of replicas than is asked for. It is left out while it has that number.
	// +optional
	Limit *ScaleLimit `json:"limit,omitempty"`
}

// ConditionScaled is the condition of an InferenceService and of its InferenceRoles that says whether roles have as many replicas as
// is asked for.
const ConditionScaled = "Scaled"

// Reasons of the condition Scaled: a role has as many replicas as its InferenceRole asks for, or why it has another number.
const (
	ScaledAsRequested = "AsRequested"
	ScaledMinimum     = "Minimum"
	ScaledMaximum     = "Maximum"
	ScaledRatio       = "Ratio"
	ScaledNoCapacity  = "NoCapacity"
)

// A ScaleLimit is why a role has another number of replicas than its InferenceRole asks for.
type ScaleLimit struct {
	// Reason of the condition Scaled. NoCapacity says that replicas wait for capacity in the fleet.
	// +kubebuilder:validation:Enum=Minimum;Maximum;Ratio;NoCapacity
	Reason string `json:"reason"`

	// Message of the condition Scaled.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// An InferenceRoleStatus is what runs of a role, for the scale subresource.
type InferenceRoleStatus struct {
	// Conditions of the InferenceRole.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Replicas that exist, for the scale subresource.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Selector of the leader pods of the role, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// ValidateRole returns all errors of an InferenceRole. It repeats the rules of the schema, because an XR
// may have been stored under another one.
func ValidateRole(s *InferenceRoleSpec) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	for _, name := range []struct{ field, value string }{{"serviceName", s.ServiceName}, {"roleName", s.RoleName}} {
		if name.value == "" {
			errs = append(errs, field.Required(spec.Child(name.field), "must be set: InferenceServices make InferenceRoles, see docs/scaling.md"))
		}
	}
	errs = append(errs, check.Length(spec.Child("serviceName"), s.ServiceName, 63)...)
	errs = append(errs, check.Length(spec.Child("roleName"), s.RoleName, MaxRoleName)...)
	if s.Replicas != nil {
		errs = append(errs, check.Between(spec.Child("replicas"), *s.Replicas, 0, MaxReplicas)...)
	}
	errs = append(errs, check.Between(spec.Child("current", "replicas"), s.Current.Replicas, 0, MaxReplicas)...)
	errs = append(errs, check.Length(spec.Child("current", "selector"), s.Current.Selector, MaxSelector)...)
	if l := s.Current.Limit; l != nil {
		path := spec.Child("current", "limit")
		errs = append(errs, check.OneOf(path.Child("reason"), l.Reason, ScaledMinimum, ScaledMaximum, ScaledRatio, ScaledNoCapacity)...)
		errs = append(errs, check.Length(path.Child("message"), l.Message, text.MaxMessage)...)
	}
	return errs
}
