package router

import (
	"slices"

	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// noTimeout turns off the gateway's own timeout, since a long response takes minutes.
const noTimeout = "0s"

func (r *rendering) gateway() map[string]any {
	return map[string]any{
		"apiVersion": gatewayv1.GroupVersion.String(),
		"kind":       "Gateway",
		"metadata":   r.meta(r.cluster.GatewayName()),
		"spec":       kube.WithoutNulls(r.router.Gateway),
	}
}

// route is the user's HTTPRoute, completed so that it reaches the pool.
func (r *rendering) route() map[string]any {
	spec := kube.AsMap(kube.WithoutNulls(r.router.Route))
	if parents := r.parents(spec); parents != nil {
		spec["parentRefs"] = parents
	}
	if len(r.router.Hostnames) > 0 {
		spec["hostnames"] = r.router.Hostnames
	}
	spec["rules"] = r.rules(spec)
	return map[string]any{
		"apiVersion": gatewayv1.GroupVersion.String(),
		"kind":       "HTTPRoute",
		"metadata":   r.meta(r.cluster.RouteName()),
		"spec":       spec,
	}
}

// parents returns the gateways of a route that names none. Nil keeps those of the route.
func (r *rendering) parents(spec map[string]any) any {
	named, _ := spec["parentRefs"].([]any)
	switch {
	case len(named) > 0:
		return nil
	case r.router.HasGateway:
		return []any{map[string]any{"name": r.cluster.GatewayName()}}
	case len(r.router.Parents) > 0:
		return r.router.Parents
	}
	return nil
}

// rules returns the user's rules. A rule without a backend goes to the pool, and so does a
// backend that names the pool in any form. Other backends stay. Without any rule, one rule
// sends everything to the pool.
func (r *rendering) rules(spec map[string]any) []any {
	given, _ := spec["rules"].([]any)
	if len(given) == 0 {
		given = []any{map[string]any{}}
	}
	rules := make([]any, 0, len(given))
	for _, g := range given {
		if rule, ok := g.(map[string]any); ok {
			g = r.rule(rule)
		}
		rules = append(rules, g)
	}
	if closed := plan.ClosedRule(r.router.ClosedPaths); closed != nil {
		rules = append(rules, closed)
	}
	return rules
}

func (r *rendering) rule(rule map[string]any) map[string]any {
	backends, _ := rule["backendRefs"].([]any)
	toPool := false
	switch {
	case len(backends) == 0 && redirects(rule):
		// The Gateway API allows no backend in such a rule.
	case len(backends) == 0:
		rule["backendRefs"], toPool = []any{r.poolRef(map[string]any{})}, true
	default:
		for i := range backends {
			if ref, ok := backends[i].(map[string]any); ok && r.namesPool(ref) {
				backends[i], toPool = r.poolRef(ref), true
			}
		}
	}
	if _, set := rule["timeouts"]; toPool && !set {
		rule["timeouts"] = map[string]any{"request": noTimeout}
	}
	return rule
}

// redirects tells whether the rule answers with a redirect.
func redirects(rule map[string]any) bool {
	filters, _ := rule["filters"].([]any)
	return slices.ContainsFunc(filters, func(f any) bool {
		filter, _ := f.(map[string]any)
		return filter["type"] == string(gatewayv1.HTTPRouteFilterRequestRedirect)
	})
}

// namesPool tells whether a backend means the service's pool.
func (r *rendering) namesPool(ref map[string]any) bool {
	text := func(name string) string { s, _ := ref[name].(string); return s }
	return plan.NamesPool(r.plan.Service, r.cluster, text("name"), text("namespace"), text("kind"))
}

// poolRef makes a backend refer to the pool. Its weight and filters stay. The pool has the
// port.
func (r *rendering) poolRef(ref map[string]any) map[string]any {
	delete(ref, "namespace")
	delete(ref, "port")
	ref["group"], ref["kind"], ref["name"] = inference.GroupName, modelroute.KindPool, r.cluster.PoolName()
	return ref
}
