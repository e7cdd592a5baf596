package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// receives is the traffic of a route that sends requests to one cluster.
func receives(cluster string) map[string]bool {
	return map[string]bool{naming.FleetBackend("svc", cluster): true}
}

func drained(c *v1alpha1.InferenceCluster) {
	c.Spec.StopPolicy = v1alpha1.StopDrain
}

func withoutGateway(c *v1alpha1.InferenceCluster) { c.Status.Entrypoint = nil }

func TestFleet(t *testing.T) {
	selector := &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}}
	with := func(p *v1alpha1.Placement, policy v1alpha1.PlacementPolicy) *v1alpha1.Placement {
		c := *p
		c.Policy, c.FailoverAfterSeconds = policy, ptr.To[int32](300)
		return &c
	}
	named := &v1alpha1.Placement{Clusters: []v1alpha1.PlacementCluster{{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}, Weight: ptr.To[int32](1)}, {Name: "b", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "west"}, Weight: ptr.To[int32](1)}}}
	runs := func(w scheduling.Snapshot, cluster string, replicas ...key.ReplicaID) scheduling.Snapshot {
		w.States[cluster] = schedulingtest.Existing(replicas...)
		return w
	}
	homeIn := func(cluster string, w scheduling.Snapshot) scheduling.Snapshot {
		w.Request.Homes = map[key.GroupID]reservation.Home{"0": {Cluster: cluster, Epoch: 1}}
		return w
	}
	type clusterPlan struct {
		Config     string
		Runs       []string
		Pending    int
		NotStarted bool
		Leaving    bool
	}
	type want struct {
		Clusters map[string]clusterPlan
		Requests map[string]int
		Weights  map[string]int32
		// Ends tells that the route is left out.
		Ends bool
		// Due is when a cluster is left that stays out of reach.
		Due      time.Time
		Deferred int
	}
	cases := map[string]struct {
		reason    string
		placement *v1alpha1.Placement
		replicas  *int32
		snapshot  scheduling.Snapshot
		want      want
	}{
		"Requests": {
			reason:    "Nothing is made before capacity is reserved for it.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			snapshot:  schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("elsewhere", func(c *v1alpha1.InferenceCluster) { c.Labels = nil })),
			want:      want{Clusters: map[string]clusterPlan{"east": {Config: "east-config", Pending: 2, NotStarted: true}}, Requests: map[string]int{"east": 1}, Deferred: 2},
		},
		"Reserved": {
			reason:    "Replicas with a reservation run, and the others are pending.",
			placement: with(named, v1alpha1.PlacementReplicate),
			snapshot:  schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1")), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0"))),
			want: want{
				Clusters: map[string]clusterPlan{"a": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}}, "b": {Config: "west-config", Runs: []string{"worker/0"}, Pending: 1}},
				Requests: map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 0, "b": 0}, Deferred: 1,
			},
		},
		"ReservedBefore": {
			reason:    "A replica that was withdrawn and is requested again waits for a new answer. What exists stays.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			snapshot: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "east", "worker/0")
				w.Request = schedulingtest.Requested(w.Request, "east", 2, "worker/0", "worker/1")
				return w
			}(),
			want: want{
				Clusters: map[string]clusterPlan{"east": {Config: "east-config", Runs: []string{"worker/0"}, Pending: 1}},
				Requests: map[string]int{"east": 1}, Weights: map[string]int32{"east": 1}, Deferred: 1,
			},
		},
		"ReservedNotRequested": {
			reason:    "So does one that is not requested yet: the cluster may have reserved its capacity for others.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			snapshot: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "east", "worker/0")
				w.Request = schedulingtest.Requested(w.Request, "east", 0, "worker/0")
				return w
			}(),
			want: want{
				Clusters: map[string]clusterPlan{"east": {Config: "east-config", Runs: []string{"worker/0"}, Pending: 1}},
				Requests: map[string]int{"east": 1}, Weights: map[string]int32{"east": 1}, Deferred: 1,
			},
		},
		"RequestDeleted": {
			reason:    "A capacity request that cannot be read stops nothing and starts nothing.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			snapshot: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "east", "worker/0")
				w.Request = nil
				return w
			}(),
			want: want{
				Clusters: map[string]clusterPlan{"east": {Config: "east-config", Runs: []string{"worker/0"}, Pending: 1}},
				Requests: map[string]int{"east": 1}, Weights: map[string]int32{"east": 1}, Deferred: 1,
			},
		},
		"ReservedForAnother": {
			reason:    "A service with the same UID in another namespace is another service.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			snapshot: schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"), func(c *v1alpha1.InferenceCluster) {
				c.Status.Reservations[0].Namespace = "mallory"
			})),
			want: want{Clusters: map[string]clusterPlan{"east": {Config: "east-config", Pending: 2, NotStarted: true}}, Requests: map[string]int{"east": 1}, Deferred: 2},
		},
		"Spread": {
			reason:    "The replicas of a service without groups are divided among the clusters.",
			placement: with(named, v1alpha1.PlacementSpread),
			snapshot:  runs(runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/1")), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0"))), "a", "worker/1"), "b", "worker/0"),
			want: want{
				Clusters: map[string]clusterPlan{"a": {Config: "east-config", Runs: []string{"worker/1"}}, "b": {Config: "west-config", Runs: []string{"worker/0"}}},
				Requests: map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 1, "b": 1},
			},
		},
		"NotAnswered": {
			reason:    "While it is not known which clusters exist, what runs stays unchanged.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(), "east", "worker/0", "worker/1")
				w.Resolved, w.Request = false, schedulingtest.RequestedAs("east", "east")
				return w
			}(),
			want: want{Clusters: map[string]clusterPlan{"east": {Config: "remembered", Runs: []string{"worker/0", "worker/1"}}}, Requests: map[string]int{"east": 1}},
		},
		"Deleted": {
			reason:    "What runs in a cluster stays when its InferenceCluster is deleted.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("west")), "east", "worker/0", "worker/1")
				w.Request = schedulingtest.RequestedAs("east", "east")
				w.Entrypoints = map[string]*v1alpha1.EntrypointStatus{"east": v1alpha1.IPEntrypoint("10.0.0.1", 80)}
				return w
			}(),
			want: want{Clusters: map[string]clusterPlan{"east": {Config: "remembered", Runs: []string{"worker/0", "worker/1"}}}, Requests: map[string]int{"east": 1}, Weights: map[string]int32{"east": 2}},
		},
		"Deselected": {
			reason:    "A cluster that is no longer selected is left, once the service runs elsewhere.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("west"), schedulingtest.Cluster("east", func(c *v1alpha1.InferenceCluster) { c.Labels = nil })), "east", "worker/0", "worker/1")
				w.Request = schedulingtest.RequestedAs("east", "east")
				return w
			}(),
			want: want{
				Clusters: map[string]clusterPlan{"east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "west": {Config: "west-config", Pending: 2, NotStarted: true}},
				Requests: map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"east": 2}, Deferred: 2,
			},
		},
		"OutOfReachSoon": {
			reason:    "The service stays until then, and its next call is due.",
			placement: with(named, v1alpha1.PlacementFailover),
			snapshot: runs(schedulingtest.Snapshot(schedulingtest.Cluster("west"), schedulingtest.Cluster("east", func(c *v1alpha1.InferenceCluster) {
				c.Status.UnreachableSince = ptr.To(metav1.NewTime(schedulingtest.Noon.Add(-4 * time.Minute)))
			})), "a", "worker/0", "worker/1"),
			want: want{
				Clusters: map[string]clusterPlan{"a": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}}},
				Requests: map[string]int{"east": 1}, Weights: map[string]int32{"a": 2}, Due: schedulingtest.Noon.Add(time.Minute),
			},
		},
		"OutOfReach": {
			reason:    "After failoverAfterSeconds the service is started elsewhere.",
			placement: with(named, v1alpha1.PlacementFailover),
			snapshot: runs(schedulingtest.Snapshot(schedulingtest.Cluster("west"), schedulingtest.Cluster("east", func(c *v1alpha1.InferenceCluster) {
				c.Status.UnreachableSince = ptr.To(metav1.NewTime(schedulingtest.Noon.Add(-6 * time.Minute)))
			})), "a", "worker/0", "worker/1"),
			want: want{
				Clusters: map[string]clusterPlan{"a": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "b": {Config: "west-config", Pending: 2, NotStarted: true}},
				Requests: map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 2}, Deferred: 2,
			},
		},
		"OutOfReachAndFailed": {
			reason:    "An error in the InferenceCluster's own reconcile resets its conditions, and does not stop failover.",
			placement: with(named, v1alpha1.PlacementFailover),
			snapshot: runs(schedulingtest.Snapshot(schedulingtest.Cluster("west"), schedulingtest.Cluster("east", func(c *v1alpha1.InferenceCluster) {
				c.Status.UnreachableSince = ptr.To(metav1.NewTime(schedulingtest.Noon.Add(-6 * time.Minute)))
				c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReachable, Status: metav1.ConditionUnknown, Reason: "FatalError", LastTransitionTime: metav1.NewTime(schedulingtest.Noon)}}
			})), "a", "worker/0", "worker/1"),
			want: want{
				Clusters: map[string]clusterPlan{"a": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "b": {Config: "west-config", Pending: 2, NotStarted: true}},
				Requests: map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 2}, Deferred: 2,
			},
		},
		"NoPools": {
			reason:    "No capacity is requested of a new cluster until its status has its nodes.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot:  schedulingtest.Snapshot(schedulingtest.Cluster("east", func(c *v1alpha1.InferenceCluster) { c.Status.Pools = nil })),
			want:      want{Clusters: map[string]clusterPlan{"": {Pending: 2, NotStarted: true}}, Requests: map[string]int{}, Deferred: 2},
		},
		"Broken": {
			reason:    "If its status does not say that it reserves capacity, none is requested there while another cluster is a candidate.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot:  schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Schedulable(metav1.ConditionUnknown)), schedulingtest.Cluster("west", schedulingtest.Schedulable(metav1.ConditionTrue))),
			want:      want{Clusters: map[string]clusterPlan{"west": {Config: "west-config", Pending: 2, NotStarted: true}}, Requests: map[string]int{"west": 1}, Deferred: 2},
		},
		"BrokenWithGroups": {
			reason:    "Nor does it get a part of what is spread.",
			placement: with(selector, v1alpha1.PlacementSpread),
			snapshot:  schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Schedulable(metav1.ConditionUnknown)), schedulingtest.Cluster("west")),
			want:      want{Clusters: map[string]clusterPlan{"west": {Config: "west-config", Pending: 2, NotStarted: true}}, Requests: map[string]int{"west": 2}, Deferred: 2},
		},
		"BreaksLater": {
			reason:    "What runs in such a cluster stays.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot:  runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Schedulable(metav1.ConditionUnknown), schedulingtest.Reserved("worker/0", "worker/1")), schedulingtest.Cluster("west")), "east", "worker/0", "worker/1"),
			want: want{
				Clusters: map[string]clusterPlan{"east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}}},
				Requests: map[string]int{"east": 1}, Weights: map[string]int32{"east": 2},
			},
		},
		"FromOwnCluster": {
			reason:    "A service that ran in the cluster of its XR stays there until it runs in the fleet.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot:  runs(schedulingtest.Snapshot(schedulingtest.Cluster("east")), "", "worker/0", "worker/1"),
			want: want{
				Clusters: map[string]clusterPlan{"": {Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "east": {Config: "east-config", Pending: 2, NotStarted: true}},
				Requests: map[string]int{"east": 1}, Deferred: 2,
			},
		},
		"FromElsewhere": {
			reason:    "So does one that ran in a cluster outside the fleet.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "old", "worker/0", "worker/1")
				w.States["old"].ProviderConfig.Name, w.States["old"].Namespace = "old-config", "ns"
				return runs(w, "east", "worker/0", "worker/1")
			}(),
			want: want{
				Clusters: map[string]clusterPlan{"old": {Config: "old-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}}},
				Requests: map[string]int{"east": 1}, Weights: map[string]int32{"east": 2},
			},
		},
		"LeavesTheFleet": {
			reason: "A service without placement keeps its fleet route until it is ready in the cluster of its XR.",
			snapshot: func() scheduling.Snapshot {
				w := runs(runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "east", "worker/0", "worker/1"), "", "worker/0", "worker/1")
				w.Request, w.MayReceiveTraffic = schedulingtest.RequestedAs("east", "east"), receives("east")
				delete(w.States[""].Ready, "worker/1")
				return w
			}(),
			want: want{
				Clusters: map[string]clusterPlan{"": {Runs: []string{"worker/0", "worker/1"}}, "east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}},
				Requests: map[string]int{"east": 1}, Weights: map[string]int32{"east": 2},
			},
		},
		"OutOfTheFleet": {
			reason: "Then the route goes, and the copy stays as long as there is one.",
			snapshot: func() scheduling.Snapshot {
				w := runs(runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "east", "worker/0", "worker/1"), "", "worker/0", "worker/1")
				w.Request, w.MayReceiveTraffic = schedulingtest.RequestedAs("east", "east"), receives("east")
				return w
			}(),
			want: want{
				Clusters: map[string]clusterPlan{"": {Runs: []string{"worker/0", "worker/1"}}, "east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}},
				Requests: map[string]int{"east": 1}, Weights: map[string]int32{"east": 0}, Ends: true,
			},
		},
		"WithoutRoute": {
			reason: "Without the route, the copy goes.",
			snapshot: func() scheduling.Snapshot {
				w := runs(runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "east", "worker/0", "worker/1"), "", "worker/0", "worker/1")
				w.Request = schedulingtest.RequestedAs("east", "east")
				return w
			}(),
			want: want{Clusters: map[string]clusterPlan{"": {Runs: []string{"worker/0", "worker/1"}}}, Requests: map[string]int{}, Ends: true},
		},
		"NoGateways": {
			reason:    "Where no entrypoint is known, the fleet route does not keep a copy in a cluster.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot: homeIn("west", runs(runs(schedulingtest.Snapshot(
				schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"), drained, withoutGateway), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0", "worker/1"), withoutGateway),
			), "east", "worker/0", "worker/1"), "west", "worker/0", "worker/1")),
			want: want{Clusters: map[string]clusterPlan{"west": {Config: "west-config", Runs: []string{"worker/0", "worker/1"}}}, Requests: map[string]int{"west": 1}},
		},
		"NoWayIn": {
			reason:    "A service does not leave a cluster that the fleet route reaches for one that it cannot reach.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot: func() scheduling.Snapshot {
				w := runs(runs(schedulingtest.Snapshot(
					schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"), drained), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0", "worker/1"), withoutGateway),
				), "east", "worker/0", "worker/1"), "west", "worker/0", "worker/1")
				w.MayReceiveTraffic = receives("east")
				return w
			}(),
			want: want{
				Clusters: map[string]clusterPlan{"east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "west": {Config: "west-config", Runs: []string{"worker/0", "worker/1"}}},
				Requests: map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"east": 2},
			},
		},
		"Renamed": {
			reason:    "A new InferenceCluster for the same provider configuration stands for the same cluster.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			snapshot: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("east-2", func(c *v1alpha1.InferenceCluster) {
					c.Spec.ProviderConfigRef = v1alpha1.ClusterScopedConfigRef{Name: "remembered"}
				})), "east", "worker/0", "worker/1")
				w.Request = schedulingtest.RequestedAs("east", "east")
				w.States["east"].ProviderConfig, w.States["east"].Namespace = v1alpha1.ProviderConfigRef{Kind: v1alpha1.KindClusterProviderConfig, Name: "remembered"}, "ns"
				return w
			}(),
			want: want{Clusters: map[string]clusterPlan{"east": {Config: "remembered", Runs: []string{"worker/0", "worker/1"}}}, Requests: map[string]int{"east": 1}},
		},
		"Unplaced": {
			reason:    "A replica that no cluster takes is still pending.",
			placement: with(selector, v1alpha1.PlacementFailover),
			snapshot: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(), "east", "worker/0")
				w.Request = schedulingtest.RequestedAs("east", "east")
				return w
			}(),
			want: want{Clusters: map[string]clusterPlan{"east": {Config: "remembered", Runs: []string{"worker/0"}, Pending: 1}}, Requests: map[string]int{"east": 1}, Deferred: 1},
		},
		"ScaledToZero": {
			reason:    "A service of zero groups has no cluster plan.",
			placement: with(named, v1alpha1.PlacementFailover),
			replicas:  ptr.To[int32](0),
			snapshot:  schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("west")),
			want:      want{Clusters: map[string]clusterPlan{}, Requests: map[string]int{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.InferenceServiceSpec{
				Placement: tc.placement, Replicas: tc.replicas,
				Roles: []v1alpha1.Role{
					{Name: "router", ComponentType: v1alpha1.ComponentTypeRouter, HTTPRoute: document(t, `{"parentRefs":[{"name":"gw"}],"hostnames":["h.example.com"]}`)},
					{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](2), Template: document(t, `{"spec":{"containers":[{"name":"vllm","image":"x","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`)},
				},
			}
			in := &inputv1alpha1.Input{}
			inputv1alpha1.Default(in)
			in.Fleet.ParentRefs = []inputv1alpha1.ParentRef{{Name: "hub"}}
			p, errs := place(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid", Grouped: tc.replicas != nil}, spec, in, tc.snapshot, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := want{Clusters: map[string]clusterPlan{}, Requests: map[string]int{}, Deferred: len(p.Deferred), Ends: p.FleetRoute.Ends, Due: p.Due}
			for _, d := range p.Clusters {
				is := clusterPlan{Config: d.Target.ProviderConfig.Name, Pending: len(d.Pending), NotStarted: d.NotStarted, Leaving: d.Leaving}
				for r := range d.Replicas() {
					is.Runs = append(is.Runs, string(r.ID))
				}
				got.Clusters[d.Target.Cluster] = is
			}
			for _, c := range slices.Sorted(maps.Keys(p.Schedule.Request.Clusters)) {
				got.Requests[c] = len(p.Schedule.Request.Clusters[c].Groups)
			}
			for _, b := range p.FleetRoute.Backends {
				if got.Weights == nil {
					got.Weights = map[string]int32{}
				}
				got.Weights[b.Cluster] = b.Weight
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFleetRouteMatches proves that the route over all clusters takes the requests that the service's own
// route takes.
func TestFleetRouteMatches(t *testing.T) {
	path := func(p string) []any {
		return []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": p}}}
	}
	cases := map[string]struct {
		reason string
		route  string
		want   [][]any
	}{
		"Everything": {"One rule, for everything.", `{"hostnames":["h.example.com"]}`, [][]any{nil}},
		"Paths": {
			"Other services have other paths of the same name.",
			`{"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/a"}}],"filters":[]},{"matches":[{"path":{"type":"PathPrefix","value":"/b"}}],"backendRefs":[{"name":"other"}]}]}`,
			[][]any{path("/a"), path("/b")},
		},
		"OneOfTwo": {"One rule takes all.", `{"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/a"}}]},{"matches":null}]}`, [][]any{path("/a"), nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Service: naming.Identity{Name: "svc"}, Router: &Router{HasRoute: true, Route: document(t, tc.route)}}
			in := &inputv1alpha1.Input{}
			in.Fleet.ParentRefs = []inputv1alpha1.ParentRef{{Name: "hub"}}
			for _, host := range kube.Lookup(p.Router.Route, "hostnames").GetListValue().GetValues() {
				p.Router.Hostnames = append(p.Router.Hostnames, host.GetStringValue())
			}
			h := p.fleetRoute(in)
			if diff := cmp.Diff(tc.want, h.Matches, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTooManyStates proves that a service or a ModelCache is refused whose XR refers to objects in more clusters than it can be in.
func TestTooManyStates(t *testing.T) {
	const tooMany = `: Invalid value: "1025 clusters": the XR refers to objects in too many clusters`
	for clusters, want := range map[int]string{1024: "", 1025: tooMany} {
		snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"))
		for i := range clusters {
			snapshot.States[fmt.Sprintf("c%d", i)] = schedulingtest.Existing()
		}
		spec := &v1alpha1.InferenceServiceSpec{
			Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementSpread, Clusters: []v1alpha1.PlacementCluster{{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}},
			Roles:     []v1alpha1.Role{{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](1), Template: document(t, `{"spec":{"containers":[{"name":"vllm","image":"i"}]}}`)}},
		}
		identity := naming.Identity{Name: "svc", Namespace: "ns", UID: "uid"}
		_, ofService := Build(identity, spec, defaultInput(), snapshot, nil)
		_, ofCache := BuildCache(identity, &v1alpha1.ModelCacheSpec{URI: "hf://a/b", Clusters: []string{"east"}}, defaultInput(), snapshot)
		for path, errs := range map[string]field.ErrorList{"spec.placement": ofService, "spec.clusters": ofCache} {
			if got := fmt.Sprint(errs); (want == "") != (len(errs) == 0) || want != "" && !strings.Contains(got, path+want) {
				t.Errorf("%d clusters: want %s%s, got %s", clusters, path, want, got)
			}
		}
	}
}
