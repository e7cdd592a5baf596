package scheduling

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// failover assigns the whole service to one cluster. While it fits into none, capacity is
// requested of all, and the first that reserves it is used.
func (p *scheduler) failover() {
	fitting := func(fits func(*capacity.Free, *Candidate, []reservation.ReplicaGroup) (bool, string)) func(*Candidate) bool {
		return func(c *Candidate) bool {
			free := c.Free.Clone()
			ok, _ := fits(&free, c, p.Groups)
			return ok
		}
	}
	requested := func(c *Candidate) bool { return len(c.Requested) > 0 && fitting(p.fits)(c) }
	target := p.bestExisting(p.Groups, p.eligible())
	// The blocked cluster may recover, and then the service would run twice. So nothing is
	// started elsewhere.
	if target < 0 && p.blocked(p.Groups) {
		return
	}
	if target < 0 {
		target = p.firstOf(preferRoutable(
			func(c *Candidate) bool {
				return len(p.Groups) > 0 && !slices.ContainsFunc(p.Groups, func(group reservation.ReplicaGroup) bool { return !c.canStart(&group) })
			},
			requested, fitting(p.fitsWhole), fitting(p.fits),
		)...)
	}
	p.requestsAll = target < 0
	for i := range p.Candidates {
		if i == target || (target < 0 && p.eligibility[i].eligible()) {
			p.assigned[i] = p.Groups
		}
	}
}

// firstOf returns an eligible candidate for the first predicate that is true for any, or -1.
func (p *scheduler) firstOf(are ...func(*Candidate) bool) int {
	for _, is := range are {
		if i := p.first(is); i >= 0 {
			return i
		}
	}
	return -1
}

// preferRoutable tries each predicate on routable candidates first, then on all. A service in
// an unroutable cluster would use capacity without traffic, and could never leave another
// cluster for it.
func preferRoutable(are ...func(*Candidate) bool) []func(*Candidate) bool {
	both := make([]func(*Candidate) bool, 0, 2*len(are))
	for _, is := range are {
		both = append(both, func(c *Candidate) bool { return !c.NoGateway && is(c) })
	}
	return append(both, are...)
}
