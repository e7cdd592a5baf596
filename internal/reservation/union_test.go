package reservation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
)

// TestDuring proves that a grant covers pods from before, as long as these are not too many.
func TestDuring(t *testing.T) {
	b := open(&Input{})
	of := func(shapes, each int64) pods {
		counts := tally{}
		for i := range shapes {
			counts[b.shape(capacitytest.Requirements(2, 100+i))] = each
		}
		return b.pods(counts)
	}
	now := b.pods(tally{b.shape(capacitytest.Requirements(1, 1)): 1})
	cases := map[string]struct {
		reason string
		before pods
		covers bool
	}{
		"Few":    {"They may all run.", of(maxReplaced, 1), true},
		"Shapes": {"Their shapes would fill the ledger.", of(maxReplaced+1, 1), false},
		"Pods":   {"A ledger with so many could not be read.", of(1, maxGranted), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := b.during(&ReplicaRequest{Replacing: true}, tc.before, now)
			if is := got.covers(tc.before); is != tc.covers || !got.covers(now) {
				t.Errorf("%s It covers them: %t", tc.reason, is)
			}
		})
	}
}

// TestEqualPods proves that equal pods have one ID, in whatever order they are counted, and that others have another one.
func TestEqualPods(t *testing.T) {
	b := open(&Input{})
	ids := map[string]bool{}
	for range 100 {
		counts := tally{}
		for i := range int64(8) {
			counts[b.shape(capacitytest.Requirements(1, i))] = 1
		}
		ids[b.pods(counts).id] = true
	}
	if fewer := b.pods(tally{b.shape(capacitytest.Requirements(1, 1)): 1, b.shape(capacitytest.Requirements(1, 2)): 1}).id; len(ids) != 1 || ids[fewer] || ids[""] {
		t.Errorf("the IDs are %v, and that of others is %q", ids, fewer)
	}
}

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

// TestUnionOfTolerations proves where pods count that differ in their tolerations.
func TestUnionOfTolerations(t *testing.T) {
	pod := func(gpus int64, teams ...string) *capacity.PodRequirements {
		return capacitytest.Tolerating(capacitytest.Requirements(gpus, 1), teams...)
	}
	of := func(all ...*capacity.PodRequirements) []*capacity.PodRequirements { return all }
	cases := map[string]struct {
		reason      string
		before, now *capacity.PodRequirements
		want        []*capacity.PodRequirements
	}{
		"Added":   {"The grant is of an earlier version, or a toleration was added.", pod(4), pod(4, "x"), of(pod(4, "x"))},
		"Removed": {"Wherever those that come fit, those from before do.", pod(4, "x"), pod(4), of(pod(4))},
		"Changed": {"They need other nodes, and those from before still run.", pod(4, "x"), pod(4, "y"), of(pod(4, "x"), pod(4, "y"))},
		"Smaller": {"Those from before need more room, on fewer nodes.", pod(8), pod(4, "x"), of(pod(8))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := open(&Input{})
			two := func(r *capacity.PodRequirements) pods { return b.pods(tally{b.shape(r): 2}) }
			var want []capacity.PodSet
			for _, r := range tc.want {
				want = append(want, capacity.PodSet{Requirements: r, Count: 2})
			}
			if diff := cmp.Diff(want, b.union(two(tc.before), two(tc.now)).sets); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
