package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// answered calls the function like Crossplane does, until it asks for the same as before:
// with what the control plane has, by the name of the requirement. What it has not is
// answered all the same.
func answered(t *testing.T, req *fnv1.RunFunctionRequest, has map[string][]string) (rsp *fnv1.RunFunctionResponse, calls int) {
	t.Helper()
	req = proto.CloneOf(req)
	var before *fnv1.Requirements
	for calls = 1; calls <= 6; calls++ {
		rsp = run(t, req)
		if fatals(rsp) != "" || proto.Equal(before, rsp.GetRequirements()) {
			return rsp, calls
		}
		before = rsp.GetRequirements()
		req.RequiredResources = map[string]*fnv1.Resources{}
		for name := range rsp.GetRequirements().GetResources() {
			req.RequiredResources[name] = &fnv1.Resources{}
			for _, doc := range has[name] {
				req.RequiredResources[name].Items = append(req.RequiredResources[name].Items, &fnv1.Resource{Resource: fromYAML(t, doc)})
			}
		}
	}
	t.Fatalf("it still asks for something else after %d calls: %v", calls-1, before)
	return nil, 0
}

// remoteKeys are the clusters that something is desired for.
func remoteKeys(rsp *fnv1.RunFunctionResponse) []string {
	all := map[string]bool{}
	for key := range rsp.GetDesired().GetResources() {
		if c := plan.ClusterOf(key); c != "" {
			all[c] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

const (
	onGPU         = twoNodes + "placement: {clusters: [{name: east, providerConfigRef: {name: gpu}}]}"
	allowsGPU     = `{apiVersion: inferenceservice.fn.crossplane.io/v1beta1, kind: Input, allowedProviderConfigs: [{name: gpu}]}`
	asksForKinds  = `{apiVersion: inferenceservice.fn.crossplane.io/v1beta1, kind: Input, requireKinds: true, allowedProviderConfigs: [{name: gpu}]}`
	clusterByGPU  = `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: gpu}, pools: []}}`
	clusterByElse = `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: other}, pools: []}}`
	fleetCRD      = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: inferenceclusters.fusioninfer.io}, spec: {versions: [{name: v1alpha1, served: true}]}, status: {conditions: [{type: Established, status: "True"}]}}`
	objectCRD     = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: objects.kubernetes.m.crossplane.io}, spec: {versions: [{name: v1alpha1, served: true}]}, status: {conditions: [{type: Established, status: "True"}]}}`
)

// TestConfigsOfTheFleet proves that a configuration is compared with those of the fleet before
// anything is made by it, in every control plane.
func TestConfigsOfTheFleet(t *testing.T) {
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
		"Used":      {reason: "The ledger of that cluster does not have it.", input: allowsGPU, has: map[string][]string{"fleet": {clusterByElse, clusterByGPU}}, fatal: refused},
		"UsedKinds": {reason: "The same where definitions are asked for.", input: asksForKinds, has: with(map[string][]string{"kind/inferenceclusters.fusioninfer.io": {fleetCRD}, "fleet": {clusterByGPU}}), fatal: refused},
		"Free":      {reason: "No cluster of the fleet uses it.", input: allowsGPU, has: map[string][]string{"fleet": {clusterByElse}}},
		"NoFleet":   {reason: "There are no InferenceClusters.", input: allowsGPU},
		"NoKind":    {reason: "A control plane that does not know InferenceClusters is not asked for any, which would fail.", input: asksForKinds, has: kinds},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, service(onGPU), tc.input)
			first := run(t, req)
			if got := fatals(first); got != "" {
				t.Fatalf("Crossplane would not be asked: %s", got)
			}
			if got := remoteKeys(first); len(got) > 0 {
				t.Errorf("made before anything is known, in %v", got)
			}
			rsp, calls := answered(t, req, tc.has)
			if got := fatals(rsp); (got == "") != (tc.fatal == "") || !strings.Contains(got, tc.fatal) {
				t.Errorf("%s: want Fatal with %q, got %q", tc.reason, tc.fatal, got)
			}
			if tc.fatal == "" {
				if diff := cmp.Diff([]string{"east"}, remoteKeys(rsp)); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			}
			if calls > 5 {
				t.Errorf("%d calls, and Crossplane makes 6", calls)
			}
		})
	}
}

// TestConfigRefusedLater proves that a service goes on as it is when its configuration is
// taken away from it, and that what it has elsewhere is still cleaned up.
func TestConfigRefusedLater(t *testing.T) {
	req := request(t, service(onGPU), allowsGPU)
	rsp, _ := answered(t, req, nil)
	observeAll(req, rsp)

	// While nothing is answered, what is there stays.
	if got := remoteKeys(run(t, req)); !slices.Equal(got, []string{"east"}) {
		t.Errorf("while it is not known which configurations the fleet uses, it runs in %v", got)
	}

	req.Input = nil
	rsp = run(t, req)
	if got := fatals(rsp); !strings.Contains(got, `"gpu": must be a configuration that services of namespace team may use: the platform team lists these in allowedProviderConfigs`) {
		t.Errorf("want a Fatal, which keeps everything, got %q", got)
	}
	if got := condition(rsp, "SpecValid"); got != "FALSE Refused" {
		t.Errorf("SpecValid is %s", got)
	}

	req.Observed.Composite.Resource = fromYAML(t, service(twoNodes))
	rsp, _ = answered(t, req, nil)
	if got := fatals(rsp); got != "" {
		t.Errorf("what is left of an earlier placement is refused: %s", got)
	}
	if got := remoteKeys(rsp); len(got) > 0 {
		t.Errorf("what is left of an earlier placement stays, in %v", got)
	}
}

const (
	inEast  = twoNodes + "placement: {policy: Failover, failoverAfter: 5m, clusters: [{name: east, inferenceCluster: us-east}]}"
	goldIn  = `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: gpu}, pools: [], allowedNamespaces: {from: Selector, selector: {matchLabels: {tier: gold}}}}, status: {pools: [{name: p, nodes: 9, free: [{nodes: 9}]}], allocations: [{uid: me, namespace: team, name: chat, serial: 99, replicas: [w/0, w/1]}]}}`
	gold    = `{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {tier: gold}}}`
	notGold = `{apiVersion: v1, kind: Namespace, metadata: {name: team}}`
)

// TestAllowedByLabels proves that a cluster which goes by the labels of namespaces is used by
// those only that have them, that Crossplane is asked for them in time, and that nothing is
// started before.
func TestAllowedByLabels(t *testing.T) {
	has := map[string][]string{
		"fleet": {goldIn}, "namespace": {gold}, "kind/objects.kubernetes.m.crossplane.io": {objectCRD},
		"kind/leaderworkersets.leaderworkerset.x-k8s.io": nil,
	}
	req := request(t, service(inEast), `{apiVersion: inferenceservice.fn.crossplane.io/v1beta1, kind: Input, requireKinds: true}`)
	// What it asked for before the cluster answered.
	first, _ := answered(t, req, map[string][]string{"fleet": {strings.Replace(goldIn, "serial: 99", "serial: 1", 1)}, "namespace": {gold}})
	req.Observed.Resources[plan.AskKey] = first.GetDesired().GetResources()[plan.AskKey]
	rsp, calls := answered(t, req, has)
	if got := remoteKeys(rsp); fatals(rsp) != "" || !slices.Equal(got, []string{"east"}) {
		t.Errorf("it runs in %v (%s)", got, fatals(rsp))
	}
	// Fleet, namespace, definitions, objects, and the same again.
	if calls != 5 {
		t.Errorf("%d calls, want 5: Crossplane makes 6 at most", calls)
	}
	has["namespace"] = []string{notGold}
	rsp, _ = answered(t, req, has)
	if got := remoteKeys(rsp); fatals(rsp) != "" || len(got) > 0 {
		t.Errorf("without the label it runs in %v (%s)", got, fatals(rsp))
	}
	if got := condition(rsp, "Placed"); got != "FALSE CannotBeRead" {
		t.Errorf("Placed is %s", got)
	}
}
