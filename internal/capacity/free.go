package capacity

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

// A Free is the free capacity of a cluster, pool by pool.
type Free struct {
	Pools []Pool

	// Budget is how many node classes all searches together may look at. Clones share it. Nil
	// gives each search a budget of its own. Without a budget, Allocate only fills nodes.
	Budget *int
}

// A Pool is a set of nodes with the same labels.
type Pool struct {
	// Name of the pool.
	Name string
	// Labels of its nodes, as far as pods select nodes by them.
	Labels map[string]string
	// NodeCount is the number of all nodes.
	NodeCount int64
	// Total is the sum of what the nodes have for pods.
	Total Resources
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
	trial := f.Clone()
	short := trial.fill(podSets)
	if short == nil {
		*f = trial
		return true, ""
	}
	message := trial.fragmentation(short)
	trial = f.Clone()
	if trial.searchWithinBudget(podSets) {
		*f = trial
		return true, ""
	}
	return false, message
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
	all = sortedBy(all, func(e entry) Resources { return e.Requirements.Requests }, sortedNames(named))
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
	for _, podSet := range Merged(podSets) {
		if n := f.fillPodSet(podSet); n > 0 {
			left = append(left, PodSet{Requirements: podSet.Requirements, Count: n})
		}
	}
	return left
}

// Close takes all that is free on as many nodes as some pods need that do not fit now. They are
// those that have the most free, since these are empty first. The number of nodes is counted as if
// they were empty.
func (f *Free) Close(podSet PodSet, empty *Free) {
	each := int64(1)
	for _, c := range empty.classesFor(podSet.Requirements) {
		each = max(each, empty.class(c).podsPerNode(podSet.Requirements))
	}
	nodes := (podSet.Count-1)/each + 1
	var all []classRef
	for _, i := range f.poolsFor(podSet.Requirements) {
		for j := range f.Pools[i].Free {
			if f.Pools[i].Free[j].admits(podSet.Requirements) {
				all = append(all, classRef{i, j})
			}
		}
	}
	for _, c := range slices.Backward(f.leastFreeFirst(all)) {
		n := min(nodes, f.class(c).Count)
		if n <= 0 {
			continue
		}
		f.reclassify(c, n, f.class(c).nothing())
		nodes -= n
	}
}

// podsPerNode returns how many such pods fit onto one node of the class.
func (n *NodeClass) podsPerNode(pod *PodRequirements) int64 {
	const many = 1 << 31
	if !n.admits(pod) {
		return 0
	}
	most := int64(many)
	for name, want := range pod.Requests {
		if want > 0 && Limits(n.Free, name) {
			most = min(most, n.Free[name]/want)
		}
	}
	if pods, ok := n.Free["pods"]; ok {
		most = min(most, pods/1000)
	}
	return most
}

// remaining returns what is free on a node of the class after it takes some more such pods.
func (n *NodeClass) remaining(pod *PodRequirements, pods int64) Resources {
	free := maps.Clone(n.Free)
	for name, want := range pod.Requests {
		if _, ok := free[name]; ok {
			free[name] -= want * pods
		}
	}
	if _, ok := free["pods"]; ok {
		free["pods"] -= 1000 * pods
	}
	return free
}

// nothing returns what is free on a node of the class after all of it is taken.
func (n *NodeClass) nothing() Resources {
	none := make(Resources, len(n.Free))
	for name := range n.Free {
		none[name] = 0
	}
	return none
}

// fill puts pods onto nodes, one pod set after the other. It returns the first pod set that
// does not fit, with the number of pods that are left over.
func (f *Free) fill(podSets []PodSet) *PodSet {
	for _, podSet := range podSets {
		if n := f.fillPodSet(podSet); n > 0 {
			return &PodSet{Requirements: podSet.Requirements, Count: n}
		}
	}
	return nil
}

// class returns the class that a reference refers to.
func (f *Free) class(c classRef) *NodeClass { return &f.Pools[c.pool].Free[c.nodes] }

// fillPodSet puts pods of a pod set onto nodes, and returns the number of those that do not fit.
func (f *Free) fillPodSet(podSet PodSet) int64 {
	left := podSet.Count
	for _, c := range f.classesFor(podSet.Requirements) {
		if left == 0 {
			break
		}
		n := f.class(c)
		holds := n.podsPerNode(podSet.Requirements)
		if full := min(left/holds, n.Count); full > 0 {
			f.reclassify(c, full, n.remaining(podSet.Requirements, holds))
			left -= full * holds
		}
		if n = f.class(c); left > 0 && n.Count > 0 {
			some := min(left, holds)
			f.reclassify(c, 1, n.remaining(podSet.Requirements, some))
			left -= some
		}
	}
	return left
}

// reclassify moves nodes of a class to the class of nodes with this free capacity and the same taints. A
// class without nodes stays in the pool, so that every classRef remains valid.
func (f *Free) reclassify(c classRef, count int64, free Resources) {
	p := &f.Pools[c.pool]
	p.Free[c.nodes].Count -= count
	taints := p.Free[c.nodes].Taints
	equal := equalTo(free)
	for i := range p.Free {
		if i != c.nodes && equal(p.Free[i].Free) && slices.Equal(p.Free[i].Taints, taints) {
			p.Free[i].Count += count
			return
		}
	}
	p.Free = append(p.Free, NodeClass{Count: count, Free: free, Taints: taints})
}
