package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestClosedPaths proves that no route passes on requests that load adapters, whatever its rules are, and
// that the rule for this fits into the route.
func TestClosedPaths(t *testing.T) {
	const full = "spec.adapterCache: Invalid value: "
	rewrite := func(matches, to string) string {
		return "{matches: [" + matches + "], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: " + to + "}}}]}"
	}
	const strip = "filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]"
	load, unload, post, below := "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/adapters", "/adapters/"
	match := func(n int) string {
		return "{matches: [" + strings.TrimSuffix(strings.Repeat("{path: {value: /x}}, ", n), ", ") + "]}"
	}
	cases := map[string]struct {
		reason string
		rules  []string
		want   []string
		err    string
	}{
		"NoRules": {reason: "Everything goes to the pool otherwise.", want: []string{post, below, load, unload}},
		"Prefix": {
			reason: "A prefix that is removed is in front of them.", rules: []string{rewrite("{path: {type: PathPrefix, value: /chat}}", "/"), rewrite("{path: {value: /b/}}", "/")},
			want: []string{post, below, "/b" + post, "/b" + below, "/b" + load, "/b" + unload, "/chat" + post, "/chat" + below, "/chat" + load, "/chat" + unload, load, unload},
		},
		"Backends": {
			reason: "Several backends may replace the prefixes of several matches, but no exact path.",
			rules:  []string{"{matches: [{path: {type: PathPrefix, value: /chat}}, {path: {value: /b/}}, {path: {type: Exact, value: /a}}], backendRefs: [{name: one, port: 1, " + strip + "}, {name: two, port: 1, " + strip + "}]}"},
			want:   []string{post, below, "/b" + post, "/b" + below, "/b" + load, "/b" + unload, "/chat" + post, "/chat" + below, "/chat" + load, "/chat" + unload, load, unload},
		},
		"Part": {
			reason: "A part of them may be written in another way.", rules: []string{rewrite("{path: {value: /api}}", "/v1")},
			want: []string{post, below, "/api/load_lora_adapter", "/api/unload_lora_adapter", load, unload},
		},
		"Whole":     {reason: "So may a whole path.", rules: []string{rewrite("{path: {value: /l}}", load)}, want: []string{post, below, "/l", load, unload}},
		"Below":     {reason: "So may a path with others below it.", rules: []string{rewrite("{path: {value: /l}}", "/adapters")}, want: []string{post, below, "/l", "/l/", load, unload}},
		"Elsewhere": {reason: "Other prefixes lead elsewhere.", rules: []string{rewrite("{path: {value: /a}}", "/v2"), rewrite("{path: {value: /a}}", "/v1/load")}, want: []string{post, below, load, unload}},
		"Rules": {
			reason: "A route has a number of rules.", rules: strings.Split(strings.TrimSuffix(strings.Repeat("{};", 16), ";"), ";"),
			err: full + "16: must be left out, or the router's httproute may have at most 15 rules: the function adds a rule that keeps clients from loading adapters",
		},
		"Refused": {
			reason: "Of a route that is refused, nothing is worked out: it may have any number of rewrites.", rules: strings.Split(strings.TrimSuffix(strings.Repeat("{};", 17), ";"), ";"),
			err: "spec.roles[1].httproute.rules: Too many: 17: must have at most 16 items",
		},
		"Matches": {
			reason: "And a number of matches.", rules: []string{match(63), match(64)},
			err: full + "131: must be left out, or the router's httproute needs fewer matches: the function adds a rule that keeps clients from loading adapters. All rules may have at most 128 matches, and that rule 64",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := adapted("", "image: vllm, command: [vllm, serve, m]") + "- {name: r, componentType: router, httproute: {parentRefs: [{name: gw}], rules: [" + strings.Join(tc.rules, ", ") + "]}}\n"
			p, err := build(t, spec, "")
			if refused(t, tc.reason, tc.err, err) {
				return
			}
			if diff := cmp.Diff(tc.want, p.Router.ClosedPaths); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			p, err = build(t, strings.Replace(spec, "adapterCache: {size: 20Gi}", "", 1), "")
			if err != nil || p.Router.ClosedPaths != nil {
				t.Errorf("without adapters: %v, %v", p, err)
			}
		})
	}
}

// TestKeepClosed proves that the service's routes keep paths closed after spec.adapterCache was removed, as long as there is a
// claim for adapters.
func TestKeepClosed(t *testing.T) {
	closed := []string{"/adapters", "/adapters/", "/v1/load_lora_adapter", "/v1/unload_lora_adapter"}
	cases := map[string]struct {
		reason          string
		claim, noRouter bool
		want            [][]string
	}{
		"Claim":    {reason: "Engines may mount it.", claim: true, want: [][]string{closed, closed}},
		"NoClaim":  {reason: "No engine can.", want: [][]string{nil, nil}},
		"NoRouter": {reason: "Without a router there is no route.", claim: true, noRouter: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := strings.Replace(adapted("", "image: vllm, command: [vllm, serve, m]"), "adapterCache: {size: 20Gi}", "", 1)
			if !tc.noRouter {
				spec += "- {name: r, componentType: router, httproute: {parentRefs: [{name: gw}]}}\n"
			}
			p, err := build(t, spec, "")
			if err != nil {
				t.Fatal(err)
			}
			var got [][]string
			if p.Router != nil {
				p.FleetRoute = &FleetRoute{}
			}
			p.keepClosed(&RunningView{HasAdapterClaim: tc.claim})
			if p.Router != nil {
				got = [][]string{p.Router.ClosedPaths, p.FleetRoute.ClosedPaths}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestClosedRule shows the rule for paths that are not passed on.
func TestClosedRule(t *testing.T) {
	match := func(t, path string) any { return map[string]any{"path": map[string]any{"type": t, "value": path}} }
	want := map[string]any{"matches": []any{match("Exact", "/"), match("Exact", "/x"), match("PathPrefix", "/y")}}
	if diff := cmp.Diff(want, ClosedRule([]string{"/", "/x", "/y/"})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := ClosedRule(nil); got != nil {
		t.Errorf("without paths: %v", got)
	}
}
