package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// seen is what a gateway has seen, of documents.
func seen(t *testing.T, docs ...string) snapshot {
	t.Helper()
	of := map[string]kind{}
	w := snapshot{}
	for _, k := range []kind{gateways, routes, pools, services, policies, entries} {
		of[k.name], w[k] = k, map[string]*unstructured.Unstructured{}
	}
	for _, doc := range docs {
		for d := range strings.SplitSeq(doc, "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(d), &o.Object); err != nil {
				t.Fatalf("%v in %s", err, d)
			}
			if o.GetNamespace() == "" {
				o.SetNamespace("default")
			}
			w[of[o.GetKind()]][o.GetNamespace()+"/"+o.GetName()] = o
		}
	}
	return w
}

// aGateway has listeners for each host name, all at one port.
func aGateway(hostnames ...string) string {
	doc := "{kind: Gateway, metadata: {name: gw}, spec: {listeners: ["
	for i, h := range hostnames {
		doc += fmt.Sprintf("{name: l%d, protocol: HTTP, port: 8080, hostname: %q}, ", i, h)
	}
	return doc + "]}}"
}

// aRoute is a route of the gateway, of which each rule has the name of a Service.
func aRoute(name, created, spec string) string {
	return fmt.Sprintf("{kind: HTTPRoute, metadata: {name: %s, creationTimestamp: %q}, spec: {parentRefs: [{name: gw}], %s}}", name, created, spec)
}

// to is a rule that leads to a Service.
func to(service string, matches ...string) string {
	return fmt.Sprintf("{matches: [%s], backendRefs: [{name: %s, port: 80}]}", strings.Join(matches, ", "), service)
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	const older, newer = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
	for name, test := range map[string]struct {
		routes []string
		// hostnames of the listeners; one without if there are none.
		hostnames []string
		// want are the Services by requests, in which headers follow the URL.
		want map[string]string
	}{
		"no match": {
			routes: []string{aRoute("r", older, `rules: [{backendRefs: [{name: all, port: 80}]}]`)},
			want:   map[string]string{"GET http://a/": "all", "POST http://b/x?y=z": "all"},
		},
		"exact path": {
			routes: []string{aRoute("r", older, `rules: [`+to("a", `{path: {type: Exact, value: /v1}}`)+`]`)},
			want:   map[string]string{"GET http://a/v1": "a", "GET http://a/v1/": "", "GET http://a/v1/x": "", "GET http://a/V1": "", "GET http://a/v1?x": "a"},
		},
		"path prefix by parts": {
			routes: []string{aRoute("r", older, `rules: [`+to("a", `{path: {type: PathPrefix, value: /v1}}`)+`, `+to("b", `{path: {value: /v2/}}`)+`]`)},
			want: map[string]string{
				"GET http://a/v1": "a", "GET http://a/v1/": "a", "GET http://a/v1/x": "a", "GET http://a/v12": "",
				"GET http://a/v2": "b", "GET http://a/v2/x": "b", "GET http://a/v1%2fx": "",
			},
		},
		"regular expression of the whole path": {
			routes: []string{aRoute("r", older, `rules: [`+to("a", `{path: {type: RegularExpression, value: "/v[12]|/w"}}`)+`]`)},
			want:   map[string]string{"GET http://a/v1": "a", "GET http://a/w": "a", "GET http://a/v1/x": "", "GET http://a/x/w": ""},
		},
		"a regular expression that is none matches nothing": {
			routes: []string{aRoute("r", older, `rules: [`+to("a", `{path: {type: RegularExpression, value: "/("}}`, `{path: {value: /ok}}`)+`]`)},
			want:   map[string]string{"GET http://a/(": "", "GET http://a/ok": "a"},
		},
		"method, headers and query": {
			routes: []string{aRoute("r", older, `rules: [`+
				to("method", `{method: PUT}`)+`, `+
				to("header", `{headers: [{name: x-a, value: "1"}, {name: x-b, type: RegularExpression, value: "b+"}]}`)+`, `+
				to("query", `{queryParams: [{name: q, value: "1"}, {name: r, type: RegularExpression, value: "[0-9]*"}]}`)+`]`)},
			want: map[string]string{
				"PUT http://a/": "method", "GET http://a/": "",
				"GET http://a/ X-A:1 x-b:bb": "header", "GET http://a/ x-a:1 x-b:bc": "", "GET http://a/ x-a:1": "", "GET http://a/ x-a:1 x-a:2 x-b:b": "",
				"GET http://a/?q=1&r=22": "query", "GET http://a/?q=1&r=": "query", "GET http://a/?q=1": "", "GET http://a/?q=2&r=2": "",
			},
		},
		"all of a match, and one of several": {
			routes: []string{aRoute("r", older, `rules: [`+to("a", `{method: POST, path: {value: /a}}`, `{path: {value: /b}}`)+`]`)},
			want:   map[string]string{"POST http://a/a": "a", "GET http://a/a": "", "GET http://a/b": "a"},
		},
		"an exact path comes before a longer prefix, and a prefix by its length": {
			routes: []string{aRoute("r", older, `rules: [`+
				to("root", `{path: {value: /}}`)+`, `+to("short", `{path: {value: /a}}`)+`, `+to("long", `{path: {value: /a/b}}`)+`, `+
				to("regex", `{path: {type: RegularExpression, value: "/a/r.*"}}`)+`, `+to("exact", `{path: {type: Exact, value: /a}}`)+`]`)},
			want: map[string]string{
				"GET http://a/a": "exact", "GET http://a/a/": "short", "GET http://a/a/b/c": "long", "GET http://a/a/c": "short",
				"GET http://a/x": "root", "GET http://a/a/r": "regex",
			},
		},
		"then methods, then more headers, then more query parameters": {
			routes: []string{aRoute("r", older, `rules: [`+
				to("query", `{queryParams: [{name: q, value: "1"}]}`)+`, `+
				to("queries", `{queryParams: [{name: q, value: "1"}, {name: r, value: "1"}]}`)+`, `+
				to("header", `{headers: [{name: a, value: "1"}]}`)+`, `+
				to("headers", `{headers: [{name: a, value: "1"}, {name: b, value: "1"}]}`)+`, `+
				to("method", `{method: PUT}`)+`]`)},
			want: map[string]string{
				"PUT http://a/?q=1&r=1 a:1 b:1": "method", "GET http://a/?q=1&r=1 a:1 b:1": "headers", "GET http://a/?q=1&r=1 a:1": "header",
				"GET http://a/?q=1&r=1": "queries", "GET http://a/?q=1": "query",
			},
		},
		"then the older route, then its name, then the first rule": {
			routes: []string{
				aRoute("a", newer, `rules: [`+to("newer", `{path: {value: /a}}`)+`]`),
				aRoute("c", older, `rules: [`+to("c", `{path: {value: /a}}`)+`]`),
				aRoute("b", older, `rules: [`+to("first", `{path: {value: /a}}`)+`, `+to("second", `{path: {value: /a}}`)+`]`),
			},
			want: map[string]string{"GET http://a/a": "first"},
		},
		"the host name comes before everything": {
			routes: []string{
				aRoute("all", older, `rules: [`+to("all", `{path: {type: Exact, value: /a}}`)+`]`),
				aRoute("wide", older, `hostnames: ["*.com"], rules: [`+to("wide", `{path: {type: Exact, value: /a}}`)+`]`),
				aRoute("narrow", newer, `hostnames: ["*.example.com"], rules: [`+to("narrow")+`]`),
				aRoute("precise", newer, `hostnames: [a.example.com], rules: [`+to("precise")+`]`),
				aRoute("other", newer, `hostnames: [b.example.com], rules: [`+to("b", `{path: {value: /b}}`)+`]`),
			},
			want: map[string]string{
				"GET http://a.example.com/a": "precise", "GET http://A.Example.com:81/a": "precise", "GET http://x.y.example.com/a": "narrow",
				"GET http://example.com/a": "wide", "GET http://com/a": "all", "GET http://b.example.com/a": "narrow", "GET http://b.example.com/b/c": "b",
			},
		},
		"what listeners and routes have in common": {
			hostnames: []string{"*.example.com", "a.example.com"},
			routes: []string{
				aRoute("all", older, `rules: [`+to("all")+`]`),
				aRoute("own", older, `hostnames: [b.example.com, elsewhere.org], rules: [`+to("own")+`]`),
				aRoute("wide", newer, `hostnames: ["*.com"], rules: [`+to("wide", `{path: {value: /wide}}`)+`]`),
			},
			want: map[string]string{
				"GET http://b.example.com/": "own", "GET http://a.example.com/": "all", "GET http://c.example.com/": "all",
				"GET http://elsewhere.org/": "", "GET http://a.example.com/wide": "wide", "GET http://b.example.com/wide": "own", "GET http://x.com/wide": "",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.hostnames == nil {
				test.hostnames = []string{""}
			}
			c := configOf(seen(t, append(test.routes, aGateway(test.hostnames...))...))
			got := map[string]string{}
			for request := range test.want {
				parts := strings.Fields(request)
				r := httptest.NewRequest(parts[0], parts[1], nil)
				for _, h := range parts[2:] {
					k, v, _ := strings.Cut(h, ":")
					r.Header.Add(k, v)
				}
				got[request] = ""
				if l := findListener(c.gateways["default/gw"].listeners, hostOf(r)); l != nil {
					if found := l.find(hostOf(r), r); found != nil {
						got[request] = string(found.rule.BackendRefs[0].Name)
					}
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestAttachment tells to which listeners a route is attached.
func TestAttachment(t *testing.T) {
	t.Parallel()
	const gateway = `{kind: Gateway, metadata: {name: gw, namespace: infra}, spec: {listeners: [{name: a, protocol: HTTP, port: 80}, {name: b, protocol: HTTP, port: 81}]}}`
	for name, test := range map[string]struct {
		parents string
		want    []string
	}{
		"the whole gateway":  {`{name: gw, namespace: infra}`, []string{"a", "b"}},
		"a section":          {`{name: gw, namespace: infra, sectionName: b}`, []string{"b"}},
		"a port":             {`{name: gw, namespace: infra, port: 80}`, []string{"a"}},
		"twice":              {`{name: gw, namespace: infra, port: 80}, {name: gw, namespace: infra}`, []string{"a", "b"}},
		"another namespace":  {`{name: gw}`, nil},
		"another kind":       {`{name: gw, namespace: infra, kind: Service}`, nil},
		"neither of the two": {`{name: gw, namespace: infra, sectionName: b, port: 80}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := configOf(seen(t, gateway, `{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [`+test.parents+`], rules: [{}]}}`))
			var got []string
			for _, l := range c.gateways["infra/gw"].listeners {
				if len(l.candidates) > 1 {
					t.Errorf("listener %s has the route %d times", l.Name, len(l.candidates))
				}
				if len(l.candidates) > 0 {
					got = append(got, string(l.Name))
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestWeights counts how often each backend is chosen. The source of random numbers is seeded, so
// each run counts the same.
func TestWeights(t *testing.T) {
	t.Parallel()
	const requests = 10000
	for name, test := range map[string]struct {
		backends string
		// want are parts of all requests.
		want map[string]float64
	}{
		"by weight":        {`{name: a, weight: 1}, {name: b, weight: 3}, {name: c, weight: 6}`, map[string]float64{"a": 0.1, "b": 0.3, "c": 0.6}},
		"one each":         {`{name: a}, {name: b}`, map[string]float64{"a": 0.5, "b": 0.5}},
		"none with zero":   {`{name: a, weight: 0}, {name: b, weight: 1}`, map[string]float64{"b": 1}},
		"all have zero":    {`{name: a, weight: 0}, {name: b, weight: 0}`, map[string]float64{"": 1}},
		"there is none":    {``, map[string]float64{"": 1}},
		"one of a million": {`{name: a, weight: 1000000}`, map[string]float64{"a": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := configOf(seen(t, aGateway(""), aRoute("r", "2026-01-01T00:00:00Z", `rules: [{backendRefs: [`+test.backends+`]}]`)))
			refs := c.gateways["default/gw"].listeners[0].candidates[0].rule.BackendRefs
			// The same each time.
			p := &dataPlane{random: rand.New(rand.NewPCG(1, 2)).Int64N}
			got := map[string]float64{}
			for range requests {
				if ref := p.choose(refs); ref == nil {
					got[""]++
				} else {
					got[string(ref.Name)]++
				}
			}
			for of := range test.want {
				got[of] = float64(int(got[of]/requests*100+0.5)) / 100
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
