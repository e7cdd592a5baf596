package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// minResources is what the scheduler has to find for a pod: requests, and limits
// where there are none, as the API server will have filled them in. Containers
// are added up; init containers count where one of them needs more, and those
// that keep running are added as well.
func minResources(spec corev1.PodSpec) corev1.ResourceList {
	spec.Containers = withRequests(spec.Containers)
	spec.InitContainers = withRequests(spec.InitContainers)
	spec.Overhead = requests(corev1.ResourceRequirements{Requests: spec.Overhead}, nil)
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

// requests fills requests in from limits, but for what is requested elsewhere. What no API
// server would take is counted so that nobody gains by it: amounts below 0 as none, and of
// what cannot be overcommitted the larger of request and limit.
func requests(r corev1.ResourceRequirements, elsewhere corev1.ResourceList) corev1.ResourceList {
	var all corev1.ResourceList
	add := func(name corev1.ResourceName, q resource.Quantity) {
		if q.Sign() < 0 {
			return
		}
		if whole := q.DeepCopy(); !overcommitted(name) && !whole.RoundUp(0) {
			q = whole
		}
		if all == nil {
			all = corev1.ResourceList{}
		}
		all[name] = q
	}
	for name, q := range r.Requests {
		add(name, q)
	}
	for name, limit := range r.Limits {
		request, requested := all[name]
		_, counted := elsewhere[name]
		if counted || requested && (overcommitted(name) || request.Cmp(limit) >= 0) {
			continue
		}
		add(name, limit)
	}
	return all
}

// overcommitted tells whether a container may have a limit above its request: of Kubernetes'
// own resources all but huge pages.
func overcommitted(name corev1.ResourceName) bool {
	return !isDevice(name) && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
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
