package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhere proves that a cluster that is not needed is told where the service runs, and where
// it is only asked for.
func TestWhere(t *testing.T) {
	there := set("0/prefill/0", "0/decode/0")
	drained := "a test"
	room := Room{Pools: []Pool{nodes("h100", 4, 8)}}
	cases := map[string]struct {
		reason string
		policy Policy
		units  []Unit
		others []Candidate
		want   string
	}{
		"Nowhere": {reason: "A service of no groups.", policy: Failover, want: "it runs in no cluster"},
		"Asked":   {reason: "Nothing runs before it was granted.", policy: Failover, units: []Unit{group("0", 1, 1)}, others: []Candidate{{Name: "a", Room: room}}, want: "it is asked for in a"},
		"Granted": {reason: "What was granted starts.", policy: Failover, units: []Unit{group("0", 1, 1)}, others: []Candidate{{Name: "a", Room: room, Granted: there}}, want: "it runs in a"},
		"Moves": {
			reason: "It leaves the cluster in which it runs for the one that is asked.", policy: Failover, units: []Unit{group("0", 1, 1)},
			others: []Candidate{{Name: "a", Room: room, Present: there, Drain: &drained}, {Name: "b", Room: room}}, want: "it is asked for in b",
		},
		"Spread": {
			reason: "Some of it runs, and some is asked for.", policy: Spread, units: []Unit{group("0", 1, 1), group("1", 1, 1)},
			others: []Candidate{{Name: "a", Weight: 1, Room: room, Present: there}, {Name: "b", Weight: 1, Room: room}}, want: "it runs in a, and is asked for in b",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			last := Candidate{Name: "z", Weight: 1, Room: room}
			all := Place(Request{Policy: tc.policy, Units: tc.units, Shapes: shapes, Candidates: append(tc.others, last)})
			if diff := cmp.Diff(tc.want, all[len(all)-1].Message); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
