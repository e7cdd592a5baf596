package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAllowed proves that a cluster reserves nothing for namespaces that it does not allow,
// whatever a request says, and that they keep the reservations that they have.
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
	there := map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached}
	one := []string{capacityRequest("u1", "team", 8, "u1")}
	kept := outcome{ledger: reserved, version: "7", allocated: []string{"s1"}, free: "0/8 nvidia.com/gpu", keys: []string{"object/namespace/team"}}
	pending := outcome{ledger: "{}", version: "7", waiting: []string{"s1: the cluster does not allow namespace team"}, free: "8/8 nvidia.com/gpu"}
	cases := map[string]struct {
		reason   string
		xr       string
		observed map[string]string
		required map[string][]string
		want     outcome
	}{
		"Named":    {"The namespace is allowed by name.", allowing("{from: Names, names: [team]}"), there, map[string][]string{requests: one}, kept},
		"NotNamed": {"The namespace is not named.", allowing(others), there, map[string][]string{requests: one}, pending},
		"Labels":   {"The namespace is allowed by its labels.", allowing(gold), there, map[string][]string{requests: one, tenants: namespace("gold")}, kept},
		// Crossplane selects by the labels.
		"NoLabels":        {"The namespace does not have the labels.", allowing(gold), there, map[string][]string{requests: one, tenants: nil}, pending},
		"Expression":      {"The function applies expressions, which Crossplane does not.", allowing(notFree), there, map[string][]string{requests: one, tenants: namespace("gold")}, kept},
		"OtherExpression": {"The expression does not match.", allowing(notFree), there, map[string][]string{requests: one, tenants: namespace("free")}, pending},
		"Has": {
			"A reservation stays until its service leaves.", allowing(others), map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached}, map[string][]string{requests: one}, kept,
		},
		"Running": {
			"Only the request says that a replica runs, so nothing is reserved for it.", allowing(others), there, map[string][]string{requests: {withRunning(capacityRequest("u1", "team", 8, "u1")), inNamespace(capacityRequest("u0", "other", 8, "u0"), "other")}},
			outcome{
				ledger: strings.NewReplacer("u1", "u0", "s1", "s0", "team", "other").Replace(reserved), version: "7", allocated: []string{"s0"},
				waiting: []string{"s1: 1 replicas run without a reservation: the cluster does not allow namespace team"}, free: "0/8 nvidia.com/gpu",
				not: map[string]string{CapacityConsistent: "RunsWithoutReservation"},
			},
		},
		"NotAnswered": {
			"Until Crossplane has resolved the namespaces, everything stays as it is.", allowing(gold) + allocated, map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached, "object/namespace/old": reached}, map[string][]string{requests: nil},
			outcome{
				ledger: reserved, version: "7", allocated: []string{"s1"}, free: "old", keys: []string{"object/namespace/old"},
				not: map[string]string{RequestsResolved: "NotResolved", CapacityConsistent: "NotCounted", Schedulable: "RequestsNotResolved"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := run(t, request(t, tc.xr, tc.observed, tc.required))
			if diff := cmp.Diff(tc.want, outcomeOf(rsp), cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			_, required := rsp.GetRequirements().GetResources()[tenants]
			if reads := strings.Contains(tc.xr, "Selector"); reads != required {
				t.Errorf("namespaces are required: %t", required)
			}
			for _, c := range rsp.GetConditions() {
				if excluded := len(tc.want.waiting) > 0 || name == "Has"; c.GetType() == RequestsResolved && excluded != strings.HasSuffix(c.GetMessage(), "because allowedNamespaces leaves out their namespaces: team/s1") {
					t.Errorf("RequestsResolved says %q", c.GetMessage())
				}
			}
		})
	}
}
