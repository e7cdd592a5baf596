package scheduling_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestLeft proves that a service keeps saying that a replica ran where the last request said so, and
// this one does not. The last request has it in west, and the placement has east only.
func TestLeft(t *testing.T) {
	west := map[string][]key.ReplicaID{"west": {"worker/0"}}
	grants := func(s *scheduling.Snapshot) { schedulingtest.Reserved("worker/0")(s.Clusters["west"]) }
	cases := map[string]struct {
		reason  string
		changes []func(*scheduling.Snapshot)
		want    map[string][]key.ReplicaID
	}{
		"Stale": {reason: "The Object may be missing in the cache only, and west may not have read that it runs.", changes: []func(*scheduling.Snapshot){grants}, want: west},
		"Unread": {reason: "It is not known what west grants.", changes: []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			s.Unanswered = map[string]bool{"west": true}
		}}, want: west},
		"NotResolved": {reason: "It is not known which clusters there are.", changes: []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			s.Clusters, s.Resolved = nil, false
		}}, want: west},
		"Again": {reason: "West still has the grant.", changes: []func(*scheduling.Snapshot){grants, func(s *scheduling.Snapshot) {
			s.Request.Left, s.Request.Clusters = west, nil
		}}, want: west},
		"Twice": {reason: "What ran, and had left before, is said once.", changes: []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			schedulingtest.Reserved("worker/0", "worker/1")(s.Clusters["west"])
			at := s.Request.Clusters["west"]
			at.Running = []key.ReplicaID{"worker/0", "worker/1"}
			s.Request.Clusters["west"], s.Request.Left = at, west
		}}, want: map[string][]key.ReplicaID{"west": {"worker/0", "worker/1"}}},
		"TwoClusters": {reason: "It ran in north as well.", changes: []func(*scheduling.Snapshot){grants, func(s *scheduling.Snapshot) {
			s.Clusters["north"] = schedulingtest.Cluster("north", schedulingtest.Reserved("worker/0"))
			s.Request = schedulingtest.Requested(s.Request, "north", 1, "worker/0")
			at := s.Request.Clusters["north"]
			at.Running = []key.ReplicaID{"worker/0"}
			s.Request.Clusters["north"] = at
		}}, want: map[string][]key.ReplicaID{"north": {"worker/0"}, "west": {"worker/0"}}},
		"Lost": {reason: "The last request is lost, and it may have said that what west grants runs.", changes: []func(*scheduling.Snapshot){grants, func(s *scheduling.Snapshot) {
			s.Request = nil
		}}, want: west},
		"LostNew": {reason: "A service that is new has no last request, and was granted nothing.", changes: []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			s.Request = nil
		}}},
		"Freed": {reason: "West has no grant any more."},
		"Deleted": {reason: "There is no cluster that could grant its room to others.", changes: []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			delete(s.Clusters, "west")
		}}},
		"Leaves": {reason: "It runs until it is ready in east, and this request says so.", changes: []func(*scheduling.Snapshot){grants, func(s *scheduling.Snapshot) {
			s.States["west"] = schedulingtest.Existing("worker/0")
		}}},
		"Scaled": {reason: "It is stopped, and west may not have read that it runs.", changes: []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			schedulingtest.Reserved("worker/1")(s.Clusters["west"])
			s.Request = schedulingtest.Requested(nil, "west", 1, "worker/1")
			at := s.Request.Clusters["west"]
			at.Running = []key.ReplicaID{"worker/1"}
			s.Request.Clusters["west"] = at
			s.States["west"] = schedulingtest.Existing("worker/1")
		}}, want: map[string][]key.ReplicaID{"west": {"worker/1"}}},
		"NeverRan": {reason: "It was never said to run.", changes: []func(*scheduling.Snapshot){grants, func(s *scheduling.Snapshot) {
			at := s.Request.Clusters["west"]
			at.Running = nil
			s.Request.Clusters["west"] = at
		}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("west"))
			snapshot.Request = schedulingtest.Requested(nil, "west", 1, "worker/0")
			at := snapshot.Request.Clusters["west"]
			at.Running = []key.ReplicaID{"worker/0"}
			snapshot.Request.Clusters["west"] = at
			for _, change := range tc.changes {
				change(&snapshot)
			}
			got := scheduling.Schedule(&scheduling.Demand{
				ServiceID: schedulingtest.Service, Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "east", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}},
				Groups:          []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{{Name: "worker/0", Pods: map[string]int64{"w": 1}}}}},
				PodRequirements: map[string]capacity.PodRequirements{"w": {Requests: capacity.Resources{"nvidia.com/gpu": 8000}}},
			}, &snapshot)
			if diff := cmp.Diff(tc.want, got.Request.Left); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if len(got.Request.Left) == 0 {
				return
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(got.Request.Left)), got.Withdrawn); diff != "" {
				t.Errorf("%s The cluster finds the request by its label.\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
