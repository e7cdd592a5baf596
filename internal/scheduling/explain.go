package scheduling

import (
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// explain returns the state of a candidate, with a reason and a message.
func (p *scheduler) explain(i int, d *Decision) (v1alpha1.PlacementState, string, string) {
	c, e := &p.Candidates[i], p.eligibility[i]
	switch {
	case len(d.Run) > 0 && e.mustLeave:
		if j := p.unroutableTarget(i); j != "" {
			return v1alpha1.StateLeaving, e.reason, e.message + cannotLeave(j)
		}
		if c.Used {
			return v1alpha1.StateLeaving, e.reason, e.message + ", and is left once nothing there uses it"
		}
		return v1alpha1.StateLeaving, e.reason, e.message + ", and is left once it runs elsewhere"
	case !e.eligible() && (len(d.Run) > 0 || !e.mustLeave && len(p.assigned[i]) > 0): // Some of it runs here, or it sleeps here.
		return v1alpha1.StatePlaced, e.reason, e.message
	case !e.eligible():
		return v1alpha1.StateNotPlaced, e.reason, e.message
	case len(p.wanted(i)) == 0 && len(d.Run) > 0 && p.hasTimedOut(c):
		return v1alpha1.StateLeaving, ReasonStartTimedOut, notReadyInTime + p.locations(i) + ", and leaves this cluster once it is ready there"
	case len(p.wanted(i)) == 0 && len(d.Run) > 0:
		return v1alpha1.StateLeaving, ReasonNotNeeded, p.locations(i) + ", and leaves this cluster once it is ready there"
	case len(d.Pending) > 0 && c.PendingMessage != "":
		return pendingState(d), ReasonNotReserved, c.PendingMessage
	case c.reservedAll(d.Pending):
		return pendingState(d), ReasonRequested, "capacity is reserved, and is used once the choice of this cluster is recorded"
	case len(d.Pending) > 0:
		free := c.Free.Clone()
		if ok, short := p.fits(&free, c, p.wanted(i)); !ok {
			return pendingState(d), c.shortageReason(), short
		}
		return pendingState(d), ReasonRequested, "capacity was requested, and the cluster has not answered yet"
	case p.startTimedOut[i] && !slices.ContainsFunc(p.asked, func(groups []reservation.ReplicaGroup) bool { return len(groups) > 0 }):
		return v1alpha1.StatePlaced, ReasonStartTimedOut, notReadyInTime + "no other cluster has room for it"
	case p.startTimedOut[i]:
		return v1alpha1.StatePlaced, ReasonStartTimedOut, notReadyInTime + p.locations(i)
	case len(p.wanted(i)) > 0:
		return v1alpha1.StatePlaced, "", ""
	}
	// A service that runs does not say what is free elsewhere, because its status would change with that.
	free := c.Free.Clone()
	if p.Policy == v1alpha1.PlacementFailover && (p.places || c.NotSchedulable != "") {
		if ok, short := p.fits(&free, c, p.Groups); !ok {
			return v1alpha1.StateNotPlaced, c.shortageReason(), short
		}
	}
	return v1alpha1.StateNotPlaced, ReasonNotNeeded, p.locations(i)
}

// reservedAll tells whether there are replicas, and all are reserved.
func (c *Candidate) reservedAll(replicas []key.ReplicaID) bool {
	return len(replicas) > 0 && !slices.ContainsFunc(replicas, func(r key.ReplicaID) bool { return !c.Reserved[r] })
}

// notReadyInTime is how messages about StartTimedOut begin.
const notReadyInTime = "it did not become ready in time, and "

// hasTimedOut tells whether a group that runs in a candidate has another home now because it could not answer there in time.
func (p *scheduler) hasTimedOut(c *Candidate) bool {
	return slices.ContainsFunc(p.Groups, func(g reservation.ReplicaGroup) bool {
		h := p.homes[g.Name]
		return h.FailedIn != "" && h.FailedIn == c.Name && p.timeIsOut(&g, c, h.Epoch-1)
	})
}

// shortageReason is the reason why a cluster reserves nothing more.
func (c *Candidate) shortageReason() string {
	switch {
	case c.Paused: // The first two are known only of a cluster that does not answer, and say why (silent).
		return ReasonPaused
	case c.NotReconciled:
		return ReasonNotReconciled
	case c.StopPolicy == v1alpha1.StopHold:
		return ReasonOnHold
	case c.NotSchedulable != "":
		return ReasonNotSchedulable
	}
	return ReasonInsufficientCapacity
}

// pendingState is Placed if something runs there already, else Pending.
func pendingState(d *Decision) v1alpha1.PlacementState {
	if len(d.Run) > 0 {
		return v1alpha1.StatePlaced
	}
	return v1alpha1.StatePending
}

// wanted returns the groups that a candidate is to run, or is asked for.
func (p *scheduler) wanted(i int) []reservation.ReplicaGroup {
	return slices.Concat(p.assigned[i], p.asked[i])
}

// locations says in which other clusters the service runs, and in which it requests capacity.
func (p *scheduler) locations(except int) string {
	var runs, requested []string
	for i := range p.Candidates {
		c := &p.Candidates[i]
		switch {
		case i == except:
		case !p.eligibility[i].mustLeave && (len(c.Present) > 0 || slices.ContainsFunc(p.assigned[i], c.anyExistsOrReserved)):
			runs = append(runs, c.Name)
		case !p.eligibility[i].mustLeave && len(p.wanted(i)) > 0:
			requested = append(requested, c.Name)
		}
	}
	switch {
	case len(requested) == 0 && len(runs) == 0:
		return "it runs in no cluster"
	case len(requested) == 0:
		return "it runs in " + strings.Join(runs, ", ")
	case len(runs) == 0:
		return "capacity is requested in " + strings.Join(requested, ", ")
	}
	return "it runs in " + strings.Join(runs, ", ") + ", and capacity is requested in " + strings.Join(requested, ", ")
}
