package service

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// loseReferences makes Crossplane observe nothing of a service. It finds the same objects by their names.
func loseReferences(t *testing.T, req *fnv1.RunFunctionRequest, found map[string][]string) {
	t.Helper()
	for k, r := range req.GetObserved().GetResources() {
		text, err := composed(t, k, r.GetResource()).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		found["existing/"+k] = []string{string(text)}
	}
	req.Observed.Resources = map[string]*fnv1.Resource{}
}

// TestLostReferences replaces a whole InferenceService, as kubectl replace does. Crossplane then observes nothing of it, because its
// references are gone, and finds the objects by their names. What they run counts as before.
func TestLostReferences(t *testing.T) {
	cases := map[string]struct {
		reason, spec, fatal string
		// held is how many replicas keep their pods.
		held int
	}{
		"Same":   {reason: "Nothing changes.", spec: fmt.Sprintf(fourWorkers, "v1")},
		"Image":  {reason: "A rollout replaces none before all are told.", spec: fmt.Sprintf(fourWorkers, "v2"), held: 4},
		"Paused": {reason: "A rollout that is paused replaces none.", spec: fmt.Sprintf(fourWorkers, "v2") + "rollout: {paused: true}\n", held: 4},
		"Port": {
			reason: "Requests go to one port of all pods.", spec: strings.ReplaceAll(fmt.Sprintf(fourWorkers, "v1"), "serve, /m", "serve, /m, --port=8001"),
			fatal: "must answer on port 8000, and not on 8001, while pods of its former template serve",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(fourWorkers, "v1"))
			w.rollOut(fmt.Sprintf(fourWorkers, "v1"))
			w.edit(tc.spec)
			before := maps.Clone(w.req.GetObserved().GetResources())
			found := map[string][]string{}
			loseReferences(t, w.req, found)
			rsp, _ := fixture.Reconcile(t, w.fn, w.req, found)
			if got := fixture.Fatals(rsp); (got == "") != (tc.fatal == "") || !strings.Contains(got, tc.fatal) {
				t.Fatalf("%s want %q, got %q", tc.reason, tc.fatal, got)
			}
			if tc.fatal != "" {
				return
			}
			held := 0
			for k := range before {
				o := rsp.GetDesired().GetResources()[k].GetResource()
				if o == nil {
					t.Errorf("%s %s goes", tc.reason, k)
				}
				if kube.Lookup(o, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition").GetNumberValue() > 0 {
					held++
				}
			}
			if held != tc.held {
				t.Errorf("%s %d replicas keep their pods, want %d", tc.reason, held, tc.held)
			}
		})
	}
}

// TestLostReferencesAfterFailure does the same with a group that was made anew after a failure. Its pods are those of a restart, and
// another template would make them anew again.
func TestLostReferencesAfterFailure(t *testing.T) {
	w := newWorld(t, groups(2, "v1", ""))
	w.pods = true
	w.rollOut(groups(2, "v1", ""))
	w.crash(firstPrefill)
	w.steps(20)
	if diff := cmp.Diff(map[string]int{firstPrefill: 1, firstDecode: 1}, w.restarts); diff != "" {
		t.Fatalf("restarts: -want, +got:\n%s", diff)
	}
	before := maps.Clone(w.req.GetObserved().GetResources())
	found := map[string][]string{}
	loseReferences(t, w.req, found)
	rsp, _ := fixture.Reconcile(t, w.fn, w.req, found)
	for _, k := range []string{firstPrefill, firstDecode, secondPrefill, secondDecode} {
		template := func(o *structpb.Struct) any { return kube.Lookup(o, "spec", "leaderWorkerTemplate").AsInterface() }
		if diff := cmp.Diff(template(before[k].GetResource()), template(rsp.GetDesired().GetResources()[k].GetResource())); diff != "" {
			t.Errorf("the template of %s: -before, +after:\n%s", k, diff)
		}
	}
}

// TestLostReferencesOfScale does the same with a role that somebody has scaled. Its number stays.
func TestLostReferencesOfScale(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(pdRoles, "maxReplicas: 8", "maxReplicas: 8, "+byQueue)+"scaling: {ratio: {prefill: 1, decode: 2, tolerancePercent: 90}}\n")
	w.apply()
	w.apply()
	w.scale("d", 4)
	w.apply()
	w.scale("p", 6)
	w.apply()
	w.apply()
	if got := setsOfPair(w.apply()); got != "6, 4" {
		t.Fatalf("they run %s", got)
	}
	found := map[string][]string{}
	loseReferences(t, w.req, found)
	rsp, _ := fixture.Reconcile(t, w.fn, w.req, found)
	got := []string{fixture.Fatals(rsp), setsOfPair(rsp), sent(rsp, "p"), sent(rsp, "d")}
	if diff := cmp.Diff([]string{"", "6, 4", "left out", "left out"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestLostReferencesInFleet does the same with a service in two clusters of the fleet, where the control plane may lack kinds. Crossplane calls
// the function six times at most, until it requires the same again.
func TestLostReferencesInFleet(t *testing.T) {
	fn := function.Start(t)
	const input = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip, fleet: {parentRefs: [{name: hub}]}, routes: {allowedHostnames: ["*"]}}`
	spec := "roles:\n- {name: r, componentType: router, httproute: {parentRefs: [{name: gw}], hostnames: [h.example.com]}}\n" +
		roleOf("a", "worker", 1, "v1") + "placement: {policy: Replicate, clusterSelector: {}}\n"
	member := func(name string, reserved bool) string {
		reservations := ""
		if reserved {
			reservations = "{uid: me, namespace: team, name: chat, replicas: [{role: a, indexes: [0], generation: 1}]}"
		}
		return fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: %s}, spec: {providerConfigRef: {name: %[1]s}, pools: []},
		  status: {pools: [{name: p, nodeCount: 9, free: [{nodeCount: 9}]}], reservations: [%s], entrypoint: {address: {type: IPAddress, value: 10.0.0.1}, port: 80}}}`, name, reservations)
	}
	req := fixture.Request(t, fixture.Service(spec), input)
	definition := func(version string) []string {
		return []string{fmt.Sprintf("{spec: {versions: [{name: %s, served: true}]}, status: {conditions: [{type: Established, status: \"True\"}]}}", version)}
	}
	found := map[string][]string{
		"kind/httproutes.gateway.networking.k8s.io": definition("v1"), "kind/objects.kubernetes.m.crossplane.io": definition("v1alpha1"),
	}
	reconcile := func(i int) *fnv1.RunFunctionResponse {
		found["fleet"] = []string{member("us-east", i > 0), member("us-west", i > 0)}
		rsp, calls := fixture.Reconcile(t, fn, req, found)
		if got := fixture.Fatals(rsp); got != "" {
			t.Fatalf("step %d: %s", i, got)
		}
		t.Logf("step %d takes %d calls", i, calls)
		return rsp
	}
	for i := range 4 {
		rsp := reconcile(i)
		fixture.Observe(req, rsp)
		for k, r := range req.GetObserved().GetResources() {
			req.Observed.Resources[k] = &fnv1.Resource{Resource: readyThere(t, r.GetResource())}
		}
		req.Observed.Composite.Resource = kube.With(req.GetObserved().GetComposite().GetResource(), kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status"), "status")
	}
	before := req.GetObserved().GetResources()
	if before["cluster/us-east/leaderworkerset/a/0"] == nil || before["httproute/fleet"] == nil {
		t.Fatalf("the service has only %v", fixture.Keys(before))
	}
	loseReferences(t, req, found)
	desired := reconcile(4).GetDesired().GetResources()
	for k := range before {
		if desired[k] == nil {
			t.Errorf("%s goes", k)
		}
	}
}

// composed returns an observed object as the API server has it, where Crossplane has composed it.
func composed(tb testing.TB, k string, o *structpb.Struct) *structpb.Struct {
	tb.Helper()
	o = kube.With(o, structpb.NewStringValue(k), "metadata", "annotations", "crossplane.io/composition-resource-name")
	owner := fixture.YAML(tb, `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, name: chat, uid: me, controller: true}`)
	return kube.With(o, structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(owner)}}), "metadata", "ownerReferences")
}
