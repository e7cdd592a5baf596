package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// aCluster is one of the fleet, with four nodes of 8 GPUs.
func aCluster(name string, change ...func(*v1alpha1.InferenceCluster)) *v1alpha1.InferenceCluster {
	gpus := func(n string) v1alpha1.PoolStatus {
		return v1alpha1.PoolStatus{
			Name: "h100", Nodes: 4, Allocatable: resources("nvidia.com/gpu", n),
			Free: []v1alpha1.FreeNodes{{Nodes: 4, Resources: resources("nvidia.com/gpu", "8")}},
		}
	}
	c := &v1alpha1.InferenceCluster{Spec: v1alpha1.InferenceClusterSpec{ProviderConfigRef: v1alpha1.ProviderConfigRef{Name: name + "-config"}}}
	c.Name, c.Labels = name, map[string]string{"region": "us"}
	c.Status.Pools = []v1alpha1.PoolStatus{gpus("32")}
	c.Status.Gateway = &v1alpha1.GatewayStatus{Address: "10.0.0.1", Port: 80}
	for _, f := range change {
		f(c)
	}
	return c
}

func granted(replicas ...string) func(*v1alpha1.InferenceCluster) {
	return func(c *v1alpha1.InferenceCluster) {
		c.Status.Allocations = []v1alpha1.Allocation{{UID: "uid", Namespace: "ns", Name: "svc", Replicas: replicas}}
	}
}

// open is what a cluster says of whether it grants anything new.
func open(is metav1.ConditionStatus) func(*v1alpha1.InferenceCluster) {
	return func(c *v1alpha1.InferenceCluster) {
		c.Status.Conditions = []metav1.Condition{{Type: fleet.ConditionOpen, Status: is, Message: "it says why"}}
	}
}

func world(clusters ...*v1alpha1.InferenceCluster) World {
	w := World{Now: noon, Answered: true, Clusters: map[string]*v1alpha1.InferenceCluster{}, Places: map[string]*Place{}, Routed: map[string]bool{}}
	for _, c := range clusters {
		w.Clusters[c.Name] = c
		for _, a := range c.Status.Allocations {
			// What was granted was asked for.
			w.Ask = withAsked(w.Ask, c.Name, a.Serial, a.Replicas...)
		}
	}
	return w
}

func there(replicas ...string) *Place {
	p := &Place{Present: map[string]bool{}, Ready: map[string]bool{}, Served: map[string]bool{}, RouterReady: true, RouterServed: true}
	for _, r := range replicas {
		p.Present[r], p.Ready[r], p.Served[r] = true, true, true
	}
	return p
}

func drained(c *v1alpha1.InferenceCluster) {
	c.Spec.Taints = []v1alpha1.Taint{{Effect: v1alpha1.TaintDrain}}
}

func withoutGateway(c *v1alpha1.InferenceCluster) { c.Status.Gateway = nil }

// leads is a route to one cluster.
func leads(cluster string) map[string]bool {
	return map[string]bool{hubName(Service{Name: "svc"}, cluster): true}
}

// withAsked asks a cluster for some replicas, with the serial.
func withAsked(a *fleet.Ask, cluster string, serial int64, replicas ...string) *fleet.Ask {
	if a == nil {
		a = &fleet.Ask{UID: "uid", Namespace: "ns", Name: "svc", Clusters: map[string]fleet.AskedCluster{}}
	}
	u := fleet.Unit{Name: "0"}
	for _, r := range replicas {
		u.Replicas = append(u.Replicas, fleet.Replica{Name: r, Serial: serial})
	}
	a.Serial = max(a.Serial, serial)
	a.Clusters[cluster] = fleet.AskedCluster{As: cluster, Namespace: "ns", Units: []fleet.Unit{u}}
	return a
}

// asked is an ask of the last time.
func asked(cluster, as string) *fleet.Ask {
	return &fleet.Ask{UID: "uid", Namespace: "ns", Name: "svc", Clusters: map[string]fleet.AskedCluster{
		cluster: {As: as, Namespace: "ns", ConfigKind: "ClusterProviderConfig", Config: "remembered"},
	}}
}

func TestFleet(t *testing.T) {
	selector := &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}}
	with := func(p *v1alpha1.Placement, policy v1alpha1.PlacementPolicy) *v1alpha1.Placement {
		c := *p
		c.Policy, c.FailoverAfter = policy, "5m"
		return &c
	}
	named := &v1alpha1.Placement{Clusters: []v1alpha1.Cluster{{Name: "a", InferenceCluster: "east", Weight: ptr.To[int32](1)}, {Name: "b", InferenceCluster: "west", Weight: ptr.To[int32](1)}}}
	runs := func(w World, cluster string, replicas ...string) World {
		w.Places[cluster] = there(replicas...)
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
		world     World
		want      want
	}{
		"Asks": {
			reason:    "Nothing is made before it was granted.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			world:     world(aCluster("east"), aCluster("elsewhere", func(c *v1alpha1.InferenceCluster) { c.Labels = nil })),
			want:      want{Deployments: map[string]deployment{"east": {Config: "east-config", Waiting: 2, Idle: true}}, Asks: map[string]int{"east": 1}, Held: 2},
		},
		"Granted": {
			reason:    "What was granted runs, and the rest waits.",
			placement: with(named, v1alpha1.PlacementReplicate),
			world:     world(aCluster("east", granted("worker/0", "worker/1")), aCluster("west", granted("worker/0"))),
			want: want{
				Deployments: map[string]deployment{"a": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}}, "b": {Config: "west-config", Runs: []string{"worker/0"}, Waiting: 1}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 0, "b": 0}, Held: 1,
			},
		},
		"GrantedBefore": {
			reason:    "A replica that was withdrawn and is asked for again waits for a new answer; what is there stays.",
			placement: with(selector, v1alpha1.PlacementReplicate),
			world: func() World {
				w := runs(world(aCluster("east", granted("worker/0", "worker/1"))), "east", "worker/0")
				w.Ask = withAsked(w.Ask, "east", 2, "worker/0", "worker/1")
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
			world: func() World {
				w := runs(world(aCluster("east", granted("worker/0", "worker/1"))), "east", "worker/0")
				w.Ask = withAsked(w.Ask, "east", 0, "worker/0")
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
			world: func() World {
				w := runs(world(aCluster("east", granted("worker/0", "worker/1"))), "east", "worker/0")
				w.Ask = nil
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
			world: world(aCluster("east", granted("worker/0", "worker/1"), func(c *v1alpha1.InferenceCluster) {
				c.Status.Allocations[0].Namespace = "mallory"
			})),
			want: want{Deployments: map[string]deployment{"east": {Config: "east-config", Waiting: 2, Idle: true}}, Asks: map[string]int{"east": 1}, Held: 2},
		},
		"Spread": {
			reason:    "The replicas of a plain service are split.",
			placement: with(named, v1alpha1.PlacementSpread),
			world:     runs(runs(world(aCluster("east", granted("worker/1")), aCluster("west", granted("worker/0"))), "a", "worker/1"), "b", "worker/0"),
			want: want{
				Deployments: map[string]deployment{"a": {Config: "east-config", Runs: []string{"worker/1"}}, "b": {Config: "west-config", Runs: []string{"worker/0"}}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 1, "b": 1},
			},
		},
		"NotAnswered": {
			reason:    "While nobody says which clusters there are, what runs stays as it was made.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() World {
				w := runs(world(), "east", "worker/0", "worker/1")
				w.Answered, w.Ask = false, asked("east", "east")
				return w
			}(),
			want: want{Deployments: map[string]deployment{"east": {Config: "remembered", Runs: []string{"worker/0", "worker/1"}}}, Asks: map[string]int{"east": 1}},
		},
		"Deleted": {
			reason:    "An InferenceCluster that is gone takes nothing along.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() World {
				w := runs(world(aCluster("west")), "east", "worker/0", "worker/1")
				w.Ask = asked("east", "east")
				w.Entrances = map[string]*v1alpha1.GatewayStatus{"east": {Address: "10.0.0.1", Port: 80}}
				return w
			}(),
			want: want{Deployments: map[string]deployment{"east": {Config: "remembered", Runs: []string{"worker/0", "worker/1"}}}, Asks: map[string]int{"east": 1}, Weights: map[string]int32{"east": 2}},
		},
		"Deselected": {
			reason:    "A cluster that is no longer selected is left, once the service runs elsewhere.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() World {
				w := runs(world(aCluster("west"), aCluster("east", func(c *v1alpha1.InferenceCluster) { c.Labels = nil })), "east", "worker/0", "worker/1")
				w.Ask = asked("east", "east")
				return w
			}(),
			want: want{
				Deployments: map[string]deployment{"east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "west": {Config: "west-config", Waiting: 2, Idle: true}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"east": 2}, Held: 2,
			},
		},
		"OutOfReach": {
			reason:    "After failoverAfter the service is started elsewhere.",
			placement: with(named, v1alpha1.PlacementFailover),
			world: runs(world(aCluster("west"), aCluster("east", func(c *v1alpha1.InferenceCluster) {
				c.Status.UnreachableSince = ptr.To(metav1.NewTime(noon.Add(-6 * time.Minute)))
			})), "a", "worker/0", "worker/1"),
			want: want{
				Deployments: map[string]deployment{"a": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "b": {Config: "west-config", Waiting: 2, Idle: true}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 2}, Held: 2,
			},
		},
		"OutOfReachAndFailed": {
			reason:    "What stops the InferenceCluster's own reconcile sets its conditions anew, and does not stop failover.",
			placement: with(named, v1alpha1.PlacementFailover),
			world: runs(world(aCluster("west"), aCluster("east", func(c *v1alpha1.InferenceCluster) {
				c.Status.UnreachableSince = ptr.To(metav1.NewTime(noon.Add(-6 * time.Minute)))
				c.Status.Conditions = []metav1.Condition{{Type: fleet.ConditionReachable, Status: metav1.ConditionUnknown, Reason: "FatalError", LastTransitionTime: metav1.NewTime(noon)}}
			})), "a", "worker/0", "worker/1"),
			want: want{
				Deployments: map[string]deployment{"a": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "b": {Config: "west-config", Waiting: 2, Idle: true}},
				Asks:        map[string]int{"east": 1, "west": 1}, Weights: map[string]int32{"a": 2}, Held: 2,
			},
		},
		"NoPools": {
			reason:    "A cluster that is new, and has not said what it has, is not asked.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world:     world(aCluster("east", func(c *v1alpha1.InferenceCluster) { c.Status.Pools = nil })),
			want:      want{Deployments: map[string]deployment{"": {Waiting: 2, Idle: true}}, Asks: map[string]int{}, Held: 2},
		},
		"Broken": {
			reason:    "A cluster that does not say whether it grants anything is not asked while another can be, whatever room its old status shows.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world:     world(aCluster("east", open(metav1.ConditionUnknown)), aCluster("west", open(metav1.ConditionTrue))),
			want:      want{Deployments: map[string]deployment{"west": {Config: "west-config", Waiting: 2, Idle: true}}, Asks: map[string]int{"west": 1}, Held: 2},
		},
		"BrokenWithGroups": {
			reason:    "Nor is it asked for what is spread.",
			placement: with(selector, v1alpha1.PlacementSpread),
			world:     world(aCluster("east", open(metav1.ConditionUnknown)), aCluster("west")),
			want:      want{Deployments: map[string]deployment{"west": {Config: "west-config", Waiting: 2, Idle: true}}, Asks: map[string]int{"west": 2}, Held: 2},
		},
		"BreaksLater": {
			reason:    "What runs in it stays.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world:     runs(world(aCluster("east", open(metav1.ConditionUnknown), granted("worker/0", "worker/1")), aCluster("west")), "east", "worker/0", "worker/1"),
			want: want{
				Deployments: map[string]deployment{"east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}}},
				Asks:        map[string]int{"east": 1}, Weights: map[string]int32{"east": 2},
			},
		},
		"FromBeside": {
			reason:    "A service that ran beside the XR stays there until it runs in the fleet.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world:     runs(world(aCluster("east")), "", "worker/0", "worker/1"),
			want: want{
				Deployments: map[string]deployment{"": {Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "east": {Config: "east-config", Waiting: 2, Idle: true}},
				Asks:        map[string]int{"east": 1}, Held: 2,
			},
		},
		"FromElsewhere": {
			reason:    "So does one that ran in a cluster that is not of the fleet.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() World {
				w := runs(world(aCluster("east", granted("worker/0", "worker/1"))), "old", "worker/0", "worker/1")
				w.Places["old"].Config.Name, w.Places["old"].Namespace = "old-config", "ns"
				return runs(w, "east", "worker/0", "worker/1")
			}(),
			want: want{
				Deployments: map[string]deployment{"old": {Config: "old-config", Runs: []string{"worker/0", "worker/1"}, Leaving: true}, "east": {Config: "east-config", Runs: []string{"worker/0", "worker/1"}}},
				Asks:        map[string]int{"east": 1}, Weights: map[string]int32{"east": 2},
			},
		},
		"OutOfTheFleet": {
			reason: "A service that is no longer placed leaves the fleet, and its route, once it runs beside the XR.",
			world: func() World {
				w := runs(runs(world(aCluster("east", granted("worker/0", "worker/1"))), "east", "worker/0", "worker/1"), "", "worker/0", "worker/1")
				w.Ask, w.Led = asked("east", "east"), leads("east")
				return w
			}(),
			want: want{Deployments: map[string]deployment{"": {Runs: []string{"worker/0", "worker/1"}}}, Asks: map[string]int{}},
		},
		"NoGateways": {
			reason:    "Where no gateway is known, the route is no reason to stay.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: runs(runs(world(
				aCluster("east", granted("worker/0", "worker/1"), drained, withoutGateway), aCluster("west", granted("worker/0", "worker/1"), withoutGateway),
			), "east", "worker/0", "worker/1"), "west", "worker/0", "worker/1"),
			want: want{Deployments: map[string]deployment{"west": {Config: "west-config", Runs: []string{"worker/0", "worker/1"}}}, Asks: map[string]int{"west": 1}},
		},
		"NoWayIn": {
			reason:    "A cluster to which the route leads is not left for one to which it cannot.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() World {
				w := runs(runs(world(
					aCluster("east", granted("worker/0", "worker/1"), drained), aCluster("west", granted("worker/0", "worker/1"), withoutGateway),
				), "east", "worker/0", "worker/1"), "west", "worker/0", "worker/1")
				w.Led = leads("east")
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
			world: func() World {
				w := runs(world(aCluster("east-2", func(c *v1alpha1.InferenceCluster) {
					c.Spec.ProviderConfigRef = v1alpha1.ProviderConfigRef{Kind: v1alpha1.KindClusterProviderConfig, Name: "remembered"}
				})), "east", "worker/0", "worker/1")
				w.Ask = asked("east", "east")
				w.Places["east"].Config, w.Places["east"].Namespace = v1alpha1.ProviderConfigRef{Kind: v1alpha1.KindClusterProviderConfig, Name: "remembered"}, "ns"
				return w
			}(),
			want: want{Deployments: map[string]deployment{"east": {Config: "remembered", Runs: []string{"worker/0", "worker/1"}}}, Asks: map[string]int{"east": 1}},
		},
		"Unplaced": {
			reason:    "A replica that no cluster takes is wanted all the same.",
			placement: with(selector, v1alpha1.PlacementFailover),
			world: func() World {
				w := runs(world(), "east", "worker/0")
				w.Ask = asked("east", "east")
				return w
			}(),
			want: want{Deployments: map[string]deployment{"east": {Config: "remembered", Runs: []string{"worker/0"}, Waiting: 1}}, Asks: map[string]int{"east": 1}, Held: 1},
		},
		"ScaledToZero": {
			reason:    "A service of no groups keeps its router where it is.",
			placement: with(named, v1alpha1.PlacementFailover),
			replicas:  ptr.To[int32](0),
			world:     world(aCluster("east"), aCluster("west")),
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
			in := &v1beta1.Input{}
			v1beta1.Default(in)
			in.Fleet.ParentRefs = []v1beta1.ParentRef{{Name: "hub"}}
			p, errs := Build(Service{Name: "svc", Namespace: "ns", UID: "uid", Grouped: tc.replicas != nil}, spec, in, tc.world, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := want{Deployments: map[string]deployment{}, Asks: map[string]int{}, Held: len(p.Held)}
			for _, d := range p.Deployments {
				is := deployment{Config: d.Target.ProviderConfig.Name, Waiting: len(d.Waiting), Idle: d.Idle, Leaving: d.Leaving}
				for _, g := range d.Groups {
					for _, r := range g.Replicas {
						is.Runs = append(is.Runs, replicaName(r.Key))
					}
				}
				got.Deployments[d.Target.Cluster] = is
			}
			for _, c := range slices.Sorted(maps.Keys(p.Fleet.Ask.Clusters)) {
				got.Asks[c] = len(p.Fleet.Ask.Clusters[c].Units)
			}
			for _, b := range p.Hub.Backends {
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

// TestHubMatches proves that the route over all clusters takes the requests that the service's own
// route takes.
func TestHubMatches(t *testing.T) {
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
			f := &fleetPlanner{p: &Plan{Service: Service{Name: "svc"}, Router: &Router{HasRoute: true, Route: document(t, tc.route)}}}
			in := &v1beta1.Input{}
			in.Fleet.ParentRefs = []v1beta1.ParentRef{{Name: "hub"}}
			for _, host := range kube.Lookup(f.p.Router.Route, "hostnames").GetListValue().GetValues() {
				f.p.Router.Hostnames = append(f.p.Router.Hostnames, host.GetStringValue())
			}
			h := f.hub(in)
			if diff := cmp.Diff(tc.want, h.Matches, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNameInUse proves that a cluster whose name in the service is that of another one, where the
// service runs already, gets another name, and that the other one is left as any other is.
func TestNameInUse(t *testing.T) {
	in := func(clusters ...v1alpha1.Cluster) *v1alpha1.Placement {
		return &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, Clusters: clusters}
	}
	of := func(name, cluster string) v1alpha1.Cluster {
		return v1alpha1.Cluster{Name: name, InferenceCluster: cluster}
	}
	byConfig := func(name, config string) v1alpha1.Cluster {
		return v1alpha1.Cluster{Name: name, ProviderConfigRef: &v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: config}}
	}
	const called = `west is called %q, because the service calls east "east" where it runs`
	cases := map[string]struct {
		reason    string
		placement *v1alpha1.Placement
		as        string
		want      []string
		warning   string
	}{
		"Another":  {"The other keeps its name.", in(of("b", "east"), of("east", "west")), "east", []string{"east is east", "west is west"}, fmt.Sprintf(called, "west")},
		"OrderIs":  {"It does not matter who comes first.", in(of("east", "west"), of("b", "east")), "east", []string{"west is west", "east is east"}, fmt.Sprintf(called, "west")},
		"Instead":  {"It is left.", in(of("east", "west")), "east", []string{"west is west", "east is east, gone"}, fmt.Sprintf(called, "west")},
		"BothUsed": {"Its own name is in use as well.", in(of("b", "east"), of("west", "other"), of("east", "west")), "east", []string{"east is east", "west is other", "east-west-0c3e77c0bc15 is west"}, ""},
		"Selected": {"A cluster is selected that is called as another one is here.", &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}, "west", []string{"west is east", "west-west-9e4ae96c14f2 is west"}, ""},
		"Outside":  {"One that is not of the fleet has no other name.", in(of("b", "east"), byConfig("east", "c")), "east", []string{"east is east"}, `"east" is left out, because the service calls east so where it runs: give it another name`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := world(aCluster("east", granted("worker/0")), aCluster("west"))
			w.Places[tc.as], w.Ask = there("worker/0"), asked("east", tc.as)
			f := &fleetPlanner{p: &Plan{Service: Service{Name: "svc", Namespace: "ns", UID: "uid"}}, placement: tc.placement, world: w}
			var got []string
			for _, m := range f.findMembers() {
				text := m.target.Cluster + " is " + m.fleet
				if m.gone {
					text += ", gone"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if len(f.p.Warnings) != 1 || tc.warning != "" && f.p.Warnings[0].Message != tc.warning {
				t.Errorf("warnings: %v, want %q", f.p.Warnings, tc.warning)
			}
		})
	}
}

// TestMostImportant keeps what a route has no room for out of it, clusters without requests
// first.
func TestMostImportant(t *testing.T) {
	var all []Backend
	for i := range 20 {
		b := Backend{Cluster: fmt.Sprintf("c%02d", i), Weight: 1}
		if i < 3 {
			b.Weight = 0
		}
		all = append(all, b)
	}
	f := &fleetPlanner{p: &Plan{}}
	var got []string
	for _, b := range f.mostImportant(all) {
		got = append(got, b.Cluster)
	}
	want := []string{"c03", "c04", "c05", "c06", "c07", "c08", "c09", "c10", "c11", "c12", "c13", "c14", "c15", "c16", "c17", "c18"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]Warning{{Path: "spec.placement", Message: "a route leads to 16 clusters at most, and none to c02, c01, c00, c19"}}, f.p.Warnings); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if few := f.mostImportant(all[:16]); len(few) != 16 || len(f.p.Warnings) != 1 {
		t.Errorf("16 fit, and %d are left, with %d warnings", len(few), len(f.p.Warnings))
	}
}

// TestClosed proves that a cluster grants nothing new unless it says that it does, or has not
// said anything yet, and that what is shown is what it says.
func TestClosed(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.InferenceCluster)
		want   string
	}{
		"Open":    {reason: "It says so.", change: open(metav1.ConditionTrue)},
		"Closed":  {reason: "It says so.", change: open(metav1.ConditionFalse), want: "it says why"},
		"Unknown": {reason: "Its spec is refused, or its reconcile fails: its status is an old one.", change: open(metav1.ConditionUnknown), want: "it says why"},
		"NoReason": {reason: "There is always something to show.", change: func(c *v1alpha1.InferenceCluster) {
			c.Status.Conditions = []metav1.Condition{{Type: fleet.ConditionOpen, Status: metav1.ConditionUnknown}}
		}, want: "it does not say that it grants anything new"},
		"Silent": {reason: "An offline file has no conditions.", change: func(*v1alpha1.InferenceCluster) {}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fleet.Candidate{}
			readCluster(&c, aCluster("east", tc.change))
			if diff := cmp.Diff(tc.want, c.Closed); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
