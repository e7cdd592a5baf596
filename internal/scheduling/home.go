package scheduling

import (
	"slices"
	"sync"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// A unit is the replica groups that move together: all of a service under Failover, and a single
// one under Spread.
type unit []reservation.ReplicaGroup

// units returns the units of the service, in the order of its groups.
func (p *scheduler) units() []unit {
	n := 1
	if p.Policy == v1alpha1.PlacementFailover {
		n = max(n, len(p.Groups))
	}
	return slices.Collect(slices.Chunk(unit(p.Groups), n))
}

// placeUnits gives each unit its home, and asks for capacity where a unit needs one. Units that
// have a home come first, because their missing replicas take capacity there.
func (p *scheduler) placeUnits() {
	p.free, p.refused = make([]capacity.Free, len(p.Candidates)), make([]map[string]bool, len(p.Candidates))
	for i := range p.Candidates {
		p.free[i] = p.Candidates[i].Free.Clone()
		p.accepting = p.accepting || p.eligibility[i].eligible() && !p.Candidates[i].Refused
	}
	units := p.units()
	homes := make([]int, len(units))
	var homeless []int
	for n, u := range units {
		was := p.homeOf(u)
		homes[n] = p.nextHome(u, was)
		if homes[n] < 0 {
			homeless = append(homeless, n)
			p.keepRecords(u)
			continue
		}
		failed := p.startFailed(u, homes[n])
		if failed {
			p.startTimedOut[homes[n]] = true
		}
		if failed || p.eligibility[homes[n]].mustLeave {
			homeless = append(homeless, n)
		}
		p.setHome(u, homes[n], was)
	}
	for _, n := range homeless {
		for _, i := range p.ask(units[n], homes[n]) {
			p.asked[i] = append(p.asked[i], units[n]...)
		}
	}
}

// keepRecords keeps the records of groups that sleep and have nowhere to go. They stay where requests wait for them if
// that can be used again.
func (p *scheduler) keepRecords(u unit) {
	for _, g := range u {
		if h, recorded := p.Homes[g.Name]; recorded && len(g.Replicas) == 0 {
			p.homes[g.Name] = h
		}
	}
}

// homeOf returns the home of a unit, or -1. It is the recorded one as long as something of the
// unit exists there or is reserved, or the unit sleeps there. If the record is lost, it is where most of
// the unit is ready.
func (p *scheduler) homeOf(u unit) int {
	recorded := p.best(u, func(i int) bool {
		return slices.ContainsFunc(u, func(g reservation.ReplicaGroup) bool {
			c := &p.Candidates[i]
			return p.recordedIn(g.Name, i) && (c.present(g) || c.canStart(&g) && p.eligibility[i].eligible() || p.maySleep(&g, i))
		})
	})
	if recorded >= 0 {
		return recorded
	}
	exists := func(i int) bool { return slices.ContainsFunc(u, p.Candidates[i].present) }
	if i := p.best(u, func(i int) bool { return exists(i) && p.usable(i) }); i >= 0 {
		return i
	}
	if i := p.best(u, func(i int) bool { return exists(i) && !p.eligibility[i].mustLeave }); i >= 0 {
		return i
	}
	return p.best(u, exists)
}

// maySleep tells whether a group without replicas stays in a candidate that cannot be read for now. Requests may wait
// for it there.
func (p *scheduler) maySleep(g *reservation.ReplicaGroup, i int) bool {
	c, e := &p.Candidates[i], p.eligibility[i]
	return len(g.Replicas) == 0 && c.Exists && !c.Gone && !e.mustLeave && (e.reason == ReasonUnreachable || e.reason == ReasonUnknown)
}

// sleepsIn tells whether all groups of a service may stay in a candidate without replicas.
func (p *scheduler) sleepsIn(i int) bool {
	return !slices.ContainsFunc(p.Groups, func(g reservation.ReplicaGroup) bool { return !p.maySleep(&g, i) })
}

// recordedIn tells whether the recorded home of a group is a candidate. The cluster of the XR has
// no name, so a record without an epoch is none.
func (p *scheduler) recordedIn(group key.GroupID, i int) bool {
	h := p.Homes[group]
	return h.Epoch > 0 && h.Cluster == p.Candidates[i].Name
}

// best returns the candidate with the most of a unit, or -1. Best is one where the rest of the
// unit fits, then one where more of it is ready. Of equal ones it is the first.
func (p *scheduler) best(u unit, is func(int) bool) int {
	qualified := slices.DeleteFunc(p.inPreference(), func(i int) bool { return !is(i) })
	if len(qualified) == 1 {
		return qualified[0]
	}
	target, most := -1, 0
	for _, i := range qualified {
		has := 0
		if p.wouldFit(i, u) {
			has = 1 << 30
		}
		for _, r := range reservation.Replicas(u) {
			if p.Candidates[i].Ready[r.Name] {
				has++
			}
		}
		if target < 0 || has > most {
			target, most = i, has
		}
	}
	return target
}

// nextHome returns the home of a unit from now on. It is the same one, unless that has to be
// left, or a group could not answer there in time. Then it is a cluster where the unit can start.
// Without such a cluster it stays the same.
//
// A unit can exist in several clusters after another policy, or after its home changed. If the
// rest does not fit into its home, or no requests can reach that, a cluster that has all of it
// becomes its home.
func (p *scheduler) nextHome(u unit, home int) int {
	has, hasAll := func(i int) bool { return p.canStartIn(u, i) }, p.hasAllThatExists(u)
	if home >= 0 && !p.eligibility[home].mustLeave && !p.startFailed(u, home) {
		if fits := p.wouldFit(home, u); p.usable(home) && (fits || hasAll(home)) {
			return home
		}
		has = hasAll
	} else if p.mayRunElsewhere(u, home) {
		has = hasAll
	}
	if other := p.best(u, func(i int) bool { return i != home && p.usable(i) && has(i) }); other >= 0 {
		return other
	}
	return home
}

// mayRunElsewhere tells whether a cluster that cannot be read for now has some of a unit. It may
// serve, or will soon, so nothing of the unit is started anew.
func (p *scheduler) mayRunElsewhere(u unit, home int) bool {
	return p.another(home, func(i int, c *Candidate) bool {
		return !p.eligibility[i].eligible() && !p.eligibility[i].mustLeave && slices.ContainsFunc(u, c.present)
	})
}

// another tells whether something is true of another candidate.
func (p *scheduler) another(than int, is func(i int, c *Candidate) bool) bool {
	for i := range p.Candidates { // Each is large, and is not copied.
		if i != than && is(i, &p.Candidates[i]) {
			return true
		}
	}
	return false
}

// canStartIn tells whether each group of a unit can start in a candidate.
func (p *scheduler) canStartIn(u unit, i int) bool {
	return !slices.ContainsFunc(u, func(g reservation.ReplicaGroup) bool { return !p.Candidates[i].canStart(&g) })
}

// hasAllThatExists returns a function that tells whether all that exists of a unit in any cluster exists in a candidate. What exists is
// looked up once for all candidates: a unit may have thousands of replicas that wait, and there may be a thousand candidates.
func (p *scheduler) hasAllThatExists(u unit) func(i int) bool {
	exist := sync.OnceValue(func() []key.ReplicaID {
		var all []key.ReplicaID
		for _, r := range reservation.Replicas(u) {
			if p.another(-1, func(_ int, c *Candidate) bool { return c.Present[r.Name] }) {
				all = append(all, r.Name)
			}
		}
		return all
	})
	return func(i int) bool {
		lacks := func(r key.ReplicaID) bool { return !p.Candidates[i].Present[r] }
		return len(exist()) > 0 && !slices.ContainsFunc(exist(), lacks)
	}
}

// startFailed tells whether a group of a unit could not answer in its home for the start time-out. The
// time-out doubles with each home, so that a service that is ready nowhere moves ever more seldom.
func (p *scheduler) startFailed(u unit, home int) bool {
	if !p.eligibility[home].eligible() {
		return false
	}
	c := &p.Candidates[home]
	return slices.ContainsFunc(u, func(g reservation.ReplicaGroup) bool {
		h := p.Homes[g.Name]
		if !p.recordedIn(g.Name, home) || h.Started || p.answersIn(&g, home) {
			return false
		}
		return p.timeIsOut(&g, c, h.Epoch)
	})
}

// timeIsOut tells whether a replica of a group exists in a candidate for longer than its home of an epoch may take to answer.
func (p *scheduler) timeIsOut(g *reservation.ReplicaGroup, c *Candidate, epoch int64) bool {
	const mostDoublings = 6
	timeout := p.StartTimeout << min(max(epoch-1, 0), mostDoublings)
	return p.StartTimeout > 0 && slices.ContainsFunc(g.Replicas, func(r reservation.ReplicaRequest) bool {
		at, known := c.Created[r.Name]
		return known && p.Now.Sub(at) >= timeout
	})
}

// answersIn tells whether a group can answer requests in a cluster. Where the gateways refuse the service, it does not, as long as those
// of another cluster may accept it. If all refuse it, moving helps nobody.
func (p *scheduler) answersIn(g *reservation.ReplicaGroup, i int) bool {
	return p.readyIn(g, i) && (!p.Candidates[i].Refused || !p.accepting)
}

// readyIn tells whether a group would answer in a cluster if the gateways there accept it.
func (p *scheduler) readyIn(g *reservation.ReplicaGroup, i int) bool {
	return p.Candidates[i].RouterReady && p.canAnswer(g, i)
}

func (p *scheduler) canAnswer(g *reservation.ReplicaGroup, i int) bool {
	return p.Candidates[i].canAnswer(g, p.AnswerAlone)
}

// answersInFailed tells whether a group answers where it could not do so in time.
func (p *scheduler) answersInFailed(g *reservation.ReplicaGroup, h reservation.Home) bool {
	i := slices.IndexFunc(p.Candidates, func(c Candidate) bool { return c.Name == h.FailedIn })
	return h.FailedIn != "" && i >= 0 && p.answersIn(g, i)
}

// setHome assigns a unit to its home, and records it. A group has started there once it can answer. One that
// joins others which have started there counts as started, because they must not move for it. So does one
// whose record is lost, where others answer.
func (p *scheduler) setHome(u unit, home, was int) {
	c := &p.Candidates[home]
	joins := slices.ContainsFunc(u, func(g reservation.ReplicaGroup) bool {
		h := p.Homes[g.Name]
		return p.recordedIn(g.Name, home) && h.Started || h.Epoch == 0 && p.readyIn(&g, home)
	})
	for i := range u {
		g := &u[i]
		h := p.Homes[g.Name]
		if !p.recordedIn(g.Name, home) {
			failed := ""
			if was >= 0 && p.eligibility[was].eligible() && p.recordedIn(g.Name, was) && !h.Started && !p.answersIn(g, was) {
				failed = h.Cluster
			}
			h = reservation.Home{Cluster: c.Name, Epoch: h.Epoch + 1, FailedIn: failed, Started: joins}
		}
		if p.answersInFailed(g, h) {
			h.FailedIn = ""
		}
		h.Started = h.Started || p.answersIn(g, home)
		p.homes[g.Name] = h
	}
	p.takes(home, u) // Its missing replicas take capacity if they fit.
	p.assigned[home] = append(p.assigned[home], u...)
}
