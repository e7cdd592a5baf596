package modelcache

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// A fleet has three clusters, and what asks them for a place.
type fleet struct {
	*testing.T

	clusters map[string]*party
	// members are a ModelCache and services, by their names.
	members map[string]*party
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	fn := function.Start(t)
	f := &fleet{T: t, clusters: map[string]*party{}, members: map[string]*party{}}
	for _, name := range []string{"east", "south", "west"} {
		f.clusters[name] = begin(t, fn, `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: `+name+`, uid: of-`+name+`, labels: {gpu: `+map[string]string{"west": "none"}[name]+`}}, spec: {providerConfigRef: {name: `+name+`}, pools: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: 1}}]}}`)
	}
	return f
}

func (f *fleet) add(name, xr string) *party {
	f.Helper()
	f.members[name] = begin(f.T, f.clusters["east"].fn, xr)
	return f.members[name]
}

// found is what a member finds: the clusters, and the ModelCache that it names.
func (f *fleet) found() map[string][]string {
	all := map[string][]string{}
	for _, name := range fixture.Keys(f.clusters) {
		all["fleet"] = append(all["fleet"], f.clusters[name].doc()...)
	}
	if c := f.members["qwen"]; c != nil {
		all["model-cache"] = c.doc()
	}
	for _, name := range fixture.Keys(f.members) {
		r := f.members[name].req.GetObserved().GetResources()["configmap/capacity-request"]
		if kube.Lookup(r.GetResource(), "metadata", "labels", "fusioninfer.io/uses-model-cache").GetStringValue() != "qwen" {
			continue
		}
		b, err := r.GetResource().MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		all["model-cache-users"] = append(all["model-cache-users"], string(b))
	}
	return all
}

// round calls everyone once, the members first. All of them read what the others have written before.
func (f *fleet) round() {
	f.Helper()
	for _, name := range fixture.Keys(f.members) {
		f.members[name].apply(f.found())
	}
	var requests []string
	for _, name := range fixture.Keys(f.members) {
		m := f.members[name]
		if r := m.req.GetObserved().GetResources()["configmap/capacity-request"]; r != nil {
			owner := fixture.YAML(f.T, `{of: [{controller: true, uid: of-`+name+`}]}`).GetFields()["of"]
			b, err := kube.With(r.GetResource(), owner, "metadata", "ownerReferences").MarshalJSON()
			if err != nil {
				f.Fatal(err)
			}
			requests = append(requests, string(b))
		}
	}
	for _, name := range fixture.Keys(f.clusters) {
		var of []string
		for _, r := range requests {
			if strings.Contains(r, "capacity-request.fusioninfer.io/"+name) {
				of = append(of, r)
			}
		}
		f.clusters[name].apply(map[string][]string{"capacity-requests": of})
	}
}

// in are the clusters in which a member has an object of a kind.
func (f *fleet) in(member, kind string) []string {
	all := []string{}
	for _, k := range fixture.Keys(f.members[member].req.GetObserved().GetResources()) {
		if rest, is := strings.CutPrefix(k, "cluster/"); is {
			cluster, of, _ := strings.Cut(rest, "/")
			if strings.HasPrefix(of, kind) {
				all = append(all, cluster)
			}
		}
	}
	return slices.Compact(all)
}

// TestFleet proves that a ModelCache is loaded in the clusters that it names and in no other, before any
// service exists, that each of these makes the namespace, and that services are placed in those only.
func TestFleet(t *testing.T) {
	f := newFleet(t)
	cacheOf := f.add("qwen", cache(`, clusters: [east, south]`))
	for range 4 {
		f.round()
	}
	if diff := cmp.Diff([]string{"east", "south"}, f.in("qwen", "persistentvolumeclaim")); diff != "" {
		t.Errorf("claims: -want +got:\n%s", diff)
	}
	for _, name := range []string{"east", "south", "west"} {
		_, made := f.clusters[name].req.GetObserved().GetResources()["object/namespace/team"]
		if want := name != "west"; made != want {
			t.Errorf("%s has the namespace of the tenant: %v, want %v (%v)", name, made, want, fixture.Keys(f.clusters[name].req.GetObserved().GetResources()))
		}
	}
	f.add("chat", service("chat", `placement: {policy: Spread, clusterSelector: {}},`))
	for range 6 {
		f.round()
	}
	if diff := cmp.Diff([]string{}, f.in("chat", "leaderworkerset")); diff != "" {
		t.Errorf("replicas before the weights are there: -want +got:\n%s", diff)
	}
	cacheOf.complete()
	for range 3 {
		f.round()
	}
	if diff := cmp.Diff([]string{"east", "south"}, f.in("chat", "leaderworkerset")); diff != "" {
		t.Errorf("replicas: -want +got:\n%s", diff)
	}
	if got := f.in("qwen", "job"); len(got) > 0 {
		t.Errorf("Jobs stay in %v", got)
	}
	// A service that leaves takes nothing of the ModelCache with it.
	delete(f.members, "chat")
	f.round()
	if diff := cmp.Diff([]string{"east", "south"}, f.in("qwen", "persistentvolumeclaim")); diff != "" {
		t.Errorf("claims: -want +got:\n%s", diff)
	}
}

// TestFleetUnknown proves that claims stay while Crossplane has not answered which clusters there are, and
// while a cluster cannot be read.
func TestFleetUnknown(t *testing.T) {
	f := newFleet(t)
	c := f.add("qwen", cache(`, clusterSelector: {}`))
	for range 4 {
		f.round()
	}
	c.complete()
	f.round()
	f.round()
	before := fixture.Keys(c.req.GetObserved().GetResources())
	if diff := cmp.Diff([]string{"east", "south", "west"}, f.in("qwen", "persistentvolumeclaim")); diff != "" {
		t.Fatalf("claims: -want +got:\n%s", diff)
	}
	rsp, err := c.fn.RunFunction(t.Context(), c.req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, fixture.Keys(rsp.GetDesired().GetResources())); diff != "" {
		t.Errorf("the fleet is not known: -before +after:\n%s", diff)
	}
	for k, r := range c.req.GetObserved().GetResources() {
		if strings.HasPrefix(k, "cluster/west/") {
			r.Resource = kube.With(r.GetResource(), structpb.NewStructValue(fixture.YAML(t, `{conditions: [{type: Synced, status: "False", reason: ReconcileError}]}`)), "status")
		}
	}
	if diff := cmp.Diff(before, fixture.Keys(c.call(f.found()).GetDesired().GetResources())); diff != "" {
		t.Errorf("west cannot be read: -before +after:\n%s", diff)
	}
	request := c.req.GetObserved().GetResources()["configmap/capacity-request"]
	delete(c.req.GetObserved().GetResources(), "configmap/capacity-request")
	if diff := cmp.Diff(before, fixture.Keys(c.call(f.found()).GetDesired().GetResources())); diff != "" {
		t.Errorf("the request is lost: -before +after:\n%s", diff)
	}
	c.req.Observed.Resources["configmap/capacity-request"] = request
	delete(f.clusters, "west")
	if diff := cmp.Diff(before, fixture.Keys(c.call(f.found()).GetDesired().GetResources())); diff != "" {
		t.Errorf("west has no profile any more: -before +after:\n%s", diff)
	}
}

// TestLeaving proves that a cluster which the ModelCache no longer names is left, and no other.
func TestLeaving(t *testing.T) {
	f := newFleet(t)
	c := f.add("qwen", cache(`, clusters: [east, south]`))
	for range 4 {
		f.round()
	}
	c.req.Observed.Composite.Resource = kube.With(c.req.GetObserved().GetComposite().GetResource(), fixture.YAML(t, cache(`, clusters: [south, west]`)).GetFields()["spec"], "spec")
	for range 6 {
		f.round()
	}
	if diff := cmp.Diff([]string{"south", "west"}, f.in("qwen", "persistentvolumeclaim")); diff != "" {
		t.Errorf("claims: -want +got:\n%s", diff)
	}
}

// TestLeavingWhileUsed proves that a claim stays in a cluster as long as a service runs there that uses it, whatever the ModelCache
// names, and while nobody knows whether one does.
func TestLeavingWhileUsed(t *testing.T) {
	f := newFleet(t)
	c := f.add("qwen", cache(`, clusters: [east, south]`))
	for range 4 {
		f.round()
	}
	f.add("chat", service("chat", `placement: {policy: Failover, clusters: [{name: east, inferenceClusterRef: {name: east}}]},`))
	for range 6 {
		f.round()
	}
	c.complete()
	for range 3 {
		f.round()
	}
	if diff := cmp.Diff([]string{"east"}, f.in("chat", "leaderworkerset")); diff != "" {
		t.Fatalf("replicas: -want +got:\n%s", diff)
	}
	c.req.Observed.Composite.Resource = kube.With(c.req.GetObserved().GetComposite().GetResource(), fixture.YAML(t, cache(`, clusters: [south, west]`)).GetFields()["spec"], "spec")
	for range 6 {
		f.round()
	}
	if diff := cmp.Diff([]string{"east", "south", "west"}, f.in("qwen", "persistentvolumeclaim")); diff != "" {
		t.Errorf("claims while the service runs: -want +got:\n%s", diff)
	}
	delete(f.members, "chat")
	var clusters []*structpb.Struct
	for _, doc := range f.found()["fleet"] {
		clusters = append(clusters, fixture.YAML(t, doc))
	}
	c.req.RequiredResources = fixture.Fleet(t, "of-qwen", clusters...)
	rsp, err := c.fn.RunFunction(t.Context(), c.req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fixture.Keys(c.req.GetObserved().GetResources()), fixture.Keys(rsp.GetDesired().GetResources())); diff != "" {
		t.Errorf("Crossplane has not answered which services use it: -before +after:\n%s", diff)
	}
	for range 2 {
		f.round()
	}
	if diff := cmp.Diff([]string{"south", "west"}, f.in("qwen", "persistentvolumeclaim")); diff != "" {
		t.Errorf("claims without the service: -want +got:\n%s", diff)
	}
}

// TestTaints proves that a ModelCache is loaded in a cluster whose taints its Job tolerates, whatever its node selector.
func TestTaints(t *testing.T) {
	f := newFleet(t)
	cluster := f.clusters["south"].req.GetObserved().GetComposite()
	cluster.Resource = kube.With(cluster.GetResource(), fixture.YAML(t, `{of: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: 1}, taints: [{key: dedicated, value: inference, effect: NoSchedule}]}]}`).GetFields()["of"], "spec", "pools")
	f.add("qwen", cache(`, clusters: [south], nodeSelector: {disk: big}, tolerations: [{key: dedicated, operator: Exists}]`))
	for range 4 {
		f.round()
	}
	if diff := cmp.Diff([]string{"south"}, f.in("qwen", "persistentvolumeclaim")); diff != "" {
		t.Errorf("claims: -want +got:\n%s", diff)
	}
}

// TestTooMany proves that a selector of more clusters than fit into an answer, or into a request, is refused.
func TestTooMany(t *testing.T) {
	fn := function.Start(t)
	cases := map[string]struct {
		n     int
		input string
		want  string
	}{
		"Clusters": {n: 1025, want: `nothing was changed: spec.clusterSelector: Invalid value: "1025 clusters": selects too many clusters: must select at most 1024`},
		"Bytes":    {n: 600, input: `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, annotations: {a: ` + strings.Repeat("x", 4<<10) + `}}`, want: "selects more clusters than fit into an answer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, cache(`, clusterSelector: {}`), tc.input)
			var clusters []*structpb.Struct
			var running []string
			for i := range tc.n {
				name := fmt.Sprintf("c%d", i)
				clusters = append(clusters, fixture.YAML(t, fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: %[1]s}, spec: {providerConfigRef: {name: %[1]s}, pools: [{name: p, nodeCount: 1}]}, status: {pools: [{name: p, nodeCount: 1, free: [{nodeCount: 1}]}], reservations: [{uid: of-qwen, namespace: team, name: qwen, replicas: [{role: cache, indexes: [0], generation: 1}], pods: 1}]}}`, name)))
				running = append(running, fmt.Sprintf(`{"names":["%[1]s"],"name":"%[1]s","namespace":"team","groups":[{"name":"0","replicas":[{"name":"cache/0","pods":{"loader":1},"generation":1}]}],"running":["cache/0"]}`, name))
			}
			req.Observed.Resources["configmap/capacity-request"] = &fnv1.Resource{Resource: fixture.YAML(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: qwen-cache-request, namespace: team, resourceVersion: "1"}, data: {request: '{"uid":"of-qwen","namespace":"team","name":"qwen","generation":1,"podRequirements":{"loader":{}},"clusters":[`+strings.Join(running, ",")+`]}'}}`)}
			req.RequiredResources = fixture.Fleet(t, "of-qwen", clusters...)
			rsp, err := fn.RunFunction(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got := fixture.Fatals(rsp); !strings.Contains(got, tc.want) {
				t.Errorf("want a Fatal with %q, got %q, %d objects", tc.want, got, len(rsp.GetDesired().GetResources()))
			}
		})
	}
}

// TestOnDemand proves that a ModelCache with room in three clusters is loaded in the one where a service runs
// that names it, that this starts once the weights are there, and that they stay when the service goes.
func TestOnDemand(t *testing.T) {
	f := newFleet(t)
	c := f.add("qwen", cache(`, clusterSelector: {}, loadPolicy: OnDemand`))
	for range 3 {
		f.round()
	}
	rsp := c.call(f.found())
	if diff := cmp.Diff([]string{"TRUE Placed", "TRUE NotNeeded"}, []string{fixture.Condition(rsp, "Placed"), fixture.Condition(rsp, "ModelReady")}); diff != "" {
		t.Errorf("nobody needs it: -want +got:\n%s", diff)
	}
	f.add("chat", service("chat", `placement: {policy: Failover, clusterSelector: {matchLabels: {gpu: none}}},`))
	for range 6 {
		f.round()
	}
	if diff := cmp.Diff([]string{"west"}, f.in("qwen", "persistentvolumeclaim")); diff != "" {
		t.Errorf("claims: -want +got:\n%s", diff)
	}
	c.complete()
	for range 3 {
		f.round()
	}
	if diff := cmp.Diff([]string{"west"}, f.in("chat", "leaderworkerset")); diff != "" {
		t.Errorf("replicas: -want +got:\n%s", diff)
	}
	delete(f.members, "chat")
	f.round()
	f.round()
	if diff := cmp.Diff([]string{"west"}, f.in("qwen", "persistentvolumeclaim")); diff != "" {
		t.Errorf("claims without the service: -want +got:\n%s", diff)
	}
}

// TestForgedDemand proves that a request which somebody writes by hand has weights loaded only in clusters that
// the ModelCache is for.
func TestForgedDemand(t *testing.T) {
	f := newFleet(t)
	c := f.add("qwen", cache(`, clusters: [east, south], loadPolicy: OnDemand`))
	for range 3 {
		f.round()
	}
	forged := func(clusters ...string) string {
		for i, name := range clusters {
			clusters[i] = fmt.Sprintf(`{"names":[%q],"namespace":"team","groups":[{"name":"0","replicas":[{"name":"w/0","pods":{"w":1}}]}],"running":["w/0"]}`, name)
		}
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: team}, data: {request: '{"uid":"u","namespace":"team","name":"s","podRequirements":{"w":{}},"clusters":[` + strings.Join(clusters, ",") + `]}'}}`
	}
	found := f.found()
	found["model-cache-users"] = []string{
		forged("south", "west"), forged("../x"),
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: none, namespace: team}, data: {request: 'no request'}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong, namespace: team}, data: 1}`,
	}
	request := c.call(found).GetDesired().GetResources()["configmap/capacity-request"].GetResource()
	var asked []string
	for _, l := range fixture.Keys(kube.Lookup(request, "metadata", "labels").GetStructValue().GetFields()) {
		if cluster, is := strings.CutPrefix(l, "capacity-request.fusioninfer.io/"); is {
			asked = append(asked, cluster)
		}
	}
	if diff := cmp.Diff([]string{"south"}, asked); diff != "" {
		t.Errorf("clusters that are asked: -want +got:\n%s", diff)
	}
}
