package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// loadingPaths are those at which vLLM loads and unloads adapters from anywhere, for whoever reaches them. A path with a slash at its
// end includes what is below it: SageMaker's form of these requests is POST /adapters and DELETE /adapters/{name}
// (vllm/entrypoints/serve/lora/api_router.py).
var loadingPaths = []string{"/adapters", "/adapters/", "/v1/load_lora_adapter", "/v1/unload_lora_adapter"}

// close keeps requests that load adapters from passing the router's routes.
func (r *Router) close() field.ErrorList {
	r.ClosedPaths = leadingTo(loadingPaths, r.rules)
	return r.checkClosed(field.NewPath("spec", "adapterCache"), "be left out")
}

// checkClosed refuses a route that has no room for the rule with the closed paths. other is what may be done in place of a smaller route.
func (r *Router) checkClosed(at *field.Path, other string) field.ErrorList {
	const remedy = ": the function adds a rule that keeps clients from loading adapters"
	matches := len(r.ClosedPaths)
	for i := range r.rules {
		matches += max(len(r.rules[i].Matches), 1)
	}
	switch {
	case len(r.rules) >= maxRouteRules:
		return field.ErrorList{field.Invalid(at, len(r.rules), fmt.Sprintf("must %s, or the router's httproute may have at most %d rules%s", other, maxRouteRules-1, remedy))}
	case len(r.ClosedPaths) > maxRuleMatches, matches > maxRouteMatches:
		return field.ErrorList{field.Invalid(at, matches, fmt.Sprintf("must %s, or the router's httproute needs fewer matches%s. All rules may have at most %d matches, and that rule %d", other, remedy, maxRouteMatches, maxRuleMatches))}
	}
	return nil
}

// keepClosed keeps these paths closed after spec.adapterCache was removed, as long as an engine may load adapters. Pods that
// end hold the claim, and it is only deleted once no replica can have a former template.
func (p *Plan) keepClosed(running *RunningView) {
	p.FormerAdapters = p.Adapters == nil && running.HasAdapterClaim
	if !p.FormerAdapters || p.Router == nil {
		return
	}
	p.Router.ClosedPaths = leadingTo(loadingPaths, p.Router.rules)
	if p.FleetRoute != nil {
		p.FleetRoute.ClosedPaths = p.Router.ClosedPaths
	}
}

// RefuseFullRoute refuses a route without room for the paths that stay closed after spec.adapterCache was removed.
func (p *Plan) RefuseFullRoute() field.ErrorList {
	if !p.FormerAdapters || p.Router == nil {
		return nil
	}
	return p.Router.checkClosed(p.Router.path.Child("httproute", "rules"), "wait until no engine has spec.adapterCache any more and its claim is gone")
}

// refuseRootPath refuses engines that answer the closed paths below others, too.
func refuseRootPath(roles []*Role) field.ErrorList {
	const rootPath = "--root-path"
	var errs field.ErrorList
	for _, r := range roles {
		if r.line != nil && r.line.Has(rootPath) {
			errs = append(errs, field.Forbidden(r.line.pathOf(rootPath), rootPath+" must be left out with spec.adapterCache: clients could load adapters below that path"))
		}
	}
	return errs
}

// leadingTo returns paths, and those that the rules of a route rewrite into them.
func leadingTo(paths []string, rules []gateway.HTTPRouteRule) []string {
	all := slices.Clone(paths)
	for i := range rules {
		for _, to := range rewrites(&rules[i]) {
			for _, from := range prefixes(&rules[i]) {
				for _, p := range paths {
					rest, below := strings.CutPrefix(p, strings.TrimSuffix(to, "/"))
					if below && (rest == "" || rest[0] == '/') {
						all = append(all, cmp.Or(strings.TrimSuffix(from, "/")+rest, "/"))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// rewrites returns what a rule puts in the place of its prefixes, each once.
func rewrites(rule *gateway.HTTPRouteRule) []string {
	var all []string
	add := func(filters []gateway.HTTPRouteFilter) {
		for i := range filters {
			if w := filters[i].URLRewrite; w != nil && w.Path != nil && w.Path.ReplacePrefixMatch != nil {
				all = append(all, *w.Path.ReplacePrefixMatch)
			}
		}
	}
	add(rule.Filters)
	for i := range rule.BackendRefs {
		add(rule.BackendRefs[i].Filters)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// prefixes returns the prefixes of paths that a rule matches, each once. Without matches, that is every path.
func prefixes(rule *gateway.HTTPRouteRule) []string {
	if len(rule.Matches) == 0 {
		return []string{"/"}
	}
	var all []string
	for i := range rule.Matches {
		p := ptr.Deref(rule.Matches[i].Path, gateway.HTTPPathMatch{})
		if ptr.Deref(p.Type, gateway.PathMatchPathPrefix) == gateway.PathMatchPathPrefix {
			all = append(all, ptr.Deref(p.Value, "/"))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ClosedRule is the rule of a route for paths that it does not pass on, or nil without any. It has no
// backend, so a gateway answers with an error. An exact path takes precedence over every other match, and a longer prefix over a shorter
// one.
func ClosedRule(paths []string) map[string]any {
	if len(paths) == 0 {
		return nil
	}
	matches := make([]any, len(paths))
	for i, p := range paths {
		matchType, value := gateway.PathMatchExact, p
		if above, below := strings.CutSuffix(p, "/"); below && above != "" {
			matchType, value = gateway.PathMatchPathPrefix, above
		}
		matches[i] = map[string]any{"path": map[string]any{"type": string(matchType), "value": value}}
	}
	return map[string]any{"matches": matches}
}
