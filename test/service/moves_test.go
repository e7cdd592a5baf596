package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// memberOf is a cluster of the fleet. It has reserved what the service's request of a generation
// wants, or nothing if that is 0.
func memberOf(name, stopPolicy string, generation int) string {
	reservations := ""
	if generation > 0 {
		reservations = fmt.Sprintf("{uid: me, namespace: team, name: chat, replicas: [{group: 0, role: w, indexes: [0, 1], generation: %d}]}", generation)
	}
	return fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: %s}, spec: {providerConfigRef: {name: %[1]s}, stopPolicy: %s, pools: []},
	  status: {pools: [{name: p, nodeCount: 9, free: [{nodeCount: 9}]}], reservations: [%s]}}`, name, stopPolicy, reservations)
}

// eastThenWest is a placement that prefers one of two clusters.
const eastThenWest = "{policy: Failover, clusters: [{name: us-east, inferenceClusterRef: {name: us-east}}, {name: us-west, inferenceClusterRef: {name: us-west}}]}"

// TestMoves shows that the events of a service say from where to where it moves and why, and that
// a call that changes nothing has no event.
func TestMoves(t *testing.T) {
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service("replicas: 1\n"+fixture.TwoNodes+"placement: "+eastThenWest), "")
	apply := func(clusters ...string) []string {
		t.Helper()
		rsp := settle(t, fn, req, clusters)
		var events []string
		for _, r := range rsp.GetResults() {
			if r.GetTarget() == fnv1.Target_TARGET_COMPOSITE_AND_CLAIM && strings.HasPrefix(r.GetMessage(), "group ") {
				events = append(events, r.GetMessage())
			}
		}
		return events
	}
	const because = "the cluster is drained, and is left once it runs elsewhere"
	steps := []struct {
		reason   string
		clusters []string
		want     []string
	}{
		{"The service requests capacity.", []string{memberOf("us-east", "None", 0), memberOf("us-west", "None", 0)}, nil},
		{"The cluster has reserved it.", []string{memberOf("us-east", "None", 1), memberOf("us-west", "None", 0)}, []string{"group 0 starts in us-east"}},
		{"Nothing has changed.", []string{memberOf("us-east", "None", 1), memberOf("us-west", "None", 0)}, nil},
		{"The cluster is drained.", []string{memberOf("us-east", "Drain", 1), memberOf("us-west", "None", 0)}, []string{"group 0 must leave us-east: " + because}},
		{"Nothing has changed.", []string{memberOf("us-east", "Drain", 1), memberOf("us-west", "None", 0)}, nil},
		{"Another cluster has reserved it.", []string{memberOf("us-east", "Drain", 1), memberOf("us-west", "None", 2)}, []string{"group 0 moves from us-east to us-west: " + because}},
		{"It is ready there.", []string{memberOf("us-east", "Drain", 1), memberOf("us-west", "None", 2)}, []string{"group 0 runs in us-west now, and left us-east"}},
		{"Nothing has changed.", []string{memberOf("us-east", "Drain", 0), memberOf("us-west", "None", 2)}, nil},
	}
	for i, s := range steps {
		if diff := cmp.Diff(s.want, apply(s.clusters...)); diff != "" {
			t.Fatalf("step %d: %s\n-want +got:\n%s", i, s.reason, diff)
		}
	}
	if got := remoteClusters(fn.Run(t, req)); !slices.Equal(got, []string{"us-west"}) {
		t.Errorf("it runs in %s", strings.Join(got, ", "))
	}
}

// settle calls the function, and does with its answer what Crossplane and provider-kubernetes do. What is not desired any
// more is gone, and the rest is ready.
func settle(t *testing.T, fn *function.Client, req *fnv1.RunFunctionRequest, clusters []string) *fnv1.RunFunctionResponse {
	t.Helper()
	rsp, _ := fixture.Reconcile(t, fn, req, map[string][]string{"fleet": clusters})
	if got := fixture.Fatals(rsp); got != "" {
		t.Fatal(got)
	}
	maps.DeleteFunc(req.GetObserved().GetResources(), func(k string, _ *fnv1.Resource) bool { return rsp.GetDesired().GetResources()[k] == nil })
	fixture.Observe(req, rsp)
	for k, r := range req.GetObserved().GetResources() {
		req.Observed.Resources[k] = &fnv1.Resource{Resource: readyThere(t, r.GetResource())}
	}
	xr := proto.CloneOf(req.GetObserved().GetComposite().GetResource())
	req.Observed.Composite.Resource = kube.With(xr, kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status"), "status")
	return rsp
}

// TestMovesInParts shows that a service moves group by group, if an answer to Crossplane has no room for two copies of
// all. No group is ever without a copy, and the service says what it does.
func TestMovesInParts(t *testing.T) {
	fn := function.Start(t)
	large := fmt.Sprintf(`roles: [{name: w, componentType: worker, replicas: 1, template: {spec: {containers: [{name: vllm, image: i, args: [--model, m], env: [{name: X, value: "%s"}]}]}}}]
`, strings.Repeat("x", 480_000))
	req := fixture.Request(t, fixture.Service("replicas: 5\n"+large+"placement: "+eastThenWest), "")
	member := func(name, stopPolicy string, generation int) string {
		var groups []string
		for group := range 5 {
			groups = append(groups, fmt.Sprintf("{group: %d, role: w, indexes: [0], generation: %d}", group, generation))
		}
		return strings.Replace(memberOf(name, stopPolicy, 1), "replicas: [{group: 0, role: w, indexes: [0, 1], generation: 1}]", "replicas: ["+strings.Join(groups, ", ")+"]", 1)
	}
	type step struct {
		East, West []int32 // The groups that run there.
		Reason     string
	}
	var got []step
	call := func(clusters ...string) {
		t.Helper()
		rsp := settle(t, fn, req, clusters)
		s := step{East: groupsIn(rsp, "us-east"), West: groupsIn(rsp, "us-west")}
		status := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status", "clusters")
		for _, c := range status.GetListValue().GetValues() {
			if f := c.GetStructValue().GetFields(); f["name"].GetStringValue() == "us-west" {
				s.Reason = f["reason"].GetStringValue()
			}
		}
		if len(got) == 0 || !cmp.Equal(got[len(got)-1], s) {
			got = append(got, s)
		}
	}
	call(memberOf("us-east", "None", 0), memberOf("us-west", "None", 0))
	call(member("us-east", "None", 1), memberOf("us-west", "None", 0))
	call(member("us-east", "Drain", 1), memberOf("us-west", "None", 0))
	for range 15 {
		call(member("us-east", "Drain", 1), member("us-west", "None", 2))
	}
	all := []int32{0, 1, 2, 3, 4}
	want := []step{
		{nil, nil, "NotNeeded"},
		{all, nil, "NotNeeded"},
		{all, nil, "Requested"},
		{all, []int32{0}, "MovesInParts"},
		{[]int32{1, 2, 3, 4}, []int32{0, 1}, "MovesInParts"},
		{[]int32{2, 3, 4}, []int32{0, 1, 2}, "MovesInParts"},
		{[]int32{3, 4}, []int32{0, 1, 2, 3}, "MovesInParts"},
		{[]int32{4}, all, ""},
		{nil, all, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// groupsIn returns the groups with desired LeaderWorkerSets in a cluster.
func groupsIn(rsp *fnv1.RunFunctionResponse, cluster string) []int32 {
	all := map[int32]bool{}
	for k := range rsp.GetDesired().GetResources() {
		parsed := key.Parse(k)
		if id, is := parsed.ReplicaID(); is && parsed.Cluster == cluster {
			group, _, _, _ := id.Parts()
			all[group] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// readyThere returns an Object as provider-kubernetes reports it while the remote object is ready.
func readyThere(t *testing.T, o *structpb.Struct) *structpb.Struct {
	t.Helper()
	manifest := kube.Lookup(o, "spec", "forProvider", "manifest").GetStructValue()
	if manifest == nil {
		return o
	}
	one := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{"it": {Resource: manifest}}}}
	fixture.MakeReady(t, one)
	is := one.GetObserved().GetResources()["it"].GetResource()
	if kube.Lookup(is, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition").GetNumberValue() > 0 {
		is = kube.With(is, structpb.NewNumberValue(0), "status", "updatedReplicas") // It keeps the pods that it had.
	}
	o = kube.With(o, structpb.NewStructValue(is), "status", "atProvider", "manifest")
	return kube.With(o, structpb.NewStructValue(fixture.YAML(t, `{all: [{type: Synced, status: "True"}]}`)).GetStructValue().GetFields()["all"], "status", "conditions")
}
