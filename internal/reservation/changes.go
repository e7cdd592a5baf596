package reservation

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
)

// applyChanges counts pods with their current requirements, if these fit, the oldest service
// first.
func (rs *reserver) applyChanges(initial *capacity.Free) {
	order := make([]int, 0, len(rs.Reservations))
	for i := range rs.Reservations {
		if rs.requirementsChanged(i) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return CompareAge(rs.requests[i], rs.requests[j]) })
	// Apply as many as fit, the oldest first. The next one does not fit: skip it, and go on
	// with those after it.
	for tries := maxTries; len(order) > 0; {
		n := rs.applyFitting(initial, order, &tries)
		if n == len(order) {
			return
		}
		rs.RequirementsChanged = append(rs.RequirementsChanged, rs.Reservations[order[n]].ServiceID())
		order = order[n+1:]
		if tries <= 0 {
			for _, i := range order {
				rs.RequirementsChanged = append(rs.RequirementsChanged, rs.Reservations[i].ServiceID())
			}
			return
		}
	}
}

// maxTries bounds how often all reservations are put onto the nodes anew. If the pods of very
// many services have changed and not all of them fit, more services than necessary keep their
// old requirements.
const maxTries = 24

// applyFitting applies the current requirements of the first n reservations in the order, as
// many as fit together with all others. It returns n.
func (rs *reserver) applyFitting(initial *capacity.Free, order []int, tries *int) int {
	fitting, last := 0, len(order)
	for try := last; fitting < last; try = (fitting + last + 1) / 2 {
		if *tries--; *tries < 0 || rs.Overcommitted {
			break
		}
		before := rs.recount(order[fitting:try])
		free := initial.Clone()
		if ok, _ := free.Allocate(rs.allPodSets()); ok {
			rs.Free, fitting = free, try
			continue
		}
		for i, requirements := range before {
			rs.Reservations[order[fitting+i]].PodRequirements = requirements
		}
		last = try - 1
	}
	return fitting
}

// recount makes reservations count the current requirements, and returns what they counted
// before.
func (rs *reserver) recount(indexes []int) []map[string]capacity.PodRequirements {
	all := make([]map[string]capacity.PodRequirements, 0, len(indexes))
	for _, i := range indexes {
		before, after := rs.Reservations[i].PodRequirements, map[string]capacity.PodRequirements{}
		for name := range before {
			after[name] = rs.requests[i].PodRequirements[name]
		}
		rs.Reservations[i].PodRequirements = after
		all = append(all, before)
	}
	return all
}

// requirementsChanged tells whether the requirements differ from those that the reservation
// counts.
func (rs *reserver) requirementsChanged(i int) bool {
	for name, was := range rs.Reservations[i].PodRequirements {
		if now := rs.requests[i].PodRequirements[name]; was.Key() != now.Key() {
			return true
		}
	}
	return false
}
