package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A Free is the free capacity of a cluster, pool by pool.
type Free struct {
	Pools []Pool

	// Budget is how many node classes all calls of Allocate together may look at. Clones share
	// it. Nil gives each search a budget of its own. Allocate still tries the fast ways when the
	// budget is used up: callers that want to stop then have to check it.
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
}

// A NodeClass is a number of nodes with the same free capacity.
type NodeClass struct {
	Count int64
	Free  Resources
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
	podSets = slices.DeleteFunc(slices.Clone(podSets), func(podSet PodSet) bool { return podSet.Count <= 0 })
	sortBySize(podSets)
	f.spend(f.classCount())
	if missing := f.insufficient(podSets); missing != "" {
		return false, missing
	}
	trial := f.Clone()
	if short := trial.fill(podSets); short == nil {
		*f = trial
		return true, ""
	}
	trial = f.Clone()
	if trial.searchWithinBudget(podSets) {
		*f = trial
		return true, ""
	}
	trial = f.Clone()
	return false, f.fragmentation(trial.fill(podSets), podSets)
}

// sortBySize sorts pod sets by the size of their pods, the largest first. It computes each key
// once, since there may be thousands of pod sets.
func sortBySize(podSets []PodSet) {
	ids := make(map[*PodRequirements]string, len(podSets))
	for _, podSet := range podSets {
		if _, known := ids[podSet.Requirements]; !known {
			ids[podSet.Requirements] = podSet.Requirements.Key()
		}
	}
	slices.SortStableFunc(podSets, func(a, b PodSet) int {
		if ids[a.Requirements] == ids[b.Requirements] {
			return 0
		}
		return cmp.Or(-compareSize(a.Requirements, b.Requirements), strings.Compare(ids[a.Requirements], ids[b.Requirements]))
	})
}

// ForceAllocate takes capacity for as many of the pods as fit, and reports whether these were
// all. It is for pods that count whether they fit or not.
func (f *Free) ForceAllocate(podSets []PodSet) bool {
	if ok, _ := f.Allocate(podSets); ok {
		return true
	}
	all := true
	for _, podSet := range podSets {
		if podSet.Count > 0 && f.fillPodSet(podSet) > 0 {
			all = false
		}
	}
	return all
}

// compareSize compares two pods by the devices that they request, and then by the other
// resources.
func compareSize(a, b *PodRequirements) int {
	all := maps.Clone(a.Requests)
	if all == nil {
		all = Resources{}
	}
	maps.Copy(all, b.Requests)
	return compareBy(sortedNames(all), a.Requests, b.Requests)
}

// compareBy compares amounts, the first name first.
func compareBy(names []string, a, b Resources) int {
	for _, name := range names {
		if c := cmp.Compare(a[name], b[name]); c != 0 {
			return c
		}
	}
	return 0
}

// matches tells whether the node selector of the pod selects the pool.
func (p *Pool) matches(pod *PodRequirements) bool {
	for k, v := range pod.NodeSelector {
		if have, ok := p.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// podsPerNode returns how many such pods fit onto one node of the class.
func (n *NodeClass) podsPerNode(pod *PodRequirements) int64 {
	const many = 1 << 31
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

// reclassify moves nodes of a class to the class of nodes with this free capacity. A class
// without nodes stays in the pool, so that every classRef remains valid.
func (f *Free) reclassify(c classRef, count int64, free Resources) {
	p := &f.Pools[c.pool]
	p.Free[c.nodes].Count -= count
	equal := equalTo(free)
	for i := range p.Free {
		if i != c.nodes && equal(p.Free[i].Free) {
			p.Free[i].Count += count
			return
		}
	}
	p.Free = append(p.Free, NodeClass{Count: count, Free: free})
}
