package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
)

// minResources returns the requests of a pod as the scheduler counts them. A limit without a
// request counts as the request, as the API server's defaulting makes it. resourcehelper adds up
// containers and sidecars, and takes the maximum with init containers.
func minResources(spec corev1.PodSpec) corev1.ResourceList {
	spec.Containers = withRequests(spec.Containers)
	spec.InitContainers = withRequests(spec.InitContainers)
	spec.Overhead = requests(corev1.ResourceRequirements{Requests: spec.Overhead}, nil)
	pod := &corev1.Pod{Spec: spec}
	if spec.Resources != nil {
		whole := *spec.Resources
		sum := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
		// A limit of the pod becomes its request only for resources that no container requests.
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

// requests returns the requests with limits as defaults, except for resources that elsewhere
// requests. Values that the API server would refuse must not lower the sum. So negative amounts
// are ignored. For resources that cannot be overcommitted, the larger of request and limit counts.
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

// overcommitted tells whether a limit may be above the request: Kubernetes allows this for its own
// resources except huge pages.
func overcommitted(name corev1.ResourceName) bool {
	return !capacity.IsDevice(name) && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// addTimes adds n times each quantity to total, without rounding.
func addTimes(total, each corev1.ResourceList, n int32) {
	if n == 0 {
		return
	}
	for name, q := range each {
		q = q.DeepCopy()
		q.Mul(int64(n))
		sum := total[name].DeepCopy()
		if sum.IsZero() {
			// A sum takes its format from the first operand, which is an empty quantity here.
			sum.Format = q.Format
		}
		sum.Add(q)
		total[name] = sum
	}
}
