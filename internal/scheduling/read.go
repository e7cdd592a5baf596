package scheduling

import (
	"cmp"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// candidate returns what is known about a member.
func (v *view) candidate(m member) Candidate {
	c := Candidate{Name: m.target.Cluster, Weight: m.weight, Deselected: m.deselected, RouterReady: !v.demand.HasRouter, ReceivesTraffic: true}
	if at := v.snapshot.States[m.target.Cluster]; at != nil {
		c.Exists = true
		c.Present, c.Ready, c.WasReady, c.Updating, c.Created, c.Orphaned = at.Present, at.Ready, at.WasReady, v.updating(m.target.Cluster, at), at.Created, at.Orphaned
		c.RouterReady = c.RouterReady || at.RouterReady && (at.Routed() || !v.demand.HasFleetRoute)
		c.Refused = at.Refused()
	}
	if v.demand.HasFleetRoute {
		receives := false
		for _, backend := range v.backends(m) {
			receives = receives || v.snapshot.ReceivesTraffic[backend]
			c.MayReceiveTraffic = c.MayReceiveTraffic || v.snapshot.MayReceiveTraffic[backend]
			c.Weighted = c.Weighted || v.snapshot.Weighted[backend]
		}
		// A service that leaves the fleet goes where no fleet route leads.
		if InFleet(v.demand.Placement) {
			c.NoEntrypoint, c.ReceivesTraffic = v.entrypoint(m) == nil, receives
		}
	}
	c.ReceivesTraffic = c.ReceivesTraffic && c.RouterReady && !c.NoEntrypoint
	if m.inferenceCluster == "" {
		c.OutsideFleet = true
		return c
	}
	c.Used = v.demand.UsedBy != nil && v.demand.UsedBy(m.inferenceCluster)
	v.readRequested(&c, m)
	ic := v.clusters[m.inferenceCluster]
	switch {
	case !v.snapshot.Resolved:
		c.Unknown = "the clusters of the fleet are not known yet"
		return c
	case ic == nil:
		c.Gone = true
		c.Unknown = "there is no InferenceCluster " + text.Value(m.inferenceCluster) + ", or none with a profile in fleet.namespace of the Input"
		return c
	case v.undecided[m.inferenceCluster]:
		c.Unknown = "it is not known yet whether it allows namespace " + v.demand.Namespace
	case unreported(ic):
		c.Unknown = "it has not reported its capacity yet"
	}
	c.NotAllowed = v.notAllowed[m.inferenceCluster]
	c.OutOfScope, c.OutOfScopeMessage = v.demand.without(ic)
	readCluster(&c, ic)
	if c.Unreachable != nil {
		c.InOutage, c.OutageEnds = outageAt(v.snapshot.Clusters, *c.Unreachable, v.snapshot.Now)
	}
	v.readReserved(&c, ic, m.inferenceCluster)
	return c
}

// readRequested reads what the last request has of a cluster. One that is left while requests wait there has its groups in
// the request without replicas, and was not asked for room. The home of a group that sleeps is asked first when it wakes.
func (v *view) readRequested(c *Candidate, m member) {
	c.Requested = map[key.GroupID]bool{}
	if at := v.snapshot.UnplacedSince; !at.IsZero() {
		c.AskedFor = v.snapshot.Now.Sub(at)
	}
	for _, g := range v.last.Clusters[m.inferenceCluster].Groups {
		if len(g.Replicas) > 0 || v.last.Homes[g.Name].Cluster == m.target.Cluster {
			c.Requested[g.Name] = true
		}
	}
}

// entrypoint returns where requests reach a cluster, or nil. If the cluster does not report it,
// it is the last known one. A later version of the function may report addresses of other
// types, which are ignored.
func (v *view) entrypoint(m member) *v1alpha1.EntrypointStatus {
	if c := v.clusters[m.inferenceCluster]; c != nil && c.Status.Entrypoint != nil {
		a := c.Status.Entrypoint.Address
		byName := a.Type == string(v1alpha1.AddressTypeHostname) && v.demand.HostnameBackend != ""
		if (a.Type == string(v1alpha1.AddressTypeIP) || byName) && a.Value != "" {
			return c.Status.Entrypoint
		}
	}
	if known := v.snapshot.Entrypoints[m.target.Cluster]; known != nil {
		return known
	}
	return v.snapshot.Hostnames[v.demand.HostnameBackend][m.target.Cluster]
}

// unusedHostname returns the DNS name of a cluster's entrypoint, if the fleet route cannot lead
// there.
func (v *view) unusedHostname(m member) string {
	c := v.clusters[m.inferenceCluster]
	if !v.demand.HasFleetRoute || v.demand.HostnameBackend != "" || c == nil || c.Status.Entrypoint == nil {
		return ""
	}
	if a := c.Status.Entrypoint.Address; a.Type == string(v1alpha1.AddressTypeHostname) {
		return a.Value
	}
	return ""
}

// backends returns the names of the backends that may stand for a cluster in the fleet route.
func (v *view) backends(m member) []string {
	names := []string{naming.FleetBackend(v.demand.Name, m.target.Cluster)}
	for _, h := range key.HostnameBackends() {
		names = append(names, naming.FleetHostname(h, v.demand.Name, m.target.Cluster))
	}
	return names
}

// unreported tells that a cluster has not written its status yet. It always has pools or, where
// Kueue admits, a summary.
func unreported(ic *v1alpha1.InferenceCluster) bool {
	if ic.Spec.LocalQueue() != "" {
		return ic.Status.Summary == ""
	}
	return len(ic.Status.Pools) == 0
}

// queues returns the queue from which Kueue admits what runs in a cluster, which Kueue keeps fixed, and Volcano's queue for
// gangs there. While the InferenceCluster cannot be read, they are those of what runs there.
func (v *view) queues(m member) (local, gang string) {
	c, at := v.clusters[m.inferenceCluster], v.snapshot.States[m.target.Cluster]
	switch {
	case m.inferenceCluster == "":
	case c != nil:
		return c.Spec.LocalQueue(), c.Spec.GangQueue()
	case at != nil:
		return at.LocalQueue, at.GangQueue
	}
	return "", ""
}

// readReserved reads what a cluster has reserved for the service.
func (v *view) readReserved(c *Candidate, ic *v1alpha1.InferenceCluster, name string) {
	requested := v.last.Clusters[name]
	if p := pendingOf(ic, v.demand.ServiceID); p != nil {
		c.PendingMessage, c.Evaluated = p.Message, p.Generation >= requested.Newest()
	}
	// A replica that is not requested is not reserved: its capacity may already be reserved for
	// another service.
	c.Reserved = v.reserved(&requested, v.grantsOf(ic))
}

// reservationOf returns what a cluster has reserved for a service, or nil.
func reservationOf(ic *v1alpha1.InferenceCluster, id reservation.ServiceID) *v1alpha1.Reservation {
	for i := range ic.Status.Reservations {
		if reserved := &ic.Status.Reservations[i]; (reservation.ServiceID{Namespace: reserved.Namespace, Name: reserved.Name, UID: reserved.UID}) == id {
			return reserved
		}
	}
	return nil
}

// pendingOf returns what a service waits for in a cluster, or nil.
func pendingOf(ic *v1alpha1.InferenceCluster, id reservation.ServiceID) *v1alpha1.PendingRequest {
	for i := range ic.Status.Pending {
		if p := &ic.Status.Pending[i]; (reservation.ServiceID{Namespace: p.Namespace, Name: p.Name, UID: p.UID}) == id {
			return p
		}
	}
	return nil
}

// readCluster reads an InferenceCluster into a candidate.
func readCluster(c *Candidate, ic *v1alpha1.InferenceCluster) {
	c.StopPolicy, c.StopMessage = ic.Spec.StopPolicy, ic.Spec.StopMessage
	if since := ic.Status.UnreachableSince; !since.IsZero() {
		c.Unreachable = &since.Time
	}
	readSchedulable(c, ic)
	c.Uncounted = ic.Spec.LocalQueue() != ""
	for _, p := range ic.Status.Pools {
		pool := capacity.Pool{Name: p.Name, Labels: p.NodeSelector, NodeCount: int64(p.NodeCount), Total: capacity.ResourcesOf(p.Capacity), Estimated: len(p.Capacity) == 0}
		for _, n := range p.Free {
			pool.Free = append(pool.Free, capacity.NodeClass{Count: int64(n.NodeCount), Free: capacity.ResourcesOf(n.Resources), Taints: v1alpha1.NodeTaints(n.Taints)})
		}
		c.Free.Pools = append(c.Free.Pools, pool)
	}
}

// readSchedulable reads whether a cluster reserves anything new. If the condition is Unknown,
// the cluster's spec is refused or its reconcile fails. Its status is then outdated. The status
// of a paused cluster is as old as the pause, and says nothing of it.
func readSchedulable(c *Candidate, ic *v1alpha1.InferenceCluster) {
	if c.Paused = meta.IsPaused(ic); c.Paused {
		c.NotSchedulable = "Crossplane does not reconcile it, because it has the annotation " + meta.AnnotationKeyReconciliationPaused
		return
	}
	if cond := apimeta.FindStatusCondition(ic.Status.Conditions, v1alpha1.ConditionSchedulable); cond != nil && cond.Status != metav1.ConditionTrue {
		c.NotSchedulable = cmp.Or(cond.Message, "it does not say that it reserves anything new")
		c.NotReconciled = cond.Status == metav1.ConditionUnknown
	}
	// The condition may be older than the spec.
	if c.StopPolicy == v1alpha1.StopHold && c.NotSchedulable == "" {
		_, c.NotSchedulable = Stopped(c.StopPolicy, c.StopMessage)
	}
}
