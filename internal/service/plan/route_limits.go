package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Limits of the HTTPRoute and Gateway CRDs (v1.6). An object beyond them is refused here, because
// Crossplane would stop halfway through applying if the API server refused it. The limits are
// copied by hand, because the CRDs' own rules need CEL. CEL costs 7 MB of binary, 5 MB of heap,
// most of a second at each start, and a budget for each call. TestRouteLimits and
// TestGatewayLimits compare the limits with the CRDs.
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

// routeLimits checks a route against the limits. Elements of a list beyond its limit are skipped.
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
			errs = append(errs, field.Duplicate(at.Child("name"), text.Value(string(*rule.Name))))
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

// parentsApart checks that references to the same parent differ in section or port.
func parentsApart(path *field.Path, refs []gateway.ParentReference) field.ErrorList {
	var errs field.ErrorList
	for i := range refs {
		for j := range i {
			a, b := refs[j], refs[i]
			first, second := parentOfRoute(&a), parentOfRoute(&b)
			section := first.section == second.section || first.section == "" || second.section == ""
			if first.section, second.section = "", ""; first != second {
				continue
			}
			port := ptr.Deref(a.Port, 0) == ptr.Deref(b.Port, 0) || ptr.Deref(a.Port, 0) == 0 || ptr.Deref(b.Port, 0) == 0
			if section && port {
				errs = append(errs, field.Invalid(path.Index(i), text.Value(string(b.Name)), fmt.Sprintf("must have another sectionName or port than %s, which names the same gateway", path.Index(j))))
				break
			}
		}
	}
	return errs
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
		errs = append(errs, field.Forbidden(path.Child("backendRefs"), "must be left out of a rule with a RequestRedirect: redirected requests reach no backend"))
	}
	if t := rule.Timeouts; t != nil {
		errs = append(errs, timeoutLimits(path.Child("timeouts", "backendRequest"), t)...)
	}
	return errs
}

// backendPort requires a port of a Service. The pool brings its own, so backends that may mean the
// pool need none.
func backendPort(path *field.Path, b *gateway.BackendObjectReference) field.ErrorList {
	if b.Port != nil {
		return check.Port(path.Child("port"), *b.Port)
	}
	if ptr.Deref(b.Group, "") == "" && cmp.Or(ptr.Deref(b.Kind, ""), "Service") == "Service" && b.Name != "" && !strings.HasSuffix(string(b.Name), naming.PoolSuffix) {
		return field.ErrorList{field.Required(path.Child("port"), "must be the port of the Service")}
	}
	return nil
}

func timeoutLimits(path *field.Path, t *gateway.HTTPRouteTimeouts) field.ErrorList {
	if t.Request == nil || t.BackendRequest == nil {
		return nil
	}
	request, err := time.ParseDuration(string(*t.Request))
	backend, wrong := time.ParseDuration(string(*t.BackendRequest))
	if err != nil || wrong != nil || request == 0 || backend <= request {
		return nil // An invalid duration has its own error.
	}
	return field.ErrorList{field.Invalid(path, text.Value(string(*t.BackendRequest)), fmt.Sprintf("must be at most the timeout of the whole request, %s", *t.Request))}
}

var methods = []gateway.HTTPMethod{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

func matchLimits(path *field.Path, m *gateway.HTTPRouteMatch) field.ErrorList {
	_, errs := check.Capped(path.Child("headers"), m.Headers, maxMatchHeaders)
	_, more := check.Capped(path.Child("queryParams"), m.QueryParams, maxMatchHeaders)
	errs = append(errs, more...)
	errs = append(errs, check.OneOf(path.Child("method"), ptr.Deref(m.Method, ""), methods...)...)
	if m.Path == nil {
		return errs
	}
	at := path.Child("path")
	errs = append(errs, check.OneOf(at.Child("type"), ptr.Deref(m.Path.Type, ""), gateway.PathMatchExact, gateway.PathMatchPathPrefix, gateway.PathMatchRegularExpression)...)
	if m.Path.Value != nil && ptr.Deref(m.Path.Type, "") != gateway.PathMatchRegularExpression && !plainPath(*m.Path.Value) {
		errs = append(errs, field.Invalid(at.Child("value"), text.Value(*m.Path.Value), messagePlainPath))
	}
	return errs
}

const messagePlainPath = "must start with '/', be in the characters of a URL, and have no empty part, no '.' and no '..' between slashes, and no '#' or '%2f'"

// plainPath tells whether a path is valid without normalization.
func plainPath(p string) bool {
	for _, forbidden := range []string{"//", "/./", "/../", "%2f", "%2F", "#"} {
		if strings.Contains(p, forbidden) {
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

// atMostOnce are the filters that a rule or backend may have at most once.
var atMostOnce = []gateway.HTTPRouteFilterType{
	gateway.HTTPRouteFilterRequestHeaderModifier, gateway.HTTPRouteFilterResponseHeaderModifier,
	gateway.HTTPRouteFilterRequestRedirect, gateway.HTTPRouteFilterURLRewrite, gateway.HTTPRouteFilterCORS,
}

func filterLimits(path *field.Path, filters []gateway.HTTPRouteFilter) field.ErrorList {
	filters, errs := check.Capped(path, filters, maxRuleFilters)
	types := map[gateway.HTTPRouteFilterType]bool{}
	for i := range filters {
		f, at := &filters[i], path.Index(i)
		errs = append(errs, filterUnion(at, f)...)
		if types[f.Type] && slices.Contains(atMostOnce, f.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), text.Value(string(f.Type))))
		}
		types[f.Type] = true
		errs = append(errs, headerLimits(at.Child("requestHeaderModifier"), f.RequestHeaderModifier)...)
		errs = append(errs, headerLimits(at.Child("responseHeaderModifier"), f.ResponseHeaderModifier)...)
	}
	if types[gateway.HTTPRouteFilterRequestRedirect] && types[gateway.HTTPRouteFilterURLRewrite] {
		errs = append(errs, field.Forbidden(path, "must not have both a RequestRedirect and a URLRewrite: one of them has no effect"))
	}
	return errs
}

// filterUnion checks that a filter has the field of its type and no other. For a type that the Go
// types do not have, the cluster decides.
func filterUnion(path *field.Path, f *gateway.HTTPRouteFilter) field.ErrorList {
	if f.Type == "" {
		return field.ErrorList{field.Required(path.Child("type"), "must be the kind of filter, such as RequestHeaderModifier")}
	}
	var errs field.ErrorList
	v := reflect.ValueOf(f).Elem()
	for i := 1; i < v.NumField(); i++ {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		ofType := strings.EqualFold(name, string(f.Type))
		switch set := !v.Field(i).IsNil(); {
		case ofType && !set:
			errs = append(errs, field.Required(path.Child(name), "must be set for a filter of type "+string(f.Type)))
		case set && !ofType:
			errs = append(errs, field.Forbidden(path.Child(name), "must be left out of a filter of type "+text.Value(string(f.Type))))
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

// gatewayLimits checks a Gateway against the limits.
func gatewayLimits(path *field.Path, spec *gateway.GatewaySpec) field.ErrorList {
	_, errs := check.Capped(path.Child("addresses"), spec.Addresses, maxAddresses)
	listeners, more := check.Capped(path.Child("listeners"), spec.Listeners, maxListeners)
	errs = append(errs, more...)
	listenerAt := map[string]int{}
	for i := range listeners {
		l, at := &listeners[i], path.Child("listeners").Index(i)
		id := fmt.Sprintf("%d %s %s", l.Port, l.Protocol, ptr.Deref(l.Hostname, ""))
		if j, twice := listenerAt[id]; twice {
			errs = append(errs, field.Invalid(at, text.Value(string(l.Name)), fmt.Sprintf("must have another port, protocol or hostname than %s", path.Child("listeners").Index(j))))
		} else {
			listenerAt[id] = i
		}
		errs = append(errs, listenerLimits(at, l)...)
	}
	return errs
}

func listenerLimits(path *field.Path, l *gateway.Listener) field.ErrorList {
	var errs field.ErrorList
	tcp := l.Protocol == gateway.TCPProtocolType || l.Protocol == gateway.UDPProtocolType
	if tcp && ptr.Deref(l.Hostname, "") != "" {
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
	mode := cmp.Or(ptr.Deref(l.TLS.Mode, ""), gateway.TLSModeTerminate)
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
