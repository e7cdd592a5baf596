package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Run lets random things happen, then ends them, and checks what has to hold in the end.
func (w *World) Run() *ViolationError {
	w.randomFleet()
	w.settle()
	for range w.Steps {
		if w.step(); w.violation != nil {
			return w.violation
		}
	}
	w.end()
	return w.violation
}

// end ends all trouble, and checks that everything finds its place.
func (w *World) end() {
	w.calm = true
	w.trace(subject("The end"), "everything is reachable, and nothing more happens")
	for _, r := range w.fleet {
		r.setNodes(len(r.limit))
		if !r.abandoned {
			r.stopPolicy = ""
		}
		r.confirm()
		r.update("calm")
		r.reach(true)
		r.wakeWaiting()
		w.pause(xrKey{clusterKind, name{"", r.name}}, false)
	}
	for _, o := range w.server.list(serviceKind) {
		w.pause(xrKey{serviceKind, o.name}, false)
	}
	w.quiet()
	w.endQueues()
	w.collectLost()
	for _, r := range w.fleet {
		r.cleanUp()
		if r.abandoned && w.violation == nil {
			w.violate("abandoned is left", []string{r.name}, "%s was abandoned, and still has Objects: %s", r.name, w.describe(r))
		}
	}
	w.quiet()
	w.readScales()
	w.checkEnd()
	w.checkUnavailable()
	w.wakeAll()
	w.probe()
}

// collectLost deletes what is or was to run in a cluster, and that its composite resource does not reference, as a person would have to.
// Crossplane writes the references without a lock (composition_functions.go, errApplyXRRefs), so a reconcile that reads an old composite
// resource can lose those to what the last one has made.
func (w *World) collectLost() {
	for _, o := range slices.Concat(w.server.list(objectKind), w.server.list(lwsKind)) {
		inCluster := o.kind != objectKind || strings.HasPrefix(text(o.body, "metadata", "annotations", annotationName), "cluster/")
		if inCluster && w.lost(o) {
			w.trace(o, "was lost by Crossplane, and is deleted by hand")
			w.server.delete(o.kind, o.name)
		}
	}
	w.quiet()
}

// quiet lets time pass until nothing changes any more but by time.
func (w *World) quiet() {
	const rounds = 60
	for range rounds {
		before := w.server.version
		w.now = w.now.Add(pollEvery)
		for _, r := range w.fleet {
			w.provider.poll(r.name)
		}
		w.crossplane.tick()
		w.settle()
		if w.violation != nil {
			return
		}
		if w.server.version == before {
			return
		}
	}
	w.violate("quiet", []string{""}, "something still changes after %s of calm", rounds*pollEvery)
}

// checkEnd checks what has to hold when all is quiet.
func (w *World) checkEnd() {
	if w.violation != nil {
		return
	}
	for _, r := range w.fleet {
		for _, t := range r.ofKind(lwsKind) {
			if r != w.here && len(w.objects[remoteTask{r.name, t}]) == 0 {
				w.violate("freed", []string{t.name.String()}, "%s runs in %s without an Object", t.name, r.name)
			}
			// A replica keeps the broken image that it started with while the rollout waits for capacity.
			if o := r.objects[t]; !o.runs.ready && !(fails(o.template) && heldBack(o.manifest)) {
				w.violate("runs", []string{t.name.String(), r.name}, "%s in %s does not get ready", t.name, r.name)
			}
		}
	}
	for _, r := range w.fleet {
		w.checkReserved(r)
	}
	for _, u := range w.services {
		w.settleSizes(u)
		w.checkPlaced(u)
		w.checkSurge(u)
		w.checkRolledOut(u)
		w.checkWaits(u)
	}
}

// checkReserved checks that whatever a cluster is told to run is reserved there, by the status of its InferenceCluster.
func (w *World) checkReserved(r *remote) {
	o := w.server.get(clusterKind, name{"", r.name})
	if o == nil || r.abandoned || r.kueue {
		return
	}
	type amount struct{ pods, gpus int }
	reserved, runs := map[string]amount{}, map[string]amount{}
	for _, s := range items(object(o.body, "status"), "reservations") {
		gpus, _ := strconv.Atoi(text(s, "resources", "nvidia.com/gpu"))
		reserved[text(s, "uid")] = amount{number(s, "pods"), gpus}
	}
	for n := range w.told[r.name] {
		if at := w.server.get(objectKind, n); at != nil && !at.deleting && w.alive[at.owner] {
			w.noteNewest(r, at)
			a, pods := runs[at.owner], w.told[r.name][n]
			runs[at.owner] = amount{a.pods + len(pods), a.gpus + gpusOf(pods)}
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(runs)) {
		if got := reserved[uid]; got.pods < runs[uid].pods || got.gpus < runs[uid].gpus {
			w.violate("reserved", w.about(r), "the service %s runs %+v in %s, and has %+v reserved: %s", uid, runs[uid], r.name, got, w.describe(r))
		}
	}
}

// candidates are the clusters in which a service may run.
func (w *World) candidates(u *user) []*remote {
	return slices.DeleteFunc(slices.Clone(w.fleet), func(r *remote) bool {
		if len(u.clusters) > 0 {
			return !slices.Contains(u.clusters, r.name)
		}
		return u.region != "" && u.region != r.region
	})
}

// placedIn returns the ids of a service's replicas in each cluster.
func (w *World) placedIn(u *user) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	xr := w.server.get(serviceKind, u.name)
	if xr == nil {
		return all
	}
	for _, at := range w.rendered(xr, lwsKind) {
		c := at.in.name
		if at.object != nil && at.object.deleting {
			continue
		}
		if all[c] == nil {
			all[c] = map[string]bool{}
		}
		all[c][replicaOf(at.manifest)] = true
	}
	return all
}

// checkPlaced checks that nothing of a service waits that would fit.
func (w *World) checkPlaced(u *user) {
	placed, candidates := w.placedIn(u), w.candidates(u)
	switch u.policy {
	case "Replicate":
		for _, r := range candidates {
			w.checkWaiting(u, r, placed, u.missing(placed[r.name]))
		}
	case "Failover":
		for _, r := range candidates {
			if len(placed) == 0 || placed[r.name] != nil && (len(placed) == 1 || w.isHome(u, r)) {
				w.checkWaiting(u, r, placed, u.missing(placed[r.name]))
			}
		}
	case "Spread":
		w.checkSpread(u, placed, candidates)
	}
}

// isHome tells whether a service records a cluster as the home of its groups. One that was spread over several clusters before waits for
// the rest there.
func (w *World) isHome(u *user, r *remote) bool {
	request := w.server.get(configMapKind, name{u.name.namespace, u.name.name + "-capacity-request"})
	return request != nil && slices.ContainsFunc(homesIn(request), func(h document) bool { return text(h, "cluster") == r.name })
}

// waitsBefore tells whether a service that a cluster may serve before u waits for it. Room may then be held for it. One that is not to be
// in the cluster any more, and has no other, still waits there to grow.
func (w *World) waitsBefore(u *user, r *remote) bool {
	if r.kueue {
		return false
	}
	older := true
	for _, other := range w.services {
		if other == u {
			older = false
			continue
		}
		mayRun := slices.Contains(w.candidates(other), r) || len(w.placedIn(other)[r.name]) > 0
		if mayRun && w.servedBefore(other, u, r, older) && !w.complete(other) {
			return true
		}
	}
	return false
}

// complete tells whether a service has all that it wants, none of its replicas waits to grow, and no rollout waits for a further replica.
// Under Failover one cluster has to have all of it. A service that was spread before still waits for that.
func (w *World) complete(u *user) bool {
	if w.growing(u) || len(w.rollingOut(u)) > 0 {
		return false
	}
	placed, all := w.placedIn(u), map[string]bool{}
	for _, r := range w.candidates(u) {
		if u.policy == "Replicate" && len(u.missing(placed[r.name])) > 0 {
			return false
		}
		maps.Copy(all, placed[r.name])
	}
	if u.policy == "Failover" && !slices.ContainsFunc(slices.Collect(maps.Values(placed)), func(at map[string]bool) bool { return len(u.missing(at)) == 0 }) {
		return false
	}
	return len(u.missing(all)) == 0
}

// growing tells whether a replica of a service is not told to run the pods that its user wants, or has no room to get there.
func (w *World) growing(u *user) bool {
	xr, wanted := w.server.get(serviceKind, u.name), map[string][]pod{}
	for _, r := range u.replicas() {
		wanted[r.id()] = r.pods()
	}
	if xr == nil {
		return false
	}
	for _, at := range w.rendered(xr, lwsKind) {
		want, is := wanted[replicaOf(at.manifest)]
		if !is {
			continue
		}
		told := podsOf(at.manifest)
		meanwhile := whileReplaced(told, want)
		hasRoom := func() bool {
			return at.object == nil || !w.waitsBefore(u, at.in) && w.hasRoom(u, at.in, at.object.name, meanwhile)
		}
		if gpusOf(told) != gpusOf(want) || gpusOf(meanwhile) > gpusOf(told) && !hasRoom() {
			return true
		}
	}
	return false
}

// whileReplaced returns pods that need what a replica needs while its pods are replaced one by one: each new pod on the node of a
// former one, if it has one, and the larger of the two counts. Two pods of 4 GPUs and then one of 8 need 12: the second may stop last.
// All of them are in the pool of the former ones, because a replica that runs stays in its pool.
func whileReplaced(former, next []pod) []pod {
	bySize := func(pods []pod) []pod {
		return slices.SortedStableFunc(slices.Values(pods), func(a, b pod) int { return b.gpus - a.gpus })
	}
	all, next := bySize(former), bySize(next)
	for i, p := range next {
		if len(former) > 0 {
			p.nodes = former[0].nodes
		}
		switch {
		case i == len(all):
			all = append(all, p)
		case p.gpus > all[i].gpus:
			all[i] = p
		}
	}
	return all
}

// checkSpread checks that nothing waits of a service that is split over clusters. The rest of a group runs where the group runs.
func (w *World) checkSpread(u *user, placed map[string]map[string]bool, candidates []*remote) {
	all := map[string]bool{}
	for _, in := range placed {
		maps.Copy(all, in)
	}
	for _, part := range u.parts(u.missing(all)) {
		home := u.clusterOf(part, placed)
		for _, r := range candidates {
			if home == "" || home == r.name {
				w.checkWaiting(u, r, placed, part)
			}
		}
	}
}

// missing are the replicas that a user wants and that are not among some.
func (u *user) missing(in map[string]bool) []replica {
	return slices.DeleteFunc(u.replicas(), func(r replica) bool { return in[r.id()] })
}

// checkWaiting checks that replicas that wait do not fit in a cluster.
func (w *World) checkWaiting(u *user, r *remote, placed map[string]map[string]bool, waiting []replica) {
	if len(waiting) == 0 || w.waitsBefore(u, r) || w.keepsFormer(r) {
		return
	}
	ids := make([]string, 0, len(waiting))
	var pods []pod
	for _, p := range waiting {
		pods, ids = append(pods, p.pods()...), append(ids, p.id())
	}
	if w.hasRoom(u, r, name{}, pods) {
		w.violate("placed", append(w.about(r), u.name.String()), "%s waits for room for %v that is free in %s: it runs as %v; %s; status: %s",
			u.name, ids, r.name, placed, w.describe(r), w.placement(u))
	}
}

// parts splits replicas into those that stay together.
func (u *user) parts(all []replica) [][]replica {
	if u.groups == 0 && len(u.roles) == 1 {
		parts := make([][]replica, 0, len(all))
		for _, r := range all {
			parts = append(parts, []replica{r})
		}
		return parts
	}
	groups := map[int][]replica{}
	for _, r := range all {
		groups[r.group] = append(groups[r.group], r)
	}
	parts := make([][]replica, 0, len(groups))
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		parts = append(parts, groups[g])
	}
	return parts
}

// clusterOf returns where other replicas of a part's group run.
func (u *user) clusterOf(part []replica, placed map[string]map[string]bool) string {
	if u.groups == 0 && len(u.roles) == 1 {
		return ""
	}
	for _, c := range slices.Sorted(maps.Keys(placed)) {
		for _, r := range u.replicas() {
			if r.group == part[0].group && placed[c][r.id()] {
				return c
			}
		}
	}
	return ""
}

// placement is what the status says about the placement.
func (w *World) placement(u *user) string {
	o := w.server.get(serviceKind, u.name)
	if o == nil {
		return "deleted"
	}
	for _, c := range items(o.body, "status", "conditions") {
		if t := text(c, "type"); t == "Placed" {
			return text(c, "status") + " " + text(c, "reason") + " " + text(c, "message")
		}
	}
	return "no condition"
}

// probe shows that all free room can be used: services that need all of it, and nothing more, are placed.
func (w *World) probe() {
	if w.violation != nil {
		return
	}
	// Room may be held for a service that waits.
	for _, u := range slices.Clone(w.services) {
		if !w.complete(u) {
			w.remove(u)
		}
	}
	w.quiet()
	if w.violation != nil {
		return
	}
	var probes []*user
	for _, r := range w.fleet {
		probes = append(probes, w.probes(r)...)
	}
	for _, u := range probes {
		w.create(u)
	}
	w.quiet()
	if w.violation != nil {
		return
	}
	for _, u := range probes {
		r := w.remotes[u.clusters[0]]
		if got := len(w.placedIn(u)[r.name]); got != u.roles[0].replicas {
			w.violate("freed", append(w.about(r), u.name.name), "%s needs the %d x %d GPUs that are free in %s, and got %d: %s; %s",
				u.name, u.roles[0].replicas, u.roles[0].gpus, r.name, got, w.placement(u), w.describe(r))
		}
	}
}

// probes are services that together need all that is free in a cluster. Namespaces with a quota have as much of it as that allows, and one
// without a quota has the rest.
func (w *World) probes(r *remote) []*user {
	if r.kueue || r == w.here {
		return nil
	}
	var probes []*user
	var pods []pod
	left := w.quotaLeft(r)
	for _, n := range slices.SortedFunc(maps.Keys(w.told[r.name]), compareNames) {
		pods = append(pods, w.told[r.name][n]...)
	}
	for _, p := range r.pools {
		for gpus := 8; gpus > 0; gpus /= 2 {
			// What is reserved is pinned to its pool and does not move, so room is that of a pool.
			one, n := pod{gpus: gpus, nodes: map[string]string{"pool": p.name}}, 0
			for ; fits(r.nodes, append(slices.Clone(pods), one)); n++ {
				pods = append(pods, one)
			}
			probes = append(probes, w.probesOf(r, one, n, left)...)
		}
	}
	return probes
}

// probesOf are services that together need n replicas of a pod. Left is how many GPUs the namespaces with a quota may have, and gets less.
func (w *World) probesOf(r *remote, one pod, n int, left map[string]int) []*user {
	var probes []*user
	for _, namespace := range append(slices.Sorted(maps.Keys(left)), "team-p") {
		replicas := n
		if gpus, limited := left[namespace]; limited {
			replicas = max(0, min(n, gpus/one.gpus))
			left[namespace] -= replicas * one.gpus
		}
		if n -= replicas; replicas == 0 {
			continue
		}
		probes = append(probes, &user{anyTime: w.Without["start-timeout"],
			name: name{namespace, fmt.Sprintf("probe-%s-%s-%d", r.name, one.nodes["pool"], one.gpus)}, policy: "Failover", clusters: []string{r.name},
			roles: []role{{name: "worker", kind: "worker", replicas: replicas, nodes: 1, gpus: one.gpus, nodeSelector: one.nodes}},
		})
	}
	return probes
}

// Elapsed is the time that has passed in the simulation.
func (w *World) Elapsed() time.Duration { return w.now.Sub(epoch) }
