package scheduling

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// failover assigns the whole service to one cluster. While it fits into none, capacity is
// requested of all, and the first that reserves it is used.
func (p *scheduler) failover() {
	target := p.bestExisting(p.Groups, p.eligible())
	// The blocked cluster may recover, and then the service would run twice. So nothing is
	// started elsewhere.
	if target < 0 && p.blocked(p.Groups) {
		return
	}
	if target < 0 {
		all, required := p.fitting(p.free(), p.Groups)
		target = first(p.eligible(), p.preferRoutable(
			func(i int) bool {
				return len(p.Groups) > 0 && !slices.ContainsFunc(p.Groups, func(group reservation.ReplicaGroup) bool { return !p.Candidates[i].canStart(&group) })
			},
			func(i int) bool { return len(p.Candidates[i].Requested) > 0 && required(i) },
			all, required,
		)...)
	}
	p.requestsAll = target < 0
	for i := range p.Candidates {
		if i == target || (target < 0 && p.eligibility[i].eligible()) {
			p.assigned[i] = p.Groups
		}
	}
}

// preferRoutable tries each predicate on routable candidates first, then on all. A service in
// an unroutable cluster would use capacity without traffic, and could never leave another
// cluster for it.
func (p *scheduler) preferRoutable(are ...func(int) bool) []func(int) bool {
	both := make([]func(int) bool, 0, 2*len(are))
	for _, is := range are {
		both = append(both, func(i int) bool { return !p.Candidates[i].NoEntrypoint && is(i) })
	}
	return append(both, are...)
}
