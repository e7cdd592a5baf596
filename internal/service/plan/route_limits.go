package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// How many rules an HTTPRoute may have, and how many matches one of them, and all together.
const (
	maxRouteRules   = 16
	maxRuleMatches  = 64
	maxRouteMatches = 128
)

// routeLimits checks what the HTTPRoute CRD (v1.6) has rules of CEL for. An object against them is refused here, because Crossplane
// would stop halfway through applying if the API server refused it. experimental tells that clusters have the experimental channel, whose
// rules differ. TestRouteLimits and TestRandomRoutes compare with the CRDs of both.
func routeLimits(path *field.Path, spec *gateway.HTTPRouteSpec, experimental bool) field.ErrorList {
	errs := parentsApart(path.Child("parentRefs"), spec.ParentRefs, experimental)
	matches, names := 0, map[gateway.SectionName]bool{}
	for i := range spec.Rules {
		rule, at := &spec.Rules[i], path.Child("rules").Index(i)
		errs = append(errs, ruleLimits(at, rule, experimental)...)
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

// parentsApart checks that references to the same parent are told apart, by sections alone or by sections and ports.
func parentsApart(path *field.Path, refs []gateway.ParentReference, byPort bool) field.ErrorList {
	var errs field.ErrorList
	for i := range refs {
		if j := slices.IndexFunc(refs[:i], func(r gateway.ParentReference) bool { return collide(&r, &refs[i], byPort) }); j >= 0 {
			errs = append(errs, field.Invalid(path.Index(i), text.Value(string(refs[i].Name)), tellApart(path.Index(j), &refs[j], &refs[i], byPort)))
		}
	}
	return errs
}

// tellApart says what tells a reference from an earlier one to the same gateway, which is at the path.
func tellApart(at *field.Path, earlier, ref *gateway.ParentReference, byPort bool) string {
	switch {
	case byPort:
		return fmt.Sprintf("must have another sectionName or port than %s, which names the same gateway, and each of the two only if that has it too", at)
	case earlier.Port != nil || ref.Port != nil:
		return fmt.Sprintf("must have another sectionName than %s, which names the same gateway, and both need one: only the experimental channel of the Gateway API tells them apart by port. Where all clusters have it, the platform team can set routes.experimentalFields of the Composition's input to Allow", at)
	}
	return fmt.Sprintf("must have another sectionName than %s, which names the same gateway, and both need one", at)
}

// collide tells whether two references name the same parent, and nothing tells them apart.
func collide(a, b *gateway.ParentReference, byPort bool) bool {
	first, second := parentOfRoute(a), parentOfRoute(b)
	at, other := check.Attachment{Section: first.section, Port: ptr.Deref(a.Port, 0)}, check.Attachment{Section: second.section, Port: ptr.Deref(b.Port, 0)}
	first.section, second.section = "", ""
	return first == second && at.Collides(other, byPort)
}

func ruleLimits(path *field.Path, rule *gateway.HTTPRouteRule, experimental bool) field.ErrorList {
	var errs field.ErrorList
	for i := range rule.Matches {
		errs = append(errs, matchLimits(path.Child("matches").Index(i), &rule.Matches[i], experimental)...)
	}
	onePrefix, replacing := matchesOnePrefix(rule.Matches), map[gateway.HTTPRouteFilterType]int{}
	for i := range rule.BackendRefs {
		for _, f := range rule.BackendRefs[i].Filters {
			if replacesPrefix(f) {
				replacing[f.Type]++
			}
		}
	}
	// The CRD's rules count the backends with a filter, and are silent about several.
	silent := replacing[gateway.HTTPRouteFilterRequestRedirect] != 1 && replacing[gateway.HTTPRouteFilterURLRewrite] != 1
	errs = append(errs, filterLimits(path.Child("filters"), rule.Filters, onePrefix)...)
	for i := range rule.BackendRefs {
		b, at := &rule.BackendRefs[i], path.Child("backendRefs").Index(i)
		errs = append(errs, filterLimits(at.Child("filters"), b.Filters, onePrefix || silent)...)
	}
	if len(rule.BackendRefs) > 0 && slices.ContainsFunc(rule.Filters, func(f gateway.HTTPRouteFilter) bool { return f.Type == gateway.HTTPRouteFilterRequestRedirect }) {
		errs = append(errs, field.Forbidden(path.Child("backendRefs"), "must be left out of a rule with a RequestRedirect: redirected requests reach no backend"))
	}
	if t := rule.Timeouts; t != nil {
		errs = append(errs, timeoutLimits(path.Child("timeouts", "backendRequest"), t)...)
	}
	return append(errs, sessionLimits(path.Child("sessionPersistence"), rule.SessionPersistence)...)
}

// matchesOnePrefix tells whether a rule has one match, which is by a prefix of the path. Without matches, and in a match without a path,
// that is the prefix /.
func matchesOnePrefix(matches []gateway.HTTPRouteMatch) bool {
	if matches == nil {
		return true
	}
	return len(matches) == 1 && (matches[0].Path == nil || ptr.Deref(matches[0].Path.Type, gateway.PathMatchPathPrefix) == gateway.PathMatchPathPrefix)
}

func replacesPrefix(f gateway.HTTPRouteFilter) bool {
	is := func(m *gateway.HTTPPathModifier) bool {
		return m != nil && m.Type == gateway.PrefixMatchHTTPPathModifier
	}
	return f.URLRewrite != nil && is(f.URLRewrite.Path) || f.RequestRedirect != nil && is(f.RequestRedirect.Path)
}

func sessionLimits(path *field.Path, s *gateway.SessionPersistence) field.ErrorList {
	if s == nil || s.CookieConfig == nil {
		return nil
	}
	var errs field.ErrorList
	if ptr.Deref(s.Type, gateway.CookieBasedSessionPersistence) != gateway.CookieBasedSessionPersistence {
		errs = append(errs, field.Forbidden(path.Child("cookieConfig"), "must be left out of sessions that are not of type Cookie"))
	}
	if ptr.Deref(s.CookieConfig.LifetimeType, "") == gateway.PermanentCookieLifetimeType && s.AbsoluteTimeout == nil {
		errs = append(errs, field.Required(path.Child("absoluteTimeout"), "must be set for cookies of lifetimeType Permanent"))
	}
	return errs
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

func matchLimits(path *field.Path, m *gateway.HTTPRouteMatch, experimental bool) field.ErrorList {
	var errs field.ErrorList
	if p := m.Path; p != nil && p.Value != nil && ptr.Deref(p.Type, "") != gateway.PathMatchRegularExpression && !plainPath(*p.Value) {
		errs = append(errs, field.Invalid(path.Child("path", "value"), text.Value(*p.Value), messagePlainPath))
	}
	for i, h := range m.Headers {
		if experimental && !headerValue.MatchString(h.Value) {
			errs = append(errs, field.Invalid(path.Child("headers").Index(i).Child("value"), text.Value(h.Value), messageHeaderValue+": the experimental channel of the Gateway API takes no others"))
		}
	}
	return errs
}

const messagePlainPath = "must start with '/', be in the characters of a URL, and have no empty part, no '.' and no '..' between slashes, and no '#' or '%2f'"

var pathCharacters = regexp.MustCompile(`^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$`)

// plainPath tells whether a path is valid without normalization.
func plainPath(p string) bool {
	for _, forbidden := range []string{"//", "/./", "/../", "%2f", "%2F", "#"} {
		if strings.Contains(p, forbidden) {
			return false
		}
	}
	return strings.HasPrefix(p, "/") && !strings.HasSuffix(p, "/.") && !strings.HasSuffix(p, "/..") && len(p) <= 1024 && pathCharacters.MatchString(p)
}

// atMostOnce are the filters that a rule or backend may have at most once.
var atMostOnce = []gateway.HTTPRouteFilterType{
	gateway.HTTPRouteFilterRequestHeaderModifier, gateway.HTTPRouteFilterResponseHeaderModifier,
	gateway.HTTPRouteFilterRequestRedirect, gateway.HTTPRouteFilterURLRewrite, gateway.HTTPRouteFilterCORS,
}

// filterLimits checks filters of a rule, or of a backend of it. Only a rule that matches one prefix has a prefix to replace.
func filterLimits(path *field.Path, filters []gateway.HTTPRouteFilter, onePrefix bool) field.ErrorList {
	var errs field.ErrorList
	types := map[gateway.HTTPRouteFilterType]bool{}
	for i := range filters {
		f, at := &filters[i], path.Index(i)
		errs = append(errs, filterUnion(at, f)...)
		if types[f.Type] && slices.Contains(atMostOnce, f.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), text.Value(string(f.Type))))
		}
		types[f.Type] = true
		if f.RequestRedirect != nil {
			errs = append(errs, modifierLimits(at.Child("requestRedirect", "path"), f.RequestRedirect.Path, onePrefix)...)
		}
		if f.URLRewrite != nil {
			errs = append(errs, modifierLimits(at.Child("urlRewrite", "path"), f.URLRewrite.Path, onePrefix)...)
		}
		errs = append(errs, mirrorLimits(at.Child("requestMirror"), f.RequestMirror)...)
		errs = append(errs, originLimits(at.Child("cors"), f.CORS)...)
		errs = append(errs, authLimits(at.Child("externalAuth"), f.ExternalAuth)...)
	}
	if types[gateway.HTTPRouteFilterRequestRedirect] && types[gateway.HTTPRouteFilterURLRewrite] {
		errs = append(errs, field.Forbidden(path, "must not have both a RequestRedirect and a URLRewrite: one of them has no effect"))
	}
	return errs
}

func modifierLimits(path *field.Path, m *gateway.HTTPPathModifier, onePrefix bool) field.ErrorList {
	if m == nil {
		return nil
	}
	errs := union(path, "a path of type", string(m.Type), map[string]bool{"replaceFullPath": m.ReplaceFullPath != nil, "replacePrefixMatch": m.ReplacePrefixMatch != nil})
	if m.Type == gateway.PrefixMatchHTTPPathModifier && !onePrefix {
		errs = append(errs, field.Invalid(path.Child("type"), m.Type, "must be ReplaceFullPath, unless the rule has exactly one match, of type PathPrefix"))
	}
	return errs
}

// union checks that of some fields the one that a type names is set, and no other. what has that type.
func union(path *field.Path, what, of string, isSet map[string]bool) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(isSet)) {
		switch named := strings.EqualFold(name, of); {
		case named && !isSet[name]:
			errs = append(errs, field.Required(path.Child(name), fmt.Sprintf("must be set for %s %s", what, of)))
		case isSet[name] && !named:
			errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf("must be left out of %s %s", what, text.Value(of))))
		}
	}
	return errs
}

func mirrorLimits(path *field.Path, m *gateway.HTTPRequestMirrorFilter) field.ErrorList {
	if m == nil || m.Fraction == nil {
		return nil
	}
	var errs field.ErrorList
	if m.Percent != nil {
		errs = append(errs, field.Forbidden(path.Child("fraction"), "must be left out beside percent"))
	}
	if of := ptr.Deref(m.Fraction.Denominator, 100); m.Fraction.Numerator > of {
		errs = append(errs, field.Invalid(path.Child("fraction", "numerator"), m.Fraction.Numerator, fmt.Sprintf("must be at most the denominator, which is %d", of)))
	}
	return errs
}

// originLimits checks that '*' is alone in the lists of a CORS filter.
func originLimits(path *field.Path, c *gateway.HTTPCORSFilter) field.ErrorList {
	if c == nil {
		return nil
	}
	return slices.Concat(aloneIn(path.Child("allowOrigins"), c.AllowOrigins), aloneIn(path.Child("allowMethods"), c.AllowMethods), aloneIn(path.Child("allowHeaders"), c.AllowHeaders))
}

func aloneIn[T ~string](path *field.Path, list []T) field.ErrorList {
	if i := slices.Index(list, "*"); i >= 0 && len(list) > 1 {
		return field.ErrorList{field.Invalid(path.Index(i), "*", "must be the only one: it includes all others")}
	}
	return nil
}

func authLimits(path *field.Path, a *gateway.HTTPExternalAuthFilter) field.ErrorList {
	if a == nil {
		return nil
	}
	return union(path, "an ExternalAuth filter of protocol", string(a.ExternalAuthProtocol), map[string]bool{"grpc": a.GRPCAuthConfig != nil, "http": a.HTTPAuthConfig != nil})
}

var knownFilters = append([]gateway.HTTPRouteFilterType{
	gateway.HTTPRouteFilterRequestMirror, gateway.HTTPRouteFilterExtensionRef, gateway.HTTPRouteFilterExternalAuth,
}, atMostOnce...)

// filterUnion checks that a filter has the field of its type and no other. For a type that the Go
// types do not have, the cluster decides.
func filterUnion(path *field.Path, f *gateway.HTTPRouteFilter) field.ErrorList {
	if f.Type == "" {
		return field.ErrorList{field.Required(path.Child("type"), "must be the kind of filter, such as RequestHeaderModifier")}
	}
	if i := slices.IndexFunc(knownFilters, func(t gateway.HTTPRouteFilterType) bool { return strings.EqualFold(string(t), string(f.Type)) }); i >= 0 && knownFilters[i] != f.Type {
		return field.ErrorList{field.Invalid(path.Child("type"), text.Value(string(f.Type)), fmt.Sprintf("must be %s", knownFilters[i]))}
	}
	isSet := map[string]bool{}
	v := reflect.ValueOf(f).Elem()
	for i := 1; i < v.NumField(); i++ {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		isSet[name] = !v.Field(i).IsNil()
	}
	return union(path, "a filter of type", string(f.Type), isSet)
}

// gatewayLimits checks most of what the Gateway CRD has rules of CEL or alternatives for. The spec was read from the document.
func gatewayLimits(path *field.Path, doc *kube.Document, spec *gateway.GatewaySpec) field.ErrorList {
	errs := addressLimits(path.Child("addresses"), doc.GetFields()["addresses"].GetListValue().GetValues(), spec.Addresses)
	if i, at := spec.Infrastructure, path.Child("infrastructure"); i != nil {
		errs = append(errs, keyLimits(at.Child("labels"), i.Labels)...)
		errs = append(errs, keyLimits(at.Child("annotations"), i.Annotations)...)
	}
	listenerAt := map[string]int{}
	for i := range spec.Listeners {
		l, at := &spec.Listeners[i], path.Child("listeners").Index(i)
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

// addressLimits checks the addresses that a Gateway asks for. What those of other types mean is up to the gateway. An address may have no
// value, but not an empty one. Only the document tells which it is.
func addressLimits(path *field.Path, list []*structpb.Value, addresses []gateway.GatewaySpecAddress) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, a := range addresses {
		kind, at := ptr.Deref(a.Type, gateway.IPAddressType), path.Index(i).Child("value")
		id := fmt.Sprintf("%s %s", kind, a.Value)
		ip, err := netip.ParseAddr(a.Value)
		_, given := list[i].GetStructValue().GetFields()["value"].GetKind().(*structpb.Value_StringValue)
		switch {
		case kind != gateway.IPAddressType && kind != gateway.HostnameAddressType, a.Value == "" && !given:
		case a.Value == "":
			errs = append(errs, field.Invalid(at, "", "must not be empty: leave it out to be assigned an address"))
		case seen[id]:
			errs = append(errs, field.Duplicate(at, text.Value(a.Value)))
		case kind == gateway.HostnameAddressType:
			// The CRD takes an IP address for a host name here.
			if !isHostname(a.Value) {
				errs = append(errs, invalidHostname(at, a.Value))
			}
		case err != nil, ip.Zone() != "":
			errs = append(errs, field.Invalid(at, text.Value(a.Value), "must be an IP address, or have another type, such as Hostname"))
		}
		seen[id] = true
	}
	return errs
}

// maxKeyPrefix is how many characters the part of a key before the slash may have. Kubernetes allows one more.
const maxKeyPrefix = 252

// keyLimits checks the keys of labels or annotations, of which the CRD requires what Kubernetes requires of labels.
func keyLimits[K, V ~string](path *field.Path, of map[K]V) field.ErrorList {
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(of)) {
		key := string(k)
		problems := check.QualifiedKey(path, key)
		if prefix, _, _ := strings.Cut(key, "/"); len(problems) == 0 && len(prefix) > maxKeyPrefix {
			problems = field.ErrorList{field.Invalid(path.Key(text.Value(key)), text.Value(key), fmt.Sprintf("prefix part must be no more than %d bytes", maxKeyPrefix))}
		}
		errs = append(errs, problems...)
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
	if l.Protocol == gateway.HTTPSProtocolType && mode == gateway.TLSModePassthrough {
		errs = append(errs, field.Invalid(at.Child("mode"), mode, "must be Terminate for protocol HTTPS"))
	}
	if mode == gateway.TLSModeTerminate && len(l.TLS.CertificateRefs) == 0 && len(l.TLS.Options) == 0 {
		errs = append(errs, field.Required(at.Child("certificateRefs"), "must name a certificate where the listener terminates TLS"))
	}
	return errs
}
