package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// KindPool is the kind of a service's pool.
const KindPool = "InferencePool"

// Istio's reference to a host of its mesh, in the place of an object. No ReferenceGrant
// is asked for it.
const (
	groupIstio   = "networking.istio.io"
	kindHostname = "Hostname"
)

// innerFilters are the filters that stay with the request, its answer, and the service's own
// clients: a redirect tells a client where to go, and a rewritten name is what the
// service's own backend is told. All others have to be allowed. What an ExtensionRef
// does depends on an object that only the gateway reads: it can send requests anywhere,
// and some gateways take pieces of their own configuration from it.
var innerFilters = []gateway.HTTPRouteFilterType{
	"", // The API server asks for it.
	gateway.HTTPRouteFilterRequestHeaderModifier,
	gateway.HTTPRouteFilterResponseHeaderModifier,
	gateway.HTTPRouteFilterRequestRedirect,
	gateway.HTTPRouteFilterURLRewrite,
	gateway.HTTPRouteFilterCORS,
}

// checkRules refuses rules that send requests to others.
func (a *routeAccess) checkRules(path *field.Path, spec *gateway.HTTPRouteSpec) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Rules {
		rule, at := &spec.Rules[i], path.Child("rules").Index(i)
		errs = append(errs, a.checkFilters(at.Child("filters"), rule.Filters)...)
		for j := range rule.BackendRefs {
			b, at := &rule.BackendRefs[j], at.Child("backendRefs").Index(j)
			errs = append(errs, a.checkBackend(at, &b.BackendObjectReference, true)...)
			errs = append(errs, a.checkFilters(at.Child("filters"), b.Filters)...)
		}
	}
	return errs
}

func (a *routeAccess) checkFilters(path *field.Path, filters []gateway.HTTPRouteFilter) field.ErrorList {
	var errs field.ErrorList
	for i := range filters {
		f, at := &filters[i], path.Index(i)
		for _, t := range filterTypes(f) {
			if !slices.Contains(innerFilters, t) && !slices.Contains(a.routes.AllowedFilters, v1beta1.RouteFilter(t)) {
				errs = append(errs, field.Invalid(at.Child("type"), check.Shown(string(t)), "must be a filter that sends requests nowhere else; the platform team can allow RequestMirror, ExternalAuth and ExtensionRef, with routes.allowedFilters in the Composition's input"))
			}
		}
		if f.RequestHeaderModifier != nil {
			errs = append(errs, checkHeaders(at.Child("requestHeaderModifier"), f.RequestHeaderModifier)...)
		}
		if f.RequestMirror != nil {
			errs = append(errs, a.checkBackend(at.Child("requestMirror", "backendRef"), &f.RequestMirror.BackendRef, false)...)
		}
		if f.ExternalAuth != nil {
			errs = append(errs, a.checkBackend(at.Child("externalAuth", "backendRef"), &f.ExternalAuth.BackendRef, false)...)
		}
	}
	return errs
}

// steering are the headers by which endpoint pickers tell gateways and sidecars where a request
// goes (Gateway API Inference Extension, docs/proposals/004-endpoint-picker-protocol;
// llm-d-router pkg/sidecar/proxy). A rule that sets them would tell in their place.
var steering = []string{"x-gateway-destination-endpoint", "x-prefiller-host-port", "x-encoder-hosts-ports", "x-data-parallel-host-port"}

func checkHeaders(at *field.Path, f *gateway.HTTPHeaderFilter) field.ErrorList {
	var errs field.ErrorList
	check := func(at *field.Path, headers []gateway.HTTPHeader) {
		for i, h := range headers {
			if slices.ContainsFunc(steering, func(s string) bool { return strings.EqualFold(s, string(h.Name)) }) {
				errs = append(errs, field.Invalid(at.Index(i).Child("name"), h.Name, "must be another header: by this one the endpoint picker says where a request goes"))
			}
		}
	}
	check(at.Child("set"), f.Set)
	check(at.Child("add"), f.Add)
	return errs
}

// filterTypes are what a filter says that it is, and what it has.
func filterTypes(f *gateway.HTTPRouteFilter) []gateway.HTTPRouteFilterType {
	types := []gateway.HTTPRouteFilterType{f.Type}
	for _, has := range []struct {
		it bool
		is gateway.HTTPRouteFilterType
	}{
		{f.RequestMirror != nil, gateway.HTTPRouteFilterRequestMirror},
		{f.ExternalAuth != nil, gateway.HTTPRouteFilterExternalAuth},
		{f.ExtensionRef != nil, gateway.HTTPRouteFilterExtensionRef},
	} {
		if has.it && has.is != f.Type {
			types = append(types, has.is)
		}
	}
	return types
}

// checkBackend refuses backends that may be others'. Of a rule, the service's own pool is
// never one of them.
func (a *routeAccess) checkBackend(path *field.Path, ref *gateway.BackendObjectReference, ofRule bool) field.ErrorList {
	kind, name := string(ptr.Deref(ref.Kind, "")), string(ref.Name)
	namespace := string(ptr.Deref(ref.Namespace, ""))
	if strings.EqualFold(kind, kindHostname) && strings.EqualFold(string(ptr.Deref(ref.Group, "")), groupIstio) && !slices.Contains(a.routes.AllowedBackendNamespaces, anyName) {
		return field.ErrorList{field.Invalid(path.Child("kind"), kind, `must be an object of the service's own namespace: a host may be in any; the platform team can allow "*" in routes.allowedBackendNamespaces of the Composition's input`)}
	}
	for _, n := range a.in(namespace) {
		d := Deployment{Base: baseName(a.service, Target{Namespace: n}), Target: Target{Namespace: n}}
		ownPool := ofRule && slices.Contains(a.namespaces, n) && a.service.NamesPool(&d, name, namespace, kind)
		switch {
		case n == a.service.Namespace, ownPool, v1beta1.MatchesAny(a.routes.AllowedBackendNamespaces, n):
		case namespace != "":
			return field.ErrorList{field.Invalid(path.Child("namespace"), check.Shown(namespace), fmt.Sprintf("must be left out or %s; the platform team can allow others, with routes.allowedBackendNamespaces in the Composition's input", a.service.Namespace))}
		default:
			remedy := "must be left out"
			if ofRule {
				remedy = "must be " + d.PoolName()
			}
			return field.ErrorList{field.Invalid(path.Child("name"), check.Shown(name), fmt.Sprintf("%s: in the namespace %s, where the placement puts the route, backends may be other tenants'; the platform team can allow them, with routes.allowedBackendNamespaces in the Composition's input", remedy, n))}
		}
	}
	return nil
}

// NamesPool tells whether a backend of a rule means the service's pool in one place: by its
// name, in the route's namespace, and as the pool or as the Service that examples have in
// its place and that nobody makes. In a namespace that tenants share the pool has
// another name than the service's users know. What is not set is empty.
func (s Service) NamesPool(d *Deployment, name, namespace, kind string) bool {
	users := Deployment{Base: s.Name}
	if name != d.PoolName() && name != users.PoolName() {
		return false
	}
	if namespace != "" && namespace != d.Target.Namespace {
		return false
	}
	return kind == "" || kind == KindPool || kind == "Service"
}
