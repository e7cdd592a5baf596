package scheduling_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// listed is a placement in some clusters of the fleet, in their order.
func listed(policy v1alpha1.PlacementPolicy, names ...string) *v1alpha1.Placement {
	p := &v1alpha1.Placement{Policy: policy}
	for _, name := range names {
		p.Clusters = append(p.Clusters, placementIn(name).Clusters...)
	}
	return p
}

// asleep are the groups of oneWorker without replicas.
var asleep = []reservation.ReplicaGroup{{Name: "0"}}

// TestRead proves what follows from what is read of clusters. The placement prefers west to east, and the service wants one worker.
func TestRead(t *testing.T) {
	type outcome struct {
		State           v1alpha1.PlacementState
		Reason, Message string
		Run, Pending    []key.ReplicaID
	}
	type change = func(*scheduling.Demand, *scheduling.Snapshot)
	w := []key.ReplicaID{"worker/0"}
	runs := func(_ *scheduling.Demand, s *scheduling.Snapshot) {
		schedulingtest.Reserved(w...)(s.Clusters["east"])
		s.Request = schedulingtest.Requested(nil, "east", 0, w...)
		s.Request.Homes = map[key.GroupID]reservation.Home{"0": {Cluster: "east", Epoch: 1, Started: true}}
		s.States["east"] = schedulingtest.Existing(w...)
	}
	stop := func(policy v1alpha1.StopPolicy) change {
		return func(_ *scheduling.Demand, s *scheduling.Snapshot) { s.Clusters["east"].Spec.StopPolicy = policy }
	}
	unreachable := func(_ *scheduling.Demand, s *scheduling.Snapshot) {
		since := metav1.NewTime(s.Now.Add(-time.Minute))
		s.Clusters["east"].Status.UnreachableSince = &since
	}
	gone := func(_ *scheduling.Demand, s *scheduling.Snapshot) { delete(s.Clusters, "east") }
	sleeps := func(d *scheduling.Demand, s *scheduling.Snapshot) {
		d.Groups, d.Waits = asleep, true
		s.Request = schedulingtest.RequestedAs("east", "east")
		s.Request.Homes = map[key.GroupID]reservation.Home{"0": {Cluster: "east", Epoch: 1, Started: true}}
		s.States["east"] = schedulingtest.Existing()
	}
	inScope := func(scope scheduling.Scope) change {
		return func(d *scheduling.Demand, _ *scheduling.Snapshot) {
			scope.Reason, scope.Message = scheduling.ReasonNoCache, "there is no model cache"
			d.Scope = &scope
		}
	}
	labels := func(value string) scheduling.Scope {
		return scheduling.Scope{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": value}}}
	}
	allows := func(a v1alpha1.AllowedNamespaces) change {
		return func(_ *scheduling.Demand, s *scheduling.Snapshot) { s.Clusters["east"].Spec.AllowedNamespaces = &a }
	}
	theirs := allows(v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesNames, Names: []string{"theirs"}})
	alone := func(d *scheduling.Demand, _ *scheduling.Snapshot) {
		d.Placement = listed(v1alpha1.PlacementFailover, "east")
	}
	weights := func(weight int32) change {
		return func(d *scheduling.Demand, _ *scheduling.Snapshot) {
			d.Placement.Policy, d.Placement.Clusters[1].Weight = v1alpha1.PlacementSpread, &weight
		}
	}
	usedIn := func(cluster string) change {
		return func(d *scheduling.Demand, _ *scheduling.Snapshot) {
			d.UsedBy = func(name string) bool { return name == cluster }
		}
	}
	taintWest := func(_ *scheduling.Demand, s *scheduling.Snapshot) {
		s.Clusters["west"].Status.Pools[0].Free[0].Taints = []v1alpha1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	}
	const missing = "there is no InferenceCluster east, or none with a profile in fleet.namespace of the Input"
	notPlaced := outcome{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonUnknown, Message: missing}
	notNeeded := outcome{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonNotNeeded, Message: "capacity is requested in west"}
	asked := outcome{State: v1alpha1.StatePending, Reason: scheduling.ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Pending: w}
	cases := map[string]struct {
		reason  string
		changes []change
		want    outcome
	}{
		"Second":  {reason: "West is asked first.", want: notNeeded},
		"Tainted": {reason: "The nodes of west take none of its pods.", changes: []change{taintWest}, want: asked},
		"Tolerates": {reason: "They take these.", changes: []change{taintWest, func(d *scheduling.Demand, _ *scheduling.Snapshot) {
			pod := d.PodRequirements["worker/leader"]
			d.PodRequirements = map[string]capacity.PodRequirements{"worker/leader": *capacitytest.Tolerating(&pod, "x")}
		}}, want: notNeeded},
		"NotResolved": {reason: "Nothing is said of a cluster before it is known whether it exists.", changes: []change{func(_ *scheduling.Demand, s *scheduling.Snapshot) {
			s.Resolved, s.Clusters = false, nil
		}}, want: outcome{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonUnknown, Message: "the clusters of the fleet are not known yet"}},
		"Gone": {reason: "What runs in a cluster that is gone is not touched.", changes: []change{runs, gone}, want: outcome{State: v1alpha1.StatePlaced, Reason: scheduling.ReasonUnknown, Message: missing, Run: w}},
		"NotReported": {reason: "Its pools are not known so far.", changes: []change{func(_ *scheduling.Demand, s *scheduling.Snapshot) {
			s.Clusters["east"].Status.Pools = nil
		}}, want: outcome{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonUnknown, Message: "it has not reported its capacity yet"}},
		"Sleeps":      {reason: "It sleeps on in a cluster that is briefly out of reach.", changes: []change{sleeps, unreachable}, want: outcome{State: v1alpha1.StatePlaced, Reason: scheduling.ReasonUnreachable, Message: "out of reach since 2026-03-01T11:59:00Z"}},
		"SleepsGone":  {reason: "Nobody says that the cluster comes back.", changes: []change{sleeps, gone}, want: notPlaced},
		"SleepsNever": {reason: "Nothing of it exists there.", changes: []change{sleeps, unreachable, func(_ *scheduling.Demand, s *scheduling.Snapshot) { s.States = nil }}, want: outcome{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonUnreachable, Message: "out of reach since 2026-03-01T11:59:00Z"}},
		"Wakes": {reason: "It wakes where it slept, and not where requests waited before.", changes: []change{sleeps, func(d *scheduling.Demand, s *scheduling.Snapshot) {
			d.Groups, s.States = oneWorker, map[string]*scheduling.ClusterState{}
			for _, name := range []string{"east", "west"} {
				s.Request.Clusters[name] = reservation.ClusterRequest{Name: name, Namespace: "ns", Groups: asleep}
			}
		}}, want: asked},
		"WestWakes": {reason: "So it does where it slept in west.", changes: []change{sleeps, func(d *scheduling.Demand, s *scheduling.Snapshot) {
			d.Groups, s.States = oneWorker, map[string]*scheduling.ClusterState{}
			for _, name := range []string{"east", "west"} {
				s.Request.Clusters[name] = reservation.ClusterRequest{Name: name, Namespace: "ns", Groups: asleep}
			}
			s.Request.Homes = map[key.GroupID]reservation.Home{"0": {Cluster: "west", Epoch: 1, Started: true}}
		}}, want: notNeeded},
		"NoCluster": {reason: "A second worker is wanted, and the only cluster is drained. It is pending there.", changes: []change{alone, runs, stop(v1alpha1.StopDrain), func(d *scheduling.Demand, _ *scheduling.Snapshot) {
			d.Groups = []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{oneWorker[0].Replicas[0], {Name: "worker/1", Pods: oneWorker[0].Replicas[0].Pods}}}}
		}}, want: outcome{State: v1alpha1.StateLeaving, Reason: scheduling.ReasonDraining, Message: "the cluster is drained, and is left once it runs elsewhere", Run: w, Pending: []key.ReplicaID{"worker/1"}}},
		"Used":          {reason: "Others use what runs there.", changes: []change{runs, stop(v1alpha1.StopDrain), usedIn("east")}, want: outcome{State: v1alpha1.StateLeaving, Reason: scheduling.ReasonDraining, Message: "the cluster is drained, and is left once nothing there uses it", Run: w}},
		"UsedElsewhere": {reason: "They use what runs in another one.", changes: []change{runs, stop(v1alpha1.StopDrain), usedIn("west")}, want: outcome{State: v1alpha1.StateLeaving, Reason: scheduling.ReasonDraining, Message: "the cluster is drained, and is left once it runs elsewhere", Run: w}},
		"OutOfScope":    {reason: "The service may start in west only.", changes: []change{inScope(scheduling.Scope{Names: []string{"west"}})}, want: outcome{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonNoCache, Message: "there is no model cache"}},
		"InScope":       {reason: "It may start in east only.", changes: []change{inScope(scheduling.Scope{Names: []string{"east"}})}, want: asked},
		"OtherLabels":   {reason: "It may start in clusters with other labels.", changes: []change{inScope(labels("eu"))}, want: outcome{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonNoCache, Message: "there is no model cache"}},
		"Labels":        {reason: "It may start in clusters with the labels of east.", changes: []change{alone, inScope(labels("us"))}, want: asked},
		"OtherPending": {reason: "What is said of another service is not about this one.", changes: []change{alone, func(_ *scheduling.Demand, s *scheduling.Snapshot) {
			s.Clusters["east"].Status.Pending = []v1alpha1.PendingRequest{{UID: "other", Namespace: "ns", Name: "other", Message: "8 short"}}
		}}, want: asked},
		"Pending": {reason: "The cluster says what is short.", changes: []change{alone, func(_ *scheduling.Demand, s *scheduling.Snapshot) {
			s.Clusters["east"].Status.Pending = []v1alpha1.PendingRequest{{UID: "uid", Namespace: "ns", Name: "svc", Message: "8 short"}}
		}}, want: outcome{State: v1alpha1.StatePending, Reason: scheduling.ReasonNotReserved, Message: "8 short", Pending: w}},
		"NotAllowed": {reason: "The tenant cannot find out that there is such a cluster.", changes: []change{alone, theirs}, want: notPlaced},
		"NotAllowedBeside": {reason: "What runs beside the XR says nothing of it.", changes: []change{alone, theirs, func(_ *scheduling.Demand, s *scheduling.Snapshot) {
			s.Request, s.States[""] = schedulingtest.RequestOf(), schedulingtest.Existing(w...)
		}}, want: notPlaced},
		"NotAllowedRuns": {reason: "What runs there leaves it.", changes: []change{alone, theirs, runs}, want: outcome{State: v1alpha1.StateLeaving, Reason: scheduling.ReasonDeselected, Message: "the cluster no longer allows this namespace, and is left once it runs elsewhere", Run: w}},
		"NamespaceUnread": {reason: "It cannot be used before the labels of the namespace are read, although it allows namespaces without labels.", changes: []change{alone, allows(v1alpha1.AllowedNamespaces{
			From: v1alpha1.NamespacesSelector, Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}},
		})}, want: notPlaced},
		"WeightIsZero": {reason: "Under Spread, a cluster of weight 0 is not used.", changes: []change{weights(0)}, want: outcome{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonWeight, Message: "its weight is 0"}},
		"Weight":       {reason: "Under Spread, the cluster of the highest weight gets the first group.", changes: []change{weights(2)}, want: asked},
		"Outside": {reason: "A cluster outside of the fleet reserves nothing.", changes: []change{func(d *scheduling.Demand, _ *scheduling.Snapshot) {
			d.Placement = &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "east", ProviderConfigRef: &v1alpha1.ProviderConfigRef{Name: "own"}}}}
		}}, want: outcome{State: v1alpha1.StatePlaced, Run: w}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("west"))
			demand := &scheduling.Demand{ServiceID: schedulingtest.Service, Placement: listed(v1alpha1.PlacementFailover, "west", "east"), Groups: oneWorker, PodRequirements: gpus(8)}
			for _, change := range tc.changes {
				change(demand, &snapshot)
			}
			result := scheduling.Schedule(demand, &snapshot)
			i := slices.IndexFunc(result.Assignments, func(a scheduling.Assignment) bool { return a.Name == "east" })
			if i < 0 {
				t.Fatalf("%s Nothing is decided about east.", tc.reason)
			}
			a := &result.Assignments[i]
			if diff := cmp.Diff(tc.want, outcome{a.State, a.Reason, a.Message, slices.Sorted(maps.Keys(a.Run)), a.Pending}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if _, named := result.Request.Clusters[""]; named {
				t.Errorf("%s The request has a cluster outside of the fleet.", tc.reason)
			}
		})
	}
}

// TestEntrypoints proves to which address of a cluster the fleet route leads.
func TestEntrypoints(t *testing.T) {
	type reached struct {
		At, Unused string
	}
	ip := func(value string) *v1alpha1.EntrypointStatus { return v1alpha1.IPEntrypoint(value, 80) }
	cases := map[string]struct {
		reason    string
		reported  *v1alpha1.EntrypointStatus
		hostnames key.HostnameBackend
		noRoute   bool
		// known and knownName are where the route leads so far.
		known, knownName *v1alpha1.EntrypointStatus
		want             reached
	}{
		"IP":            {reason: "It is what the cluster reports.", reported: ip("192.0.2.1"), known: ip("192.0.2.9"), want: reached{At: "192.0.2.1"}},
		"Empty":         {reason: "An address without a value is none, so the last known one counts.", reported: ip(""), known: ip("192.0.2.9"), want: reached{At: "192.0.2.9"}},
		"NotReported":   {reason: "The same holds if nothing is reported.", known: ip("192.0.2.9"), want: reached{At: "192.0.2.9"}},
		"Name":          {reason: "The route leads to DNS names.", reported: v1alpha1.HostnameEntrypoint("a.example", 80), hostnames: key.HostnameEntry, want: reached{At: "a.example"}},
		"NameUnused":    {reason: "The route does not lead to DNS names.", reported: v1alpha1.HostnameEntrypoint("a.example", 80), want: reached{Unused: "a.example"}},
		"NameNoRoute":   {reason: "Without a fleet route, nobody misses it.", reported: v1alpha1.HostnameEntrypoint("a.example", 80), noRoute: true},
		"NameKnown":     {reason: "The last known name counts, if the route leads there in the same way.", hostnames: key.HostnameEntry, knownName: v1alpha1.HostnameEntrypoint("b.example", 80), want: reached{At: "b.example"}},
		"NameOtherWay":  {reason: "It led there in another way.", hostnames: key.HostnameSlice, knownName: v1alpha1.HostnameEntrypoint("b.example", 80)},
		"LaterType":     {reason: "A later version reports an address of another type.", reported: &v1alpha1.EntrypointStatus{Address: v1alpha1.EntrypointAddressStatus{Type: "Later", Value: "c"}}, hostnames: key.HostnameEntry, known: ip("192.0.2.9"), want: reached{At: "192.0.2.9"}},
		"LaterNoRoutes": {reason: "It is no DNS name that is not used.", reported: &v1alpha1.EntrypointStatus{Address: v1alpha1.EntrypointAddressStatus{Type: "Later", Value: "c"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"))
			snapshot.Clusters["east"].Status.Entrypoint = tc.reported
			if tc.known != nil {
				snapshot.Entrypoints = map[string]*v1alpha1.EntrypointStatus{"east": tc.known}
			}
			if tc.knownName != nil {
				snapshot.Hostnames = map[key.HostnameBackend]map[string]*v1alpha1.EntrypointStatus{key.HostnameEntry: {"east": tc.knownName}}
			}
			a := scheduling.Schedule(&scheduling.Demand{ServiceID: schedulingtest.Service, Placement: placementIn("east"), HasFleetRoute: !tc.noRoute, HostnameBackend: tc.hostnames}, &snapshot).Assignments[0]
			got := reached{Unused: a.UnusedHostname}
			if a.Entrypoint != nil {
				got.At = a.Entrypoint.Address.Value
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestQueues proves from which queues Kueue and Volcano take what runs in a cluster.
func TestQueues(t *testing.T) {
	type queues struct{ Local, Gang string }
	own := &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "east", ProviderConfigRef: &v1alpha1.ProviderConfigRef{Name: "own"}}}}
	cases := map[string]struct {
		reason       string
		placement    *v1alpha1.Placement
		gone, exists bool
		want         queues
	}{
		"Named":   {reason: "The InferenceCluster names them, whatever runs there.", placement: placementIn("east"), exists: true, want: queues{"new", "new-gangs"}},
		"Gone":    {reason: "There is no InferenceCluster, so they are those of what runs there.", placement: placementIn("east"), gone: true, exists: true, want: queues{"old", "old-gangs"}},
		"Nothing": {reason: "Nothing runs there either.", placement: placementIn("east"), gone: true},
		"Outside": {reason: "A cluster outside of the fleet has none.", placement: own, exists: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east", func(c *v1alpha1.InferenceCluster) {
				c.Spec.Admission, c.Spec.Kueue, c.Spec.Volcano = v1alpha1.AdmissionKueue, &v1alpha1.Kueue{LocalQueueName: "new"}, &v1alpha1.Volcano{QueueName: "new-gangs"}
			}))
			if tc.gone {
				delete(snapshot.Clusters, "east")
			}
			if tc.exists {
				snapshot.States["east"] = schedulingtest.Existing()
				snapshot.States["east"].LocalQueue, snapshot.States["east"].GangQueue = "old", "old-gangs"
			}
			a := scheduling.Schedule(&scheduling.Demand{ServiceID: schedulingtest.Service, Placement: tc.placement}, &snapshot).Assignments[0]
			if diff := cmp.Diff(tc.want, queues{a.LocalQueue, a.GangQueue}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSelectorText proves what people read of the labels by which a placement selects clusters.
func TestSelectorText(t *testing.T) {
	cases := map[string]struct {
		reason   string
		selector *metav1.LabelSelector
		want     string
	}{
		"None":       {reason: "It selects no clusters."},
		"All":        {reason: "It selects all of them.", selector: &metav1.LabelSelector{}},
		"Labels":     {reason: "It selects those with a label.", selector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}, want: "region=us"},
		"Expression": {reason: "It selects those with any of two labels.", selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"us", "eu"}}}}, want: "region in (eu,us)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot()
			got := scheduling.Schedule(&scheduling.Demand{ServiceID: schedulingtest.Service, Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, ClusterSelector: tc.selector}}, &snapshot).Selector
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAnswered proves when a copy answered requests, and when the gateways there refuse it.
func TestAnswered(t *testing.T) {
	type told struct{ Answered, Refused bool }
	cases := map[string]struct {
		reason string
		state  *scheduling.ClusterState
		want   told
	}{
		"Answers":     {reason: "Its gateway leads to an endpoint picker that was ready.", state: &scheduling.ClusterState{RouterWasReady: true, HasRoute: true, HasPool: true}, want: told{Answered: true}},
		"NotReady":    {reason: "It was not ready.", state: &scheduling.ClusterState{HasRoute: true, HasPool: true}},
		"NoRoute":     {reason: "The gateway does not know the service.", state: &scheduling.ClusterState{RouterWasReady: true, HasPool: true, PoolRefused: true, RouteRefused: true}},
		"NoPool":      {reason: "Its route leads to no pool.", state: &scheduling.ClusterState{RouterWasReady: true, HasRoute: true}},
		"Route":       {reason: "The route is refused.", state: &scheduling.ClusterState{HasRoute: true, HasPool: true, RouteRefused: true}, want: told{Refused: true}},
		"PoolRefused": {reason: "The pool is refused.", state: &scheduling.ClusterState{HasRoute: true, HasPool: true, PoolRefused: true}, want: told{Refused: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, told{tc.state.Answered(), tc.state.Refused()}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if (*scheduling.ClusterState)(nil).Answered() {
		t.Error("a cluster of which nothing is known has answered")
	}
}

// TestOutsideFleet proves where a service outside of the fleet runs.
func TestOutsideFleet(t *testing.T) {
	own := v1alpha1.PlacementCluster{Name: "own", Namespace: "theirs", ProviderConfigRef: &v1alpha1.ProviderConfigRef{Name: "config"}}
	beside := []scheduling.Target{{Namespace: "ns"}}
	cases := map[string]struct {
		reason    string
		placement *v1alpha1.Placement
		want      []scheduling.Target
	}{
		"None":  {reason: "It runs beside the XR.", want: beside},
		"Empty": {reason: "A placement of no clusters is the same.", placement: &v1alpha1.Placement{}, want: beside},
		"Own":   {reason: "It runs in each cluster with a configuration.", placement: &v1alpha1.Placement{Clusters: []v1alpha1.PlacementCluster{own}}, want: []scheduling.Target{{Cluster: "own", Namespace: "theirs", ProviderConfig: v1alpha1.ProviderConfigRef{Name: "config"}}}},
		"Fleet": {reason: "A cluster of the fleet is none of them.", placement: &v1alpha1.Placement{Clusters: append(placementIn("east").Clusters, own)}, want: []scheduling.Target{{Cluster: "own", Namespace: "theirs", ProviderConfig: v1alpha1.ProviderConfigRef{Name: "config"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, scheduling.OutsideFleet("ns", tc.placement)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLeavesFleet proves when a service that names no cluster of the fleet still runs in one.
func TestLeavesFleet(t *testing.T) {
	cases := map[string]struct {
		reason  string
		request *reservation.CapacityRequest
		exists  bool
		want    bool
	}{
		"Never":   {reason: "It has requested nothing.", exists: true},
		"Runs":    {reason: "It runs in east.", request: schedulingtest.RequestedAs("east", "east"), exists: true, want: true},
		"Left":    {reason: "Nothing of it exists in east.", request: schedulingtest.RequestedAs("east", "east")},
		"Another": {reason: "What exists is in a cluster that it requested nothing of.", request: schedulingtest.RequestedAs("west", "west"), exists: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"))
			snapshot.Request = tc.request
			if tc.exists {
				snapshot.States["east"] = schedulingtest.Existing("worker/0")
			}
			if diff := cmp.Diff(tc.want, scheduling.LeavesFleet(&snapshot)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
