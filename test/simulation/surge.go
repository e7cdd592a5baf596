package simulation

import (
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
	var all []*remote
	for _, r := range w.fleet {
		for t := range w.children[xr.uid] {
			o := w.server.get(t.kind, t.name)
			manifest := object(o.body, "spec", "forProvider", "manifest")
			if heldBack(manifest) && t.kind == objectKind && text(o.body, "spec", "providerConfigRef", "name") == r.name {
				all = append(all, r)
				break
			}
		}
	}
	return all
}

// checkSurge checks that a rollout does not wait for a further replica where there is room for one. It looks at services in which each
// replica is changed by itself.
func (w *World) checkSurge(u *user) {
	if len(u.roles) > 1 || u.groups > 0 || len(u.replicas()) == 0 || w.growing(u) {
		return
	}
	for _, r := range w.rollingOut(u) {
		if !slices.Contains(w.candidates(u), r) || w.waitsBefore(u, r) || len(u.missing(w.placedIn(u)[r.name])) == len(u.replicas()) {
			continue
		}
		if fits(r.nodes, slices.Concat(u.replicas()[0].pods(), w.taken(r))) {
			w.violate("surged", append(w.about(r), u.name.String()), "the rollout of %s waits in %s, where a further replica has room: %s; status: %s", u.name, r.name, w.describe(r), w.placement(u))
		}
	}
}

// checkRolledOut checks that a rollout of a service comes to its end where all of its replicas run. One that waits for capacity uses
// up what may be unavailable.
func (w *World) checkRolledOut(u *user) {
	if held := w.held(u); len(held) > 0 && w.complete(u) {
		w.violate("rolled out", append(w.about(held[0]), u.name.String()), "all replicas of %s run, and some in %s keep the pods that they had: %s; status: %s",
			u.name, held[0].name, w.describe(held[0]), w.placement(u))
	}
}

// taken returns the pods for which a cluster has no room left: those that it is told to run. While a LeaderWorkerSet keeps the pods
// that it had, they are those, or those that its template makes next, whichever need more.
func (w *World) taken(r *remote) []pod { return w.takenBut(r, name{}) }

// takenBut returns the pods for which a cluster has no room left, without those of an Object.
func (w *World) takenBut(r *remote, but name) []pod {
	var all []pod
	for n, pods := range w.told[r.name] {
		if n == but {
			continue
		}
		o := w.server.get(objectKind, n)
		others := [][]pod{r.runningPods(o)}
		if manifest := object(o.body, "spec", "forProvider", "manifest"); heldBack(manifest) {
			others = append(others, podsOf(manifest))
		}
		for _, o := range others {
			if gpusOf(o) > gpusOf(pods) {
				pods = o
			}
		}
		all = append(all, pods...)
	}
	return all
}

// keepsFormer tells whether a service keeps the pods that it had in a cluster, because a rollout waits there for a further replica. They
// may take more room than those that it wants.
func (w *World) keepsFormer(r *remote) bool {
	return slices.ContainsFunc(w.services, func(u *user) bool { return slices.Contains(w.rollingOut(u), r) })
}
