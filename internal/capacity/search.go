package capacity

// SearchSteps bounds one search, in node classes that it looks at. That many take some
// milliseconds.
const SearchSteps = 5000

// searchWithinBudget searches with SearchSteps, or with what is left of the shared budget if
// that is less.
func (f *Free) searchWithinBudget(podSets []PodSet) bool {
	most := SearchSteps
	if f.Budget != nil {
		most = min(most, *f.Budget)
	}
	steps := most
	found := steps > 0 && f.search(podSets, &steps)
	if f.Budget != nil {
		*f.Budget -= most - steps
	}
	return found
}

// search puts pods onto nodes one by one, and tries each node class for each of them.
func (f *Free) search(podSets []PodSet, steps *int) bool {
	if len(podSets) == 0 {
		return true
	}
	if *steps -= f.ClassCount(); *steps < 0 {
		return false
	}
	podSet := podSets[0]
	classes := f.classesFor(podSet.Requirements)
	for _, c := range classes {
		if *steps < 0 {
			return false
		}
		trial := f.Clone()
		trial.reclassify(c, 1, trial.class(c).remaining(podSet.Requirements, 1))
		rest := podSets[1:]
		if podSet.Count > 1 {
			rest = append([]PodSet{{Requirements: podSet.Requirements, Count: podSet.Count - 1}}, podSets[1:]...)
		}
		if trial.search(rest, steps) {
			*f = trial
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
