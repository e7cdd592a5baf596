package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestFilters proves that filters send requests nowhere else unless the platform team
// allows it.
func TestFilters(t *testing.T) {
	const at = "httproute.rules[0].filters[0].type"
	mirror := `{"type":"RequestMirror","requestMirror":{"backendRef":{"name":"spy","port":80}}}`
	cases := map[string]struct {
		reason string
		filter string
		errs   []string
	}{
		"RequestHeader":  {"It stays with the request.", `{"type":"RequestHeaderModifier","requestHeaderModifier":{"set":[{"name":"a","value":"b"}]}}`, nil},
		"SteeringHeader": {"It says where the request goes, in any case of letters.", `{"type":"RequestHeaderModifier","requestHeaderModifier":{"add":[{"name":"a","value":"b"},{"name":"X-Gateway-Destination-Endpoint","value":"10.2.3.4:80"}]}}`, []string{"httproute.rules[0].filters[0].requestHeaderModifier.add[1].name"}},
		"CacheHeader":    {"It says where KV cache comes from.", `{"type":"RequestHeaderModifier","requestHeaderModifier":{"set":[{"name":"x-kv-cache-source-host-port","value":"10.2.3.4:80"}]}}`, []string{"httproute.rules[0].filters[0].requestHeaderModifier.set[0].name"}},
		"ResponseHeader": {"Or its answer.", `{"type":"ResponseHeaderModifier","responseHeaderModifier":{"remove":["a"]}}`, nil},
		"Redirect":       {"It is an answer to the service's own client.", `{"type":"RequestRedirect","requestRedirect":{"hostname":"b.example.com"}}`, nil},
		"Rewrite":        {"It is what the service's own pods are told.", `{"type":"URLRewrite","urlRewrite":{"hostname":"b.example.com"}}`, nil},
		"CORS":           {"It is an answer too.", `{"type":"CORS","cors":{}}`, nil},
		"Mirror":         {"Each prompt goes elsewhere too.", mirror, []string{at}},
		"HiddenMirror":   {"Whatever it says that it is.", `{"type":"CORS","requestMirror":{"backendRef":{"name":"spy","port":80}}}`, []string{"httproute.rules[0].filters[0].cors", "httproute.rules[0].filters[0].requestMirror", at}},
		"ExternalAuth":   {"So it does to who judges it.", `{"type":"ExternalAuth","externalAuth":{"protocol":"GRPC","grpc":{},"backendRef":{"name":"spy","port":80}}}`, []string{at}},
		"Extension":      {"Who knows where this leads.", `{"type":"ExtensionRef","extensionRef":{"group":"example.com","kind":"Middleware","name":"a"}}`, []string{at}},
		"Younger":        {"Nor where one leads that is younger than this function.", `{"type":"RequestTeleport"}`, []string{at}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs, messages := routed(t, `{"parentRefs":[{"name":"gw"}],"rules":[{"filters":[`+tc.filter+`]}]}`, "", &inputv1alpha1.Input{}, nil, scheduling.Snapshot{})
			if diff := cmp.Diff(tc.errs, errs, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors at: -want, +got:\n%s\n%s", tc.reason, diff, messages)
			}
			in := &inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{AllowedFilters: []inputv1alpha1.RouteFilter{inputv1alpha1.FilterRequestMirror, inputv1alpha1.FilterExternalAuth, inputv1alpha1.FilterExtensionRef}}}}
			if _, errs, messages := routed(t, `{"parentRefs":[{"name":"gw"}],"rules":[{"filters":[`+tc.filter+`]}]}`, "", in, nil, scheduling.Snapshot{}); len(errs) > 0 && name != "Younger" && name != "HiddenMirror" && name != "SteeringHeader" && name != "CacheHeader" {
				t.Errorf("allowed, and refused all the same: %s", messages)
			}
		})
	}
	t.Run("OfABackend", func(t *testing.T) {
		_, errs, _ := routed(t, `{"parentRefs":[{"name":"gw"}],"rules":[{"backendRefs":[{"name":"svc-pool"},{"name":"a","port":80,"filters":[`+mirror+`]}]}]}`, "", &inputv1alpha1.Input{}, nil, scheduling.Snapshot{})
		if diff := cmp.Diff([]string{"httproute.rules[0].backendRefs[1].filters[0].type"}, errs); diff != "" {
			t.Errorf("the filters of a backend are looked at too: -want, +got:\n%s", diff)
		}
	})
}

// TestExperimentalFields proves that routes have nothing which the definitions of most clusters refuse, unless the platform team allows it.
func TestExperimentalFields(t *testing.T) {
	const route = `{"parentRefs":[{"name":"gw","port":80},{"name":"gw","port":81}],"rules":[{"timeouts":{"request":"10s"}},{"retry":{"attempts":2},"sessionPersistence":{"type":"Cookie"}}]}`
	for access, want := range map[inputv1alpha1.Access][]string{
		"":                  {"httproute.parentRefs[1]", "httproute.rules[1].retry", "httproute.rules[1].sessionPersistence"},
		inputv1alpha1.Deny:  {"httproute.parentRefs[1]", "httproute.rules[1].retry", "httproute.rules[1].sessionPersistence"},
		inputv1alpha1.Allow: nil,
	} {
		in := &inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{ExperimentalFields: access}}}
		_, errs, messages := routed(t, route, "", in, nil, scheduling.Snapshot{})
		if diff := cmp.Diff(want, errs, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q: errors at: -want, +got:\n%s\n%s", access, diff, messages)
		}
	}
}

// TestBackends proves that requests are sent to the tenant's own namespace, unless the
// platform team allows others.
func TestBackends(t *testing.T) {
	allow := func(patterns ...string) inputv1alpha1.Routes {
		return inputv1alpha1.Routes{AllowedBackendNamespaces: patterns, AllowedFilters: []inputv1alpha1.RouteFilter{inputv1alpha1.FilterRequestMirror, inputv1alpha1.FilterExternalAuth}, AllowedParentRefs: []inputv1alpha1.AllowedParentRef{{Namespace: "*"}}, AllowedHostnames: []string{"*"}}
	}
	backend := func(ref string) string { return `{"backendRefs":[` + ref + `]}` }
	const rule = "httproute.rules[0]."
	cases := map[string]struct {
		reason    string
		rule      string
		routes    inputv1alpha1.Routes
		placement *v1alpha1.Placement
		errs      []string
	}{
		"Own":            {reason: "The own namespace is open.", rule: backend(`{"name":"a","port":80}`), routes: allow()},
		"OwnNamed":       {reason: "Also where it is named.", rule: backend(`{"name":"a","namespace":"team","port":80}`), routes: allow()},
		"Other":          {reason: "Another one is not.", rule: backend(`{"name":"a","namespace":"other","port":80}`), routes: allow(), errs: []string{rule + "backendRefs[0].namespace"}},
		"Allowed":        {reason: "The platform team may allow some.", rule: backend(`{"name":"a","namespace":"other","port":80}`), routes: allow("o*")},
		"AllowedOther":   {reason: "Which are not all.", rule: backend(`{"name":"a","namespace":"third","port":80}`), routes: allow("o*"), errs: []string{rule + "backendRefs[0].namespace"}},
		"Mirror":         {reason: "Backends of filters are backends.", rule: `{"filters":[{"type":"RequestMirror","requestMirror":{"backendRef":{"name":"a","namespace":"other","port":80}}}]}`, routes: allow(), errs: []string{rule + "filters[0].requestMirror.backendRef.namespace"}},
		"ExternalAuth":   {reason: "All of them.", rule: `{"filters":[{"type":"ExternalAuth","externalAuth":{"protocol":"HTTP","http":{},"backendRef":{"name":"a","namespace":"other","port":80}}}]}`, routes: allow(), errs: []string{rule + "filters[0].externalAuth.backendRef.namespace"}},
		"Host":           {reason: "Istio accepts a host of any namespace, without a ReferenceGrant.", rule: backend(`{"group":"networking.istio.io","kind":"Hostname","name":"a.other.svc.cluster.local","port":80}`), routes: allow("o*"), errs: []string{rule + "backendRefs[0].kind"}},
		"AtProvider":     {reason: "Traefik sends requests to any service of its configuration.", rule: backend(`{"group":"traefik.io","kind":"TraefikService","name":"api@internal"}`), routes: allow("o*"), errs: []string{rule + "backendRefs[0].name"}},
		"MirrorProvider": {reason: "A mirror, too.", rule: `{"filters":[{"type":"RequestMirror","requestMirror":{"backendRef":{"group":"traefik.io","kind":"TraefikService","name":"a@file"}}}]}`, routes: allow(), errs: []string{rule + "filters[0].requestMirror.backendRef.name"}},
		"Traefik":        {reason: "An object of the own namespace.", rule: backend(`{"group":"traefik.io","kind":"TraefikService","name":"weighted"}`), routes: allow()},
		"AtAllowed":      {reason: "Who may send requests anywhere may do so.", rule: backend(`{"group":"traefik.io","kind":"TraefikService","name":"api@internal"}`), routes: allow("*")},
		"HostAllowed":    {reason: "Who may send requests anywhere may do so.", rule: backend(`{"group":"networking.istio.io","kind":"Hostname","name":"a.other.svc.cluster.local","port":80}`), routes: allow("*")},
		"RemotePool":     {reason: "The pool is the service's own in a shared namespace too, under the name that its users know.", rule: backend(`{"name":"svc-pool"}`), routes: allow(), placement: inNamespaces("models")},
		"RemoteNoRefs":   {reason: "And without a name.", rule: `{}`, routes: allow(), placement: inNamespaces("models")},
		"RemoteOther":    {reason: "What else is there may be others'.", rule: backend(`{"group":"inference.networking.k8s.io","kind":"InferencePool","name":"llama-pool"}`), routes: allow(), placement: inNamespaces("models"), errs: []string{rule + "backendRefs[0].name"}},
		"RemoteAllowed":  {reason: "The platform team may allow it.", rule: backend(`{"name":"a","port":80}`), routes: allow("models"), placement: inNamespaces("models")},
		"RemoteMirror":   {reason: "A mirror does not go to the pool, whatever its name is.", rule: `{"filters":[{"type":"RequestMirror","requestMirror":{"backendRef":{"name":"svc-pool"}}}]}`, routes: allow(), placement: inNamespaces("models"), errs: []string{rule + "filters[0].requestMirror.backendRef.name"}},
		"RemoteElsewere": {reason: "A pool of that name in another namespace is another's.", rule: backend(`{"name":"svc-pool","namespace":"other"}`), routes: allow(), errs: []string{rule + "backendRefs[0].namespace"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs, messages := routed(t, `{"parentRefs":[{"name":"gw"}],"rules":[`+tc.rule+`]}`, "", &inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &tc.routes}}, tc.placement, scheduling.Snapshot{})
			if diff := cmp.Diff(tc.errs, errs, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors at: -want, +got:\n%s\n%s", tc.reason, diff, messages)
			}
		})
	}
}
