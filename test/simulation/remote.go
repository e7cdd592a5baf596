package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

var (
	lwsKind        = kindOf{"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"}
	deploymentKind = kindOf{"apps/v1", "Deployment"}
	podGroupKind   = kindOf{"scheduling.volcano.sh/v1beta1", "PodGroup"}
	routeKind      = kindOf{"gateway.networking.k8s.io/v1", "HTTPRoute"}
	gatewayKind    = kindOf{"gateway.networking.k8s.io/v1", "Gateway"}
	poolKind       = kindOf{"inference.networking.k8s.io/v1", "InferencePool"}
	nodeKind       = kindOf{"v1", "Node"}
)

// A node of a remote cluster.
type node struct {
	name   string
	labels map[string]string
	gpus   int
}

func (n *node) has(labels map[string]string) bool {
	for k, v := range labels {
		if n.labels[k] != v {
			return false
		}
	}
	return true
}

// A remote is a model of a cluster that provider-kubernetes reaches.
type remote struct {
	w         *World
	name      string
	reachable bool
	pools     []nodePool
	region    string
	// stopPolicy is that of the InferenceCluster, and gateway tells that its entrypoint is a Gateway.
	stopPolicy string
	gateway    bool
	// quotas are those of the InferenceCluster by their namespace, and most is the most GPUs that each namespace was ever allowed.
	quotas map[string]quota
	most   map[string]int
	// kueue tells that Kueue admits what runs there, within kueueQuota GPUs.
	kueue      bool
	kueueQuota int
	// uid is the UID of its namespace kube-system, and confirmed what the InferenceCluster expects: empty for the first.
	uid, confirmed string
	// abandoned tells that the cluster was abandoned, and not cleaned up since.
	abandoned bool
	// wiped tells that it has lost all objects once.
	wiped bool
	// pickerless tells that no endpoint picker is ready there.
	pickerless bool
	nodes      []*node
	objects    map[task]*remoteObject
	// leaving are the pods of LeaderWorkerSets that are gone.
	leaving [][]pod
	// limit are the most nodes that it ever had.
	limit []*node
	// active are objects whose controllers have something to do.
	active []task
	noted  map[task]bool
	made   int
}

// A remoteObject is an object of a remote cluster. Its status lags behind what runs.
type remoteObject struct {
	manifest   document
	uid        string
	generation int
	status     document
	// full is the object as it is read, nil if it has to be made again.
	full document
	// runs is what runs of a LeaderWorkerSet.
	runs *group
	// observed is the generation that its controller has seen, and template what the pods of a LeaderWorkerSet are made of.
	observed int
	template *structpb.Value
}

// A group is the pods of a LeaderWorkerSet.
type group struct {
	pods []pod
	// started tells that they are on nodes, ready that they answer requests.
	started, ready bool
	// stopping are pods of the template before, which still are on nodes.
	stopping []pod
	// outdated tells that the pods are still those of the template before, and go next.
	outdated bool
	// lost tells that nodes have gone on which its pods were.
	lost bool
}

// A pod is what a pod requests, and of which nodes.
type pod struct {
	gpus  int
	nodes map[string]string
}

// as tells whether an object is as a manifest says.
func (o *remoteObject) as(manifest document) bool { return equalDocuments(o.manifest, manifest) }

func (o *remoteObject) body() document {
	if o.full == nil {
		meta := with(object(o.manifest, "metadata"), structpb.NewNumberValue(float64(o.generation)), "generation")
		o.full = with(o.manifest, structpb.NewStructValue(withText(meta, o.uid, "uid")), "metadata")
		if o.status != nil {
			o.full = with(o.full, structpb.NewStructValue(o.status), "status")
		}
	}
	return o.full
}

func (r *remote) note(t task) {
	if !r.noted[t] {
		r.noted[t] = true
		r.active = append(r.active, t)
	}
}

// apply makes an object, or changes it.
func (r *remote) apply(manifest document) *remoteObject {
	k, n := identify(manifest)
	t := task{k, n}
	o := r.objects[t]
	if o == nil {
		r.made++
		o = &remoteObject{uid: fmt.Sprintf("%s-%d", r.name, r.made)}
		r.objects[t] = o
	}
	if o.manifest == nil || !equal(at(o.manifest, "spec"), at(manifest, "spec")) {
		o.generation++
	}
	o.manifest, o.full = manifest, nil
	r.note(t)
	return o
}

// delete deletes an object. The pods of a LeaderWorkerSet take longer.
func (r *remote) delete(k kindOf, n name) {
	t := task{k, n}
	o := r.objects[t]
	if o == nil {
		return
	}
	before := r.w.answersBefore()
	defer func() { r.w.checkAnswers(before, fmt.Sprintf("%s %s is deleted in %s", k.kind, n, r.name)) }()
	if o.runs != nil && o.runs.started {
		r.leaving = append(r.leaving, o.runs.pods)
	}
	if o.runs != nil && len(o.runs.stopping) > 0 {
		r.leaving = append(r.leaving, o.runs.stopping)
	}
	delete(r.objects, t)
	r.w.reported(r, t)
	if k == lwsKind {
		r.endWorkload(n, o.uid)
	}
}

// setStatus changes the status of an object, and tells the provider.
func (r *remote) setStatus(t task, o *remoteObject, status fields) {
	o.observed = o.generation
	d := newDocument(status)
	if o.status != nil && equalDocuments(o.status, d) {
		return
	}
	o.status, o.full = d, nil
	if r == r.w.here {
		r.w.server.setStatus(t.kind, t.name, d)
		return
	}
	r.w.reported(r, t)
}

// next lets a random controller of the cluster act.
func (r *remote) next() bool {
	n := len(r.active)
	if len(r.leaving) > 0 {
		n++
	}
	if n == 0 {
		return false
	}
	i := r.w.rand.IntN(n)
	if i == len(r.active) {
		j := r.w.rand.IntN(len(r.leaving))
		r.leaving = slices.Delete(r.leaving, j, j+1)
		r.wakeWaiting()
		return true
	}
	t := r.active[i]
	r.active = slices.Delete(r.active, i, i+1)
	delete(r.noted, t)
	o := r.objects[t]
	if o == nil {
		return true
	}
	switch t.kind {
	case lwsKind:
		r.runGroup(t, o)
	case deploymentKind:
		r.runDeployment(t, o)
	case workloadKind:
		r.runWorkload(t, o)
	case podGroupKind:
		r.setStatus(t, o, fields{"phase": "Running"})
	case routeKind, poolKind:
		r.setStatus(t, o, parentsStatus(o.manifest, o.generation))
	}
	return true
}

// wakeWaiting notes the LeaderWorkerSets that wait for nodes.
func (r *remote) wakeWaiting() {
	for _, t := range r.ofKind(lwsKind) {
		if o := r.objects[t]; o.runs == nil || !o.runs.started {
			r.note(t)
		}
	}
}

// ofKind returns the objects of a kind that the cluster has, in the order of their names.
func (r *remote) ofKind(k kindOf) []task {
	var all []task
	for t := range r.objects {
		if t.kind == k {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b task) int { return compareNames(a.name, b.name) })
	return all
}

// runGroup takes a LeaderWorkerSet one step further: pods are made, get nodes, and become ready. A change of the template replaces
// them, unless the partition holds it back. The controller reports an update before the pods are gone (LeaderWorkerSet v0.9.0,
// pkg/controllers/leaderworkerset_controller.go, updateConditions).
func (r *remote) runGroup(t task, o *remoteObject) {
	g := o.runs
	if g == nil {
		g = &group{pods: podsOf(o.manifest)}
		o.runs, o.template = g, templateOf(o.manifest)
		r.queue(t, o)
	}
	held := heldBack(o.manifest)
	restart := !held && !equal(o.template, templateOf(o.manifest))
	g.outdated = g.outdated && restart
	if restart && (g.outdated || !g.ready) {
		o.template = templateOf(o.manifest)
	}
	switch {
	case restart && g.ready && !g.outdated:
		g.outdated = true
		r.w.trace(subject("pods "+t.name.String()), "are outdated in %s", r.name)
	case restart && len(g.stopping) == 0 && g.started:
		before := r.w.answersBefore()
		defer func() { r.w.checkAnswers(before, fmt.Sprintf("the pods of %s are replaced in %s", t.name, r.name)) }()
		r.w.trace(subject("pods "+t.name.String()), "are replaced in %s", r.name)
		o.runs = &group{pods: podsOf(o.manifest), stopping: g.pods}
	case restart:
		o.runs = &group{pods: podsOf(o.manifest), stopping: g.stopping}
	case len(g.stopping) > 0:
		g.stopping = nil
		r.wakeWaiting()
	case !g.started:
		if r.kueue && !r.admitted(t, o) || !r.kueue && !fits(r.nodes, append(r.occupied(), g.pods...)) {
			r.groupStatus(t, o)
			return // It is noted again when pods go, or nodes come.
		}
		g.started = true
		r.w.trace(subject("pods "+t.name.String()), "are on nodes in %s: %d GPUs", r.name, gpusOf(g.pods))
	case !g.ready && !fails(o.template):
		g.ready = true
		r.w.trace(subject("pods "+t.name.String()), "are ready in %s", r.name)
	default:
		r.groupStatus(t, o)
		return
	}
	r.groupStatus(t, o)
	r.note(t)
}

// fails tells that pods of a template never get ready.
func fails(template *structpb.Value) bool {
	return slices.ContainsFunc(items(template.GetStructValue(), "workerTemplate", "spec", "containers"), func(c document) bool {
		return strings.HasSuffix(text(c, "image"), brokenImage)
	})
}

func templateOf(manifest document) *structpb.Value {
	return at(manifest, "spec", "leaderWorkerTemplate")
}

func (r *remote) groupStatus(t task, o *remoteObject) {
	ready, updated := 0, 0
	if o.runs.ready {
		ready = 1
	}
	if equal(o.template, templateOf(o.manifest)) {
		updated = 1
	}
	is := func(kind string, is bool) fields {
		status := "False"
		if is {
			status = "True"
		}
		return fields{"type": kind, "status": status, "reason": "x", "lastTransitionTime": "2026-03-01T12:00:00Z"}
	}
	r.setStatus(t, o, fields{
		"observedGeneration": o.generation, "replicas": 1, "readyReplicas": ready, "updatedReplicas": updated,
		"conditions": list[any](is("Available", ready > 0 && !o.runs.outdated), is("UpdateInProgress", o.runs.outdated)),
	})
}

func (r *remote) runDeployment(t task, o *remoteObject) {
	want := 1
	if v := at(o.manifest, "spec", "replicas"); v != nil {
		want = int(v.GetNumberValue())
	}
	have, available := 0, "False"
	if o.observed > 0 && !r.pickerless {
		have, available = want, "True"
	}
	first := o.observed == 0
	r.setStatus(t, o, fields{
		"observedGeneration": o.generation, "replicas": want, "readyReplicas": have, "availableReplicas": have, "updatedReplicas": want,
		"conditions": list[any](fields{"type": "Available", "status": available, "reason": "x", "lastTransitionTime": "2026-03-01T12:00:00Z"}),
	})
	if first {
		r.note(t)
	}
}

// parentsStatus is the status of a route or a pool that its gateways have accepted.
func parentsStatus(d document, generation int) fields {
	refs := items(d, "spec", "parentRefs")
	if len(refs) == 0 {
		refs = []document{newDocument(fields{"name": "inference-gateway"})}
	}
	var parents []any
	for _, ref := range refs {
		var conditions []any
		for _, kind := range []string{"Accepted", "ResolvedRefs"} {
			conditions = append(conditions, fields{"type": kind, "status": "True", "reason": kind, "observedGeneration": generation, "lastTransitionTime": "2026-03-01T12:00:00Z"})
		}
		parents = append(parents, fields{"parentRef": ref.AsMap(), "controllerName": "example.com/gateway", "conditions": conditions})
	}
	return fields{"parents": parents}
}

// occupied are all pods that are on nodes.
func (r *remote) occupied() []pod {
	var all []pod
	for _, pods := range r.leaving {
		all = append(all, pods...)
	}
	for t, o := range r.objects {
		if t.kind == lwsKind && o.runs != nil {
			all = append(all, o.runs.stopping...)
			if o.runs.started {
				all = append(all, o.runs.pods...)
			}
		}
	}
	return all
}

// lose takes nodes away, and restarts the groups that do not fit any more.
func (r *remote) lose(n int) {
	r.setNodes(len(r.nodes) - n)
	var running []task
	for t, o := range r.objects {
		if t.kind == lwsKind && o.runs != nil && (o.runs.started || len(o.runs.stopping) > 0) {
			running = append(running, t)
		}
	}
	slices.SortFunc(running, func(a, b task) int { return compareNames(a.name, b.name) })
	r.w.rand.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
	for _, t := range running {
		if r.kueue || fits(r.nodes, r.occupied()) {
			return
		}
		o := r.objects[t]
		o.runs = &group{pods: o.runs.pods, lost: true}
		r.groupStatus(t, o)
		r.note(t)
	}
	if !r.kueue && !fits(r.nodes, r.occupied()) {
		r.leaving = nil
	}
}

// wipe removes everything from the cluster.
func (r *remote) wipe() {
	r.wiped = true
	var all []task
	for t := range r.objects {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b task) int {
		return cmp.Or(cmp.Compare(a.kind.kind, b.kind.kind), compareNames(a.name, b.name))
	})
	r.objects, r.leaving, r.active, r.noted = map[task]*remoteObject{}, nil, nil, map[task]bool{}
	r.restore()
	for _, t := range all {
		r.w.reported(r, t)
	}
}
