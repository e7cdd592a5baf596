package scheduling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// gpus returns the requirements of a pod with some GPUs.
func gpus(n int64) map[string]capacity.PodRequirements {
	return map[string]capacity.PodRequirements{"worker/leader": {Requests: capacity.Resources{"nvidia.com/gpu": n * 1000}}}
}

var oneWorker = []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{{Name: "worker/0", Pods: map[string]int64{"worker/leader": 1}}}}}

func hashOf(n int64) string { return reservation.PodsHashes(gpus(n), oneWorker)["worker/0"] }

// TestForgedRequest proves that a service starts no pods that were not granted, although somebody
// writes into its request, together with its spec, what makes that seem so. It wants a pod of 8 GPUs.
func TestForgedRequest(t *testing.T) {
	const small, large = 1, 8
	// runs says with what pods the replica runs.
	runs := func(podsHash string) *scheduling.ClusterState {
		at := schedulingtest.Existing("worker/0")
		at.Notes = scheduling.Notes{"worker/0": {PodsHash: podsHash}}
		return at
	}
	type outcome struct {
		Runs, Held bool
		Note       string
		Awaits     []string
	}
	east := []string{"east"}
	cases := map[string]struct {
		reason string
		// granted has the hash and the generation of the grant. Without any, no answer was read.
		granted    string
		generation int64
		exists     *scheduling.ClusterState
		change     func(*scheduling.Snapshot)
		want       outcome
	}{
		"Granted":      {reason: "What was granted starts.", granted: hashOf(large), generation: 1, want: outcome{Runs: true, Note: hashOf(large), Awaits: east}},
		"Smaller":      {reason: "A grant of a high generation is for less.", granted: hashOf(small), generation: 9, want: outcome{Awaits: east}},
		"OlderVersion": {reason: "An older version answered, so the generation decides.", granted: "none", generation: 1, want: outcome{Runs: true, Note: hashOf(large), Awaits: east}},
		"OlderGrant":   {reason: "It was withdrawn and requested again, or another one changed meanwhile.", granted: hashOf(large), generation: 0, want: outcome{Awaits: east}},

		"RunsSame":  {reason: "Nothing changes for what runs, and no answer is read.", exists: runs(hashOf(large)), want: outcome{Runs: true, Note: hashOf(large)}},
		"RunsSmall": {reason: "The request says that nothing changes, and the object knows better.", exists: runs(hashOf(small)), want: outcome{Runs: true, Held: true, Note: hashOf(small), Awaits: east}},
		"RunsSmallHigh": {
			reason: "A grant of a high generation is for what runs.", granted: hashOf(small), generation: 9, exists: runs(hashOf(small)),
			want: outcome{Runs: true, Held: true, Note: hashOf(small), Awaits: east},
		},
		"Grows":        {reason: "The growth was granted.", granted: hashOf(large), generation: 1, exists: runs(hashOf(small)), want: outcome{Runs: true, Note: hashOf(large), Awaits: east}},
		"RunsOfBefore": {reason: "An older version started it. It is not touched, and noted from now on.", exists: runs(""), want: outcome{Runs: true, Note: hashOf(large)}},
		"Left": {
			reason: "The request does not have the cluster, which the placement does not select.", exists: runs(hashOf(small)),
			change: func(s *scheduling.Snapshot) { s.Request.Clusters, s.Clusters["east"].Labels = nil, nil },
			want:   outcome{Runs: true, Held: true, Note: hashOf(small)},
		},
		"LeftSame": {
			reason: "The same, and nothing changes.", exists: runs(hashOf(large)),
			change: func(s *scheduling.Snapshot) { s.Request.Clusters, s.Clusters["east"].Labels = nil, nil },
			want:   outcome{Runs: true, Note: hashOf(large)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"))
			// Whoever wrote it made it say what the service wants now.
			snapshot.Request = schedulingtest.Requested(nil, "east", 1, "worker/0")
			snapshot.Request.PodRequirements = gpus(large)
			if tc.exists != nil {
				snapshot.States["east"] = tc.exists
			}
			if snapshot.Unanswered = map[string]bool{"east": tc.granted == ""}; tc.granted != "" {
				schedulingtest.Reserved("worker/0")(snapshot.Clusters["east"])
				r := &snapshot.Clusters["east"].Status.Reservations[0].Replicas[0]
				if r.Generation = tc.generation; tc.granted != "none" {
					r.PodsHash = tc.granted
				}
			}
			if tc.change != nil {
				tc.change(&snapshot)
			}
			result := scheduling.Schedule(&scheduling.Demand{
				ServiceID: schedulingtest.Service, Placement: inUS(v1alpha1.PlacementFailover), Groups: oneWorker, PodRequirements: gpus(large),
			}, &snapshot)
			a := &result.Assignments[0]
			_, held := a.Held["worker/0"]
			if diff := cmp.Diff(tc.want, outcome{a.Run["worker/0"], held, a.Notes["worker/0"].PodsHash, result.Awaits}); diff != "" {
				t.Errorf("%s %s\n-want, +got:\n%s", tc.reason, a.Message, diff)
			}
		})
	}
}

// TestHomeComesBack proves that a copy leaves only for a copy that was written since its cluster is the
// home. The service was in east, then in west, and is to be in east again.
func TestHomeComesBack(t *testing.T) {
	written := func(epoch int64) func(*scheduling.Snapshot) {
		return func(s *scheduling.Snapshot) {
			s.States["east"].Notes = scheduling.Notes{"worker/0": {HomeEpoch: epoch}}
		}
	}
	type outcome struct {
		WestRuns bool
		// Notes that the objects in east and west get.
		East, West int64
	}
	cases := map[string]struct {
		reason string
		home   reservation.Home
		change func(*scheduling.Snapshot)
		// groups of the service. Empty means one worker.
		groups []reservation.ReplicaGroup
		want   outcome
	}{
		"Stale":   {reason: "A cache still has the object from before.", home: reservation.Home{Cluster: "east", Epoch: 3}, change: written(0), want: outcome{WestRuns: true, East: 3, West: 2}},
		"Older":   {reason: "The object is from an earlier time there.", home: reservation.Home{Cluster: "east", Epoch: 5}, change: written(3), want: outcome{WestRuns: true, East: 5, West: 2}},
		"Written": {reason: "It was written since.", home: reservation.Home{Cluster: "east", Epoch: 3}, change: written(3), want: outcome{East: 3}},
		"First":   {reason: "Nothing is left from before the first home.", home: reservation.Home{Cluster: "east", Epoch: 1}, change: written(0), want: outcome{}},
		"Lost":    {reason: "The record was lost, and starts anew.", home: reservation.Home{Cluster: "east", Epoch: 1}, change: written(7), want: outcome{WestRuns: true, West: 2}},
		"StaleBoth": {reason: "That holds for each group.", home: reservation.Home{Cluster: "east", Epoch: 3}, groups: []reservation.ReplicaGroup{
			oneWorker[0], {Name: "1", Replicas: []reservation.ReplicaRequest{{Name: "worker/1", Pods: map[string]int64{"worker/leader": 1}}}},
		}, change: func(s *scheduling.Snapshot) {
			s.Request.Homes["1"] = s.Request.Homes["0"]
			s.States["east"], s.States["west"] = schedulingtest.Existing("worker/0", "worker/1"), schedulingtest.Existing("worker/0", "worker/1")
			s.States["west"].Notes = scheduling.Notes{"worker/0": {HomeEpoch: 2}, "worker/1": {HomeEpoch: 2}}
		}, want: outcome{WestRuns: true, East: 3, West: 2}},
		"Updating": {reason: "It was written since, and its pods are being replaced.", home: reservation.Home{Cluster: "east", Epoch: 3}, change: func(s *scheduling.Snapshot) {
			written(3)(s)
			s.States["east"].Updating = map[key.ReplicaID]bool{"worker/0": true}
		}, want: outcome{WestRuns: true, East: 3, West: 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0")), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0")))
			snapshot.Clusters["west"].Spec.StopPolicy = v1alpha1.StopDrain
			snapshot.Request.Homes = map[key.GroupID]reservation.Home{"0": tc.home}
			snapshot.States["east"], snapshot.States["west"] = schedulingtest.Existing("worker/0"), schedulingtest.Existing("worker/0")
			snapshot.States["west"].Notes = scheduling.Notes{"worker/0": {HomeEpoch: 2}}
			tc.change(&snapshot)
			groups := tc.groups
			if groups == nil {
				groups = oneWorker
			}
			result := scheduling.Schedule(&scheduling.Demand{
				ServiceID: schedulingtest.Service, Placement: inUS(v1alpha1.PlacementFailover), Groups: groups, PodRequirements: gpus(8),
			}, &snapshot)
			east, west := &result.Assignments[0], &result.Assignments[1]
			if !east.Run["worker/0"] {
				t.Fatalf("%s It does not run in east: %s", tc.reason, east.Message)
			}
			got := outcome{WestRuns: west.Run["worker/0"], East: east.Notes["worker/0"].HomeEpoch, West: west.Notes["worker/0"].HomeEpoch}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// inUS is a placement in all clusters of the region.
func inUS(policy v1alpha1.PlacementPolicy) *v1alpha1.Placement {
	return &v1alpha1.Placement{Policy: policy, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}}
}

// TestForgedCluster proves that what one cluster has reserved starts in no other, although the request
// says that the objects in east are those of west. The service has one worker in east and wants two.
func TestForgedCluster(t *testing.T) {
	twoWorkers := []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{
		oneWorker[0].Replicas[0], {Name: "worker/1", Pods: map[string]int64{"worker/leader": 1}},
	}}}
	for _, policy := range []v1alpha1.PlacementPolicy{v1alpha1.PlacementFailover, v1alpha1.PlacementReplicate, v1alpha1.PlacementSpread} {
		t.Run(string(policy), func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0", "worker/1")))
			snapshot.Clusters["west"].Status.Reservations[0].Replicas[0].PodsHash = hashOf(8)
			at := schedulingtest.Existing("worker/0")
			at.ProviderConfig, at.Namespace = snapshot.Clusters["east"].Spec.ProviderConfigRef.Ref(), "ns"
			at.Notes = scheduling.Notes{"worker/0": {PodsHash: hashOf(1)}}
			snapshot.States["east"] = at
			forged := snapshot.Request.Clusters["west"]
			forged.Name = "east"
			snapshot.Request.Clusters["west"] = forged
			result := scheduling.Schedule(&scheduling.Demand{
				ServiceID: schedulingtest.Service, Placement: inUS(policy), Groups: twoWorkers, PodRequirements: gpus(8),
			}, &snapshot)
			for i := range result.Assignments {
				a := &result.Assignments[i]
				if a.Target.ProviderConfig != at.ProviderConfig {
					continue
				}
				if _, held := a.Held["worker/0"]; a.Run["worker/1"] || a.Run["worker/0"] && !held {
					t.Errorf("%v run in east, and %v of them are held", a.Run, a.Held)
				}
			}
		})
	}
}
