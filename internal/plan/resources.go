package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// minResources is what the scheduler has to find for a pod: requests, and limits
// where there are none, as the API server will have filled them in. Containers
// are added up; init containers count where one of them needs more, and those
// that keep running are added as well.
func minResources(spec corev1.PodSpec) corev1.ResourceList {
	spec.Containers = withRequests(spec.Containers)
	spec.InitContainers = withRequests(spec.InitContainers)
	pod := &corev1.Pod{Spec: spec}
	if spec.Resources != nil {
		whole := *spec.Resources
		sum := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
		// A limit of the whole pod is a request only where no container has one.
		whole.Requests = requests(whole, sum)
		pod.Spec.Resources = &whole
	}
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}

func withRequests(containers []corev1.Container) []corev1.Container {
	containers = slices.Clone(containers)
	for i := range containers {
		containers[i].Resources.Requests = requests(containers[i].Resources, nil)
	}
	return containers
}

// requests fills requests in from limits, but for what is requested elsewhere.
func requests(r corev1.ResourceRequirements, elsewhere corev1.ResourceList) corev1.ResourceList {
	all := maps.Clone(r.Requests)
	for name, limit := range r.Limits {
		if _, ok := all[name]; ok {
			continue
		}
		if _, ok := elsewhere[name]; ok {
			continue
		}
		if all == nil {
			all = corev1.ResourceList{}
		}
		all[name] = limit
	}
	return all
}

// addTimes adds n times each to total. Sums are exact.
func addTimes(total, each corev1.ResourceList, n int32) {
	if n == 0 {
		return
	}
	for name, q := range each {
		q = q.DeepCopy()
		q.Mul(int64(n))
		sum := total[name].DeepCopy()
		if sum.IsZero() {
			// Else the sum would have the zero's notation.
			sum.Format = q.Format
		}
		sum.Add(q)
		total[name] = sum
	}
}
