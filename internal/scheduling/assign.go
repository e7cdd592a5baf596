package scheduling

import (
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// A Problem is what Assign decides about.
type Problem struct {
	Policy          v1alpha1.PlacementPolicy
	Groups          []reservation.ReplicaGroup
	PodRequirements map[string]capacity.PodRequirements
	Candidates      []Candidate
	FailoverAfter   time.Duration
	// Now is compared with the time since when a cluster is out of reach.
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
	ReasonUnreachable          = "Unreachable"
	ReasonWeight               = "WeightIsZero"
	ReasonDuplicate            = "DuplicateTarget"
	ReasonInsufficientCapacity = "InsufficientCapacity"
	ReasonNotNeeded            = "NotNeeded"
	ReasonRequested            = "Requested"
	ReasonNotReserved          = "NotReserved"
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
	// Pending are the replicas that are assigned to the cluster and not reserved yet.
	Pending []key.ReplicaID
	// Serves tells that the fleet route should send requests there.
	Serves bool
	// AllOrNothing tells that all groups have to fit at once.
	AllOrNothing bool
	// AwaitsFailover tells that the cluster is out of reach, and that the service leaves it if
	// it stays so.
	AwaitsFailover bool
	// Abandoned tells that what runs there is forgotten, and not deleted.
	Abandoned bool
}

// Assign decides for each candidate which replicas run there. What exists in a cluster and must
// leave it (see eligibility) does so only after it runs elsewhere. An abandoned cluster is left
// as soon as its Objects are orphaned.
func Assign(problem Problem) []Decision {
	p := &scheduler{Problem: problem, assigned: make([][]reservation.ReplicaGroup, len(problem.Candidates)), eligibility: make([]eligibility, len(problem.Candidates))}
	for i := range problem.Candidates {
		p.eligibility[i] = p.eligibilityOf(&problem.Candidates[i])
	}
	switch problem.Policy {
	case v1alpha1.PlacementFailover:
		p.failover()
	case v1alpha1.PlacementSpread:
		p.spread()
	default:
		for i := range p.Candidates {
			if p.eligibility[i].eligible() {
				p.assigned[i] = problem.Groups
			}
		}
	}
	all := make([]Decision, 0, len(problem.Candidates))
	for i := range problem.Candidates {
		all = append(all, p.decide(i))
	}
	return all
}

type scheduler struct {
	Problem

	// eligibility has, for each candidate, whether it can be used, and why not.
	eligibility []eligibility
	// assigned has the groups that are assigned to each candidate.
	assigned [][]reservation.ReplicaGroup
	// requestsAll tells that capacity is requested of all candidates, and that only one of them
	// will be used.
	requestsAll bool
}

// fits tells whether the missing replicas of some groups fit, or at least those that suffice to
// start: the required ones, or the first one if none is required. Under Failover, a service
// without required replicas starts only as a whole. It takes their capacity. The message says
// why not all of them fit.
func (p *scheduler) fits(free *capacity.Free, c *Candidate, groups []reservation.ReplicaGroup) (bool, string) {
	ok, why := p.fitsWhole(free, c, groups)
	if ok || c.NotSchedulable != "" {
		return ok, why
	}
	missing := c.missing(groups)
	required := slices.DeleteFunc(slices.Clone(missing), func(r reservation.ReplicaRequest) bool { return !r.Required })
	if len(required) == len(missing) || len(required) == 0 && p.Policy == v1alpha1.PlacementFailover {
		return false, why
	}
	if len(required) == 0 {
		required = missing[:1]
	}
	request := reservation.CapacityRequest{PodRequirements: p.PodRequirements}
	ok, _ = free.Allocate(request.PodSets(required))
	return ok, why
}

// fitsWhole tells whether all missing replicas fit, and takes their capacity.
func (p *scheduler) fitsWhole(free *capacity.Free, c *Candidate, groups []reservation.ReplicaGroup) (bool, string) {
	missing := c.missing(groups)
	switch {
	case len(missing) == 0:
		return true, ""
	case c.NotSchedulable != "":
		return false, c.NotSchedulable
	}
	request := reservation.CapacityRequest{PodRequirements: p.PodRequirements}
	return free.Allocate(request.PodSets(missing))
}

// free returns copies of what is free in the candidates.
func (p *scheduler) free() []capacity.Free {
	free := make([]capacity.Free, len(p.Candidates))
	for i := range p.Candidates {
		free[i] = p.Candidates[i].Free.Clone()
	}
	return free
}

// fitting returns predicates that tell whether all of some groups fit into a candidate, and
// whether at least the required replicas do. One that is true has taken their capacity.
func (p *scheduler) fitting(free []capacity.Free, groups []reservation.ReplicaGroup) (all, required func(int) bool) {
	by := func(fits func(*capacity.Free, *Candidate, []reservation.ReplicaGroup) (bool, string)) func(int) bool {
		return func(i int) bool {
			ok, _ := fits(&free[i], &p.Candidates[i], groups)
			return ok
		}
	}
	return by(p.fitsWhole), by(p.fits)
}

// eligible returns the indexes of the eligible candidates, in their order.
func (p *scheduler) eligible() []int {
	var all []int
	for i := range p.Candidates {
		if p.eligibility[i].eligible() {
			all = append(all, i)
		}
	}
	return all
}

// blocked tells whether some of the groups exist in a cluster where they can neither stay nor
// leave. Such a cluster cannot be read, or has been out of reach for a short time.
func (p *scheduler) blocked(groups []reservation.ReplicaGroup) bool {
	for i := range p.Candidates {
		if p.eligibility[i].eligible() || p.eligibility[i].mustLeave {
			continue
		}
		if slices.ContainsFunc(groups, p.Candidates[i].present) {
			return true
		}
	}
	return false
}

// first returns the first of some candidates for the first predicate that is true for any, or -1.
func first(candidates []int, are ...func(int) bool) int {
	for _, is := range are {
		if at := slices.IndexFunc(candidates, is); at >= 0 {
			return candidates[at]
		}
	}
	return -1
}

func (p *scheduler) decide(i int) Decision {
	c := &p.Candidates[i]
	d := Decision{Name: c.Name, State: v1alpha1.StateNotPlaced, Run: map[key.ReplicaID]bool{}, AllOrNothing: p.Policy == v1alpha1.PlacementFailover, Abandoned: c.StopPolicy == v1alpha1.StopAbandon}
	for _, group := range p.Groups {
		switch {
		case contains(p.assigned[i], &group):
			p.addAssigned(&d, c, group)
		case c.present(group) && p.mustStay(i, &group):
			d.addPresent(c, group)
		}
	}
	d.State, d.Reason, d.Message = p.explain(i, &d)
	d.AwaitsFailover = d.Reason == ReasonUnreachable && len(d.Run) > 0 && !p.eligibility[i].mustLeave && p.Policy != v1alpha1.PlacementReplicate
	// A cluster keeps its traffic for groups that are assigned to it and exist there. Groups that
	// are only pending there do not count.
	stays := slices.ContainsFunc(p.assigned[i], c.present)
	d.Serves = len(d.Run) > 0 && c.StopPolicy != v1alpha1.StopAbandon && (stays || p.mayServeCopy(i) || !p.servedElsewhere(i))
	return d
}

// addAssigned adds a group that is assigned to the cluster. Replicas that are reserved or exist
// run, and the others are pending.
func (p *scheduler) addAssigned(d *Decision, c *Candidate, group reservation.ReplicaGroup) {
	d.Groups = append(d.Groups, group)
	for i := range group.Replicas {
		if r := &group.Replicas[i]; c.existsOrReserved(r) && !p.requestsAll {
			d.Run[r.Name] = true
		} else {
			d.Pending = append(d.Pending, r.Name)
		}
	}
}

// addPresent adds the replicas that exist of a group that is assigned elsewhere.
func (d *Decision) addPresent(c *Candidate, group reservation.ReplicaGroup) {
	present := reservation.ReplicaGroup{Name: group.Name}
	for _, r := range group.Replicas {
		if c.Present[r.Name] {
			present.Replicas = append(present.Replicas, r)
			d.Run[r.Name] = true
		}
	}
	d.Groups = append(d.Groups, present)
}

func contains(groups []reservation.ReplicaGroup, group *reservation.ReplicaGroup) bool {
	return slices.ContainsFunc(groups, func(o reservation.ReplicaGroup) bool { return o.Name == group.Name })
}
