package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/gatewayschema"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// gatewayDuration matches a duration of the Gateway API (GEP-2257).
var gatewayDuration = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)

// planRoute decides which gateways the route attaches to: those that it names, else the service's
// own Gateway, else those of the platform team. Without any of them no HTTPRoute is rendered.
func (r *Router) planRoute(path *field.Path, role v1alpha1.Role, access *routeAccess) ([]Warning, field.ErrorList) {
	r.Route, r.Gateway = role.HTTPRoute, role.Gateway
	r.HasGateway = role.Gateway != nil
	var errs field.ErrorList
	var spec gateway.HTTPRouteSpec
	readable := role.HTTPRoute == nil
	if role.HTTPRoute != nil {
		errs = append(errs, readSpec(role.HTTPRoute, path.Child("httproute"), gatewayschema.HTTPRoute, &spec, func(p *field.Path) field.ErrorList {
			readable = true
			return append(checkRoute(p, &spec, access.experimental()), access.checkRules(p, &spec)...)
		})...)
	}
	var g gateway.GatewaySpec
	if role.Gateway != nil {
		errs = append(errs, readSpec(role.Gateway, path.Child("gateway"), gatewayschema.Gateway, &g, func(p *field.Path) field.ErrorList {
			return append(checkGateway(p, role.Gateway, &g), access.checkGateway(p, &g)...)
		})...)
	}
	// What is worked out of the rules grows with their number, which is limited only in a valid route.
	if len(errs) == 0 {
		r.rules = spec.Rules
	}
	own := len(spec.ParentRefs) > 0 || spec.UseDefaultGateways != "" && spec.UseDefaultGateways != gateway.GatewayDefaultScopeNone
	if !own && !r.HasGateway {
		r.Parents = access.platform
	}
	r.HasRoute = own || r.HasGateway || len(r.Parents) > 0
	if readable {
		errs = append(errs, r.planHostnames(path.Child("httproute"), &spec, access)...)
	}
	if len(errs) == 0 { // Others say more of such a gateway.
		errs = access.checkDefaultGateways(path, &spec, &g)
	}
	var warnings []Warning
	if role.HTTPRoute != nil && !r.HasRoute && len(errs) == 0 {
		warnings = append(warnings, warningAt(path.Child("httproute", "parentRefs"), "must name a gateway, because neither the router nor the Composition's input has one: no HTTPRoute is created"))
	}
	if r.HasGateway && len(access.fleet) > 0 {
		warnings = append(warnings, warningAt(path.Child("gateway"), "the fleet route sends requests to the entrypoint of each cluster, and a Gateway of the service's own is not behind it: leave gateway out, and name the entrypoint's Gateway in httproute.parentRefs"))
	}
	if r.HasGateway && !own && len(errs) == 0 { // A route with gateways of its choice may get its requests by another one.
		warnings = append(warnings, warnOfListeners(path.Child("gateway"), &g, r.Hostnames)...)
	}
	return warnings, errs
}

// planHostnames decides the host names of the route, and checks its gateways.
func (r *Router) planHostnames(path *field.Path, spec *gateway.HTTPRouteSpec, access *routeAccess) field.ErrorList {
	for _, h := range spec.Hostnames {
		r.Hostnames = append(r.Hostnames, string(h))
	}
	if !r.HasRoute {
		return nil
	}
	shared, errs := access.checkParents(path, spec, r.HasGateway, r.Parents)
	name, more := access.checkHostnames(path, spec, shared, r.HasGateway)
	if name != "" {
		r.Hostnames = []string{name}
	}
	return append(errs, more...)
}

// unknownToGateway says what is known of a field that the types of the Gateway API do not have.
const unknownToGateway = "Gateway API v1.6 has none of that name"

// readSpec reads a document as the spec of a kind. It calls then, which checks more, if the document can be read and its lists have
// lengths that the schema allows. What these checks cost is bounded by that. A top-level field that the schema does not have is a
// mistake, such as a whole HTTPRoute instead of its spec. Nested fields are rendered even if they are newer than the schema.
func readSpec(doc *kube.Document, path *field.Path, schema *gatewayschema.Schema, into any, then func(*field.Path) field.ErrorList) field.ErrorList {
	kind, known := schema.Kind, schema.Fields()
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(doc.GetFields())) {
		switch {
		case slices.Contains(known, name):
		case slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status"}, name):
			errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf("must be left out: this is the spec of the %s, without the rest of the object", kind)))
		default:
			errs = append(errs, field.Forbidden(path.Child(text.Value(name)), fmt.Sprintf("must be left out: the spec of a %s has only the fields %s", kind, strings.Join(known, ", "))))
		}
	}
	unknown, wrong := kube.DecodeKnown(doc, path, into)
	unknown = slices.DeleteFunc(unknown, func(u kube.UnknownField) bool {
		return slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Field == u.Path })
	})
	// A later Gateway API may have the others.
	_, misspelt := judgeUnknown(unknown, unknownToGateway)
	errs = slices.Concat(errs, misspelt, wrong, checkLists(structpb.NewStructValue(doc), path))
	if len(errs) > 0 {
		return errs
	}
	refused := schema.Check(path, kube.AsMap(kube.WithoutNulls(doc)))
	isTooMany := func(e *field.Error) bool { return e.Type == field.ErrorTypeTooMany }
	if len(refused) >= kube.MaxProblems || slices.ContainsFunc(refused, isTooMany) {
		return refused
	}
	errs = then(path)
	said := map[string]bool{}
	for _, e := range errs {
		said[e.Field] = true
	}
	// The other checks say more of the same field.
	refused = slices.DeleteFunc(refused, func(e *field.Error) bool { return said[e.Field] })
	return append(errs, refused...)
}

func checkRoute(path *field.Path, spec *gateway.HTTPRouteSpec, experimental bool) field.ErrorList {
	errs := routeLimits(path, spec, experimental)
	if len(errs) == 0 {
		errs = checkTexts(path, spec, experimental)
	}
	for i, ref := range spec.ParentRefs {
		if ref.Name == "" {
			errs = append(errs, field.Required(path.Child("parentRefs").Index(i).Child("name"), "must be the name of a gateway"))
		}
	}
	for i, h := range spec.Hostnames {
		errs = append(errs, checkHostname(path.Child("hostnames").Index(i), string(h))...)
	}
	for i := range spec.Rules {
		rule, at := &spec.Rules[i], path.Child("rules").Index(i)
		for j, b := range rule.BackendRefs {
			if b.Name == "" {
				errs = append(errs, field.Required(at.Child("backendRefs").Index(j).Child("name"), "must be the name of a backend; leave backendRefs out for the service's own pods"))
			}
		}
		if t := rule.Timeouts; t != nil {
			errs = append(errs, checkDuration(at.Child("timeouts", "request"), t.Request)...)
			errs = append(errs, checkDuration(at.Child("timeouts", "backendRequest"), t.BackendRequest)...)
		}
	}
	return errs
}

func checkDuration(path *field.Path, d *gateway.Duration) field.ErrorList {
	if d == nil || gatewayDuration.MatchString(string(*d)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, text.Value(string(*d)), "must be a duration such as 300s, 10m or 1h30m; 0s is no limit")}
}

// checkGateway checks a spec that was read from a document.
func checkGateway(path *field.Path, doc *kube.Document, spec *gateway.GatewaySpec) field.ErrorList {
	errs := gatewayLimits(path, doc, spec)
	if spec.GatewayClassName == "" {
		errs = append(errs, field.Required(path.Child("gatewayClassName"), "must be the name of a GatewayClass of the cluster"))
	}
	if len(spec.Listeners) == 0 {
		errs = append(errs, field.Required(path.Child("listeners"), "must have at least one listener, such as {name: http, port: 80, protocol: HTTP}"))
	}
	for i := range spec.Listeners {
		l, at := &spec.Listeners[i], path.Child("listeners").Index(i)
		if l.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "each listener has a name of its own"))
		} else {
			errs = append(errs, check.Name(at.Child("name"), string(l.Name))...)
		}
		if l.Protocol == "" {
			errs = append(errs, field.Required(at.Child("protocol"), "must be HTTP, HTTPS or another protocol of the Gateway API"))
		}
		if l.Hostname != nil {
			errs = append(errs, checkHostname(at.Child("hostname"), string(*l.Hostname))...)
		}
	}
	return errs
}

// checkHostname accepts host names, also with '*' as the first label. It refuses IP addresses.
func checkHostname(path *field.Path, host string) field.ErrorList {
	if isHostname(host) && len(validation.IsValidIP(nil, host)) > 0 {
		return nil
	}
	return field.ErrorList{invalidHostname(path, host)}
}

// isHostname tells whether a text has the form of a host name, which may begin with a wildcard. That of an IP address has it, too.
func isHostname(host string) bool {
	return len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) == 0
}

func invalidHostname(path *field.Path, host string) *field.Error {
	return field.Invalid(path, text.Value(host), "must be a host name such as llm.example.com or *.example.com: lower case, without scheme, port or path")
}
