package observe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A formerStatus is the part of the status of the last call that tells where the service ran, and why not.
type formerStatus struct {
	Status struct {
		Clusters []struct {
			Name     string                  `json:"name"`
			State    v1alpha1.PlacementState `json:"state"`
			Reason   string                  `json:"reason"`
			Assigned []v1alpha1.Replicas     `json:"assigned"`
		} `json:"clusters"`
	} `json:"status"`
}

var formerView = incoming.NewCompositeView[formerStatus]()

// moves says what has changed since the last call about where the service runs, for events and logs.
// It says nothing while nothing changes.
func (e *evaluator) moves(now []v1alpha1.ClusterStatus) ([]string, []composite.Decision) {
	if e.plan.Schedule == nil {
		return nil, nil
	}
	former := formerView.In(e.state.req.Composite())
	before := make([]v1alpha1.ClusterStatus, 0, len(former.Status.Clusters))
	for _, c := range former.Status.Clusters {
		before = append(before, v1alpha1.ClusterStatus{Name: c.Name, State: c.State, Reason: c.Reason, Assigned: c.Assigned})
	}
	all, units := movesBetween(before, now)
	return describe(all, units), decisions(all, units)
}

// Limits of the events of one call.
const (
	maxMoves = 8
	// maxNamed is the most units, and the most clusters, that an event names.
	maxNamed = 6
	// maxDecisions is the most decisions of one call. A status that somebody has edited may have any number.
	maxDecisions = 64
)

// movesBetween compares two statuses. It returns the moves in their order, and the units of each.
func movesBetween(before, now []v1alpha1.ClusterStatus) (all []move, with map[move][]string) {
	was, is := placesOf(before), placesOf(now)
	units := slices.Clone(is.units)
	for _, u := range was.units {
		if is.clusters[u] == nil {
			units = append(units, u)
		}
	}
	with = map[move][]string{}
	for _, u := range units {
		m, moved := moveOf(u, was, is)
		if !moved {
			continue
		}
		if with[m] == nil {
			all = append(all, m)
		}
		with[m] = append(with[m], u)
	}
	return all, with
}

// describe returns the events about moves.
func describe(all []move, with map[move][]string) []string {
	var events []string
	for i, m := range all {
		if i == maxMoves {
			return append(events, fmt.Sprintf("and %d more changes of where the service runs", len(all)-i))
		}
		events = append(events, m.describe(with[m]))
	}
	return events
}

// decisions returns the moves for logs and metrics. A unit that must leave is no decision yet: it has nowhere to
// go.
func decisions(all []move, with map[move][]string) []composite.Decision {
	what := map[step]string{starts: composite.DecisionPlaced, movesOn: composite.DecisionMoved, hasMoved: composite.DecisionReleased, goes: composite.DecisionReleased}
	var decided []composite.Decision
	for _, m := range all {
		if what[m.step] != "" && len(decided) < maxDecisions {
			decided = append(decided, composite.Decision{What: what[m.step], From: m.from, To: m.to, Units: len(with[m])})
		}
	}
	return decided
}

// places are the clusters in which each unit runs: a replica group, or a replica that may run
// in a cluster of its own.
type places struct {
	// units in the order of the status.
	units    []string
	clusters map[string][]string
	status   map[string]*v1alpha1.ClusterStatus
}

func placesOf(status []v1alpha1.ClusterStatus) places {
	p := places{clusters: map[string][]string{}, status: map[string]*v1alpha1.ClusterStatus{}}
	for i := range status {
		c := &status[i]
		p.status[c.Name] = c
		for _, u := range unitsOf(c.Assigned) {
			if p.clusters[u] == nil {
				p.units = append(p.units, u)
			}
			p.clusters[u] = append(p.clusters[u], c.Name)
		}
	}
	return p
}

// unitsOf returns the units of which a status tells. No role has a name that is longer than allowed, so somebody has edited such a status. The
// name would be repeated for each of any number of units.
func unitsOf(assigned []v1alpha1.Replicas) []string {
	var units []string
	for _, r := range assigned {
		if len(r.Role) > v1alpha1.MaxRoleName {
			continue
		}
		of := r.Role
		if r.Group != nil {
			of = strings.TrimSpace(fmt.Sprintf("group %d %s", *r.Group, r.Role))
		}
		if len(r.Indexes) == 0 {
			units = append(units, of)
		}
		for _, i := range r.Indexes {
			units = append(units, fmt.Sprintf("%s %d", of, i))
		}
	}
	return units
}

// leaving tells whether a cluster is being left.
func (p places) leaving(cluster string) bool {
	s := p.status[cluster]
	return s != nil && s.State == v1alpha1.StateLeaving
}

// unknown tells whether something has a place in a cluster, and the status does not say what. It
// does not where the service was not in the fleet, and where Kueue lets none of it run: that neither
// leaves the cluster nor starts in it again. Where requests wait in a cluster that is left, nothing runs.
func (p places) unknown(cluster string) bool {
	s := p.status[cluster]
	if s == nil || len(s.Assigned) > 0 {
		return false
	}
	return s.State == v1alpha1.StatePlaced || s.State == v1alpha1.StatePending && heldByKueue(s.Reason) || s.State == v1alpha1.StateLeaving && len(p.units) == 0
}

// why says why a cluster is left.
func (p places) why(cluster string) string {
	if s := p.status[cluster]; s != nil {
		return s.Message
	}
	return ""
}

// A step is what happens to a unit.
type step int

// The steps of a move, in their order. A unit also starts without a move, and goes.
const (
	starts step = iota
	mustLeave
	movesOn
	hasMoved
	goes
)

// A move is what happens to some units at once, and why.
type move struct {
	step          step
	from, to, why string
}

// moveOf returns what has happened to a unit.
func moveOf(unit string, was, is places) (m move, moved bool) {
	before, now := was.clusters[unit], is.clusters[unit]
	joined := without(now, func(c string) bool { return slices.Contains(before, c) || was.unknown(c) })
	left := without(before, func(c string) bool { return slices.Contains(now, c) || is.unknown(c) })
	leaving := without(now, func(c string) bool { return slices.Contains(joined, c) || !is.leaving(c) })
	switch {
	case len(left) > 0 && len(now) > 0:
		return move{step: hasMoved, from: names(left), to: names(now)}, true
	case len(left) > 0:
		return move{step: goes, from: names(left), why: is.why(left[0])}, true
	case len(joined) > 0 && len(leaving) > 0:
		return move{step: movesOn, from: names(leaving), to: names(joined), why: is.why(leaving[0])}, true
	case len(joined) > 0:
		return move{step: starts, to: names(joined)}, true
	case slices.ContainsFunc(leaving, func(c string) bool { return !was.leaving(c) }):
		return move{step: mustLeave, from: names(leaving), why: is.why(leaving[0])}, true
	}
	return move{}, false
}

func without(clusters []string, excluded func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(clusters), excluded)
}

// names lists clusters.
func names(clusters []string) string {
	all := make([]string, 0, len(clusters))
	for _, c := range clusters {
		all = append(all, text.Cluster(c))
	}
	return text.Names(all, maxNamed)
}

// describe says what happens to some units.
func (m move) describe(units []string) string {
	who := text.Names(units, maxNamed)
	verb := func(one, many string) string {
		if len(units) == 1 {
			return one
		}
		return many
	}
	switch m.step {
	case mustLeave:
		return text.WithReason(who+" must leave "+m.from, m.why)
	case movesOn:
		return text.WithReason(fmt.Sprintf("%s %s from %s to %s", who, verb("moves", "move"), m.from, m.to), m.why)
	case hasMoved:
		return fmt.Sprintf("%s %s in %s now, and left %s", who, verb("runs", "run"), m.to, m.from)
	case goes:
		return text.WithReason(who+" left "+m.from, m.why)
	case starts:
	}
	return fmt.Sprintf("%s %s in %s", who, verb("starts", "start"), m.to)
}
