package scheduling

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// moveInParts keeps groups from starting in another cluster while an answer to Crossplane has no room
// for them beside everything that runs. As soon as a group has left its former cluster, the next one
// starts. A group that runs nowhere else is not kept back, because nothing would make room for it. Nor
// is the first one, while no other moves: if it does not fit, the answer is refused, which says why.
func (p *scheduler) moveInParts(all []Decision) {
	if p.Policy == v1alpha1.PlacementReplicate || p.Size == nil {
		return
	}
	next, moving := p.moves(all)
	if len(next) == 0 {
		return
	}
	size := 0
	for _, d := range all {
		for r := range d.Run {
			size += p.Size(r)
		}
	}
	for i := len(next) - 1; size > p.Room && (i > 0 || i == 0 && moving); i-- {
		size -= p.keepBack(next[i].to, next[i].group)
	}
}

// A move is a group that starts in a cluster while another one has it.
type move struct {
	to    *Decision
	group *reservation.ReplicaGroup
}

// moves returns the moves that would start now, and whether any has started before.
func (p *scheduler) moves(all []Decision) (next []move, moving bool) {
	for g := range p.Groups {
		group, present := &p.Groups[g], map[int]bool{}
		for i := range p.Candidates {
			if p.Candidates[i].present(*group) {
				present[i] = true
			}
		}
		moving = moving || len(present) > 1
		for i := range all {
			if len(present) > 0 && !present[i] && runsSome(&all[i], group) {
				next = append(next, move{&all[i], group})
			}
		}
	}
	return next, moving
}

// runsSome tells whether a decision runs some of a group.
func runsSome(d *Decision, g *reservation.ReplicaGroup) bool {
	return slices.ContainsFunc(g.Replicas, func(r reservation.ReplicaRequest) bool { return d.Run[r.Name] })
}

// keepBack keeps a group from starting, and returns how many bytes fewer the answer has.
func (p *scheduler) keepBack(d *Decision, g *reservation.ReplicaGroup) (size int) {
	for i := range g.Replicas {
		if r := g.Replicas[i].Name; d.Run[r] {
			d.wait(r)
			size += p.Size(r)
		}
	}
	if d.State = pendingState(d); d.Reason != "" {
		return size
	}
	d.Reason = ReasonMovesInParts
	d.Message = "an answer to Crossplane has no room for two copies of everything, so each group starts here once one before it has left its former cluster"
	return size
}
