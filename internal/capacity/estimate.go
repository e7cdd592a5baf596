package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// An Estimate is how many pods that take a whole node, a half, a quarter and an eighth of one still
// fit onto the nodes of a pool. Smaller nodes than that one count as the parts that they have room for. It
// seldom changes, so that many may read it.
type Estimate [4]int64

// eighths are the sizes that an Estimate counts, in eighths of a node.
var eighths = [4]int64{8, 4, 2, 1}

// Node returns what the node has of which an Estimate counts parts: the one with the most devices, or the commonest one of these. An
// average would be no node at all where one of many has fewer devices, and pods of a whole node would fit onto none. Of equally many nodes,
// the smaller ones count, so that all of them are whole. It is nil if the pool has no nodes.
func (p *Pool) Node() Resources {
	named, nodes := Resources{}, make([]NodeClass, 0, len(p.Nodes))
	for _, n := range p.Nodes {
		if n.Count > 0 {
			maps.Copy(named, n.Free)
			nodes = append(nodes, NodeClass{Count: n.Count, Free: n.Free})
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	names := sortedNames(named)
	devices := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !IsDevice(name) })
	return slices.MaxFunc(classesOf(nodes), func(a, b NodeClass) int {
		return cmp.Or(compareAmounts(a.Free, b.Free, devices), cmp.Compare(a.Count, b.Count), compareAmounts(b.Free, a.Free, names))
	}).Free
}

// compareAmounts compares the amounts of the named resources, the first name first.
func compareAmounts(a, b Resources, names []string) int {
	for _, name := range names {
		if c := cmp.Compare(a[name], b[name]); c != 0 {
			return c
		}
	}
	return 0
}

// Estimate estimates what is free in a pool.
func (p *Pool) Estimate() Estimate { return estimate(p.Node(), p.Free) }

// estimate counts how many pods of each size fit onto some nodes.
func estimate(node Resources, nodes []NodeClass) Estimate {
	e := Estimate{}
	for _, n := range nodes {
		part := eighths[0]
		for name, whole := range node {
			if whole > 0 {
				part = min(part, int64(float64(max(n.Free[name], 0))/float64(whole)*float64(eighths[0])))
			}
		}
		for i, size := range eighths {
			e[i] = Saturated(e[i], part/size, n.Count)
		}
	}
	return e
}

// Steady returns an estimate that follows the one before as long as that is about right: by a
// factor of less than three. What is used up becomes 0 at once. It stays 0 until two nodes are free,
// or half of the pool, so that the last node does not change it again and again. A pool that is
// empty is told so.
func (e Estimate) Steady(before, empty Estimate) Estimate {
	next := e
	for i, now := range e {
		was := before[i]
		about := was > 0 && now < 3*was && was < 3*now
		little := was == 0 && now < min(2*eighths[0]/eighths[i], max(1, empty[i]/2))
		if now < empty[i] && (about || little) {
			next[i] = was
		}
	}
	return next
}

// Empty returns the estimate of a pool on which nothing runs.
func (p *Pool) Empty() Estimate { return estimate(p.Node(), p.Nodes) }

// Nodes returns nodes with some taints onto which as many pods fit.
func (e Estimate) Nodes(node Resources, taints []corev1.Taint) []NodeClass {
	var all []NodeClass
	for i, size := range eighths {
		count := e[i]
		if i > 0 {
			count -= 2 * e[i-1]
		}
		if count <= 0 || node == nil {
			continue
		}
		free := Resources{}
		for name, n := range node {
			free[name] = n / eighths[0] * size
		}
		all = append(all, NodeClass{Count: count, Free: free, Taints: taints})
	}
	return all
}

// maxParts is how many sets of taints are told apart in estimates, so that these stay small.
const maxParts = 16

// ByTaints returns a pool for each set of taints that nodes of the pool have, with these nodes alone. Those of
// nodes with taints have a name that ends with the taints. If there are too many sets, those of the fewest nodes are left
// out. So are nodes that are about to go, or not well: their taints come and go, and each change would be read by everybody.
func (p *Pool) ByTaints() []Pool {
	var parts []Pool
	at := map[string]int{}
	partOf := func(taints []corev1.Taint) *Pool {
		name := p.Name
		if len(taints) > 0 {
			name += " " + taintsText(taints)
		}
		i, known := at[name]
		if !known {
			i, at[name] = len(parts), len(parts)
			parts = append(parts, Pool{Name: name, Labels: p.Labels})
		}
		return &parts[i]
	}
	for _, n := range lasting(p.Free) {
		part := partOf(n.Taints)
		part.NodeCount += n.Count
		part.Free = append(part.Free, n)
	}
	if len(parts) == 0 {
		empty := *p
		empty.Free = nil
		return []Pool{empty}
	}
	for _, n := range lasting(p.Nodes) {
		part := partOf(n.Taints)
		part.Nodes = append(part.Nodes, n)
	}
	slices.SortFunc(parts, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(b.NodeCount, a.NodeCount), strings.Compare(a.Name, b.Name))
	})
	parts = parts[:min(len(parts), maxParts)]
	slices.SortFunc(parts, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	return parts
}

// lasting returns the nodes without taints that come and go.
func lasting(nodes []NodeClass) []NodeClass {
	return slices.DeleteFunc(slices.Clone(nodes), func(n NodeClass) bool { return slices.ContainsFunc(n.Taints, passes) })
}

// passes tells whether a taint comes and goes: Kubernetes' own, that of the cluster autoscaler, whose value is a time, and that of
// Karpenter.
func passes(t corev1.Taint) bool {
	return strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Key == "ToBeDeletedByClusterAutoscaler" || t.Key == "karpenter.sh/disrupted"
}
