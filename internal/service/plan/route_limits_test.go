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

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// channels are those of the Gateway API, by what the platform team says of the fields that only one has.
var channels = map[inputv1alpha1.Access]string{inputv1alpha1.Allow: "experimental", inputv1alpha1.Deny: "standard"}

// loaded are the results of definitions, which take a second each.
var loaded = map[string]map[inputv1alpha1.Access]*schematest.Schema{}

// definitions are the real ones of both channels.
func definitions(t *testing.T, plural string) map[inputv1alpha1.Access]*schematest.Schema {
	t.Helper()
	if all, has := loaded[plural]; has {
		return all
	}
	pkg, err := gobuild.Import("sigs.k8s.io/gateway-api/apis/v1", ".", gobuild.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	all := map[inputv1alpha1.Access]*schematest.Schema{}
	for access, channel := range channels {
		s, err := schematest.NewFromFile(filepath.Join(pkg.Dir, "..", "..", "config", "crd", channel, "gateway.networking.k8s.io_"+plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		all[access] = s
	}
	loaded[plural] = all
	return all
}

// repeated is a list of an element so many times, with its number for each %d.
func repeated(n int, element string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(element, "%d", strconv.Itoa(i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func checkedRoute(t *testing.T, doc string, access inputv1alpha1.Access) field.ErrorList {
	t.Helper()
	return checkedRole(&v1alpha1.Role{HTTPRoute: document(t, doc)}, access)
}

func checkedGateway(t *testing.T, doc string, access inputv1alpha1.Access) field.ErrorList {
	t.Helper()
	return checkedRole(&v1alpha1.Role{Gateway: document(t, doc)}, access)
}

// checkedRole returns what is wrong with the route and the Gateway of a router, if the platform team allows everything that clusters accept.
func checkedRole(role *v1alpha1.Role, access inputv1alpha1.Access) field.ErrorList {
	in := &inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{
		AllowedParentRefs:        []inputv1alpha1.AllowedParentRef{{Namespace: "*", Name: "*"}},
		AllowedAddresses:         []string{"*"},
		AllowedTLSOptions:        []string{"a.example.com/b"},
		AllowedHostnames:         []string{"*"},
		AllowedFilters:           []inputv1alpha1.RouteFilter{inputv1alpha1.FilterRequestMirror, inputv1alpha1.FilterExternalAuth, inputv1alpha1.FilterExtensionRef},
		AllowedBackendNamespaces: []string{"*"},
		ExperimentalFields:       access,
	}}}
	inputv1alpha1.Default(in)
	service := naming.Identity{Name: "svc", Namespace: "team"}
	_, errs := (&Router{}).planRoute(nil, *role, newRouteAccess(service, &v1alpha1.InferenceServiceSpec{}, in, newTenantPolicy(service, in), &scheduling.Snapshot{}))
	return errs
}

type limit struct {
	reason, spec string
	// standard tells that the clusters have the standard channel.
	standard bool
	want     []string
}

// channel says which fields the clusters have.
func (l limit) channel() inputv1alpha1.Access {
	if l.standard {
		return inputv1alpha1.Deny
	}
	return inputv1alpha1.Allow
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
		"PortOfPool": {
			reason: "A filter leads to the pool by no Service, and another pool has none.",
			spec:   rule(`filters: [{type: RequestMirror, requestMirror: {backendRef: {name: svc-pool}}}, {type: ExternalAuth, externalAuth: {protocol: GRPC, grpc: {}, backendRef: {name: svc-pool}}}], backendRefs: [{name: other-pool}, {name: svc-pool, namespace: a}]`),
			want: []string{
				`httproute.rules[0].backendRefs[0].port: Required value: must be the port of the Service`,
				`httproute.rules[0].backendRefs[1].port: Required value: must be the port of the Service`,
				`httproute.rules[0].filters[0].requestMirror.backendRef.port: Required value: must be the port of the Service`,
				`httproute.rules[0].filters[1].externalAuth.backendRef.port: Required value: must be the port of the Service`,
			},
		},
		"EmptyKind": {
			reason: "The function writes the kind and namespace of its pool, and of no other backend.",
			spec:   rule(`backendRefs: [{name: a, port: 1, kind: "", namespace: ""}, {name: svc-pool, kind: "", namespace: ""}]`),
			want: []string{
				`httproute.rules[0].backendRefs[0].kind: Invalid value: "": must not be empty: leave it out for a Service`,
				`httproute.rules[0].backendRefs[0].namespace: Invalid value: "": must not be empty: leave it out for the namespace of the route`,
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
			want:   []string{`httproute.parentRefs[2]: Invalid value: "g": must have another sectionName or port than httproute.parentRefs[0], which names the same gateway, and each of the two only if that has it too`},
		},
		"ParentPorts": {
			reason: "Two listeners of a gateway may have one port each.",
			spec:   `{parentRefs: [{name: g, port: 1}, {name: g, port: 2}, {name: h, sectionName: a, port: 1}, {name: h, sectionName: a, port: 2}]}`,
		},
		"ParentPortsStandard": {
			reason:   "The standard channel does not tell references apart by ports.",
			standard: true,
			spec:     `{parentRefs: [{name: g, port: 1}, {name: g, port: 2}, {name: h, sectionName: a, port: 1}, {name: h, sectionName: b}]}`,
			want:     []string{`httproute.parentRefs[1]: Invalid value: "g": must have another sectionName than httproute.parentRefs[0], which names the same gateway, and both need one: only the experimental channel of the Gateway API tells them apart by port. Where all clusters have it, the platform team can set routes.experimentalFields of the Composition's input to Allow`},
		},
		"ParentTwiceStandard": {
			reason:   "Nothing is said of ports where there are none.",
			standard: true,
			spec:     `{parentRefs: [{name: g}, {name: g, sectionName: a}, {name: h, sectionName: a}, {name: h, sectionName: a}]}`,
			want: []string{
				`httproute.parentRefs[1]: Invalid value: "g": must have another sectionName than httproute.parentRefs[0], which names the same gateway, and both need one`,
				`httproute.parentRefs[3]: Invalid value: "h": must have another sectionName than httproute.parentRefs[2], which names the same gateway, and both need one`,
			},
		},
		"ParentMixed": {
			reason: "What one reference to a gateway has, the others have too.",
			spec:   `{parentRefs: [{name: g, sectionName: a, port: 1}, {name: g, sectionName: b}, {name: h, sectionName: a, port: 1}, {name: h, port: 2}]}`,
			want: []string{
				`httproute.parentRefs[1]: Invalid value: "g": must have another sectionName or port than httproute.parentRefs[0], which names the same gateway, and each of the two only if that has it too`,
				`httproute.parentRefs[3]: Invalid value: "h": must have another sectionName or port than httproute.parentRefs[2], which names the same gateway, and each of the two only if that has it too`,
			},
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
		"PrefixOfEither": {
			reason: "It counts those with a filter of one type.",
			spec: `{rules: [{matches: [{path: {value: /a}}, {path: {value: /b}}], backendRefs: [
				{name: a, port: 1, filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]},
				{name: b, port: 1, filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]}]}]}`,
			want: []string{
				`httproute.rules[0].backendRefs[0].filters[0].urlRewrite.path.type: Invalid value: "ReplacePrefixMatch": must be ReplaceFullPath, unless the rule has exactly one match, of type PathPrefix`,
				`httproute.rules[0].backendRefs[1].filters[0].requestRedirect.path.type: Invalid value: "ReplacePrefixMatch": must be ReplaceFullPath, unless the rule has exactly one match, of type PathPrefix`,
			},
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
		"HeaderValues": {
			reason: "The experimental channel lets blanks stand alone, between other characters.",
			spec:   match(`{headers: [{name: a, value: "b c"}, {name: b, value: "b  c"}, {name: c, type: RegularExpression, value: " c"}]}`),
			want: []string{
				`httproute.rules[0].matches[0].headers[1].value: Invalid value: "b  c": must have visible ASCII characters, with at most one blank between two: the experimental channel of the Gateway API takes no others`,
				`httproute.rules[0].matches[0].headers[2].value: Invalid value: " c": must have visible ASCII characters, with at most one blank between two: the experimental channel of the Gateway API takes no others`,
			},
		},
		"SetValues": {
			reason: "That goes for headers that a filter sets, too.",
			spec:   filter(`{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: "b  c"}], add: [{name: b, value: "b c\td"}]}}`),
			want:   []string{`httproute.rules[0].filters[0].requestHeaderModifier.set[0].value: Invalid value: "b  c": must have visible ASCII characters, with at most one blank between two, and each '%' twice: it begins a format operator in Envoy`},
		},
		"SetValuesStandard": {
			reason:   "The standard channel takes blanks beside each other.",
			standard: true,
			spec:     filter(`{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: "b  c"}], add: [{name: b, value: "b\t c"}]}}`),
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
	crds := definitions(t, "httproutes")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			compareLimit(t, tc, checkedRoute(t, tc.spec, tc.channel()), crds[tc.channel()].Validate([]byte(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: a, namespace: b}, spec: `+tc.spec+`}`)))
		})
	}
}

func TestGatewayLimits(t *testing.T) {
	listener := func(l string) string { return `{gatewayClassName: c, listeners: [` + l + `]}` }
	with := func(fields string) string {
		return `{gatewayClassName: c, listeners: [{name: a, port: 80, protocol: HTTP}], ` + fields + `}`
	}
	addresses := func(list string) string { return with(`addresses: [` + list + `]`) }
	infrastructure := func(fields string) string { return with(`infrastructure: {` + fields + `}`) }
	const notName = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
	const notPrefix = `prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
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
			spec:   addresses(`{value: a.example.com}, {type: Hostname, value: a.example.com}, {value: "::1"}`),
			want:   []string{`gateway.addresses[0].value: Invalid value: "a.example.com": must be an IP address, or have another type, such as Hostname`},
		},
		"AddressTwice": {
			reason: "An address is asked for once. What other types mean is up to the gateway.",
			spec: addresses(`{value: 10.0.0.1}, {value: 10.0.0.2}, {type: IPAddress, value: 10.0.0.1}, {}, {type: IPAddress},
				{type: Hostname, value: "*.example.com"}, {type: Hostname, value: "*.example.com"}, {type: NamedAddress, value: a}, {type: NamedAddress, value: a}`),
			want: []string{
				`gateway.addresses[2].value: Duplicate value: "10.0.0.1"`,
				`gateway.addresses[6].value: Duplicate value: "*.example.com"`,
			},
		},
		"AddressNames": {
			reason: "A host name is one.",
			spec:   addresses(`{type: Hostname, value: A.example.com}, {type: Hostname, value: "a.*"}, {type: Hostname, value: "10.0.0.1"}, {type: NamedAddress, value: A_b}, {type: a.example.com/b, value: A_b}`),
			want: []string{
				`gateway.addresses[0].value: Invalid value: "A.example.com": must be a host name such as llm.example.com or *.example.com: lower case, without scheme, port or path`,
				`gateway.addresses[1].value: Invalid value: "a.*": must be a host name such as llm.example.com or *.example.com: lower case, without scheme, port or path`,
			},
		},
		"AddressEmpty": {
			reason: "Without a value, the gateway assigns one, and an empty one is none.",
			spec:   addresses(`{value: ""}, {type: Hostname, value: ""}, {type: IPAddress, value: ""}, {}, {type: Hostname}`),
			want: []string{
				`gateway.addresses[0].value: Invalid value: "": must not be empty: leave it out to be assigned an address`,
				`gateway.addresses[1].value: Invalid value: "": must not be empty: leave it out to be assigned an address`,
				`gateway.addresses[2].value: Invalid value: "": must not be empty: leave it out to be assigned an address`,
			},
		},
		"AddressEmptyOfOther": {
			reason: "What an empty one means is up to the gateway if its type is another.",
			spec:   addresses(`{type: NamedAddress, value: ""}, {type: NamedAddress, value: ""}, {type: example.com/x, value: ""}`),
		},
		"Infrastructure": {
			reason: "What labels and annotations may be.",
			spec: infrastructure(`labels: {A_b.c: "", a.example.com/` + strings.Repeat("a", 63) + `: ` + strings.Repeat("a", 63) + `},
				annotations: {` + strings.Repeat("a", 252) + `/a: "any text: ` + strings.Repeat("a", 4000) + `", a: ""}`),
		},
		"LabelKeys": {
			reason: "Keys are names, perhaps with a domain before them. It has a character less than Kubernetes allows.",
			spec:   infrastructure(`labels: {a b: x, A.example.com/b: x, /b: x, ` + strings.Repeat("a", 64) + `: x, ` + strings.Repeat("a", 253) + `/a: x}`),
			want: []string{
				`gateway.infrastructure.labels[/b]: Invalid value: "/b": prefix part must be non-empty`,
				`gateway.infrastructure.labels[A.example.com/b]: Invalid value: "A.example.com/b": ` + notPrefix,
				`gateway.infrastructure.labels[a b]: Invalid value: "a b": ` + notName,
				`gateway.infrastructure.labels[` + strings.Repeat("a", 64) + `]: Invalid value: "` + strings.Repeat("a", 64) + `": name part must be no more than 63 bytes`,
				`gateway.infrastructure.labels[` + text.Value(strings.Repeat("a", 253)) + `]: Invalid value: "` + text.Value(strings.Repeat("a", 253)) + `": prefix part must be no more than 252 bytes`,
			},
		},
		"AnnotationKeys": {
			reason: "Those of annotations, too.",
			spec:   infrastructure(`annotations: {"": x, A.example.com/b: x, -a: x}`),
			want: []string{
				`gateway.infrastructure.annotations[-a]: Invalid value: "-a": ` + notName,
				`gateway.infrastructure.annotations[A.example.com/b]: Invalid value: "A.example.com/b": ` + notPrefix,
				`gateway.infrastructure.annotations[]: Invalid value: "": name part must be non-empty`,
			},
		},
		"LabelValues": {
			reason: "Values have limits.",
			spec:   infrastructure(`labels: {a: "-", b: ` + strings.Repeat("a", 64) + `}, annotations: {a: ` + strings.Repeat("a", 4097) + `}`),
			want: []string{
				`gateway.infrastructure.annotations[a]: Too long: may not be more than 4096 characters`,
				`gateway.infrastructure.labels[a]: Invalid value: "-": must match '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'`,
				`gateway.infrastructure.labels[b]: Too long: may not be more than 63 characters`,
			},
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
	crds := definitions(t, "gateways")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			compareLimit(t, tc, checkedGateway(t, tc.spec, tc.channel()), crds[tc.channel()].Validate([]byte(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: a, namespace: b}, spec: `+tc.spec+`}`)))
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
			if errs := checkedRoute(t, doc, inputv1alpha1.Deny); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
}

// TestManyMistakes proves that a route within the limits of its lists, in which nearly everything is wrong, costs only some errors.
func TestManyMistakes(t *testing.T) {
	match := `{headers: ` + repeated(16, "{}") + `, queryParams: ` + repeated(16, "{}") + `}`
	errs := checkedRoute(t, `{parentRefs: [{name: g}], rules: `+repeated(16, `{matches: `+repeated(64, match)+`}`)+`}`, inputv1alpha1.Allow)
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
