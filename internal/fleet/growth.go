package fleet

import (
	"fmt"
	"maps"
	"slices"
)

// A Growth is what pods need more than there was before, where they may go by their
// nodeSelector.
type Growth struct {
	More         Resources
	NodeSelector map[string]string
}

// Grown is what some replicas of a service need more than they did, and others that go with
// them, by where their pods may go. What shrinks elsewhere does not make up for it.
func Grown(was *Ask, before []Replica, now *Ask, after []Replica) []Growth {
	type totals struct {
		was, now     Resources
		nodeSelector map[string]string
	}
	all := map[string]*totals{}
	at := func(s *Shape) *totals {
		id := (&Shape{NodeSelector: s.NodeSelector}).id()
		if all[id] == nil {
			all[id] = &totals{was: Resources{}, now: Resources{}, nodeSelector: s.NodeSelector}
		}
		return all[id]
	}
	count := func(total Resources, n Need) {
		total.add(n.Shape.Requests, n.Pods)
		total.add(Resources{"pods": 1000}, n.Pods)
	}
	for _, n := range was.needs(before) {
		count(at(n.Shape).was, n)
	}
	for _, n := range now.needs(after) {
		count(at(n.Shape).now, n)
	}
	var grown []Growth
	for _, id := range slices.Sorted(maps.Keys(all)) {
		g := Growth{More: Resources{}, NodeSelector: all[id].nodeSelector}
		for name, n := range all[id].now {
			if more := n - all[id].was[name]; more > 0 {
				g.More[name] = more
			}
		}
		if len(g.More) > 0 {
			grown = append(grown, g)
		}
	}
	return grown
}

// Lacks says what the nodes together have too little of for pods that grow, or nothing. That
// they lack nothing does not mean that the pods fit.
func (r *Room) Lacks(grown []Growth) string {
	for _, g := range grown {
		pools := r.poolsFor(&Shape{NodeSelector: g.NodeSelector})
		if len(pools) == 0 {
			return "no pool has the labels " + labelText(g.NodeSelector)
		}
		for _, name := range sortedNames(g.More) {
			if free, total, open := r.sum(pools, name); !open && free < g.More[name] {
				return fmt.Sprintf("%s of %s %s free in %s, and %s more are needed", quantityText(free), quantityText(total), name, r.names(pools), quantityText(g.More[name]))
			}
		}
	}
	return ""
}

// Beyond is what some replicas need more than was granted to them.
func (a *Ask) Beyond(granted Resources, replicas []Replica) []Growth {
	more := Resources{}
	total, _ := sum(a.needs(replicas))
	for name, n := range total {
		if n > granted[name] {
			more[name] = n - granted[name]
		}
	}
	return []Growth{{More: more}}
}

// Covers tells whether what was granted is as much as some replicas need now: the cluster has
// counted them.
func (a *Ask) Covers(granted Resources, replicas []Replica) bool {
	total, _ := sum(a.needs(replicas))
	for name, n := range total {
		if granted[name] < n {
			return false
		}
	}
	return true
}
