package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnknownServes proves that a copy gets requests while its cluster cannot be read, as it
// did before, and that others get them as well.
func TestUnknownServes(t *testing.T) {
	there := set("0/prefill/0", "0/decode/0")
	why := "a test"
	cases := map[string]struct {
		reason string
		policy Policy
		east   Candidate
		want   []bool
	}{
		"Known":      {reason: "Every copy serves.", policy: Replicate, want: []bool{true, true}},
		"Unknown":    {reason: "Nothing says that the copy is not as it was.", policy: Replicate, east: Candidate{Unknown: why}, want: []bool{true, true}},
		"Deselected": {reason: "It was turned away before.", policy: Replicate, east: Candidate{Unknown: why, Deselected: true}, want: []bool{false, true}},
		"Drained":    {reason: "So was this one.", policy: Replicate, east: Candidate{Unknown: why, Drain: &why}, want: []bool{false, true}},
		"Dead":       {reason: "Nothing is there to serve.", policy: Replicate, east: Candidate{Unknown: why, Dead: &why}, want: []bool{false, true}},
		"OneIsHome":  {reason: "A service that is in one cluster serves in the one that is known.", policy: Failover, east: Candidate{Unknown: why}, want: []bool{false, true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			east, west := tc.east, Candidate{}
			for _, c := range []*Candidate{&east, &west} {
				c.Present, c.Ready, c.Granted, c.Answers, c.Routed = there, there, there, true, true
			}
			var got []bool
			for _, d := range Place(Request{Policy: tc.policy, Units: []Unit{group("0", 1, 1)}, Shapes: shapes, Candidates: []Candidate{east, west}}) {
				got = append(got, d.Serving)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWaitingServesNobody proves that a copy on its way out gets no requests for the sake of
// another unit that is wanted there and waits: it would stay as long as that waits.
func TestWaitingServesNobody(t *testing.T) {
	there := set("0/prefill/0", "0/decode/0")
	east := Candidate{Name: "east", Weight: 1, Present: there, Ready: there, Granted: there, Answers: true, Routed: true, Led: true}
	west := east
	west.Name, west.Asked = "west", set("1")
	got := map[string]bool{}
	for _, d := range Place(Request{Policy: Spread, Units: []Unit{group("0", 1, 1), group("1", 1, 1)}, Shapes: shapes, Candidates: []Candidate{east, west}}) {
		got[d.Name] = d.Serving
	}
	if diff := cmp.Diff(map[string]bool{"east": true, "west": false}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
