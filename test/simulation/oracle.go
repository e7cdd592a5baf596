package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fits tells whether pods fit on nodes, with nothing else on them. It is exact: the GPUs of pods and nodes are powers of two, so
// the largest pods first, on the fullest nodes first, wastes nothing. Pods that need a pool come before those that do not.
func fits(nodes []*node, pods []pod) bool {
	free := make([]int, len(nodes))
	for i, n := range nodes {
		free[i] = n.gpus
	}
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b pod) int {
		return cmp.Or(cmp.Compare(len(b.nodes), len(a.nodes)), cmp.Compare(b.gpus, a.gpus))
	})
	for _, p := range pods {
		best := -1
		for i, n := range nodes {
			if free[i] >= p.gpus && n.has(p.nodes) && (best < 0 || free[i] < free[best]) {
				best = i
			}
		}
		if best < 0 {
			return false
		}
		free[best] -= p.gpus
	}
	return true
}

// toldPods returns the pods that an Object tells its cluster to run. Before are those until now, or nil. While a partition holds the
// template back, LeaderWorkerSet v0.9.0 makes pods of the former template, but as many as the new size says (pod_controller.go).
func toldPods(o *stored, before []pod) []pod {
	manifest := object(o.body, "spec", "forProvider", "manifest")
	pods := podsOf(manifest)
	if !heldBack(manifest) || len(before) == 0 {
		return pods
	}
	kept := slices.Clone(before)
	for len(kept) < len(pods) {
		kept = append(kept, kept[len(kept)-1])
	}
	return kept[:len(pods)]
}

// runningPods returns the pods that a cluster has of a LeaderWorkerSet in an Object.
func (r *remote) runningPods(o *stored) []pod {
	k, of := identify(object(o.body, "spec", "forProvider", "manifest"))
	if at := r.objects[task{k, of}]; at != nil && at.runs != nil {
		return at.runs.pods
	}
	return nil
}

// runsNewest tells whether all pods of a LeaderWorkerSet are of the template that its Object has. With a partition they are, if the
// cluster got the LeaderWorkerSet only after it was held back.
func (r *remote) runsNewest(manifest document) bool {
	k, of := identify(manifest)
	at := r.objects[task{k, of}]
	return at != nil && at.as(manifest) && at.runs != nil && at.runs.started && !at.runs.outdated && len(at.runs.stopping) == 0 && equal(at.template, templateOf(manifest))
}

// heldBack tells whether a partition holds the template of a LeaderWorkerSet back.
func heldBack(manifest document) bool {
	return number(manifest, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition") > 0
}

func gpusOf(pods []pod) int {
	n := 0
	for _, p := range pods {
		n += p.gpus
	}
	return n
}

// checkObject checks that what starts in a cluster fits there, node by node, at the moment when the Object is written.
//
// The pods of all LeaderWorkerSets that Objects tell the cluster to run have to fit on the most nodes that the cluster ever had:
// nodes that go excuse what was started, or granted, before. Pods that still stop after their Object is gone do not count.
// Objects that are being deleted, or whose service is gone, count for the invariant "room of the leaving" only.
func (w *World) checkObject(c change, rt remoteTask) {
	o, r := c.either(), w.remotes[rt.cluster]
	if rt.task.kind != lwsKind || r == nil {
		return
	}
	told := w.told[r.name]
	if told == nil {
		told = map[name][]pod{}
		w.told[r.name] = told
	}
	if c.old != nil {
		w.noteNewest(r, c.old)
	}
	before := told[o.name]
	if c.current == nil || c.current.deleting {
		if before != nil {
			w.trace(o, "stopped in %s", r.name)
		}
		delete(told, o.name)
		return
	}
	now := toldPods(c.current, before)
	told[o.name] = now
	if gpusOf(now) <= gpusOf(before) {
		return
	}
	invariant := "no double booking"
	if before == nil {
		w.trace(o, "started in %s: %d pods, %d GPUs", r.name, len(now), gpusOf(now))
	} else {
		w.trace(o, "grown in %s: from %d to %d GPUs", r.name, gpusOf(before), gpusOf(now))
		invariant = "growth fits"
	}
	if w.forgets || !w.alive[o.owner] {
		return // A large fleet counts what it costs, and nothing else.
	}
	if before == nil {
		w.checkAnswered(o, r)
	}
	if r.kueue {
		w.checkQueued(c.current, r)
		return // Nobody counts capacity there.
	}
	w.checkQuota(o, r)
	staying, leaving, gone := w.counted(r)
	switch {
	case !fits(r.limit, staying):
		w.violate(invariant, w.about(r), "%s does not fit in %s, which has %d nodes: %s", o, r.name, len(r.limit), w.describe(r))
	case !fits(r.limit, append(staying, leaving...)):
		w.violate("room of the leaving", append(w.about(r), gone...), "%s started in %s where Objects that are being deleted still have its room: %v", o, r.name, gone)
	}
}

// counted returns the pods that a cluster is told to run, and those that it is told to stop, with the names of their Objects.
func (w *World) counted(r *remote) (staying, leaving []pod, gone []string) {
	for rt, names := range w.objects {
		if rt.cluster != r.name || rt.task.kind != lwsKind {
			continue
		}
		for n := range names {
			o := w.server.get(objectKind, n)
			switch {
			case o == nil || w.lost(o):
			case !o.deleting && w.alive[o.owner]:
				w.noteNewest(r, o)
				staying = append(staying, w.told[r.name][n]...)
			case policiesOf(o).delete:
				leaving, gone = append(leaving, toldPods(o, r.runningPods(o))...), append(gone, n.String())
			}
		}
	}
	slices.Sort(gone)
	return staying, leaving, gone
}

// noteNewest notes that a cluster runs no pods of a former template of a LeaderWorkerSet any more. A cluster that has lost all objects
// makes them anew, of the template that the Object has by then, also behind a partition.
func (w *World) noteNewest(r *remote, o *stored) {
	manifest := object(o.body, "spec", "forProvider", "manifest")
	if _, told := w.told[r.name][o.name]; told && r.runsNewest(manifest) {
		w.told[r.name][o.name] = podsOf(manifest)
	}
}

// lost tells whether Crossplane has lost an Object: see collectLost. The function never sees it again.
func (w *World) lost(o *stored) bool {
	xr := w.ownerOf(o)
	return xr != nil && !o.deleting &&
		!slices.ContainsFunc(items(xr.body, "spec", "crossplane", "resourceRefs"), func(ref document) bool { return text(ref, "name") == o.name.name })
}

// aboutService are texts of the events that matter to a service.
func aboutService(n name) []string {
	return []string{n.String() + " ", n.String() + "-", "InferenceCluster", "Crossplane"}
}

// about are texts of the events that matter to what runs in a cluster.
func (w *World) about(r *remote) []string {
	all := []string{"InferenceCluster " + r.name + " ", "in " + r.name + ":", "in " + r.name + "\n", "-" + r.name + " ", "Crossplane", "The end"}
	for n := range w.told[r.name] {
		if o := w.server.get(objectKind, n); o != nil {
			all = append(all, n.namespace+"/"+o.labels[labelComposite]+" ", n.namespace+"/"+o.labels[labelComposite]+"-")
		}
	}
	return all
}

// describe lists what is told to run in a cluster.
func (w *World) describe(r *remote) string {
	var all []string
	for _, n := range slices.SortedFunc(maps.Keys(w.told[r.name]), compareNames) {
		all = append(all, fmt.Sprintf("%s %d GPUs", n, gpusOf(w.told[r.name][n])))
	}
	return strings.Join(all, ", ")
}

// readFailed tells whether a reconcile read of each cluster in which the service is served that it could not start there in time, and
// is not ready there still. Of what becomes ready later than that no reconcile can know.
func (w *World) readFailed(r *reconcile) bool {
	ready := map[string]bool{}
	for _, o := range r.observed {
		reported := object(o.body, "status", "atProvider", "manifest")
		if k, _ := identify(reported); k == lwsKind && number(reported, "status", "readyReplicas") > 0 {
			ready[text(o.body, "spec", "providerConfigRef", "name")] = true
		}
	}
	failed := map[string]bool{}
	if o := r.observed["configmap/capacity-request"]; o != nil {
		for _, h := range homesIn(o) {
			failed[text(h, "failedIn")] = true
		}
	}
	for c := range w.served {
		if !failed[c] || ready[c] {
			return false
		}
	}
	return true
}

// homesIn are the homes of groups that a capacity request records.
func homesIn(request *stored) []document {
	var all []document
	for _, h := range object(parsed(text(request.body, "data", "request")), "homes").GetFields() {
		all = append(all, h.GetStructValue())
	}
	return all
}

// A copyOf is what a service has in one cluster.
type copyOf struct {
	// ready are the ids of its replicas that answer requests.
	ready map[string]bool
	// answers tells that a replica that answers requests by itself is ready: a worker, or decode.
	answers bool
	// router tells that its endpoint picker is ready.
	router bool
}

// copies returns what a service has in each cluster: Objects that are not being deleted, and their pods.
func (w *World) copies(xr *stored) map[string]*copyOf {
	return w.copiesIn(xr, func(o *stored) bool { return !o.deleting })
}

// copiesIn returns the same of those Objects for which the predicate is true.
func (w *World) copiesIn(xr *stored, counts func(*stored) bool) map[string]*copyOf {
	all := map[string]*copyOf{}
	for _, at := range w.rendered(xr, lwsKind, deploymentKind) {
		manifest, r := at.manifest, at.in
		k, n := identify(manifest)
		if at.object != nil && !counts(at.object) {
			continue
		}
		c := all[r.name]
		if c == nil {
			c = &copyOf{ready: map[string]bool{}}
			all[r.name] = c
		}
		there := r.objects[task{k, n}]
		switch {
		case there == nil:
		case k == deploymentKind:
			c.router = number(there.status, "availableReplicas") > 0
		case there.runs != nil && there.runs.ready:
			c.ready[replicaOf(manifest)] = true
			c.answers = c.answers || texts(manifest, "metadata", "labels")["fusioninfer.io/component-type"] != "prefiller"
		}
	}
	return all
}

// serving returns the clusters in which a service answers requests, in some group with a replica of each role, among the replicas
// that a spec wants. Endpoint pickers count if the spec wants one.
func serving(copies map[string]*copyOf, spec document) map[string]bool {
	all := map[string]bool{}
	for n, c := range copies {
		for g := range max(1, number(spec, "replicas")) {
			if c.serves(g, items(spec, "roles")) {
				all[n] = true
			}
		}
	}
	return all
}

// serves tells that a copy has a ready replica of each role in a group.
func (c *copyOf) serves(group int, roles []document) bool {
	return !slices.ContainsFunc(roles, func(r document) bool {
		if text(r, "componentType") == "router" {
			return !c.router
		}
		for i := range number(r, "replicas") {
			if c.ready[fmt.Sprintf("%d/%s/%d", group, text(r, "name"), i)] {
				return false
			}
		}
		return true
	})
}

// beforeApply notes where a service answers requests.
func (w *World) beforeApply(r *reconcile) {
	w.served, w.wasReached = nil, nil
	if r.key.kind == serviceKind {
		w.served = serving(w.copies(r.xr), r.wanted())
		w.wasReached = w.reached(r.xr)
	}
}

// afterApply checks that a service that answered requests in some cluster still does so. Only replicas that the spec wants, as
// this reconcile read it, count. So what a user takes away is excused, and a move is not. An abandoned cluster is excused, and a
// copy elsewhere that the reconcile read as ready and that was lost since, together with its cluster or with its nodes. So is a copy
// that could not start in time and became ready after the reconcile read it.
func (w *World) afterApply(r *reconcile) {
	if r.key.kind != serviceKind {
		return
	}
	w.checkReached(r.xr, w.wasReached, "it is applied")
	if len(w.served) == 0 {
		return
	}
	for c := range w.served {
		if w.remotes[c].abandoned {
			return
		}
	}
	if len(serving(w.copies(r.xr), r.wanted())) > 0 || w.readLost(r) || w.readFailed(r) {
		return
	}
	w.violate("never zero copies", aboutService(r.key.name), "%s was served in %v, and is not served any more", r.key, slices.Sorted(maps.Keys(w.served)))
}

// readLost tells whether a reconcile read a LeaderWorkerSet as ready that was lost together with all objects of its cluster, and may have
// been made anew since, or whose pods were lost together with nodes. No reconcile can know that before it is reported.
func (w *World) readLost(r *reconcile) bool {
	for _, o := range r.observed {
		reported := object(o.body, "status", "atProvider", "manifest")
		k, n := identify(reported)
		in := w.remotes[text(o.body, "spec", "providerConfigRef", "name")]
		if in == nil || k != lwsKind || number(reported, "status", "readyReplicas") == 0 {
			continue
		}
		there := in.objects[task{k, n}]
		again := there != nil && there.uid != text(reported, "metadata", "uid")
		if in.wiped && (there == nil || again) || there != nil && there.runs != nil && there.runs.lost && !there.runs.ready {
			return true
		}
	}
	return false
}
