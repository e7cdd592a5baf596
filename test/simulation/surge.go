package simulation

import (
	"maps"
	"slices"
)

// rollingOut returns the clusters in which a service with maxSurge has replicas that still keep their pods as they were.
func (w *World) rollingOut(u *user) []*remote {
	if u.surge == 0 {
		return nil
	}
	return w.held(u)
}

// held returns the clusters in which a service has replicas that still keep their pods as they were.
func (w *World) held(u *user) []*remote {
	xr := w.server.get(serviceKind, u.name)
	if xr == nil {
		return nil
	}
	in := map[*remote]bool{}
	for _, at := range w.rendered(xr, lwsKind) {
		if heldBack(at.manifest) {
			in[at.in] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(w.fleet), func(r *remote) bool { return !in[r] })
}

// resize writes the spec of a user whose pods are of another size now.
func (w *World) resize(u *user, why string) {
	w.settleSizes(u)
	u.twice, u.resized = u.resized, true
	w.update(u, why)
}

// settleSizes notes that all replicas of a service have the last size, once none of them keeps former pods and no size is waited for.
func (w *World) settleSizes(u *user) {
	if len(w.held(u)) == 0 && !w.growing(u) && w.runsAll(u) {
		u.resized, u.twice, u.lost = false, false, false
	}
}

// runsAll tells whether each LeaderWorkerSet of a service runs the pods that its Object has.
func (w *World) runsAll(u *user) bool {
	xr := w.server.get(serviceKind, u.name)
	if xr == nil {
		return true
	}
	return !slices.ContainsFunc(w.rendered(xr, lwsKind), func(at renderedObject) bool { return !at.in.runsNewest(at.manifest) })
}

// keepsSizes tells whether clusters may keep room for several sizes of a service's pods, as docs/placement.md says: it was resized again
// before all replicas had the last size, or its request is lost, and with it which size they had. A further replica of maxSurge may not
// fit beside that.
func (u *user) keepsSizes() bool { return u.twice || u.lost && u.resized }

// checkSurge checks that a rollout does not wait for a further replica where there is room for one. It looks at services in which each
// replica is changed by itself. checkUnavailable looks at those for which several sizes are kept.
func (w *World) checkSurge(u *user) {
	if len(u.roles) > 1 || u.groups > 0 || len(u.replicas()) == 0 || w.growing(u) || u.keepsSizes() {
		return
	}
	for _, r := range w.rollingOut(u) {
		if !slices.Contains(w.candidates(u), r) || w.waitsBefore(u, r) || len(u.missing(w.placedIn(u)[r.name])) == len(u.replicas()) {
			continue
		}
		if w.hasRoom(u, r, name{}, u.replicas()[0].pods()) {
			w.violate("surged", append(w.about(r), u.name.String()), "the rollout of %s waits in %s, where a further replica has room: %s; status: %s", u.name, r.name, w.describe(r), w.placement(u))
		}
	}
}

// checkUnavailable does what docs/operations.md advises where a rollout waits for capacity, for services for which several sizes are kept,
// and checks that it helps: what may be unavailable is one more than what is missing. It looks at services in which each replica is
// changed by itself.
func (w *World) checkUnavailable() {
	if w.violation != nil {
		return
	}
	waits := func(u *user) []*remote {
		return slices.DeleteFunc(w.held(u), func(r *remote) bool { return !slices.Contains(w.candidates(u), r) })
	}
	for _, u := range w.services {
		w.settleSizes(u)
	}
	waiting := slices.DeleteFunc(slices.Clone(w.services), func(u *user) bool {
		return !u.keepsSizes() || len(u.roles) > 1 || u.groups > 0 || len(waits(u)) == 0 || w.growing(u)
	})
	if len(waiting) == 0 {
		return
	}
	for _, u := range waiting {
		u.unavailable = 1 + w.lacking(u)
		w.update(u, "maxUnavailable changed")
	}
	w.quiet()
	for _, u := range waiting {
		if held := waits(u); len(held) > 0 {
			w.violate("rolled out", append(w.about(held[0]), u.name.String()), "replicas of %s in %s keep the pods that they had, though %d may be unavailable: %s; status: %s",
				u.name, held[0].name, u.unavailable, w.describe(held[0]), w.placement(u))
		}
	}
	w.checkEnd()
}

// lacking returns how many replicas that a user wants do not exist where they may run.
func (w *World) lacking(u *user) int {
	placed, all, n := w.placedIn(u), map[string]bool{}, 0
	for _, r := range w.candidates(u) {
		maps.Copy(all, placed[r.name])
		n += len(u.missing(placed[r.name]))
	}
	if u.policy == "Replicate" {
		return n
	}
	return len(u.missing(all))
}

// checkRolledOut checks that a rollout of a service comes to its end where all of its replicas run. One that waits for capacity uses
// up what may be unavailable.
func (w *World) checkRolledOut(u *user) {
	if held := w.held(u); len(held) > 0 && w.complete(u) {
		w.violate("rolled out", append(w.about(held[0]), u.name.String()), "all replicas of %s run, and some in %s keep the pods that they had: %s; status: %s",
			u.name, held[0].name, w.describe(held[0]), w.placement(u))
	}
}

// hasRoom tells whether a cluster has the room, and the quota, for some pods of a service. The pods of one Object do not count.
func (w *World) hasRoom(u *user, r *remote, but name, more []pod) bool {
	if r.kueue {
		return true
	}
	return fits(r.nodes, slices.Concat(w.taken(r, func(n name) bool { return n != but }), more)) &&
		w.quotaAllows(u.name.namespace, r, but, more, true)
}

// taken returns the pods of some Objects for which a cluster has no room left: those that it is told to run. While a LeaderWorkerSet keeps
// the pods that it had, it has room to replace them by those that it makes next.
func (w *World) taken(r *remote, counts func(name) bool) []pod {
	var all []pod
	for n, pods := range w.told[r.name] {
		if !counts(n) {
			continue
		}
		o := w.server.get(objectKind, n)
		if running := r.runningPods(o); gpusOf(running) > gpusOf(pods) {
			pods = running
		}
		if manifest := object(o.body, "spec", "forProvider", "manifest"); heldBack(manifest) {
			pods = whileReplaced(pods, w.heldPods(o.owner, manifest))
		}
		all = append(all, pods...)
	}
	return all
}

// heldPods returns the pods that a LeaderWorkerSet makes once its template is no longer held back. No partition holds a size back, so the
// manifest has the former one until then. If the template is what its user wants, so is the size.
func (w *World) heldPods(owner string, manifest document) []pod {
	next := podsOf(manifest)
	for _, u := range w.services {
		if xr := w.server.get(serviceKind, u.name); xr == nil || xr.uid != owner {
			continue
		}
		for _, r := range u.replicas() {
			if want := r.pods(); r.id() == replicaOf(manifest) && want[0].gpus == next[0].gpus {
				return want
			}
		}
	}
	return next
}

// keepsFormer tells whether a service keeps the pods that it had in a cluster, because a rollout waits there for a further replica, or
// because several sizes are kept for it. They may take more room than those that it wants.
func (w *World) keepsFormer(r *remote) bool {
	return slices.ContainsFunc(w.services, func(u *user) bool {
		return slices.Contains(w.rollingOut(u), r) || u.keepsSizes() && slices.Contains(w.held(u), r)
	})
}
