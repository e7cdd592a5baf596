package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// NewPool returns a pool of nodes that run no pods yet. Nodes with the same resources and the same taints
// become one class.
func NewPool(name string, labels map[string]string, nodes []NodeClass) Pool {
	p := Pool{Name: name, Labels: labels, Total: Resources{}, Free: classesOf(nodes)}
	for _, n := range nodes {
		p.NodeCount += n.Count
		p.Total.Add(n.Free, n.Count)
	}
	return p
}

// Classes returns the node classes of a pool, those with the most free capacity first. Nodes
// with the same free capacity and the same taints are one class.
func (p *Pool) Classes() []NodeClass {
	free := classesOf(slices.DeleteFunc(slices.Clone(p.Free), func(n NodeClass) bool { return n.Count <= 0 }))
	named, ids := Resources{}, make(map[*NodeClass]string, len(free))
	order := make([]*NodeClass, len(free))
	for i := range free {
		order[i] = &free[i]
		ids[order[i]] = free[i].id()
		maps.Copy(named, free[i].Free)
	}
	slices.SortFunc(order, func(a, b *NodeClass) int { return -strings.Compare(ids[a], ids[b]) })
	sortedBy(order, func(n *NodeClass) Resources { return n.Free }, sortedNames(named))
	slices.Reverse(order)
	sorted := make([]NodeClass, len(order))
	for i, n := range order {
		sorted[i] = *n
	}
	return sorted
}

// id returns a text that classes of the same kind share, however many nodes they have.
func (n *NodeClass) id() string {
	return (&PodRequirements{Requests: n.Free}).Key() + taintsText(n.Taints)
}

// classesOf merges nodes with the same free capacity and the same taints into one class.
func classesOf(nodes []NodeClass) []NodeClass {
	var classes []NodeClass
	at := map[string]int{}
	for _, n := range nodes {
		id := n.id()
		i, known := at[id]
		if !known {
			at[id] = len(classes)
			classes = append(classes, n)
			continue
		}
		classes[i].Count += n.Count
	}
	return classes
}

// sortedBy sorts elements by their amounts of the named resources, the first name first. It
// looks up each amount once, since there may be thousands of node classes.
func sortedBy[T any](all []T, amountsOf func(T) Resources, names []string) []T {
	type ranked struct {
		element T
		amounts []int64
	}
	ranks, amounts := make([]ranked, len(all)), make([]int64, 0, len(all)*len(names))
	for i, e := range all {
		has := amountsOf(e)
		for _, name := range names {
			amounts = append(amounts, has[name])
		}
		ranks[i] = ranked{e, amounts[i*len(names):]}
	}
	slices.SortStableFunc(ranks, func(a, b ranked) int { return slices.Compare(a.amounts[:len(names)], b.amounts[:len(names)]) })
	for i := range ranks {
		all[i] = ranks[i].element
	}
	return all
}

// equalTo returns a function that tells whether other amounts equal r. It is used to compare r
// with many others.
func equalTo(r Resources) func(Resources) bool {
	names := slices.Collect(maps.Keys(r))
	amounts := make([]int64, len(names))
	for i, name := range names {
		amounts[i] = r[name]
	}
	return func(o Resources) bool {
		if len(o) != len(names) {
			return false
		}
		for i, name := range names {
			if n, has := o[name]; !has || n != amounts[i] {
				return false
			}
		}
		return true
	}
}

// A classRef refers to a node class of a pool by their indexes.
type classRef struct{ pool, nodes int }

// classesFor returns the node classes that can take the pod. Those with the most taints come first, so that
// the others stay free for pods that do not tolerate these. Among equals, those with the least free
// capacity come first, so that empty nodes stay empty for large pods.
func (f *Free) classesFor(pod *PodRequirements) []classRef {
	var all []classRef
	tainted := false
	for _, i := range f.poolsFor(pod) {
		for j := range f.Pools[i].Free {
			if n := &f.Pools[i].Free[j]; n.Count > 0 && n.podsPerNode(pod) > 0 {
				all = append(all, classRef{i, j})
				tainted = tainted || len(n.Taints) > 0
			}
		}
	}
	if len(all) < 2 {
		return all
	}
	all = f.leastFreeFirst(all)
	if tainted {
		slices.SortStableFunc(all, func(a, b classRef) int { return cmp.Compare(len(f.class(b).Taints), len(f.class(a).Taints)) })
	}
	return all
}

// leastFreeFirst sorts node classes by free capacity, the least first. Equal ones of a pool are in the order of
// their taints, since that of the nodes must not matter.
func (f *Free) leastFreeFirst(classes []classRef) []classRef {
	named, tainted := Resources{}, false
	for i, c := range classes {
		if i == 0 || classes[i-1].pool != c.pool {
			maps.Copy(named, f.Pools[c.pool].Total)
		}
		tainted = tainted || len(f.class(c).Taints) > 0
	}
	if tainted {
		slices.SortStableFunc(classes, func(a, b classRef) int {
			return cmp.Or(cmp.Compare(a.pool, b.pool), slices.CompareFunc(f.class(a).Taints, f.class(b).Taints, compareTaint))
		})
	}
	free := func(c classRef) Resources { return f.class(c).Free }
	return sortedBy(classes, free, sortedNames(named))
}
