package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProgress proves what RolledOut says of the replicas of a service.
func TestProgress(t *testing.T) {
	cases := map[string]struct {
		progress progress
		paused   bool
		want     string
	}{
		"First":      {progress: progress{desired: 3}, want: "0 of 3 replicas are updated"},
		"OneByOne":   {progress: progress{desired: 4, updated: 1, replaced: 1, held: 2, waiting: 2}, want: "1 of 4 replicas are updated, 1 is being updated, 2 wait for their turn"},
		"NotReady":   {progress: progress{desired: 4, updated: 2, starting: 1, held: 2, waiting: 2}, want: "2 of 4 replicas are updated (1 of them not ready), 2 wait for their turn"},
		"Partition":  {progress: progress{desired: 4, updated: 2, replaced: 1, held: 1}, want: "2 of 4 replicas are updated, 1 is being updated, 1 is held back by spec.rollout.partition"},
		"Paused":     {progress: progress{desired: 4, updated: 1, held: 3, waiting: 2}, paused: true, want: "1 of 4 replicas are updated, 1 is held back by spec.rollout.partition, 2 are held back by spec.rollout.paused"},
		"Unreserved": {progress: progress{desired: 3, updated: 1, held: 2, waiting: 2, pending: 1}, want: "1 of 3 replicas are updated, 1 waits for reserved capacity, 1 waits for its turn"},
		"Surge":      {progress: progress{desired: 2, held: 2, waiting: 2, extra: 2}, want: "0 of 2 replicas are updated, 2 wait for their turn, 2 extra ones run meanwhile"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.progress.text(tc.paused)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
