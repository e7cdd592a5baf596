package capacity

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

// A Free is the free capacity of a cluster, pool by pool.
type Free struct {
	Pools []Pool

	// Budget is how many node classes all searches together may look at. Clones share it. Nil
	// gives each search a budget of its own. With a budget of 0, Allocate only fills nodes.
	Budget *int
}

// A Pool is a set of nodes with the same labels.
type Pool struct {
	Name string
	// Labels of its nodes, as far as pods select nodes by them.
	Labels map[string]string
	// NodeCount is the number of all nodes.
	NodeCount int64
	// Total is the sum of what the nodes have for pods.
	Total Resources
	// Nodes has the nodes by what they have for pods. It is not known of an estimate.
	Nodes []NodeClass
	// Free has the nodes by their free capacity.
	Free []NodeClass
	// Estimated tells that Free is an estimate, and that Total is not known.
	Estimated bool
}

// A NodeClass is a number of nodes with the same free capacity and the same taints.
type NodeClass struct {
	Count int64
	Free  Resources
	// Taints that keep pods from the nodes, as TaintsOf returns them.
	Taints []corev1.Taint
}

// A PodSet is a number of pods with the same requirements.
type PodSet struct {
	Requirements *PodRequirements
	Count        int64
}

// Clone returns a copy that can be changed independently.
func (f *Free) Clone() Free {
	c := Free{Pools: slices.Clone(f.Pools), Budget: f.Budget}
	for i := range c.Pools {
		// The Resources of a class are never changed in place, only replaced, so they can be
		// shared.
		c.Pools[i].Free = slices.Clone(c.Pools[i].Free)
	}
	return c
}

// Allocate puts pods onto nodes, and reports whether all of them fit. If they do not, it takes
// nothing and returns what is missing.
//
// It first fills nodes that are already partly used, the largest pods first. If that fails, it
// searches for another way. A search that exceeds its budget counts as "does not fit". So
// capacity may stay unused, but it is never used twice.
func (f *Free) Allocate(podSets []PodSet) (bool, string) {
	podSets = Merged(podSets)
	if missing := f.Short(podSets, nil); missing != "" {
		return false, missing
	}
	p := f.pack()
	filled := p.clone()
	short := filled.fill(podSets)
	if short == nil {
		filled.unpack()
		return true, ""
	}
	if p.searchWithinBudget(podSets) {
		p.unpack()
		return true, ""
	}
	return false, fragmentation(short)
}

// Merged merges pod sets with equal requirements, and sorts them by the size of their pods, the
// largest first: by the devices that they request, and then by the other resources. Pinned pods
// come before all others.
func Merged(podSets []PodSet) []PodSet {
	type entry struct {
		PodSet

		key string
	}
	named, at, keys := Resources{}, map[string]int{}, make(map[*PodRequirements]string, len(podSets))
	var all []entry
	for _, podSet := range podSets {
		if podSet.Count <= 0 {
			continue
		}
		key, known := keys[podSet.Requirements]
		if !known {
			key = podSet.Requirements.Key()
			keys[podSet.Requirements] = key
		}
		i, seen := at[key]
		if !seen {
			at[key] = len(all)
			all = append(all, entry{podSet, key})
			maps.Copy(named, podSet.Requirements.Requests)
			continue
		}
		all[i].Count = Saturated(all[i].Count, podSet.Count, 1)
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(b.key, a.key) })
	sortedBy(all, func(e entry) Resources { return e.Requirements.Requests }, sortedNames(named))
	list := make([]PodSet, len(all))
	for i, e := range all {
		list[len(all)-1-i] = e.PodSet
	}
	// Others would take the nodes of a pool to which pods are pinned, and could be elsewhere.
	slices.SortStableFunc(list, func(a, b PodSet) int { return sorting.First(a.Requirements.Pin != nil, b.Requirements.Pin != nil) })
	return list
}

// ForceAllocate takes room for as many of the pods as fit, and returns those that do not. It is
// for pods that count whether they fit or not.
func (f *Free) ForceAllocate(podSets []PodSet) []PodSet {
	if ok, _ := f.Allocate(podSets); ok {
		return nil
	}
	var left []PodSet
	p := f.pack()
	for _, podSet := range Merged(podSets) {
		if n := p.fillPodSet(podSet); n > 0 {
			left = append(left, PodSet{Requirements: podSet.Requirements, Count: n})
		}
	}
	p.unpack()
	return left
}

// Close takes all that is free on as many nodes as some pods need that do not fit now. They are
// those that have the most free, since these are empty first. The number of nodes is counted as if
// they were empty.
func (f *Free) Close(podSet PodSet, empty *Free) {
	each := int64(1)
	for _, n := range empty.pack().fits(PodSet{Requirements: podSet.Requirements, Count: math.MaxInt64}) {
		each = max(each, n.holds)
	}
	nodes := (podSet.Count-1)/each + 1
	p := f.pack()
	admits := p.admits(podSet.Requirements)
	rows := slices.DeleteFunc(slices.Clone(p.rows), func(r row) bool { return !admits[p.kinds[r.kind].part] })
	slices.SortStableFunc(rows, func(a, b row) int { return p.compareFree(a.class, b.class) })
	for _, r := range slices.Backward(rows) {
		if n := min(nodes, p.rows[p.index(r.class)].count); n > 0 {
			p.reclassify(r.class, n, make([]int64, len(r.amounts)))
			nodes -= n
		}
	}
	p.unpack()
}
