package capacity

import (
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// A Pin ties pods to one pool: they have the labels of its nodes as their node selector.
type Pin struct {
	Pool string `json:"pool"`
	// NodeSelector has the labels of the pool's nodes, as the pods have them. The pool may have
	// other labels since.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// Limits of the text of a pin. No valid pool exceeds them.
const (
	maxPinName   = 63
	maxPinLabels = 16
	maxPinText   = maxPinLabels * (253 + 1 + 63 + 1 + 63 + 1)
)

// Admits tells whether pods with a node selector of their own can be pinned: the pool has all of
// its labels.
func (p *Pin) Admits(nodeSelector map[string]string) bool {
	return selects(nodeSelector, p.NodeSelector)
}

// Text returns the node selector as one text, from which ParsePin reads it.
func (p *Pin) Text() string { return labels.FormatLabels(p.NodeSelector) }

// NewPin returns the pin to a pool, or nil if pods cannot have the labels of its nodes.
func NewPin(pool string, nodeSelector map[string]string) *Pin {
	pin := &Pin{Pool: pool, NodeSelector: nodeSelector}
	if read := ParsePin(pool, pin.Text()); read == nil || !maps.Equal(read.NodeSelector, nodeSelector) {
		return nil
	}
	return pin
}

// ParsePin returns the pin with a text, or nil if that is not the text of any.
func ParsePin(pool, text string) *Pin {
	if pool == "" || len(pool) > maxPinName || text == "" || len(text) > maxPinText {
		return nil
	}
	set, err := labels.ConvertSelectorToLabelsMap(text)
	if err != nil || len(set) == 0 || len(set) > maxPinLabels {
		return nil
	}
	return &Pin{Pool: pool, NodeSelector: set}
}

// Name returns the name of the pool, or nothing for nil.
func (p *Pin) Name() string {
	if p == nil {
		return ""
	}
	return p.Pool
}

// Key returns a text that equal pins share.
func (p *Pin) Key() string { return string(p.append(make([]byte, 0, 128))) }

func (p *Pin) append(b []byte) []byte { return appendSelector(appendText(b, p.Pool), p.NodeSelector) }

// selects tells whether nodes with some labels have all labels of a selector.
func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// poolsFor returns the indexes of the pools that the pod may go to by their labels, whatever taints their
// nodes have. A pinned pod goes to the pool of that name. If there is none any more, because it was renamed
// or split, the pod goes to the pools with the labels that it has, as its scheduler does.
func (f *Free) poolsFor(pod *PodRequirements) []int {
	var pools []int
	if pin := pod.Pin; pin != nil {
		for i := range f.Pools {
			if f.Pools[i].Name == pin.Pool {
				if selects(pod.NodeSelector, f.Pools[i].Labels) {
					pools = append(pools, i)
				}
				return pools
			}
		}
	}
	for i := range f.Pools {
		if selects(pod.NodeSelector, f.Pools[i].Labels) && (pod.Pin == nil || selects(pod.Pin.NodeSelector, f.Pools[i].Labels)) {
			pools = append(pools, i)
		}
	}
	return pools
}

// PinnedTo returns the name of the pool to which a pod is pinned, or nothing if there is not one such
// pool.
func (f *Free) PinnedTo(pod *PodRequirements) string {
	pools := f.poolsFor(pod)
	if pod.Pin == nil || len(pools) != 1 {
		return ""
	}
	return f.Pools[pools[0]].Name
}

// ClosePools takes all that is free in some pools.
func (f *Free) ClosePools(names []string) {
	for i := range f.Pools {
		if p := &f.Pools[i]; slices.Contains(names, p.Name) {
			for j := range p.Free {
				none := make(Resources, len(p.Free[j].Free))
				for name := range p.Free[j].Free {
					none[name] = 0
				}
				p.Free[j].Free = none
			}
		}
	}
}

// Confined returns a function that tells whether a pod can go nowhere but to some pools, by the labels of all pools and the taints of
// the others. One whose labels none of these has is not confined.
func (f *Free) Confined(pools []string) func(*PodRequirements) bool {
	parts := f.parts()
	return func(pod *PodRequirements) bool {
		some := false
		for _, i := range f.poolsFor(pod) {
			if slices.Contains(pools, f.Pools[i].Name) {
				some = true
			} else if _, barred := parts.barred(pod, []int{i}); !barred {
				return false
			}
		}
		return some
	}
}

// InPool is a number of replicas in one pool.
type InPool struct {
	// Pin of the pods. Nil if the nodes of the pool have no labels, so that nothing can be pinned
	// to it.
	Pin      *Pin
	Replicas int64
}

// AllocateInPools puts replicas with equal pods onto nodes, all pods of a replica in one pool. It
// returns in which pools they are. Those that fit into no single pool are left out. The pools on
// which the largest pods fit best come first. It fills nodes, and never searches.
func (f *Free) AllocateInPools(podSets []PodSet, replicas int64) []InPool {
	var all []InPool
	for _, i := range f.bestFirst(Merged(podSets)) {
		one := Free{Pools: []Pool{f.Pools[i]}, Budget: new(int)}
		n := one.allocateMost(podSets, replicas)
		if n == 0 {
			continue
		}
		f.Pools[i] = one.Pools[0]
		in := InPool{Replicas: n}
		if len(one.Pools[0].Labels) > 0 {
			in.Pin = &Pin{Pool: one.Pools[0].Name, NodeSelector: one.Pools[0].Labels}
		}
		all = append(all, in)
		if replicas -= n; replicas == 0 {
			break
		}
	}
	return all
}

// bestFirst returns the pools in which all of the pods may be, in the order in which the first of
// them are put onto nodes.
func (f *Free) bestFirst(podSets []PodSet) []int {
	may := map[int]int{}
	for _, podSet := range podSets {
		for _, i := range f.poolsFor(podSet.Requirements) {
			may[i]++
		}
	}
	var pools []int
	for i, n := range may {
		if n == len(podSets) {
			pools = append(pools, i)
		}
	}
	if len(pools) < 2 {
		return pools
	}
	pools = nil
	p := f.pack()
	for _, n := range p.fits(PodSet{Requirements: podSets[0].Requirements, Count: math.MaxInt64}) {
		if pool := p.partOf(n.class).pool; may[pool] == len(podSets) {
			may[pool] = 0
			pools = append(pools, pool)
		}
	}
	return pools
}

// allocateMost allocates as many replicas as fit, and returns how many these are.
func (f *Free) allocateMost(podSets []PodSet, replicas int64) int64 {
	done := int64(0)
	for n := replicas; n > 0; n = min(n, replicas-done) {
		more := make([]PodSet, len(podSets))
		for i, podSet := range podSets {
			more[i] = PodSet{Requirements: podSet.Requirements, Count: Saturated(0, podSet.Count, n)}
		}
		if ok, _ := f.Allocate(more); ok {
			done += n
		} else {
			n /= 2
		}
	}
	return done
}
