package cluster

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

func filters(t *testing.T, doc string) []gatewayv1.HTTPRouteFilter {
	t.Helper()
	var all []gatewayv1.HTTPRouteFilter
	if err := yaml.UnmarshalStrict([]byte(doc), &all); err != nil {
		t.Fatal(err)
	}
	if err := supported(all); err != nil {
		t.Fatal(err)
	}
	return all
}

func prefix(path string) *routeMatch {
	return &routeMatch{kind: prefixPath, prefix: strings.TrimSuffix(path, "/")}
}

func TestFilterRequest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		filters, url string
		match        *routeMatch
		header       http.Header
		want         string
	}{
		"headers": {
			filters: `[{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-set, value: new}], add: [{name: x-add, value: b}], remove: [X-Gone]}}]`,
			url:     "http://a/v1", header: http.Header{"X-Set": {"old", "older"}, "X-Add": {"a"}, "X-Gone": {"1"}, "X-Stays": {"1"}},
			want: "a /v1 X-Add=a,b X-Set=new X-Stays=1",
		},
		"host":               {`[{type: URLRewrite, urlRewrite: {hostname: b.example.com}}]`, "http://a/v1?q", prefix("/"), nil, "b.example.com /v1?q"},
		"full path":          {`[{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /new}}}]`, "http://a/v1/x?q=1", prefix("/"), nil, "a /new?q=1"},
		"prefix":             {`[{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new/}}}]`, "http://a/v1/x%2fy", prefix("/v1/"), nil, "a /new/x%2fy"},
		"prefix to nothing":  {`[{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]`, "http://a/v1/x", prefix("/v1"), nil, "a /x"},
		"whole as prefix":    {`[{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]`, "http://a/v1", prefix("/v1"), nil, "a /"},
		"prefix of root":     {`[{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}]`, "http://a/v1", prefix("/"), nil, "a /new/v1"},
		"prefix of an exact": {`[{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}]`, "http://a/v1", &routeMatch{kind: exactPath, exact: "/v1"}, nil, "a /v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, test.url, nil)
			if test.header != nil {
				r.Header = test.header
			}
			filterRequest(r, filters(t, test.filters), test.match)
			got := r.Host + " " + r.URL.RequestURI()
			for _, k := range slices.Sorted(maps.Keys(r.Header)) {
				got += " " + k + "=" + strings.Join(r.Header[k], ",")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		redirect string
		port     int
		want     string
		status   int
	}{
		"scheme":              {`{scheme: https, statusCode: 301}`, 80, "https://a.example.com/v1/x?q=1", 301},
		"scheme and port":     {`{scheme: https, port: 8443}`, 80, "https://a.example.com:8443/v1/x?q=1", 302},
		"port of the scheme":  {`{port: 80}`, 8080, "http://a.example.com/v1/x?q=1", 302},
		"port of listener":    {`{hostname: b.example.com}`, 8080, "http://b.example.com:8080/v1/x?q=1", 302},
		"prefix of the path":  {`{path: {type: ReplacePrefixMatch, replacePrefixMatch: /v2}}`, 80, "http://a.example.com/v2/x?q=1", 302},
		"the whole path, 307": {`{path: {type: ReplaceFullPath, replaceFullPath: /}, statusCode: 307}`, 80, "http://a.example.com/?q=1", 307},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "http://A.example.com/v1/x?q=1", nil)
			to, status, ok := redirect(r, filters(t, `[{type: RequestRedirect, requestRedirect: `+test.redirect+`}]`), prefix("/v1"), "http", test.port)
			if !ok || to != test.want || status != test.status {
				t.Errorf("redirect to %s with %d (%t), want %s with %d", to, status, ok, test.want, test.status)
			}
		})
	}
}

func TestUnknownFilter(t *testing.T) {
	t.Parallel()
	for _, of := range []gatewayv1.HTTPRouteFilterType{gatewayv1.HTTPRouteFilterRequestMirror, gatewayv1.HTTPRouteFilterExtensionRef, gatewayv1.HTTPRouteFilterCORS} {
		if err := supported([]gatewayv1.HTTPRouteFilter{{Type: of}}); err == nil {
			t.Errorf("filter %s is taken, and does nothing", of)
		}
	}
}
