package v1alpha1

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A RoleScaling makes a role a scale target of its own: an InferenceRole named {service}-{role},
// whose scale subresource sets the number of replicas. It starts with the number that runs.
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",message="must be at most maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas != 0 || !has(self.metrics)",fieldPath=".minReplicas",message="must be 1 or more with metrics: only target and triggers wake a role that runs 0 replicas"
// +kubebuilder:validation:XValidation:rule="(has(self.target) ? 1 : 0) + (has(self.metrics) ? 1 : 0) + (has(self.triggers) ? 1 : 0) <= 1",message="must have at most one of target, metrics and triggers"
// +kubebuilder:validation:XValidation:rule="!has(self.behavior) || has(self.target) || has(self.metrics) || has(self.triggers)",fieldPath=".behavior",message="must be left out without target, metrics or triggers: nothing scales the role then"
type RoleScaling struct {
	// MinReplicas is the least number of replicas, whatever the scale target says. 0 lets it stop
	// the role. With target, a request that waits in the endpoint picker starts it again: see
	// docs/scaling.md. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the largest number of replicas, whatever the scale target says. Limits of the
	// platform team and of Crossplane are checked with it at once, so that no scaling is refused
	// later.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000
	MaxReplicas *int32 `json:"maxReplicas"`

	// Target makes an autoscaler that keeps one metric of the engines at a value. The platform team
	// says what measures it. At most one of target, metrics and triggers may be set. Without any of
	// them nothing scales the role by itself.
	// +optional
	Target *ScalingTarget `json:"target,omitempty"`

	// Metrics makes a HorizontalPodAutoscaler with these metrics (autoscaling/v2 MetricSpec), as they
	// are. The types External and Object work wherever the pods run. minReplicas has to be 1 or more.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Metrics []*kube.Document `json:"metrics,omitempty"`

	// Triggers makes a ScaledObject of KEDA with these triggers. The platform team allows their types.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Triggers []ScalingTrigger `json:"triggers,omitempty"`

	// Behavior limits how fast the autoscaler scales up and down (autoscaling/v2
	// HorizontalPodAutoscalerBehavior). By default it is that of Kubernetes. Use it with target,
	// metrics or triggers.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

// A ServiceScaling says how the roles of a service scale together.
type ServiceScaling struct {
	// Ratio is the number of prefill replicas to that of decode replicas. It needs one prefiller
	// and one decoder, both with scaling. Of the two, the role with too few replicas gets more. If
	// its maxReplicas forbids that, the other one gets fewer. Without it each role scales alone.
	// +optional
	Ratio *ReplicaRatio `json:"ratio,omitempty"`
}

// A ReplicaRatio is the number of prefill replicas to that of decode replicas.
type ReplicaRatio struct {
	// Prefill replicas for the number of decode replicas in decode.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000
	Prefill *int32 `json:"prefill"`

	// Decode replicas for the number of prefill replicas in prefill.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000
	Decode *int32 `json:"decode"`

	// TolerancePercent is how many percent of the replicas that the ratio asks for may be missing
	// before one of the roles changes. What remains is rounded down to whole replicas, and is at least
	// 1 while the other role has any. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	TolerancePercent *int32 `json:"tolerancePercent,omitempty"`
}

// LeastBeside is the least number of replicas of a role that are enough for n of the other one. It goes by the shares of
// both in a ratio, and its tolerance in percent. The API limits all of them to 2000, and the tolerance to 99.
func LeastBeside(n, otherShare, share, tolerance int32) int32 {
	if n == 0 {
		return 0
	}
	least := int64(n) * int64(share) * int64(100-tolerance) / (100 * int64(otherShare))
	return int32(max(1, least)) //nolint:gosec // It is at most 2000 * 2000.
}

// Min is the least number of replicas.
func (s *RoleScaling) Min() int32 { return ptr.Deref(s.MinReplicas, 1) }

// Max is the largest number of replicas.
func (s *RoleScaling) Max() int32 { return ptr.Deref(s.MaxReplicas, 1) }

// MostReplicas is the largest number of replicas that the role may have, without those of a rollout.
// It is nil if the number is not set.
func (r *Role) MostReplicas() *int32 {
	if r.Scaling != nil {
		return r.Scaling.MaxReplicas
	}
	return r.Replicas
}

func validateRoleScaling(path *field.Path, r *Role) field.ErrorList {
	s := r.Scaling
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if r.Replicas != nil {
		errs = append(errs, field.Invalid(path.Child("replicas"), *r.Replicas, "must be left out with scaling: the InferenceRole of this role has the number"))
	}
	path = path.Child("scaling")
	if s.MaxReplicas == nil {
		errs = append(errs, field.Required(path.Child("maxReplicas"), fmt.Sprintf("must be the largest number of replicas, 1 to %d", MaxReplicas)))
	} else {
		errs = append(errs, check.Between(path.Child("maxReplicas"), *s.MaxReplicas, 1, MaxReplicas)...)
	}
	errs = append(errs, validateAutoscaler(path, s)...)
	if s.MinReplicas == nil {
		return errs
	}
	between := check.Between(path.Child("minReplicas"), *s.MinReplicas, 0, MaxReplicas)
	if len(between) == 0 && s.MaxReplicas != nil && *s.MinReplicas > *s.MaxReplicas {
		between = append(between, field.Invalid(path.Child("minReplicas"), *s.MinReplicas, fmt.Sprintf("must be at most maxReplicas, which is %d", *s.MaxReplicas)))
	}
	return append(errs, between...)
}

// Ratio returns the ratio of prefill and decode replicas, or nil.
func (s *InferenceServiceSpec) Ratio() *ReplicaRatio {
	if s.Scaling == nil {
		return nil
	}
	return s.Scaling.Ratio
}

// validateScaling checks what the roles have of scaling together.
func validateScaling(spec *field.Path, s *InferenceServiceSpec) field.ErrorList {
	var errs field.ErrorList
	roles := s.Roles[:min(len(s.Roles), MaxRoles)]
	for i := range roles {
		if roles[i].Scaling != nil && s.Replicas != nil {
			errs = append(errs, field.Forbidden(spec.Child("roles").Index(i).Child("scaling"), "must be left out with spec.replicas: such a service scales by whole groups, with its own scale subresource"))
		}
	}
	ratio, path := s.Ratio(), spec.Child("scaling", "ratio")
	if ratio == nil {
		return errs
	}
	for _, f := range []struct {
		name string
		n    *int32
	}{{"prefill", ratio.Prefill}, {"decode", ratio.Decode}} {
		if f.n == nil {
			errs = append(errs, field.Required(path.Child(f.name), fmt.Sprintf("must be a number of replicas, 1 to %d", MaxReplicas)))
			continue
		}
		errs = append(errs, check.Between(path.Child(f.name), *f.n, 1, MaxReplicas)...)
	}
	if t := ratio.TolerancePercent; t != nil {
		errs = append(errs, check.Between(path.Child("tolerancePercent"), *t, 0, MaxTolerancePercent)...)
	}
	if !scaledPair(roles) {
		return append(errs, field.Forbidden(path, "must be left out unless the service has one prefiller and one decoder, both with scaling"))
	}
	if len(errs) > 0 {
		return errs
	}
	return validateRatioLimits(path, ratio, roles)
}

// RatioPair returns the prefiller and the decoder of a ratio. One is nil if it has no scaling, or limits that validation refuses.
func RatioPair(roles []Role) (prefill, decode *Role) {
	for i := range roles {
		switch r := &roles[i]; {
		case r.Scaling == nil || r.Scaling.Min() < 0 || r.Scaling.Min() > r.Scaling.Max() || r.Scaling.Max() > MaxReplicas:
		case r.ComponentType == ComponentTypePrefiller:
			prefill = r
		case r.ComponentType == ComponentTypeDecoder:
			decode = r
		}
	}
	return prefill, decode
}

// validateRatioLimits refuses a ratio that the limits of both roles never allow.
func validateRatioLimits(path *field.Path, ratio *ReplicaRatio, roles []Role) field.ErrorList {
	prefill, decode := RatioPair(roles)
	if prefill == nil || decode == nil {
		return nil // It has an error of its own.
	}
	var errs field.ErrorList
	compare := func(of, beside *Role, ofShare, besideShare int32) {
		n := max(1, of.Scaling.Min())
		if least := LeastBeside(n, ofShare, besideShare, ptr.Deref(ratio.TolerancePercent, 0)); least > beside.Scaling.Max() {
			errs = append(errs, field.Invalid(path, fmt.Sprintf("%d:%d", *ratio.Prefill, *ratio.Decode), fmt.Sprintf(
				"needs %d replicas of %s beside the least of %s, which are %d, and the maxReplicas of %s is %d: raise that, or change minReplicas or the ratio",
				least, beside.Name, of.Name, n, beside.Name, beside.Scaling.Max())))
		}
	}
	compare(prefill, decode, *ratio.Prefill, *ratio.Decode)
	compare(decode, prefill, *ratio.Decode, *ratio.Prefill)
	return errs
}

// scaledPair tells whether there is one prefiller and one decoder, both with scaling. A role of an unknown
// type may be either, and has an error of its own.
func scaledPair(roles []Role) bool {
	n := map[ComponentType]int{}
	for i := range roles {
		if !roles[i].ComponentType.Known() {
			return true
		}
		n[roles[i].ComponentType]++
		pair := roles[i].ComponentType == ComponentTypePrefiller || roles[i].ComponentType == ComponentTypeDecoder
		if pair && roles[i].Scaling == nil {
			return false
		}
	}
	return n[ComponentTypePrefiller] == 1 && n[ComponentTypeDecoder] == 1
}
