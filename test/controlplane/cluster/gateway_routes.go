package cluster

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A gatewayConfig is what the data plane goes by. It is not changed any more once it is made.
type gatewayConfig struct {
	// gateways and pools by namespace and name.
	gateways map[string]*gatewayListeners
	pools    map[string]*inference.InferencePool
	// hosts are the addresses of ServiceEntries by their host names.
	hosts map[string][]string
}

// gatewayListeners are those of one Gateway, in its order.
type gatewayListeners struct {
	created   time.Time
	listeners []*listener
	// retries of a request that cannot be connected.
	retries int
}

// A listener and the routes that are attached to it.
type listener struct {
	gatewayv1.Listener
	hostname string
	// candidates are in their order of precedence, apart from their host names.
	candidates []*candidate
}

// A candidate is one match of one rule of a route.
type candidate struct {
	// hostnames that the route and the listener have in common; an empty one means all.
	hostnames []string
	match     routeMatch
	rule      *rule
}

// A rule of a route.
type rule struct {
	gatewayv1.HTTPRouteRule
	namespace string
	// request and backendRequest are its time-outs; 0 means none.
	request, backendRequest time.Duration
}

// configOf returns what the data plane goes by. What cannot be decoded is left out, as are routes
// that name no listener.
func configOf(w snapshot) *gatewayConfig {
	c := &gatewayConfig{gateways: map[string]*gatewayListeners{}, pools: map[string]*inference.InferencePool{}, hosts: map[string][]string{}}
	for at, o := range w[gateways] {
		if g, ok := decoded[gatewayv1.Gateway](o); ok {
			c.gateways[at] = &gatewayListeners{created: g.CreationTimestamp.Time}
			for i := range g.Spec.Listeners {
				l := g.Spec.Listeners[i]
				c.gateways[at].listeners = append(c.gateways[at].listeners, &listener{Listener: l, hostname: strings.ToLower(string(ptr.Deref(l.Hostname, "")))})
			}
		}
	}
	for _, o := range w[policies] {
		c.addPolicy(o)
	}
	for at, o := range w[pools] {
		if p, ok := decoded[inference.InferencePool](o); ok {
			c.pools[at] = p
		}
	}
	for _, at := range slices.Sorted(maps.Keys(w[entries])) {
		c.addEntry(w[entries][at])
	}
	for _, r := range routesOf(w) {
		c.attach(r)
	}
	for _, g := range c.gateways {
		for _, l := range g.listeners {
			// It is stable: routes keep their order, and rules theirs within a route.
			slices.SortStableFunc(l.candidates, func(a, b *candidate) int { return a.match.precedes(&b.match) })
		}
	}
	return c
}

// addEntry adds the hosts of a ServiceEntry.
func (c *gatewayConfig) addEntry(o *unstructured.Unstructured) {
	hosts, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "hosts")
	endpoints, _, _ := unstructured.NestedSlice(o.Object, "spec", "endpoints")
	for _, h := range hosts {
		for _, e := range objects(endpoints) {
			c.hosts[h] = append(c.hosts[h], text(e, "address", ""))
		}
	}
}

// routesOf are all routes. Of those that match a request equally well, the first one takes it.
func routesOf(w snapshot) []*gatewayv1.HTTPRoute {
	var all []*gatewayv1.HTTPRoute
	for _, o := range w[routes] {
		if r, ok := decoded[gatewayv1.HTTPRoute](o); ok {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *gatewayv1.HTTPRoute) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	return all
}

func decoded[T any](o *unstructured.Unstructured) (*T, bool) {
	into := new(T)
	return into, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into) == nil
}

// attach adds a route to all listeners that it names.
func (c *gatewayConfig) attach(r *gatewayv1.HTTPRoute) {
	var rules []*rule
	for i := range r.Spec.Rules {
		of := &rule{HTTPRouteRule: r.Spec.Rules[i], namespace: r.Namespace}
		if t := of.Timeouts; t != nil {
			of.request, of.backendRequest = duration(t.Request), duration(t.BackendRequest)
		}
		rules = append(rules, of)
	}
	attached := map[*listener]bool{}
	for _, ref := range r.Spec.ParentRefs {
		if ptr.Deref(ref.Kind, "Gateway") != "Gateway" {
			continue
		}
		g := c.gateways[string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(r.Namespace)))+"/"+string(ref.Name)]
		if g == nil {
			continue
		}
		for _, l := range g.listeners {
			named := ptr.Deref(ref.SectionName, l.Name) == l.Name && ptr.Deref(ref.Port, l.Port) == l.Port
			hostnames := l.common(r.Spec.Hostnames)
			if !named || len(hostnames) == 0 || attached[l] {
				continue
			}
			attached[l] = true
			l.add(hostnames, rules)
		}
	}
}

func (l *listener) add(hostnames []string, rules []*rule) {
	for _, r := range rules {
		matches := r.Matches
		if len(matches) == 0 {
			matches = []gatewayv1.HTTPRouteMatch{{}}
		}
		for i := range matches {
			if m, ok := compileMatch(&matches[i]); ok {
				l.candidates = append(l.candidates, &candidate{hostnames: hostnames, match: m, rule: r})
			}
		}
	}
}

func duration(d *gatewayv1.Duration) time.Duration {
	v, err := time.ParseDuration(string(ptr.Deref(d, "0s")))
	if err != nil {
		return 0
	}
	return v
}

// common are the host names that a listener and a route have in common.
func (l *listener) common(of []gatewayv1.Hostname) []string {
	if len(of) == 0 {
		return []string{l.hostname}
	}
	var all []string
	for _, h := range of {
		h := strings.ToLower(string(h))
		if _, _, ok := hostScore(l.hostname, h); ok {
			all = append(all, h)
		} else if _, _, ok := hostScore(h, l.hostname); ok {
			all = append(all, l.hostname)
		}
	}
	return all
}

// hostScore tells whether a pattern matches a host name, and how well: by its characters if it has
// no wildcard, else by those of the pattern. A wildcard host name is matched by itself and by
// wider ones.
func hostScore(pattern, host string) (precise, wild int, ok bool) {
	switch suffix, isWild := strings.CutPrefix(pattern, "*"); {
	case pattern == "":
		return 0, 0, true
	case pattern == host:
		return len(pattern), len(pattern), true
	case isWild && strings.HasSuffix(host, suffix) && len(host) > len(suffix):
		return 0, len(pattern), true
	}
	return 0, 0, false
}

// findListener returns the listener of a host name: the one whose own matches best.
func findListener(all []*listener, host string) *listener {
	var best *listener
	most := [2]int{-1, -1}
	for _, l := range all {
		if precise, wild, ok := hostScore(l.hostname, host); ok && slices.Compare([]int{precise, wild}, most[:]) > 0 {
			best, most = l, [2]int{precise, wild}
		}
	}
	return best
}

// find returns the candidate that takes a request, or nil. A better match of the host name comes
// before anything else.
func (l *listener) find(host string, r *http.Request) *candidate {
	var best *candidate
	most := [2]int{-1, -1}
	for _, c := range l.candidates {
		for _, h := range c.hostnames {
			precise, wild, ok := hostScore(h, host)
			if ok && slices.Compare([]int{precise, wild}, most[:]) > 0 && c.match.matches(r) {
				best, most = c, [2]int{precise, wild}
			}
		}
	}
	return best
}

// A routeMatch is a match that is ready to be used.
type routeMatch struct {
	method string
	// Only one of these is set; prefix has no slash at its end.
	exact, prefix string
	path          *regexp.Regexp
	kind          pathKind
	length        int

	headers, query []valueMatch
}

type pathKind int

// In the order of precedence. The Gateway API leaves the place of regular expressions open.
const (
	exactPath pathKind = iota
	regexPath
	prefixPath
)

type valueMatch struct {
	name, exact string
	regex       *regexp.Regexp
}

// compileMatch fails for a regular expression that is none.
func compileMatch(of *gatewayv1.HTTPRouteMatch) (m routeMatch, ok bool) {
	m.method = string(ptr.Deref(of.Method, ""))
	path := ptr.Deref(of.Path, gatewayv1.HTTPPathMatch{})
	value := ptr.Deref(path.Value, "/")
	m.length = len(value)
	var err error
	switch ptr.Deref(path.Type, gatewayv1.PathMatchPathPrefix) {
	case gatewayv1.PathMatchExact:
		m.kind, m.exact = exactPath, value
	case gatewayv1.PathMatchRegularExpression:
		m.kind = regexPath
		m.path, err = whole(value)
	default:
		m.kind, m.prefix = prefixPath, strings.TrimSuffix(value, "/")
	}
	if err != nil {
		return m, false
	}
	for _, h := range of.Headers {
		if m.headers, ok = addValue(m.headers, http.CanonicalHeaderKey(string(h.Name)), h.Value,
			ptr.Deref(h.Type, gatewayv1.HeaderMatchExact) == gatewayv1.HeaderMatchRegularExpression); !ok {
			return m, false
		}
	}
	for _, q := range of.QueryParams {
		if m.query, ok = addValue(m.query, string(q.Name), q.Value,
			ptr.Deref(q.Type, gatewayv1.QueryParamMatchExact) == gatewayv1.QueryParamMatchRegularExpression); !ok {
			return m, false
		}
	}
	return m, true
}

// addValue adds a match of a value, unless there is one of the same name.
func addValue(all []valueMatch, name, value string, isRegex bool) ([]valueMatch, bool) {
	if slices.ContainsFunc(all, func(v valueMatch) bool { return v.name == name }) {
		return all, true
	}
	v := valueMatch{name: name, exact: value}
	if isRegex {
		var err error
		if v.regex, err = whole(value); err != nil {
			return all, false
		}
	}
	return append(all, v), true
}

// whole is a regular expression for a whole text.
func whole(value string) (*regexp.Regexp, error) { return regexp.Compile("^(?:" + value + ")$") }

// precedes orders matches as the Gateway API does.
func (m *routeMatch) precedes(other *routeMatch) int {
	method := func(m *routeMatch) int { return min(len(m.method), 1) }
	return cmp.Or(
		cmp.Compare(m.kind, other.kind),
		cmp.Compare(other.length, m.length),
		cmp.Compare(method(other), method(m)),
		cmp.Compare(len(other.headers), len(m.headers)),
		cmp.Compare(len(other.query), len(m.query)),
	)
}

func (m *routeMatch) matches(r *http.Request) bool {
	if m.method != "" && m.method != r.Method || !m.matchesPath(r.URL.EscapedPath()) {
		return false
	}
	for _, h := range m.headers {
		if v := r.Header.Values(h.name); len(v) == 0 || !h.matches(strings.Join(v, ",")) {
			return false
		}
	}
	if len(m.query) == 0 {
		return true
	}
	given := r.URL.Query()
	return !slices.ContainsFunc(m.query, func(q valueMatch) bool {
		return !given.Has(q.name) || !q.matches(given.Get(q.name))
	})
}

func (m *routeMatch) matchesPath(path string) bool {
	switch m.kind {
	case exactPath:
		return path == m.exact
	case regexPath:
		return m.path.MatchString(path)
	case prefixPath:
	}
	rest, ok := strings.CutPrefix(path, m.prefix)
	return ok && (rest == "" || rest[0] == '/')
}

func (v *valueMatch) matches(value string) bool {
	if v.regex != nil {
		return v.regex.MatchString(value)
	}
	return v.exact == value
}
