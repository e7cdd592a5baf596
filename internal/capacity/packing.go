package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A packing puts pods onto the nodes of a Free. It has the node classes as rows of numbers, in the order in which pods take them.
// Thousands of pod sets may look at thousands of classes, and looking up each amount by its name would take too long.
type packing struct {
	free  *Free
	parts parts
	// names of the resources, a column each. The rows are in the order of the first columns, which are those of Total.
	names   []string
	ordered int
	rows    []row
	// changed has the pools of which nodes were taken.
	changed map[int]bool
	// made is how many classes there were so far, and looks how many rows pods looked at.
	made, looks int
}

// A row is a number of nodes of a class.
type row struct {
	*class
	count int64
}

// A class is what nodes have in common. It is never changed, so packings share it.
type class struct {
	part    int
	amounts []int64
	// free has the amounts by names, if they are those of the Free.
	free Resources
	// made is its place among all classes. Those of estimates have no order but this one.
	made int
}

// absent is the amount of a resource that nodes do not name.
const absent = math.MinInt64

// A request is how much of a column a pod requests.
type request struct {
	column int
	amount int64
}

// pack returns a packing of what is free. Nothing of that is taken before unpack.
func (f *Free) pack() *packing {
	total := Resources{}
	for i := range f.Pools {
		maps.Copy(total, f.Pools[i].Total)
	}
	p := &packing{free: f, names: sortedNames(total), ordered: len(total), rows: make([]row, 0, f.ClassCount()), changed: map[int]bool{}}
	for i := range f.Pools {
		for _, n := range f.Pools[i].Free {
			if p.keeps(n.Count) {
				c := p.newClass(p.parts.index(i, n.Taints), p.amountsOf(n.Free))
				c.free = n.Free
				p.rows = append(p.rows, row{c, n.Count})
			}
		}
	}
	for _, r := range p.rows { // Classes before may lack columns.
		for len(r.amounts) < len(p.names) {
			r.amounts = append(r.amounts, absent)
		}
	}
	slices.SortFunc(p.rows, func(a, b row) int { return p.compareMade(a.class, b.class) })
	return p
}

// unpack takes from the Free what pods have taken.
func (p *packing) unpack() {
	f := p.free
	f.Pools = slices.Clone(f.Pools)
	for i := range p.changed {
		f.Pools[i].Free = make([]NodeClass, 0, len(f.Pools[i].Free)+1)
	}
	for _, r := range p.rows {
		part := &p.parts[r.part]
		if p.changed[part.pool] {
			free := &f.Pools[part.pool].Free
			*free = append(*free, NodeClass{Count: r.count, Free: p.resources(r.class), Taints: part.taints})
		}
	}
}

// clone returns a copy that can be changed independently.
func (p *packing) clone() *packing {
	c := *p
	c.rows, c.changed = slices.Clone(p.rows), maps.Clone(p.changed)
	return &c
}

func (p *packing) newClass(part int, amounts []int64) *class {
	p.made++
	return &class{part: part, amounts: amounts, made: p.made}
}

// amountsOf returns the amounts of nodes in the order of the columns. It adds columns for other names.
func (p *packing) amountsOf(free Resources) []int64 {
	amounts, found := make([]int64, 0, len(p.names)), 0
	for _, name := range p.names {
		n, has := free[name]
		if has {
			found++
		} else {
			n = absent
		}
		amounts = append(amounts, n)
	}
	if found < len(free) {
		for _, name := range sortedNames(free) {
			if !slices.Contains(p.names, name) {
				p.names, amounts = append(p.names, name), append(amounts, free[name])
			}
		}
	}
	return amounts
}

// resources returns the amounts of a class by their names.
func (p *packing) resources(c *class) Resources {
	if c.free != nil {
		return c.free
	}
	free := make(Resources, len(c.amounts))
	for i, n := range c.amounts {
		if n != absent {
			free[p.names[i]] = n
		}
	}
	return free
}

// compare compares classes by which of them pods take first. Those with the most taints come first, so that
// the others stay free for pods that do not tolerate these. Among equals, those with the least free
// capacity come first, so that empty nodes stay empty for large pods.
func (p *packing) compare(a, b *class) int {
	return cmp.Or(cmp.Compare(len(p.parts[b.part].taints), len(p.parts[a.part].taints)), p.compareFree(a, b))
}

// compareMade compares classes as compare does. No two are equal.
func (p *packing) compareMade(a, b *class) int {
	return cmp.Or(p.compare(a, b), cmp.Compare(a.made, b.made))
}

// compareFree compares classes by free capacity, the least first. Equal ones of a pool are in the order of
// their taints, since that of the nodes must not matter.
func (p *packing) compareFree(a, b *class) int {
	for i, n := range a.amounts[:p.ordered] {
		if c := cmp.Compare(amount(n), amount(b.amounts[i])); c != 0 {
			return c
		}
	}
	of, than := &p.parts[a.part], &p.parts[b.part]
	return cmp.Or(cmp.Compare(of.pool, than.pool), slices.CompareFunc(of.taints, than.taints, compareTaint))
}

func amount(n int64) int64 {
	if n == absent {
		return 0
	}
	return n
}

// requests returns what a pod takes of a node, or false if no node has some of it.
func (p *packing) requests(pod *PodRequirements) ([]request, bool) {
	all := make([]request, 0, len(pod.Requests)+1)
	for name, n := range pod.Requests {
		switch i := slices.Index(p.names, name); {
		case n <= 0:
		case i >= 0:
			all = append(all, request{i, n})
		case !slices.Contains(uncounted, name):
			return nil, false
		}
	}
	if i := slices.Index(p.names, string(corev1.ResourcePods)); i >= 0 {
		all = append(all, request{i, 1000})
	}
	return all, true
}

// admits tells of each part whether a pod may go to its nodes.
func (p *packing) admits(pod *PodRequirements) []bool {
	pools, admits := p.free.poolsFor(pod), make([]bool, len(p.parts))
	for i, part := range p.parts {
		_, barred := pod.barredBy(part.taints)
		admits[i] = !barred && slices.Contains(pools, part.pool)
	}
	return admits
}

// holds returns how many pods with some requests fit onto one node of the class.
func (p *packing) holds(c *class, requests []request) int64 {
	most := int64(1 << 31)
	for _, r := range requests {
		switch n := c.amounts[r.column]; {
		case n != absent:
			most = min(most, n/r.amount)
		case !slices.Contains(uncounted, p.names[r.column]):
			return 0
		}
	}
	return most
}

// A fit is a class of nodes that take some pods each.
type fit struct {
	row
	holds int64
}

// fits returns the first classes that take all pods of a pod set, or all that take some of them, and what each pod requests.
func (p *packing) fits(podSet PodSet) (all []fit, requests []request) {
	requests, some := p.requests(podSet.Requirements)
	if !some {
		return nil, nil
	}
	admits := p.admits(podSet.Requirements)
	for i, room := 0, int64(0); i < len(p.rows) && room < podSet.Count; i++ {
		p.looks++
		if r := p.rows[i]; r.count > 0 && admits[r.part] {
			if n := p.holds(r.class, requests); n > 0 {
				all = append(all, fit{r, n})
				room = Saturated(room, n, r.count)
			}
		}
	}
	return all, requests
}

// fill puts pods onto nodes, one pod set after the other. It returns the first pod set that
// does not fit, with the number of pods that are left over.
func (p *packing) fill(podSets []PodSet) *PodSet {
	for _, podSet := range podSets {
		if n := p.fillPodSet(podSet); n > 0 {
			return &PodSet{Requirements: podSet.Requirements, Count: n}
		}
	}
	return nil
}

// fillPodSet puts pods of a pod set onto nodes, and returns the number of those that do not fit.
func (p *packing) fillPodSet(podSet PodSet) int64 {
	left := podSet.Count
	all, requests := p.fits(podSet)
	for _, f := range all {
		full := min(left/f.holds, f.count)
		p.take(f.class, full, requests, f.holds)
		left -= full * f.holds
		if some := min(left, f.holds); full < f.count {
			p.take(f.class, min(some, 1), requests, some)
			left -= some
		}
	}
	return left
}

// take puts some pods onto each of some nodes of a class.
func (p *packing) take(c *class, nodes int64, requests []request, pods int64) {
	if nodes == 0 {
		return
	}
	amounts := slices.Clone(c.amounts)
	for _, r := range requests {
		if amounts[r.column] != absent {
			amounts[r.column] -= r.amount * pods
		}
	}
	p.reclassify(c, nodes, amounts)
}

// takeAll takes all that is free on some nodes of a class.
func (p *packing) takeAll(c *class, nodes int64) {
	amounts := slices.Clone(c.amounts)
	for i, n := range amounts {
		if n != absent {
			amounts[i] = 0
		}
	}
	p.reclassify(c, nodes, amounts)
}

// reclassify moves nodes of a class to the class of nodes of the same part with other amounts.
func (p *packing) reclassify(from *class, nodes int64, amounts []int64) {
	i := p.index(from)
	if p.rows[i].count -= nodes; !p.keeps(p.rows[i].count) {
		p.rows = slices.Delete(p.rows, i, i+1)
	}
	p.changed[p.parts[from.part].pool] = true
	to := p.newClass(from.part, amounts)
	for i, _ = slices.BinarySearchFunc(p.rows, to, func(r row, c *class) int { return p.compare(r.class, c) }); i < len(p.rows) && p.compare(p.rows[i].class, to) == 0; i++ {
		if slices.Equal(p.rows[i].amounts, amounts) {
			p.rows[i].count += nodes
			return
		}
	}
	p.rows = slices.Insert(p.rows, i, row{to, nodes})
}

// index returns the index of the row with a class.
func (p *packing) index(of *class) int {
	i, _ := slices.BinarySearchFunc(p.rows, of, func(r row, c *class) int { return p.compareMade(r.class, c) })
	return i
}

// keeps tells whether a class with some nodes has a row. An empty one has none, so that there are no more rows than nodes. Estimates
// are the exception: their classes have no order but their place.
func (p *packing) keeps(nodes int64) bool { return nodes > 0 || p.ordered == 0 }
