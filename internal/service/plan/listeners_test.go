package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestWarnOfListeners reads listeners that the Gateway API allows.
func TestWarnOfListeners(t *testing.T) {
	missed := []Warning{{"g.listeners", "no listener has a host name of the route, a.example.com, so no request arrives: use one host name for both"}}
	cases := map[string]struct {
		reason, listeners string
		hostnames         []string
		want              []Warning
	}{
		"Right":     {"They have the names of the route, or all.", `[{protocol: HTTP, hostname: b.example.com}, {protocol: HTTPS}]`, []string{"a.example.com"}, nil},
		"LowerCase": {"The API takes any text.", `[{protocol: http}, {protocol: example.com/http}]`, nil, []Warning{{"g.listeners[0].protocol", `no gateway has the protocol "http": write HTTP`}}},
		"NoNames":   {"A route without names has those of the listeners.", `[{protocol: HTTP, hostname: b.example.com}]`, nil, nil},
		"Other":     {"The names are others.", `[{protocol: HTTP, hostname: b.example.com}, {protocol: HTTPS, hostname: "*.example.org"}]`, []string{"a.example.com"}, missed},
		"Wildcard":  {"A wildcard of a listener has the name.", `[{protocol: HTTP, hostname: "*.example.com"}]`, []string{"a.example.com"}, nil},
		"Wildcards": {"One of the route has that of a listener.", `[{protocol: HTTP, hostname: "a.b.example.com"}]`, []string{"*.example.com"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &gateway.GatewaySpec{}
			if err := yaml.Unmarshal([]byte(tc.listeners), &spec.Listeners); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, warnOfListeners(field.NewPath("g"), spec, tc.hostnames)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestListenersOfRoute plans a router whose Gateway has another host name than its route.
func TestListenersOfRoute(t *testing.T) {
	missed := []Warning{{"spec.roles[0].gateway.listeners", "no listener has a host name of the route, a.example.com, so no request arrives: use one host name for both"}}
	for route, want := range map[string][]Warning{
		`{"hostnames":["a.example.com"]}`:                                       missed,
		`{"hostnames":["a.example.com"],"parentRefs":[{"name":"another-one"}]}`: nil,
	} {
		in, service := defaultInput(), naming.Identity{Name: "svc", Namespace: "team"}
		role := v1alpha1.Role{
			Name: "router", ComponentType: v1alpha1.ComponentTypeRouter, HTTPRoute: document(t, route),
			Gateway: document(t, `{"gatewayClassName":"istio","listeners":[{"name":"http","port":80,"protocol":"HTTP","hostname":"b.example.com"}]}`),
		}
		spec := &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{role}}
		serving := []*Role{{Name: "w", Type: worker, Port: defaultPort, path: rolePath(1)}}
		_, got, errs := planRouter(0, role, spec, in, serving, newRouteAccess(service, spec, in, newTenantPolicy(service, in), &scheduling.Snapshot{}), false)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || len(errs) > 0 {
			t.Errorf("%s\nerrors %v, warnings -want, +got:\n%s", route, errs, diff)
		}
	}
}
