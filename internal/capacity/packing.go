package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A packing puts pods onto the nodes of a Free. It has the node classes as rows of numbers, in the order in which pods take them.
// Thousands of pod sets may look at thousands of classes, and looking up each amount by its name would take too long.
type packing struct {
	free  *Free
	parts parts
	kinds []kind
	// kindAt has the index of each kind by its text.
	kindAt map[string]int
	// names of all resources, a column each, and the columns by the names. The rows are in the order of the first columns, which are
	// those of Total.
	names   []string
	columns map[string]int
	ordered int
	rows    []row
	// changed has the pools of which nodes were taken.
	changed map[int]bool
	// made is how many classes there were so far, and looks how many rows pods looked at.
	made, looks int
}

// A kind is the nodes of a part that name the same resources.
type kind struct {
	part int
	// columns of these resources, the first ones first.
	columns []int
}

// A row is a number of nodes of a class.
type row struct {
	*class
	count int64
}

// A class is what nodes have in common. It is never changed, so packings share it.
type class struct {
	kind int
	// amounts that are free, in the order of the columns of the kind.
	amounts []int64
	// free has the amounts by names, if they are those of the Free.
	free Resources
	// made is its place among all classes. Those of estimates have no order but this one.
	made int
}

// A request is how much a pod requests of an amount of a class.
type request struct {
	index  int
	amount int64
}

// pack returns a packing of what is free. Nothing of that is taken before unpack.
func (f *Free) pack() *packing {
	total := Resources{}
	for i := range f.Pools {
		maps.Copy(total, f.Pools[i].Total)
	}
	p := &packing{free: f, kindAt: map[string]int{}, names: sortedNames(total), columns: make(map[string]int, len(total)), ordered: len(total), rows: make([]row, 0, f.ClassCount()), changed: map[int]bool{}}
	for i, name := range p.names {
		p.columns[name] = i
	}
	for i := range f.Pools {
		for _, n := range f.Pools[i].Free {
			if p.keeps(n.Count) {
				p.rows = append(p.rows, row{p.classOf(p.parts.index(i, n.Taints), n.Free), n.Count})
			}
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
		part := p.partOf(r.class)
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

func (p *packing) newClass(kind int, amounts []int64) *class {
	p.made++
	return &class{kind: kind, amounts: amounts, made: p.made}
}

// classOf returns a class of a part with some free capacity. Most are of the kind of the one before.
func (p *packing) classOf(part int, free Resources) *class {
	c := p.newClass(len(p.kinds)-1, make([]int64, len(free)))
	c.free = free
	if c.kind < 0 || !p.read(c, part) {
		c.kind = p.kindOf(part, free)
		p.read(c, part)
	}
	return c
}

// read reads the amounts of a class, or tells that it is of another kind.
func (p *packing) read(c *class, part int) bool {
	kind := &p.kinds[c.kind]
	if kind.part != part || len(kind.columns) != len(c.free) {
		return false
	}
	for i, column := range kind.columns {
		n, has := c.free[p.names[column]]
		if !has {
			return false
		}
		c.amounts[i] = n
	}
	return true
}

// kindOf returns the index of the kind of nodes of a part.
func (p *packing) kindOf(part int, free Resources) int {
	columns := make([]int, 0, len(free))
	for name := range free {
		column, known := p.columns[name]
		if !known {
			column = len(p.names)
			p.columns[name], p.names = column, append(p.names, name)
		}
		columns = append(columns, column)
	}
	slices.Sort(columns)
	id := fmt.Sprint(part, columns)
	i, known := p.kindAt[id]
	if !known {
		i = len(p.kinds)
		p.kindAt[id], p.kinds = i, append(p.kinds, kind{part, columns})
	}
	return i
}

func (p *packing) partOf(c *class) *part { return &p.parts[p.kinds[c.kind].part] }

// resources returns the amounts of a class by their names.
func (p *packing) resources(c *class) Resources {
	if c.free != nil {
		return c.free
	}
	free := make(Resources, len(c.amounts))
	for i, column := range p.kinds[c.kind].columns {
		free[p.names[column]] = c.amounts[i]
	}
	return free
}

// compare compares classes by which of them pods take first. Those with the most taints come first, so that
// the others stay free for pods that do not tolerate these. Among equals, those with the least free
// capacity come first, so that empty nodes stay empty for large pods.
func (p *packing) compare(a, b *class) int {
	return cmp.Or(cmp.Compare(len(p.partOf(b).taints), len(p.partOf(a).taints)), p.compareFree(a, b))
}

// compareMade compares classes as compare does. No two are equal.
func (p *packing) compareMade(a, b *class) int {
	return cmp.Or(p.compare(a, b), cmp.Compare(a.made, b.made))
}

// compareFree compares classes by free capacity, the least first. Equal ones of a pool are in the order of
// their taints, since that of the nodes must not matter.
func (p *packing) compareFree(a, b *class) int {
	one, two := p.kinds[a.kind].columns, p.kinds[b.kind].columns
	for i, j := 0, 0; i < len(one) || j < len(two); {
		column, has, than := p.ordered, int64(0), int64(0)
		if i < len(one) {
			column = min(column, one[i])
		}
		if j < len(two) {
			column = min(column, two[j])
		}
		if column == p.ordered {
			break
		}
		if i < len(one) && one[i] == column {
			has = a.amounts[i]
			i++
		}
		if j < len(two) && two[j] == column {
			than = b.amounts[j]
			j++
		}
		if c := cmp.Compare(has, than); c != 0 {
			return c
		}
	}
	of, than := p.partOf(a), p.partOf(b)
	return cmp.Or(cmp.Compare(of.pool, than.pool), slices.CompareFunc(of.taints, than.taints, compareTaint))
}

// admits tells of each part whether a pod may go to its nodes.
func (p *packing) admits(pod *PodRequirements) []bool {
	pools, admits := p.free.poolsFor(pod), make([]bool, len(p.parts))
	for i, part := range p.parts {
		if _, may := slices.BinarySearch(pools, part.pool); may {
			_, barred := pod.barredBy(part.taints)
			admits[i] = !barred
		}
	}
	return admits
}

// requests returns what a pod requests of nodes of each kind. It is nil for those to which it may not go.
func (p *packing) requests(pod *PodRequirements) [][]request {
	admits, all := p.admits(pod), make([][]request, len(p.kinds))
	for i, k := range p.kinds {
		if admits[k.part] {
			all[i] = p.requestsOf(pod, k.columns)
		}
	}
	return all
}

// requestsOf returns what a pod requests of nodes with some columns, or nil if these lack something of it.
func (p *packing) requestsOf(pod *PodRequirements, columns []int) []request {
	all := make([]request, 0, len(pod.Requests)+1)
	find := func(name string) (int, bool) {
		column, known := p.columns[name]
		if !known {
			return 0, false
		}
		return slices.BinarySearch(columns, column)
	}
	for name, n := range pod.Requests {
		switch i, has := find(name); {
		case n <= 0:
		case has:
			all = append(all, request{i, n})
		case !slices.Contains(uncounted, name):
			return nil
		}
	}
	if i, has := find(string(corev1.ResourcePods)); has {
		all = append(all, request{i, 1000})
	}
	return all
}

// holds returns how many pods with some requests fit onto one node of the class.
func (c *class) holds(requests []request) int64 {
	most := int64(1 << 31)
	for _, r := range requests {
		most = min(most, c.amounts[r.index]/r.amount)
	}
	return most
}

// A fit is a class of nodes that take some pods each.
type fit struct {
	row
	requests []request
	holds    int64
}

// fits returns the first classes that take all pods of a pod set, or all that take some of them.
func (p *packing) fits(podSet PodSet) []fit {
	var all []fit
	requests := p.requests(podSet.Requirements)
	for i, room := 0, int64(0); i < len(p.rows) && room < podSet.Count; i++ {
		p.looks++
		if r := p.rows[i]; r.count > 0 && requests[r.kind] != nil {
			if n := r.holds(requests[r.kind]); n > 0 {
				all = append(all, fit{r, requests[r.kind], n})
				room = Saturated(room, n, r.count)
			}
		}
	}
	return all
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
	for _, f := range p.fits(podSet) {
		full := min(left/f.holds, f.count)
		p.take(&f, full, f.holds)
		left -= full * f.holds
		if some := min(left, f.holds); full < f.count {
			p.take(&f, min(some, 1), some)
			left -= some
		}
	}
	return left
}

// take puts some pods onto each of some nodes of a class.
func (p *packing) take(f *fit, nodes, pods int64) {
	if nodes == 0 {
		return
	}
	amounts := slices.Clone(f.amounts)
	for _, r := range f.requests {
		amounts[r.index] -= r.amount * pods
	}
	p.reclassify(f.class, nodes, amounts)
}

// reclassify moves nodes of a class to the class of nodes of the same kind with other amounts.
func (p *packing) reclassify(from *class, nodes int64, amounts []int64) {
	i := p.index(from)
	if p.rows[i].count -= nodes; !p.keeps(p.rows[i].count) {
		p.rows = slices.Delete(p.rows, i, i+1)
	}
	p.changed[p.partOf(from).pool] = true
	to := p.newClass(from.kind, amounts)
	for i, _ = slices.BinarySearchFunc(p.rows, to, func(r row, c *class) int { return p.compare(r.class, c) }); i < len(p.rows) && p.compare(p.rows[i].class, to) == 0; i++ {
		if p.rows[i].kind == from.kind && slices.Equal(p.rows[i].amounts, amounts) {
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
