package scheduling

import (
	"cmp"
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// RequestTimeout is how long a cluster may take to answer a request before others are asked as
// well. Clusters answer within seconds. One that is paused or fails never does.
const RequestTimeout = time.Minute

// mostAlone is how many clusters a unit that stays in its home asks one by one.
const mostAlone = 2

// ask returns the clusters of which capacity for a unit is requested. First it is one that
// probably has it. As soon as that has refused, or has not answered in time, it is all of them:
// the unit is then in the queue of each cluster, and the first that reserves it becomes its home.
//
// A unit that stays in its home asks one that seems to have room at first, and after a refusal another
// one. Then it asks all at once, because each cluster that is added later makes the request longer: the
// unit has a generation of its own there.
func (p *scheduler) ask(u unit, home int) []int {
	if p.mayRunElsewhere(u, home) {
		return nil
	}
	// A unit that need not leave its home asks others because it could not answer there in time.
	stays := home >= 0 && p.eligibility[home].eligible()
	order := p.inPreference()
	if stays {
		// What starts nowhere tries one cluster after the other. The first that fits could be where it failed before.
		next := slices.Index(p.order, home) + 1
		order = slices.Concat(p.order[next:], p.order[:next])
	}
	others := slices.DeleteFunc(order, func(i int) bool { return i == home || !p.usable(i) })
	asked, inVain, fresh := p.alreadyAsked(u, others)
	evaluated := slices.ContainsFunc(asked, func(i int) bool { return p.Candidates[i].Evaluated })
	mayEvaluate := slices.ContainsFunc(asked, func(i int) bool { return p.Candidates[i].mayEvaluate() })
	switch {
	case mayEvaluate && !evaluated: // Once one has refused, no other is worth waiting for. Its time may start anew with whatever the others say.
		return asked
	case len(asked) > 0 && !stays:
		return others
	}
	silent := slices.DeleteFunc(slices.Clone(inVain), func(i int) bool { return !p.Candidates[i].Paused && !p.Candidates[i].NotReconciled })
	if len(asked) < mostAlone {
		if next := p.firstFit(u, fresh); next >= 0 {
			return append(slices.Concat(silent, asked), next)
		}
	}
	open := slices.DeleteFunc(slices.Clone(fresh), func(i int) bool { return p.Candidates[i].NotSchedulable != "" })
	switch {
	case stays && mayEvaluate:
		return asked
	case stays && len(asked)+len(open) > 0: // An estimate may not show the last nodes.
		return slices.Concat(silent, asked, open)
	case stays || p.Policy == v1alpha1.PlacementSpread && len(open) == 0 && len(inVain) > 0:
		return inVain
	case p.Policy != v1alpha1.PlacementSpread:
		return others
	}
	// Several that answer one after the other would spread by who is faster.
	some := slices.Concat(open, fresh)
	return slices.Concat(silent, some[:min(1, len(some))])
}

// alreadyAsked splits candidates into those that are asked for a unit, and the others. If none of those that are asked reserves
// anything new, they are asked in vain, and are among the others. Those of which only their InferenceClusters say so stay asked:
// these would not be read any more, and they would look as if they reserved something again.
func (p *scheduler) alreadyAsked(u unit, candidates []int) (asked, inVain, others []int) {
	open := false
	for _, i := range candidates {
		c := &p.Candidates[i]
		if slices.ContainsFunc(u, func(g reservation.ReplicaGroup) bool { return !c.Requested[g.Name] }) {
			others = append(others, i)
			continue
		}
		asked, open = append(asked, i), open || c.NotSchedulable == ""
	}
	if !open {
		return nil, asked, candidates
	}
	return asked, nil, others
}

// inPreference returns all candidates in the order in which a unit prefers them: that of the placement, if
// it lists them. Under Spread, those with the fewest groups for their weight come first. Equal ones
// have another order in each service, so that services do not all ask the same cluster, or all leave
// a lost one for the same other one.
func (p *scheduler) inPreference() []int {
	order := slices.Clone(p.order)
	if p.Policy != v1alpha1.PlacementSpread {
		return order
	}
	slices.SortStableFunc(order, func(a, b int) int {
		// (groups + 1) / weight, without fractions.
		x := int64(len(p.assigned[a])+len(p.asked[a])+1) * p.Candidates[b].Weight
		y := int64(len(p.assigned[b])+len(p.asked[b])+1) * p.Candidates[a].Weight
		return cmp.Compare(x, y)
	})
	return order
}

// usable tells whether a candidate can become a home. One that requests cannot reach is used
// only if that is true of all eligible ones. A service there would use capacity without traffic,
// and could never leave another cluster for it.
func (p *scheduler) usable(i int) bool {
	return p.eligibility[i].eligible() && (!p.Candidates[i].NoEntrypoint || !p.someReachable)
}

// firstFit returns the first of some candidates into which all of a unit fits, or else what it needs to start,
// and takes the capacity there. It is -1 if there is none.
func (p *scheduler) firstFit(u unit, candidates []int) int {
	for _, i := range candidates {
		if p.takesWhole(i, u) {
			return i
		}
	}
	for _, i := range candidates {
		if p.takesStart(i, u) {
			return i
		}
	}
	return -1
}
