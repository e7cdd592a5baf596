package inferencecluster

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/observe"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
	"github.com/fusioninfer/function-inferenceservice/internal/respond"
)

// The conditions of an InferenceCluster.
const (
	// SpecValid is False while the spec is refused. Nothing changes then.
	SpecValid = "SpecValid"
	// Reachable is True while provider-kubernetes reads the cluster.
	Reachable = fleet.ConditionReachable
	// NodesKnown is True while the nodes of all pools are known.
	NodesKnown = "NodesKnown"
	// AsksRead is False while something asks for room in a way that cannot be read.
	AsksRead = "AsksRead"
	// RoomKept is False while more was granted than there is room for.
	RoomKept = "RoomKept"
	// GatewayKnown is True while it is known where requests reach the cluster.
	GatewayKnown = "GatewayKnown"
	// Open is False while nothing new is granted.
	Open = fleet.ConditionOpen
)

// ConditionTypes are all conditions, in the order in which they come.
func ConditionTypes() []string {
	return []string{SpecValid, Reachable, NodesKnown, AsksRead, RoomKept, GatewayKnown, Open}
}

// judge says what became of a cluster.
func judge(c *cluster, seen *reality, d *decision, objects []kube.Object, now time.Time) respond.Answer {
	a := respond.Answer{
		Objects:    objects,
		Ready:      make(map[string]bool, len(objects)),
		Status:     status(c, seen, d, now),
		Conditions: conditions(c, seen, d),
		Settled:    settled(c, seen, d),
		Now:        now,
	}
	for _, o := range objects {
		a.Ready[o.Key] = seen.ready(o)
	}
	return a
}

// ready tells whether an object does what it is there for.
func (r *reality) ready(o kube.Object) bool {
	observed := r.observed[o.Key].GetResource()
	if observed == nil {
		return false
	}
	state := placement.State{}
	switch o.Kind() {
	case "Object":
		_, state = r.unwrap(o.Key)
	case "ObservedObjectCollection":
		state = placement.Synced(observed)
	}
	return state.Readable()
}

// settled tells that nothing is waited for that would not show by itself.
func settled(c *cluster, seen *reality, d *decision) bool {
	if d.kept || !seen.ledger.there || len(d.Waiting) > 0 {
		return false
	}
	return c.dead() || seen.reach.Readable() && len(seen.unknown) == 0 && seen.noGateway == ""
}

// status of a cluster. What is not known stays as it was.
func status(c *cluster, seen *reality, d *decision, now time.Time) v1alpha1.InferenceClusterStatus {
	if d.kept {
		st := c.Status
		st.ObservedGeneration, st.UnreachableSince = c.Generation, unreachableSince(c, seen, now)
		return st
	}
	st := v1alpha1.InferenceClusterStatus{
		ObservedGeneration: c.Generation,
		UnreachableSince:   unreachableSince(c, seen, now),
		Free:               d.Room.Devices(),
		Services:           count(int64(len(d.Grants))),
		Gateway:            seen.gateway,
	}
	for i := range d.Room.Pools {
		p := poolStatus(&d.Room.Pools[i])
		st.Nodes += p.Nodes
		st.Pools = append(st.Pools, p)
	}
	for i, g := range d.Grants {
		st.Allocations = append(st.Allocations, v1alpha1.Allocation{
			UID: g.UID, Namespace: g.Namespace, Name: g.Name, Replicas: g.Replicas, Serial: g.Serial,
			Pods: count(d.Used[i].Pods), Resources: d.Used[i].Resources.List(false), Unfit: slices.Contains(d.Unfit, g.Service()),
		})
	}
	for _, w := range d.Waiting[:min(len(d.Waiting), maxWaiting)] {
		st.Waiting = append(st.Waiting, v1alpha1.WaitingAsk{UID: w.UID, Namespace: w.Namespace, Name: w.Name, Replicas: count(int64(len(w.Replicas))), Message: w.Message})
	}
	return st
}

// unreachableSince is the time from which failover counts. A condition cannot hold it:
// whatever stops a reconcile has Crossplane set the conditions that it was not given to
// Unknown, with a new time, but leave the status as it is. Only a cluster that is read
// again is within reach.
func unreachableSince(c *cluster, seen *reality, now time.Time) *metav1.Time {
	switch {
	case seen.reach.Readable():
		return nil
	case !c.Status.UnreachableSince.IsZero():
		return c.Status.UnreachableSince
	case seen.reach.Reason == placement.NotSynced:
		return &metav1.Time{Time: now}
	}
	return nil
}

func poolStatus(p *fleet.Pool) v1alpha1.PoolStatus {
	st := v1alpha1.PoolStatus{Name: p.Name, Nodes: count(p.Nodes), NodeSelector: p.Labels, Allocatable: p.Total.List(true)}
	for _, n := range p.Free() {
		st.Free = append(st.Free, v1alpha1.FreeNodes{Nodes: count(n.Count), Resources: n.Left.List(true)})
	}
	return st
}

// count is a number as the API has it.
func count(n int64) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // It is below the limit.

// conditions in the order of ConditionTypes.
func conditions(c *cluster, seen *reality, d *decision) []observe.Condition {
	return []observe.Condition{
		{Type: SpecValid, Status: observe.True, Reason: observe.ReasonValid},
		isReachable(seen),
		nodesKnown(c, seen),
		asksRead(seen),
		roomKept(seen, d),
		gatewayKnown(c, seen),
		isOpen(d),
	}
}

func isReachable(seen *reality) observe.Condition {
	s := observe.Condition{Type: Reachable, Reason: seen.reach.Reason, Message: seen.reach.Message}
	switch seen.reach.Reason {
	case "":
		s.Status, s.Reason = observe.True, "Read"
	case placement.NotSynced:
		// The message is always the same: the provider's own changes with each attempt, and
		// with it Crossplane would change the time of the condition.
		s.Status, s.Message = observe.False, "provider-kubernetes cannot read the namespace kube-system there: "+seen.reachedBy+" says why"
	default:
		s.Status = observe.Unknown
	}
	return s
}

func nodesKnown(c *cluster, seen *reality) observe.Condition {
	if len(seen.unknown) > 0 {
		return observe.Condition{Type: NodesKnown, Status: observe.Unknown, Reason: "NotRead", Message: observe.Join(seen.unknown)}
	}
	if !seen.reach.Readable() && c.observesNodes() {
		return observe.Condition{Type: NodesKnown, Status: observe.Unknown, Reason: "NotReadNow", Message: "they are as they were when the cluster was read last"}
	}
	known := observe.Condition{Type: NodesKnown, Status: observe.True, Reason: "Known"}
	var empty []string
	for i := range seen.room.Pools {
		if seen.room.Pools[i].Nodes == 0 {
			empty = append(empty, seen.room.Pools[i].Name)
		}
	}
	if len(empty) > 0 {
		known.Message = "these pools have no nodes: " + observe.Join(empty)
	}
	return known
}

func asksRead(seen *reality) observe.Condition {
	switch {
	case !seen.answered:
		return observe.Condition{Type: AsksRead, Status: observe.Unknown, Reason: "NotRead", Message: "Crossplane has not said yet who asks, or which namespaces there are"}
	case len(seen.ignored) > 0:
		return observe.Condition{Type: AsksRead, Status: observe.False, Reason: "Ignored", Message: observe.Join(seen.ignored)}
	}
	read := observe.Condition{Type: AsksRead, Status: observe.True, Reason: "Read"}
	if len(seen.barred) > 0 {
		read.Message = "these services are granted nothing new, because allowedNamespaces leaves out their namespaces: " + observe.Join(seen.barred)
	}
	return read
}

func roomKept(seen *reality, d *decision) observe.Condition {
	switch {
	case d.kept:
		return observe.Condition{Type: RoomKept, Status: observe.Unknown, Reason: "NotCounted", Message: "it is not known who asks"}
	case len(seen.unknown) > 0:
		return observe.Condition{Type: RoomKept, Status: observe.Unknown, Reason: "NotCounted", Message: "not all nodes are known"}
	case d.Overbooked:
		return observe.Condition{Type: RoomKept, Status: observe.False, Reason: "Overbooked", Message: "more was granted than there is room for: nodes have gone, or replicas have more pods. Nothing new is granted"}
	case len(d.Unfit) > 0:
		all := make([]string, 0, len(d.Unfit))
		for _, s := range d.Unfit {
			all = append(all, s.Namespace+"/"+s.Name)
		}
		return observe.Condition{Type: RoomKept, Status: observe.False, Reason: "Unfit", Message: "the pods of these services have changed since they were granted room, and do not fit as they are now. They keep what they were granted, and are granted nothing more: " + observe.Join(all)}
	}
	var running []string
	for _, w := range d.Waiting {
		if len(w.Running) > 0 {
			running = append(running, w.Namespace+"/"+w.Name)
		}
	}
	if len(running) > 0 {
		return observe.Condition{Type: RoomKept, Status: observe.False, Reason: "RunsUngranted", Message: "these services say that they run here without a grant, and were not counted because that does not fit, or not now: " + observe.Join(running)}
	}
	return observe.Condition{Type: RoomKept, Status: observe.True, Reason: "Fits"}
}

func gatewayKnown(c *cluster, seen *reality) observe.Condition {
	switch {
	case c.Spec.Gateway == nil:
		return observe.Condition{Type: GatewayKnown, Status: observe.True, Reason: "NoGateway"}
	case seen.noGateway != "":
		return observe.Condition{Type: GatewayKnown, Status: observe.Unknown, Reason: "NotRead", Message: "Gateway " + c.Spec.Gateway.Namespace + "/" + c.Spec.Gateway.Name + ": " + seen.noGateway}
	}
	return observe.Condition{Type: GatewayKnown, Status: observe.True, Reason: "Known"}
}

func isOpen(d *decision) observe.Condition {
	switch {
	case d.closed != "":
		return observe.Condition{Type: Open, Status: observe.False, Reason: d.closed, Message: d.why}
	case d.kept:
		return observe.Condition{Type: Open, Status: observe.False, Reason: "AsksNotRead", Message: "it is not known who asks"}
	case d.Overbooked:
		return observe.Condition{Type: Open, Status: observe.False, Reason: "Overbooked", Message: "more was granted than there is room for"}
	}
	return observe.Condition{Type: Open, Status: observe.True, Reason: "Grants"}
}
