package simulation

import (
	"crypto/sha1" //nolint:gosec // Kueue makes names with it.
	"encoding/hex"
	"slices"
	"strings"
)

var workloadKind = kindOf{"kueue.x-k8s.io/v1beta2", "Workload"}

// labelQueue is the label by which Kueue finds what it is to admit.
const labelQueue = "kueue.x-k8s.io/queue-name"

// setKueueQuota gives Kueue a random number of GPUs.
func (r *remote) setKueueQuota() {
	if r.kueue {
		r.kueueQuota = 8 * (1 + r.w.rand.IntN(6))
	}
}

// kueueEvents happen besides where Kueue admits what runs in some clusters.
var kueueEvents = []event{
	{"kueue-quota", 3, func(w *World) {
		r := w.randomCluster()
		r.setKueueQuota()
		r.wakeWorkloads()
	}},
	{"evict", 12, func(w *World) { w.randomCluster().evict() }},
}

// workloadOf returns the name of the Workload of a LeaderWorkerSet (kueue v0.15.0, pkg/controller/jobframework/workload_names.go).
func workloadOf(n name, uid string) name {
	owner := n.name + "-0"
	sum := sha1.Sum([]byte("LeaderWorkerSet\nleaderworkerset.x-k8s.io\n" + owner + "\n" + uid)) //nolint:gosec // As above.
	return name{n.namespace, "leaderworkerset-" + owner + "-" + hex.EncodeToString(sum[:])[:5]}
}

// queue makes the Workload of a LeaderWorkerSet.
func (r *remote) queue(t task, o *remoteObject) {
	if !r.kueue {
		return
	}
	n := workloadOf(t.name, o.uid)
	r.apply(newDocument(fields{
		"apiVersion": workloadKind.apiVersion, "kind": workloadKind.kind, "metadata": fields{"name": n.name, "namespace": n.namespace},
		"spec": fields{"gpus": gpusOf(o.runs.pods), "of": t.name.name},
	}))
}

// endWorkload removes the Workload of a LeaderWorkerSet that is gone.
func (r *remote) endWorkload(n name, uid string) {
	if t := (task{workloadKind, workloadOf(n, uid)}); r.objects[t] != nil {
		delete(r.objects, t)
		r.w.reported(r, t)
		r.wakeWorkloads()
	}
}

// wakeWorkloads lets Kueue look at all Workloads.
func (r *remote) wakeWorkloads() {
	for _, t := range r.ofKind(workloadKind) {
		r.note(t)
	}
}

// admitted tells whether Kueue has admitted a LeaderWorkerSet.
func (r *remote) admitted(t task, o *remoteObject) bool {
	workload := r.objects[task{workloadKind, workloadOf(t.name, o.uid)}]
	return workload != nil && isAdmitted(workload)
}

func isAdmitted(workload *remoteObject) bool {
	return slices.ContainsFunc(items(workload.status, "conditions"), func(c document) bool {
		return text(c, "type") == "Admitted" && text(c, "status") == "True"
	})
}

// runWorkload admits a Workload if there is quota.
func (r *remote) runWorkload(t task, o *remoteObject) {
	if isAdmitted(o) {
		return
	}
	sum := number(o.manifest, "spec", "gpus")
	for _, other := range r.ofKind(workloadKind) {
		if at := r.objects[other]; isAdmitted(at) {
			sum += number(at.manifest, "spec", "gpus")
		}
	}
	if sum > r.kueueQuota {
		if o.status == nil {
			r.setStatus(t, o, admission(false, fields{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "insufficient unused quota"}))
		}
		return
	}
	r.w.trace(subject("Workload "+t.name.String()), "is admitted in %s", r.name)
	r.setStatus(t, o, admission(true, fields{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}))
	r.note(r.queued(t, o))
}

// queued returns the LeaderWorkerSet of a Workload.
func (r *remote) queued(t task, o *remoteObject) task {
	return task{lwsKind, name{t.name.namespace, text(o.manifest, "spec", "of")}}
}

// admission is the status of a Workload.
func admission(admitted bool, others ...fields) fields {
	status := "False"
	if admitted {
		status = "True"
	}
	all := []any{fields{"type": "Admitted", "status": status, "reason": "Admitted", "lastTransitionTime": "2026-03-01T12:00:00Z"}}
	for _, c := range others {
		c["lastTransitionTime"] = "2026-03-01T12:00:00Z"
		all = append(all, c)
	}
	return fields{"conditions": all}
}

// evict stops a LeaderWorkerSet that Kueue has admitted, and lets it wait again.
func (r *remote) evict() {
	all := slices.DeleteFunc(r.ofKind(workloadKind), func(t task) bool { return !isAdmitted(r.objects[t]) })
	if len(all) == 0 {
		return
	}
	t := all[r.w.rand.IntN(len(all))]
	o := r.objects[t]
	r.w.trace(subject("Workload "+t.name.String()), "is evicted in %s", r.name)
	r.setStatus(t, o, admission(false,
		fields{"type": "QuotaReserved", "status": "False", "reason": "Pending"},
		fields{"type": "Evicted", "status": "True", "reason": "Preempted", "message": "Preempted to accommodate a workload"}))
	set := r.queued(t, o)
	if of := r.objects[set]; of != nil && of.runs != nil {
		of.runs = &group{pods: podsOf(of.manifest), lost: true}
		of.template = templateOf(of.manifest)
		r.groupStatus(set, of)
		r.note(set)
	}
	r.wakeWorkloads()
}

// endQueues checks that services say that they wait for Kueue, and lets it admit everything.
func (w *World) endQueues() {
	if !w.Kueue || w.violation != nil {
		return
	}
	for _, u := range w.services {
		w.checkToldOfQueue(u)
	}
	for _, r := range w.fleet {
		if r.kueue {
			r.kueueQuota = unlimited
			r.wakeWorkloads()
		}
	}
	w.quiet()
}

// checkToldOfQueue checks that a service whose replicas wait for Kueue where they are placed is not said to be placed.
func (w *World) checkToldOfQueue(u *user) {
	xr := w.server.get(serviceKind, u.name)
	for _, at := range w.rendered(xr, lwsKind) {
		r := at.in
		_, n := identify(at.manifest)
		if !r.kueue || at.object.deleting {
			continue
		}
		set := task{lwsKind, n}
		if there := r.objects[set]; there != nil && !r.admitted(set, there) && strings.HasPrefix(w.placement(u), "True") {
			w.violate("told", aboutService(u.name), "%s waits for Kueue in %s, and %s says: %s", n, r.name, u.name, w.placement(u))
		}
	}
}

// checkQueued checks that Kueue can find a LeaderWorkerSet.
func (w *World) checkQueued(o *stored, r *remote) {
	manifest := object(o.body, "spec", "forProvider", "manifest")
	if queue := texts(manifest, "metadata", "labels")[labelQueue]; queue != "default" {
		w.violate("queued", w.about(r), "%s started in %s, where Kueue admits what runs, in the queue %q", o, r.name, queue)
	}
}
