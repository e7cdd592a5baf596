package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// A Rollout says how a change of pods, such as of an image, reaches the replicas that run. What
// changes together is one unit. Each replica of a worker is a unit. Prefill and decode have a unit
// for each group, or, without spec.replicas, for each decode replica.
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || self.maxUnavailable > 0 || (has(self.maxSurge) && self.maxSurge > 0)",fieldPath=".maxUnavailable",message="must be at least 1 if maxSurge is 0: nothing could be changed otherwise"
type Rollout struct {
	// MaxUnavailable is how many units may be stopped at once for a change, in all clusters and
	// roles together. Units that do not become ready count too. So a change stops once that many do
	// not become ready with it. It is a number and no percentage: 25% of 4 replicas is 1. Defaults
	// to 1, or to 0 if maxSurge is above 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`

	// MaxSurge is how many units more than wanted may run during a change, of each role and in each
	// cluster. They need nodes of their own, and in the fleet capacity is reserved for them. It is a
	// number and no percentage. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxSurge *int32 `json:"maxSurge,omitempty"`

	// Partition keeps units with a lower index as they are. With 3, a change of 4 replicas reaches
	// replica 3 only. The index is that of the group, if spec.replicas is set. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	Partition *int32 `json:"partition,omitempty"`

	// Paused keeps all units as they are. One that is being changed is completed, and further units
	// of a surge stay.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// ProgressDeadlineSeconds is how long a change may take without any progress before the
	// condition RolledOut has the reason ProgressDeadlineExceeded. The change goes on all the
	// same. Defaults to 5400, which is more than an engine takes to drain and to start by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// RolloutOf returns how changes roll out, with the defaults.
func (s *InferenceServiceSpec) RolloutOf() Rollout {
	r := Rollout{}
	if s.Rollout != nil {
		r = *s.Rollout
	}
	if r.MaxSurge == nil {
		r.MaxSurge = ptr.To[int32](0)
	}
	if r.MaxUnavailable == nil {
		r.MaxUnavailable = ptr.To[int32](1)
		if *r.MaxSurge > 0 {
			r.MaxUnavailable = ptr.To[int32](0)
		}
	}
	if r.Partition == nil {
		r.Partition = ptr.To[int32](0)
	}
	return r
}

// defaultProgressDeadline is longer than the default of startupSeconds, in seconds.
const defaultProgressDeadline = 5400

// ProgressDeadline is how long a change may take without any progress.
func (r *Rollout) ProgressDeadline() time.Duration {
	return time.Duration(ptr.Deref(r.ProgressDeadlineSeconds, defaultProgressDeadline)) * time.Second
}

func validateRollout(path *field.Path, r *Rollout) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	for _, f := range []struct {
		name     string
		value    *int32
		from, to int32
	}{
		{"maxUnavailable", r.MaxUnavailable, 0, MaxReplicas},
		{"maxSurge", r.MaxSurge, 0, MaxSurge},
		{"partition", r.Partition, 0, MaxReplicas},
		{"progressDeadlineSeconds", r.ProgressDeadlineSeconds, 1, MaxProgressDeadlineSeconds},
	} {
		if f.value != nil {
			errs = append(errs, check.Between(path.Child(f.name), *f.value, f.from, f.to)...)
		}
	}
	if r.MaxUnavailable != nil && *r.MaxUnavailable == 0 && ptr.Deref(r.MaxSurge, 0) == 0 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), 0, "must be at least 1 if maxSurge is 0: nothing could be changed otherwise"))
	}
	return errs
}
