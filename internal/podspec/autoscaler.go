package podspec

import (
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	autoscalingdefaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	autoscalingvalidation "k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	"k8s.io/utils/ptr"
)

// autoscalerOptions are those of an API server when an object is created
// (pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go).
var autoscalerOptions = autoscalingvalidation.HorizontalPodAutoscalerSpecValidationOptions{
	MinReplicasLowerBound:           0,
	ScaleTargetRefValidationOptions: autoscalingvalidation.CrossVersionObjectReferenceValidationOptions{AllowEmptyAPIGroup: true},
	ObjectMetricsValidationOptions:  autoscalingvalidation.CrossVersionObjectReferenceValidationOptions{AllowEmptyAPIGroup: true},
}

// ValidateAutoscaler returns why an API server would refuse a HorizontalPodAutoscaler with these fields,
// which are below a path. Neither is changed.
func ValidateAutoscaler(metrics []autoscalingv2.MetricSpec, behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, path *field.Path) field.ErrorList {
	h := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "x"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "x/v1", Kind: "X", Name: "x"},
			MinReplicas:    ptr.To[int32](1), MaxReplicas: 1,
			Metrics: metrics, Behavior: behavior,
		},
	}
	h = h.DeepCopy()
	autoscalingdefaults.SetDefaults_HorizontalPodAutoscaler(h)
	spec := autoscaling.HorizontalPodAutoscalerSpec{}
	if err := autoscalingdefaults.Convert_v2_HorizontalPodAutoscalerSpec_To_autoscaling_HorizontalPodAutoscalerSpec(&h.Spec, &spec, nil); err != nil {
		return field.ErrorList{field.Invalid(path, "{...}", err.Error())}
	}
	errs := autoscalingvalidation.ValidateHorizontalPodAutoscaler(&autoscaling.HorizontalPodAutoscaler{ObjectMeta: h.ObjectMeta, Spec: spec}, autoscalerOptions)
	for _, e := range errs {
		if below, is := strings.CutPrefix(e.Field, "spec."); is {
			e.Field = path.Child(below).String()
		}
	}
	return readable(errs)
}
