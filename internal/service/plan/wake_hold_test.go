package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestWouldRefuse names the endpoint pickers for which a role waits that may stop from now on.
func TestWouldRefuse(t *testing.T) {
	const none, former, newest = "", "former", "newest"
	cases := map[string]struct {
		reason string
		// stays and leaves are the endpoint pickers of two clusters. The service leaves the second one.
		stays, leaves string
		want          bool
	}{
		"Nothing":        {reason: "No endpoint picker exists, and no autoscaler."},
		"Runs":           {reason: "Requests can wait.", stays: newest},
		"Former":         {reason: "It would refuse requests.", stays: former, want: true},
		"LeavesFormer":   {reason: "What is left may be out of reach for ever.", stays: newest, leaves: former},
		"LeavesRuns":     {reason: "The next one would refuse requests.", stays: former, leaves: newest, want: true},
		"OnlyLeft":       {reason: "There is no other, and requests can wait.", leaves: newest},
		"OnlyLeftFormer": {reason: "There is no other, and it would refuse requests.", leaves: former, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Router: &Router{}, Clusters: []ClusterPlan{
				{Target: scheduling.Target{Cluster: "stays"}},
				{Target: scheduling.Target{Cluster: "leaves"}, Leaving: true},
			}}
			has := map[string]string{"stays": tc.stays, "leaves": tc.leaves}
			got := p.wouldRefuse(&RunningView{
				Observed:   func(k key.Key) bool { return has[k.Cluster] != none },
				PickerRuns: func(k key.Key, _ string) bool { return has[k.Cluster] == newest },
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
