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
