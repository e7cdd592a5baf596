package scheduling

import (
	"cmp"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// spread assigns each group by itself. It goes where it exists, else where it was reserved, else
// where it was requested and still fits. Else it goes to the cluster where it fits that has the
// fewest groups for its weight.
func (p *scheduler) spread() {
	free := p.free()
	var withoutCluster []reservation.ReplicaGroup
	for _, group := range p.Groups {
		if p.blocked([]reservation.ReplicaGroup{group}) {
			continue
		}
		target := p.currentCluster(&group)
		if target < 0 {
			withoutCluster = append(withoutCluster, group)
			continue
		}
		_, _ = p.fits(&free[target], &p.Candidates[target], []reservation.ReplicaGroup{group}) // Its missing replicas take capacity if they fit.
		p.assigned[target] = append(p.assigned[target], group)
	}
	var remaining []reservation.ReplicaGroup
	for _, group := range withoutCluster {
		target := first(p.eligible(), func(i int) bool { return p.Candidates[i].Requested[group.Name] })
		if target < 0 {
			remaining = append(remaining, group)
			continue
		}
		if ok, _ := p.fits(&free[target], &p.Candidates[target], []reservation.ReplicaGroup{group}); !ok {
			remaining = append(remaining, group)
			continue
		}
		p.assigned[target] = append(p.assigned[target], group)
	}
	for _, group := range remaining {
		target := p.newCluster(free, &group)
		if target >= 0 {
			p.assigned[target] = append(p.assigned[target], group)
		}
	}
	for i := range p.assigned {
		p.assigned[i] = p.inOrder(p.assigned[i])
	}
}

// newCluster returns the cluster for a group without one. Best is a cluster where all of the
// group fits, then one where it can start. Otherwise the group is pending in the cluster where
// it would go if it fitted. Routable clusters come first each time.
func (p *scheduler) newCluster(free []capacity.Free, group *reservation.ReplicaGroup) int {
	all, required := p.fitting(free, []reservation.ReplicaGroup{*group})
	anywhere := func(int) bool { return true }
	return first(p.byLoad(), append(p.preferRoutable(all, required), p.preferRoutable(anywhere)...)...)
}

// currentCluster returns the cluster where a group exists or was reserved, or -1. Of equal ones
// it is the one with the fewest groups for its weight.
func (p *scheduler) currentCluster(group *reservation.ReplicaGroup) int {
	if i := p.bestExisting([]reservation.ReplicaGroup{*group}, p.byLoad()); i >= 0 {
		return i
	}
	return first(p.byLoad(), func(i int) bool { return len(group.Replicas) > 0 && p.Candidates[i].canStart(group) })
}

// byLoad returns the eligible candidates, those with the fewest groups for their weight first.
func (p *scheduler) byLoad() []int {
	order := p.eligible()
	slices.SortStableFunc(order, func(a, b int) int {
		// (groups + 1) / weight, without fractions.
		x := int64(len(p.assigned[a])+1) * p.Candidates[b].Weight
		y := int64(len(p.assigned[b])+1) * p.Candidates[a].Weight
		return cmp.Compare(x, y)
	})
	return order
}

// inOrder sorts groups in the order of the service.
func (p *scheduler) inOrder(groups []reservation.ReplicaGroup) []reservation.ReplicaGroup {
	var sorted []reservation.ReplicaGroup
	for _, group := range p.Groups {
		if contains(groups, &group) {
			sorted = append(sorted, group)
		}
	}
	return sorted
}
