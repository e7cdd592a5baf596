package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// A Problem is what Assign decides about.
type Problem struct {
	Policy          v1alpha1.PlacementPolicy
	Groups          []reservation.ReplicaGroup
	PodRequirements map[string]capacity.PodRequirements
	Candidates      []Candidate
	// AnswerAlone are the roles of which a replica answers requests without one of another role.
	AnswerAlone map[string]bool
	// Waits tells that requests wait in the endpoint picker as long as no replica is ready.
	Waits bool
	// Homes of the groups, as the last request that was observed has them.
	Homes         map[key.GroupID]reservation.Home
	FailoverAfter time.Duration
	// StartTimeout is how long a group may take until it can answer in a new home. 0 means any time.
	StartTimeout time.Duration
	// Size returns the bytes of a replica in an answer to Crossplane, and Room is how many there are for all of
	// them. Nil means that there is room for everything.
	Size func(key.ReplicaID) int
	Room int
	// Selected tells that the placement selects its clusters by labels, so it prefers none of them.
	Selected bool
	// Seed orders clusters that are equally good.
	Seed string
	// Now is compared with times of clusters, homes and requests.
	Now time.Time
}

// Reasons of a Decision, in any state.
const (
	ReasonUnknown              = "ClusterUnknown"
	ReasonDeselected           = "NotSelected"
	ReasonDraining             = "Draining"
	ReasonAbandoned            = "Abandoned"
	ReasonOnHold               = "OnHold"
	ReasonPaused               = "Paused"
	ReasonNotReconciled        = "NotReconciled"
	ReasonUnreachable          = "Unreachable"
	ReasonWeight               = "WeightIsZero"
	ReasonDuplicate            = "DuplicateTarget"
	ReasonInsufficientCapacity = "InsufficientCapacity"
	ReasonNotSchedulable       = "ClusterNotSchedulable"
	ReasonGang                 = "GangNotAdmitted"
	ReasonNoCache              = "NoModelCache"
	ReasonNotNeeded            = "NotNeeded"
	ReasonRequested            = "Requested"
	ReasonNotReserved          = "NotReserved"
	ReasonStartTimedOut        = "StartTimedOut"
	ReasonMovesInParts         = "MovesInParts"
)

// A Decision is what Assign decides about a service in one cluster.
type Decision struct {
	Name    string
	State   v1alpha1.PlacementState
	Reason  string
	Message string
	// Groups of which capacity is requested: those that are assigned to the cluster, and those
	// that still exist there.
	Groups []reservation.ReplicaGroup
	// Run are the replicas to run there.
	Run map[key.ReplicaID]bool
	// Held are those of them that keep their pods as they are, because the capacity for what
	// they request now is not reserved. Generations are those of what they request now.
	Held        map[key.ReplicaID]bool
	Generations map[key.ReplicaID]int64
	// Pending are the replicas that are assigned to the cluster and not reserved yet.
	Pending []key.ReplicaID
	// Extra are the replicas beyond those that are wanted. Those that are not in Run wait for their
	// capacity, and are not in Pending.
	Extra map[key.ReplicaID]bool
	// Partial are those of them that run while others of their group do not.
	Partial map[key.ReplicaID]bool
	// Serves tells that the fleet route should send requests there.
	Serves bool
	// TakenOver tells that other clusters answer, or let wait, what is requested here.
	TakenOver bool
	// Due is when the service may have to leave the cluster, if that stays out of reach. Zero if it need not, or if
	// that is not known.
	Due time.Time
	// Abandoned tells that what runs there is forgotten, and not deleted.
	Abandoned bool
}

// A Solution is what Assign decides.
type Solution struct {
	// Decisions about the candidates, in their order.
	Decisions []Decision
	// Homes of the groups from now on.
	Homes map[key.GroupID]reservation.Home
}

// Assign decides for each candidate which replicas run there, and which home each group has.
// What exists in a cluster and must leave it (see eligibility) does so only after it runs
// elsewhere. An abandoned cluster is left as soon as its Objects are orphaned.
func Assign(problem Problem) Solution { return newScheduler(problem).assign() }

// searchSteps bounds all searches of one call, in node classes that they look at. Each of a tenant's replicas may fit nowhere.
const searchSteps = 20 * capacity.SearchSteps

func newScheduler(problem Problem) *scheduler {
	n := len(problem.Candidates)
	p := &scheduler{
		Problem: problem, eligibility: make([]eligibility, n), order: make([]int, n), steps: searchSteps,
		assigned: make([][]reservation.ReplicaGroup, n), asked: make([][]reservation.ReplicaGroup, n), homes: map[key.GroupID]reservation.Home{}, startTimedOut: map[int]bool{}, emptied: map[int]bool{},
	}
	p.Candidates = slices.Clone(p.Candidates)
	for i := range p.Candidates {
		p.Candidates[i].Free.Budget = &p.steps
	}
	return p
}

func (p *scheduler) assign() Solution {
	n := len(p.Candidates)
	rank := make([]string, n)
	for i := range p.Candidates {
		c := &p.Candidates[i]
		p.eligibility[i] = p.eligibilityOf(c)
		p.someReachable = p.someReachable || p.eligibility[i].eligible() && !c.NoEntrypoint
		p.order[i], rank[i] = i, naming.Hash(p.Seed, c.Name)
	}
	if p.Policy == v1alpha1.PlacementSpread || p.Selected {
		slices.SortStableFunc(p.order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	}
	if p.Policy == v1alpha1.PlacementFailover || p.Policy == v1alpha1.PlacementSpread {
		p.placeUnits()
	} else {
		for i := range p.Candidates {
			if p.eligibility[i].eligible() || p.sleepsIn(i) {
				p.assigned[i] = p.Groups
			}
		}
	}
	p.places = p.looked
	for i := range p.assigned {
		p.runs = append(p.runs, names(p.assigned[i]))
	}
	all := make([]Decision, 0, n)
	for i := range p.Candidates {
		all = append(all, p.decide(i))
	}
	p.moveInParts(all)
	return Solution{Decisions: all, Homes: p.homes}
}

type scheduler struct {
	Problem

	// eligibility has, for each candidate, whether it can be used, and why not.
	eligibility []eligibility
	// order has the candidates, the preferred ones first.
	order []int
	// someReachable tells that requests can reach an eligible candidate.
	someReachable bool
	// accepting tells that the gateways of an eligible candidate do not refuse the service.
	accepting bool
	// steps is what is left of searchSteps.
	steps int
	// free is what is left in each candidate after what was assigned or asked so far. It never grows. So pods that did
	// not fit into it once are not tried again: refused has them for each candidate.
	free    []capacity.Free
	refused []map[string]bool
	// assigned has the groups that each candidate is to run: those whose home it is, or all
	// under Replicate. asked has the groups for which it is only asked to reserve capacity.
	assigned, asked [][]reservation.ReplicaGroup
	// runs has the names of the groups in assigned, once each group has its home.
	runs []map[key.GroupID]bool
	// emptied is what allReplaced has told of candidates so far.
	emptied map[int]bool
	// startTimedOut has the candidates where a group could not answer in time.
	startTimedOut map[int]bool
	// looked tells that a decision depended on free capacity. places tells that one about a home did: only
	// then may a message name what is free (explain).
	looked, places bool
	homes          map[key.GroupID]reservation.Home
}

// fits tells whether the missing replicas of some groups fit, or at least those that suffice to
// start: the required ones, or the first one if none is required. Under Failover, a service
// without required replicas starts only as a whole. It takes their capacity. The message says
// why not all of them fit.
func (p *scheduler) fits(free *capacity.Free, c *Candidate, groups []reservation.ReplicaGroup) (bool, string) {
	ok, why := p.fitsWhole(free, c, groups)
	return ok || p.startFits(free, c, groups), why
}

// startFits tells whether at least those of the missing replicas fit that suffice to start, if not all of them do, and takes their capacity.
func (p *scheduler) startFits(free *capacity.Free, c *Candidate, groups []reservation.ReplicaGroup) bool {
	if c.NotSchedulable != "" {
		return false
	}
	if p.Policy == v1alpha1.PlacementFailover {
		groups = []reservation.ReplicaGroup{reservation.Merged(groups)}
	}
	missing := c.missing(groups)
	required := reservation.ToStart(missing)
	if len(required) == len(missing) {
		return false
	}
	ok, _ := free.Allocate(reservation.PodSets(p.PodRequirements, required))
	return ok
}

// takes tells whether the missing replicas of a unit fit into what is left in a candidate, as fits does, and takes their capacity.
func (p *scheduler) takes(i int, u unit) bool { return p.takesWhole(i, u) || p.takesStart(i, u) }

// takesWhole tells whether all of them fit, and takes their capacity.
func (p *scheduler) takesWhole(i int, u unit) bool {
	return p.askOnce(i, "whole ", u, func() bool {
		ok, _ := p.fitsWhole(&p.free[i], &p.Candidates[i], u)
		return ok
	})
}

// takesStart tells whether those of them fit that suffice to start, and takes their capacity.
func (p *scheduler) takesStart(i int, u unit) bool {
	return p.askOnce(i, "start ", u, func() bool { return p.startFits(&p.free[i], &p.Candidates[i], u) })
}

// wouldFit tells whether all missing replicas of a unit fit into what is left in a candidate. It takes nothing.
func (p *scheduler) wouldFit(i int, u unit) bool {
	return p.askOnce(i, "whole ", u, func() bool {
		free := p.free[i].Clone()
		ok, _ := p.fitsWhole(&free, &p.Candidates[i], u)
		return ok
	})
}

// askOnce tells whether a unit fits into a candidate. It does not ask again if a unit that misses the same pods did not fit there. A service
// may have thousands of units of the same pods, and may select a thousand clusters.
func (p *scheduler) askOnce(i int, what string, u unit, fits func() bool) bool {
	what += podsOf(p.Candidates[i].missing(u))
	if p.refused[i][what] {
		return false
	}
	ok := fits()
	if !ok {
		if p.refused[i] == nil {
			p.refused[i] = map[string]bool{}
		}
		p.refused[i][what] = true
	}
	return ok
}

// podsOf names the pods of some replicas, and which of them are required. That says which replicas there are, because all replicas of a
// role have the same pods.
func podsOf(replicas []reservation.ReplicaRequest) string {
	required, others := map[string]int64{}, map[string]int64{}
	for _, r := range replicas {
		to := others
		if r.Required {
			to = required
		}
		for name, n := range r.Pods {
			to[name] += n
		}
	}
	return fmt.Sprint(required, others) // In the order of the names.
}

// fitsWhole tells whether all missing replicas fit, and takes their capacity.
func (p *scheduler) fitsWhole(free *capacity.Free, c *Candidate, groups []reservation.ReplicaGroup) (bool, string) {
	missing := c.missing(groups)
	switch {
	case len(missing) == 0:
		return true, ""
	case c.NotSchedulable != "":
		return false, c.NotSchedulable
	case c.Uncounted:
		return true, ""
	}
	p.looked = true
	return free.Allocate(reservation.PodSets(p.PodRequirements, missing))
}

func (p *scheduler) decide(i int) Decision {
	c := &p.Candidates[i]
	d := Decision{Name: c.Name, Run: map[key.ReplicaID]bool{}, Abandoned: c.StopPolicy == v1alpha1.StopAbandon}
	asked := names(p.asked[i])
	exists := func(r *reservation.ReplicaRequest) bool { return c.Present[r.Name] }
	for _, group := range p.Groups {
		switch {
		case p.runs[i][group.Name] && !p.eligibility[i].mustLeave:
			runs := c.existsOrReserved
			if p.homeUnread(&group, i) {
				runs = exists
			}
			d.add(group, runs)
		case asked[group.Name]:
			d.add(group, exists)
		case c.present(group) && p.mustStay(i, &group): // Of a group that is assigned elsewhere, what exists stays.
			group.Replicas = slices.DeleteFunc(slices.Clone(group.Replicas), func(r reservation.ReplicaRequest) bool { return !c.Present[r.Name] })
			d.add(group, exists)
		}
	}
	d.State, d.Reason, d.Message = p.explain(i, &d)
	if p.keepsQueue(i, &d) {
		d.State, d.Groups = v1alpha1.StateLeaving, withoutReplicas(p.Groups)
		d.Message += p.queueLeaves(i)
	}
	if d.Reason == ReasonUnreachable && d.State == v1alpha1.StatePlaced && p.Policy != v1alpha1.PlacementReplicate {
		d.Due = c.failoverAt(p.FailoverAfter)
	}
	// A cluster keeps its traffic for groups that are assigned to it and exist there. Groups that
	// are only pending there do not count.
	stays := !p.eligibility[i].mustLeave && slices.ContainsFunc(p.assigned[i], c.present)
	d.TakenOver = p.takenOver(i) && p.allReplaced(i)
	d.Serves = len(d.Run) > 0 && !d.Abandoned && (stays || p.mayServeCopy(i) || !p.servedElsewhere(i))
	return d
}

// homeUnread tells whether nothing of a group may start in a candidate so far: the request that was read asks others for it
// too, and does not name its home. A call that has not read yet what the one before has written may choose another home. Its request is refused then, because
// both replace the same version. What it starts is not, and runs where the former call has withdrawn the request.
func (p *scheduler) homeUnread(g *reservation.ReplicaGroup, i int) bool {
	if p.Policy == v1alpha1.PlacementReplicate || p.recordedIn(g.Name, i) {
		return false
	}
	return p.another(i, func(_ int, c *Candidate) bool { return c.Requested[g.Name] && !c.present(*g) })
}

// add adds a group that is wanted in the cluster. Some of its replicas run, and the others are
// pending.
func (d *Decision) add(group reservation.ReplicaGroup, runs func(*reservation.ReplicaRequest) bool) {
	d.Groups = append(d.Groups, group)
	for i := range group.Replicas {
		if r := &group.Replicas[i]; runs(r) {
			d.Run[r.Name] = true
		} else {
			d.Pending = append(d.Pending, r.Name)
		}
	}
}

// names returns the names of some groups.
func names(groups []reservation.ReplicaGroup) map[key.GroupID]bool {
	all := make(map[key.GroupID]bool, len(groups))
	for i := range groups {
		all[groups[i].Name] = true
	}
	return all
}
