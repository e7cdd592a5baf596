package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestLeaveFirst shows which units wait until the fleet route has left their cluster, and which clusters
// get requests meanwhile.
func TestLeaveFirst(t *testing.T) {
	// A unit is released, or it serves all the time.
	released, serves, broken := rollout.Unit{Serving: true, Outdated: true}, rollout.Unit{Serving: true}, rollout.Unit{Outdated: true, Broken: true}
	cases := map[string]struct {
		reason string
		// units by the cluster.
		a, b []rollout.Unit
		// weights of a and b, and whether they may receive requests.
		weights  [2]int32
		receives [2]bool
		want     string
		// refused tells that the gateways of b refuse the service.
		refused bool
		// unready tells whether the endpoint pickers of a and b are not ready.
		unready [2]bool
		// open tells that gateways then send requests to any pod.
		open bool
	}{
		"LastOne":    {"The only unit of a waits, and its requests go to b.", []rollout.Unit{released}, []rollout.Unit{serves}, [2]int32{1, 1}, [2]bool{true, true}, "released [] weights 0 1", false, [2]bool{}, false},
		"RouteLeft":  {"No gateway sends requests to a any more.", []rollout.Unit{released}, []rollout.Unit{serves}, [2]int32{1, 1}, [2]bool{false, true}, "released [a0] weights 0 1", false, [2]bool{}, false},
		"OfTwo":      {"The other unit of a answers.", []rollout.Unit{released, serves}, []rollout.Unit{serves}, [2]int32{2, 1}, [2]bool{true, true}, "released [a0] weights 2 1", false, [2]bool{}, false},
		"BothOfTwo":  {"Both units of a are changed at once.", []rollout.Unit{released, released}, []rollout.Unit{serves}, [2]int32{2, 1}, [2]bool{true, true}, "released [] weights 0 1", false, [2]bool{}, false},
		"NobodyElse": {"There is no other cluster that gets requests.", []rollout.Unit{released}, []rollout.Unit{{Broken: true}}, [2]int32{1, 0}, [2]bool{true, false}, "released [a0] weights 1 0", false, [2]bool{}, false},
		"NotYet":     {"b serves, and gets no requests so far.", []rollout.Unit{released}, []rollout.Unit{serves}, [2]int32{1, 0}, [2]bool{true, false}, "released [] weights 1 0", false, [2]bool{}, false},
		"Both":       {"One cluster after the other.", []rollout.Unit{released}, []rollout.Unit{released}, [2]int32{1, 1}, [2]bool{true, true}, "released [] weights 0 1", false, [2]bool{}, false},
		"Broken":     {"What does not serve waits for nothing.", []rollout.Unit{broken}, []rollout.Unit{serves}, [2]int32{0, 1}, [2]bool{true, true}, "released [a0] weights 0 1", false, [2]bool{}, false},
		"Refused":    {"The gateways of b refuse the service, so it answers nothing in place of a.", []rollout.Unit{released}, []rollout.Unit{serves}, [2]int32{1, 0}, [2]bool{true, false}, "released [a0] weights 1 0", true, [2]bool{}, false},
		"NoPicker":   {"b serves, and nobody picks among its pods until its endpoint picker has started again.", []rollout.Unit{released}, []rollout.Unit{serves}, [2]int32{1, 0}, [2]bool{true, false}, "released [] weights 1 0", false, [2]bool{false, true}, false},
		"Neither":    {"Nothing answers in a either, so nothing is lost there.", []rollout.Unit{released}, []rollout.Unit{serves}, [2]int32{0, 0}, [2]bool{true, true}, "released [a0] weights 0 0", false, [2]bool{true, true}, false},
		"FailOpen":   {"The gateways send requests to any pod of both.", []rollout.Unit{released}, []rollout.Unit{serves}, [2]int32{1, 1}, [2]bool{true, true}, "released [] weights 0 1", false, [2]bool{true, true}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Plan{FleetRoute: &FleetRoute{}, Schedule: &scheduling.Result{}, Router: &Router{FailureMode: v1alpha1.FailClose}}
			if tc.open {
				p.Router.FailureMode = v1alpha1.FailOpen
			}
			var units []unit
			var states []rollout.Unit
			var names []string
			var now []bool
			for i, of := range [][]rollout.Unit{tc.a, tc.b} {
				cluster := string("ab"[i])
				p.FleetRoute.Backends = append(p.FleetRoute.Backends, Backend{Cluster: cluster, Weight: tc.weights[i], Named: tc.weights[i] > 0})
				p.Schedule.Assignments = append(p.Schedule.Assignments, scheduling.Assignment{Decision: scheduling.Decision{Serves: true}, Target: scheduling.Target{Cluster: cluster}, MayReceiveTraffic: tc.receives[i], Existing: &scheduling.ClusterState{RouterWasReady: !tc.unready[i], HasRoute: true, HasPool: true, RouteRefused: tc.refused && i == 1}})
				for k, s := range of {
					units, states, now = append(units, unit{cluster: cluster}), append(states, s), append(now, s.Outdated)
					names = append(names, fmt.Sprintf("%s%d", cluster, k))
				}
			}
			p.leaveFirst(units, states, now)
			all := []string{}
			for i := range now {
				if now[i] {
					all = append(all, names[i])
				}
			}
			got := fmt.Sprintf("released %v weights %d %d", all, p.FleetRoute.Backends[0].Weight, p.FleetRoute.Backends[1].Weight)
			if p.FleetRoute.Backends[0].Weight == 0 && p.FleetRoute.Backends[0].Named {
				t.Error("the route names a cluster that gets no requests")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLeaveFirstBesideOutOfReach has three clusters: the only unit of a is released, b serves without an endpoint picker and gets no requests, and
// c gets some and is out of reach. a is not left, because the route would then lead to c alone.
func TestLeaveFirstBesideOutOfReach(t *testing.T) {
	p := &Plan{FleetRoute: &FleetRoute{}, Schedule: &scheduling.Result{}, Router: &Router{FailureMode: v1alpha1.FailOpen}}
	for _, b := range []struct {
		cluster string
		weight  int32
		picked  bool
	}{{"a", 1, true}, {"b", 0, false}, {"c", 1, true}} {
		p.FleetRoute.Backends = append(p.FleetRoute.Backends, Backend{Cluster: b.cluster, Weight: b.weight, Named: b.weight > 0})
		p.Schedule.Assignments = append(p.Schedule.Assignments, scheduling.Assignment{
			Decision: scheduling.Decision{Serves: true}, Target: scheduling.Target{Cluster: b.cluster}, MayReceiveTraffic: b.weight > 0,
			Existing: &scheduling.ClusterState{RouterWasReady: b.picked, HasRoute: true, HasPool: true},
		})
	}
	released := []bool{true, false, false}
	p.leaveFirst([]unit{{cluster: "a"}, {cluster: "b"}, {cluster: "c"}}, []rollout.Unit{{Serving: true, Outdated: true}, {Serving: true}, {Outdated: true}}, released)
	if diff := cmp.Diff([]bool{false, false, false}, released); diff != "" {
		t.Errorf("what is released: -want, +got:\n%s", diff)
	}
	if got := p.FleetRoute.Backends[0].Weight; got != 1 {
		t.Errorf("a has the weight %d", got)
	}
}

// TestTold proves which replicas hold up a rollout until they are read with the newest template.
func TestTold(t *testing.T) {
	newest := rollout.State{Exists: true, Revision: "new"}
	cases := map[string]struct {
		reason string
		state  rollout.State
		// kept tells that it keeps its template until its cluster has reserved the newest one.
		kept bool
		want bool
	}{
		"Told":     {reason: "It has the newest template.", state: newest, want: true},
		"Held":     {reason: "The newest template waits behind a partition.", state: rollout.State{Exists: true, Revision: "new", Held: true}, want: true},
		"Former":   {reason: "It may have been released since it was read.", state: rollout.State{Exists: true, Revision: "old", Serving: true}},
		"Capacity": {reason: "Its cluster may never reserve what the newest template requests, and others go on.", state: rollout.State{Exists: true, Revision: "old"}, kept: true, want: true},
		"Missing":  {reason: "It is made of the newest template.", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := &Role{Name: "w"}
			first, other := &Replica{Key: key.New("a", key.LeaderWorkerSet, "first"), Role: role}, &Replica{Key: key.New("b", key.LeaderWorkerSet, "other"), Role: role}
			if tc.kept {
				other.Held, other.Template = true, &kube.Document{}
			}
			running := &RunningView{Revision: map[string]string{"w": "new"}, Replica: func(k key.Key) rollout.State {
				if k == first.Key {
					return newest
				}
				return tc.state
			}}
			if got := told([]unit{{replicas: []*Replica{first}}, {replicas: []*Replica{other}}}, running); got != tc.want {
				t.Errorf("%s told: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestLeaveAbsent shows which replicas have no pods, so that no budget counts them.
func TestLeaveAbsent(t *testing.T) {
	const spec = "roles: [{name: w, componentType: worker, replicas: 2, multinode: {nodeCount: 2}, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}]\n"
	alone := map[string]int32{"w-0": 2}
	cases := map[string]struct {
		reason string
		view   PodGroupView
		loads  bool
		// exist are the replicas whose objects exist, awaits those whose Workloads Kueue has not admitted, and serving those that serve.
		exist, awaits, serving []key.ReplicaID
		want                   []key.ReplicaID
	}{
		"New":        {reason: "The pods of a new service are about to come."},
		"Gang":       {reason: "The PodGroup does not count the new replica, which is left out until then.", view: PodGroupView{Observed: true, MinTaskMember: alone}, exist: []key.ReplicaID{"w/0"}, want: []key.ReplicaID{"w/1"}},
		"GangExists": {reason: "What exists is never left out.", view: PodGroupView{Observed: true, MinTaskMember: alone}, exist: []key.ReplicaID{"w/0", "w/1"}},
		"Weights":    {reason: "New replicas wait for the weights.", loads: true, exist: []key.ReplicaID{"w/0"}, want: []key.ReplicaID{"w/1"}},
		"Kueue":      {reason: "Kueue has not admitted the second one.", exist: []key.ReplicaID{"w/0", "w/1"}, awaits: []key.ReplicaID{"w/1"}, want: []key.ReplicaID{"w/1"}},
		"Evicted":    {reason: "Kueue has evicted one whose pods still serve.", exist: []key.ReplicaID{"w/0", "w/1"}, awaits: []key.ReplicaID{"w/1"}, serving: []key.ReplicaID{"w/1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, spec, "")
			if err != nil {
				t.Fatal(err)
			}
			c := &p.Clusters[0]
			if tc.loads {
				p.Weights, c.Loading = &Weights{}, &Loading{}
			}
			for _, r := range p.Replicas() {
				r.serving = slices.Contains(tc.serving, r.ID)
				if len(tc.awaits) > 0 {
					r.Workload = "leaderworkerset-" + r.Name
				}
			}
			in := func(all []key.ReplicaID, kind string) func(key.Key) bool {
				return func(k key.Key) bool {
					return slices.ContainsFunc(all, func(id key.ReplicaID) bool { return k == key.Key{Kind: kind, Name: string(id)} })
				}
			}
			p.leaveAbsent(&RunningView{
				PodGroup: func(key.Key) PodGroupView { return tc.view },
				Observed: in(tc.exist, key.LeaderWorkerSet), Awaits: in(tc.awaits, key.Workload),
			})
			var got []key.ReplicaID
			for _, r := range p.Replicas() {
				if r.Absent {
					got = append(got, r.ID)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGaps shows in which clusters a change of prefill and decode stops all requests.
func TestGaps(t *testing.T) {
	pair := func(cluster string) unit { return unit{cluster: cluster, kind: pairKind} }
	cases := map[string]struct {
		reason string
		units  []unit
		surge  int32
		route  *FleetRoute
		want   []string
	}{
		"One":         {"Nothing else serves.", []unit{pair("")}, 0, nil, []string{""}},
		"Two":         {"The other one serves.", []unit{pair(""), {index: 1}}, 0, nil, nil},
		"Surge":       {"An extra one serves meanwhile.", []unit{pair("")}, 1, nil, nil},
		"Worker":      {"Workers answer whole requests.", []unit{pair(""), {kind: "worker"}}, 0, nil, nil},
		"OnlyWorker":  {"A single replica says by itself that it is the only one.", []unit{{kind: "worker"}}, 0, nil, nil},
		"OfEach":      {"Clients of one cluster do not reach the other.", []unit{pair("a"), pair("b")}, 0, nil, []string{"a", "b"}},
		"OfOne":       {"The other cluster has two.", []unit{pair("a"), pair("b"), {cluster: "b", index: 1}}, 0, nil, []string{"a"}},
		"Route":       {"The fleet route leads to the other one.", []unit{pair("a"), pair("b")}, 0, &FleetRoute{Backends: []Backend{{Cluster: "a"}, {Cluster: "b"}}}, nil},
		"RouteToOne":  {"The other cluster has no entrypoint.", []unit{pair("a"), pair("b")}, 0, &FleetRoute{Backends: []Backend{{Cluster: "a"}}}, []string{"a"}},
		"RouteLeaves": {"What leaves its cluster does not stay.", []unit{pair("b")}, 0, &FleetRoute{Backends: []Backend{{Cluster: "a"}, {Cluster: "b"}}}, []string{"b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Plan{FleetRoute: tc.route, Rollout: Rollout{Rollout: v1alpha1.Rollout{MaxSurge: ptr.To(tc.surge)}}}
			if diff := cmp.Diff(tc.want, p.gaps(tc.units), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
