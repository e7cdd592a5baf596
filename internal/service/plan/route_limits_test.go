package plan

import (
	gobuild "go/build"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
	"github.com/fusioninfer/function-inferenceservice/internal/gatewayschema"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// definition is the real one, of the experimental channel: it has all fields.
func definition(t *testing.T, plural string) *schematest.Schema {
	t.Helper()
	pkg, err := gobuild.Import("sigs.k8s.io/gateway-api/apis/v1", ".", gobuild.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schematest.NewFromFile(filepath.Join(pkg.Dir, "..", "..", "config", "crd", "experimental", "gateway.networking.k8s.io_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// repeated is a list of an element so many times, with its number for each %d.
func repeated(n int, element string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(element, "%d", strconv.Itoa(i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func checkedRoute(t *testing.T, doc string) field.ErrorList {
	t.Helper()
	spec := gateway.HTTPRouteSpec{}
	return readSpec(document(t, doc), field.NewPath("httproute"), gatewayschema.HTTPRoute, &spec, func(p *field.Path) field.ErrorList { return checkRoute(p, &spec) })
}

func checkedGateway(t *testing.T, doc string) field.ErrorList {
	t.Helper()
	spec := gateway.GatewaySpec{}
	return readSpec(document(t, doc), field.NewPath("gateway"), gatewayschema.Gateway, &spec, func(p *field.Path) field.ErrorList { return checkGateway(p, &spec) })
}

type limit struct {
	reason, spec string
	want         []string
}

// The message about an unknown field names the version of the Gateway API in go.mod.
func TestUnknownToGateway(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\tsigs\.k8s\.io/gateway-api (v[0-9]+\.[0-9]+)\.`).FindSubmatch(mod)
	if len(found) < 2 || !strings.Contains(unknownToGateway, " "+string(found[1])+" ") {
		t.Errorf("go.mod has %q of the Gateway API, and the message is %q", found, unknownToGateway)
	}
}

// What is refused here is what the API server refuses, and the other way round.
func TestRouteLimits(t *testing.T) {
	rule := func(fields string) string { return `{parentRefs: [{name: g}], rules: [{` + fields + `}]}` }
	filter := func(f string) string { return rule(`filters: [` + f + `]`) }
	match := func(m string) string { return rule(`matches: [` + m + `]`) }
	cases := map[string]limit{
		"Usual": {
			reason: "What routes have.",
			spec: `{hostnames: [a.example.com], parentRefs: [{name: g, sectionName: a}, {name: g, sectionName: b}, {name: h}], rules: [{name: x, matches: [{path: {value: /v1}, method: POST, headers: [{name: a, value: b}]}],
				filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}, {type: RequestMirror, requestMirror: {backendRef: {name: m, port: 1}}}, {type: RequestMirror, requestMirror: {backendRef: {name: o, port: 1}}}],
				backendRefs: [{name: a, port: 80, weight: 0}, {name: b, port: 80, weight: 1000000}], timeouts: {request: 10s, backendRequest: 5s}}, {filters: [{type: RequestRedirect, requestRedirect: {hostname: b.example.com, statusCode: 301}}]}]}`,
		},
		"Most": {
			reason: "The limits themselves.",
			spec:   `{hostnames: ` + repeated(16, "h%d.example.com") + `, parentRefs: ` + repeated(32, "{name: g%d}") + `, rules: ` + repeated(16, `{name: r%d, matches: `+repeated(8, "{path: {value: /a}}")+`, backendRefs: `+repeated(16, "{name: b, port: 1}")+`}`) + `}`,
		},
		"Lists": {
			reason: "Above them.",
			spec:   `{hostnames: ` + repeated(17, "h%d.example.com") + `, parentRefs: ` + repeated(33, "{name: g%d}") + `, rules: ` + repeated(17, `{}`) + `}`,
			want: []string{
				`httproute.hostnames: Too many: 17: must have at most 16 items`,
				`httproute.parentRefs: Too many: 33: must have at most 32 items`,
				`httproute.rules: Too many: 17: must have at most 16 items`,
			},
		},
		"InRule": {
			reason: "Lists of a rule.",
			spec:   rule(`matches: ` + repeated(65, "{}") + `, filters: ` + repeated(17, "{type: RequestMirror, requestMirror: {backendRef: {name: m, port: 1}}}") + `, backendRefs: ` + repeated(17, "{name: b, port: 1}")),
			want: []string{
				`httproute.rules[0].backendRefs: Too many: 17: must have at most 16 items`,
				`httproute.rules[0].filters: Too many: 17: must have at most 16 items`,
				`httproute.rules[0].matches: Too many: 65: must have at most 64 items`,
			},
		},
		"InMatch": {
			reason: "Lists of a match.",
			spec:   match(`{headers: ` + repeated(17, "{name: h%d, value: x}") + `, queryParams: ` + repeated(17, "{name: q%d, value: x}") + `}`),
			want: []string{
				`httproute.rules[0].matches[0].headers: Too many: 17: must have at most 16 items`,
				`httproute.rules[0].matches[0].queryParams: Too many: 17: must have at most 16 items`,
			},
		},
		"InFilter": {
			reason: "Lists of a filter.",
			spec:   filter(`{type: RequestHeaderModifier, requestHeaderModifier: {set: ` + repeated(17, "{name: h%d, value: x}") + `, add: ` + repeated(17, "{name: i%d, value: x}") + `, remove: ` + repeated(17, "j%d") + `}}`),
			want: []string{
				`httproute.rules[0].filters[0].requestHeaderModifier.add: Too many: 17: must have at most 16 items`,
				`httproute.rules[0].filters[0].requestHeaderModifier.remove: Too many: 17: must have at most 16 items`,
				`httproute.rules[0].filters[0].requestHeaderModifier.set: Too many: 17: must have at most 16 items`,
			},
		},
		"Matches": {
			reason: "All rules together.",
			spec:   `{rules: ` + repeated(3, `{matches: `+repeated(43, "{}")+`}`) + `}`,
			want:   []string{`httproute.rules: Invalid value: 129: must have at most 128 matches in all rules together`},
		},
		"Weights": {
			reason: "Shares are from 0 to a million.",
			spec:   rule(`backendRefs: [{name: a, port: 1, weight: -1}, {name: b, port: 1, weight: 1000001}]`),
			want: []string{
				`httproute.rules[0].backendRefs[0].weight: Invalid value: -1: must be from 0 to 1000000`,
				`httproute.rules[0].backendRefs[1].weight: Invalid value: 1000001: must be from 0 to 1000000`,
			},
		},
		"Ports": {
			reason: "A Service needs its port, which is one.",
			spec:   rule(`backendRefs: [{name: a}, {name: b, port: 65536}, {name: c, kind: InferencePool, group: inference.networking.k8s.io}]`),
			want: []string{
				`httproute.rules[0].backendRefs[0].port: Required value: must be the port of the Service`,
				`httproute.rules[0].backendRefs[1].port: Invalid value: 65536: must be from 1 to 65535`,
			},
		},
		"RuleNames": {
			reason: "Each rule has a name of its own.",
			spec:   `{rules: [{name: a}, {name: a}]}`,
			want:   []string{`httproute.rules[1].name: Duplicate value: "a"`},
		},
		"ParentTwice": {
			reason: "A gateway that is named twice is named by section or port.",
			spec:   `{parentRefs: [{name: g}, {name: h, port: 1}, {name: g, kind: Gateway, sectionName: a}, {name: h, port: 2}, {name: g, namespace: x}]}`,
			want:   []string{`httproute.parentRefs[2]: Invalid value: "g": must have another sectionName or port than httproute.parentRefs[0], which names the same gateway`},
		},
		"Redirect": {
			reason: "Nothing reaches a backend.",
			spec:   rule(`filters: [{type: RequestRedirect, requestRedirect: {hostname: b.example.com}}], backendRefs: [{name: a, port: 1}]`),
			want:   []string{`httproute.rules[0].backendRefs: Forbidden: must be left out of a rule with a RequestRedirect: redirected requests reach no backend`},
		},
		"FilterTwice": {
			reason: "One of them would have no effect.",
			spec:   filter(`{type: URLRewrite, urlRewrite: {hostname: a}}, {type: URLRewrite, urlRewrite: {hostname: b}}`),
			want:   []string{`httproute.rules[0].filters[1].type: Duplicate value: "URLRewrite"`},
		},
		"RedirectAndRewrite": {
			reason: "Or both.",
			spec:   filter(`{type: URLRewrite, urlRewrite: {hostname: a}}, {type: RequestRedirect, requestRedirect: {hostname: b}}`),
			want:   []string{`httproute.rules[0].filters: Forbidden: must not have both a RequestRedirect and a URLRewrite: one of them has no effect`},
		},
		"Union": {
			reason: "A filter has the field of its type.",
			spec:   filter(`{type: CORS}, {type: URLRewrite, urlRewrite: {hostname: a}, requestMirror: {backendRef: {name: m, port: 1}}}`),
			want: []string{
				`httproute.rules[0].filters[0].cors: Required value: must be set for a filter of type CORS`,
				`httproute.rules[0].filters[1].requestMirror: Forbidden: must be left out of a filter of type URLRewrite`,
			},
		},
		"NoType": {
			reason: "And a type.",
			spec:   filter(`{cors: {}}`),
			want:   []string{`httproute.rules[0].filters[0].type: Required value: must be the kind of filter, such as RequestHeaderModifier`},
		},
		"TypeOfFilter": {
			reason: "The case of its letters counts.",
			spec:   filter(`{type: UrlRewrite, urlRewrite: {hostname: a}}`),
			want:   []string{`httproute.rules[0].filters[0].type: Invalid value: "UrlRewrite": must be URLRewrite`},
		},
		"Prefix": {
			reason: "Only the prefix that a rule matches can be replaced.",
			spec: `{rules: [{matches: [{path: {type: Exact, value: /a}}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]},
				{matches: [{path: {value: /a}}, {path: {value: /b}}], filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]},
				{matches: [{method: GET}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]},
				{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]}]}`,
			want: []string{
				`httproute.rules[0].filters[0].urlRewrite.path.type: Invalid value: "ReplacePrefixMatch": must be ReplaceFullPath, unless the rule has exactly one match, of type PathPrefix`,
				`httproute.rules[1].filters[0].requestRedirect.path.type: Invalid value: "ReplacePrefixMatch": must be ReplaceFullPath, unless the rule has exactly one match, of type PathPrefix`,
			},
		},
		"NewPath": {
			reason: "It has the field of its type.",
			spec:   filter(`{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replacePrefixMatch: /}}}`),
			want: []string{
				`httproute.rules[0].filters[0].urlRewrite.path.replaceFullPath: Required value: must be set for a path of type ReplaceFullPath`,
				`httproute.rules[0].filters[0].urlRewrite.path.replacePrefixMatch: Forbidden: must be left out of a path of type ReplaceFullPath`,
			},
		},
		"PrefixInBackends": {
			reason: "An API server counts the backends that replace the prefix, and refuses one.",
			spec: `{rules: [{matches: [{path: {value: /a}}, {path: {value: /b}}], backendRefs: [
				{name: a, port: 1, filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]},
				{name: b, port: 1, filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]}]},
				{matches: [{path: {type: Exact, value: /a}}], backendRefs: [{name: a, port: 1, filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]}]}]}`,
			want: []string{`httproute.rules[1].backendRefs[0].filters[0].urlRewrite.path.type: Invalid value: "ReplacePrefixMatch": must be ReplaceFullPath, unless the rule has exactly one match, of type PathPrefix`},
		},
		"NoMatches": {
			reason: "An empty list is not defaulted to the prefix /.",
			spec:   `{rules: [{matches: [], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]}]}`,
			want:   []string{`httproute.rules[0].filters[0].urlRewrite.path.type: Invalid value: "ReplacePrefixMatch": must be ReplaceFullPath, unless the rule has exactly one match, of type PathPrefix`},
		},
		"RedirectCode": {
			reason: "One of redirects.",
			spec:   filter(`{type: RequestRedirect, requestRedirect: {statusCode: 200, scheme: HTTP}}`),
			want: []string{
				`httproute.rules[0].filters[0].requestRedirect.scheme: Unsupported value: "HTTP": supported values: "http", "https" (did you mean "http"?)`,
				`httproute.rules[0].filters[0].requestRedirect.statusCode: Unsupported value: "200": supported values: "301", "302", "303", "307", "308"`,
			},
		},
		"Mirror": {
			reason: "A share is said in one way, and the mirror's port too.",
			spec:   filter(`{type: RequestMirror, requestMirror: {backendRef: {name: m}, percent: 101, fraction: {numerator: 3, denominator: 2}}}`),
			want: []string{
				`httproute.rules[0].filters[0].requestMirror.backendRef.port: Required value: must be the port of the Service`,
				`httproute.rules[0].filters[0].requestMirror.fraction.numerator: Invalid value: 3: must be at most the denominator, which is 2`,
				`httproute.rules[0].filters[0].requestMirror.fraction: Forbidden: must be left out beside percent`,
				`httproute.rules[0].filters[0].requestMirror.percent: Invalid value: 101: must be from 0 to 100`,
			},
		},
		"AllOrigins": {
			reason: "They include each.",
			spec:   filter(`{type: CORS, cors: {allowOrigins: ["https://a.example.com", "*"]}}`),
			want:   []string{`httproute.rules[0].filters[0].cors.allowOrigins[1]: Invalid value: "*": must be the only one: it includes all others`},
		},
		"HeaderNames": {
			reason: "They are tokens, each once.",
			spec:   match(`{headers: [{name: "a b", value: x}, {name: c, value: x}, {name: c, value: d}, {value: z}]}`),
			want: []string{
				`httproute.rules[0].matches[0].headers[0].name: Invalid value: "a b": must match '^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$'`,
				`httproute.rules[0].matches[0].headers[2].name: Duplicate value: "c"`,
				`httproute.rules[0].matches[0].headers[3].name: Required value: must be set`,
			},
		},
		"Sessions": {
			reason: "Cookies have what belongs to them.",
			spec:   `{rules: [{sessionPersistence: {type: Header, cookieConfig: {lifetimeType: Session}}}, {sessionPersistence: {cookieConfig: {lifetimeType: Permanent}}}]}`,
			want: []string{
				`httproute.rules[0].sessionPersistence.cookieConfig: Forbidden: must be left out of sessions that are not of type Cookie`,
				`httproute.rules[1].sessionPersistence.absoluteTimeout: Required value: must be set for cookies of lifetimeType Permanent`,
			},
		},
		"BackendFilters": {
			reason: "Those of a backend too.",
			spec:   rule(`backendRefs: [{name: a, port: 1, filters: [{type: CORS}]}]`),
			want:   []string{`httproute.rules[0].backendRefs[0].filters[0].cors: Required value: must be set for a filter of type CORS`},
		},
		"Path": {
			reason: "A path that gateways need not normalize.",
			spec:   match(`{path: {value: v1}}, {path: {type: Exact, value: /a//b}}, {path: {value: "/a b"}}, {path: {value: /a/..}}, {path: {value: /%2f}}, {path: {value: "/%zz"}}, {path: {type: RegularExpression, value: "a b"}}, {path: {value: "/%20"}}`),
			want: []string{
				`httproute.rules[0].matches[0].path.value: Invalid value: "v1": must start with '/', be in the characters of a URL, and have no empty part, no '.' and no '..' between slashes, and no '#' or '%2f'`,
				`httproute.rules[0].matches[1].path.value: Invalid value: "/a//b": must start with '/', be in the characters of a URL, and have no empty part, no '.' and no '..' between slashes, and no '#' or '%2f'`,
				`httproute.rules[0].matches[2].path.value: Invalid value: "/a b": must start with '/', be in the characters of a URL, and have no empty part, no '.' and no '..' between slashes, and no '#' or '%2f'`,
				`httproute.rules[0].matches[3].path.value: Invalid value: "/a/..": must start with '/', be in the characters of a URL, and have no empty part, no '.' and no '..' between slashes, and no '#' or '%2f'`,
				`httproute.rules[0].matches[4].path.value: Invalid value: "/%2f": must start with '/', be in the characters of a URL, and have no empty part, no '.' and no '..' between slashes, and no '#' or '%2f'`,
				`httproute.rules[0].matches[5].path.value: Invalid value: "/%zz": must start with '/', be in the characters of a URL, and have no empty part, no '.' and no '..' between slashes, and no '#' or '%2f'`,
			},
		},
		"Match": {
			reason: "Methods and types are among a few.",
			spec:   match(`{method: post, path: {type: Prefix, value: /}}`),
			want: []string{
				`httproute.rules[0].matches[0].method: Unsupported value: "post": supported values: "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH" (did you mean "POST"?)`,
				`httproute.rules[0].matches[0].path.type: Unsupported value: "Prefix": supported values: "Exact", "PathPrefix", "RegularExpression"`,
			},
		},
		"UnknownField": {
			reason: "An API server refuses to apply it.",
			spec:   rule(`tmeouts: {request: 10s}`),
			want:   []string{`httproute.rules[0].tmeouts: Forbidden: unknown field (did you mean "timeouts"?): Gateway API v1.6 has none of that name`},
		},
		"Timeouts": {
			reason: "A part takes no longer than the whole.",
			spec:   rule(`timeouts: {request: 10s, backendRequest: 1m}`),
			want:   []string{`httproute.rules[0].timeouts.backendRequest: Invalid value: "1m": must be at most the timeout of the whole request, 10s`},
		},
	}
	crd := definition(t, "httproutes")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			compareLimit(t, tc, checkedRoute(t, tc.spec), crd.Validate([]byte(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: a, namespace: b}, spec: `+tc.spec+`}`)))
		})
	}
}

func TestGatewayLimits(t *testing.T) {
	listener := func(l string) string { return `{gatewayClassName: c, listeners: [` + l + `]}` }
	cases := map[string]limit{
		"Usual": {
			reason: "What gateways have.",
			spec: listener(`{name: a, port: 80, protocol: HTTP}, {name: b, port: 443, protocol: HTTPS, hostname: a.example.com, tls: {certificateRefs: [{name: s}]}},
				{name: c, port: 443, protocol: HTTPS, hostname: b.example.com, tls: {mode: Terminate, options: {a.example.com/b: c}}}, {name: d, port: 444, protocol: TLS, tls: {mode: Passthrough}}`),
		},
		"Most": {reason: "The limit itself.", spec: `{gatewayClassName: c, listeners: ` + repeated(64, "{name: l%d, port: 1%d, protocol: HTTP}") + `}`},
		"Lists": {
			reason: "Above them.",
			spec:   `{gatewayClassName: c, addresses: ` + repeated(17, "{value: 10.0.0.%d}") + `, listeners: ` + repeated(65, "{name: l%d, port: 1%d, protocol: HTTP}") + `}`,
			want: []string{
				`gateway.addresses: Too many: 17: must have at most 16 items`,
				`gateway.listeners: Too many: 65: must have at most 64 items`,
			},
		},
		"Addresses": {
			reason: "Those without a type are IP addresses.",
			spec:   `{gatewayClassName: c, listeners: [{name: a, port: 80, protocol: HTTP}], addresses: [{value: a.example.com}, {type: Hostname, value: a.example.com}, {value: "::1"}]}`,
			want:   []string{`gateway.addresses[0].value: Invalid value: "a.example.com": must be an IP address, or have another type, such as Hostname`},
		},
		"Same": {
			reason: "Listeners differ in what they listen to.",
			spec:   listener(`{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: HTTP}`),
			want:   []string{`gateway.listeners[1]: Invalid value: "b": must have another port, protocol or hostname than gateway.listeners[0]`},
		},
		"TLS": {
			reason: "Protocols and certificates go together.",
			spec:   listener(`{name: a, port: 1, protocol: HTTP, tls: {certificateRefs: [{name: s}]}}`),
			want:   []string{`gateway.listeners[0].tls: Forbidden: must be left out of a listener of protocol HTTP`},
		},
		"Passthrough": {
			reason: "HTTPS ends at the gateway.",
			spec:   listener(`{name: a, port: 1, protocol: HTTPS, tls: {mode: Passthrough}}`),
			want:   []string{`gateway.listeners[0].tls.mode: Invalid value: "Passthrough": must be Terminate for protocol HTTPS`},
		},
		"NoMode": {
			reason: "TLS may.",
			spec:   listener(`{name: a, port: 1, protocol: TLS}`),
			want:   []string{`gateway.listeners[0].tls.mode: Required value: must be Terminate or Passthrough for protocol TLS`},
		},
		"NoCertificate": {
			reason: "Which takes a certificate.",
			spec:   listener(`{name: a, port: 1, protocol: HTTPS, tls: {}}`),
			want:   []string{`gateway.listeners[0].tls.certificateRefs: Required value: must name a certificate where the listener terminates TLS`},
		},
		"Hostname": {
			reason: "TCP has no names.",
			spec:   listener(`{name: a, port: 1, protocol: TCP, hostname: a.example.com}`),
			want:   []string{`gateway.listeners[0].hostname: Forbidden: must be left out of a listener of protocol TCP`},
		},
	}
	crd := definition(t, "gateways")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			compareLimit(t, tc, checkedGateway(t, tc.spec), crd.Validate([]byte(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: a, namespace: b}, spec: `+tc.spec+`}`)))
		})
	}
}

// TestAcceptedRoutes proves that what the function mends, or does not pass on, is not refused.
func TestAcceptedRoutes(t *testing.T) {
	for name, doc := range map[string]string{
		"Nulls":        `{hostnames: null, parentRefs: [{name: g, port: null}], rules: [{filters: null, backendRefs: [{name: a, port: 1, weight: null}]}]}`,
		"NoRules":      `{parentRefs: [{name: g}], rules: []}`,
		"OwnPool":      `{parentRefs: [{name: g}], rules: [{backendRefs: [{name: svc-pool, kind: "", namespace: ""}]}]}`,
		"BlanksInside": `{parentRefs: [{name: g}], rules: [{matches: [{headers: [{name: user-agent, type: RegularExpression, value: " a  bot"}]}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if errs := checkedRoute(t, doc); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
}

// TestManyMistakes proves that a route within the limits of its lists, in which nearly everything is wrong, costs only some errors.
func TestManyMistakes(t *testing.T) {
	match := `{headers: ` + repeated(16, "{}") + `, queryParams: ` + repeated(16, "{}") + `}`
	errs := checkedRoute(t, `{parentRefs: [{name: g}], rules: `+repeated(16, `{matches: `+repeated(64, match)+`}`)+`}`)
	if len(errs) != kube.MaxProblems {
		t.Errorf("there are %d errors, want %d", len(errs), kube.MaxProblems)
	}
}

// compareLimit compares the errors with those of the case. There are some exactly if the API
// server has some, too.
func compareLimit(t *testing.T, tc limit, errs, api field.ErrorList) {
	t.Helper()
	if diff := cmp.Diff(tc.want, sorted(errs)); diff != "" {
		t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
	}
	if (len(api) > 0) != (len(tc.want) > 0) {
		t.Errorf("%s\nthe API server says %v", tc.reason, api)
	}
}
