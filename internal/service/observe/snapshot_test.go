package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// TestSnapshotOutsideFleet proves that no observed objects are read for a service that was
// never in the fleet, and all of them for one with a capacity request.
func TestSnapshotOutsideFleet(t *testing.T) {
	set, err := structpb.NewStruct(map[string]any{"kind": "LeaderWorkerSet", "status": map[string]any{"readyReplicas": 1}})
	if err != nil {
		t.Fatal(err)
	}
	observed := map[string]*fnv1.Resource{"leaderworkerset/worker/0": {Resource: set}}
	req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: observed}}
	if diff := cmp.Diff(scheduling.Snapshot{}, Snapshot(incomingtest.Request(t, req), &v1alpha1.InferenceServiceSpec{}, time.Time{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	observed[key.CapacityRequest.String()] = &fnv1.Resource{Resource: &structpb.Struct{}}
	if w := Snapshot(incomingtest.Request(t, req), &v1alpha1.InferenceServiceSpec{}, time.Time{}); w.States[""] == nil || !w.States[""].Ready["worker/0"] {
		t.Errorf("the replica in the cluster of the XR is not known: %+v", w.States)
	}
}

// TestOnlyObserved proves that what an Object only observes is no sign that the service runs in that
// cluster: it may be left of one that the service has left.
func TestOnlyObserved(t *testing.T) {
	inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	for _, k := range []key.Key{key.New("west", key.Pod, "worker", "0", "0"), key.New("west", key.Workload, "worker", "0")} {
		s := newScene(t).seeRemote(k.String(), podOf(0, 0), synced("True", ""))
		if w := Snapshot(s.request(), inFleet, time.Time{}); len(w.States) > 0 {
			t.Errorf("%s: want no states of clusters, got %v", k, w.States)
		}
	}
}

// TestBeside proves that a service of the fleet counts as one that runs in the cluster of its XR only if its own
// replicas or endpoint picker are there.
func TestBeside(t *testing.T) {
	inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	cases := map[string]struct {
		reason string
		key    string
		want   bool
	}{
		"Replica": {reason: "It ran there before it joined the fleet.", key: lws0, want: true},
		"Picker":  {reason: "A router without replicas is there.", key: "deployment/epp", want: true},
		"Route":   {reason: "It leads to the fleet.", key: "httproute"},
		"Other":   {reason: "Another function of the pipeline composes it.", key: "deployment"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).see(tc.key, map[string]any{"metadata": map[string]any{"name": "x"}})
			if _, got := Snapshot(s.request(), inFleet, time.Time{}).States[""]; got != tc.want {
				t.Errorf("%s It counts as running there: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestPriorityClasses shows which priority class of Kueue a replica counts as having.
func TestPriorityClasses(t *testing.T) {
	inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	labelled := func(class, uid string) map[string]any {
		return map[string]any{"kind": "LeaderWorkerSet", "metadata": map[string]any{"uid": uid, "labels": map[string]any{"kueue.x-k8s.io/priority-class": class}}}
	}
	cases := map[string]struct {
		reason     string
		told, read any
		want       map[key.ReplicaID]string
	}{
		"Read":    {reason: "Kueue has refused what was told.", told: labelled("high", ""), read: labelled("low", "1"), want: map[key.ReplicaID]string{"engine/0": "low"}},
		"Without": {reason: "It has none.", told: labelled("high", ""), read: map[string]any{"metadata": map[string]any{"uid": "1"}}, want: map[key.ReplicaID]string{"engine/0": ""}},
		"Told":    {reason: "The cluster has not reported yet.", told: labelled("high", ""), want: map[key.ReplicaID]string{"engine/0": "high"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := map[string]any{"conditions": []any{synced("True", "")}}
			if tc.read != nil {
				status["atProvider"] = map[string]any{"manifest": tc.read}
			}
			s := newScene(t).see("cluster/west/"+lws0, map[string]any{
				"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "metadata": map[string]any{"name": "x"},
				"spec": map[string]any{"forProvider": map[string]any{"manifest": tc.told}}, "status": status,
			})
			if diff := cmp.Diff(tc.want, Snapshot(s.request(), inFleet, time.Time{}).States["west"].PriorityClasses); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRouted proves that a cluster has the route and the pool of a service once provider-kubernetes has
// reported both, and as long as neither is being deleted.
func TestRouted(t *testing.T) {
	inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	route, pool := key.New("west", key.HTTPRoute).String(), key.New("west", key.InferencePool).String()
	manifest := map[string]any{"metadata": map[string]any{"name": "x", "uid": "1"}}
	leaving := map[string]any{"metadata": map[string]any{"name": "x", "uid": "1", "deletionTimestamp": "2026-05-04T10:00:00Z"}}
	cases := map[string]struct {
		reason      string
		route, pool any
		condition   map[string]any
		want        bool
	}{
		"Both":        {reason: "Both are there.", route: manifest, pool: manifest, condition: synced("True", ""), want: true},
		"CutOff":      {reason: "They were there when the cluster was last read.", route: manifest, pool: manifest, condition: synced("False", "cannot connect"), want: true},
		"NoRoute":     {reason: "The route is not reported yet.", pool: manifest, condition: synced("True", "")},
		"NoPool":      {reason: "The pool is not reported yet.", route: manifest, condition: synced("True", "")},
		"RouteLeaves": {reason: "The route is being deleted there.", route: leaving, pool: manifest, condition: synced("True", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).seeRemote(route, tc.route, tc.condition).seeRemote(pool, tc.pool, tc.condition)
			if got := Snapshot(s.request(), inFleet, time.Time{}).States["west"].Routed(); got != tc.want {
				t.Errorf("%s got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRefusedByAll shows when the gateways of a cluster refuse a service.
func TestRefusedByAll(t *testing.T) {
	inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	says := func(condition, status string, generation float64) any {
		return map[string]any{"conditions": []any{map[string]any{"type": condition, "status": status, "reason": "R", "observedGeneration": generation}}}
	}
	refused := says("Accepted", "False", 2)
	for name, tc := range map[string]struct {
		kind    string
		parents []any
		want    bool
	}{
		"Accepted":        {key.HTTPRoute, []any{says("Accepted", "True", 2)}, false},
		"NotReported":     {key.HTTPRoute, nil, false},
		"Refused":         {key.HTTPRoute, []any{refused}, true},
		"RefsNotResolved": {key.HTTPRoute, []any{says("ResolvedRefs", "False", 2)}, true},
		"ByOneOfTwo":      {key.HTTPRoute, []any{refused, says("Accepted", "True", 2)}, false},
		"SomeSayNothing":  {key.HTTPRoute, []any{refused, map[string]any{}}, false},
		"Before":          {key.HTTPRoute, []any{says("Accepted", "False", 1)}, false},
		"PoolOfNoRoute":   {key.InferencePool, []any{refused}, false},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := map[string]any{"metadata": map[string]any{"name": "x", "uid": "1", "generation": float64(2)}, "status": map[string]any{"parents": tc.parents}}
			s := newScene(t).seeRemote(key.New("west", tc.kind).String(), manifest, synced("True", ""))
			if got := Snapshot(s.request(), inFleet, time.Time{}).States["west"].Refused(); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// TestEntrypoints proves that the addresses of entrypoints are read back from the
// EndpointSlices of the fleet route.
func TestEntrypoints(t *testing.T) {
	slice := &structpb.Struct{}
	if err := slice.UnmarshalJSON([]byte(`{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "llama-at-east-0", "namespace": "team-a", "uid": "u"},
		"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.10"], "conditions": {"ready": true}}], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]
	}`)); err != nil {
		t.Fatal(err)
	}
	slice6 := &structpb.Struct{}
	if err := slice6.UnmarshalJSON([]byte(`{"addressType": "IPv6", "endpoints": [{"addresses": ["2001:db8::10"]}], "ports": [{"port": 8080}]}`)); err != nil {
		t.Fatal(err)
	}
	inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	w := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
		key.FleetSlice("east", false).String(): {Resource: slice},
		key.FleetSlice("west", false).String(): {Resource: &structpb.Struct{}},
		// Its address was of the other family before, or is of it from now on.
		key.FleetSlice("east", true).String():  {Resource: slice6},
		key.FleetSlice("south", true).String(): {Resource: slice6},
	}}}), inFleet, time.Time{})
	if diff := cmp.Diff(map[string]*v1alpha1.EntrypointStatus{"east": v1alpha1.IPEntrypoint("10.1.0.10", 80), "south": v1alpha1.IPEntrypoint("2001:db8::10", 8080)}, w.Entrypoints); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestHostnames proves that DNS names of entrypoints are read back from the objects of the fleet
// route, whichever they are. A name that is not usable is ignored.
func TestHostnames(t *testing.T) {
	object := func(text string) *fnv1.Resource {
		s := &structpb.Struct{}
		if err := s.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return &fnv1.Resource{Resource: s}
	}
	inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	w := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
		key.HostnameSlice.Backend("east").String():     object(`{"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}`),
		key.HostnameSlice.Slice("east").String():       object(`{"addressType": "FQDN", "endpoints": [{"addresses": ["a.example.com"]}], "ports": [{"port": 80}]}`),
		key.HostnameExternal.Backend("west").String():  object(`{"spec": {"externalName": "b.example.com", "ports": [{"port": 81}]}}`),
		key.HostnameEntry.Backend("west").String():     object(`{"spec": {"hosts": ["x.team-a.fleet.internal"], "endpoints": [{"address": "c.example.com"}], "ports": [{"number": 82}]}}`),
		key.HostnameEntry.Backend("north").String():    object(`{"spec": {"endpoints": [{"address": "kubernetes.default.svc"}], "ports": [{"number": 82}]}}`),
		key.HostnameExternal.Backend("south").String(): object(`{"spec": {"externalName": "b.example.com"}}`),
	}}}), inFleet, time.Time{})
	want := map[key.HostnameBackend]map[string]*v1alpha1.EntrypointStatus{
		key.HostnameSlice:    {"east": v1alpha1.HostnameEntrypoint("a.example.com", 80)},
		key.HostnameExternal: {"west": v1alpha1.HostnameEntrypoint("b.example.com", 81)},
		key.HostnameEntry:    {"west": v1alpha1.HostnameEntrypoint("c.example.com", 82)},
	}
	if diff := cmp.Diff(want, w.Hostnames); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if len(w.Entrypoints)+len(w.States) > 0 {
		t.Errorf("want neither IP addresses nor anything that runs: %v, %v", w.Entrypoints, w.States)
	}
}

// TestFormerRoute proves that a cluster that a new route leaves out may receive traffic
// until the gateway has accepted the new generation.
func TestFormerRoute(t *testing.T) {
	const route = `{
		"metadata": {"namespace": "team-a", "generation": 2},
		"spec": {"parentRefs": [{"name": "hub"}], "rules": [{"backendRefs": [{"name": "llama-at-west", "weight": 3}]}]},
		"status": {"parents": [{"parentRef": {"name": "hub"}, "conditions": [{"type": "Accepted", "status": "True", "observedGeneration": %d}]}]}
	}`
	resource := func(text string) *fnv1.Resource {
		s := &structpb.Struct{}
		if err := s.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return &fnv1.Resource{Resource: s}
	}
	spec := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	cases := map[string]struct {
		reason   string
		accepted int
		want     map[string]bool
	}{
		"Before": {"The gateway may still follow the former route.", 1, map[string]bool{"llama-at-east": true, "llama-at-west": true}},
		"After":  {"The gateway follows the new route.", 2, map[string]bool{"llama-at-west": true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
				key.FleetRoute.String():           resource(fmt.Sprintf(route, tc.accepted)),
				key.FleetService("east").String(): resource(`{"metadata": {"name": "llama-at-east"}}`),
				key.FleetService("west").String(): resource(`{"metadata": {"name": "llama-at-west"}}`),
			}}}), spec, time.Time{})
			if diff := cmp.Diff(tc.want, w.MayReceiveTraffic); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBackends proves that a backend receives traffic, or no longer may, only once no gateway
// may follow an earlier generation of the route.
func TestBackends(t *testing.T) {
	const route = `{
		"metadata": {"namespace": "team-a", "generation": 7},
		"spec": {
			"parentRefs": [{"name": "a", "namespace": "hub"}, {"name": "b"}],
			"rules": [{"backendRefs": [{"name": "old", "weight": 0}, {"name": "new", "weight": 2}]}]
		},
		"status": {"parents": [%s]}
	}`
	says := func(ref, status string, generation int) string {
		return fmt.Sprintf(`{"parentRef": %s, "conditions": [{"type": "Accepted", "status": %q, "observedGeneration": %d}]}`, ref, status, generation)
	}
	a, b := `{"name": "a", "namespace": "hub"}`, `{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "b", "namespace": "team-a"}`
	resolves := func(status string, generation int) string {
		return fmt.Sprintf(`{"parentRef": %s, "conditions": [{"type": "Accepted", "status": "True", "observedGeneration": 7}, {"type": "ResolvedRefs", "status": %q, "observedGeneration": %d}]}`, a, status, generation)
	}
	all := map[string]bool{"old": true, "new": true}
	now := map[string]bool{"new": true}
	older := map[string]bool{"older": true, "old": true, "new": true}
	cases := map[string]struct {
		reason        string
		parents       string
		services      []string
		receives, may map[string]bool
	}{
		"All":               {"Both gateways have accepted the route.", says(a, "True", 7) + "," + says(b, "True", 7), nil, now, now},
		"One":               {"The other gateway may still send traffic to the former backends.", says(a, "True", 7) + "," + says(b, "True", 6), nil, nil, all},
		"Refused":           {"A gateway that refuses the route sends no requests by it.", says(a, "True", 7) + "," + says(b, "False", 7), nil, now, now},
		"RefusedFormer":     {"It sent none by the former route either.", says(a, "True", 7) + "," + says(b, "False", 6), nil, now, now},
		"Absent":            {"A gateway that never reported on the route sends no requests by it.", says(a, "True", 7), nil, now, now},
		"AbsentOther":       {"The one that accepted an earlier generation may still follow that.", says(a, "True", 6), nil, nil, all},
		"Unknown":           {"A gateway that reported something else may send requests.", says(a, "True", 7) + "," + says(b, "Unknown", 7), nil, nil, all},
		"NoGeneration":      {"It is not known which generation the gateway has accepted.", says(a, "True", 7) + "," + says(b, "True", 0), nil, nil, all},
		"TwoControllers":    {"One of two controllers that report on a gateway has accepted the route.", says(a, "True", 7) + "," + says(b, "True", 3) + "," + says(b, "True", 7), nil, now, now},
		"Former":            {"A former parent does not count.", says(a, "True", 7) + "," + says(b, "True", 7) + "," + says(`{"name": "c"}`, "True", 6), nil, now, now},
		"None":              {"Without a gateway that ever reported, no requests come by the route, so it holds nothing back.", "", []string{"older"}, now, now},
		"AllRefuse":         {"The same applies if all refuse it.", says(a, "False", 7) + "," + says(b, "False", 7), []string{"older"}, now, now},
		"Listener":          {"A controller may name the listener that the route does not name.", says(a, "True", 7) + "," + says(`{"name": "b", "sectionName": "http"}`, "True", 6), nil, nil, all},
		"ListenerAccepted":  {"It has accepted the route.", says(a, "True", 7) + "," + says(`{"name": "b", "sectionName": "http"}`, "True", 7), nil, now, now},
		"NotResolved":       {"A gateway that cannot use the new backend answers 500, so nothing may leave for that.", resolves("False", 7) + "," + says(b, "True", 7), nil, nil, now},
		"Resolved":          {"It can use all of them.", resolves("True", 7) + "," + says(b, "True", 7), nil, now, now},
		"NotResolvedBefore": {"What it said of an earlier generation does not count.", resolves("False", 6) + "," + says(b, "True", 7), nil, now, now},
		"Former route":      {"A gateway may still follow an earlier route, which may reference any Service that exists.", says(a, "True", 7) + "," + says(b, "True", 6), []string{"older"}, nil, older},
		"Newest route":      {"No gateway sends traffic to a Service that the newest route does not reference.", says(a, "True", 7) + "," + says(b, "True", 7), []string{"older"}, now, now},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON(fmt.Appendf(nil, route, tc.parents)); err != nil {
				t.Fatal(err)
			}
			receives, may, weighted := backendsOf(incomingtest.Object(t, s), tc.services)
			if diff := cmp.Diff([]map[string]bool{tc.receives, tc.may, now}, []map[string]bool{receives, may, weighted}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBackendsByHost proves that a host of Istio counts for the ServiceEntry that has it.
func TestBackendsByHost(t *testing.T) {
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(fmt.Appendf(nil, `{
		"spec": {"parentRefs": [{"name": "a"}], "rules": [{"backendRefs": [{"group": "networking.istio.io", "kind": "Hostname", "name": %q, "weight": 2}]}]},
		"status": {"parents": [{"parentRef": {"name": "a"}, "conditions": [{"type": "Accepted", "status": "True"}]}]}
	}`, naming.FleetHost("llama-at-east-0", "team-a"))); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"llama-at-east-0": true}
	receives, may, weighted := backendsOf(incomingtest.Object(t, s), []string{"llama-at-east-0"})
	if diff := cmp.Diff([]map[string]bool{want, want, want}, []map[string]bool{receives, may, weighted}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// Users can edit the XR's references to composed resources. The capacity request is found
// without them.
func TestSnapshotFindsRequest(t *testing.T) {
	request := func(uid string) *structpb.Struct {
		s := &structpb.Struct{}
		if err := s.UnmarshalJSON([]byte(`{"metadata": {"ownerReferences": [{"uid": "` + uid + `", "controller": true}]}, "data": {"request": "{\"uid\":\"u\",\"namespace\":\"n\",\"name\":\"s\"}"}}`)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	xr := &structpb.Struct{}
	if err := xr.UnmarshalJSON([]byte(`{"metadata": {"uid": "u"}}`)); err != nil {
		t.Fatal(err)
	}
	spec := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	for uid, want := range map[string]bool{"u": true, "another": false} {
		w := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{
			Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: xr}},
			RequiredResources: map[string]*fnv1.Resources{composite.Existing(key.CapacityRequest): {Items: []*fnv1.Resource{{Resource: request(uid)}}}},
		}), spec, time.Time{})
		if got := w.Request != nil; got != want {
			t.Errorf("a capacity request that %s controls is the service's: %t, want %t", uid, got, want)
		}
	}
}

// TestSnapshotReadsPause proves that the annotation by which Crossplane pauses a cluster of the
// fleet is read, where the InferenceCluster is required because it does not answer.
func TestSnapshotReadsPause(t *testing.T) {
	cluster, told := &structpb.Struct{}, &structpb.Struct{}
	if err := cluster.UnmarshalJSON([]byte(`{"metadata": {"name": "east", "annotations": {"crossplane.io/paused": "true", "other": "x"}}}`)); err != nil {
		t.Fatal(err)
	}
	if err := told.UnmarshalJSON([]byte(`{"data": {"inferencecluster": "{\"metadata\": {\"name\": \"east\"}}"}}`)); err != nil {
		t.Fatal(err)
	}
	spec := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	w := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{
		RequiredResources: map[string]*fnv1.Resources{
			require.Fleet: {Items: []*fnv1.Resource{{Resource: told}}}, require.Cluster("east"): {Items: []*fnv1.Resource{{Resource: cluster}}},
		},
	}), spec, time.Time{})
	if diff := cmp.Diff(map[string]string{"crossplane.io/paused": "true"}, w.Clusters["east"].Annotations); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestSnapshotRestarting proves that a replica counts as restarting from its release on until it is seen ready with other pods.
func TestSnapshotRestarting(t *testing.T) {
	const object = `{
		"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "metadata": {"name": "o", "generation": 5},
		"spec": {"providerConfigRef": {"name": "east"}, "forProvider": {"manifest": {
			"metadata": {"labels": {"fusioninfer.io/spec-hash": "new"}, "annotations": {"fusioninfer.io/former-spec-hash": "%s"}},
			"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": %d}}}
		}}},
		"status": {"conditions": [{"type": "Synced", "status": "%s", "message": "%s"}], "atProvider": {"manifest": {
			"kind": "LeaderWorkerSet", "metadata": {"name": "l", "namespace": "n", "generation": 3, "labels": {"fusioninfer.io/spec-hash": "%s"}},
			"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": %d}}},
			"status": {"readyReplicas": 1, "observedGeneration": %d, "conditions": [{"type": "UpdateInProgress", "status": "%s"}]}
		}}}
	}`
	cases := map[string]struct {
		reason           string
		former           string
		told             int
		synced, message  string
		hash             string
		partition        int
		seen             int
		updating         string
		restarting, read bool
	}{
		"Runs":           {"It was replaced.", "old", 0, "True", "", "new", 0, 3, "False", false, true},
		"RanBefore":      {"Nothing changes.", "", 0, "True", "", "new", 0, 3, "False", false, true},
		"Held":           {"It keeps its pods.", "", 1, "True", "", "new", 1, 3, "False", false, true},
		"HeldNow":        {"The cluster does not have the newest template so far.", "", 1, "True", "", "old", 0, 3, "False", false, true},
		"ReleasedNow":    {"The cluster still holds it.", "old", 0, "True", "", "new", 1, 3, "False", true, true},
		"ReleasedAtOnce": {"The cluster has a former template.", "old", 0, "True", "", "old", 0, 3, "False", true, true},
		"NotSeen":        {"The controller has not seen the release.", "old", 0, "True", "", "new", 0, 2, "False", true, true},
		"Started":        {"The pods are being replaced.", "old", 0, "True", "", "new", 0, 3, "True", true, true},
		"Recreated":      {"The pods are being replaced by others of the same template.", "", 0, "True", "", "new", 0, 3, "True", true, true},
		"OutOfReach":     {"It was seen ready with the newest template.", "", 0, "False", "", "new", 0, 3, "False", false, false},
		"ReleasedAsIs":   {"Its pods are made of the newest template.", "", 0, "True", "", "new", 0, 2, "False", false, true},
		"LostAfterwards": {"It was released, and not seen since.", "old", 0, "False", "", "new", 1, 3, "False", true, false},
		"Refused":        {"The cluster refuses the newest template, so nothing restarts.", "old", 0, "False", "observe failed: cannot get desired state: denied", "old", 0, 3, "False", false, false},
		"RefusedLater":   {"What it accepted before is being replaced.", "old", 0, "False", "observe failed: cannot get desired state: denied", "old", 0, 3, "True", true, false},
		"ReleaseRefused": {"The cluster still holds it.", "old", 0, "False", "observe failed: cannot get desired state: denied", "new", 1, 3, "False", false, false},
		"HeldOutOfReach": {"It is held, and not seen since.", "", 1, "False", "", "old", 0, 3, "False", false, false},
	}
	spec := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON(fmt.Appendf(nil, object, tc.former, tc.told, tc.synced, tc.message, tc.hash, tc.partition, tc.seen, tc.updating)); err != nil {
				t.Fatal(err)
			}
			w := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
				"cluster/east/leaderworkerset/worker/0": {Resource: s},
			}}}), spec, time.Time{}).States["east"]
			got := []bool{w.WasReady["worker/0"], w.Ready["worker/0"], w.Restarting["worker/0"]}
			if diff := cmp.Diff([]bool{true, tc.read, tc.restarting}, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSnapshotUpdating proves that a replica is known to be ready no longer than its pods stay. It
// still serves meanwhile.
func TestSnapshotUpdating(t *testing.T) {
	const object = `{
		"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "metadata": {"name": "o", "generation": 5},
		"spec": {"providerConfigRef": {"name": "east"}},
		"status": {
			"conditions": [{"type": "Synced", "status": "True"%s}],
			"atProvider": {"manifest": {
				"kind": "LeaderWorkerSet", "metadata": {"name": "l", "namespace": "n", "generation": 3},
				"status": {"readyReplicas": 1%s}
			}}
		}
	}`
	const applied = `, "observedGeneration": 5`
	conditions := func(updating string) string {
		return `, "observedGeneration": 3, "conditions": [{"type": "UpdateInProgress", "status": "` + updating + `"}]`
	}
	cases := map[string]struct {
		reason         string
		synced, status string
		want           bool
	}{
		"Stays":      {"Nothing changes.", applied, `, "observedGeneration": 3, "updatedReplicas": 1`, false},
		"Held":       {"An update that is held back leaves no updated replica, and is not in progress.", applied, conditions("False"), false},
		"NotApplied": {"The cluster has an older spec.", `, "observedGeneration": 4`, conditions("False"), true},
		"NotSeen":    {"The status is of an older spec.", applied, `, "observedGeneration": 2`, true},
		"Started":    {"The pods of the older spec are ready, and go next.", applied, conditions("True"), true},
		"Unknown":    {"Nothing says of which generation the status is.", "", "", false},
	}
	spec := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON(fmt.Appendf(nil, object, tc.synced, tc.status)); err != nil {
				t.Fatal(err)
			}
			w := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
				"cluster/east/leaderworkerset/worker/0": {Resource: s},
			}}}), spec, time.Time{}).States["east"]
			got := []bool{w.WasReady["worker/0"], w.Ready["worker/0"], w.Updating["worker/0"]}
			if diff := cmp.Diff([]bool{true, true, tc.want}, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSilentBefore shows of which clusters the last status says that they are not reconciled.
func TestSilentBefore(t *testing.T) {
	inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	xr, err := structpb.NewStruct(map[string]any{"status": map[string]any{"clusters": []any{
		map[string]any{"name": "east", "reason": scheduling.ReasonPaused}, map[string]any{"name": "west", "reason": scheduling.ReasonNotReconciled},
		map[string]any{"name": "north", "reason": scheduling.ReasonRequested}, map[string]any{"name": "south"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}}}
	got := Snapshot(incomingtest.Request(t, req), inFleet, time.Time{}).Silent
	if diff := cmp.Diff(map[string]bool{"east": true, "west": true, "north": false, "south": false}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
