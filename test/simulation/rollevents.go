package simulation

import "slices"

// rollEvents are what users, admins and the world do while services roll out. Each leaves enough units: see resizeRoles.
var rollEvents = []event{
	{"roll-image", 4, func(w *World) {
		u := w.randomService()
		u.image++
		w.update(u, "image changed")
	}},
	{"roll-broken-image", 2, func(w *World) {
		u := w.randomService()
		// What is wrong is mended by another image, or by that from before.
		u.image += 1 - 2*w.rand.IntN(2)
		u.broken = !u.broken
		w.update(u, "image changed")
	}},
	{"roll-scale", 2, func(w *World) {
		u := w.randomService()
		w.resizeRoles(u)
		w.update(u, "scaled")
	}},
	{"roll-pause", 2, func(w *World) {
		u := w.randomService()
		u.paused = !u.paused
		w.update(u, "paused")
	}},
	{"roll-strategy", 3, func(w *World) {
		u := w.randomService()
		u.partition = max(0, w.rand.IntN(5)-1)
		u.surge, u.unavailable = w.rand.IntN(3), w.rand.IntN(3)
		for !w.enough(u) {
			u.surge, u.unavailable = w.rand.IntN(3), w.rand.IntN(3)
		}
		w.update(u, "rollout changed")
	}},
	{"roll-lose-nodes", 1, func(w *World) {
		// Nobody could know that the pods are gone to which a new route leads.
		w.known(func() {
			if r := w.randomCluster(); len(r.nodes) > 1 {
				r.lose(1)
				r.update("a node is gone")
			}
		})
	}},
	{"roll-drain", 2, func(w *World) {
		// A service whose only unit a rollout may stop in a cluster is not moved from one to another.
		if slices.ContainsFunc(w.services, func(u *user) bool { return !u.alone }) {
			return
		}
		r := w.randomCluster()
		r.stopPolicy = []string{"Drain", ""}[w.rand.IntN(2)]
		r.update("stop policy")
	}},
	{"roll-pickers", 4, func(w *World) {
		// No reconcile could know that the cluster to which a new route leads has just lost its endpoint picker.
		w.known(func() {
			r := w.randomCluster()
			r.losePickers(!r.pickerless && w.rand.IntN(2) == 0)
		})
	}},
	{"roll-reach", 2, func(w *World) {
		w.known(func() {
			r := w.randomCluster()
			r.reach(!r.reachable)
		})
	}},
}

// known lets something happen of which everybody knows before anything else happens.
func (w *World) known(happens func()) {
	w.settle()
	happens()
	w.settle()
}

// resizeRoles gives each role one to three replicas, and a service with groups two or three, so that a rollout may not stop all units.
func (w *World) resizeRoles(u *user) {
	for {
		if u.groups > 0 {
			u.groups = 2 + w.rand.IntN(2)
		}
		for i := range u.roles {
			u.roles[i].replicas = 1 + w.rand.IntN(3)
		}
		if w.enough(u) {
			return
		}
	}
}

// enough tells that a rollout may not stop all units of a service.
func (w *World) enough(u *user) bool {
	n := u.units()
	if !u.alone {
		n *= len(w.fleet)
	}
	return n > u.mayStop()
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
