package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// routeAccess is what the routes of a service may reach, and be reached by.
//
// A namespace is the tenant's own if it has the tenant's name. In any other, other tenants
// may have objects too: a route that is rendered there may not name them.
type routeAccess struct {
	service Service
	// namespaces that the routes are rendered in.
	namespaces []string
	// routes is the policy for the tenant, platform the gateways of the platform team.
	routes   *v1beta1.Routes
	platform []v1beta1.ParentRef
	// hub are the gateways of the route over all clusters, if the service may have one.
	hub   []v1beta1.ParentRef
	names hostnames
}

func newRouteAccess(s Service, spec *v1alpha1.InferenceServiceSpec, in *v1beta1.Input, policy *tenantPolicy, w *World) *routeAccess {
	a := &routeAccess{
		service:    s,
		namespaces: routeNamespaces(s, spec.Placement, w),
		routes:     policy.Routes,
		platform:   in.Gateway.ParentRefs,
	}
	if InFleet(spec.Placement) || leavesFleet(w) {
		a.hub = in.Fleet.ParentRefs
	}
	a.names = hostnamesOf(a.routes, s)
	return a
}

// routeNamespaces are the namespaces that a service may be rendered in, each once: also those
// that it is leaving, where it is rendered until it is elsewhere.
func routeNamespaces(s Service, p *v1alpha1.Placement, w *World) []string {
	var all []string
	add := func(namespace string) {
		if n := cmp.Or(namespace, s.Namespace); !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	if p == nil || len(p.Clusters) == 0 {
		add(s.Namespace)
	} else {
		for _, c := range p.Clusters {
			add(c.Namespace)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Places)) {
		add(w.Places[name].Namespace)
	}
	return all
}

// in are the namespaces that a reference of a route leads to. Without one it leads to the
// route's own.
func (a *routeAccess) in(namespace string) []string {
	if namespace != "" {
		return []string{namespace}
	}
	return a.namespaces
}

// A parent is a gateway, or another parent, that a route names.
type parent struct{ group, kind, namespace, name, section string }

// foreign are the namespaces of a parent that are not the tenant's own. The service's own
// Gateway is nobody else's wherever it is.
func (a *routeAccess) foreign(p parent, hasGateway bool) []string {
	var all []string
	for _, n := range a.in(p.namespace) {
		d := Deployment{Base: baseName(a.service, Target{Namespace: n})}
		own := hasGateway && p.kind == kindGateway && p.group == gateway.GroupName && p.name == d.GatewayName() && slices.Contains(a.namespaces, n)
		if n != a.service.Namespace && !own {
			all = append(all, n)
		}
	}
	return all
}

const kindGateway = "Gateway"

// gatewayKinds are the parents that allowedParentRefs is about.
var gatewayKinds = []string{kindGateway, "ListenerSet"}

func parentOf(ref v1beta1.ParentRef) parent {
	return parent{cmp.Or(ref.Group, gateway.GroupName), cmp.Or(ref.Kind, kindGateway), ref.Namespace, ref.Name, ref.SectionName}
}

// checkParents refuses gateways that are not the tenant's to use. It tells whether the
// routes have a gateway that others use too.
func (a *routeAccess) checkParents(path *field.Path, spec *gateway.HTTPRouteSpec, hasGateway bool, platform []v1beta1.ParentRef) (bool, field.ErrorList) {
	var errs field.ErrorList
	shared := false
	for i := range spec.ParentRefs {
		ref := &spec.ParentRefs[i]
		p := parent{
			group:     string(ptr.Deref(ref.Group, gateway.GroupName)),
			kind:      string(ptr.Deref(ref.Kind, kindGateway)),
			namespace: string(ptr.Deref(ref.Namespace, "")),
			name:      string(ref.Name),
			section:   string(ptr.Deref(ref.SectionName, "")),
		}
		for _, n := range a.foreign(p, hasGateway) {
			shared = true
			if p.name != "" && !a.allowsParent(p, n, ptr.Deref(ref.Port, 0)) {
				errs = append(errs, a.refuseParent(path.Child("parentRefs").Index(i), p, n))
				break
			}
		}
	}
	if s := spec.UseDefaultGateways; s != "" && s != gateway.GatewayDefaultScopeNone {
		shared = true
		if !slices.ContainsFunc(a.routes.AllowedParentRefs, anyParent) {
			errs = append(errs, field.Invalid(path.Child("useDefaultGateways"), check.Shown(string(s)),
				`must be None or left out: the cluster's default gateways are other tenants' too; the platform team can allow all gateways, with {namespace: "*", name: "*"} in routes.allowedParentRefs of the Composition's input`))
		}
	}
	for _, ref := range platform {
		shared = shared || len(a.foreign(parentOf(ref), false)) > 0
	}
	for _, ref := range a.hub {
		shared = shared || cmp.Or(ref.Namespace, a.service.Namespace) != a.service.Namespace
	}
	return shared, errs
}

// anyParent tells whether every gateway is allowed, of which some are the cluster's default
// ones.
func anyParent(r v1beta1.AllowedParentRef) bool {
	return r.Namespace == anyName && cmp.Or(r.Name, anyName) == anyName && r.SectionName == ""
}

func (a *routeAccess) allowsParent(p parent, namespace string, port int32) bool {
	// A route of a Service, or of another parent, is no matter of gateways that are allowed.
	isGateway := p.group == gateway.GroupName && slices.Contains(gatewayKinds, p.kind)
	return isGateway && slices.ContainsFunc(a.routes.AllowedParentRefs, func(r v1beta1.AllowedParentRef) bool {
		return v1beta1.Matches(r.Namespace, namespace) && v1beta1.Matches(cmp.Or(r.Name, anyName), p.name) && (r.SectionName == "" || r.SectionName == p.section)
	}) || slices.ContainsFunc(a.platform, func(r v1beta1.ParentRef) bool {
		o := parentOf(r)
		return o.group == p.group && o.kind == p.kind && o.name == p.name && slices.Contains(a.in(o.namespace), namespace) &&
			(o.section == "" || o.section == p.section) && (r.Port == nil || *r.Port == port)
	})
}

func (a *routeAccess) refuseParent(path *field.Path, p parent, namespace string) *field.Error {
	value := namespace + "/" + p.name
	if p.section != "" {
		value += "/" + p.section
	}
	if p.kind != kindGateway {
		value = p.kind + " " + value
	}
	return field.Invalid(path, check.Shown(value), fmt.Sprintf("must be a gateway in the namespace %s, or one that the platform team allows: routes.allowedParentRefs or gateway.parentRefs in the Composition's input", a.service.Namespace))
}

// checkHostnames refuses names that may be other services'. At a gateway that others use
// too every name is looked at, and a route without names takes what no other route
// takes. Elsewhere names matter where the platform team has said whose they are: they are
// published, for example by external-dns. It returns the name that the route gets if it has
// none.
func (a *routeAccess) checkHostnames(path *field.Path, spec *gateway.HTTPRouteSpec, shared bool) (string, field.ErrorList) {
	switch {
	case !a.names.restricted() && shared:
		return "", field.ErrorList{field.Forbidden(path, "cannot be attached to a gateway that other tenants use too: nobody has said which host names are whose; the platform team can, with routes.defaultHostname or routes.allowedHostnames in the Composition's input, or the router can have a Gateway of its own")}
	case !a.names.restricted(), len(spec.Hostnames) == 0 && !shared:
		return "", nil
	case len(spec.Hostnames) > 0:
		var errs field.ErrorList
		for i, h := range spec.Hostnames {
			errs = append(errs, a.checkHostname(path.Child("hostnames").Index(i), string(h))...)
		}
		return "", errs
	case a.names.fallback != "":
		if len(validation.IsDNS1123Subdomain(a.names.fallback)) > 0 {
			return "", field.ErrorList{field.Invalid(path.Child("hostnames"), check.Shown(a.names.fallback), "the name that the platform team gives to services is no host name: give the service a shorter name, or the route a host name")}
		}
		return a.names.fallback, nil
	case !a.names.allow(anyName):
		return "", field.ErrorList{field.Required(path.Child("hostnames"), "must match "+a.names.list()+": at a shared gateway, a route without host names takes the requests of other services")}
	}
	return "", nil
}

func (a *routeAccess) checkHostname(path *field.Path, name string) field.ErrorList {
	if !a.names.restricted() || a.names.allow(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, check.Shown(name), "must match "+a.names.list()+", which the platform team allows to this service (routes in the Composition's input)")}
}

// externalDNS starts the annotations by which external-dns is told what to publish.
const externalDNS = "external-dns.alpha.kubernetes.io/"

// checkGateway refuses a Gateway of the service's own that the platform team does not
// allow, or that would be other tenants' too. Certificates in other namespaces are left
// to their owners: there is a ReferenceGrant to Gateways of this namespace, or they are not
// used.
func (a *routeAccess) checkGateway(path *field.Path, spec *gateway.GatewaySpec) field.ErrorList {
	if a.routes.OwnGateways == v1beta1.Deny {
		return field.ErrorList{field.Forbidden(path, "must be left out: the platform team allows no Gateway of one's own (routes.ownGateways in the Composition's input); name a shared one in httproute.parentRefs")}
	}
	var errs field.ErrorList
	if c := string(spec.GatewayClassName); c != "" && len(a.routes.AllowedGatewayClassNames) > 0 && !v1beta1.MatchesAny(a.routes.AllowedGatewayClassNames, c) {
		errs = append(errs, notAllowed(path.Child("gatewayClassName"), c, a.routes.AllowedGatewayClassNames, "routes.allowedGatewayClassNames"))
	}
	for i := range spec.Listeners {
		if h := spec.Listeners[i].Hostname; h != nil && *h != "" {
			errs = append(errs, a.checkHostname(path.Child("listeners").Index(i).Child("hostname"), string(*h))...)
		}
	}
	if s := spec.DefaultScope; s != "" && s != gateway.GatewayDefaultScopeNone {
		errs = append(errs, field.Invalid(path.Child("defaultScope"), check.Shown(string(s)), "must be None or left out: routes of other tenants that ask for the default gateways would be attached to this one"))
	}
	if !a.names.restricted() || spec.Infrastructure == nil {
		return errs
	}
	for _, k := range slices.Sorted(maps.Keys(spec.Infrastructure.Annotations)) {
		if strings.HasPrefix(string(k), externalDNS) {
			errs = append(errs, field.Forbidden(path.Child("infrastructure", "annotations").Key(check.Shown(string(k))), "must be left out: it would publish names that the platform team does not allow; host names belong to httproute.hostnames"))
		}
	}
	return errs
}
