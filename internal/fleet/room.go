package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Room is what is left in a cluster, pool by pool.
type Room struct {
	Pools []Pool

	// Patience is how many classes of nodes may be looked at in all, whoever has a copy of
	// the room. Nil leaves each search its own. Only searches end with it; who wants to
	// take nothing more without it has to look.
	Patience *int
}

// A Pool is a set of nodes with the same labels.
type Pool struct {
	// Name of the pool.
	Name string
	// Labels of its nodes, as far as pods select by them.
	Labels map[string]string
	// Nodes in all.
	Nodes int64
	// Total of what the nodes have for pods.
	Total Resources
	// Left has the nodes by what is left on them.
	Left []Nodes
}

// Nodes are nodes on which the same is left.
type Nodes struct {
	Count int64
	Left  Resources
}

// A Need is a number of pods of one shape.
type Need struct {
	Shape *Shape
	Pods  int64
}

// Clone returns a Room of its own.
func (r *Room) Clone() Room {
	c := Room{Pools: slices.Clone(r.Pools), Patience: r.Patience}
	for i := range c.Pools {
		// What is left on a node is never changed, only replaced.
		c.Pools[i].Left = slices.Clone(c.Pools[i].Left)
	}
	return c
}

// Take puts pods onto nodes, and tells whether all of them fit. Where they do not,
// nothing is taken, and the text says what is missing.
//
// Nodes that are partly taken are filled first, the largest pods first. Where that does
// not work out, other ways are searched; a search that takes too long ends with "does
// not fit", so that a cluster may be left with room but is never booked twice.
func (r *Room) Take(needs []Need) (bool, string) {
	needs = slices.DeleteFunc(slices.Clone(needs), func(n Need) bool { return n.Pods <= 0 })
	bySize(needs)
	r.spend(r.classes())
	if missing := r.missing(needs); missing != "" {
		return false, missing
	}
	tried := r.Clone()
	if short := tried.fill(needs); short == nil {
		*r = tried
		return true, ""
	}
	tried = r.Clone()
	if tried.searchPatiently(needs) {
		*r = tried
		return true, ""
	}
	tried = r.Clone()
	return false, r.fragmented(tried.fill(needs), needs)
}

// bySize puts the largest pods first. What a shape is told by is made once for each need,
// since there may be thousands.
func bySize(needs []Need) {
	ids := make(map[*Shape]string, len(needs))
	for _, n := range needs {
		if _, known := ids[n.Shape]; !known {
			ids[n.Shape] = n.Shape.id()
		}
	}
	slices.SortStableFunc(needs, func(a, b Need) int {
		if ids[a.Shape] == ids[b.Shape] {
			return 0
		}
		return cmp.Or(-compareSize(a.Shape, b.Shape), strings.Compare(ids[a.Shape], ids[b.Shape]))
	})
}

// TakeAnyway takes what fits of pods that are there whatever is counted, and tells
// whether that was all of them.
func (r *Room) TakeAnyway(needs []Need) bool {
	if ok, _ := r.Take(needs); ok {
		return true
	}
	all := true
	for _, n := range needs {
		if n.Pods > 0 && r.fillShape(n) > 0 {
			all = false
		}
	}
	return all
}

// compareSize orders shapes by the devices, and then the rest, that they request.
func compareSize(a, b *Shape) int {
	all := maps.Clone(a.Requests)
	if all == nil {
		all = Resources{}
	}
	maps.Copy(all, b.Requests)
	return compareBy(sortedNames(all), a.Requests, b.Requests)
}

// compareBy orders amounts by the resources in their order.
func compareBy(names []string, a, b Resources) int {
	for _, name := range names {
		if c := cmp.Compare(a[name], b[name]); c != 0 {
			return c
		}
	}
	return 0
}

// takes tells whether pods of a shape may go to the pool at all.
func (p *Pool) takes(s *Shape) bool {
	for k, v := range s.NodeSelector {
		if have, ok := p.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// holds is how many pods of a shape fit onto one node.
func (n *Nodes) holds(s *Shape) int64 {
	const many = 1 << 31
	most := int64(many)
	for name, want := range s.Requests {
		if want > 0 && counted(n.Left, name) {
			most = min(most, n.Left[name]/want)
		}
	}
	if pods, ok := n.Left["pods"]; ok {
		most = min(most, pods/1000)
	}
	return most
}

// after is what is left on a node with n more pods.
func (n *Nodes) after(s *Shape, pods int64) Resources {
	left := maps.Clone(n.Left)
	for name, want := range s.Requests {
		if _, ok := left[name]; ok {
			left[name] -= want * pods
		}
	}
	if _, ok := left["pods"]; ok {
		left["pods"] -= 1000 * pods
	}
	return left
}

// fill puts pods onto nodes, shape by shape. It returns the first need that is not
// met, with the pods that are left over.
func (r *Room) fill(needs []Need) *Need {
	for _, need := range needs {
		if n := r.fillShape(need); n > 0 {
			return &Need{Shape: need.Shape, Pods: n}
		}
	}
	return nil
}

// A spot is a class of nodes of a pool that a pod can go to.
type spot struct{ pool, nodes int }

// spots are the classes of nodes that hold a pod of a shape, those with the least left
// first, so that whole nodes stay whole.
func (r *Room) spots(s *Shape) []spot {
	var all []spot
	for i := range r.Pools {
		if !r.Pools[i].takes(s) {
			continue
		}
		for j := range r.Pools[i].Left {
			if r.Pools[i].Left[j].Count > 0 && r.Pools[i].Left[j].holds(s) > 0 {
				all = append(all, spot{i, j})
			}
		}
	}
	if len(all) < 2 {
		return all
	}
	return r.sorted(all)
}

// sorted puts those first that have the least left.
func (r *Room) sorted(spots []spot) []spot {
	named := Resources{}
	for i, s := range spots {
		if i == 0 || spots[i-1].pool != s.pool {
			maps.Copy(named, r.Pools[s.pool].Total)
		}
	}
	left := func(s spot) Resources { return r.at(s).Left }
	return sortedBy(spots, left, sortedNames(named))
}

// sortedBy orders by amounts of the resources in their order. Each amount is looked up
// once, since there may be thousands of classes of nodes.
func sortedBy[T any](all []T, of func(T) Resources, names []string) []T {
	type ranked struct {
		of      T
		amounts []int64
	}
	ranks, amounts := make([]ranked, len(all)), make([]int64, 0, len(all)*len(names))
	for i, e := range all {
		has := of(e)
		for _, name := range names {
			amounts = append(amounts, has[name])
		}
		ranks[i] = ranked{e, amounts[i*len(names):]}
	}
	slices.SortStableFunc(ranks, func(a, b ranked) int { return slices.Compare(a.amounts[:len(names)], b.amounts[:len(names)]) })
	for i := range ranks {
		all[i] = ranks[i].of
	}
	return all
}

// classes of nodes that there are.
func (r *Room) classes() int {
	n := 0
	for i := range r.Pools {
		n += len(r.Pools[i].Left)
	}
	return n
}

func (r *Room) at(s spot) *Nodes { return &r.Pools[s.pool].Left[s.nodes] }

func (r *Room) fillShape(need Need) int64 {
	left := need.Pods
	for _, s := range r.spots(need.Shape) {
		if left == 0 {
			break
		}
		n := r.at(s)
		holds := n.holds(need.Shape)
		if full := min(left/holds, n.Count); full > 0 {
			r.put(s, full, n.after(need.Shape, holds))
			left -= full * holds
		}
		if n = r.at(s); left > 0 && n.Count > 0 {
			some := min(left, holds)
			r.put(s, 1, n.after(need.Shape, some))
			left -= some
		}
	}
	return left
}

// put moves nodes of a class to what is left on them now. A class that is empty stays,
// so that spots remain valid.
func (r *Room) put(s spot, count int64, left Resources) {
	p := &r.Pools[s.pool]
	p.Left[s.nodes].Count -= count
	equal := equalTo(left)
	for i := range p.Left {
		if i != s.nodes && equal(p.Left[i].Left) {
			p.Left[i].Count += count
			return
		}
	}
	p.Left = append(p.Left, Nodes{Count: count, Left: left})
}

// equalTo compares amounts with many others.
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

// searchSteps bounds a search, in classes of nodes that are looked at. It takes some
// milliseconds.
const searchSteps = 5000

// searchPatiently searches for as long as there is patience.
func (r *Room) searchPatiently(needs []Need) bool {
	most := searchSteps
	if r.Patience != nil {
		most = min(most, *r.Patience)
	}
	steps := most
	found := r.search(needs, &steps)
	r.spend(most - steps)
	return found
}

func (r *Room) spend(steps int) {
	if r.Patience != nil {
		*r.Patience -= steps
	}
}

// search tries to place pods one by one, in every way that differs.
func (r *Room) search(needs []Need, steps *int) bool {
	if len(needs) == 0 {
		return true
	}
	if *steps -= r.classes(); *steps < 0 {
		return false
	}
	need := needs[0]
	spots := r.spots(need.Shape)
	for _, s := range spots {
		if *steps < 0 {
			return false
		}
		tried := r.Clone()
		tried.put(s, 1, tried.at(s).after(need.Shape, 1))
		rest := needs[1:]
		if need.Pods > 1 {
			rest = append([]Need{{Shape: need.Shape, Pods: need.Pods - 1}}, needs[1:]...)
		}
		if tried.search(rest, steps) {
			*r = tried
			return true
		}
	}
	return false
}

// A sharing are pods that may go to the same pools, and share what these have.
type sharing struct {
	pools []int
	want  Resources
}

// missing says of which resource there is too little in all, wherever it is. It is
// empty where the sums suffice.
func (r *Room) missing(needs []Need) string {
	var groups []*sharing
	for _, n := range needs {
		pools := r.poolsFor(n.Shape)
		if len(r.Pools) == 0 {
			return "it has no nodes, or they are not known yet"
		}
		if len(pools) == 0 {
			return "no pool has the labels " + labelText(n.Shape.NodeSelector)
		}
		i := slices.IndexFunc(groups, func(g *sharing) bool { return slices.Equal(g.pools, pools) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &sharing{pools: pools, want: Resources{}})
		}
		groups[i].want.add(n.Shape.Requests, n.Pods)
		groups[i].want.add(Resources{"pods": 1000}, n.Pods)
	}
	for _, g := range groups {
		for _, name := range sortedNames(g.want) {
			free, total, open := r.sum(g.pools, name)
			if !open && free < g.want[name] {
				return fmt.Sprintf("%s of %s %s free in %s, %s short", quantityText(free), quantityText(total), name, r.names(g.pools), quantityText(g.want[name]-free))
			}
		}
	}
	return ""
}

// poolsFor are the pools that pods of a shape may go to.
func (r *Room) poolsFor(s *Shape) []int {
	var pools []int
	for i := range r.Pools {
		if r.Pools[i].takes(s) {
			pools = append(pools, i)
		}
	}
	return pools
}

// sum of a resource in some pools, and whether one of them does not count it.
func (r *Room) sum(pools []int, name string) (free, total int64, open bool) {
	for _, i := range pools {
		p := &r.Pools[i]
		total = saturated(total, p.Total[name], 1)
		for _, n := range p.Left {
			if n.Count > 0 && !counted(n.Left, name) {
				open = true
			}
			free = saturated(free, n.Left[name], n.Count)
		}
	}
	return free, total, open
}

func (r *Room) names(pools []int) string {
	names := make([]string, 0, len(pools))
	for _, i := range pools {
		names = append(names, r.Pools[i].Name)
	}
	if len(names) == 1 {
		return "pool " + names[0]
	}
	return "pools " + strings.Join(names, ", ")
}

func labelText(labels map[string]string) string {
	all := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, k+"="+labels[k])
	}
	return strings.Join(all, ",")
}

// fragmented says which pods find no node although the sums suffice.
func (r *Room) fragmented(short *Need, needs []Need) string {
	if short == nil || len(needs) == 0 {
		return "no way was found to put the pods onto the nodes"
	}
	asked := make([]string, 0, len(short.Shape.Requests))
	for _, name := range sortedNames(short.Shape.Requests) {
		asked = append(asked, quantityText(short.Shape.Requests[name])+" "+name)
	}
	pods := "1 pod finds"
	if short.Pods != 1 {
		pods = fmt.Sprintf("%d pods find", short.Pods)
	}
	return fmt.Sprintf("%s no node with %s left, although there is as much in all", pods, strings.Join(asked, ", "))
}

// Devices is one line about the devices of a room: free and all.
func (r *Room) Devices() string {
	names := Resources{}
	for i := range r.Pools {
		maps.Copy(names, r.Pools[i].Total)
	}
	all := make([]int, len(r.Pools))
	for i := range all {
		all[i] = i
	}
	var parts []string
	for _, name := range sortedNames(names) {
		if device(name) {
			free, total, _ := r.sum(all, name)
			parts = append(parts, fmt.Sprintf("%s/%s %s", quantityText(free), quantityText(total), name))
		}
	}
	return strings.Join(parts, ", ")
}

// NewPool makes a pool of nodes that run nothing. Nodes that have the same are one
// class.
func NewPool(name string, labels map[string]string, nodes []Nodes) Pool {
	p := Pool{Name: name, Labels: labels, Total: Resources{}, Left: classesOf(nodes)}
	for _, n := range nodes {
		p.Nodes += n.Count
		p.Total.add(n.Left, n.Count)
	}
	return p
}

// Free are the nodes by what is left on them, those with the most first. Nodes on which
// the same is left are one class.
func (p *Pool) Free() []Nodes {
	free := classesOf(slices.DeleteFunc(slices.Clone(p.Left), func(n Nodes) bool { return n.Count <= 0 }))
	named, ids := Resources{}, make(map[*Nodes]string, len(free))
	order := make([]*Nodes, len(free))
	for i := range free {
		order[i] = &free[i]
		ids[order[i]] = (&Shape{Requests: free[i].Left}).id()
		maps.Copy(named, free[i].Left)
	}
	slices.SortFunc(order, func(a, b *Nodes) int { return -strings.Compare(ids[a], ids[b]) })
	sortedBy(order, func(n *Nodes) Resources { return n.Left }, sortedNames(named))
	slices.Reverse(order)
	sorted := make([]Nodes, len(order))
	for i, n := range order {
		sorted[i] = *n
	}
	return sorted
}

// classesOf puts nodes together on which the same is left.
func classesOf(nodes []Nodes) []Nodes {
	var classes []Nodes
	at := map[string]int{}
	for _, n := range nodes {
		id := (&Shape{Requests: n.Left}).id()
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
