package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A backend of Istio's kind Hostname names a host of the mesh instead of an object, such as that of a ServiceEntry, which has the
// same group. Istio requires no ReferenceGrant for it.
const (
	GroupIstio   = "networking.istio.io"
	KindHostname = "Hostname"
)

// harmlessFilters change only the request and response between the service and its own clients.
// The platform team must allow all others. What an ExtensionRef does depends on an object that
// only the gateway reads. It may send requests anywhere, and some gateways take parts of their
// own configuration from it.
var harmlessFilters = []gateway.HTTPRouteFilterType{
	"", // filterUnion refuses a missing type, and letters of the wrong case.
	gateway.HTTPRouteFilterRequestHeaderModifier,
	gateway.HTTPRouteFilterResponseHeaderModifier,
	gateway.HTTPRouteFilterRequestRedirect,
	gateway.HTTPRouteFilterURLRewrite,
	gateway.HTTPRouteFilterCORS,
}

func isHarmless(t gateway.HTTPRouteFilterType) bool {
	return slices.ContainsFunc(harmlessFilters, func(h gateway.HTTPRouteFilterType) bool { return strings.EqualFold(string(h), string(t)) })
}

// checkRules refuses rules that send requests to backends of other tenants.
func (a *routeAccess) checkRules(path *field.Path, spec *gateway.HTTPRouteSpec) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Rules {
		rule, at := &spec.Rules[i], path.Child("rules").Index(i)
		errs = append(errs, a.checkFilters(at.Child("filters"), rule.Filters)...)
		errs = append(errs, a.checkExperimental(at, rule)...)
		for j := range rule.BackendRefs {
			b, at := &rule.BackendRefs[j], at.Child("backendRefs").Index(j)
			errs = append(errs, a.checkBackend(at, &b.BackendObjectReference, true)...)
			errs = append(errs, a.checkFilters(at.Child("filters"), b.Filters)...)
		}
	}
	return errs
}

// experimental tells that all clusters have the experimental channel of the Gateway API.
func (a *routeAccess) experimental() bool {
	return a.routes.ExperimentalFields == inputv1alpha1.Allow
}

var messageExperimental = "must be left out, unless the platform team allows it: only the experimental channel of the Gateway API has it" + setBy("routes.experimentalFields")

// checkExperimental refuses fields of a rule that the definitions of the Gateway API's standard channel lack (config/crd/standard of v1.6.1). The
// API server refuses the route then, and Crossplane applies nothing of the service and writes no status.
func (a *routeAccess) checkExperimental(path *field.Path, rule *gateway.HTTPRouteRule) field.ErrorList {
	if a.experimental() {
		return nil
	}
	var errs field.ErrorList
	if rule.Retry != nil {
		errs = append(errs, field.Forbidden(path.Child("retry"), messageExperimental))
	}
	if rule.SessionPersistence != nil {
		errs = append(errs, field.Forbidden(path.Child("sessionPersistence"), messageExperimental))
	}
	return errs
}

// checkDefaultGateways refuses the fields about default gateways for the same reason.
func (a *routeAccess) checkDefaultGateways(path *field.Path, route *gateway.HTTPRouteSpec, own *gateway.GatewaySpec) field.ErrorList {
	if a.experimental() {
		return nil
	}
	var errs field.ErrorList
	if route.UseDefaultGateways != "" {
		errs = append(errs, field.Forbidden(path.Child("httproute", "useDefaultGateways"), messageExperimental))
	}
	if own.DefaultScope != "" {
		errs = append(errs, field.Forbidden(path.Child("gateway", "defaultScope"), messageExperimental))
	}
	return errs
}

func (a *routeAccess) checkFilters(path *field.Path, filters []gateway.HTTPRouteFilter) field.ErrorList {
	var errs field.ErrorList
	for i := range filters {
		f, at := &filters[i], path.Index(i)
		for _, t := range filterTypes(f) {
			if !isHarmless(t) && !slices.Contains(a.routes.AllowedFilters, inputv1alpha1.RouteFilter(t)) {
				errs = append(errs, field.Invalid(at.Child("type"), text.Value(string(t)), "must be a filter that keeps requests on this route; the platform team can allow RequestMirror, ExternalAuth and ExtensionRef with routes.allowedFilters in the Composition's input"))
			}
		}
		if f.RequestHeaderModifier != nil {
			errs = append(errs, checkHeaders(at.Child("requestHeaderModifier"), f.RequestHeaderModifier)...)
		}
		if f.ExtensionRef != nil {
			errs = append(errs, a.checkObjectName(at.Child("extensionRef", "name"), string(f.ExtensionRef.Name))...)
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

// destinationHeaders are the headers with which endpoint pickers tell gateways and sidecars where
// to send a request (Gateway API Inference Extension, docs/proposals/004-endpoint-picker-protocol;
// llm-d-router pkg/sidecar/proxy). A rule that sets one could send requests anywhere.
var destinationHeaders = []string{"x-gateway-destination-endpoint", "x-prefiller-host-port", "x-encoder-hosts-ports", "x-data-parallel-host-port", "x-kv-cache-source-host-port"}

func checkHeaders(at *field.Path, f *gateway.HTTPHeaderFilter) field.ErrorList {
	var errs field.ErrorList
	check := func(at *field.Path, headers []gateway.HTTPHeader) {
		for i, h := range headers {
			if slices.ContainsFunc(destinationHeaders, func(s string) bool { return strings.EqualFold(s, string(h.Name)) }) {
				errs = append(errs, field.Invalid(at.Index(i).Child("name"), h.Name, "must be another header: with this one the endpoint picker tells the gateway where to send the request"))
			}
		}
	}
	check(at.Child("set"), f.Set)
	check(at.Child("add"), f.Add)
	return errs
}

// filterTypes returns the type of a filter, and the types whose fields it sets.
func filterTypes(f *gateway.HTTPRouteFilter) []gateway.HTTPRouteFilterType {
	types := []gateway.HTTPRouteFilterType{f.Type}
	for _, typed := range []struct {
		set        bool
		filterType gateway.HTTPRouteFilterType
	}{
		{f.RequestMirror != nil, gateway.HTTPRouteFilterRequestMirror},
		{f.ExternalAuth != nil, gateway.HTTPRouteFilterExternalAuth},
		{f.ExtensionRef != nil, gateway.HTTPRouteFilterExtensionRef},
	} {
		if typed.set && typed.filterType != f.Type {
			types = append(types, typed.filterType)
		}
	}
	return types
}

// checkBackend refuses backends that may belong to other tenants, and incomplete ones. A rule, unlike a filter, may always name the
// service's own pool.
func (a *routeAccess) checkBackend(path *field.Path, ref *gateway.BackendObjectReference, ofRule bool) field.ErrorList {
	kind, name := string(ptr.Deref(ref.Kind, "")), string(ref.Name)
	namespace := string(ptr.Deref(ref.Namespace, ""))
	if strings.EqualFold(kind, KindHostname) && strings.EqualFold(string(ptr.Deref(ref.Group, "")), GroupIstio) && !slices.Contains(a.routes.AllowedBackendNamespaces, anyName) {
		return field.ErrorList{field.Invalid(path.Child("kind"), kind, `must be an object in the service's own namespace: a Hostname may be in any; the platform team can allow "*" in routes.allowedBackendNamespaces of the Composition's input`)}
	}
	if errs := a.checkObjectName(path.Child("name"), name); len(errs) > 0 {
		return errs
	}
	for _, n := range a.referenced(namespace) {
		c := a.clusterIn(n)
		ownPool := ofRule && slices.Contains(a.namespaces, n) && NamesPool(a.service, c, name, namespace, kind)
		switch {
		case n == a.service.Namespace, ownPool, inputv1alpha1.MatchesAny(a.routes.AllowedBackendNamespaces, n):
		case namespace != "":
			return field.ErrorList{field.Invalid(path.Child("namespace"), text.Value(namespace), fmt.Sprintf("must be left out or %s; the platform team can allow others with routes.allowedBackendNamespaces in the Composition's input", a.service.Namespace))}
		default:
			remedy := "must be left out"
			if ofRule {
				remedy = "must be " + c.PoolName()
			}
			return field.ErrorList{field.Invalid(path.Child("name"), text.Value(name), fmt.Sprintf("%s: in the namespace %s, where the placement puts the route, backends may belong to other tenants; the platform team can allow them with routes.allowedBackendNamespaces in the Composition's input", remedy, n))}
		}
	}
	return a.checkComplete(path, ref, ofRule)
}

// clusterIn is a plan of any cluster in which the service has this namespace. It has only what names go by.
func (a *routeAccess) clusterIn(namespace string) *ClusterPlan {
	t := scheduling.Target{Namespace: namespace}
	return &ClusterPlan{Base: baseName(a.service, t), Target: t}
}

// checkComplete refuses a backend that lacks what the CRD requires. The function completes those of rules that mean the service's pool.
func (a *routeAccess) checkComplete(path *field.Path, ref *gateway.BackendObjectReference, ofRule bool) field.ErrorList {
	kind, namespace := ptr.Deref(ref.Kind, "Service"), string(ptr.Deref(ref.Namespace, ""))
	isOther := func(n string) bool {
		return !NamesPool(a.service, a.clusterIn(n), string(ref.Name), namespace, string(kind))
	}
	if ofRule && !slices.ContainsFunc(a.namespaces, isOther) || ref.Name == "" {
		return nil
	}
	var errs field.ErrorList
	if kind == "" {
		errs = append(errs, field.Invalid(path.Child("kind"), "", "must not be empty: leave it out for a Service"))
	}
	if ref.Namespace != nil && namespace == "" {
		errs = append(errs, field.Invalid(path.Child("namespace"), "", "must not be empty: leave it out for the namespace of the route"))
	}
	if ref.Port == nil && ptr.Deref(ref.Group, "") == "" && kind == "Service" {
		errs = append(errs, field.Required(path.Child("port"), "must be the port of the Service"))
	}
	return errs
}

// checkObjectName refuses names that no object has. With an '@' in the name of a TraefikService or of a Middleware,
// Traefik takes it from its whole configuration (pkg/provider/kubernetes/gateway/httproute.go,
// loadHTTPBackendRef).
func (a *routeAccess) checkObjectName(path *field.Path, name string) field.ErrorList {
	// route.go refuses an empty name.
	if name == "" || slices.Contains(a.routes.AllowedBackendNamespaces, anyName) || len(validation.IsDNS1123Subdomain(name)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, text.Value(name), `must be the name of an object: lower case letters, digits, '-' and '.'. Some gateways look for other names among the services of all tenants; the platform team can allow "*" in routes.allowedBackendNamespaces of the Composition's input`)}
}

// NamesPool tells whether a backend of a rule means the service's pool in a cluster. It must have
// the pool's name, and the route's namespace or none. Its kind may be InferencePool, none, or
// Service, which examples use although no such Service exists. In a shared namespace the pool's
// name has a hash, so the name without it is accepted too.
func NamesPool(s naming.Identity, c *ClusterPlan, name, namespace, kind string) bool {
	unhashed := ClusterPlan{Base: s.Name}
	if name != c.PoolName() && name != unhashed.PoolName() {
		return false
	}
	if namespace != "" && namespace != c.Target.Namespace {
		return false
	}
	return kind == "" || kind == modelroute.KindPool || kind == "Service"
}
