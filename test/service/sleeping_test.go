package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// A sleeper is a service of a fleet whose only role may stop, with what Crossplane, KEDA, the clusters and the fleet's gateway
// do between two calls.
type sleeper struct {
	*testing.T

	fn  *function.Client
	req *fnv1.RunFunctionRequest
	// policies are the stop policies of the clusters, by name. Those that are full reserve nothing new.
	policies map[string]string
	full     map[string]bool
	// lost has how long clusters have been out of reach.
	lost map[string]time.Duration
	// gone are those that have left the fleet.
	gone map[string]bool
	// replicas that KEDA asks for. Those of a cluster in starts do not get ready.
	replicas int
	starts   map[string]bool
	// hasPicker tells where there was an endpoint picker a call ago. It is ready then.
	hasPicker map[string]bool
	// seen are the moments so far, without repetitions.
	seen []moment
}

// A moment is what a service is like after a call.
type moment struct {
	// Runs has the number of replicas in each cluster, and Pickers are the clusters with an endpoint picker.
	Runs, Pickers string
	// Route is where the fleet route leads, with weights, and Asked are the clusters of which capacity for replicas is requested.
	Route, Asked string
	// Workloads and Placed are conditions.
	Workloads, Placed string
}

func newSleeper(t *testing.T, clusters ...string) *sleeper {
	t.Helper()
	const (
		spec = `roles:
- {name: router, componentType: router, httproute: {parentRefs: [{name: gw}], hostnames: [h.example.com]}}
- {name: w, componentType: worker, scaling: {minReplicas: 0, maxReplicas: 4, target: {waitingRequests: 3}}, template: {spec: {containers: [{name: engine, image: "vllm/vllm-openai:v0.12.0", command: [vllm, serve, /m]}]}}}
placement: {policy: Failover, clusters: [%s]}
`
		input = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, scaling: {prometheus: {serverAddress: "http://prometheus:9090"}}, fleet: {parentRefs: [{name: hub}]}}`
	)
	listed := make([]string, 0, len(clusters))
	for _, name := range clusters {
		listed = append(listed, fmt.Sprintf("{name: %s, inferenceClusterRef: {name: %[1]s}}", name))
	}
	service := fixture.Service(fmt.Sprintf(spec, strings.Join(listed, ", ")))
	s := &sleeper{T: t, fn: function.Start(t), req: fixture.Request(t, service, input), policies: map[string]string{}, lost: map[string]time.Duration{}, gone: map[string]bool{}, full: map[string]bool{}, starts: map[string]bool{}, hasPicker: map[string]bool{}}
	for _, name := range clusters {
		s.policies[name] = "None"
	}
	return s
}

// request is the last capacity request.
func (s *sleeper) request() (r struct {
	Generation int64 `json:"generation"`
	Clusters   []struct {
		Names  []string `json:"names"`
		Groups []struct {
			Replicas []struct {
				Name       string `json:"name"`
				Generation int64  `json:"generation"`
			} `json:"replicas"`
		} `json:"groups"`
	} `json:"clusters"`
},
) {
	s.Helper()
	text := kube.Lookup(s.req.GetObserved().GetResources()[key.CapacityRequest.String()].GetResource(), "data", "request").GetStringValue()
	if text == "" {
		return r
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		s.Fatal(err)
	}
	return r
}

// cluster is an InferenceCluster that has answered the last request: it has reserved all of it, or nothing if it is full.
func (s *sleeper) cluster(name string) string {
	s.Helper()
	r, free := s.request(), 9
	var reservations, pending []string
	if s.full[name] {
		free = 0
	}
	for _, c := range r.Clusters {
		for _, g := range c.Groups {
			for _, replica := range g.Replicas {
				switch {
				case !slices.Contains(c.Names, name):
				case s.full[name] || s.policies[name] != "None":
					pending = append(pending, fmt.Sprintf("{uid: me, namespace: team, name: chat, generation: %d, message: no room}", r.Generation))
				default:
					role, index, _ := strings.Cut(replica.Name, "/")
					reservations = append(reservations, fmt.Sprintf("{role: %s, indexes: [%s], generation: %d}", role, index, replica.Generation))
				}
			}
		}
	}
	reserved := ""
	if len(reservations) > 0 {
		reserved = "{uid: me, namespace: team, name: chat, replicas: [" + strings.Join(reservations, ", ") + "]}"
	}
	lost := ""
	if ago := s.lost[name]; ago > 0 {
		lost = fmt.Sprintf("unreachableSince: %q, ", time.Now().UTC().Add(-ago).Format(time.RFC3339))
	}
	return fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: %s}, spec: {providerConfigRef: {name: %[1]s}, stopPolicy: %s, pools: []},
	  status: {%sentrypoint: {address: {type: IPAddress, value: 10.0.0.1}, port: 80}, pools: [{name: p, nodeCount: 9, free: [{nodeCount: %d}]}], reservations: [%s], pending: [%s]}}`,
		name, s.policies[name], lost, free, reserved, strings.Join(pending[:min(1, len(pending))], ", "))
}

// reconcile calls the function several times.
func (s *sleeper) reconcile(n int) {
	s.Helper()
	for range n {
		s.call()
	}
}

func (s *sleeper) call() {
	s.Helper()
	var clusters []string
	for _, name := range slices.Sorted(maps.Keys(s.policies)) {
		if !s.gone[name] {
			clusters = append(clusters, s.cluster(name))
		}
	}
	before := s.req.GetObserved().GetComposite().GetResource()
	rsp := settle(s.T, s.fn, s.req, clusters)
	all := s.req.GetObserved().GetResources()
	set := func(k string, v *structpb.Value, path ...string) {
		if r := all[k]; r != nil {
			all[k] = &fnv1.Resource{Resource: kube.With(r.GetResource(), v, path...)}
		}
	}
	set("inferencerole/w", structpb.NewNumberValue(float64(s.replicas)), "spec", "replicas")
	set(key.FleetRoute.String(), structpb.NewNumberValue(1), "metadata", "generation")
	set(key.FleetRoute.String(), structpb.NewStructValue(fixture.YAML(s, `{parents: [{parentRef: {name: hub}, conditions: [{type: Accepted, status: "True", observedGeneration: 1}]}]}`)), "status")
	for name := range s.starts {
		for i := range s.replicas {
			set(fmt.Sprintf("cluster/%s/leaderworkerset/w/%d", name, i), structpb.NewStructValue(fixture.YAML(s, stuckStatus)), "status", "atProvider", "manifest", "status")
		}
	}
	for name := range s.policies {
		picker := "cluster/" + name + "/deployment/epp"
		if s.hasPicker[name] {
			set(picker, structpb.NewNumberValue(1), "status", "atProvider", "manifest", "status", "readyReplicas")
		}
		s.hasPicker[name] = all[picker] != nil
	}
	s.writeConditions(rsp, before)
	if m := s.moment(rsp); len(s.seen) == 0 || s.seen[len(s.seen)-1] != m {
		s.seen = append(s.seen, m)
	}
}

// writeConditions writes the conditions of a response, as Crossplane does: with the time at which each got its status.
func (s *sleeper) writeConditions(rsp *fnv1.RunFunctionResponse, before *structpb.Struct) {
	s.Helper()
	was := map[string]*structpb.Struct{}
	for _, c := range kube.Lookup(before, "status", "conditions").GetListValue().GetValues() {
		was[c.GetStructValue().GetFields()["type"].GetStringValue()] = c.GetStructValue()
	}
	statuses := map[fnv1.Status]string{fnv1.Status_STATUS_CONDITION_TRUE: "True", fnv1.Status_STATUS_CONDITION_FALSE: "False", fnv1.Status_STATUS_CONDITION_UNKNOWN: "Unknown"}
	list := &structpb.ListValue{}
	for _, c := range rsp.GetConditions() {
		status, since := statuses[c.GetStatus()], time.Now().UTC().Format(time.RFC3339)
		if f := was[c.GetType()].GetFields(); f["status"].GetStringValue() == status && f["reason"].GetStringValue() == c.GetReason() {
			since = f["lastTransitionTime"].GetStringValue()
		}
		one, err := structpb.NewStruct(map[string]any{"type": c.GetType(), "status": status, "reason": c.GetReason(), "message": c.GetMessage(), "lastTransitionTime": since})
		if err != nil {
			s.Fatal(err)
		}
		list.Values = append(list.Values, structpb.NewStructValue(one))
	}
	s.req.Observed.Composite.Resource = kube.With(s.req.GetObserved().GetComposite().GetResource(), structpb.NewListValue(list), "status", "conditions")
}

// later lets an hour pass.
func (s *sleeper) later() {
	s.Helper()
	for _, c := range kube.Lookup(s.req.GetObserved().GetComposite().GetResource(), "status", "conditions").GetListValue().GetValues() {
		f := c.GetStructValue().GetFields()
		at, err := time.Parse(time.RFC3339, f["lastTransitionTime"].GetStringValue())
		if err != nil {
			s.Fatal(err)
		}
		f["lastTransitionTime"] = structpb.NewStringValue(at.Add(-time.Hour).Format(time.RFC3339))
	}
}

// moment describes a response.
func (s *sleeper) moment(rsp *fnv1.RunFunctionResponse) moment {
	s.Helper()
	runs := map[string]int{}
	var pickers, route, asked []string
	for k := range rsp.GetDesired().GetResources() {
		parsed := key.Parse(k)
		if _, is := parsed.ReplicaID(); is {
			runs[parsed.Cluster]++
		}
		if parsed.Kind == key.Deployment {
			pickers = append(pickers, parsed.Cluster)
		}
	}
	slices.Sort(pickers)
	rules := kube.Lookup(rsp.GetDesired().GetResources()[key.FleetRoute.String()].GetResource(), "spec", "rules").GetListValue().GetValues()
	for _, b := range kube.Lookup(rules[0].GetStructValue(), "backendRefs").GetListValue().GetValues() {
		f := b.GetStructValue().GetFields()
		_, name, _ := strings.Cut(f["name"].GetStringValue(), "-at-")
		route = append(route, fmt.Sprintf("%s %v", name[:strings.LastIndexByte(name, '-')], f["weight"].GetNumberValue()))
	}
	for _, c := range s.request().Clusters {
		for _, g := range c.Groups {
			if len(g.Replicas) > 0 {
				asked = append(asked, c.Names...)
			}
		}
	}
	var where []string
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		where = append(where, fmt.Sprintf("%s %d", name, runs[name]))
	}
	return moment{
		Runs: strings.Join(where, ", "), Pickers: strings.Join(pickers, " "), Route: strings.Join(route, ", "), Asked: strings.Join(asked, " "),
		Workloads: fixture.Condition(rsp, "WorkloadsReady"), Placed: fixture.Condition(rsp, "Placed"),
	}
}

// saw compares what was seen so far.
func (s *sleeper) saw(reason string, want []moment) {
	s.Helper()
	if diff := cmp.Diff(want, s.seen); diff != "" {
		s.Errorf("%s -want, +got:\n%s", reason, diff)
	}
}

// asleep has a service run twice in us-west, because the clusters before it are full, and stop. Then all clusters have room.
func asleep(t *testing.T) *sleeper {
	t.Helper()
	s := newSleeper(t, "us-east", "us-south", "us-west")
	s.full["us-east"], s.full["us-south"] = true, true
	s.replicas = 2
	s.reconcile(6)
	s.full = map[string]bool{}
	s.replicas = 0
	s.reconcile(4)
	want := []moment{
		{"", "", "", "us-west", "FALSE WaitingForCapacity", "FALSE InsufficientCapacity"},
		{"us-west 2", "us-west", "us-west 0", "us-west", "FALSE NotCreated", "TRUE Placed"},
		{"us-west 2", "us-west", "us-west 1", "us-west", "TRUE AllReady", "TRUE Placed"},
		{"us-west 2", "us-west", "us-west 2", "us-west", "TRUE AllReady", "TRUE Placed"},
		{"", "us-west", "us-west 1", "", "TRUE Sleeping", "TRUE Placed"},
	}
	if diff := cmp.Diff(want, s.seen); diff != "" {
		t.Fatalf("until it sleeps: -want, +got:\n%s", diff)
	}
	s.seen = nil
	return s
}

// waitsIn are the objects of a cluster with which requests wait there, as they were last written.
func (s *sleeper) waitsIn(cluster string) map[string]any {
	all := map[string]any{}
	for k, r := range s.req.GetObserved().GetResources() {
		_, isReplica := key.Parse(k).ReplicaID()
		if strings.Contains(k, "/"+cluster) && !isReplica {
			all[k] = kube.Lookup(r.GetResource(), "spec").AsInterface()
		}
	}
	return all
}

// TestSleepsInFleet proves that requests reach the cluster in which a service of a fleet sleeps, for however long it does,
// and that it wakes there. Nothing with which requests wait there changes, because they would be lost.
func TestSleepsInFleet(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*sleeper)
		// asks is the condition Placed while it asks for capacity.
		asks string
	}{
		"Undisturbed":  {"The clusters that were full come first, and have room now.", func(*sleeper) {}, "FALSE Requested"},
		"OtherDrained": {"A cluster in which it does not sleep has nothing to do with it.", func(s *sleeper) { s.policies["us-east"] = "Drain" }, "FALSE Draining"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := asleep(t)
			before := s.waitsIn("us-west")
			if len(before) == 0 {
				t.Fatal("requests wait nowhere")
			}
			tc.change(s)
			s.reconcile(2)
			s.later()
			s.replicas = 1
			s.reconcile(5)
			want := []moment{
				{"", "us-west", "us-west 1", "", "TRUE Sleeping", "TRUE Placed"},
				{"", "us-west", "us-west 1", "us-west", "FALSE WaitingForCapacity", tc.asks},
				{"us-west 1", "us-west", "us-west 1", "us-west", "FALSE NotCreated", "TRUE Placed"},
				{"us-west 1", "us-west", "us-west 1", "us-west", "TRUE AllReady", "TRUE Placed"},
			}
			if diff := cmp.Diff(want, s.seen); diff != "" {
				t.Errorf("%s It sleeps and wakes: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, s.waitsIn("us-west")); diff != "" {
				t.Errorf("%s Objects in us-west: -asleep, +awake:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWakesElsewhere proves that a service whose cluster is drained or full wakes in another one, and that the fleet route
// leads there as soon as requests can wait there.
func TestWakesElsewhere(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*sleeper)
		want   []moment
	}{
		"Drained": {
			reason: "The endpoint picker moves while it sleeps. The former one goes once the route leads to the next.",
			change: func(s *sleeper) { s.policies["us-west"] = "Drain" },
			want: []moment{
				{"", "us-east us-west", "us-west 1", "", "TRUE Sleeping", "FALSE Draining"},
				{"", "us-east us-west", "us-east 1", "", "TRUE Sleeping", "FALSE Draining"},
				{"", "us-east", "us-east 1", "", "TRUE Sleeping", "TRUE Placed"},
				{"", "us-east", "us-east 1", "us-east", "FALSE WaitingForCapacity", "FALSE Requested"},
				{"us-east 1", "us-east", "us-east 1", "us-east", "FALSE NotCreated", "TRUE Placed"},
				{"us-east 1", "us-east", "us-east 1", "us-east", "TRUE AllReady", "TRUE Placed"},
			},
		},
		"Full": {
			reason: "It asks the cluster in which requests wait first. They wait there until the route leads to another one.",
			change: func(s *sleeper) { s.full["us-west"] = true },
			want: []moment{
				{"", "us-west", "us-west 1", "", "TRUE Sleeping", "TRUE Placed"},
				{"", "us-west", "us-west 1", "us-west", "FALSE WaitingForCapacity", "FALSE InsufficientCapacity"},
				{"", "us-west", "us-west 1", "us-east us-south us-west", "FALSE WaitingForCapacity", "FALSE Requested"},
				{"", "us-west", "us-west 1", "us-east", "FALSE WaitingForCapacity", "FALSE Requested"}, // The new home is written first.
				{"us-east 1", "us-east us-west", "us-west 1", "us-east", "FALSE NotCreated", "FALSE NotNeeded"},
				{"us-east 1", "us-east us-west", "us-west 1", "us-east", "TRUE AllReady", "FALSE NotNeeded"},
				{"us-east 1", "us-east us-west", "us-east 1", "us-east", "TRUE AllReady", "FALSE NotNeeded"},
				{"us-east 1", "us-east", "us-east 1", "us-east", "TRUE AllReady", "TRUE Placed"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := asleep(t)
			tc.change(s)
			s.reconcile(4)
			s.replicas = 1
			s.reconcile(8)
			s.saw(tc.reason, tc.want)
		})
	}
}

// TestWakesWhileItLeaves proves that requests still wait in a cluster that is left, or out of reach for long, while its first replica
// starts there. They are not lost before another endpoint picker is ready.
func TestWakesWhileItLeaves(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*sleeper)
	}{
		"Drained":     {"A drain begins.", func(s *sleeper) { s.policies["us-west"] = "Drain" }},
		"Unreachable": {"The replica may be ready by now, and answer.", func(s *sleeper) { s.lost["us-west"] = time.Hour }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := asleep(t)
			s.starts["us-west"] = true
			s.replicas = 1
			s.reconcile(4)
			s.seen = nil
			tc.change(s)
			s.full["us-east"], s.full["us-south"] = true, true
			s.reconcile(3)
			for _, m := range s.seen {
				if m.Route != "us-west 1" || m.Pickers != "us-west" {
					t.Errorf("%s Requests wait in us-west, and got %+v", tc.reason, m)
				}
			}
		})
	}
}

// TestSleepsOutOfReach proves that a service that sleeps stays in a cluster that is out of reach, until failoverAfterSeconds have
// passed. Requests may wait there, and an endpoint picker that is made anew elsewhere has none of them.
func TestSleepsOutOfReach(t *testing.T) {
	s := asleep(t)
	before := s.waitsIn("us-west")
	s.lost["us-west"] = time.Minute
	s.reconcile(3)
	delete(s.lost, "us-west")
	s.reconcile(2)
	if diff := cmp.Diff(before, s.waitsIn("us-west")); diff != "" {
		t.Errorf("objects in us-west: -before, +after:\n%s", diff)
	}
	s.lost["us-west"] = time.Hour
	s.reconcile(4)
	want := []moment{
		{"", "us-west", "us-west 1", "", "TRUE Sleeping", "TRUE Unreachable"},
		{"", "us-west", "us-west 1", "", "TRUE Sleeping", "TRUE Placed"},
		{"", "us-east us-west", "us-west 1", "", "TRUE Sleeping", "FALSE Unreachable"},
		{"", "us-east us-west", "us-east 1", "", "TRUE Sleeping", "FALSE Unreachable"},
		{"", "us-east", "us-east 1", "", "TRUE Sleeping", "TRUE Placed"},
	}
	s.saw("", want)
}

// TestSleepsWithoutTarget proves that a role which sleeps does not start because somebody deletes its InferenceRole.
func TestSleepsWithoutTarget(t *testing.T) {
	s := asleep(t)
	delete(s.req.GetObserved().GetResources(), "inferencerole/w")
	rsp := settle(t, s.fn, s.req, []string{s.cluster("us-west")})
	if diff := cmp.Diff([]string{"0 noted 0", "TRUE Sleeping"}, []string{sent(rsp, "w"), fixture.Condition(rsp, "WorkloadsReady")}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestSleepsWithNowhereToGo proves that requests still wait in a cluster that is drained, as long as no other takes the service,
// also once one has woken it.
func TestSleepsWithNowhereToGo(t *testing.T) {
	drain := func(s *sleeper, policy string) {
		for name := range s.policies {
			s.policies[name] = policy
		}
	}
	stays := moment{"", "us-west", "us-west 1", "", "TRUE Sleeping", "FALSE Draining"}
	cases := map[string]struct {
		reason string
		then   func(*sleeper)
		want   []moment
	}{
		"Leaves": {
			reason: "It moves once another cluster takes it.",
			then: func(s *sleeper) {
				s.policies["us-south"] = "None"
				s.reconcile(4)
			},
			want: []moment{
				stays,
				{"", "us-south us-west", "us-west 1", "", "TRUE Sleeping", "FALSE Draining"},
				{"", "us-south us-west", "us-south 1", "", "TRUE Sleeping", "FALSE Draining"},
				{"", "us-south", "us-south 1", "", "TRUE Sleeping", "TRUE Placed"},
			},
		},
		"Stays": {
			reason: "The drain ends, and requests wait there.",
			then: func(s *sleeper) {
				drain(s, "None")
				s.reconcile(4)
			},
			want: []moment{stays, {"", "us-west", "us-west 1", "", "TRUE Sleeping", "TRUE Placed"}},
		},
		"Wakes": {
			reason: "What waits is not lost while it has no place, nor before another endpoint picker is ready.",
			then: func(s *sleeper) {
				s.replicas = 1
				s.reconcile(3)
				s.policies["us-south"] = "None"
				s.reconcile(6)
			},
			want: []moment{
				stays,
				{"", "us-west", "us-west 1", "", "FALSE NoCluster", "FALSE Draining"},
				{"", "us-west", "us-west 1", "us-south", "FALSE WaitingForCapacity", "FALSE Draining"},
				{"us-south 1", "us-south us-west", "us-west 1", "us-south", "FALSE NotCreated", "FALSE Draining"},
				{"us-south 1", "us-south us-west", "us-west 1", "us-south", "TRUE AllReady", "FALSE Draining"},
				{"us-south 1", "us-south us-west", "us-south 1", "us-south", "TRUE AllReady", "FALSE Draining"},
				{"us-south 1", "us-south", "us-south 1", "us-south", "TRUE AllReady", "TRUE Placed"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := asleep(t)
			drain(s, "Drain")
			s.reconcile(3)
			tc.then(s)
			s.saw(tc.reason, tc.want)
		})
	}
}

// TestSleepsWithoutCluster proves that a service does not sleep on in a cluster that has left the fleet.
func TestSleepsWithoutCluster(t *testing.T) {
	s := asleep(t)
	s.gone["us-west"] = true
	s.reconcile(4)
	want := []moment{
		{"", "us-east us-west", "us-west 1", "", "TRUE Sleeping", "FALSE ClusterUnknown"},
		{"", "us-east us-west", "us-east 1", "", "TRUE Sleeping", "FALSE ClusterUnknown"},
		{"", "us-east", "us-east 1", "", "TRUE Sleeping", "TRUE Placed"},
	}
	s.saw("", want)
}

// TestSleeperCrossesFleet has a service enter or leave the fleet while it sleeps. The endpoint picker in which requests wait goes once
// the next one is ready.
func TestSleeperCrossesFleet(t *testing.T) {
	placement := fixture.YAML(t, `{policy: Failover, clusters: [{name: us-west, inferenceClusterRef: {name: us-west}}]}`)
	place := func(s *sleeper, p *structpb.Struct) {
		xr := proto.CloneOf(s.req.GetObserved().GetComposite().GetResource())
		spec := kube.Lookup(xr, "spec").GetStructValue()
		delete(spec.Fields, "placement")
		if p != nil {
			spec.Fields["placement"] = structpb.NewStructValue(p)
		}
		s.req.Observed.Composite.Resource = xr
	}
	wakes := 0.0
	// call lets everything be ready but the endpoint pickers of some clusters, and returns where there are any.
	call := func(s *sleeper, notReady ...string) []string {
		rsp := settle(s.T, s.fn, s.req, []string{s.cluster("us-west")})
		all := s.req.GetObserved().GetResources()
		var pickers []string
		for k, r := range all {
			parsed := key.Parse(k)
			ready := structpb.NewNumberValue(1)
			if slices.Contains(notReady, parsed.Cluster) {
				ready = structpb.NewNumberValue(0)
			}
			switch {
			case parsed.Kind == key.Deployment && rsp.GetDesired().GetResources()[k] == nil:
			case parsed.Kind == key.Deployment && parsed.Cluster == "":
				pickers = append(pickers, "here")
				all[k] = &fnv1.Resource{Resource: kube.With(r.GetResource(), ready, "status", "readyReplicas")}
			case parsed.Kind == key.Deployment:
				pickers = append(pickers, parsed.Cluster)
				all[k] = &fnv1.Resource{Resource: kube.With(r.GetResource(), ready, "status", "atProvider", "manifest", "status", "readyReplicas")}
			case k == "inferencerole/w":
				all[k] = &fnv1.Resource{Resource: kube.With(r.GetResource(), structpb.NewNumberValue(wakes), "spec", "replicas")}
			case k == key.FleetRoute.String():
				r := kube.With(r.GetResource(), structpb.NewNumberValue(1), "metadata", "generation")
				all[k] = &fnv1.Resource{Resource: kube.With(r, structpb.NewStructValue(fixture.YAML(s, `{parents: [{parentRef: {name: hub}, conditions: [{type: Accepted, status: "True", observedGeneration: 1}]}]}`)), "status")}
			}
		}
		slices.Sort(pickers)
		return pickers
	}
	for name, tc := range map[string]struct {
		before, after *structpb.Struct
		from, to      string
	}{
		"Enters": {nil, placement, "here", "us-west"},
		"Leaves": {placement, nil, "us-west", "here"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSleeper(t, "us-west")
			place(s, tc.before)
			for range 6 {
				call(s)
			}
			if got := call(s); !slices.Equal(got, []string{tc.from}) {
				t.Fatalf("before: endpoint pickers in %v", got)
			}
			place(s, tc.after)
			there := map[string]string{"here": "", "us-west": "us-west"}[tc.to]
			for range 4 {
				if got := call(s, there); !slices.Equal(got, []string{"here", "us-west"}) {
					t.Fatalf("while the next one starts: endpoint pickers in %v", got)
				}
			}
			if tc.to == "us-west" {
				// A request wakes it, and there is no room for it so far.
				wakes, s.full["us-west"] = 1, true
				for range 4 {
					if got := call(s, there); !slices.Contains(got, "here") {
						t.Fatalf("while it waits for room: endpoint pickers in %v", got)
					}
				}
				wakes, s.full["us-west"] = 0, false
			}
			for range 4 {
				call(s)
			}
			if got := call(s); !slices.Equal(got, []string{tc.to}) {
				t.Errorf("in the end: endpoint pickers in %v", got)
			}
		})
	}
}
