package router

import (
	"maps"
	"slices"

	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// noTimeout turns the gateway's own off: a long answer takes minutes.
const noTimeout = "0s"

func (r *rendering) gateway() kube.Document {
	return kube.Document{
		"apiVersion": gatewayv1.GroupVersion.String(),
		"kind":       "Gateway",
		"metadata":   r.meta(r.d.GatewayName()),
		"spec":       withoutNulls(r.r.Gateway),
	}
}

// route is the user's HTTPRoute with what it needs to reach the pool.
func (r *rendering) route() kube.Document {
	spec := withoutNulls(r.r.Route)
	if parents := r.parents(spec); parents != nil {
		spec["parentRefs"] = parents
	}
	spec["rules"] = r.rules(spec)
	return kube.Document{
		"apiVersion": gatewayv1.GroupVersion.String(),
		"kind":       "HTTPRoute",
		"metadata":   r.meta(r.d.RouteName()),
		"spec":       spec,
	}
}

// parents are the gateways of a route that names none. Nil leaves the route's.
func (r *rendering) parents(spec kube.Document) any {
	named, _ := spec["parentRefs"].([]any)
	switch {
	case len(named) > 0:
		return nil
	case r.r.HasGateway:
		return []any{kube.Document{"name": r.d.GatewayName()}}
	case len(r.r.Parents) > 0:
		return r.r.Parents
	}
	return nil
}

// rules are the user's. A rule without a backend goes to the pool, as does one
// that names the pool in any form; other backends are the user's business. There
// is one rule for everything where there are none.
func (r *rendering) rules(spec kube.Document) []any {
	given, _ := spec["rules"].([]any)
	if len(given) == 0 {
		given = []any{kube.Document{}}
	}
	rules := make([]any, 0, len(given))
	for _, g := range given {
		if rule, ok := g.(map[string]any); ok {
			g = r.rule(maps.Clone(rule))
		}
		rules = append(rules, g)
	}
	return rules
}

func (r *rendering) rule(rule kube.Document) kube.Document {
	backends, _ := rule["backendRefs"].([]any)
	toPool := false
	switch {
	case len(backends) == 0 && redirects(rule):
		// The Gateway API allows no backend there.
	case len(backends) == 0:
		rule["backendRefs"], toPool = []any{r.poolRef(kube.Document{})}, true
	default:
		backends = slices.Clone(backends)
		for i := range backends {
			if ref, ok := backends[i].(map[string]any); ok && r.namesPool(ref) {
				backends[i], toPool = r.poolRef(maps.Clone(ref)), true
			}
		}
		rule["backendRefs"] = backends
	}
	if _, set := rule["timeouts"]; toPool && !set {
		rule["timeouts"] = kube.Document{"request": noTimeout}
	}
	return rule
}

// redirects tells whether the rule answers by itself.
func redirects(rule kube.Document) bool {
	filters, _ := rule["filters"].([]any)
	return slices.ContainsFunc(filters, func(f any) bool {
		filter, _ := f.(map[string]any)
		return filter["type"] == string(gatewayv1.HTTPRouteFilterRequestRedirect)
	})
}

// namesPool tells whether a backend means the service's pool: by its name, in the
// route's namespace, and as the pool or as the Service that examples have in its
// place and that nobody makes. In a namespace that tenants share the pool has
// another name than the service's users know.
func (r *rendering) namesPool(ref kube.Document) bool {
	users := plan.Deployment{Base: r.p.Service.Name}
	if name := ref["name"]; name != r.d.PoolName() && name != users.PoolName() {
		return false
	}
	if ns, set := ref["namespace"]; set && ns != r.d.Target.Namespace {
		return false
	}
	kind, set := ref["kind"]
	return !set || kind == kindPool || kind == "Service"
}

// poolRef turns a backend into the pool. Its weight and filters stay; the pool
// has the port.
func (r *rendering) poolRef(ref kube.Document) kube.Document {
	delete(ref, "namespace")
	delete(ref, "port")
	ref["group"], ref["kind"], ref["name"] = inference.GroupName, kindPool, r.d.PoolName()
	return ref
}

// withoutNulls returns a copy that can be changed at its top. A null in a
// server-side apply would claim the field.
func withoutNulls(doc kube.Document) kube.Document {
	c := make(kube.Document, len(doc)+2)
	for k, v := range doc {
		if v != nil {
			c[k] = pruned(v)
		}
	}
	return c
}

func pruned(v any) any {
	switch t := v.(type) {
	case map[string]any:
		return withoutNulls(t)
	case []any:
		l := make([]any, len(t))
		for i := range t {
			l[i] = pruned(t[i])
		}
		return l
	}
	return v
}
