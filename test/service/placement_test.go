package service

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// remoteClusters returns the clusters for which objects are desired.
func remoteClusters(rsp *fnv1.RunFunctionResponse) []string {
	all := map[string]bool{}
	for k := range rsp.GetDesired().GetResources() {
		if c := key.Parse(k).Cluster; c != "" {
			all[c] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

const (
	onGPU         = fixture.TwoNodes + "placement: {clusters: [{name: east, providerConfigRef: {name: gpu}}]}"
	allowsGPU     = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedProviderConfigs: [{name: gpu}]}`
	requiresKinds = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip, allowedProviderConfigs: [{name: gpu}]}`
	clusterByGPU  = `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: gpu}, pools: []}}`
	clusterByElse = `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: other}, pools: []}}`
	fleetCRD      = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: inferenceclusters.fusioninfer.io}, spec: {versions: [{name: v1alpha1, served: true}]}, status: {conditions: [{type: Established, status: "True"}]}}`
	objectCRD     = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: objects.kubernetes.m.crossplane.io}, spec: {versions: [{name: v1alpha1, served: true}]}, status: {conditions: [{type: Established, status: "True"}]}}`
)

// TestConfigsOfTheFleet shows that a provider configuration is compared with those of the fleet
// before anything is created with it.
func TestConfigsOfTheFleet(t *testing.T) {
	fn := function.Start(t)
	const refused = `spec.placement.clusters[0].providerConfigRef: Invalid value: "gpu": must not be the configuration of a cluster of the fleet`
	kinds := map[string][]string{"kind/objects.kubernetes.m.crossplane.io": {objectCRD}}
	with := func(more map[string][]string) map[string][]string {
		all := maps.Clone(kinds)
		maps.Copy(all, more)
		return all
	}
	cases := map[string]struct {
		reason string
		input  string
		has    map[string][]string
		fatal  string
	}{
		"Used":      {reason: "A cluster of the fleet uses the configuration, and its ledger would not count the service.", input: allowsGPU, has: map[string][]string{"fleet": {clusterByElse, clusterByGPU}}, fatal: refused},
		"UsedKinds": {reason: "The same applies if CRDs are required.", input: requiresKinds, has: with(map[string][]string{"kind/inferenceclusters.fusioninfer.io": {fleetCRD}, "fleet": {clusterByGPU}}), fatal: refused},
		"Free":      {reason: "No cluster of the fleet uses the configuration.", input: allowsGPU, has: map[string][]string{"fleet": {clusterByElse}}},
		"NoFleet":   {reason: "There are no InferenceClusters.", input: allowsGPU},
		"NoKind":    {reason: "Without the CRD of InferenceClusters, none are required: that would fail the call.", input: requiresKinds, has: kinds},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, fixture.Service(onGPU), tc.input)
			first := fn.Run(t, req)
			if got := fixture.Fatals(first); got != "" {
				t.Fatalf("the first call has a Fatal, so Crossplane would not resolve its requirements: %s", got)
			}
			if got := remoteClusters(first); len(got) > 0 {
				t.Errorf("want no objects before the fleet is known, got some in %v", got)
			}
			rsp, calls := fixture.Reconcile(t, fn, req, tc.has)
			if got := fixture.Fatals(rsp); (got == "") != (tc.fatal == "") || !strings.Contains(got, tc.fatal) {
				t.Errorf("%s: want Fatal with %q, got %q", tc.reason, tc.fatal, got)
			}
			if tc.fatal == "" {
				if diff := cmp.Diff([]string{"east"}, remoteClusters(rsp)); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			}
			if calls > 5 {
				t.Errorf("want at most 5 calls, got %d: Crossplane makes 6", calls)
			}
		})
	}
}

// TestConfigRefusedLater shows that a service keeps running when its configuration is no longer
// allowed, and while it may serve there. Its objects in the cluster are deleted when its placement is
// removed together with its replicas.
func TestConfigRefusedLater(t *testing.T) {
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service(onGPU), allowsGPU)
	rsp, _ := fixture.Reconcile(t, fn, req, nil)
	fixture.Observe(req, rsp)

	// While the requirements are unresolved, all objects stay.
	if got := remoteClusters(fn.Run(t, req)); !slices.Equal(got, []string{"east"}) {
		t.Errorf("want the objects in east to stay while the fleet is unresolved, got %v", got)
	}

	req.Input = nil
	rsp = fn.Run(t, req)
	if got := fixture.Fatals(rsp); !strings.Contains(got, `"gpu": must be listed in allowedProviderConfigs of the Composition's input for namespace team`) {
		t.Errorf("want a Fatal, which keeps everything, got %q", got)
	}
	if got := fixture.Condition(rsp, "Accepted"); got != "FALSE InvalidSpec" {
		t.Errorf("Accepted is %s", got)
	}

	req.Observed.Composite.Resource = fixture.YAML(t, fixture.Service(fixture.TwoNodes))
	rsp, _ = fixture.Reconcile(t, fn, req, nil)
	if got := fixture.Fatals(rsp); !strings.Contains(got, "must keep clusters that serve requests until another one does. Removed: east") {
		t.Errorf("want a Fatal without a placement, which keeps everything, got %q", got)
	}

	req.Observed.Composite.Resource = fixture.YAML(t, fixture.Service(strings.Replace(fixture.TwoNodes, "replicas: 2", "replicas: 0", 1)))
	rsp, _ = fixture.Reconcile(t, fn, req, nil)
	if got := fixture.Fatals(rsp); got != "" {
		t.Errorf("want no Fatal without a placement and replicas, got %s", got)
	}
	if got := remoteClusters(rsp); len(got) > 0 {
		t.Errorf("want no objects of the removed placement, got some in %v", got)
	}
}

const (
	inEast  = fixture.TwoNodes + "placement: {policy: Failover, failoverAfterSeconds: 300, clusters: [{name: east, inferenceClusterRef: {name: us-east}}]}"
	goldIn  = `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: gpu}, pools: [], allowedNamespaces: {from: Selector, selector: {matchLabels: {tier: gold}}}}, status: {pools: [{name: p, nodeCount: 9, free: [{nodeCount: 9}]}], reservations: [{uid: me, namespace: team, name: chat, replicas: [{role: w, indexes: [0, 1], generation: 99}]}]}}`
	gold    = `{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {tier: gold}}}`
	notGold = `{apiVersion: v1, kind: Namespace, metadata: {name: team}}`
)

// TestAllowedByLabels shows that a cluster that selects namespaces by labels accepts only services
// of those. The function requires the namespace in time, and starts nothing before it is resolved.
func TestAllowedByLabels(t *testing.T) {
	fn := function.Start(t)
	has := map[string][]string{
		"fleet": {goldIn}, "namespace": {gold}, "kind/objects.kubernetes.m.crossplane.io": {objectCRD},
		"kind/leaderworkersets.leaderworkerset.x-k8s.io": nil,
	}
	req := fixture.Request(t, fixture.Service(inEast), `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip}`)
	// The capacity request from before the cluster reserved capacity.
	first, _ := fixture.Reconcile(t, fn, req, map[string][]string{"fleet": {strings.Replace(goldIn, "generation: 99", "generation: 1", 1)}, "namespace": {gold}})
	req.Observed.Resources[key.CapacityRequest.String()] = first.GetDesired().GetResources()[key.CapacityRequest.String()]
	rsp, calls := fixture.Reconcile(t, fn, req, has)
	if got := remoteClusters(rsp); fixture.Fatals(rsp) != "" || !slices.Equal(got, []string{"east"}) {
		t.Errorf("it runs in %v (%s)", got, fixture.Fatals(rsp))
	}
	// The calls require the fleet, the namespace, CRDs, objects, and the same again.
	if calls != 5 {
		t.Errorf("%d calls, want 5: Crossplane makes 6 at most", calls)
	}
	has["namespace"] = []string{notGold}
	rsp, _ = fixture.Reconcile(t, fn, req, has)
	if got := remoteClusters(rsp); fixture.Fatals(rsp) != "" || len(got) > 0 {
		t.Errorf("without the label it runs in %v (%s)", got, fixture.Fatals(rsp))
	}
	if got := fixture.Condition(rsp, "Placed"); got != "FALSE ClusterUnknown" {
		t.Errorf("Placed is %s", got)
	}
}
