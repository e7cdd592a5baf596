/*
Package fleet decides what fits where: which cluster grants room to whom, and which
clusters a service goes to. It knows clusters by what is left on their nodes, and
services by what their replicas request.

Everything here is pure: no client, no clock, and the same input gives the same
decision, in whatever order it comes.
*/
package fleet

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources are amounts by the name of the resource, in thousandths. What is beyond
// int64 counts as its end, which no node has.
type Resources map[string]int64

// Amounts reads a list of resources.
func Amounts(list corev1.ResourceList) Resources {
	r := make(Resources, len(list))
	for name, q := range list {
		r[string(name)] = milli(q)
	}
	return r
}

// milli is the amount in thousandths.
func milli(q resource.Quantity) int64 {
	if q.CmpInt64(math.MaxInt64/1000) > 0 {
		return math.MaxInt64
	}
	return max(q.MilliValue(), 0)
}

// List writes resources as Kubernetes does, without those that are zero where zeros
// is false.
func (r Resources) List(zeros bool) corev1.ResourceList {
	list := make(corev1.ResourceList, len(r))
	for name, n := range r {
		if n != 0 || zeros {
			list[corev1.ResourceName(name)] = quantity(name, n)
		}
	}
	return list
}

func quantity(name string, milli int64) resource.Quantity {
	format := resource.DecimalSI
	if bytes(name) {
		format = resource.BinarySI
	}
	if milli%1000 == 0 {
		return *resource.NewQuantity(milli/1000, format)
	}
	return *resource.NewMilliQuantity(milli, format)
}

// bytes tells the resources that are measured in bytes.
func bytes(name string) bool {
	return name == string(corev1.ResourceMemory) || name == string(corev1.ResourceEphemeralStorage)
}

// add adds n times the other amounts.
func (r Resources) add(o Resources, n int64) {
	for name, each := range o {
		r[name] = saturated(r[name], each, n)
	}
}

func saturated(sum, each, n int64) int64 {
	if each != 0 && n > math.MaxInt64/each {
		return math.MaxInt64
	}
	if total := each * n; sum <= math.MaxInt64-total {
		return sum + total
	}
	return math.MaxInt64
}

// uncounted are resources that a pool may leave out: it then has enough of them. A
// device that it leaves out it does not have.
var uncounted = []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory), string(corev1.ResourceEphemeralStorage), string(corev1.ResourcePods)}

// counted tells whether a node with these resources has to have a resource.
func counted(node Resources, name string) bool {
	_, named := node[name]
	return named || !slices.Contains(uncounted, name)
}

// device tells the resources of a vendor, of which there are few on a node.
func device(name string) bool { return strings.Contains(name, "/") }

// sortedNames are the names of resources, devices first: what is short of a device is
// of most interest.
func sortedNames(r Resources) []string {
	names := slices.Collect(maps.Keys(r))
	slices.SortFunc(names, func(a, b string) int {
		if device(a) != device(b) {
			if device(a) {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return names
}

// A Shape is what a pod asks of a node.
type Shape struct {
	// Requests of the pod.
	Requests Resources `json:"requests,omitempty"`
	// NodeSelector of the pod.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// id tells shapes apart.
func (s *Shape) id() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Requests)) {
		b.WriteString(name + "=" + quantityText(s.Requests[name]) + ",")
	}
	b.WriteByte('/')
	for _, name := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		b.WriteString(name + "=" + s.NodeSelector[name] + ",")
	}
	return b.String()
}

// covers tells whether a pod of another shape fits wherever one of this shape does.
func (s *Shape) covers(o *Shape) bool {
	for name, want := range o.Requests {
		if want > s.Requests[name] {
			return false
		}
	}
	return maps.Equal(s.NodeSelector, o.NodeSelector)
}

func quantityText(milli int64) string {
	q := quantity("", milli)
	return q.String()
}

// OfNode are the amounts that a node has for pods. What is measured in bytes, and
// differs a little from one node to the next of the same kind, is rounded down by less
// than a hundredth, so that nodes of a kind are alike.
func OfNode(allocatable corev1.ResourceList) Resources {
	r := Amounts(allocatable)
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
