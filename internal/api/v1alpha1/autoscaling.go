package v1alpha1

import (
	"fmt"
	"maps"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A ScalingTarget is the metric of the role's engines that an autoscaler keeps at a value, of vLLM or
// SGLang. Exactly one of its fields has to be set. See docs/scaling.md.
// +kubebuilder:validation:XValidation:rule="(has(self.waitingRequests) ? 1 : 0) + (has(self.runningRequests) ? 1 : 0) + (has(self.kvCacheUtilizationPercent) ? 1 : 0) + (has(self.tokensPerSecond) ? 1 : 0) + (has(self.timeToFirstTokenMilliseconds) ? 1 : 0) == 1",message="must have exactly one of waitingRequests, runningRequests, kvCacheUtilizationPercent, tokensPerSecond and timeToFirstTokenMilliseconds"
type ScalingTarget struct {
	// WaitingRequests is how many requests wait in the engine of each replica.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	WaitingRequests *int32 `json:"waitingRequests,omitempty"`

	// RunningRequests is how many requests the engine of each replica works on at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RunningRequests *int32 `json:"runningRequests,omitempty"`

	// KVCacheUtilizationPercent is how much of the KV cache is in use, as the mean of the replicas.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	KVCacheUtilizationPercent *int32 `json:"kvCacheUtilizationPercent,omitempty"`

	// TokensPerSecond is how many tokens each replica generates in a second, as the mean of 5 minutes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	TokensPerSecond *int32 `json:"tokensPerSecond,omitempty"`

	// TimeToFirstTokenMilliseconds is the time to the first token that 95 of 100 requests stay below, of
	// all replicas in the last 5 minutes. Without requests it counts as 0.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	TimeToFirstTokenMilliseconds *int32 `json:"timeToFirstTokenMilliseconds,omitempty"`

	// Unknown fields are named if no other one is set. An API server drops them, and a file still has them.
	Unknown kube.Unknown `json:"-"`
}

// A ScalingTrigger is a trigger of KEDA.
type ScalingTrigger struct {
	// Type of the trigger, such as prometheus, cron or kafka. The platform team has to allow it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Type string `json:"type"`

	// Name of the trigger, unique in the role.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// Metadata of the trigger, as its type has it. All values are strings.
	// +kubebuilder:validation:MaxProperties=64
	Metadata map[string]string `json:"metadata"`

	// AuthenticationRef names how KEDA authenticates itself, in the namespace of the service.
	// +optional
	AuthenticationRef *TriggerAuthenticationRef `json:"authenticationRef,omitempty"`

	// MetricType of the trigger. Value needs pods in the namespace of the service. Defaults to
	// AverageValue.
	// +optional
	// +kubebuilder:validation:Enum=AverageValue;Value
	MetricType autoscalingv2.MetricTargetType `json:"metricType,omitempty"`
}

// A TriggerAuthenticationRef names a TriggerAuthentication.
type TriggerAuthenticationRef struct {
	// Kind has to be TriggerAuthentication, which is the default. One of a cluster has the platform
	// team's credentials.
	// +optional
	// +kubebuilder:validation:Enum=TriggerAuthentication
	Kind string `json:"kind,omitempty"`

	// Name of the TriggerAuthentication.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// Limits of autoscalers. The markers of the types repeat them for the schema.
const (
	maxScalingSources  = 16
	maxTriggerMetadata = 64
	// kindTriggerAuthentication is the only kind of credentials that a tenant may name.
	kindTriggerAuthentication = "TriggerAuthentication"
)

// Autoscales tells whether the service makes an autoscaler for the role.
func (s *RoleScaling) Autoscales() bool {
	return s != nil && (s.Target != nil || s.Metrics != nil || s.Triggers != nil)
}

// validateAutoscaler checks what scales a role.
func validateAutoscaler(path *field.Path, s *RoleScaling) field.ErrorList {
	var errs field.ErrorList
	set := 0
	for _, is := range []bool{s.Target != nil, s.Metrics != nil, s.Triggers != nil} {
		if is {
			set++
		}
	}
	if set > 1 {
		errs = append(errs, field.Invalid(path, "{...}", "must have at most one of target, metrics and triggers"))
	}
	if s.Behavior != nil && set == 0 {
		errs = append(errs, field.Forbidden(path.Child("behavior"), "must be left out without target, metrics or triggers: nothing scales the role then"))
	}
	if s.MinReplicas != nil && *s.MinReplicas == 0 && s.Metrics != nil {
		errs = append(errs, field.Invalid(path.Child("minReplicas"), 0, "must be 1 or more with metrics: only target and triggers wake a role that runs 0 replicas"))
	}
	if s.Target != nil {
		errs = append(errs, validateScalingTarget(path.Child("target"), s.Target)...)
	}
	if s.Metrics != nil {
		at := path.Child("metrics")
		_, more := check.Capped(at, s.Metrics, maxScalingSources)
		errs = append(errs, more...)
		if len(s.Metrics) == 0 {
			errs = append(errs, field.Required(at, "must list metrics of a HorizontalPodAutoscaler, or be left out"))
		}
	}
	return append(errs, validateTriggers(path.Child("triggers"), s.Triggers)...)
}

// Set returns the field of the target that is set, with its name. There may be several if it is invalid.
func (t *ScalingTarget) Set() []TargetField {
	return slices.DeleteFunc(t.fields(), func(f TargetField) bool { return f.Value == nil })
}

func (t *ScalingTarget) fields() []TargetField {
	return []TargetField{
		{"waitingRequests", t.WaitingRequests, 100_000},
		{"runningRequests", t.RunningRequests, 100_000},
		{"kvCacheUtilizationPercent", t.KVCacheUtilizationPercent, 100},
		{"tokensPerSecond", t.TokensPerSecond, 10_000_000},
		{"timeToFirstTokenMilliseconds", t.TimeToFirstTokenMilliseconds, 3_600_000},
	}
}

// A TargetField is a field of a target with its largest value.
type TargetField struct {
	Name  string
	Value *int32
	most  int32
}

func validateScalingTarget(path *field.Path, t *ScalingTarget) field.ErrorList {
	set := t.Set()
	if len(set) == 0 && len(t.Unknown) > 0 {
		var known []string
		for _, f := range t.fields() {
			known = append(known, f.Name)
		}
		slices.Sort(known)
		return check.OneOf(path, t.Unknown[0], known...)
	}
	var errs field.ErrorList
	if len(set) != 1 {
		errs = append(errs, field.Invalid(path, "{...}", "must have exactly one of waitingRequests, runningRequests, kvCacheUtilizationPercent, tokensPerSecond and timeToFirstTokenMilliseconds"))
	}
	for _, f := range set {
		errs = append(errs, check.Between(path.Child(f.Name), *f.Value, 1, f.most)...)
	}
	return errs
}

func validateTriggers(path *field.Path, all []ScalingTrigger) field.ErrorList {
	triggers, errs := check.Capped(path, all, maxScalingSources)
	if all != nil && len(all) == 0 {
		errs = append(errs, field.Required(path, "must list triggers of KEDA, or be left out"))
	}
	names := unique{}
	for i := range triggers {
		at, t := path.Index(i), &triggers[i]
		errs = append(errs, check.Required(at.Child("type"), t.Type, "must be a type of trigger that KEDA knows, such as prometheus", check.Label)...)
		if t.Name != "" {
			errs = append(errs, check.Label(at.Child("name"), t.Name)...)
			errs = append(errs, names.check(at.Child("name"), t.Name)...)
		}
		errs = append(errs, validateTriggerMetadata(at.Child("metadata"), t.Metadata)...)
		if t.MetricType != "" {
			errs = append(errs, check.OneOf(at.Child("metricType"), t.MetricType, autoscalingv2.AverageValueMetricType, autoscalingv2.ValueMetricType)...)
		}
		if ref := t.AuthenticationRef; ref != nil {
			errs = append(errs, validateTriggerAuthentication(at.Child("authenticationRef"), ref)...)
		}
	}
	return errs
}

func validateTriggerMetadata(path *field.Path, m map[string]string) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(path, "must be what the type of trigger needs, such as serverAddress, query and threshold")}
	}
	if len(m) > maxTriggerMetadata {
		return field.ErrorList{field.TooMany(path, len(m), maxTriggerMetadata)}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if name == "" {
			return field.ErrorList{field.Required(path.Key(name), "must have a name")}
		}
	}
	// With operator, KEDA reads with its own account of AWS, for anybody (pkg/scalers/aws/aws_common.go of v2.21.0).
	if owner := m[identityOwner]; owner != "" && owner != "pod" {
		return field.ErrorList{field.Invalid(path.Key(identityOwner), text.Value(owner), "must be left out, or be pod: KEDA would use its own account, which is the platform team's")}
	}
	return nil
}

// identityOwner says in the metadata of a trigger for AWS whose account KEDA uses.
const identityOwner = "identityOwner"

func validateTriggerAuthentication(path *field.Path, ref *TriggerAuthenticationRef) field.ErrorList {
	var errs field.ErrorList
	if ref.Kind != "" && ref.Kind != kindTriggerAuthentication {
		errs = append(errs, field.Invalid(path.Child("kind"), text.Value(ref.Kind), fmt.Sprintf("must be left out, or be %s: one of a cluster has credentials of the platform team", kindTriggerAuthentication)))
	}
	return append(errs, check.Required(path.Child("name"), ref.Name, "must be the name of a TriggerAuthentication in the namespace of the service", check.Name)...)
}
