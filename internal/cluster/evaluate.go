package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// The conditions of an InferenceCluster.
const (
	// Reachable is True while provider-kubernetes can read the cluster.
	Reachable = v1alpha1.ConditionReachable
	// NodesObserved is True while the nodes of all pools are known.
	NodesObserved = v1alpha1.ConditionNodesObserved
	// RequestsResolved is False while a capacity request is ignored, because it is invalid.
	RequestsResolved = "RequestsResolved"
	// CapacityConsistent is False while the reservations and what runs do not fit the
	// cluster.
	CapacityConsistent = "CapacityConsistent"
	// EntrypointResolved is True while it is known where requests reach the cluster.
	EntrypointResolved = "EntrypointResolved"
	// Exclusive is False while another InferenceCluster or control plane uses the cluster.
	Exclusive = "Exclusive"
	// Schedulable is False while nothing new is reserved.
	Schedulable = v1alpha1.ConditionSchedulable
)

// Reasons of the conditions, besides those why nothing new is reserved.
const (
	reasonReachable       = "Reachable"
	reasonObserved        = "Observed"
	reasonNotObserved     = "NotObserved"
	reasonStale           = "Stale"
	reasonResolved        = "Resolved"
	reasonNotResolved     = "NotResolved"
	reasonInvalidRequests = "InvalidRequests"
	reasonConsistent      = "Consistent"
	reasonNotCounted      = "NotCounted"
	reasonGrowthPending   = "GrowthPending"
	reasonUnreserved      = "RunsWithoutReservation"
	reasonNoEntrypoint    = "NoEntrypoint"
	reasonSchedulable     = "Schedulable"
)

// ConditionTypes are the types of all conditions, in the order of the response.
func ConditionTypes() []string {
	return []string{composite.Accepted, Reachable, NodesObserved, RequestsResolved, CapacityConsistent, EntrypointResolved, Exclusive, Schedulable}
}

// evaluate returns the outcome of the call. room is how many bytes the response can take besides the
// objects.
func evaluate(c *parsed, state *observedState, p *ledgerPlan, objects []kube.Object, room int) composite.Outcome {
	out := composite.Outcome{
		Objects:    objects,
		Ready:      make(map[key.Key]bool, len(objects)),
		Status:     status(c, state, p, room),
		Conditions: conditions(c, state, p),
		Stable:     stable(c, state, p),
		Due:        sorting.Earlier(p.next, p.GraceEnds),
	}
	for _, o := range objects {
		// Provider-kubernetes may lack the permission to make the mark, which holds up nothing.
		out.Ready[o.Key] = o.Key == c.keys().ControlPlane() || ofServices(o.Key) || state.ready(o)
	}
	return out
}

// ready tells whether an object exists and, if provider-kubernetes handles it, is synced.
func (r *observedState) ready(o kube.Object) bool {
	observed := r.req.Observed(o.Key)
	if !observed.Exists() {
		return false
	}
	synced := remote.State{}
	switch o.Kind() {
	case "Object":
		_, synced = r.unwrap(o.Key)
	case "ObservedObjectCollection":
		synced = remote.Synced(observed)
	}
	return synced.Readable()
}

// stable tells whether the requests, nodes and address are known, and nothing is pending. The ledger
// may change with this call: Outcome.Due says when the next call follows.
func stable(c *parsed, state *observedState, p *ledgerPlan) bool {
	if !state.resolved || !state.ledger.exists || len(p.Pending) > 0 {
		return false
	}
	return c.Spec.StopPolicy == v1alpha1.StopAbandon || state.reach.Readable() && len(state.unknown) == 0 && state.noAddress == ""
}

// status returns the status of a cluster. It stays as it was while the requests are
// not known.
func status(c *parsed, state *observedState, p *ledgerPlan, room int) v1alpha1.InferenceClusterStatus {
	if !state.resolved {
		st := c.Status
		st.ObservedGeneration, st.ClusterUID = c.Generation, state.identity.known
		st.UnreachableSince, st.LastOutage = p.unreachableSince, p.lastOutage
		return st
	}
	st := v1alpha1.InferenceClusterStatus{
		ObservedGeneration: c.Generation,
		UnreachableSince:   p.unreachableSince,
		LastOutage:         p.lastOutage,
		ClusterUID:         state.identity.known,
		ServiceCount:       count(int64(len(p.Services))),
		PendingCount:       count(int64(len(p.Pending))),
		Entrypoint:         state.entrypoint,
	}
	st.Summary, st.FreeDeviceCount, st.DeviceCount = p.Free.Devices()
	if queue := c.Spec.LocalQueue(); queue != "" {
		st.Summary = summaryOfKueue(queue)
	}
	for i := range p.Free.Pools {
		pool := poolStatus(&p.Free.Pools[i])
		st.NodeCount += pool.NodeCount
		st.Pools = append(st.Pools, pool)
	}
	addReservations(&st, p, room)
	return st
}

// summaryOfKueue is the summary of a cluster where Kueue admits services.
func summaryOfKueue(queue string) string { return "admission by Kueue, LocalQueue " + queue }

// addReservations adds what is reserved and what is pending, for people to read. A status with too
// many services is cut. The response has room for some bytes.
func addReservations(st *v1alpha1.InferenceClusterStatus, p *ledgerPlan, room int) {
	st.Pending = atMost(pending(p.Pending), maxPending, maxPendingBytes, inStatus)
	if text, err := json.Marshal(st); err == nil {
		room -= inResponse(text)
	}
	size := 0
	for i := range p.Services {
		s := &p.Services[i]
		resources, pods := s.Usage()
		r := reservationOf(s)
		r.Pods, r.Resources = count(pods), resources.List(false)
		if text, err := json.Marshal(r); err == nil {
			size += len(text)
			room -= inResponse(text)
		}
		if size > maxStatus || room < 0 {
			break
		}
		st.Reservations = append(st.Reservations, r)
	}
}

// inStatus returns how many bytes a pending request has in the status.
func inStatus(p *v1alpha1.PendingRequest, _ bool) int {
	text, err := json.Marshal(p)
	if err != nil {
		return maxPendingBytes // Its fields are texts and numbers, which always can be encoded.
	}
	return len(text)
}

// inResponse returns how many bytes a value takes in a response at most. A number takes nine of them, however short it is in JSON.
func inResponse(text []byte) int {
	const more = 10
	return len(text) + more*(bytes.Count(text, []byte(","))+bytes.Count(text, []byte(":")))
}

func reservationOf(s *reservation.Service) v1alpha1.Reservation {
	return v1alpha1.Reservation{UID: s.UID, Namespace: s.Namespace, Name: s.Name, Replicas: scheduling.GrantsToStatus(s)}
}

func pending(some []reservation.Pending) []v1alpha1.PendingRequest {
	var all []v1alpha1.PendingRequest
	for _, w := range some {
		all = append(all, v1alpha1.PendingRequest{
			UID: w.UID, Namespace: w.Namespace, Name: w.Name, ReplicaCount: count(int64(len(w.Replicas))), Generation: w.Generation, Message: w.Message,
		})
	}
	return all
}

// unreachableSince is the time from which failover counts. The lastTransitionTime of a
// condition cannot serve for this: when a reconcile fails, Crossplane sets conditions that it
// has not received to Unknown, with a new time. It leaves other fields of the status as they
// are. The time stays until the cluster is read again.
func unreachableSince(c *parsed, state *observedState, now time.Time) *metav1.Time {
	switch {
	case state.reach.Readable():
		return nil
	case !c.Status.UnreachableSince.IsZero():
		return c.Status.UnreachableSince
	case state.reach.Reason == remote.CannotBeRead:
		return &metav1.Time{Time: now}
	}
	return nil
}

// lastOutage is when the cluster was out of reach before. An outage that counts in scheduling stays, even if the cluster
// goes and comes once more meanwhile, as behind a link that recovers. A longer one replaces it, because that is more likely the one of
// the fleet.
func lastOutage(c *parsed, state *observedState, now time.Time) *v1alpha1.Outage {
	since, last := c.Status.UnreachableSince, c.Status.LastOutage
	if !state.reach.Readable() || since.IsZero() {
		return last
	}
	if scheduling.OutageCounts(last, now) && last.Until.Sub(last.Since.Time) >= now.Sub(since.Time) {
		return last
	}
	return &v1alpha1.Outage{Since: *since, Until: metav1.Time{Time: now}}
}

func poolStatus(p *capacity.Pool) v1alpha1.PoolStatus {
	st := v1alpha1.PoolStatus{Name: p.Name, NodeCount: count(p.NodeCount), NodeSelector: p.Labels, Capacity: p.Total.List(true)}
	for _, n := range p.Classes() {
		nodes := v1alpha1.FreeNodes{NodeCount: count(n.Count), Resources: n.Free.List(true)}
		for _, t := range n.Taints {
			nodes.Taints = append(nodes.Taints, v1alpha1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
		st.Free = append(st.Free, nodes)
	}
	return st
}

// count returns a number as the API has it.
func count(n int64) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // It is below the limit.

// conditions returns the conditions in the order of ConditionTypes.
func conditions(c *parsed, state *observedState, p *ledgerPlan) []composite.Condition {
	return []composite.Condition{
		{Type: composite.Accepted, Status: composite.True, Reason: composite.ReasonAccepted},
		isReachable(c, state),
		nodesObserved(c, state),
		requestsResolved(state),
		capacityConsistent(c, state, p),
		entrypointResolved(c, state),
		state.identity.exclusive(),
		schedulable(p),
	}
}

func isReachable(c *parsed, state *observedState) composite.Condition {
	s := composite.Condition{Type: Reachable, Reason: state.reach.Reason, Message: state.reach.Message}
	switch state.reach.Reason {
	case "":
		s.Status, s.Reason = composite.True, reasonReachable
	case remote.CannotBeRead:
		by := state.req.Observed(c.keys().Reachable())
		s.Status = composite.False
		s.Message = fmt.Sprintf("provider-kubernetes cannot read the namespace kube-system there: %s (%s %s)", text.OneLine(state.reach.Message), by.Kind(), strings.TrimPrefix(nameOf(by), "/"))
	default:
		s.Status = composite.Unknown
	}
	return s
}

func nodesObserved(c *parsed, state *observedState) composite.Condition {
	if len(state.unknown) > 0 {
		return composite.Condition{Type: NodesObserved, Status: composite.Unknown, Reason: reasonNotObserved, Message: text.List(state.unknown)}
	}
	if !state.reach.Readable() && len(c.observedPools()) > 0 {
		return composite.Condition{Type: NodesObserved, Status: composite.Unknown, Reason: reasonStale, Message: "the nodes are those that were read last, while the cluster was reachable"}
	}
	known := composite.Condition{Type: NodesObserved, Status: composite.True, Reason: reasonObserved}
	var empty []string
	for i := range state.free.Pools {
		if state.free.Pools[i].NodeCount == 0 {
			empty = append(empty, state.free.Pools[i].Name)
		}
	}
	if len(empty) > 0 {
		known.Message = "these pools have no nodes: " + text.List(empty)
	}
	return known
}

func requestsResolved(state *observedState) composite.Condition {
	switch {
	case !state.resolved:
		return composite.Condition{Type: RequestsResolved, Status: composite.Unknown, Reason: reasonNotResolved, Message: "Crossplane has not answered yet which capacity requests there are, or which namespaces"}
	case len(state.ignored) > 0:
		return composite.Condition{Type: RequestsResolved, Status: composite.False, Reason: reasonInvalidRequests, Message: state.withKept("these capacity requests are ignored: " + text.List(state.ignored))}
	}
	read := composite.Condition{Type: RequestsResolved, Status: composite.True, Reason: reasonResolved}
	if len(state.notAllowed) > 0 {
		read.Message = "nothing new is reserved for these services, because allowedNamespaces leaves out their namespaces: " + text.List(state.notAllowed)
	}
	read.Message = state.withKept(read.Message)
	return read
}

func capacityConsistent(c *parsed, state *observedState, p *ledgerPlan) composite.Condition {
	switch {
	case !state.resolved:
		return composite.Condition{Type: CapacityConsistent, Status: composite.Unknown, Reason: reasonNotCounted, Message: "the capacity requests are not known"}
	case len(state.unknown) > 0:
		return composite.Condition{Type: CapacityConsistent, Status: composite.Unknown, Reason: reasonNotCounted, Message: "not all nodes are known"}
	case p.Overcommitted || len(p.ShortPools) > 0:
		return composite.Condition{Type: CapacityConsistent, Status: composite.False, Reason: ReasonOvercommitted, Message: overcommitted(c, p)}
	}
	var running, grows []string
	for _, w := range p.Pending {
		if len(w.Running) > 0 {
			running = append(running, w.Namespace+"/"+w.Name)
		}
		if w.Grows {
			grows = append(grows, w.Namespace+"/"+w.Name)
		}
	}
	switch {
	case len(running) > 0:
		return composite.Condition{Type: CapacityConsistent, Status: composite.False, Reason: reasonUnreserved, Message: "these services say that they run here without a reservation, and were not counted because that does not fit, or not now: " + text.List(running)}
	case len(grows) > 0:
		return composite.Condition{Type: CapacityConsistent, Status: composite.False, Reason: reasonGrowthPending, Message: "replicas of these services request more than what is reserved for them, and that does not fit, or not now. What was reserved before is kept: " + text.List(grows)}
	}
	return composite.Condition{Type: CapacityConsistent, Status: composite.True, Reason: reasonConsistent}
}

func entrypointResolved(c *parsed, state *observedState) composite.Condition {
	switch {
	case c.Spec.Entrypoint == nil:
		return composite.Condition{Type: EntrypointResolved, Status: composite.True, Reason: reasonNoEntrypoint}
	case state.noAddress != "":
		ref := c.Spec.Entrypoint.GatewayRef
		return composite.Condition{Type: EntrypointResolved, Status: composite.Unknown, Reason: reasonNotResolved, Message: "Gateway " + ref.Namespace + "/" + ref.Name + ": " + state.noAddress}
	}
	return composite.Condition{Type: EntrypointResolved, Status: composite.True, Reason: reasonResolved}
}

// maxRefusedNames is how many namespaces the condition Schedulable names.
const maxRefusedNames = 5

func schedulable(p *ledgerPlan) composite.Condition {
	switch {
	case p.notSchedulable != "":
		return composite.Condition{Type: Schedulable, Status: composite.False, Reason: p.notSchedulable, Message: p.message}
	case p.Overcommitted:
		return composite.Condition{Type: Schedulable, Status: composite.False, Reason: ReasonOvercommitted, Message: "more is reserved than the cluster has"}
	case len(p.refused) > 0:
		return composite.Condition{Type: Schedulable, Status: composite.True, Reason: reasonFull, Message: "the ledger is nearly full, and nothing new is reserved for those with more than their share of it: namespace " + text.Names(p.refused, maxRefusedNames)}
	}
	return composite.Condition{Type: Schedulable, Status: composite.True, Reason: reasonSchedulable}
}
