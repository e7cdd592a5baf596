package capacity

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// An Estimate is how many pods that take a whole node, a half, a quarter and an eighth of one still
// fit onto the nodes of a pool. It seldom changes, so that many may read it.
type Estimate [4]int64

// eighths are the sizes that an Estimate counts, in eighths of a node.
var eighths = [4]int64{8, 4, 2, 1}

// Node returns what an average node of a pool has for pods. It is nil if the pool has no nodes.
func (p *Pool) Node() Resources {
	if p.NodeCount <= 0 {
		return nil
	}
	node := Resources{}
	for name, n := range p.Total {
		node[name] = n / p.NodeCount
	}
	return node
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
func (p *Pool) Empty() Estimate {
	return estimate(p.Node(), []NodeClass{{Count: p.NodeCount, Free: p.Node()}})
}

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

// ByTaints returns a pool for each set of taints that nodes of the pool have, with these nodes alone. Their
// average node is that of the pool. Those of nodes with taints have a name that ends with the taints. If
// there are too many sets, those of the fewest nodes are left out. So are nodes that are about to go, or not well: their taints
// come and go, and each change would be read by everybody.
func (p *Pool) ByTaints() []Pool {
	lasting := slices.DeleteFunc(slices.Clone(p.Free), func(n NodeClass) bool { return slices.ContainsFunc(n.Taints, passes) })
	if len(lasting) == 0 {
		empty := *p
		empty.Free = nil
		return []Pool{empty}
	}
	var parts []Pool
	at := map[string]int{}
	for _, n := range lasting {
		name := p.Name
		if len(n.Taints) > 0 {
			name += " " + taintsText(n.Taints)
		}
		i, known := at[name]
		if !known {
			i, at[name] = len(parts), len(parts)
			parts = append(parts, Pool{Name: name, Labels: p.Labels, Total: Resources{}})
		}
		parts[i].NodeCount += n.Count
		parts[i].Total.Add(p.Node(), n.Count)
		parts[i].Free = append(parts[i].Free, n)
	}
	slices.SortFunc(parts, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(b.NodeCount, a.NodeCount), strings.Compare(a.Name, b.Name))
	})
	parts = parts[:min(len(parts), maxParts)]
	slices.SortFunc(parts, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	return parts
}

// passes tells whether a taint comes and goes: Kubernetes' own, that of the cluster autoscaler, whose value is a time, and that of
// Karpenter.
func passes(t corev1.Taint) bool {
	return strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Key == "ToBeDeletedByClusterAutoscaler" || t.Key == "karpenter.sh/disrupted"
}
