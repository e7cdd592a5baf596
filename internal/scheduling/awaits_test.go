package scheduling_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// What a service reads of clusters, and which of them find its request besides those that it has.
type reads struct{ Awaits, Silent, Withdrawn []string }

// TestAwaits shows whose answers a service reads. It runs in east, where it has one replica.
func TestAwaits(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*scheduling.Snapshot)
		want   reads
	}{
		"Runs": {reason: "All that is requested runs.", change: func(*scheduling.Snapshot) {}},
		"Gone": {reason: "Its object is gone, so its reservation decides whether it starts again.", change: func(s *scheduling.Snapshot) {
			s.States["east"].Present["worker/0"] = false
		}, want: reads{Awaits: []string{"east"}}},
		"Held": {reason: "It keeps its pods until the answer comes.", change: func(s *scheduling.Snapshot) {
			s.Request.Clusters["east"].Groups[0].Replicas[0].Held = true
		}, want: reads{Awaits: []string{"east"}}},
		"Elsewhere": {reason: "West was asked as well, and has to read that nothing is requested of it any more.", change: func(s *scheduling.Snapshot) {
			s.Request = schedulingtest.Requested(s.Request, "west", 1, "worker/0")
		}, want: reads{Awaits: []string{"west"}, Withdrawn: []string{"west"}}},
		"Withdrawn": {reason: "West may not have read that so far.", change: func(s *scheduling.Snapshot) {
			s.Labelled, s.Unanswered = []string{"east", "west"}, map[string]bool{"west": true}
		}, want: reads{Awaits: []string{"west"}, Withdrawn: []string{"west"}}},
		"Keeps": {reason: "West still has a grant.", change: func(s *scheduling.Snapshot) {
			s.Labelled = []string{"east", "west"}
			schedulingtest.Reserved("worker/0")(s.Clusters["west"])
		}, want: reads{Awaits: []string{"west"}, Withdrawn: []string{"west"}}},
		"Freed": {reason: "West has no grant, so its label goes.", change: func(s *scheduling.Snapshot) {
			s.Labelled = []string{"east", "west"}
		}, want: reads{Awaits: []string{"west"}}},
		"Deleted": {reason: "No cluster reads the label.", change: func(s *scheduling.Snapshot) {
			s.Labelled = []string{"east", "north"}
		}},
		"NotResolved": {reason: "Which clusters there are is not known yet.", change: func(s *scheduling.Snapshot) {
			s.Labelled, s.Resolved, s.Clusters = []string{"east", "north"}, false, nil
		}, want: reads{Awaits: []string{"north"}, Withdrawn: []string{"north"}}},
		"Lost": {reason: "Any cluster may have answered the request that is lost.", change: func(s *scheduling.Snapshot) {
			s.Request = nil
		}, want: reads{Awaits: []string{"east", "west"}}},
		"LostLabels": {reason: "A cluster that reads nothing of itself in a request would free what runs.", change: func(s *scheduling.Snapshot) {
			s.Request, s.Labelled, s.Unanswered = nil, []string{"west"}, map[string]bool{"west": true}
		}, want: reads{Awaits: []string{"east", "west"}}},
		"Silent": {reason: "East has not answered for a minute, so its InferenceCluster may say why.", change: func(s *scheduling.Snapshot) {
			s.States, s.UnplacedSince = nil, s.Now.Add(-time.Minute)
		}, want: reads{Awaits: []string{"east"}, Silent: []string{"east"}}},
		"RunsLong": {reason: "East has answered what runs there, and its answers are not read. Something else waits.", change: func(s *scheduling.Snapshot) {
			s.UnplacedSince = s.Now.Add(-time.Hour)
		}},
		"Granted": {reason: "East has granted it.", change: func(s *scheduling.Snapshot) {
			s.States, s.UnplacedSince = nil, s.Now.Add(-time.Hour)
			schedulingtest.Reserved("worker/0")(s.Clusters["east"])
			s.Clusters["east"].Status.Reservations[0].Replicas[0].Generation = 1
		}, want: reads{Awaits: []string{"east"}}},
		"GrantedPart": {reason: "East has granted what runs there, and has not answered what was added.", change: func(s *scheduling.Snapshot) {
			s.Request, s.UnplacedSince = schedulingtest.Requested(nil, "east", 1, "worker/0", "worker/1"), s.Now.Add(-time.Hour)
			schedulingtest.Reserved("worker/0")(s.Clusters["east"])
			s.Clusters["east"].Status.Reservations[0].Replicas[0].Generation = 1
		}, want: reads{Awaits: []string{"east"}, Silent: []string{"east"}}},
		"NotAsked": {reason: "East was asked for nothing so far.", change: func(s *scheduling.Snapshot) {
			s.States, s.UnplacedSince = nil, s.Now.Add(-time.Hour)
			s.Request = schedulingtest.Requested(nil, "west", 1, "worker/0")
		}, want: reads{Awaits: []string{"east", "west"}, Withdrawn: []string{"west"}}},
		"Left": {reason: "West may still have a grant for what ran there.", change: func(s *scheduling.Snapshot) {
			s.Request.Left, s.Unanswered = map[string][]key.ReplicaID{"west": {"worker/1"}}, map[string]bool{"west": true}
		}, want: reads{Awaits: []string{"west"}, Withdrawn: []string{"west"}}},
		"Slow": {reason: "East may still answer.", change: func(s *scheduling.Snapshot) {
			s.States, s.UnplacedSince = nil, s.Now.Add(-59*time.Second)
		}, want: reads{Awaits: []string{"east"}}},
		"SilentBefore": {reason: "East was read before. What it said has changed the condition, so the time starts anew.", change: func(s *scheduling.Snapshot) {
			s.States, s.UnplacedSince, s.Silent = nil, s.Now, map[string]bool{"east": true}
		}, want: reads{Awaits: []string{"east"}, Silent: []string{"east"}}},
		"AnswersAgain": {reason: "East was read before, and has answered.", change: func(s *scheduling.Snapshot) {
			s.States, s.UnplacedSince, s.Silent = nil, s.Now, map[string]bool{"east": true}
			s.Clusters["east"].Status.Pending = []v1alpha1.PendingRequest{{UID: "uid", Namespace: "ns", Name: "svc", Generation: 1}}
		}, want: reads{Awaits: []string{"east"}}},
		"Refused": {reason: "East has answered.", change: func(s *scheduling.Snapshot) {
			s.States, s.UnplacedSince = nil, s.Now.Add(-time.Hour)
			s.Clusters["east"].Status.Pending = []v1alpha1.PendingRequest{{UID: "uid", Namespace: "ns", Name: "svc", Generation: 1}}
		}, want: reads{Awaits: []string{"east"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("west"))
			snapshot.Request = schedulingtest.Requested(nil, "east", 1, "worker/0")
			snapshot.Labelled = []string{"east"}
			snapshot.States["east"] = schedulingtest.Existing("worker/0")
			tc.change(&snapshot)
			got := scheduling.Schedule(&scheduling.Demand{
				ServiceID: schedulingtest.Service, Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "east", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}},
				Groups:          []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{{Name: key.ReplicaOf("worker", 0), Pods: map[string]int64{"worker/leader": 1}}}}},
				PodRequirements: map[string]capacity.PodRequirements{"worker/leader": {Requests: capacity.Resources{"nvidia.com/gpu": 8000}}},
			}, &snapshot)
			if diff := cmp.Diff(tc.want, reads{got.Awaits, got.Silent, got.Withdrawn}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
