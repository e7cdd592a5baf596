package scheduling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestTooManyRequested proves that nothing is made of more replicas than a request may have: there may be millions.
func TestTooManyRequested(t *testing.T) {
	groups := []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{{Name: key.ReplicaOf("w", 0)}, {Name: key.ReplicaOf("w", 1)}}}}
	cases := map[string]struct {
		reason  string
		policy  v1alpha1.PlacementPolicy
		most    int
		tooMany int
	}{
		"AnyNumber":   {"A ModelCache requests one of each cluster.", v1alpha1.PlacementReplicate, 0, 0},
		"AsMany":      {"Each cluster is asked for all of them.", v1alpha1.PlacementReplicate, 4, 0},
		"OneTooMany":  {"The request would have one more.", v1alpha1.PlacementReplicate, 3, 4},
		"OneIsAsked":  {"Only one cluster is asked at first.", v1alpha1.PlacementFailover, 2, 0},
		"OneTooLarge": {"One is too much for that.", v1alpha1.PlacementFailover, 1, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("west"))
			got := scheduling.Schedule(&scheduling.Demand{ServiceID: schedulingtest.Service, Placement: listed(tc.policy, "east", "west"), Groups: groups, MaxRequested: tc.most}, &snapshot)
			if diff := cmp.Diff(tc.tooMany, got.TooMany); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if (got.Request == nil) != (tc.tooMany > 0) {
				t.Errorf("%s\nthe request is %v", tc.reason, got.Request)
			}
		})
	}
}
