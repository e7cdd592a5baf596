package inferencecluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAllowed proves that the cluster itself grants nothing to namespaces that it does not
// allow, whatever an ask says, and takes nothing from those that have something.
func TestAllowed(t *testing.T) {
	allowing := func(what string) string {
		return strings.Replace(typedIn, "spec: {", "spec: {allowedNamespaces: "+what+", ", 1)
	}
	const (
		others  = "{from: Names, names: [other]}"
		gold    = "{from: Selector, selector: {matchLabels: {tier: gold}}}"
		notFree = "{from: Selector, selector: {matchExpressions: [{key: tier, operator: NotIn, values: [free]}]}}"
	)
	namespace := func(tier string) []string {
		return []string{"{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {tier: " + tier + "}}}"}
	}
	there := map[string]string{keyLedger: ledgerOf("[]"), "object/reachable": reached}
	one := []string{ask("u1", "team", 8, "u1")}
	given := outcome{ledger: granted, version: "7", allocated: []string{"s1"}, free: "0/8 nvidia.com/gpu", keys: []string{"object/namespace/team"}}
	refused := outcome{ledger: "[]", version: "7", waiting: []string{"s1: the cluster does not allow namespace team"}, free: "8/8 nvidia.com/gpu"}
	cases := map[string]struct {
		reason   string
		xr       string
		observed map[string]string
		required map[string][]string
		want     outcome
	}{
		"Named":    {"It is allowed by name.", allowing("{from: Names, names: [team]}"), there, map[string][]string{asks: one}, given},
		"NotNamed": {"It is not.", allowing(others), there, map[string][]string{asks: one}, refused},
		"Labels":   {"It is allowed by its labels.", allowing(gold), there, map[string][]string{asks: one, tenants: namespace("gold")}, given},
		// Crossplane selects by the labels.
		"NoLabels":        {"It does not have them.", allowing(gold), there, map[string][]string{asks: one, tenants: nil}, refused},
		"Expression":      {"Expressions are looked at here.", allowing(notFree), there, map[string][]string{asks: one, tenants: namespace("gold")}, given},
		"OtherExpression": {"As above.", allowing(notFree), there, map[string][]string{asks: one, tenants: namespace("free")}, refused},
		"Has": {
			"What was granted stays until its service leaves.", allowing(others), map[string]string{keyLedger: ledgerOf(granted), "object/reachable": reached}, map[string][]string{asks: one}, given,
		},
		"Held": {
			"That something is there is only what the ask says.", allowing(others), there, map[string][]string{asks: {held(ask("u1", "team", 8, "u1")), inNamespace(ask("u0", "other", 8, "u0"), "other")}},
			outcome{
				ledger: strings.NewReplacer("u1", "u0", "s1", "s0", "team", "other").Replace(granted), version: "7", allocated: []string{"s0"},
				waiting: []string{"s1: 1 replicas are there that were not granted: the cluster does not allow namespace team"}, free: "0/8 nvidia.com/gpu",
				not: map[string]string{RoomKept: "RunsUngranted"},
			},
		},
		"NotAnswered": {
			"While the labels are not known, everything stays as it is.", allowing(gold) + allocated, map[string]string{keyLedger: ledgerOf(granted), "object/reachable": reached, "object/namespace/old": reached}, map[string][]string{asks: nil},
			outcome{
				ledger: granted, version: "7", allocated: []string{"s1"}, free: "old", keys: []string{"object/namespace/old"},
				not: map[string]string{AsksRead: "NotRead", RoomKept: "NotCounted", Open: "AsksNotRead"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := run(t, request(t, tc.xr, tc.observed, tc.required))
			if diff := cmp.Diff(tc.want, outcomeOf(rsp), cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			_, asked := rsp.GetRequirements().GetResources()[tenants]
			if reads := strings.Contains(tc.xr, "Selector"); reads != asked {
				t.Errorf("namespaces are asked for: %t", asked)
			}
			for _, c := range rsp.GetConditions() {
				if barred := len(tc.want.waiting) > 0 || name == "Has"; c.GetType() == AsksRead && barred != strings.HasSuffix(c.GetMessage(), "because allowedNamespaces leaves out their namespaces: team/s1") {
					t.Errorf("AsksRead says %q", c.GetMessage())
				}
			}
		})
	}
}
