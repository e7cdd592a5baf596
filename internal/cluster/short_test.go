package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOvercommitted proves that CapacityConsistent blames nodes only for pools whose nodes are observed, and the spec for those that it types in.
func TestOvercommitted(t *testing.T) {
	pin := func(ledger, pool, labels string) string {
		return strings.Replace(ledger, `"replicas"`, `"pin":{"pool":"`+pool+`","nodeSelector":`+labels+`},"replicas"`, 1)
	}
	another := strings.NewReplacer("u1", "u2", "s1", "s2").Replace(granted)
	both := `{"services":[` + pin(granted, "p", `{"a":"b"}`) + "," + pin(another, "q", `{"c":"d"}`) + `]}`
	mixed := strings.Replace(withSelectors, "{a: b}", "{a: b}, nodeCount: 1, allocatable: {nvidia.com/gpu: 4}", 1)
	cases := map[string]struct {
		reason, xr, ledger, want string
	}{
		"TypedIn": {
			reason: "No node is gone: the spec has less than before.", xr: strings.Replace(typedIn, "gpu: 8", "gpu: 4", 1), ledger: reserved,
			want: "more is reserved than the cluster has, because spec.pools has changed, such as nodeCount, allocatable or taints. Nothing new is reserved. Reserved: 8 of 4 nvidia.com/gpu",
		},
		"Typo": {
			reason: "The pool has a resource that nobody requests, and none of what is reserved.", xr: strings.Replace(typedIn, "gpu: 8", "gpuu: 8", 1), ledger: reserved,
			want: "more is reserved than the cluster has, because spec.pools has changed, such as nodeCount, allocatable or taints. Nothing new is reserved. Reserved: 8 of 0 nvidia.com/gpu",
		},
		"Observed": {
			reason: "The nodes may be gone, and the spec may have changed, too.", xr: withSelectors, ledger: reserved,
			want: "more is reserved than the cluster has, because nodes are gone, tainted, cordoned or not Ready, or spec.pools has changed. Nothing new is reserved. Reserved: 8 of 0 nvidia.com/gpu",
		},
		"Pools": {
			reason: "Each pool has its own cause.", xr: mixed, ledger: both,
			want: "more is reserved in these pools than they have. Nothing new is reserved there: p (see its nodeCount, allocatable and taints in spec.pools); q (nodes are gone, tainted, cordoned or not Ready). Reserved: 8 of 4 nvidia.com/gpu in pool p; 8 of 0 nvidia.com/gpu in pool q",
		},
		"OnlyCPU": {
			reason: "What is short is no device. Nodes use some CPU for what is not counted, so amounts of it would mislead.",
			xr:     strings.Replace(mixed, "gpu: 4}", "gpu: 8, cpu: 1}", 1), ledger: strings.Replace(`{"services":[`+pin(granted, "p", `{"a":"b"}`)+`]}`, `"requests":{`, `"requests":{"cpu":2000,`, 1),
			want: "more is reserved in these pools than they have. Nothing new is reserved there: p (see its nodeCount, allocatable and taints in spec.pools)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]string{keyLedger: ledgerOf(tc.ledger), "object/reachable": reached, "object/nodes/p": collection, "object/nodes/q": collection}
			required := map[string][]string{requests: {}, nodesOf("p"): {}, nodesOf("q"): {}}
			got := ""
			for _, c := range run(t, request(t, tc.xr, observed, required)).GetConditions() {
				if c.GetType() == CapacityConsistent && c.GetReason() == ReasonOvercommitted {
					got = c.GetMessage()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWithoutAmounts proves that a shortage counts as the same one while only its amounts differ.
func TestWithoutAmounts(t *testing.T) {
	of := withAmounts("more is reserved in these pools than they have. Nothing new is reserved there: p", []string{"8 of 4 nvidia.com/gpu in pool p"})
	cases := map[string]struct {
		reason, message, want string
	}{
		"Amounts": {"They are left out.", of, "more is reserved in these pools than they have. Nothing new is reserved there: p"},
		"None":    {"The message stays.", "not all nodes are known", "not all nodes are known"},
		"Empty":   {"There is no shortage.", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, WithoutAmounts(tc.message)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
