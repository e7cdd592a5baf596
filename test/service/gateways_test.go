package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// drained returns the request of the example in which a service leaves us-east for us-west. The
// fleet route already leads to us-west alone.
func drained(t *testing.T, fn fixture.Function, parents string) *fnv1.RunFunctionRequest {
	t.Helper()
	all := fixture.Examples(t, fn)
	i := slices.IndexFunc(all, func(req *fnv1.RunFunctionRequest) bool {
		return req.GetObserved().GetResources()[key.FleetRoute.String()] != nil
	})
	if i < 0 {
		t.Fatal("no example has a fleet route")
	}
	all[i].Observed.Resources[key.FleetRoute.String()] = &fnv1.Resource{Resource: fixture.YAML(t, fmt.Sprintf(`{
		apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: llama-fleet, namespace: team-a, generation: 2},
		spec: {parentRefs: [{name: fleet-gateway, namespace: gateway-system}, {name: typo}], rules: [{backendRefs: [{name: %s, weight: 2}]}]},
		status: {parents: [%s]}}`, naming.FleetBackend("llama", "us-west"), parents))}
	return all[i]
}

// TestLeavingByGateways shows which gateways hold back a copy that leaves, and that the condition
// names those that do not follow the fleet route.
func TestLeavingByGateways(t *testing.T) {
	fn := function.Start(t)
	says := func(status string, generation int) string {
		return fmt.Sprintf(`{parentRef: {name: fleet-gateway, namespace: gateway-system}, conditions: [{type: Accepted, status: %q, reason: R, observedGeneration: %d}]}`, status, generation)
	}
	const typo = "Gateway team-a/typo has never reported on it, so no requests come from there"
	cases := map[string]struct {
		reason, parents string
		want            []string
		message         string
	}{
		"Accepted": {
			reason: "A gateway that does not exist holds nothing back.", parents: says("True", 2), want: []string{"us-west"},
			message: "HTTPRoute llama-fleet: " + typo,
		},
		"Former": {
			reason: "A gateway that may send requests to us-east does.", parents: says("True", 1), want: []string{"us-east", "us-west"},
			message: "HTTPRoute llama-fleet: Gateway gateway-system/fleet-gateway has not accepted its newest generation, and may send requests to clusters that it left out: these keep their copies until then; " + typo,
		},
		"Refused": {
			reason: "No requests come by the route.", parents: says("False", 2), want: []string{"us-west"},
			message: "HTTPRoute llama-fleet: Gateway gateway-system/fleet-gateway refuses it: R",
		},
		"None": {
			reason: "The same applies if no gateway ever reported on it.", want: []string{"us-west"},
			message: "HTTPRoute llama-fleet: Gateway gateway-system/fleet-gateway has never reported on it, so no requests come from there; " + typo,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := fn.Run(t, drained(t, fn, tc.parents))
			if diff := cmp.Diff(tc.want, remoteClusters(rsp)); diff != "" {
				t.Errorf("%s It stays in: -want, +got:\n%s", tc.reason, diff)
			}
			message := ""
			for _, c := range rsp.GetConditions() {
				if c.GetType() == "RouteReady" {
					message = c.GetMessage()
				}
			}
			if diff := cmp.Diff(tc.message, message); diff != "" {
				t.Errorf("%s RouteReady: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEntrypointBecomesHostname shows that a service stays reachable while the address of its
// cluster becomes a DNS name.
func TestEntrypointBecomesHostname(t *testing.T) {
	fn := function.Start(t)
	const accepted = `{parentRef: {name: fleet-gateway, namespace: gateway-system}, conditions: [{type: Accepted, status: "True", observedGeneration: 2}]}`
	req := drained(t, fn, accepted)
	kube.Lookup(req.GetInput(), "fleet").GetStructValue().Fields["hostnameBackends"] = kube.Lookup(fixture.YAML(t, `{way: ServiceEntry}`), "way")
	for _, c := range req.GetRequiredResources()["fleet"].GetItems() {
		if kube.Lookup(c.GetResource(), "metadata", "name").GetStringValue() != profile.Name("us-west") {
			continue
		}
		cluster := &structpb.Struct{}
		if err := cluster.UnmarshalJSON([]byte(kube.Lookup(c.GetResource(), "data", "inferencecluster").GetStringValue())); err != nil {
			t.Fatal(err)
		}
		cluster = kube.With(cluster, kube.Lookup(fixture.YAML(t, `{at: {address: {type: Hostname, value: west.example.com}, port: 80}}`), "at"), "status", "entrypoint")
		text, err := cluster.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		c.Resource = kube.With(c.GetResource(), structpb.NewStringValue(string(text)), "data", "inferencecluster")
	}
	byIP, byName := key.FleetService("us-west").String(), key.HostnameEntry.Backend("us-west").String()
	backends := func(rsp *fnv1.RunFunctionResponse) (route, objects []string) {
		for k, r := range rsp.GetDesired().GetResources() {
			if key.Parse(k).IsFleetBackend() {
				objects = append(objects, k)
			}
			if k != key.FleetRoute.String() {
				continue
			}
			for _, b := range kube.Lookup(kube.Lookup(r.GetResource(), "spec", "rules").GetListValue().GetValues()[0].GetStructValue(), "backendRefs").GetListValue().GetValues() {
				f := b.GetStructValue().GetFields()
				route = append(route, fmt.Sprintf("%s %s %v", f["kind"].GetStringValue(), f["name"].GetStringValue(), f["weight"].GetNumberValue()))
			}
		}
		slices.Sort(objects)
		return route, objects
	}
	host := naming.FleetHost(naming.FleetHostname(key.HostnameEntry, "llama", "us-west"), "team-a")
	want := []string{"Hostname " + host + " 2"}

	rsp := fn.Run(t, req)
	route, objects := backends(rsp)
	if diff := cmp.Diff([][]string{want, {byIP, byName}}, [][]string{route, objects}); diff != "" {
		t.Errorf("The route turns to the name, and the former Service stays until the gateway follows.\n-want, +got:\n%s", diff)
	}

	// Crossplane has applied that, and the gateway follows.
	req.Observed.Resources[byName] = &fnv1.Resource{Resource: rsp.GetDesired().GetResources()[byName].GetResource()}
	req.Observed.Resources[key.FleetRoute.String()] = &fnv1.Resource{Resource: fixture.YAML(t, fmt.Sprintf(`{
		apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: llama-fleet, namespace: team-a, generation: 2},
		spec: {parentRefs: [{name: fleet-gateway, namespace: gateway-system}], rules: [{backendRefs: [{group: networking.istio.io, kind: Hostname, name: %s, weight: 2}]}]},
		status: {parents: [%s]}}`, host, accepted))}
	route, objects = backends(fn.Run(t, req))
	if diff := cmp.Diff([][]string{want, {byName}}, [][]string{route, objects}); diff != "" {
		t.Errorf("The former Service goes.\n-want, +got:\n%s", diff)
	}

	maps.DeleteFunc(req.GetObserved().GetResources(), func(k string, _ *fnv1.Resource) bool {
		return k == byIP || k == key.FleetSlice("us-west", false).String()
	})
	delete(kube.Lookup(req.GetInput(), "fleet").GetStructValue().Fields, "hostnameBackends")
	const refused = "fleet.hostnameBackends: Required value: must go on being set: clients come by the fleet route to these clusters, whose entrypoints are DNS names: us-west. To remove that, remove the router, or set the replicas of all roles to 0 first"
	if got := fixture.Fatals(fn.Run(t, req)); !strings.HasSuffix(got, refused) {
		t.Errorf("got %q, want %q", got, refused)
	}
}
