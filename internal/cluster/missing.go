package cluster

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A service whose request is missing keeps its grants as long as it has workloads in the cluster:
// Objects that wrap LeaderWorkerSets for it. For example, somebody may have deleted the request
// of a paused service, which does not write it again. In the same way a replica that is no longer
// requested keeps its grant as long as there is an Object of it. The service does not observe one that
// is being deleted: Crossplane drops its reference (composition_functions.go,
// GarbageCollectComposedResources).
//
// The ledger says which requests are missing or lack something, so what is required stays the same in
// all calls of a reconcile.
const (
	// maxMissing is the most services whose Objects one call reads. Those of one service can have
	// several MiB, and a request has 64 MiB at most.
	maxMissing = 64
	// maxMissingOfTenant is the most of them in one namespace, so that no tenant can make the
	// request too large.
	maxMissingOfTenant = 4
)

// objectsOf is the name of the requirement for the Objects of a service.
func objectsOf(objects key.Objects, s reservation.ServiceID) string {
	if objects == key.ClusterScopedObjects {
		return string(objects) + "s/" + s.Name
	}
	return string(objects) + "s/" + s.Namespace + "/" + s.Name
}

// kindsOfObjects are those of services. Namespaced services and claims have different ones.
var kindsOfObjects = []key.Objects{key.NamespacedObjects, key.ClusterScopedObjects}

// missing returns the services of a ledger whose requests are missing or lack something, and whose
// Objects this call reads. Those that are missing for the longest come first. If there are more than
// one call reads, the time of a service with workloads starts anew, so each has its turn.
func missing(l *reservation.Ledger, now time.Time) (turn []reservation.ServiceID, takesTurns bool) {
	var all []*reservation.Service
	for i := range l.Services {
		if s := &l.Services[i]; !s.MissingSince.IsZero() {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *reservation.Service) int {
		return cmp.Or(a.MissingSince.Compare(b.MissingSince), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	ofTenant, most := map[string]int{}, mostMissing(all, now)
	for _, s := range all {
		if len(turn) < most && ofTenant[s.Namespace] < maxMissingOfTenant {
			ofTenant[s.Namespace]++
			turn = append(turn, s.ServiceID)
		}
	}
	return turn, len(turn) < len(all)
}

// mostMissing returns how many of these services one call reads. A call that is too large for Crossplane to send changes nothing in the
// ledger. So once nothing has changed for the grace time, calls read fewer with each minute, until one arrives. Services are in the order of
// their times.
func mostMissing(all []*reservation.Service, now time.Time) int {
	most := maxMissing
	if len(all) == 0 {
		return most
	}
	for late := now.Sub(all[len(all)-1].MissingSince) - reservation.Grace; late >= time.Minute && most > 1; late -= time.Minute {
		most /= 4
	}
	return most
}

// requireMissing requires the Objects of these services, of each kind that is known to exist.
func requireMissing(req incoming.Request, rsp *fnv1.RunFunctionResponse, c *parsed, state *observedState) {
	if len(state.turn) == 0 {
		return
	}
	for _, objects := range kindsOfObjects {
		if !observesWith(req, c, objects) {
			remote.KindOf(objects).Require(rsp.Requirements.Resources)
		}
		if exists, _ := existing(req, c, objects); !exists {
			continue
		}
		for _, s := range state.turn {
			if labelled(s) {
				rsp.Requirements.Resources[objectsOf(objects, s)] = remote.OfService(objects, s.Namespace, s.Name)
			}
		}
	}
}

// labelled tells whether a service can have Objects, which have its name in a label. Whoever writes
// a request can write any name, and the API server answers no request for an invalid label.
func labelled(s reservation.ServiceID) bool { return len(validation.IsValidLabelValue(s.Name)) == 0 }

// observesWith tells whether the cluster is observed with Objects of a kind, which therefore
// exists.
func observesWith(req incoming.Request, c *parsed, objects key.Objects) bool {
	return objects == c.keys() && req.Observed(c.keys().Reachable()).Exists()
}

// existing tells whether the control plane has a kind of Objects, and whether that is known.
func existing(req incoming.Request, c *parsed, objects key.Objects) (exists, known bool) {
	if observesWith(req, c, objects) {
		return true, true
	}
	kind := remote.KindOf(objects)
	exists, _ = kind.Available(req)
	definition, answered := req.Required(kind.Requirement())
	return exists, exists || answered && len(definition) == 0
}

// readMissing finds out which replicas of these services have workloads.
func (r *observedState) readMissing(req incoming.Request, c *parsed, now time.Time) {
	r.turn, r.takesTurns = missing(&r.ledger.Ledger, now)
	r.inUse = map[reservation.ServiceID]map[key.ReplicaID]bool{}
	back := map[reservation.ServiceID]bool{}
	for i := range r.requests {
		back[r.requests[i].ServiceID()] = true
	}
	for _, s := range r.turn {
		found, known := workloadsOf(req, c, s)
		if known || len(found) > 0 && !back[s] {
			r.inUse[s] = replicasOf(found)
		}
		if !back[s] && slices.ContainsFunc(found, func(o incoming.Object) bool { return o.DeletionTimestamp() == "" }) {
			r.withoutRequest = append(r.withoutRequest, s.Namespace+"/"+s.Name)
		}
	}
	slices.Sort(r.withoutRequest)
}

// replicasOf returns the replicas of workloads. Crossplane notes on an Object which composed resource
// it is. Where that was taken away, it may be any.
func replicasOf(workloads []incoming.Object) map[key.ReplicaID]bool {
	all := make(map[key.ReplicaID]bool, len(workloads))
	for _, o := range workloads {
		id, is := composite.KeyOf(o).ReplicaID()
		if !is {
			id = ""
		}
		all[id] = true
	}
	return all
}

// workloadsOf returns the Objects of a service that wrap LeaderWorkerSets for the cluster, and
// whether all of them are known.
func workloadsOf(req incoming.Request, c *parsed, s reservation.ServiceID) (workloads []incoming.Object, known bool) {
	known = true
	for _, objects := range kindsOfObjects {
		exists, certain := existing(req, c, objects)
		if certain && !exists || !labelled(s) {
			continue
		}
		found, answered := req.Required(objectsOf(objects, s))
		known = known && answered
		for _, o := range found {
			if c.isWorkloadOf(s, o) {
				workloads = append(workloads, o)
			}
		}
	}
	return workloads, known
}

// isWorkloadOf tells whether an Object wraps a LeaderWorkerSet of a service for the cluster. An
// Object that is being deleted counts, because its pods may still run. In an abandoned cluster it
// does not: it may wait for ever for a cluster that does not answer.
//
// The service controls its Objects. Objects that nobody controls were left behind when their
// service was deleted. They count for each service with their namespace and name.
func (c *parsed) isWorkloadOf(s reservation.ServiceID, o incoming.Object) bool {
	namespace, is := c.builder.Workload(o)
	if !is || c.Spec.StopPolicy == v1alpha1.StopAbandon && o.DeletionTimestamp() != "" {
		return false
	}
	controller := composite.ControllerUID(o)
	return controller == s.UID || controller == "" && cmp.Or(o.Namespace(), namespace, s.Namespace) == s.Namespace
}

// withKept adds to a message which services keep their grants although their requests are missing.
func (r *observedState) withKept(message string) string {
	if len(r.withoutRequest) == 0 {
		return message
	}
	kept := "the capacity requests of these services are missing or cannot be read, and they keep their reservations because they have Objects of LeaderWorkerSets for this cluster: " + text.List(r.withoutRequest)
	if message == "" {
		return kept
	}
	return message + "; " + kept
}
