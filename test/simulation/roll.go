package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Roll changes a service again and again, while its clusters are drained, lose endpoint pickers, and are out of reach for some time: see
// rollEvents. Nothing but these and single writes fails. So a rollout or a move never stops all that answers requests: see checkAnswers.
func (w *World) Roll(steps int) *ViolationError {
	w.rolls = true
	if w.Here {
		w.runHere()
	} else {
		for i := range 1 + w.rand.IntN(3) {
			w.addCluster(fmt.Sprintf("c%d", i), "r1", []nodePool{{"a", 3 + w.rand.IntN(4), 8, false}}, false)
		}
	}
	w.settle()
	w.create(w.rollingUser())
	w.settle()
	for range steps {
		if w.rand.IntN(2) == 0 {
			w.oneOf(rollEvents)
		}
		if w.step(); w.violation != nil {
			return w.violation
		}
		w.answersBefore()
	}
	for _, r := range w.fleet {
		r.losePickers(false)
	}
	for _, u := range w.services {
		u.paused, u.partition, u.broken = false, 0, false
		w.update(u, "nothing is held back")
	}
	w.end()
	return w.violation
}

// rollingUser returns a service with a router.
func (w *World) rollingUser() *user {
	u := worker(0, []string{"Failover", "Spread", "Replicate"}[w.rand.IntN(3)])
	u.router, u.surge, u.image = true, w.rand.IntN(3), 100
	u.roles[0].gpus = 4
	switch w.rand.IntN(3) {
	case 0:
		u.roles = []role{{name: "prefill", kind: "prefiller", nodes: 1, gpus: 2}, {name: "decode", kind: "decoder", nodes: 1, gpus: 4}}
		u.groups = 2 * w.rand.IntN(2)
	case 1:
		u.unavailable = w.rand.IntN(3)
	}
	if w.Here {
		u.policy = ""
	}
	u.alone = u.policy != "Replicate"
	w.resizeRoles(u)
	// A service that has enough units in each cluster by chance may be moved as well.
	u.alone = u.units() > u.mayStop()
	return u
}

// answeredIn returns the clusters that answer requests of a service: the gateway sends them there, the endpoint picker is ready, and so is a
// worker or a decode replica.
func (w *World) answeredIn(xr *stored) map[string]bool {
	// What is being deleted answers until it is gone.
	copies := w.copiesIn(xr, func(*stored) bool { return true })
	all := w.reachedCopies(xr, copies)
	maps.DeleteFunc(all, func(c string, _ bool) bool { return !copies[c].answers })
	return all
}

// answersBefore returns where requests of each service are answered, in a world that checks it. It notes of which services none are.
func (w *World) answersBefore() map[*user]map[string]bool {
	if !w.rolls {
		return nil
	}
	all := map[*user]map[string]bool{}
	for _, u := range w.services {
		if xr := w.server.get(serviceKind, u.name); xr != nil {
			if all[u] = w.answeredIn(xr); len(all[u]) == 0 {
				u.unanswered = w.now
			}
		}
	}
	return all
}

// checkAnswers checks that requests of a service that were answered somewhere still are, once pods have been stopped or a route was accepted.
func (w *World) checkAnswers(before map[*user]map[string]bool, why string) {
	after := w.answersBefore()
	for u, in := range before {
		if len(in) > 0 && len(after[u]) == 0 {
			w.violate("requests are answered", append(aboutService(u.name), "pods", "endpoint pickers", "The end"),
				"requests of %s were answered in %v, and are not once %s; status: %s", u.name, slices.Sorted(maps.Keys(in)), why, w.placement(u))
		}
	}
}

// recovers is how long a new route may still lead nowhere after requests were not answered. It was written by what was read meanwhile.
const recovers = time.Minute

// withoutRecovering leaves out the services whose requests were not answered a short time ago.
func (w *World) withoutRecovering(answers map[*user]map[string]bool) map[*user]map[string]bool {
	maps.DeleteFunc(answers, func(u *user, _ map[string]bool) bool { return w.now.Sub(u.unanswered) < recovers })
	return answers
}
