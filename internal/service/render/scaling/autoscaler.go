package scaling

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	apply "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// Autoscaler returns the object that scales a role.
func Autoscaler(p *plan.Plan, r *plan.Role) (kube.Object, error) {
	a := r.Autoscaler
	render := horizontal
	if a.Kind == key.ScaledObject {
		render = scaledObjectOf
	}
	s, err := render(p, r)
	if err != nil {
		return kube.Object{}, fmt.Errorf("cannot render the autoscaler %q: %w", p.ScaleTargetName(r), err)
	}
	return kube.Object{Key: key.Autoscaler(a.Kind, r.Name), Resource: s}, nil
}

// horizontal returns a HorizontalPodAutoscaler. It writes replicas by the scale subresource, as KEDA does, so
// that it is another owner of the number.
func horizontal(p *plan.Plan, r *plan.Role) (*structpb.Struct, error) {
	a, name := r.Autoscaler, p.ScaleTargetName(r)
	spec := apply.HorizontalPodAutoscalerSpec().
		WithScaleTargetRef(apply.CrossVersionObjectReference().WithAPIVersion(v1alpha1.APIVersion).WithKind(v1alpha1.KindInferenceRole).WithName(name)).
		WithMinReplicas(a.Least()).
		WithMaxReplicas(a.Max)
	if m := a.External; m != nil {
		spec.WithMetrics(apply.MetricSpec().
			WithType(autoscalingv2.ExternalMetricSourceType).
			WithExternal(apply.ExternalMetricSource().
				WithMetric(apply.MetricIdentifier().WithName(m.Name).WithSelector(meta.LabelSelector().WithMatchLabels(m.Labels))).
				WithTarget(apply.MetricTarget().WithType(autoscalingv2.AverageValueMetricType).WithAverageValue(*resource.NewQuantity(int64(m.PerReplica), resource.DecimalSI)))))
	}
	s, err := kube.Encode(apply.HorizontalPodAutoscaler(name, p.Service.Namespace).WithLabels(labels(p, r)).WithSpec(spec))
	if err != nil {
		return nil, err
	}
	// They stay as the user wrote them.
	into := kube.CopyChild(s, "spec")
	if len(a.Metrics) > 0 {
		metrics := make([]*structpb.Value, len(a.Metrics))
		for i, m := range a.Metrics {
			metrics[i] = structpb.NewStructValue(m)
		}
		kube.SetList(into, "metrics", metrics)
	}
	if behavior := behaviorOf(a); behavior != nil {
		b, err := kube.EncodeValue(behavior)
		if err != nil {
			return nil, err
		}
		into.Fields["behavior"] = b
	}
	return s, nil
}

// behaviorOf is the behavior that the user wrote, without scaling in while replicas start.
func behaviorOf(a *plan.Autoscaler) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	if !a.Starting {
		return a.Behavior
	}
	b := cmp.Or(a.Behavior, &autoscalingv2.HorizontalPodAutoscalerBehavior{}).DeepCopy()
	b.ScaleDown = cmp.Or(b.ScaleDown, &autoscalingv2.HPAScalingRules{})
	b.ScaleDown.SelectPolicy = ptr.To(autoscalingv2.DisabledPolicySelect)
	return b
}

// pausedScaleIn is the annotation by which KEDA does the same to its HorizontalPodAutoscaler, and does not scale to 0
// (controllers/keda/hpa.go and pkg/scaling/executor/scale_scaledobjects.go of v2.21.0).
const pausedScaleIn = "autoscaling.keda.sh/paused-scale-in"

// The fields of keda.sh/v1alpha1 (KEDA v2.21.0) that are used here. They are declared here, because the Go
// module of its types depends on controller-runtime and on the clients of all that KEDA can read.

type scaledObject struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   kube.Metadata    `json:"metadata"`
	Spec       scaledObjectSpec `json:"spec"`
}

type scaledObjectSpec struct {
	ScaleTargetRef        scaleTarget               `json:"scaleTargetRef"`
	InitialCooldownPeriod *int32                    `json:"initialCooldownPeriod,omitempty"`
	PollingInterval       *int32                    `json:"pollingInterval,omitempty"`
	CooldownPeriod        *int32                    `json:"cooldownPeriod,omitempty"`
	MinReplicaCount       int32                     `json:"minReplicaCount"`
	MaxReplicaCount       int32                     `json:"maxReplicaCount"`
	Advanced              *advanced                 `json:"advanced,omitempty"`
	Triggers              []v1alpha1.ScalingTrigger `json:"triggers"`
}

// defaultCooldown is KEDA's own, in seconds.
const defaultCooldown = 300

type scaleTarget struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

type advanced struct {
	HorizontalPodAutoscalerConfig *horizontalConfig `json:"horizontalPodAutoscalerConfig,omitempty"`
	ScalingModifiers              *modifiers        `json:"scalingModifiers,omitempty"`
}

type modifiers struct {
	Formula          string                         `json:"formula"`
	Target           string                         `json:"target"`
	ActivationTarget string                         `json:"activationTarget"`
	MetricType       autoscalingv2.MetricTargetType `json:"metricType"`
}

type horizontalConfig struct {
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
}

// scaledObjectOf returns a ScaledObject. It has no fallback: without metrics KEDA then leaves the number of
// replicas as it is (pkg/scaling/executor/scale_scaledobjects.go of v2.21.0).
func scaledObjectOf(p *plan.Plan, r *plan.Role) (*structpb.Struct, error) {
	a, name := r.Autoscaler, p.ScaleTargetName(r)
	o := scaledObject{
		APIVersion: "keda.sh/v1alpha1",
		Kind:       "ScaledObject",
		Metadata:   kube.Metadata{Name: name, Namespace: p.Service.Namespace, Labels: labels(p, r)},
		Spec: scaledObjectSpec{
			ScaleTargetRef:  scaleTarget{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindInferenceRole, Name: name},
			MinReplicaCount: a.Least(), MaxReplicaCount: a.Max,
			Triggers: a.Triggers,
		},
	}
	if a.Starting {
		o.Metadata.Annotations = map[string]string{pausedScaleIn: "true"}
	}
	if o.Spec.MinReplicaCount == 0 {
		// Otherwise they change nothing, and the webhook of KEDA warns of them at each write
		// (verifyScaledObjects in apis/keda/v1alpha1/scaledobject_webhook.go of v2.21.0).
		o.Spec.PollingInterval, o.Spec.CooldownPeriod = a.PollingSeconds, a.CooldownSeconds
	}
	if a.Min == 0 {
		// Without it KEDA stops a role that it has never seen active as soon as the ScaledObject is made (scaleToZeroOrIdle in
		// pkg/scaling/executor/scale_scaledobjects.go of v2.21.0).
		o.Spec.InitialCooldownPeriod = cmp.Or(a.CooldownSeconds, ptr.To[int32](defaultCooldown))
	}
	if a.Behavior != nil || a.Formula != nil {
		o.Spec.Advanced = &advanced{}
	}
	if a.Behavior != nil {
		o.Spec.Advanced.HorizontalPodAutoscalerConfig = &horizontalConfig{Behavior: a.Behavior}
	}
	if f := a.Formula; f != nil {
		o.Spec.Advanced.ScalingModifiers = &modifiers{Formula: f.Text, Target: f.PerReplica, ActivationTarget: f.Activation, MetricType: autoscalingv2.AverageValueMetricType}
	}
	return kube.Encode(o)
}

func labels(p *plan.Plan, r *plan.Role) map[string]string {
	return map[string]string{naming.LabelService: p.Service.Name, naming.LabelRoleName: r.Name}
}
