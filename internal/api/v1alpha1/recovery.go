package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// A RecoveryPolicy says what is recreated when a pod fails.
// +kubebuilder:validation:Enum=RoleRestart;RoleRestartAfterStart;InferGroupRestart;None
type RecoveryPolicy string

// The recovery policies.
const (
	// RecoverRole recreates all pods of the replica.
	RecoverRole RecoveryPolicy = "RoleRestart"
	// RecoverRoleAfterStart does that once no pod of the replica is pending.
	RecoverRoleAfterStart RecoveryPolicy = "RoleRestartAfterStart"
	// RecoverGroup recreates all replicas of the group.
	RecoverGroup RecoveryPolicy = "InferGroupRestart"
	// RecoverPod restarts the pod alone.
	RecoverPod RecoveryPolicy = "None"
)

// RecoveryOf returns the role's recovery policy, and how long its replicas may take to serve again
// before the rest of their group is recreated, with the defaults.
func (r *Role) RecoveryOf() (RecoveryPolicy, time.Duration) {
	p := r.RecoveryPolicy
	if p == "" {
		p = RecoverRole
	}
	return p, time.Duration(ptr.Deref(r.RestartGracePeriodSeconds, 0)) * time.Second
}

func validateRecovery(path *field.Path, r *Role) field.ErrorList {
	errs := check.OneOf(path.Child("recoveryPolicy"), r.RecoveryPolicy, RecoverRole, RecoverRoleAfterStart, RecoverGroup, RecoverPod)
	s := r.RestartGracePeriodSeconds
	if s == nil {
		return errs
	}
	at := path.Child("restartGracePeriodSeconds")
	if r.RecoveryPolicy != RecoverGroup && r.ComponentType != ComponentTypeRouter {
		errs = append(errs, field.Invalid(at, *s, "must be left out: only recoveryPolicy "+string(RecoverGroup)+" waits"))
	}
	return append(errs, check.Between(at, *s, 0, MaxRestartGraceSeconds)...)
}
