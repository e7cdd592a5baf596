/*
Package capacity decides whether pods fit onto the free capacity of a cluster, by bin
packing. It knows pools, node classes and pod sets, but neither services nor requests.

It is pure: no client, no clock. The result does not depend on the order of pods or nodes.
*/
package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

// Resources are amounts by the names of the resources, in thousandths. An amount beyond int64
// becomes the largest int64, which no node has.
type Resources map[string]int64

// ResourcesOf converts a list of resources.
func ResourcesOf(list corev1.ResourceList) Resources {
	r := make(Resources, len(list))
	for name, q := range list {
		r[string(name)] = milli(q)
	}
	return r
}

// RequestsOf converts what a pod requests. An amount of zero requests nothing, so it is left out.
func RequestsOf(list corev1.ResourceList) Resources {
	r := ResourcesOf(list)
	r.dropZeros()
	return r
}

func (r Resources) dropZeros() { maps.DeleteFunc(r, func(_ string, n int64) bool { return n == 0 }) }

// milli returns the amount in thousandths.
func milli(q resource.Quantity) int64 {
	if q.CmpInt64(math.MaxInt64/1000) > 0 {
		return math.MaxInt64
	}
	return max(q.MilliValue(), 0)
}

// List converts to the form of the Kubernetes API. Amounts that are zero are left out unless
// zeros is true.
func (r Resources) List(zeros bool) corev1.ResourceList {
	list := make(corev1.ResourceList, len(r))
	for name, n := range r {
		if n != 0 || zeros {
			list[corev1.ResourceName(name)] = Quantity(name, n)
		}
	}
	return list
}

// Quantity returns an amount of a resource in the form of the Kubernetes API.
func Quantity(name string, milli int64) resource.Quantity {
	format := resource.DecimalSI
	if bytes(name) {
		format = resource.BinarySI
	}
	if milli%1000 == 0 {
		return *resource.NewQuantity(milli/1000, format)
	}
	return *resource.NewMilliQuantity(milli, format)
}

// bytes tells whether a resource is measured in bytes.
func bytes(name string) bool {
	return name == string(corev1.ResourceMemory) || name == string(corev1.ResourceEphemeralStorage)
}

// Add adds each of the other amounts n times.
func (r Resources) Add(o Resources, n int64) {
	for name, each := range o {
		r[name] = Saturated(r[name], each, n)
	}
}

// AddPods adds what the pods request, and their number.
func (r Resources) AddPods(podSet PodSet) {
	r.Add(podSet.Requirements.Requests, podSet.Count)
	r.Add(Resources{"pods": 1000}, podSet.Count)
}

// Saturated returns sum + each*n, or the largest int64 where that overflows.
func Saturated(sum, each, n int64) int64 {
	if each != 0 && n > math.MaxInt64/each {
		return math.MaxInt64
	}
	if total := each * n; sum <= math.MaxInt64-total {
		return sum + total
	}
	return math.MaxInt64
}

// uncounted are the resources that a pool may leave out because it has enough of them. If a
// pool leaves out a device, it has none.
var uncounted = []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourceEphemeralStorage), string(corev1.ResourcePods)}

// IsDevice tells whether a resource is a vendor's device, such as nvidia.com/gpu. Extended resources have a "/" in their
// names.
func IsDevice[T ~string](name T) bool { return strings.Contains(string(name), "/") }

// devices tells whether there is some of a device.
func (r Resources) devices() bool {
	for name, n := range r {
		if n > 0 && IsDevice(name) {
			return true
		}
	}
	return false
}

// sortedNames returns the names of resources, devices first, since a shortage of devices is of
// most interest.
func sortedNames(r Resources) []string {
	names := slices.Collect(maps.Keys(r))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(sorting.First(IsDevice(a), IsDevice(b)), strings.Compare(a, b)) })
	return names
}

// PodRequirements are what a pod requires of a node.
type PodRequirements struct {
	Requests     Resources         `json:"requests,omitempty"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of the pod, as TolerationsOf returns them.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Pin of the pod, in addition to its node selector. The ledger has it beside the requirements.
	Pin *Pin `json:"-"`
}

// Normalize leaves out what says nothing: amounts that are zero, and what TolerationsOf leaves out. It leaves out how many pods a pod
// requests: each is one, and no container may request the resource.
func (r *PodRequirements) Normalize() {
	delete(r.Requests, string(corev1.ResourcePods))
	r.Requests.dropZeros()
	r.Tolerations = TolerationsOf(r.Tolerations)
}

// Key returns a text that is the same for equal requirements only. Lengths keep it so for names
// that hold any character, since tenants write them. The text of pods without tolerations is that of
// earlier versions, because hashes of it are kept.
func (r *PodRequirements) Key() string {
	b := make([]byte, 0, 128)
	for _, name := range appendSorted(make([]string, 0, 8), r.Requests) {
		b = append(appendText(b, name), '=')
		b = append(strconv.AppendInt(b, r.Requests[name], 10), ',')
	}
	b = appendSelector(b, r.NodeSelector)
	for i := range r.Tolerations {
		t := &r.Tolerations[i]
		b = appendText(appendText(append(b, '~'), t.Key), string(t.Operator))
		b = appendText(appendText(b, t.Value), string(t.Effect))
	}
	if r.Pin != nil {
		b = r.Pin.append(append(b, '@'))
	}
	return string(b)
}

func appendSelector(b []byte, selector map[string]string) []byte {
	b = append(b, '/')
	for _, name := range appendSorted(make([]string, 0, 8), selector) {
		b = appendText(appendText(b, name), selector[name])
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
}

func appendSorted[V any, M ~map[string]V](names []string, of M) []string {
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Covers tells whether a pod with the other requirements fits wherever a pod with these does. It does not
// see that some tolerations imply others. Those of both are as TolerationsOf returns them. A pod without devices
// may not go to nodes with the taint of one. Of pods with different devices, it does not ask which taints nodes have.
func (r *PodRequirements) Covers(o *PodRequirements) bool {
	if r.Pin.Name() != o.Pin.Name() || !maps.Equal(r.NodeSelector, o.NodeSelector) || r.Requests.devices() && !o.Requests.devices() {
		return false
	}
	for name, want := range o.Requests {
		if want > r.Requests[name] {
			return false
		}
	}
	rest := o.Tolerations
	for _, t := range r.Tolerations {
		i := slices.Index(rest, t)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

func quantityText(milli int64) string {
	q := Quantity("", milli)
	return q.String()
}

// NodeResources returns the amounts that a node has for pods. Nodes of one kind differ by a few
// bytes of memory and storage. These amounts are rounded down by less than 1 %, so that the
// nodes fall into one class.
func NodeResources(allocatable corev1.ResourceList) Resources {
	r := ResourcesOf(allocatable)
	for name, n := range r {
		switch {
		case n == 0 && !slices.Contains(uncounted, name):
			delete(r, name)
		case bytes(name):
			each := int64(1)
			for n/1000/each >= 1<<8 {
				each *= 2
			}
			r[name] = n / 1000 / each * each * 1000
		}
	}
	return r
}

// Sum returns the resources that pod sets request in total, and their number of pods.
func Sum(podSets []PodSet) (Resources, int64) {
	total, pods := Resources{}, int64(0)
	for _, podSet := range podSets {
		total.Add(podSet.Requirements.Requests, podSet.Count)
		pods += podSet.Count
	}
	return total, pods
}
