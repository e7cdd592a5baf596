package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

func TestMissingKinds(t *testing.T) {
	fn := function.Start(t)
	input := `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip, podObservationLimit: 0}`
	const lws, pg = "kind/leaderworkersets.leaderworkerset.x-k8s.io", "kind/podgroups.scheduling.volcano.sh"
	req := fixture.Request(t, fixture.Service(fixture.TwoNodes), input)
	rsp := fn.Run(t, req)
	if diff := cmp.Diff([]string{"existing/poddisruptionbudget/role/w", "existing/service", lws, pg}, fixture.Keys(rsp.GetRequirements().GetResources())); diff != "" {
		t.Errorf("want the CRDs of kinds that a cluster may lack, and objects only of kinds that are known to exist: others would fail the whole call: -want, +got:\n%s", diff)
	}
	want := &fnv1.ResourceSelector{
		ApiVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition",
		Match: &fnv1.ResourceSelector_MatchName{MatchName: "leaderworkersets.leaderworkerset.x-k8s.io"},
	}
	if diff := cmp.Diff(want, rsp.GetRequirements().GetResources()[lws], protocmp.Transform()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	req.RequiredResources = map[string]*fnv1.Resources{lws: {}, pg: fixture.Definition(t, "v1beta1", "")}
	rsp = fn.Run(t, req)
	if diff := cmp.Diff([]string{"poddisruptionbudget/role/w", "podgroup", "service"}, fixture.Keys(rsp.GetDesired().GetResources())); diff != "" {
		t.Errorf("want no objects of missing kinds: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"existing/poddisruptionbudget/role/w", "existing/podgroup", "existing/service", lws, pg}, fixture.Keys(rsp.GetRequirements().GetResources())); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := fixture.Condition(rsp, "KindsAvailable"); got != "FALSE KindMissing" {
		t.Errorf("want KindsAvailable FALSE KindMissing, got %q", got)
	}
	if rsp.GetDesired().GetComposite().GetReady() != fnv1.Ready_READY_FALSE || rsp.GetMeta().GetTtl().AsDuration() != composite.Soon {
		t.Error("a service with missing kinds must not be ready, and must be reconciled soon")
	}

	req.Observed.Resources["leaderworkerset/w/0"] = &fnv1.Resource{Resource: fixture.YAML(t, `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet}`)}
	rsp = fn.Run(t, req)
	if rsp.GetDesired().GetResources()["leaderworkerset/w/0"] == nil {
		t.Error("an observed object was left out")
	}
	if rsp.GetRequirements().GetResources()[lws] != nil {
		t.Error("a kind with an observed object exists: its CRD, the largest of all, must not be required")
	}
}

// TestGangWithoutVolcano edits a service that serves so that its pods start as a gang, in a cluster without Volcano. They would never be
// scheduled, so what exists waits until the kind is there, be it ready or not.
func TestGangWithoutVolcano(t *testing.T) {
	const lws, pg = "kind/leaderworkersets.leaderworkerset.x-k8s.io", "kind/podgroups.scheduling.volcano.sh"
	workers := func(replicas, nodes int, more string) string {
		return fmt.Sprintf("roles:\n- {name: w, componentType: worker, replicas: %d, multinode: {nodeCount: %d, launcher: None}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}\n%s", replicas, nodes, more)
	}
	const none = "schedulingStrategy: {gang: {mode: None}}\n"
	cases := map[string]struct{ before, after string }{
		"Nodes":      {workers(2, 1, ""), workers(2, 2, "")},
		"OneReplica": {workers(1, 1, ""), workers(1, 2, "")},
		"Mode":       {workers(2, 2, none), workers(2, 2, "")},
		"Surge":      {workers(2, 1, ""), workers(2, 2, "rollout: {maxSurge: 1}\n")},
		"Pairs":      {workers(1, 1, ""), workers(1, 1, roleOf("p", "prefiller", 1, "v1")+roleOf("d", "decoder", 1, "v1"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before)
			w.lacksGangs = true
			w.req.Input = fixture.YAML(t, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip, podObservationLimit: 0}`)
			w.req.RequiredResources = map[string]*fnv1.Resources{lws: fixture.Definition(t, "v1", ""), pg: {}}
			w.rollOut(tc.before)
			former := w.serving()
			_, last := w.rollOut(tc.after)
			if diff := cmp.Diff(former, w.serving()); diff != "" {
				t.Errorf("without the kind these serve: -want, +got:\n%s", diff)
			}
			if got := fixture.Condition(last, "KindsAvailable"); got != "FALSE KindMissing" {
				t.Errorf("KindsAvailable is %s", got)
			}
			for _, replica := range former { // Its controller makes its pods anew, as they were.
				w.crash("leaderworkerset/" + replica)
				w.rollOut(tc.after)
			}
			if diff := cmp.Diff(former, w.serving()); diff != "" {
				t.Errorf("without the kind these serve again after a crash: -want, +got:\n%s", diff)
			}
			w.lacksGangs = false
			w.req.RequiredResources[pg] = fixture.Definition(t, "v1beta1", "")
			if _, last = w.rollOut(tc.after); fixture.Condition(last, "RolledOut") != "TRUE AllUpdated" || fixture.Condition(last, "KindsAvailable") != "TRUE AllAvailable" {
				t.Errorf("with the kind: RolledOut is %s, and KindsAvailable is %s", fixture.Condition(last, "RolledOut"), fixture.Condition(last, "KindsAvailable"))
			}
		})
	}
}

// TestSidecarsNeedPools shows that the kind InferencePool is missing to a service without a router if
// its routing sidecars wait for it.
func TestSidecarsNeedPools(t *testing.T) {
	const pairs = "roles:\n- {name: p, componentType: prefiller, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}\n" +
		"- {name: d, componentType: decoder, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}\n"
	const lws, pool = "kind/leaderworkersets.leaderworkerset.x-k8s.io", "kind/inferencepools.inference.networking.k8s.io"
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service(pairs), `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip}`)
	req.RequiredResources = map[string]*fnv1.Resources{lws: fixture.Definition(t, "v1", ""), pool: {}}
	rsp := fn.Run(t, req)
	if got := fixture.Condition(rsp, "KindsAvailable"); got != "FALSE KindMissing" || rsp.GetDesired().GetResources()["role/sidecar"] != nil {
		t.Errorf("without the kind: KindsAvailable is %q, and these are rendered: %v", got, fixture.Keys(rsp.GetDesired().GetResources()))
	}
	req.RequiredResources[pool] = fixture.Definition(t, "v1", "")
	rsp = fn.Run(t, req)
	if got := fixture.Condition(rsp, "KindsAvailable"); got != "TRUE AllAvailable" || rsp.GetDesired().GetResources()["role/sidecar"] == nil {
		t.Errorf("with the kind: KindsAvailable is %q, and these are rendered: %v", got, fixture.Keys(rsp.GetDesired().GetResources()))
	}
}

// TestKindAvailable shows when a kind counts as installed. If that were too early, an apply would
// stop half way.
func TestKindAvailable(t *testing.T) {
	fn := function.Start(t)
	cases := map[string]struct {
		reason  string
		differs string
		version string
		want    string
	}{
		"Served":         {reason: "the version is served", version: "v1", want: "TRUE AllAvailable"},
		"OtherVersion":   {reason: "the version does not exist", version: "v1beta1", want: "FALSE KindMissing"},
		"NotServed":      {reason: "the version is no longer served", version: "v1", differs: `spec: {versions: [{name: v2, served: true}, {name: v1, served: false}]}`, want: "FALSE KindMissing"},
		"New":            {reason: "a new CRD is not served yet", version: "v1", differs: `status: {}`, want: "FALSE KindMissing"},
		"NotEstablished": {reason: "another kind has its names", version: "v1", differs: `status: {conditions: [{type: NamesAccepted, status: "False"}, {type: Established, status: "False"}]}`, want: "FALSE KindMissing"},
		"Deleted":        {reason: "a CRD that is being deleted accepts no new objects", version: "v1", differs: `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}`, want: "FALSE KindMissing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, fixture.Service(fixture.TwoNodes), `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip}`)
			req.RequiredResources = map[string]*fnv1.Resources{
				"kind/leaderworkersets.leaderworkerset.x-k8s.io": fixture.Definition(t, tc.version, tc.differs),
				"kind/podgroups.scheduling.volcano.sh":           fixture.Definition(t, "v1beta1", ""),
			}
			if got := fixture.Condition(fn.Run(t, req), "KindsAvailable"); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRequirementsConverge shows that the requirements stop changing within the number of calls
// that Crossplane makes.
func TestRequirementsConverge(t *testing.T) {
	fn := function.Start(t)
	for _, input := range []string{"", `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip}`} {
		req := fixture.Request(t, fixture.Service(fixture.TwoNodes), input)
		var last *fnv1.Requirements
		for i := 0; ; i++ {
			rsp := fn.Run(t, req)
			if proto.Equal(last, rsp.GetRequirements()) {
				break
			}
			if i == 4 {
				t.Fatal("the requirements still change")
			}
			last = rsp.GetRequirements()
			req.RequiredResources = map[string]*fnv1.Resources{}
			for name := range last.GetResources() {
				req.RequiredResources[name] = &fnv1.Resources{}
				if strings.HasPrefix(name, "kind/") {
					req.RequiredResources[name] = fixture.Definition(t, "v1", "")
				}
			}
		}
	}
}

// TestLongestChain shows that Crossplane gets to the end of the longest chain of requirements. A cluster that allows the
// namespace by its labels has room for a service that leaves another one, and its DNS name needs a kind of its own. Crossplane
// fails the reconcile after six calls.
func TestLongestChain(t *testing.T) {
	const most = 5
	fn := function.Start(t)
	spec := `roles:
- {name: r, componentType: router, strategy: prefix-cache, httproute: {parentRefs: [{name: g, namespace: gw}], hostnames: [a.example.com]}}
- {name: w, componentType: worker, replicas: 2, template: {spec: {containers: [{name: vllm, image: i, args: [--model, m], resources: {limits: {nvidia.com/gpu: "1"}}}]}}}
placement: ` + eastThenWest
	const input = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip, fleet: {parentRefs: [{name: f, namespace: gw}], hostnameBackends: ServiceEntry}, routes: {allowedParentRefs: [{name: g, namespace: gw}], allowedHostnames: ["*.example.com"]}}`
	definition := func(name, version string) []string {
		return []string{fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s}, spec: {versions: [{name: %s, served: true}]}, status: {conditions: [{type: Established, status: "True"}]}}`, name, version)}
	}
	member := func(name, address string, gpus int, reserved string) string {
		return fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: %s}, spec: {providerConfigRef: {name: %[1]s}, pools: [], allowedNamespaces: {from: Selector, selector: {matchLabels: {tier: gold}}}},
  status: {entrypoint: {address: %s, port: 80}, pools: [{name: p, nodeCount: 9, free: [{nodeCount: 9, resources: {nvidia.com/gpu: "%d"}}]}], reservations: [%s]}}`, name, address, gpus, reserved)
	}
	const ip, dns, first = "{type: IPAddress, value: 10.0.0.1}", "{type: Hostname, value: west.lb.example.com}", "{uid: me, namespace: team, name: chat, replicas: [{role: w, indexes: [0], generation: 1}]}"
	req := fixture.Request(t, fixture.Service(spec), input)
	has := map[string][]string{
		"namespace": {gold},
		"kind/objects.kubernetes.m.crossplane.io":   definition("objects.kubernetes.m.crossplane.io", "v1alpha1"),
		"kind/httproutes.gateway.networking.k8s.io": definition("httproutes.gateway.networking.k8s.io", "v1"),
		"kind/serviceentries.networking.istio.io":   definition("serviceentries.networking.istio.io", "v1"),
		"fleet": {member("us-east", ip, 0, ""), member("us-west", dns, 0, "")},
	}
	rsp, _ := fixture.Reconcile(t, fn, req, has)
	req.Observed.Resources[key.CapacityRequest.String()] = rsp.GetDesired().GetResources()[key.CapacityRequest.String()]
	has["fleet"] = []string{member("us-east", ip, 0, first), member("us-west", dns, 8, first)}
	rsp, _ = fixture.Reconcile(t, fn, req, has) // Both were asked, so the home is written first.
	req.Observed.Resources[key.CapacityRequest.String()] = rsp.GetDesired().GetResources()[key.CapacityRequest.String()]
	rsp, calls := fixture.Reconcile(t, fn, req, has)
	if fatals := fixture.Fatals(rsp); fatals != "" || calls > most {
		t.Errorf("%d calls, want at most %d: %s", calls, most, fatals)
	}
	if got := rsp.GetRequirements().GetResources()["kind/serviceentries.networking.istio.io"].GetMatchName(); got != "serviceentries.networking.istio.io" {
		t.Errorf("nothing is required of the kind that only west needs, but %q: %v", got, fixture.Keys(rsp.GetRequirements().GetResources()))
	}
}
