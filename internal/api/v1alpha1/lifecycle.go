package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// A Lifecycle says how long the pods of a role may take to start and to stop. What a template says
// itself stays as it is.
type Lifecycle struct {
	// StartupSeconds is how long the engine may take to load its model, before its replica is
	// recreated. It is the time of the startup probe that is added. It has no effect if the template has
	// a readiness or startup probe, or if the engine is not known. Defaults to 3600.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	StartupSeconds *int32 `json:"startupSeconds,omitempty"`

	// DrainSeconds is how long a pod that is deleted goes on as before, while new requests already
	// go elsewhere. It is the wait of the preStop hook. 0 means no wait. Defaults to 30.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1800
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`

	// ShutdownSeconds is how long the engine may take to end after that, before it is killed. The
	// grace period of the pods is the sum of drainSeconds and shutdownSeconds. Defaults to 30.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1800
	ShutdownSeconds *int32 `json:"shutdownSeconds,omitempty"`
}

// LifecycleTimes are the times of a Lifecycle, with the defaults.
type LifecycleTimes struct {
	StartupSeconds, DrainSeconds, ShutdownSeconds int32
}

// LifecycleOf returns how long the pods of the role may take.
func (r *Role) LifecycleOf() LifecycleTimes {
	l := r.Lifecycle
	if l == nil {
		l = &Lifecycle{}
	}
	return LifecycleTimes{ptr.Deref(l.StartupSeconds, 3600), ptr.Deref(l.DrainSeconds, 30), ptr.Deref(l.ShutdownSeconds, 30)}
}

func validateLifecycle(path *field.Path, l *Lifecycle) field.ErrorList {
	if l == nil {
		return nil
	}
	var errs field.ErrorList
	for _, f := range []struct {
		name     string
		value    *int32
		from, to int32
	}{
		{"startupSeconds", l.StartupSeconds, 10, MaxStartupSeconds},
		{"drainSeconds", l.DrainSeconds, 0, MaxDrainSeconds},
		{"shutdownSeconds", l.ShutdownSeconds, 1, MaxDrainSeconds},
	} {
		if f.value != nil {
			errs = append(errs, check.Between(path.Child(f.name), *f.value, f.from, f.to)...)
		}
	}
	return errs
}
