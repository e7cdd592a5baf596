package scheduling_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestHeld proves which replicas keep their pods while nobody answers what they request. The service runs in east, and
// what it requested there before was granted.
func TestHeld(t *testing.T) {
	type decided struct {
		Run, Held, Pending []key.ReplicaID
		PodsHash           string
	}
	w := []key.ReplicaID{"worker/0"}
	last := func(s *scheduling.Snapshot) *reservation.ReplicaRequest {
		return &s.Request.Clusters["east"].Groups[0].Replicas[0]
	}
	two := []key.ReplicaID{"worker/0", "worker/1"}
	unread := func(s *scheduling.Snapshot) { s.Unanswered = map[string]bool{"east": true} }
	outside := &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "east", ProviderConfigRef: &v1alpha1.ProviderConfigRef{Name: "own"}}}}
	forget := func(s *scheduling.Snapshot) { s.Request.Clusters = nil }
	noted := func(s *scheduling.Snapshot) { s.States["east"].Notes = scheduling.Notes{w[0]: {PodsHash: "former"}} }
	cases := map[string]struct {
		reason    string
		placement *v1alpha1.Placement
		gpus      int64
		// replicas that exist. Empty means the first one.
		replicas []key.ReplicaID
		changes  []func(*scheduling.Snapshot)
		want     decided
	}{
		"Abandoned": {reason: "Nobody grants a change in an abandoned cluster.", gpus: 8, changes: []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			s.Clusters["east"].Spec.StopPolicy = v1alpha1.StopAbandon
		}}, want: decided{Run: w, Held: w}},
		"Unread":        {reason: "It runs as it was requested, so its answers are not read.", gpus: 8, changes: []func(*scheduling.Snapshot){unread}, want: decided{Run: w, PodsHash: hashOf(8)}},
		"UnreadHeld":    {reason: "What was held stays held.", gpus: 8, changes: []func(*scheduling.Snapshot){unread, func(s *scheduling.Snapshot) { last(s).Held = true }}, want: decided{Run: w, Held: w}},
		"UnreadChanged": {reason: "What changes now is held.", gpus: 4, changes: []func(*scheduling.Snapshot){unread}, want: decided{Run: w, Held: w}},
		"UnreadNew":     {reason: "It exists, and was not requested before.", gpus: 8, changes: []func(*scheduling.Snapshot){unread, forget}, want: decided{Run: w, Held: w}},
		"UnreadGone": {reason: "It does not start again by a grant that is not known.", gpus: 4, changes: []func(*scheduling.Snapshot){unread, func(s *scheduling.Snapshot) {
			s.States["east"] = schedulingtest.Existing()
		}}, want: decided{Pending: w}},
		"UnreadAlone": {reason: "Nothing of the service exists there, and no grant is known.", gpus: 8, changes: []func(*scheduling.Snapshot){unread, func(s *scheduling.Snapshot) {
			s.States, s.Clusters["east"].Status.Reservations = nil, nil
		}}, want: decided{Pending: w}},
		"Outside":    {reason: "A cluster that has left the fleet grants nothing, so nothing is held there, and nothing noted.", placement: outside, gpus: 4, changes: []func(*scheduling.Snapshot){forget, noted}, want: decided{Run: w}},
		"Deselected": {reason: "What leaves such a cluster keeps its pods and its note, because nobody grants a change.", placement: placementIn("west"), gpus: 4, changes: []func(*scheduling.Snapshot){forget, noted}, want: decided{Run: w, Held: w, PodsHash: "former"}},
		"DeselectedBoth": {reason: "That holds for each replica.", placement: placementIn("west"), gpus: 4, replicas: two, changes: []func(*scheduling.Snapshot){forget, func(s *scheduling.Snapshot) {
			s.States["east"].Notes = scheduling.Notes{two[0]: {PodsHash: "former"}, two[1]: {PodsHash: "former"}}
		}}, want: decided{Run: two, Held: two, PodsHash: "former"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			replicas := tc.replicas
			if replicas == nil {
				replicas = w
			}
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved(replicas...)), schedulingtest.Cluster("west"))
			demand := func(n int64) *scheduling.Demand {
				return &scheduling.Demand{ServiceID: schedulingtest.Service, Placement: placementIn("east"), PodRequirements: gpus(n), Groups: schedulingtest.Requested(nil, "east", 0, replicas...).Clusters["east"].Groups}
			}
			snapshot.States["east"] = schedulingtest.Existing(replicas...)
			snapshot.Request = scheduling.Schedule(demand(8), &snapshot).Request
			last(&snapshot).Held = false
			for _, change := range tc.changes {
				change(&snapshot)
			}
			d := demand(tc.gpus)
			if tc.placement != nil {
				d.Placement = tc.placement
			}
			for _, a := range scheduling.Schedule(d, &snapshot).Assignments {
				if a.Name != "east" {
					continue
				}
				got := decided{slices.Sorted(maps.Keys(a.Run)), slices.Sorted(maps.Keys(a.Held)), a.Pending, a.Notes[w[0]].PodsHash}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}
