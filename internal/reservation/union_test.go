package reservation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
)

// TestUnion proves what is counted while pods are replaced: room for those from before, and for
// those that come. Each pod takes the place of one that covers it, or that it covers.
func TestUnion(t *testing.T) {
	type gpus map[int64]int64
	cases := map[string]struct {
		reason            string
		before, now, want gpus
	}{
		"Smaller": {"The room from before has them.", gpus{8: 2}, gpus{4: 2}, gpus{8: 2}},
		"Larger":  {"Their room has those from before.", gpus{4: 2}, gpus{8: 2}, gpus{8: 2}},
		"More":    {"Some take the places of those from before.", gpus{4: 1}, gpus{4: 3}, gpus{4: 3}},
		"Fewer":   {"The others still run.", gpus{4: 3}, gpus{4: 1}, gpus{4: 3}},
		"Mixed":   {"One is larger, and another one still runs.", gpus{4: 2}, gpus{8: 1}, gpus{8: 1, 4: 1}},
		"Both":    {"One is larger, and the other is smaller.", gpus{1: 1, 8: 1}, gpus{2: 1, 4: 1}, gpus{8: 1, 4: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := open(&Input{})
			pods := func(of gpus) pods {
				counts := tally{}
				for n, count := range of {
					counts[b.shape(capacitytest.Requirements(n, 1))] += count
				}
				return b.pods(counts)
			}
			got := gpus{}
			for _, set := range b.union(pods(tc.before), pods(tc.now)).sets {
				got[set.Requirements.Requests[capacitytest.GPU]/1000] += set.Count
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
