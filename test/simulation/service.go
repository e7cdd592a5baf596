package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A user is an InferenceService as its user wants it.
type user struct {
	name   name
	policy string
	// anyTime tells that the service may take any time to start.
	anyTime bool
	// clusters are the names of InferenceClusters. If there are none, the service may run in every cluster with the region.
	clusters []string
	region   string
	// groups is spec.replicas, 0 for none.
	groups int
	gang   string
	// surge is spec.rollout.maxSurge.
	surge int
	// unavailable is spec.rollout.maxUnavailable, 0 for the default.
	unavailable int
	// partition and paused are those of spec.rollout.
	partition int
	paused    bool
	// alone tells that its units in one cluster suffice while a rollout changes some of them.
	alone bool
	// resized tells that the size of the pods has changed, and twice that it did while replicas waited for the last change.
	resized, twice bool
	// lost tells that the capacity request was lost.
	lost   bool
	roles  []role
	router bool
	image  int
	// unanswered is when its requests were last not answered, in a world that checks it.
	unanswered time.Time
	// broken tells that engines of the image do not start.
	broken bool
}

// A role of a service.
type role struct {
	name, kind                  string
	replicas, nodes, gpus, cpus int
	nodeSelector                map[string]string
	// scaled tells that its InferenceRole says how many replicas there are, which may be none.
	scaled bool
}

// A replica is one LeaderWorkerSet that a user wants.
type replica struct {
	group int
	role  *role
	index int
}

// replicas are those that a user wants, of all roles but the router.
func (u *user) replicas() []replica {
	var all []replica
	for g := range max(1, u.groups) {
		for i := range u.roles {
			for n := range u.roles[i].replicas {
				all = append(all, replica{g, &u.roles[i], n})
			}
		}
	}
	return all
}

func (r replica) pods() []pod {
	var all []pod
	for range r.role.nodes {
		all = append(all, pod{r.role.gpus, r.role.nodeSelector})
	}
	return all
}

// id is the text by which a replica is known: its labels in the rendered manifest have the same.
func (r replica) id() string { return fmt.Sprintf("%d/%s/%d", r.group, r.role.name, r.index) }

// replicaOf returns the id of the replica that a LeaderWorkerSet is.
func replicaOf(manifest document) string {
	l := texts(manifest, "metadata", "labels")
	group := l["fusioninfer.io/group-index"]
	if group == "" {
		group = "0"
	}
	return group + "/" + l["fusioninfer.io/role-name"] + "/" + l["fusioninfer.io/replica-index"]
}

// spec is the spec of the InferenceService.
func (u *user) spec() fields {
	var roles []any
	if u.router {
		roles = append(roles, fields{
			"name": "router", "componentType": "router", "replicas": 1,
			"httproute": fields{"hostnames": list(u.name.name + ".example.com")},
		})
	}
	for i := range u.roles {
		roles = append(roles, u.roles[i].spec(u.imageName()))
	}
	placement := fields{"policy": u.policy}
	if u.anyTime {
		placement["startTimeoutSeconds"] = 0
	}
	if u.policy == "Failover" {
		placement["failoverAfterSeconds"] = 60
	}
	switch {
	case len(u.clusters) > 0:
		var all []any
		for _, c := range u.clusters {
			all = append(all, fields{"name": c, "inferenceClusterRef": fields{"name": c}})
		}
		placement["clusters"] = all
	case u.region != "":
		placement["clusterSelector"] = fields{"matchLabels": fields{"region": u.region}}
	default:
		placement["clusterSelector"] = fields{}
	}
	spec := fields{"roles": roles}
	if u.policy != "" {
		spec["placement"] = placement
	}
	if u.groups > 0 {
		spec["replicas"] = u.groups
	}
	rollout := fields{}
	if u.surge > 0 {
		rollout["maxSurge"] = u.surge
	}
	if u.unavailable > 0 {
		rollout["maxUnavailable"] = u.unavailable
	}
	if u.partition > 0 {
		rollout["partition"] = u.partition
	}
	if u.paused {
		rollout["paused"] = true
	}
	if len(rollout) > 0 {
		spec["rollout"] = rollout
	}
	if u.gang != "" {
		spec["schedulingStrategy"] = fields{"gang": fields{"mode": u.gang}}
	}
	return spec
}

// brokenImage ends the name of an image whose engines never get ready.
const brokenImage = "-broken"

func (u *user) imageName() string {
	n := "vllm/vllm-openai:v" + strconv.Itoa(u.image)
	if u.broken {
		n += brokenImage
	}
	return n
}

func (r *role) spec(image string) fields {
	args := list("--model", "m")
	if r.kind != "worker" {
		args = append(args, "--kv-transfer-config", `{"kv_connector":"NixlConnector","kv_role":"kv_both"}`)
	}
	limits := fields{"nvidia.com/gpu": strconv.Itoa(r.gpus)}
	if r.cpus > 0 {
		limits["cpu"] = strconv.Itoa(r.cpus)
	}
	pod := fields{"containers": list[any](fields{
		"name": "vllm", "image": image, "args": args,
		"resources": fields{"limits": limits},
	})}
	if len(r.nodeSelector) > 0 {
		s := fields{}
		for k, v := range r.nodeSelector {
			s[k] = v
		}
		pod["nodeSelector"] = s
	}
	f := fields{"name": r.name, "componentType": r.kind, "replicas": r.replicas, "template": fields{"spec": pod}}
	if r.scaled {
		delete(f, "replicas")
		f["scaling"] = fields{"minReplicas": 0, "maxReplicas": maxScaled, "target": fields{"waitingRequests": 3}}
	}
	if r.nodes > 1 {
		f["multinode"] = fields{"nodeCount": r.nodes}
	}
	return f
}

// create makes the InferenceService of a user.
func (w *World) create(u *user) {
	w.services = append(w.services, u)
	w.server.create(newDocument(fields{
		"apiVersion": serviceKind.apiVersion, "kind": serviceKind.kind,
		"metadata": fields{"name": u.name.name, "namespace": u.name.namespace, "labels": fields{labelComposite: u.name.name}},
		"spec":     u.spec(),
	}))
	w.trace(xrKey{serviceKind, u.name}, "created: %s", u)
}

func (u *user) String() string {
	roles := make([]string, 0, len(u.roles))
	for _, r := range u.roles {
		roles = append(roles, fmt.Sprintf("%s:%dx%dx%dgpu%v", r.name, r.replicas, r.nodes, r.gpus, r.nodeSelector))
	}
	return fmt.Sprintf("%s groups=%d gang=%s surge=%d unavailable=%d partition=%d paused=%t router=%t clusters=%v region=%s %v", u.policy, u.groups, u.gang, u.surge, u.unavailable, u.partition, u.paused, u.router, u.clusters, u.region, roles)
}

// update writes the spec of a user. What Crossplane keeps in the spec stays.
func (w *World) update(u *user, why string) {
	w.settleSizes(u)
	w.trace(xrKey{serviceKind, u.name}, "%s: %s", why, u)
	w.server.edit(serviceKind, u.name, func(d document) document {
		spec := newDocument(u.spec())
		if v := at(d, "spec", "crossplane"); v != nil {
			spec = with(spec, v, "crossplane")
		}
		return with(d, value(spec), "spec")
	})
}

// remove deletes an InferenceService.
func (w *World) remove(u *user) {
	w.services = slices.DeleteFunc(w.services, func(v *user) bool { return v == u })
	w.trace(xrKey{serviceKind, u.name}, "deleted")
	w.server.delete(serviceKind, u.name)
}

// randomUser returns a service that could be anyone's.
func (w *World) randomUser() *user {
	w.made++
	number := w.made
	if w.made > 4 && w.rand.IntN(5) == 0 {
		number = 1 + w.rand.IntN(w.made) // A name that was used before.
	}
	n := name{[]string{"team-a", "team-b"}[number%2], "s" + strconv.Itoa(number)}
	if w.server.get(serviceKind, n) != nil {
		n.name = "s" + strconv.Itoa(w.made)
	}
	if w.server.get(serviceKind, n) != nil {
		return nil
	}
	u := &user{name: n, anyTime: w.Without["start-timeout"], policy: []string{"Failover", "Spread", "Replicate"}[w.rand.IntN(3)], router: w.rand.IntN(3) == 0}
	w.randomPlacement(u)
	gpus := func() int { return []int{1, 1, 2, 2, 4, 8}[w.rand.IntN(6)] }
	switch w.rand.IntN(4) {
	case 0: // Single workers.
		u.roles = []role{{name: "worker", kind: "worker", replicas: 1 + w.rand.IntN(4), nodes: 1, gpus: gpus()}}
	case 1: // Workers on several nodes, in groups.
		u.roles = []role{{name: "worker", kind: "worker", replicas: 1, nodes: 1 + w.rand.IntN(3), gpus: 4 << w.rand.IntN(2)}}
		u.groups = w.rand.IntN(4)
	case 2: // Prefill and decode.
		u.roles = []role{
			{name: "prefill", kind: "prefiller", replicas: 1 + w.rand.IntN(2), nodes: 1, gpus: gpus()},
			{name: "decode", kind: "decoder", replicas: 1 + w.rand.IntN(2), nodes: 1, gpus: gpus()},
		}
		u.groups = w.rand.IntN(3)
	default: // Large workers.
		u.roles = []role{{name: "worker", kind: "worker", replicas: 1 + w.rand.IntN(2), nodes: 1 + w.rand.IntN(2), gpus: 8}}
	}
	u.gang = []string{"", "None", "MinimumFirst"}[w.rand.IntN(3)]
	if w.Kueue {
		u.gang = "None" // Kueue admits each replica by itself.
	}
	u.surge = max(0, w.rand.IntN(4)-1)
	for i := range u.roles {
		if w.selects {
			u.roles[i].nodeSelector = map[string]string{"pool": []string{"a", "a", "b"}[w.rand.IntN(3)]}
		}
	}
	if w.Sleepers && w.rand.IntN(2) == 0 {
		w.sleeps(u)
	}
	return u
}

func (w *World) randomPlacement(u *user) {
	u.clusters, u.region = nil, ""
	switch w.rand.IntN(3) {
	case 0:
		for _, i := range w.rand.Perm(len(w.fleet))[:1+w.rand.IntN(len(w.fleet))] {
			u.clusters = append(u.clusters, w.fleet[i].name)
		}
	case 1:
		u.region = "r1"
	}
}
