package simulation

import (
	"fmt"
	"maps"
	"slices"
)

// Roll changes the image of a service again and again, while it is scaled, moves, and loses endpoint pickers and the connection to clusters for
// some time. Nothing but these and single writes fails. So a rollout or a move never stops all that answers requests: see checkAnswers.
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
	u := w.rollingUser()
	// A service whose only unit a rollout may stop in a cluster is not moved from one to another.
	drains := u.units() > u.mayStop()
	w.create(u)
	w.settle()
	for range steps {
		switch w.rand.IntN(16) {
		case 0, 1:
			u.image++
			w.update(u, "image changed")
		case 2:
			if u.groups > 0 {
				u.groups = 2 + w.rand.IntN(2)
			}
			w.resizeRoles(u, drains)
			w.update(u, "scaled")
		case 3:
			if r := w.randomCluster(); drains {
				r.stopPolicy = []string{"Drain", ""}[w.rand.IntN(2)]
				r.update("stop policy")
			}
		case 4, 5:
			// Everybody knows of it before anything else happens. No reconcile could know that the cluster to which a new route leads
			// has just lost its endpoint picker.
			w.settle()
			r := w.randomCluster()
			r.losePickers(!r.pickerless && w.rand.IntN(2) == 0)
			w.settle()
		case 6:
			w.settle()
			r := w.randomCluster()
			r.reach(!r.reachable)
			w.settle()
		}
		if w.step(); w.violation != nil {
			break
		}
	}
	for _, r := range w.fleet {
		r.losePickers(false)
	}
	if w.violation == nil {
		w.end()
	}
	return w.violation
}

// rollingUser returns a service with a router.
func (w *World) rollingUser() *user {
	u := worker(0, []string{"Failover", "Spread", "Replicate"}[w.rand.IntN(3)])
	u.router, u.surge = true, w.rand.IntN(3)
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
	w.resizeRoles(u, u.policy != "Replicate")
	return u
}

// resizeRoles gives each role one to three replicas, so that a rollout may not stop all units. Alone tells that those of one cluster have
// to suffice.
func (w *World) resizeRoles(u *user, alone bool) {
	for {
		for i := range u.roles {
			u.roles[i].replicas = 1 + w.rand.IntN(3)
		}
		n := u.units()
		if !alone {
			n *= len(w.fleet)
		}
		if n > u.mayStop() {
			return
		}
	}
}

// losePickers stops all endpoint pickers of a cluster, or starts them again.
func (r *remote) losePickers(lose bool) {
	if r.pickerless == lose {
		return
	}
	r.pickerless = lose
	r.w.trace(subject("endpoint pickers"), "in %s: lost %t", r.name, lose)
	for _, t := range r.ofKind(deploymentKind) {
		r.note(t)
	}
}

// units is how many units the service is to have in a cluster in which all of it runs, as docs/operations.md defines them.
func (u *user) units() int {
	if len(u.roles) > 1 && u.groups > 0 {
		return u.groups
	}
	return u.roles[len(u.roles)-1].replicas * max(1, u.groups)
}

// mayStop is how many units may be unavailable because of a rollout.
func (u *user) mayStop() int {
	switch {
	case u.unavailable > 0:
		return u.unavailable
	case u.surge > 0:
		return 0
	}
	return 1
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

// answersBefore returns where requests of each service are answered, in a world that checks it.
func (w *World) answersBefore() map[*user]map[string]bool {
	if !w.rolls {
		return nil
	}
	all := map[*user]map[string]bool{}
	for _, u := range w.services {
		if xr := w.server.get(serviceKind, u.name); xr != nil {
			all[u] = w.answeredIn(xr)
		}
	}
	return all
}

// checkAnswers checks that requests of a service that were answered somewhere still are, once pods have been stopped or a route was accepted.
func (w *World) checkAnswers(before map[*user]map[string]bool, why string) {
	for u, in := range before {
		if len(in) > 0 && len(w.answeredIn(w.server.get(serviceKind, u.name))) == 0 {
			w.violate("requests are answered", append(aboutService(u.name), "pods", "endpoint pickers", "The end"),
				"requests of %s were answered in %v, and are not once %s; status: %s", u.name, slices.Sorted(maps.Keys(in)), why, w.placement(u))
		}
	}
}
