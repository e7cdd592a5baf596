package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// What the definitions of HTTPRoute and Gateway (v1.6) refuse, so that the API server
// need not: Crossplane would stop half-way through its own apply. They are written here by
// hand. Their own rules need CEL: 7 MB more of binary, 5 MB of heap, most of a second at
// each start, and a budget for each call. TestRouteLimits and TestGatewayLimits hold what
// is here against the definitions.
const (
	maxRouteParents    = 32
	maxRouteHostnames  = 16
	maxRouteRules      = 16
	maxRuleMatches     = 64
	maxRouteMatches    = 128
	maxRuleFilters     = 16
	maxRuleBackends    = 16
	maxMatchHeaders    = 16
	maxFilterHeaders   = 16
	maxBackendWeight   = 1000000
	maxListeners       = 64
	maxAddresses       = 16
	maxCertificateRefs = 64
)

// routeLimits checks a route, as far as its limits go: what is above them is not looked at.
func routeLimits(path *field.Path, spec *gateway.HTTPRouteSpec) field.ErrorList {
	parents, errs := check.Capped(path.Child("parentRefs"), spec.ParentRefs, maxRouteParents)
	errs = append(errs, parentsApart(path.Child("parentRefs"), parents)...)
	_, more := check.Capped(path.Child("hostnames"), spec.Hostnames, maxRouteHostnames)
	errs = append(errs, more...)
	rules, more := check.Capped(path.Child("rules"), spec.Rules, maxRouteRules)
	errs = append(errs, more...)
	matches, names := 0, map[gateway.SectionName]bool{}
	for i := range rules {
		rule, at := &rules[i], path.Child("rules").Index(i)
		errs = append(errs, ruleLimits(at, rule)...)
		if rule.Name != nil && names[*rule.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), check.Shown(string(*rule.Name))))
		} else if rule.Name != nil {
			names[*rule.Name] = true
		}
		matches += len(rule.Matches)
	}
	if matches > maxRouteMatches {
		errs = append(errs, field.Invalid(path.Child("rules"), matches, fmt.Sprintf("must have at most %d matches in all rules together", maxRouteMatches)))
	}
	return errs
}

// parentsApart checks that a parent that is named twice is named by different sections
// or ports.
func parentsApart(path *field.Path, refs []gateway.ParentReference) field.ErrorList {
	var errs field.ErrorList
	for i := range refs {
		for j := range i {
			a, b := refs[j], refs[i]
			if !sameParent(a, b) {
				continue
			}
			section := deref(a.SectionName) == deref(b.SectionName) || deref(a.SectionName) == "" || deref(b.SectionName) == ""
			port := deref(a.Port) == deref(b.Port) || deref(a.Port) == 0 || deref(b.Port) == 0
			if section && port {
				errs = append(errs, field.Invalid(path.Index(i), check.Shown(string(b.Name)), fmt.Sprintf("must have another sectionName or port than %s, which is of the same gateway", path.Index(j))))
				break
			}
		}
	}
	return errs
}

func sameParent(a, b gateway.ParentReference) bool {
	return a.Name == b.Name && deref(a.Namespace) == deref(b.Namespace) &&
		cmp.Or(deref(a.Kind), "Gateway") == cmp.Or(deref(b.Kind), "Gateway") &&
		cmp.Or(deref(a.Group), gateway.GroupName) == cmp.Or(deref(b.Group), gateway.GroupName)
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func ruleLimits(path *field.Path, rule *gateway.HTTPRouteRule) field.ErrorList {
	matches, errs := check.Capped(path.Child("matches"), rule.Matches, maxRuleMatches)
	for i := range matches {
		errs = append(errs, matchLimits(path.Child("matches").Index(i), &matches[i])...)
	}
	errs = append(errs, filterLimits(path.Child("filters"), rule.Filters)...)
	backends, more := check.Capped(path.Child("backendRefs"), rule.BackendRefs, maxRuleBackends)
	errs = append(errs, more...)
	for i := range backends {
		b, at := &backends[i], path.Child("backendRefs").Index(i)
		if b.Weight != nil {
			errs = append(errs, check.Between(at.Child("weight"), *b.Weight, 0, maxBackendWeight)...)
		}
		errs = append(errs, backendPort(at, &b.BackendObjectReference)...)
		errs = append(errs, filterLimits(at.Child("filters"), b.Filters)...)
	}
	if len(rule.BackendRefs) > 0 && slices.ContainsFunc(rule.Filters, func(f gateway.HTTPRouteFilter) bool { return f.Type == gateway.HTTPRouteFilterRequestRedirect }) {
		errs = append(errs, field.Forbidden(path.Child("backendRefs"), "must be left out where a filter redirects the request: nothing reaches a backend"))
	}
	if t := rule.Timeouts; t != nil {
		errs = append(errs, timeoutLimits(path.Child("timeouts", "backendRequest"), t)...)
	}
	return errs
}

// backendPort checks a Service's. The pool has its own, in whatever form it is named.
func backendPort(path *field.Path, b *gateway.BackendObjectReference) field.ErrorList {
	if b.Port != nil {
		return check.Between(path.Child("port"), *b.Port, 1, 65535)
	}
	if deref(b.Group) == "" && cmp.Or(deref(b.Kind), "Service") == "Service" && b.Name != "" && !strings.HasSuffix(string(b.Name), "-pool") {
		return field.ErrorList{field.Required(path.Child("port"), "a Service as a backend needs the port of it")}
	}
	return nil
}

func timeoutLimits(path *field.Path, t *gateway.HTTPRouteTimeouts) field.ErrorList {
	if t.Request == nil || t.BackendRequest == nil {
		return nil
	}
	all, err := time.ParseDuration(string(*t.Request))
	one, wrong := time.ParseDuration(string(*t.BackendRequest))
	if err != nil || wrong != nil || all == 0 || one <= all {
		return nil // What is no duration has its own error.
	}
	return field.ErrorList{field.Invalid(path, check.Shown(string(*t.BackendRequest)), fmt.Sprintf("must be at most the timeout of the whole request, %s", *t.Request))}
}

var methods = []gateway.HTTPMethod{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

func matchLimits(path *field.Path, m *gateway.HTTPRouteMatch) field.ErrorList {
	_, errs := check.Capped(path.Child("headers"), m.Headers, maxMatchHeaders)
	_, more := check.Capped(path.Child("queryParams"), m.QueryParams, maxMatchHeaders)
	errs = append(errs, more...)
	errs = append(errs, check.OneOf(path.Child("method"), deref(m.Method), methods...)...)
	if m.Path == nil {
		return errs
	}
	at := path.Child("path")
	errs = append(errs, check.OneOf(at.Child("type"), deref(m.Path.Type), gateway.PathMatchExact, gateway.PathMatchPathPrefix, gateway.PathMatchRegularExpression)...)
	if m.Path.Value != nil && deref(m.Path.Type) != gateway.PathMatchRegularExpression && !plainPath(*m.Path.Value) {
		errs = append(errs, field.Invalid(at.Child("value"), check.Shown(*m.Path.Value), "must start with '/', be in the characters of a URL, and have no empty part, no '.' and no '..' between slashes, and no '#' or '%2f'"))
	}
	return errs
}

// plainPath tells a path that a gateway need not normalize.
func plainPath(p string) bool {
	for _, never := range []string{"//", "/./", "/../", "%2f", "%2F", "#"} {
		if strings.Contains(p, never) {
			return false
		}
	}
	if !strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..") || len(p) > 1024 {
		return false
	}
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-/._~!$&'()*+,;=:@", c) >= 0:
		case c == '%' && i+2 < len(p) && isHex(p[i+1]) && isHex(p[i+2]):
			i += 2
		default:
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// once are the filters of which a rule or backend has one at most.
var once = []gateway.HTTPRouteFilterType{
	gateway.HTTPRouteFilterRequestHeaderModifier, gateway.HTTPRouteFilterResponseHeaderModifier,
	gateway.HTTPRouteFilterRequestRedirect, gateway.HTTPRouteFilterURLRewrite, gateway.HTTPRouteFilterCORS,
}

func filterLimits(path *field.Path, filters []gateway.HTTPRouteFilter) field.ErrorList {
	filters, errs := check.Capped(path, filters, maxRuleFilters)
	seen := map[gateway.HTTPRouteFilterType]bool{}
	for i := range filters {
		f, at := &filters[i], path.Index(i)
		errs = append(errs, filterUnion(at, f)...)
		if seen[f.Type] && slices.Contains(once, f.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), check.Shown(string(f.Type))))
		}
		seen[f.Type] = true
		errs = append(errs, headerLimits(at.Child("requestHeaderModifier"), f.RequestHeaderModifier)...)
		errs = append(errs, headerLimits(at.Child("responseHeaderModifier"), f.ResponseHeaderModifier)...)
	}
	if seen[gateway.HTTPRouteFilterRequestRedirect] && seen[gateway.HTTPRouteFilterURLRewrite] {
		errs = append(errs, field.Forbidden(path, "must not have both a RequestRedirect and a URLRewrite: one of them has no effect"))
	}
	return errs
}

// filterUnion checks that a filter has the field of its type and no other. A type that
// is younger than the types here is for the cluster to judge.
func filterUnion(path *field.Path, f *gateway.HTTPRouteFilter) field.ErrorList {
	if f.Type == "" {
		return field.ErrorList{field.Required(path.Child("type"), "must be the kind of filter, such as RequestHeaderModifier")}
	}
	var errs field.ErrorList
	v := reflect.ValueOf(f).Elem()
	for i := 1; i < v.NumField(); i++ {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		mine := strings.EqualFold(name, string(f.Type))
		switch set := !v.Field(i).IsNil(); {
		case mine && !set:
			errs = append(errs, field.Required(path.Child(name), "must be there for a filter of type "+string(f.Type)))
		case set && !mine:
			errs = append(errs, field.Forbidden(path.Child(name), "must be left out of a filter of type "+check.Shown(string(f.Type))))
		}
	}
	return errs
}

func headerLimits(path *field.Path, h *gateway.HTTPHeaderFilter) field.ErrorList {
	if h == nil {
		return nil
	}
	_, errs := check.Capped(path.Child("set"), h.Set, maxFilterHeaders)
	_, more := check.Capped(path.Child("add"), h.Add, maxFilterHeaders)
	errs = append(errs, more...)
	_, more = check.Capped(path.Child("remove"), h.Remove, maxFilterHeaders)
	return append(errs, more...)
}

// gatewayLimits checks a gateway, as far as its limits go.
func gatewayLimits(path *field.Path, spec *gateway.GatewaySpec) field.ErrorList {
	_, errs := check.Capped(path.Child("addresses"), spec.Addresses, maxAddresses)
	listeners, more := check.Capped(path.Child("listeners"), spec.Listeners, maxListeners)
	errs = append(errs, more...)
	seen := map[string]int{}
	for i := range listeners {
		l, at := &listeners[i], path.Child("listeners").Index(i)
		id := fmt.Sprintf("%d %s %s", l.Port, l.Protocol, deref(l.Hostname))
		if j, twice := seen[id]; twice {
			errs = append(errs, field.Invalid(at, check.Shown(string(l.Name)), fmt.Sprintf("must have another port, protocol or hostname than %s", path.Child("listeners").Index(j))))
		} else {
			seen[id] = i
		}
		errs = append(errs, listenerLimits(at, l)...)
	}
	return errs
}

func listenerLimits(path *field.Path, l *gateway.Listener) field.ErrorList {
	var errs field.ErrorList
	tcp := l.Protocol == gateway.TCPProtocolType || l.Protocol == gateway.UDPProtocolType
	if tcp && deref(l.Hostname) != "" {
		errs = append(errs, field.Forbidden(path.Child("hostname"), fmt.Sprintf("must be left out of a listener of protocol %s", l.Protocol)))
	}
	at := path.Child("tls")
	switch {
	case l.TLS == nil && l.Protocol == gateway.TLSProtocolType:
		return append(errs, field.Required(at.Child("mode"), "must be Terminate or Passthrough for protocol TLS"))
	case l.TLS == nil:
		return errs
	case tcp || l.Protocol == gateway.HTTPProtocolType:
		return append(errs, field.Forbidden(at, fmt.Sprintf("must be left out of a listener of protocol %s", l.Protocol)))
	}
	mode := cmp.Or(deref(l.TLS.Mode), gateway.TLSModeTerminate)
	errs = append(errs, check.OneOf(at.Child("mode"), mode, gateway.TLSModeTerminate, gateway.TLSModePassthrough)...)
	if l.Protocol == gateway.HTTPSProtocolType && mode == gateway.TLSModePassthrough {
		errs = append(errs, field.Invalid(at.Child("mode"), mode, "must be Terminate for protocol HTTPS"))
	}
	if mode == gateway.TLSModeTerminate && len(l.TLS.CertificateRefs) == 0 && len(l.TLS.Options) == 0 {
		errs = append(errs, field.Required(at.Child("certificateRefs"), "must name a certificate where the listener terminates TLS"))
	}
	_, more := check.Capped(at.Child("certificateRefs"), l.TLS.CertificateRefs, maxCertificateRefs)
	return append(errs, more...)
}
