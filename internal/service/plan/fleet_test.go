package plan

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
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
	runs := func(w scheduling.Snapshot, cluster string, replicas ...key.Replica) scheduling.Snapshot {
		w.States[cluster] = schedulingtest.Existing(replicas...)
		return w
	}
	type deployment struct {
		Config  string
		Runs    []string
		Waiting int
		Idle    bool
		Leaving bool
	}
	type want struct {
		Deployments map[string]deployment
		Asks        map[string]int
		Weights     map[string]int32
		Held        int
	}
	cases := map[string]struct {
		reason    string
		placement *v1alpha1.Placement
		replicas  *int32
		world     scheduling.Snapshot
		want      want
	}{
		"Asks": {
			reason:    "Nothing is made before it was granted.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			world:     schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("elsewhere", func(c *v1alpha1.InferenceCluster) { c.Labels = nil })),
			want:      want{Deployments: map[string]deployment{"east": {Config: "east-config", Waiting: 2, Idle: true}}, Asks: map[string]int{"east": 1}, Held: 2},
		},
		"Granted": {
			reason:    "What was granted runs, and the rest waits.",
			placement: with(named, v1alpha1.PlacementReplicate),
			world:     schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1")), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0"))),
			want: want{
				Deployments: map[string]deployment{"a": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}}, "b": {Config: "west-config", Runs: []string{"worker/0"}, Waiting: 1}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 0, "b": 0}, Held: 1,
			},
		},
		"GrantedBefore": {
			reason:    "A replica that was withdrawn and is asked for again waits for a new answer; what is there stays.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			world: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "east", "worker/0")
				w.Request = schedulingtest.Requested(w.Request, "east", 2, "worker/0", "worker/1")
				return w
			}(),
			want: want{
				Deployments: map[string]deployment{"east": {Config: "east-config", Runs: []string{"worker/0"}, Waiting: 1}},
				Asks:        map[string]int{"east": 1}, Weights: map[string]int32{"east": 1}, Held: 1,
			},
		},
		"GrantedUnasked": {
			reason:    "So does one that is not asked for yet: the cluster may have given its room away.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			world: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "east", "worker/0")
				w.Request = schedulingtest.Requested(w.Request, "east", 0, "worker/0")
				return w
			}(),
			want: want{
				Deployments: map[string]deployment{"east": {Config: "east-config", Runs: []string{"worker/0"}, Waiting: 1}},
				Asks:        map[string]int{"east": 1}, Weights: map[string]int32{"east": 1}, Held: 1,
			},
		},
		"AskDeleted": {
			reason:    "An ask that cannot be seen stops nothing, and starts nothing.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			world: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "east", "worker/0")
				w.Request = nil
				return w
			}(),
			want: want{
				Deployments: map[string]deployment{"east": {Config: "east-config", Runs: []string{"worker/0"}, Waiting: 1}},
				Asks:        map[string]int{"east": 1}, Weights: map[string]int32{"east": 1}, Held: 1,
			},
		},
		"GrantedToAnother": {
			reason:    "A service of another namespace that goes by the same UID is another one.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			world: schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"), func(c *v1alpha1.InferenceCluster) {
				c.Status.Reservations[0].Namespace = "mallory"
			})),
			want: want{Deployments: map[string]deployment{"east": {Config: "east-config", Waiting: 2, Idle: true}}, Asks: map[string]int{"east": 1}, Held: 2},
		},
		"Spread": {
			reason:    "The replicas of a plain service are split.",
			placement: with(named, v1alpha1.PlacementSpread),
			world:     runs(runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/1")), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0"))), "a", "worker/1"), "b", "worker/0"),
			want: want{
				Deployments: map[string]deployment{"a": {Config: "east-config", Runs: []string{"worker/1"}}, "b": {Config: "west-config", Runs: []string{"worker/0"}}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 1, "b": 1},
			},
		},
		"NotAnswered": {
			reason:    "While nobody says which clusters there are, what runs stays as it was made.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(), "east", "worker/0", "worker/1")
				w.Resolved, w.Request = false, schedulingtest.RequestedAs("east", "east")
				return w
			}(),
			want: want{Deployments: map[string]deployment{"east": {Config: "remembered", Runs: []string{"worker/0", "worker/1"}}}, Asks: map[string]int{"east": 1}},
		},
		"Deleted": {
			reason:    "An InferenceCluster that is gone takes nothing along.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("west")), "east", "worker/0", "worker/1")
				w.Request = schedulingtest.RequestedAs("east", "east")
				w.Entrypoints = map[string]*v1alpha1.EntrypointStatus{"east": v1alpha1.IPEntrypoint("10.0.0.1", 80)}
				return w
			}(),
			want: want{Deployments: map[string]deployment{"east": {Config: "remembered", Runs: []string{"worker/0", "worker/1"}}}, Asks: map[string]int{"east": 1}, Weights: map[string]int32{"east": 2}},
		},
		"Deselected": {
			reason:    "A cluster that is no longer selected is left, once the service runs elsewhere.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("west"), schedulingtest.Cluster("east", func(c *v1alpha1.InferenceCluster) { c.Labels = nil })), "east", "worker/0", "worker/1")
				w.Request = schedulingtest.RequestedAs("east", "east")
				return w
			}(),
			want: want{
				Deployments: map[string]deployment{"east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "west": {Config: "west-config", Waiting: 2, Idle: true}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"east": 2}, Held: 2,
			},
		},
		"OutOfReach": {
			reason:    "After failoverAfterSeconds the service is started elsewhere.",
			placement: with(named, v1alpha1.PlacementFailover),
			world: runs(schedulingtest.Snapshot(schedulingtest.Cluster("west"), schedulingtest.Cluster("east", func(c *v1alpha1.InferenceCluster) {
				c.Status.UnreachableSince = ptr.To(metav1.NewTime(schedulingtest.Noon.Add(-6 * time.Minute)))
			})), "a", "worker/0", "worker/1"),
			want: want{
				Deployments: map[string]deployment{"a": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "b": {Config: "west-config", Waiting: 2, Idle: true}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 2}, Held: 2,
			},
		},
		"OutOfReachAndFailed": {
			reason:    "What stops the InferenceCluster's own reconcile sets its conditions anew, and does not stop failover.",
			placement: with(named, v1alpha1.PlacementFailover),
			world: runs(schedulingtest.Snapshot(schedulingtest.Cluster("west"), schedulingtest.Cluster("east", func(c *v1alpha1.InferenceCluster) {
				c.Status.UnreachableSince = ptr.To(metav1.NewTime(schedulingtest.Noon.Add(-6 * time.Minute)))
				c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReachable, Status: metav1.ConditionUnknown, Reason: "FatalError", LastTransitionTime: metav1.NewTime(schedulingtest.Noon)}}
			})), "a", "worker/0", "worker/1"),
			want: want{
				Deployments: map[string]deployment{"a": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "b": {Config: "west-config", Waiting: 2, Idle: true}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 2}, Held: 2,
			},
		},
		"NoPools": {
			reason:    "A cluster that is new, and has not said what it has, is not asked.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world:     schedulingtest.Snapshot(schedulingtest.Cluster("east", func(c *v1alpha1.InferenceCluster) { c.Status.Pools = nil })),
			want:      want{Deployments: map[string]deployment{"": {Waiting: 2, Idle: true}}, Asks: map[string]int{}, Held: 2},
		},
		"Broken": {
			reason:    "A cluster that does not say whether it grants anything is not asked while another can be, whatever room its old status shows.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world:     schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Schedulable(metav1.ConditionUnknown)), schedulingtest.Cluster("west", schedulingtest.Schedulable(metav1.ConditionTrue))),
			want:      want{Deployments: map[string]deployment{"west": {Config: "west-config", Waiting: 2, Idle: true}}, Asks: map[string]int{"west": 1}, Held: 2},
		},
		"BrokenWithGroups": {
			reason:    "Nor is it asked for what is spread.",
			placement: with(selector, v1alpha1.PlacementSpread),
			world:     schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Schedulable(metav1.ConditionUnknown)), schedulingtest.Cluster("west")),
			want:      want{Deployments: map[string]deployment{"west": {Config: "west-config", Waiting: 2, Idle: true}}, Asks: map[string]int{"west": 2}, Held: 2},
		},
		"BreaksLater": {
			reason:    "What runs in it stays.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world:     runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Schedulable(metav1.ConditionUnknown), schedulingtest.Reserved("worker/0", "worker/1")), schedulingtest.Cluster("west")), "east", "worker/0", "worker/1"),
			want: want{
				Deployments: map[string]deployment{"east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}}},
				Asks:        map[string]int{"east": 1}, Weights: map[string]int32{"east": 2},
			},
		},
		"FromBeside": {
			reason:    "A service that ran beside the XR stays there until it runs in the fleet.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world:     runs(schedulingtest.Snapshot(schedulingtest.Cluster("east")), "", "worker/0", "worker/1"),
			want: want{
				Deployments: map[string]deployment{"": {Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "east": {Config: "east-config", Waiting: 2, Idle: true}},
				Asks:        map[string]int{"east": 1}, Held: 2,
			},
		},
		"FromElsewhere": {
			reason:    "So does one that ran in a cluster that is not of the fleet.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "old", "worker/0", "worker/1")
				w.States["old"].ProviderConfig.Name, w.States["old"].Namespace = "old-config", "ns"
				return runs(w, "east", "worker/0", "worker/1")
			}(),
			want: want{
				Deployments: map[string]deployment{"old": {Config: "old-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}}},
				Asks:        map[string]int{"east": 1}, Weights: map[string]int32{"east": 2},
			},
		},
		"OutOfTheFleet": {
			reason: "A service that is no longer placed leaves the fleet, and its route, once it runs beside the XR.",
			world: func() scheduling.Snapshot {
				w := runs(runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"))), "east", "worker/0", "worker/1"), "", "worker/0", "worker/1")
				w.Request, w.MayReceiveTraffic = schedulingtest.RequestedAs("east", "east"), receives("east")
				return w
			}(),
			want: want{Deployments: map[string]deployment{"": {Runs: []string{"worker/0", "worker/1"}}}, Asks: map[string]int{}},
		},
		"NoGateways": {
			reason:    "Where no gateway is known, the route is no reason to stay.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: runs(runs(schedulingtest.Snapshot(
				schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"), drained, withoutGateway), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0", "worker/1"), withoutGateway),
			), "east", "worker/0", "worker/1"), "west", "worker/0", "worker/1"),
			want: want{Deployments: map[string]deployment{"west": {Config: "west-config", Runs: []string{"worker/0", "worker/1"}}}, Asks: map[string]int{"west": 1}},
		},
		"NoWayIn": {
			reason:    "A cluster to which the route leads is not left for one to which it cannot.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() scheduling.Snapshot {
				w := runs(runs(schedulingtest.Snapshot(
					schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"), drained), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0", "worker/1"), withoutGateway),
				), "east", "worker/0", "worker/1"), "west", "worker/0", "worker/1")
				w.MayReceiveTraffic = receives("east")
				return w
			}(),
			want: want{
				Deployments: map[string]deployment{"east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "west": {Config: "west-config", Runs: []string{"worker/0", "worker/1"}}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"east": 2},
			},
		},
		"Renamed": {
			reason:    "Another InferenceCluster for the cluster where it runs is no other cluster.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			world: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(schedulingtest.Cluster("east-2", func(c *v1alpha1.InferenceCluster) {
					c.Spec.ProviderConfigRef = v1alpha1.ProviderConfigRef{Kind: v1alpha1.KindClusterProviderConfig, Name: "remembered"}
				})), "east", "worker/0", "worker/1")
				w.Request = schedulingtest.RequestedAs("east", "east")
				w.States["east"].ProviderConfig, w.States["east"].Namespace = v1alpha1.ProviderConfigRef{Kind: v1alpha1.KindClusterProviderConfig, Name: "remembered"}, "ns"
				return w
			}(),
			want: want{Deployments: map[string]deployment{"east": {Config: "remembered", Runs: []string{"worker/0", "worker/1"}}}, Asks: map[string]int{"east": 1}},
		},
		"Unplaced": {
			reason:    "A replica that no cluster takes is wanted all the same.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() scheduling.Snapshot {
				w := runs(schedulingtest.Snapshot(), "east", "worker/0")
				w.Request = schedulingtest.RequestedAs("east", "east")
				return w
			}(),
			want: want{Deployments: map[string]deployment{"east": {Config: "remembered", Runs: []string{"worker/0"}, Waiting: 1}}, Asks: map[string]int{"east": 1}, Held: 1},
		},
		"ScaledToZero": {
			reason:    "A service of no groups keeps its router where it is.",
			placement: with(named, v1alpha1.PlacementFailover),
			replicas:  ptr.To[int32](0),
			world:     schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("west")),
			want:      want{Deployments: map[string]deployment{}, Asks: map[string]int{}},
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
			p, errs := Build(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid", Grouped: tc.replicas != nil}, spec, in, tc.world, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := want{Deployments: map[string]deployment{}, Asks: map[string]int{}, Held: len(p.Deferred)}
			for _, d := range p.Clusters {
				is := deployment{Config: d.Target.ProviderConfig.Name, Waiting: len(d.Pending), Idle: d.NotStarted, Leaving: d.Leaving}
				for r := range d.Replicas() {
					is.Runs = append(is.Runs, string(r.ID))
				}
				got.Deployments[d.Target.Cluster] = is
			}
			for _, c := range slices.Sorted(maps.Keys(p.Schedule.Request.Clusters)) {
				got.Asks[c] = len(p.Schedule.Request.Clusters[c].Groups)
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
