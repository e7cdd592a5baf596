package capacity

import (
	"maps"
	"slices"
	"strings"
)

// NewPool returns a pool of nodes that run no pods yet. Nodes with the same resources and the same taints
// become one class.
func NewPool(name string, labels map[string]string, nodes []NodeClass) Pool {
	p := Pool{Name: name, Labels: labels, Total: Resources{}, Nodes: classesOf(nodes), Free: classesOf(nodes)}
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
func sortedBy[T any](all []T, amountsOf func(T) Resources, names []string) {
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
}
