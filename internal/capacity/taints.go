package capacity

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
)

// TaintsOf returns those of a node's taints that keep pods from it, sorted, each once.
func TaintsOf(taints []corev1.Taint) []corev1.Taint {
	var all []corev1.Taint
	for _, t := range taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			all = append(all, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	slices.SortFunc(all, compareTaint)
	return slices.Compact(all)
}

func compareTaint(a, b corev1.Taint) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Value, b.Value), strings.Compare(string(a.Effect), string(b.Effect)))
}

// TolerationsOf returns those of a pod's tolerations that matter for where it may go, sorted, each once.
// How long it stays after a taint was added says nothing about that. What tolerates no taint is left out: an operator that is not
// known, and a comparison with what is no number.
func TolerationsOf(tolerations []corev1.Toleration) []corev1.Toleration {
	var all []corev1.Toleration
	for _, t := range tolerations {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && tolerates(t) {
			all = append(all, corev1.Toleration{Key: t.Key, Operator: cmp.Or(t.Operator, corev1.TolerationOpEqual), Value: t.Value, Effect: t.Effect})
		}
	}
	slices.SortFunc(all, func(a, b corev1.Toleration) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(string(a.Operator), string(b.Operator)), strings.Compare(a.Value, b.Value), strings.Compare(string(a.Effect), string(b.Effect)))
	})
	return slices.Compact(all)
}

// tolerates tells whether a toleration may tolerate some taint.
func tolerates(t corev1.Toleration) bool {
	switch t.Operator {
	case "", corev1.TolerationOpEqual, corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpLt, corev1.TolerationOpGt:
		_, err := strconv.ParseInt(t.Value, 10, 64)
		return err == nil
	}
	return false
}

// barredBy returns the first of a node's taints that the pod does not tolerate, if there is one.
func (r *PodRequirements) barredBy(taints []corev1.Taint) (corev1.Taint, bool) {
	if len(taints) == 0 {
		return corev1.Taint{}, false
	}
	bars := func(t *corev1.Taint) bool { return !r.mayPass(t) }
	return scheduling.FindMatchingUntoleratedTaint(logr.Discard(), taints, r.Tolerations, bars, true)
}

// mayPass tells whether a taint with the name of a device does not keep the pod away, although no toleration says so. Many clusters have
// pods that request the device tolerate it: the admission plugin ExtendedResourceToleration of Kubernetes does so for NoSchedule alone.
// A pod that requests nothing is the Job of a ModelCache, which may also run on nodes that no pool lists.
func (r *PodRequirements) mayPass(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule && IsDevice(t.Key) && (len(r.Requests) == 0 || r.Requests[t.Key] > 0)
}

// admits tells whether the pod tolerates all taints of the nodes of a class.
func (n *NodeClass) admits(pod *PodRequirements) bool {
	_, barred := pod.barredBy(n.Taints)
	return !barred
}

// A part of a pool is its nodes with the same taints. There are few parts, while there may be thousands of node classes.
type part struct {
	pool   int
	taints []corev1.Taint
}

type parts []part

// parts returns the parts of all pools.
func (f *Free) parts() parts {
	var all parts
	for i := range f.Pools {
		for _, n := range f.Pools[i].Free {
			if n.Count > 0 {
				all.index(i, n.Taints)
			}
		}
	}
	return all
}

// index returns the index of a part, which it adds if need be. The pool is that of the last part, or one after it.
func (all *parts) index(pool int, taints []corev1.Taint) int {
	for i := len(*all) - 1; i >= 0 && (*all)[i].pool == pool; i-- {
		if slices.Equal((*all)[i].taints, taints) {
			return i
		}
	}
	*all = append(*all, part{pool, taints})
	return len(*all) - 1
}

// barred returns which taints keep a pod from nodes of some pools, and whether they keep it from all nodes
// of these. Pods with the same ones may go to the same nodes: all those that have none of them.
func (all parts) barred(pod *PodRequirements, pools []int) (by []string, everywhere bool) {
	open := false
	for _, part := range all {
		if _, may := slices.BinarySearch(pools, part.pool); may {
			taint, is := pod.barredBy(part.taints)
			open = open || !is
			if is {
				by = append(by, taint.ToString())
			}
		}
	}
	slices.Sort(by)
	return slices.Compact(by), len(by) > 0 && !open
}

// taintsText returns a text that is the same for equal taints only.
func taintsText(taints []corev1.Taint) string {
	all := make([]string, len(taints))
	for i := range taints {
		all[i] = taints[i].ToString()
	}
	return strings.Join(all, ",")
}
