package scheduling

import (
	"cmp"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// A score tells how good it is to keep the service in a candidate that has something of it.
type score struct {
	// insufficient tells that the missing replicas do not fit here.
	insufficient bool
	// noEntrypoint tells that no requests can be sent there, so no other copy could leave for it.
	noEntrypoint bool
	// duplicates is the number of replicas that are missing here and exist in another eligible
	// candidate. They would be started a second time.
	duplicates int
	// ready is the number of ready replicas.
	ready int
}

// better compares scores. Best is a candidate that has all replicas that exist elsewhere, or
// where they fit. Next are routable candidates, then those with the fewest duplicates, then
// those with the most ready replicas.
func (s score) better(o score) bool {
	switch {
	case s.insufficient != o.insufficient:
		return o.insufficient
	case s.noEntrypoint != o.noEntrypoint:
		return o.noEntrypoint
	}
	return cmp.Or(cmp.Compare(s.duplicates, o.duplicates), cmp.Compare(o.ready, s.ready)) < 0
}

// bestExisting returns the candidate with the best score among those that have something of
// some groups, or -1. Of equal ones it is the first.
func (p *scheduler) bestExisting(groups []reservation.ReplicaGroup, candidates []int) int {
	target, best := -1, score{}
	for _, i := range candidates {
		if !slices.ContainsFunc(groups, p.Candidates[i].present) {
			continue
		}
		if s := p.score(i, groups); target < 0 || s.better(best) {
			target, best = i, s
		}
	}
	return target
}

func (p *scheduler) score(i int, groups []reservation.ReplicaGroup) score {
	c, eligible := &p.Candidates[i], p.eligible()
	s := score{noEntrypoint: c.NoEntrypoint}
	for _, r := range reservation.Replicas(groups) {
		switch {
		case !c.Present[r.Name] && slices.ContainsFunc(eligible, func(i int) bool { return p.Candidates[i].Present[r.Name] }):
			s.duplicates++
		case c.Present[r.Name] && c.Ready[r.Name]:
			s.ready++
		}
	}
	if s.duplicates > 0 {
		free := c.Free.Clone()
		fits, _ := p.fitsWhole(&free, c, groups)
		s.insufficient = !fits
	}
	return s
}
