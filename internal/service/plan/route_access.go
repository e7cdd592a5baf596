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

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/podsecurity"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// routeAccess says which gateways, host names and backends the routes of a service may use.
//
// The tenant owns the namespace of the service, in every cluster. Any other namespace may have
// objects of other tenants, which a route there must not name.
type routeAccess struct {
	service naming.Identity
	// namespaces that the routes are rendered in.
	namespaces []string
	// routes is the policy for the tenant, platform the gateways of the platform team.
	routes   *inputv1alpha1.Routes
	platform []inputv1alpha1.ParentRef
	// fleet are the gateways of the fleet route, if the service may have one.
	fleet []inputv1alpha1.ParentRef
	// inFleet tells that the service is placed in the fleet, and byEntrypoint that its requests come by a fleet
	// route then, which leads to the entrypoint of each cluster.
	inFleet, byEntrypoint bool
	names                 hostnames
	addresses             addresses
	// security checks the annotations of a Gateway's pods. It is nil if the standard cannot be used.
	security *podsecurity.Checker
}

func newRouteAccess(s naming.Identity, spec *v1alpha1.InferenceServiceSpec, in *inputv1alpha1.Input, policy *tenantPolicy, snapshot *scheduling.Snapshot) *routeAccess {
	a := &routeAccess{
		service:    s,
		namespaces: routeNamespaces(s, spec.Placement, snapshot),
		routes:     policy.Routes,
		platform:   in.Gateway.ParentRefs,
		security:   policy.security,
	}
	a.inFleet = scheduling.InFleet(spec.Placement)
	a.byEntrypoint = a.inFleet && len(in.Fleet.ParentRefs) > 0
	if a.inFleet || scheduling.LeavesFleet(snapshot) {
		a.fleet = in.Fleet.ParentRefs
	}
	a.names, a.addresses = hostnamesOf(a.routes, s), addressesOf(a.routes, s)
	return a
}

// routeNamespaces returns the namespaces that a service may be rendered in, each once. They
// include those of clusters that it leaves, where it is rendered until it runs elsewhere.
func routeNamespaces(s naming.Identity, p *v1alpha1.Placement, snapshot *scheduling.Snapshot) []string {
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
	for _, name := range slices.Sorted(maps.Keys(snapshot.States)) {
		add(snapshot.States[name].Namespace)
	}
	return all
}

// referenced returns the namespaces that a reference of a route may mean: the one that it names,
// else each namespace that the route is rendered in.
func (a *routeAccess) referenced(namespace string) []string {
	if namespace != "" {
		return []string{namespace}
	}
	return a.namespaces
}

// A parent is a gateway, or another parent, that a route names.
type parent struct{ group, kind, namespace, name, section string }

// foreignNamespaces returns the namespaces of a parent that the tenant does not own. The service's
// own Gateway never counts as foreign.
func (a *routeAccess) foreignNamespaces(p parent, hasGateway bool) []string {
	var all []string
	for _, n := range a.referenced(p.namespace) {
		own := hasGateway && p.kind == kindGateway && p.group == gateway.GroupName && p.name == a.clusterIn(n).GatewayName() && slices.Contains(a.namespaces, n)
		if n != a.service.Namespace && !own {
			all = append(all, n)
		}
	}
	return all
}

const kindGateway = "Gateway"

// gatewayKinds are the kinds of parents that allowedParentRefs can allow.
var gatewayKinds = []string{kindGateway, "ListenerSet"}

func parentOf(ref inputv1alpha1.ParentRef) parent {
	return parent{cmp.Or(ref.Group, gateway.GroupName), cmp.Or(ref.Kind, kindGateway), ref.Namespace, ref.Name, ref.SectionName}
}

// parentOfRoute reads a parent of a route. An absent group means the Gateway API's, and an explicit empty one means the core group.
func parentOfRoute(ref *gateway.ParentReference) parent {
	return parent{
		group:     string(ptr.Deref(ref.Group, gateway.GroupName)),
		kind:      cmp.Or(string(ptr.Deref(ref.Kind, "")), kindGateway),
		namespace: string(ptr.Deref(ref.Namespace, "")),
		name:      string(ref.Name),
		section:   string(ptr.Deref(ref.SectionName, "")),
	}
}

// sharedGateways are the gateways of a service's routes that other tenants may use too.
type sharedGateways struct {
	// first of the service's own route, for an error. It is empty if there are none.
	first string
	// fleet tells that the fleet route has some.
	fleet bool
}

func (s *sharedGateways) any() bool { return s.first != "" || s.fleet }

func (s *sharedGateways) add(p parent, namespace string) {
	s.first = cmp.Or(s.first, text.Value(p.kind+" "+namespace+"/"+p.name))
}

// checkParents refuses gateways that the tenant may not use. It also returns those that other
// tenants may use too.
func (a *routeAccess) checkParents(path *field.Path, spec *gateway.HTTPRouteSpec, hasGateway bool, platform []inputv1alpha1.ParentRef) (sharedGateways, field.ErrorList) {
	var errs field.ErrorList
	var shared sharedGateways
	for i := range spec.ParentRefs {
		ref := &spec.ParentRefs[i]
		p := parentOfRoute(ref)
		for _, n := range a.foreignNamespaces(p, hasGateway) {
			shared.add(p, n)
			if p.name != "" && !a.allowsParent(p, n, ptr.Deref(ref.Port, 0)) {
				errs = append(errs, a.refuseParent(path.Child("parentRefs").Index(i), p, n))
				break
			}
		}
	}
	if s := spec.UseDefaultGateways; s != "" && s != gateway.GatewayDefaultScopeNone {
		shared.first = cmp.Or(shared.first, "the cluster's default gateways")
		if !slices.ContainsFunc(a.routes.AllowedParentRefs, anyParent) {
			errs = append(errs, field.Invalid(path.Child("useDefaultGateways"), text.Value(string(s)),
				`must be None or left out: other tenants use the cluster's default gateways too; the platform team can allow all gateways with {namespace: "*", name: "*"} in routes.allowedParentRefs of the Composition's input`))
		}
	}
	for _, ref := range platform {
		p := parentOf(ref)
		for _, n := range a.foreignNamespaces(p, false) {
			shared.add(p, n)
		}
	}
	for _, ref := range a.fleet {
		shared.fleet = shared.fleet || cmp.Or(ref.Namespace, a.service.Namespace) != a.service.Namespace
	}
	return shared, errs
}

// anyParent tells whether an entry allows every gateway, and so the cluster's default ones.
func anyParent(r inputv1alpha1.AllowedParentRef) bool {
	return r.Namespace == anyName && cmp.Or(r.Name, anyName) == anyName && r.SectionName == ""
}

func (a *routeAccess) allowsParent(p parent, namespace string, port int32) bool {
	// allowedParentRefs allows only gateways. A mesh route, whose parent is a Service, is no match.
	isGateway := p.group == gateway.GroupName && slices.Contains(gatewayKinds, p.kind)
	return isGateway && slices.ContainsFunc(a.routes.AllowedParentRefs, func(r inputv1alpha1.AllowedParentRef) bool {
		return inputv1alpha1.Matches(r.Namespace, namespace) && inputv1alpha1.Matches(cmp.Or(r.Name, anyName), p.name) && (r.SectionName == "" || r.SectionName == p.section)
	}) || slices.ContainsFunc(a.platform, func(r inputv1alpha1.ParentRef) bool {
		allowed := parentOf(r)
		return allowed.group == p.group && allowed.kind == p.kind && allowed.name == p.name && slices.Contains(a.referenced(allowed.namespace), namespace) &&
			(allowed.section == "" || allowed.section == p.section) && (r.Port == nil || *r.Port == port)
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
	must := "must be a gateway in namespace %s, or be"
	if a.byEntrypoint {
		must = "must be the Gateway of each cluster's entrypoint, and be in namespace %s or"
	}
	return field.Invalid(path, text.Value(value), fmt.Sprintf(must+" listed in routes.allowedParentRefs or gateway.parentRefs of the Composition's input", a.service.Namespace))
}

// refuseShared says why shared gateways cannot be used without assigned host names, and what helps. The
// author of the spec cannot avoid the gateways of the fleet. Nor does a Gateway of the service's own help
// where the platform team denies it, or where requests come by the entrypoints of the clusters.
func (a *routeAccess) refuseShared(s *sharedGateways, hasGateway bool) string {
	const assign = "the platform team sets routes.defaultHostname or routes.allowedHostnames in the Composition's input"
	if s.first == "" {
		return "the gateways of fleet.parentRefs are shared: " + assign
	}
	why := "must not use " + s.first + ", shared with other tenants, until host names are assigned: " + assign
	if s.fleet || a.byEntrypoint || a.routes.OwnGateways == inputv1alpha1.Deny {
		return why
	}
	instead := ". Or give the router a Gateway of its own"
	if hasGateway {
		instead = ". Or attach the route to the router's own Gateway alone"
	}
	if a.inFleet {
		instead += ", which a fleet route would not reach"
	}
	return why + instead
}

// checkHostnames refuses host names that may belong to other services. It returns the default
// host name for a route that has none and needs one.
//
// At a shared gateway each route needs host names that the platform team allows. A route without
// any would get the requests that match no other route. At the tenant's own gateway host names
// are checked if the platform team has assigned them, because external-dns may publish them.
func (a *routeAccess) checkHostnames(path *field.Path, spec *gateway.HTTPRouteSpec, shared sharedGateways, hasGateway bool) (string, field.ErrorList) {
	switch {
	case !a.names.restricted() && shared.any():
		return "", field.ErrorList{field.Forbidden(path, a.refuseShared(&shared, hasGateway))}
	case !a.names.restricted(), len(spec.Hostnames) == 0 && !shared.any():
		return "", nil
	case len(spec.Hostnames) > 0:
		var errs field.ErrorList
		for i, h := range spec.Hostnames {
			errs = append(errs, a.checkHostname(path.Child("hostnames").Index(i), string(h))...)
		}
		return "", errs
	case a.names.fallback != "":
		if len(validation.IsDNS1123Subdomain(a.names.fallback)) > 0 {
			return "", field.ErrorList{field.Invalid(path.Child("hostnames"), text.Value(a.names.fallback), "routes.defaultHostname of the Composition's input gives no valid host name for this service: use a shorter service name, or set a host name here")}
		}
		return a.names.fallback, nil
	case !a.names.allow(anyName):
		return "", field.ErrorList{field.Required(path.Child("hostnames"), "must match "+firstPatterns(a.names.patterns)+": at a shared gateway, a route without host names takes the requests of other services")}
	}
	return "", nil
}

func (a *routeAccess) checkHostname(path *field.Path, name string) field.ErrorList {
	if !a.names.restricted() || a.names.allow(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, text.Value(name), "must match "+firstPatterns(a.names.patterns)+", the host names that the platform team allows for this service (routes in the Composition's input)")}
}

// externalDNS is the prefix of the annotations that tell external-dns what to publish.
const externalDNS = "external-dns.alpha.kubernetes.io/"

// checkGateway refuses a Gateway of the service that the platform team does not allow, or that
// other tenants' routes could attach to. Certificates in other namespaces that certificateRefs name need
// no check: without a ReferenceGrant from their owner the gateway does not use them.
func (a *routeAccess) checkGateway(path *field.Path, spec *gateway.GatewaySpec) field.ErrorList {
	if a.routes.OwnGateways == inputv1alpha1.Deny {
		return field.ErrorList{field.Forbidden(path, "must be left out: routes.ownGateways of the Composition's input denies a service its own Gateway; name a shared one in httproute.parentRefs")}
	}
	var errs field.ErrorList
	if c := string(spec.GatewayClassName); c != "" && len(a.routes.AllowedGatewayClassNames) > 0 && !inputv1alpha1.MatchesAny(a.routes.AllowedGatewayClassNames, c) {
		errs = append(errs, field.Invalid(path.Child("gatewayClassName"), text.Value(c), "must match one of "+listed(a.routes.AllowedGatewayClassNames)+setBy("routes.allowedGatewayClassNames")))
	}
	for i := range spec.Listeners {
		if h := spec.Listeners[i].Hostname; h != nil && *h != "" {
			errs = append(errs, a.checkHostname(path.Child("listeners").Index(i).Child("hostname"), string(*h))...)
		}
		if tls := spec.Listeners[i].TLS; tls != nil {
			errs = append(errs, a.checkTLSOptions(path.Child("listeners").Index(i).Child("tls", "options"), tls.Options)...)
		}
	}
	for i := range spec.Addresses {
		errs = append(errs, a.checkAddress(path.Child("addresses").Index(i).Child("value"), spec.Addresses[i].Value)...)
	}
	if s := spec.DefaultScope; s != "" && s != gateway.GatewayDefaultScopeNone {
		errs = append(errs, field.Invalid(path.Child("defaultScope"), text.Value(string(s)), "must be None or left out: other tenants' routes with useDefaultGateways would attach to this Gateway"))
	}
	if spec.Infrastructure == nil {
		return errs
	}
	return append(errs, a.checkInfrastructure(path.Child("infrastructure"), spec.Infrastructure)...)
}

// checkTLSOptions refuses options that are not allowed. Their meaning is the implementation's. With
// networking.gke.io/pre-shared-certs, a listener has any certificate of the platform.
func (a *routeAccess) checkTLSOptions(path *field.Path, options map[gateway.AnnotationKey]gateway.AnnotationValue) field.ErrorList {
	var errs field.ErrorList
	for _, o := range slices.Sorted(maps.Keys(options)) {
		if !slices.Contains(a.routes.AllowedTLSOptions, string(o)) {
			errs = append(errs, field.Forbidden(path.Key(text.Value(string(o))), "must be left out, unless the platform team allows it: with some options, a gateway uses certificates of others, and certificateRefs name your own"+setBy("routes.allowedTLSOptions")))
		}
	}
	return errs
}

// checkAddress refuses an address that may be others'. Without a value, the implementation assigns one.
func (a *routeAccess) checkAddress(path *field.Path, value string) field.ErrorList {
	if value == "" || a.addresses.allow(value) {
		return nil
	}
	what := "must be left out"
	if len(a.addresses) > 0 {
		what += " or match " + firstPatterns(a.addresses)
	}
	return field.ErrorList{field.Invalid(path, text.Value(value), what+": a Gateway may get the requests of others that go to an address which it asks for"+setBy("routes.allowedAddresses"))}
}

// checkInfrastructure refuses labels and annotations by which the gateway's own pods would be taken for others. Istio
// and other implementations put them there.
func (a *routeAccess) checkInfrastructure(path *field.Path, of *gateway.GatewayInfrastructure) field.ErrorList {
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(of.Labels)) {
		key, value := string(k), string(of.Labels[k])
		at := path.Child("labels").Key(text.Value(key))
		switch {
		case identifiesPods(key):
			errs = append(errs, field.Invalid(at, text.Value(value), messageInfrastructure))
		case key == naming.LabelApp && strings.HasSuffix(value, eppSuffix):
			errs = append(errs, field.Invalid(at, text.Value(value), "must not end in "+eppSuffix+": this label identifies endpoint pickers"))
		case identifiesGateways(key):
			errs = append(errs, field.Invalid(at, text.Value(value), "must be left out: Istio takes whatever has it for a gateway of the mesh, in any namespace"))
		}
	}
	var annotations []string
	for _, k := range slices.Sorted(maps.Keys(of.Annotations)) {
		key, at := string(k), path.Child("annotations").Key(text.Value(string(k)))
		annotations = append(annotations, key)
		switch {
		case identifiesPods(key):
			errs = append(errs, field.Invalid(at, text.Value(string(of.Annotations[k])), messageInfrastructure))
		case a.names.restricted() && strings.HasPrefix(key, externalDNS):
			errs = append(errs, field.Forbidden(at, "must be left out: it would publish names that the platform team does not allow; host names belong to httproute.hostnames"))
		}
	}
	if a.security != nil {
		errs = append(errs, a.security.CheckAnnotations(path.Child("annotations"), annotations)...)
	}
	return errs
}

// identifiesGateways tells whether a label makes Istio send requests of other tenants to a gateway. It takes each Service with the first
// for a way into a network (pilot/pkg/serviceregistry/kube/controller/network.go). Its own gateways have the last.
func identifiesGateways(key string) bool {
	return strings.HasPrefix(key, "topology.istio.io/") || strings.HasPrefix(key, "networking.istio.io/") || key == "istio"
}

const messageInfrastructure = "must be left out: the gateway's pods would be taken for those of an engine, an endpoint picker or a loading Job"

// identifiesPods tells whether a label or an annotation is one by which pods of services are identified.
func identifiesPods(key string) bool {
	return slices.ContainsFunc([]string{check.OwnPrefix, ownedByLWS, ownedByKueue}, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}
