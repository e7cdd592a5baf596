package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func resources(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// written is how a list looks in an object.
func written(l corev1.ResourceList) map[string]string {
	w := map[string]string{}
	for k, q := range l {
		w[string(k)] = q.String()
	}
	return w
}

func TestMinResources(t *testing.T) {
	container := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	always := func(c corev1.Container) corev1.Container {
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		return c
	}
	cases := map[string]struct {
		reason string
		spec   corev1.PodSpec
		want   map[string]string
	}{
		"Nothing": {"A pod that requests nothing.", corev1.PodSpec{Containers: make([]corev1.Container, 1)}, map[string]string{}},
		"Requests": {
			reason: "Requests win over limits, each resource for itself.",
			spec:   corev1.PodSpec{Containers: []corev1.Container{container(resources("cpu", "1"), resources("cpu", "4", "nvidia.com/gpu", "8"))}},
			want:   map[string]string{"cpu": "1", "nvidia.com/gpu": "8"},
		},
		"Sum": {
			reason: "Containers are added up.",
			spec:   corev1.PodSpec{Containers: []corev1.Container{container(resources("cpu", "500m", "memory", "1Gi"), nil), container(nil, resources("cpu", "500m", "memory", "512Mi"))}},
			want:   map[string]string{"cpu": "1", "memory": "1536Mi"},
		},
		"InitContainer": {
			reason: "The largest init container counts where it needs more.",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container(resources("cpu", "4"), nil), container(nil, resources("cpu", "2"))},
				Containers:     []corev1.Container{container(resources("cpu", "1", "memory", "1Gi"), nil)},
			},
			want: map[string]string{"cpu": "4", "memory": "1Gi"},
		},
		"Sidecar": {
			reason: "An init container that keeps running is added to the others, and to later init containers.",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{always(container(resources("cpu", "1"), nil)), container(resources("cpu", "4"), nil)},
				Containers:     []corev1.Container{container(resources("cpu", "2"), nil)},
			},
			want: map[string]string{"cpu": "5"},
		},
		"Overhead": {
			reason: "What the pod's runtime needs is added.",
			spec:   corev1.PodSpec{Containers: []corev1.Container{container(resources("cpu", "1"), nil)}, Overhead: resources("cpu", "250m")},
			want:   map[string]string{"cpu": "1250m"},
		},
		"WholePod": {
			reason: "Requests of the whole pod replace those of the containers, its limits only where those have none.",
			spec: corev1.PodSpec{
				Resources:  &corev1.ResourceRequirements{Requests: resources("cpu", "8"), Limits: resources("cpu", "16", "memory", "64Gi")},
				Containers: []corev1.Container{container(resources("cpu", "1", "nvidia.com/gpu", "1"), nil)},
			},
			want: map[string]string{"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"},
		},
		"WholePodLimit": {
			reason: "A limit of the whole pod requests nothing that a container requests.",
			spec: corev1.PodSpec{
				Resources:  &corev1.ResourceRequirements{Limits: resources("cpu", "16")},
				Containers: []corev1.Container{container(resources("cpu", "1"), nil)},
			},
			want: map[string]string{"cpu": "1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.spec.DeepCopy()
			if diff := cmp.Diff(tc.want, written(minResources(tc.spec))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(*before, tc.spec); diff != "" {
				t.Errorf("the template was changed: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestAddTimes(t *testing.T) {
	cases := map[string]struct {
		reason string
		total  corev1.ResourceList
		each   corev1.ResourceList
		n      int32
		want   map[string]string
	}{
		"Halves":   {"Four halves are two.", resources(), resources("cpu", "500m"), 4, map[string]string{"cpu": "2"}},
		"More":     {"What is there stays.", resources("cpu", "1", "a.b/c", "1"), resources("cpu", "1500m"), 2, map[string]string{"cpu": "4", "a.b/c": "1"}},
		"Memory":   {"Memory keeps its notation.", resources(), resources("memory", "1536Mi"), 2, map[string]string{"memory": "3Gi"}},
		"Mixed":    {"Notations may differ.", resources("memory", "1Gi"), resources("memory", "1G"), 1, map[string]string{"memory": "2073741824"}},
		"Large":    {"No sum is cut off.", resources(), resources("memory", "4Ei"), 3, map[string]string{"memory": "12Ei"}},
		"None":     {"None of it, and no zero either.", resources(), resources("cpu", "1"), 0, map[string]string{}},
		"Fraction": {"The smallest amounts add up.", resources(), resources("cpu", "1m"), 2000, map[string]string{"cpu": "2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			each := tc.each.DeepCopy()
			addTimes(tc.total, tc.each, tc.n)
			if diff := cmp.Diff(tc.want, written(tc.total)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(written(each), written(tc.each)); diff != "" {
				t.Errorf("each was changed: -want, +got:\n%s", diff)
			}
		})
	}
}
