package podspec

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// PlaceOf returns where a pod template has a field of that name, such as spec.nodeSelector or spec.containers[].image, or nothing. What both
// pods and containers have is taken for a field of containers.
func PlaceOf(name string) string {
	switch {
	case kube.HasField(reflect.TypeFor[corev1.Container](), name):
		return "spec.containers[]." + name
	case kube.HasField(reflect.TypeFor[corev1.PodSpec](), name):
		return "spec." + name
	}
	return ""
}
