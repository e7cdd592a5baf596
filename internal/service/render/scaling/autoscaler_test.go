package scaling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestIntervals proves that a ScaledObject has the intervals of KEDA only where they count.
func TestIntervals(t *testing.T) {
	cases := map[string]struct {
		reason     string
		autoscaler plan.Autoscaler
		want       scaledObjectSpec
	}{
		"Runs": {
			reason:     "KEDA's webhook warns of what has no effect.",
			autoscaler: plan.Autoscaler{Min: 1, Max: 5, PollingSeconds: ptr.To[int32](10), CooldownSeconds: ptr.To[int32](60)},
			want:       scaledObjectSpec{MinReplicaCount: 1, MaxReplicaCount: 5},
		},
		"MayStop": {
			reason:     "KEDA looks so often, and waits for so long.",
			autoscaler: plan.Autoscaler{Max: 5, PollingSeconds: ptr.To[int32](10), CooldownSeconds: ptr.To[int32](60)},
			want:       scaledObjectSpec{MaxReplicaCount: 5, PollingInterval: ptr.To[int32](10), CooldownPeriod: ptr.To[int32](60), InitialCooldownPeriod: ptr.To[int32](60)},
		},
		"Holds": {
			reason:     "It does not stop so far.",
			autoscaler: plan.Autoscaler{Max: 5, Floor: 1, PollingSeconds: ptr.To[int32](10), CooldownSeconds: ptr.To[int32](60)},
			want:       scaledObjectSpec{MinReplicaCount: 1, MaxReplicaCount: 5, InitialCooldownPeriod: ptr.To[int32](60)},
		},
		"Keeps": {
			reason:     "It stops no replicas that a rollout keeps.",
			autoscaler: plan.Autoscaler{Max: 5, Floor: 4, PollingSeconds: ptr.To[int32](10), CooldownSeconds: ptr.To[int32](60)},
			want:       scaledObjectSpec{MinReplicaCount: 4, MaxReplicaCount: 5, InitialCooldownPeriod: ptr.To[int32](60)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.autoscaler.Kind = key.ScaledObject
			o, err := Autoscaler(&plan.Plan{Service: naming.Identity{Name: "chat", Namespace: "team"}}, &plan.Role{Name: "w", Autoscaler: &tc.autoscaler})
			if err != nil {
				t.Fatal(err)
			}
			got := scaledObject{}
			if errs := kube.Decode(o.Resource, nil, &got); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			tc.want.ScaleTargetRef = scaleTarget{APIVersion: v1alpha1.APIVersion, Kind: "InferenceRole", Name: "chat-w"}
			if diff := cmp.Diff(tc.want, got.Spec); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStarting proves that no autoscaler removes replicas while some start.
func TestStarting(t *testing.T) {
	disabled, window := ptr.To(autoscalingv2.DisabledPolicySelect), ptr.To[int32](60)
	own := func() *autoscalingv2.HorizontalPodAutoscalerBehavior {
		return &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: window}, ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: window},
		}
	}
	paused := own()
	paused.ScaleDown.SelectPolicy = disabled
	cases := map[string]struct {
		reason      string
		autoscaler  plan.Autoscaler
		annotations map[string]string
		want        *autoscalingv2.HorizontalPodAutoscalerBehavior
	}{
		"KEDA":     {reason: "KEDA changes its HPA, and does not stop the role.", autoscaler: plan.Autoscaler{Kind: key.ScaledObject, Starting: true}, annotations: map[string]string{pausedScaleIn: "true"}},
		"KEDARuns": {reason: "Nothing starts.", autoscaler: plan.Autoscaler{Kind: key.ScaledObject}},
		"HPA":      {reason: "The user says nothing.", autoscaler: plan.Autoscaler{Kind: key.HorizontalPodAutoscaler, Starting: true}, want: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{SelectPolicy: disabled}}},
		"HPAOwn":   {reason: "The rest is the user's.", autoscaler: plan.Autoscaler{Kind: key.HorizontalPodAutoscaler, Starting: true, Behavior: own()}, want: paused},
		"HPARuns":  {reason: "It is the user's.", autoscaler: plan.Autoscaler{Kind: key.HorizontalPodAutoscaler, Behavior: own()}, want: own()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := Autoscaler(&plan.Plan{Service: naming.Identity{Name: "chat", Namespace: "team"}}, &plan.Role{Name: "w", Autoscaler: &tc.autoscaler})
			if err != nil {
				t.Fatal(err)
			}
			got := struct {
				Metadata kube.Metadata `json:"metadata"`
				Spec     struct {
					Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
				} `json:"spec"`
			}{}
			if errs := kube.Decode(o.Resource, nil, &got); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if diff := cmp.Diff(tc.annotations, got.Metadata.Annotations); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got.Spec.Behavior); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExternalMetric proves that an external metric is one of the role alone, and the target its mean.
func TestExternalMetric(t *testing.T) {
	labels := map[string]string{"inferenceservice_namespace": "team", "inferenceservice": "chat", "role": "w"}
	p := &plan.Plan{Service: naming.Identity{Name: "chat", Namespace: "team"}}
	o, err := Autoscaler(p, &plan.Role{Name: "w", Autoscaler: &plan.Autoscaler{
		Kind: key.HorizontalPodAutoscaler, Min: 2, Max: 5,
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](0), Tolerance: ptr.To(resource.MustParse("50m"))}},
		External: &plan.ExternalMetric{Name: "fusioninfer_waiting_requests", Labels: labels, PerReplica: 3},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if o.Key.String() != "horizontalpodautoscaler/w" {
		t.Errorf("its key is %s", o.Key)
	}
	got := autoscalingv2.HorizontalPodAutoscaler{}
	if errs := kube.Decode(o.Resource, nil, &got); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	want := autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Name: "chat-w", Namespace: "team", Labels: map[string]string{"fusioninfer.io/service": "chat", "fusioninfer.io/role-name": "w"}},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: v1alpha1.APIVersion, Kind: "InferenceRole", Name: "chat-w"},
			MinReplicas:    ptr.To[int32](2), MaxReplicas: 5,
			Metrics: []autoscalingv2.MetricSpec{{Type: "External", External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: "fusioninfer_waiting_requests", Selector: &metav1.LabelSelector{MatchLabels: labels}},
				Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: ptr.To(resource.MustParse("3"))},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](0), Tolerance: ptr.To(resource.MustParse("50m"))}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
