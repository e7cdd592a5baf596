package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// Limits of what a pod template has, which are far above what pods need. Kubernetes has none. What its libraries do costs the product of
// some of these numbers: they add up the resources of the sidecars again for each init container.
const (
	// maxContainers is for containers, initContainers and ephemeralContainers, for each of these lists by itself.
	maxContainers = 64
	// maxResourceNames is how many different resources a pod may name. A cluster of the fleet reads no request with more.
	maxResourceNames = reservation.MaxResources
)

// checkPodSize refuses a pod with too many containers, or with too many different resources.
func checkPodSize(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name string
		size int
	}{
		{"containers", len(spec.Containers)}, {"ephemeralContainers", len(spec.EphemeralContainers)}, {"initContainers", len(spec.InitContainers)},
	} {
		if list.size > maxContainers {
			errs = append(errs, field.TooMany(at.Child(list.name), list.size, maxContainers))
		}
	}
	if n := len(resourceNames(spec)); n > maxResourceNames {
		errs = append(errs, field.Invalid(at, fmt.Sprintf("%d different resources", n), fmt.Sprintf("must be at most %d, in the requests and limits of all containers together", maxResourceNames)))
	}
	return errs
}

// resourceNames returns the resources that a pod requests, limits or has as overhead.
func resourceNames(spec *corev1.PodSpec) map[corev1.ResourceName]bool {
	all := map[corev1.ResourceName]bool{}
	add := func(lists ...corev1.ResourceList) {
		for _, list := range lists {
			for name := range list {
				all[name] = true
			}
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			add(containers[i].Resources.Requests, containers[i].Resources.Limits)
		}
	}
	if spec.Resources != nil {
		add(spec.Resources.Requests, spec.Resources.Limits)
	}
	add(spec.Overhead)
	return all
}
