package simulation

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
)

var (
	roleKind  = kindOf{"fusioninfer.io/v1alpha1", "InferenceRole"}
	sliceKind = kindOf{"discovery.k8s.io/v1", "EndpointSlice"}
)

// maxScaled is the largest number of replicas that a role of a sleeper may have.
const maxScaled = 4

// sleeps makes a service one that stops while nobody uses it: requests wait in its endpoint picker then.
func (w *World) sleeps(u *user) {
	u.policy = "Failover" // Metrics do not tell copies apart, and no request finds the cluster of a split service in which it is to wait.
	u.router, u.groups = true, 0
	u.roles = u.roles[:1]
	u.roles[0].name, u.roles[0].kind, u.roles[0].replicas, u.roles[0].scaled = "worker", "worker", 1, true
}

// sleeps tells whether the service may stop while nobody uses it.
func (u *user) sleeps() bool { return u.roles[0].scaled }

func (w *World) withSleeper(do func(u *user)) {
	all := slices.DeleteFunc(slices.Clone(w.services), func(u *user) bool { return !u.sleeps() })
	if len(all) > 0 {
		do(all[w.rand.IntN(len(all))])
	}
}

// scaleTarget is the InferenceRole of a service, or nil.
func (w *World) scaleTarget(xr *stored) *stored {
	if xr == nil {
		return nil
	}
	for t := range w.children[xr.uid] {
		if t.kind == roleKind {
			return w.server.get(t.kind, t.name)
		}
	}
	return nil
}

// scale lets the autoscaler of a service ask for a number of replicas.
func (w *World) scale(u *user, n int) {
	o := w.scaleTarget(w.server.get(serviceKind, u.name))
	if o == nil {
		return
	}
	w.trace(xrKey{serviceKind, u.name}, "is to have %d replicas", n)
	w.server.scaled[o.uid] = true
	w.server.edit(o.kind, o.name, func(d document) document {
		return with(d, structpb.NewNumberValue(float64(n)), "spec", "replicas")
	})
}

// keepScale returns a body that is applied as it becomes. Who leaves the number of replicas out leaves it to the autoscaler, if that has
// set it. Who applies another number becomes its only owner.
func (s *server) keepScale(old *stored, body document) document {
	before, now := at(old.body, "spec", "replicas"), at(body, "spec", "replicas")
	switch {
	case old.kind != roleKind || !s.scaled[old.uid]:
	case now == nil:
		return with(body, before, "spec", "replicas")
	case !equal(before, now):
		delete(s.scaled, old.uid)
	}
	return body
}

// readScales notes how many replicas the services are to have that an autoscaler scales.
func (w *World) readScales() {
	for _, u := range w.services {
		if o := w.scaleTarget(w.server.get(serviceKind, u.name)); o != nil && u.sleeps() {
			u.roles[0].replicas = scaleOf(o)
		}
	}
}

func scaleOf(o *stored) int { return min(number(o.body, "spec", "replicas"), maxScaled) }

// wanted is the spec that a reconcile read, with the numbers of replicas that the InferenceRoles say.
func (r *reconcile) wanted() document {
	spec, scaled := object(r.xr.body, "spec"), map[string]int{}
	for _, o := range r.observed {
		if o.kind == roleKind {
			scaled[text(o.body, "spec", "roleName")] = scaleOf(o)
		}
	}
	if len(scaled) == 0 {
		return spec
	}
	var roles []any
	for _, role := range items(spec, "roles") {
		if n, is := scaled[text(role, "name")]; is {
			role = with(role, structpb.NewNumberValue(float64(n)), "replicas")
		}
		roles = append(roles, role.AsMap())
	}
	return with(spec, value(roles), "roles")
}

// ownerOf returns the InferenceService that controls an object, or nil.
func (w *World) ownerOf(o *stored) *stored {
	xr := w.server.get(serviceKind, name{o.name.namespace, o.labels[labelComposite]})
	if xr == nil || xr.uid != o.owner {
		return nil
	}
	return xr
}

// reached returns the clusters whose endpoint pickers get the requests of a sleeper: its route leads there as the gateway accepted it last, and
// they are ready. Requests can wait there until a replica has started.
func (w *World) reached(xr *stored) map[string]bool {
	if !w.Sleepers || w.scaleTarget(xr) == nil {
		return nil
	}
	return w.reachedCopies(xr, w.copies(xr))
}

// reachedCopies returns the clusters to which the accepted route of a service leads, and in which its endpoint picker is ready.
func (w *World) reachedCopies(xr *stored, copies map[string]*copyOf) map[string]bool {
	all := map[string]bool{}
	for t := range w.children[xr.uid] {
		if t.kind != routeKind {
			continue
		}
		for _, c := range w.routedTo(t.name) {
			if copies[c] != nil && copies[c].router {
				all[c] = true
			}
		}
	}
	return all
}

// routedTo are the clusters to which a route leads, as the gateway accepted it last.
func (w *World) routedTo(route name) []string {
	var all []string
	for _, rule := range items(w.accepted[route], "spec", "rules") {
		for _, backend := range items(rule, "backendRefs") {
			switch v := at(backend, "weight"); {
			case v != nil && v.GetNumberValue() == 0:
			case text(backend, "kind") == poolKind.kind:
				all = append(all, w.here.name)
			default:
				all = append(all, w.clustersBehind(name{route.namespace, text(backend, "name")})...)
			}
		}
	}
	return all
}

// clustersBehind are the clusters whose entrypoints have the addresses of a Service.
func (w *World) clustersBehind(service name) []string {
	addresses := map[string]bool{}
	for _, o := range w.server.list(sliceKind) {
		if o.name.namespace != service.namespace || o.labels["kubernetes.io/service-name"] != service.name {
			continue
		}
		for _, e := range items(o.body, "endpoints") {
			for _, a := range at(e, "addresses").GetListValue().GetValues() {
				addresses[a.GetStringValue()] = true
			}
		}
	}
	var all []string
	for _, r := range w.fleet {
		if addresses[r.address()] {
			all = append(all, r.name)
		}
	}
	return all
}

// checkReached checks that requests of a sleeper that reached an endpoint picker still reach one. Of an abandoned cluster nothing is known. If
// the route leads to a cluster that has lost its endpoint picker with all other objects, no reconcile could know that.
func (w *World) checkReached(xr *stored, before map[string]bool, why string) {
	if len(before) == 0 || len(w.reached(xr)) > 0 {
		return
	}
	for c := range before {
		if w.remotes[c].abandoned {
			return
		}
	}
	copies := w.copies(xr)
	for t := range w.children[xr.uid] {
		if t.kind == routeKind && slices.ContainsFunc(w.routedTo(t.name), func(c string) bool { return w.remotes[c].wiped && (copies[c] == nil || !copies[c].router) }) {
			return
		}
	}
	w.violate("requests can wait", aboutService(xr.name), "requests of %s waited in %v, and reach no endpoint picker once %s", xr.name, slices.Sorted(maps.Keys(before)), why)
}

// checkWaits checks that requests can wait for a service that sleeps and may run in some cluster.
func (w *World) checkWaits(u *user) {
	if !u.sleeps() || u.roles[0].replicas > 0 || !slices.ContainsFunc(w.candidates(u), func(r *remote) bool { return !r.abandoned }) {
		return
	}
	if xr := w.server.get(serviceKind, u.name); xr != nil && w.scaleTarget(xr) != nil && len(w.reached(xr)) == 0 {
		w.violate("requests can wait", aboutService(u.name), "requests of %s reach no endpoint picker while it sleeps; status: %s", u.name, w.placement(u))
	}
}

// wakeAll wakes all services that sleep, and checks once more what has to hold in the end.
func (w *World) wakeAll() {
	if !w.Sleepers || w.violation != nil {
		return
	}
	w.trace(subject("The end"), "all services are used")
	for _, u := range w.services {
		if u.sleeps() && u.roles[0].replicas == 0 {
			w.scale(u, 1)
		}
	}
	w.quiet()
	w.readScales()
	w.checkEnd()
}
