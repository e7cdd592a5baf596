package service

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// routerVariants are routers that a service may have, as the fields of a role. The empty one is none.
var routerVariants = map[string]string{
	"None":             "",
	"Default":          "{}",
	"PDDisaggregation": "{strategy: pd-disaggregation}",
	"PrefixCache":      "{strategy: prefix-cache}",
	"QueueSize":        "{strategy: queue-size}",
	"ScaledToZero":     "{replicas: 0}",
	"HighlyAvailable":  "{replicas: 2, endpointPicker: {failureMode: FailOpen, resources: {limits: {memory: 8Gi}}}}",
	"Renamed":          "{name: front}",
	"Models":           "{servedModels: [{name: m, criticality: Critical}]}",
	"Gateway":          "{httproute: {hostnames: [chat.example.com]}, gateway: {gatewayClassName: c, listeners: [{name: http, protocol: HTTP, port: 80}]}}",
	"OwnConfiguration": `{endpointPickerConfig: "{apiVersion: llm-d.ai/v1alpha1, kind: EndpointPickerConfig, plugins: [{type: queue-scorer}, {type: max-score-picker}, {type: single-profile-handler}], schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: max-score-picker}]}]}"}`,
}

// pickerVariants are settings of the platform team for endpoint pickers.
var pickerVariants = map[string]string{
	"Image":  `{dialect: LLMD, image: "registry.example.com/picker:v0.11.0"}`,
	"Images": "{images: {gaie: registry.example.com/gaie:v9, llmd: registry.example.com/llmd:v9}, imagePullPolicy: Always}",
}

// TestRouterTouchesNoEngine shows for each example that no change of the router changes anything of
// its engines, what they request, or what their sidecars may read.
func TestRouterTouchesNoEngine(t *testing.T) {
	fn := function.Start(t)
	withPairs := 0
	for _, req := range fixture.Examples(t, fn) {
		xr := req.GetObserved().GetComposite().GetResource()
		if kube.Lookup(xr, "kind").GetStringValue() != v1alpha1.KindInferenceService {
			continue
		}
		variants := routed(t, req)
		var first map[string]*structpb.Struct
		firstName, accepted := "", 0
		for _, name := range fixture.Keys(variants) {
			rsp := fn.Run(t, variants[name])
			if fixture.IsFatal(rsp) {
				continue
			}
			accepted++
			got := engines(rsp, req)
			if first == nil {
				first, firstName = got, name
			}
			for _, k := range changed(first, got, req) {
				t.Errorf("%s: %s with the router %s (-) and %s (+):\n%s", fixture.Name(req), k, firstName, name, cmp.Diff(first[k], got[k], protocmp.Transform()))
			}
		}
		if hasSidecar(first) && accepted == len(variants) {
			withPairs++
		}
	}
	if withPairs < 10 {
		t.Errorf("want 10 examples at least with prefill and decode of which every router is accepted, got %d", withPairs)
	}
}

// routed returns requests with every router, and with every setting of endpoint pickers.
func routed(t *testing.T, req *fnv1.RunFunctionRequest) map[string]*fnv1.RunFunctionRequest {
	t.Helper()
	all := map[string]*fnv1.RunFunctionRequest{}
	for name, fields := range routerVariants {
		all[name] = withRouter(t, req, fields)
	}
	for name, fields := range pickerVariants {
		r := withRouter(t, req, routerVariants["Default"])
		if r.Input == nil {
			r.Input = fixture.YAML(t, "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input}")
		}
		r.Input = kube.With(r.GetInput(), structpb.NewStructValue(fixture.YAML(t, fields)), "endpointPicker")
		all[name] = r
	}
	return all
}

// changed returns the keys of the objects that differ.
func changed(first, got map[string]*structpb.Struct, req *fnv1.RunFunctionRequest) []string {
	all := map[string]*structpb.Struct{}
	maps.Copy(all, first)
	maps.Copy(all, got)
	return slices.DeleteFunc(fixture.Keys(all), func(k string) bool {
		return proto.Equal(first[k], got[k]) || moves(req) && (first[k] == nil || got[k] == nil)
	})
}

// moves tells whether a service may be leaving a cluster. How long its engines stay there depends on
// where its route sends requests.
func moves(req *fnv1.RunFunctionRequest) bool {
	return len(req.GetRequiredResources()[require.Fleet].GetItems()) > 0 && len(req.GetObserved().GetResources()) > 0
}

// withRouter returns a request whose service has another router, or none.
func withRouter(t *testing.T, req *fnv1.RunFunctionRequest, fields string) *fnv1.RunFunctionRequest {
	t.Helper()
	req = proto.CloneOf(req)
	xr := req.GetObserved().GetComposite().GetResource()
	roles := kube.Lookup(xr, "spec", "roles").GetListValue()
	isRouter := func(v *structpb.Value) bool {
		return kube.Lookup(v.GetStructValue(), "componentType").GetStringValue() == string(v1alpha1.ComponentTypeRouter)
	}
	roles.Values = slices.DeleteFunc(roles.GetValues(), isRouter)
	if fields == "" {
		return req
	}
	router := fixture.YAML(t, "{name: the-router, componentType: router, httproute: {}}")
	for k, v := range fixture.YAML(t, fields).GetFields() {
		router.Fields[k] = v
	}
	roles.Values = append(roles.Values, structpb.NewStructValue(router))
	return req
}

// engines returns the desired objects of the engines, by their keys.
func engines(rsp *fnv1.RunFunctionResponse, req *fnv1.RunFunctionRequest) map[string]*structpb.Struct {
	all := map[string]*structpb.Struct{}
	for name, r := range rsp.GetDesired().GetResources() {
		k := key.Parse(name)
		switch {
		case k.Kind == key.LeaderWorkerSet, k.Kind == key.PodGroup, k.Kind == key.NetworkPolicy, k == key.CapacityRequest && !moves(req),
			plan.IsBudgetOfRole(k), plan.IsOfSidecars(k):
			all[name] = r.GetResource()
		}
	}
	return all
}

func hasSidecar(engines map[string]*structpb.Struct) bool {
	return slices.ContainsFunc(fixture.Keys(engines), func(name string) bool { return strings.HasSuffix(name, "role/sidecar") })
}

// TestRouterComes shows that the Service of a service without a router stays when a router comes, and
// that one with a router from the start has none.
func TestRouterComes(t *testing.T) {
	workers, routed := "roles:\n"+roleOf("w", "worker", 2, "v1"), "roles:\n- {name: r, componentType: router}\n"+roleOf("w", "worker", 2, "v1")
	const endpoint = "service"
	w := newWorld(t, workers)
	w.rollOut(workers)
	before := w.req.GetObserved().GetResources()[endpoint].GetResource()
	if before == nil {
		t.Fatalf("without a router there is no Service: %v", fixture.Keys(w.req.GetObserved().GetResources()))
	}
	_, last := w.rollOut(routed)
	after := last.GetDesired().GetResources()[endpoint].GetResource()
	if diff := cmp.Diff(kube.Lookup(before, "spec", "ports"), kube.Lookup(after, "spec", "ports"), protocmp.Transform()); diff != "" {
		t.Errorf("the Service once the router is there: -want, +got:\n%s", diff)
	}
	if url := kube.Lookup(last.GetDesired().GetComposite().GetResource(), "status", "url").GetStringValue(); strings.Contains(url, ".svc") {
		t.Errorf("the URL is that of the Service: %s", url)
	}
	other := newWorld(t, routed)
	if _, rsp := other.rollOut(routed); rsp.GetDesired().GetResources()[endpoint] != nil {
		t.Error("a service with a router from the start has a Service for its workers")
	}
}

// TestURLWhenRouterComes shows that the status names the Service until the route leads to an endpoint picker that is ready, and has
// a URL. It never names the Service again after that.
func TestURLWhenRouterComes(t *testing.T) {
	const service, route = "http://chat.team.svc:8000", "http://chat.example.com"
	workers := "roles:\n" + roleOf("w", "worker", 2, "v1")
	routed := workers + "- {name: r, componentType: router, httproute: {parentRefs: [{name: g}], hostnames: [chat.example.com]}}\n"
	const ready = `{observedGeneration: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1, conditions: [{type: Available, status: "True"}]}`
	const accepted, refused = `"True"`, `"False", reason: NotAllowedByListeners`
	w := newWorld(t, workers)
	var got []string
	call := func(picker, route string) {
		for name, status := range map[string]string{
			"deployment/epp": picker,
			"httproute":      "parents: [{parentRef: {name: g}, conditions: [{type: Accepted, observedGeneration: 1, status: " + route + "}]}]",
		} {
			if o := w.req.GetObserved().GetResources()[name]; o != nil {
				o.Resource = kube.With(o.GetResource(), structpb.NewStructValue(fixture.YAML(t, status)), "status")
			}
		}
		got = append(got, kube.Lookup(w.apply().GetDesired().GetComposite().GetResource(), "status", "url").GetStringValue())
	}
	call("{}", accepted)
	w.edit(routed)
	call("{}", accepted)
	call("{}", accepted)
	call(ready, refused)
	call(ready, accepted)
	call("{}", accepted)
	if diff := cmp.Diff([]string{service, service, service, service, route, route}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	// A Gateway of its own has no address at first.
	owned := workers + "- {name: r, componentType: router, gateway: {gatewayClassName: x, listeners: [{name: http, port: 80, protocol: HTTP}]}}\n"
	w, got = newWorld(t, workers), nil
	w.req.Input = fixture.YAML(t, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, routes: {allowedGatewayClassNames: ["*"]}}`)
	call("{}", accepted)
	w.edit(owned)
	call("{}", accepted)
	call(ready, accepted)
	gateway := w.req.GetObserved().GetResources()["gateway"]
	gateway.Resource = kube.With(gateway.GetResource(), structpb.NewStructValue(fixture.YAML(t, "addresses: [{value: 10.0.0.1}]")), "status")
	call(ready, accepted)
	if diff := cmp.Diff([]string{service, service, service, "http://10.0.0.1"}, got); diff != "" {
		t.Errorf("with a Gateway of its own: -want, +got:\n%s", diff)
	}
	other := newWorld(t, routed)
	if url := kube.Lookup(other.apply().GetDesired().GetComposite().GetResource(), "status", "url").GetStringValue(); url != route {
		t.Errorf("with a router from the start, the URL is %s", url)
	}
}
