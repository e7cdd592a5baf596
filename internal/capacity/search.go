package capacity

import "math"

// SearchSteps bounds one search, in node classes that it looks at. That many take some
// milliseconds.
const SearchSteps = 5000

// searchWithinBudget searches with SearchSteps, or with what is left of the shared budget if
// that is less.
func (p *packing) searchWithinBudget(podSets []PodSet) bool {
	most := SearchSteps
	budget := p.free.Budget
	if budget != nil {
		most = min(most, *budget)
	}
	steps := most
	found := steps > 0 && p.search(podSets, &steps)
	if budget != nil {
		*budget -= most - steps
	}
	return found
}

// search puts pods onto nodes one by one, and tries each node class for each of them.
func (p *packing) search(podSets []PodSet, steps *int) bool {
	if len(podSets) == 0 {
		return true
	}
	if *steps -= len(p.rows); *steps < 0 {
		return false
	}
	podSet := podSets[0]
	for _, f := range p.fits(PodSet{Requirements: podSet.Requirements, Count: math.MaxInt64}) {
		if *steps < 0 {
			return false
		}
		trial := p.clone()
		trial.take(&f, 1, 1)
		rest := podSets[1:]
		if podSet.Count > 1 {
			rest = append([]PodSet{{Requirements: podSet.Requirements, Count: podSet.Count - 1}}, podSets[1:]...)
		}
		if trial.search(rest, steps) {
			*p = *trial
			return true
		}
	}
	return false
}

// ClassCount returns the number of node classes in all pools, to which the cost of Allocate is
// proportional.
func (f *Free) ClassCount() int {
	n := 0
	for i := range f.Pools {
		n += len(f.Pools[i].Free)
	}
	return n
}
