package scheduling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestReplacing proves that a replica whose pods change says so, until its cluster runs what was
// granted for them.
func TestReplacing(t *testing.T) {
	// said has what the request says of the replica: whether it is held, and whether it is being replaced.
	type said struct {
		Held, Replacing bool
		Runs            int64
	}
	told := func(generation int64, runs bool) func(*scheduling.Snapshot) {
		return func(s *scheduling.Snapshot) {
			s.States["east"].Told = map[key.ReplicaID]scheduling.Told{"worker/0": {Generation: generation, Runs: runs}}
		}
	}
	noted := func(s *scheduling.Snapshot) { s.Request.Clusters["east"].Groups[0].Replicas[0].Replacing = true }
	cases := map[string]struct {
		reason  string
		gpus    int64
		changes []func(*scheduling.Snapshot)
		want    said
	}{
		"Same":      {"Nothing changes, also where it is not known what runs.", 8, nil, said{}},
		"Smaller":   {"It waits for the cluster.", 4, nil, said{Held: true, Replacing: true, Runs: 5}},
		"Larger":    {"So does more.", 16, nil, said{Held: true, Replacing: true, Runs: 5}},
		"Before":    {"Another change comes before the cluster runs what was granted.", 16, []func(*scheduling.Snapshot){noted, told(5, false)}, said{Held: true, Replacing: true}},
		"After":     {"It comes when the cluster runs that.", 16, []func(*scheduling.Snapshot){noted, told(5, true)}, said{Held: true, Replacing: true, Runs: 5}},
		"Stale":     {"It comes after it ran that.", 16, []func(*scheduling.Snapshot){noted, told(3, true), func(s *scheduling.Snapshot) { s.Request.Clusters["east"].Groups[0].Replicas[0].Runs = 5 }}, said{Held: true, Replacing: true, Runs: 5}},
		"Granted":   {"The cluster is not told yet.", 8, []func(*scheduling.Snapshot){noted, told(1, true)}, said{Replacing: true, Runs: 1}},
		"Told":      {"Pods from before may run.", 8, []func(*scheduling.Snapshot){noted, told(5, false)}, said{Replacing: true}},
		"Runs":      {"The cluster runs what was granted.", 8, []func(*scheduling.Snapshot){noted, told(5, true)}, said{}},
		"Restarted": {"Pods that restart later are the same.", 8, []func(*scheduling.Snapshot){told(5, false)}, said{}},
		"Again": {"It comes back with less before its former pods have stopped. Its object is being deleted, and is not observed.", 4, []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			s.Request.Clusters, s.States["east"] = nil, schedulingtest.Existing()
		}}, said{Replacing: true}},
		"New": {"Nothing of it was requested, granted or made so far.", 8, []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			s.Request.Clusters, s.Clusters["east"].Status.Reservations, s.States = nil, nil, nil
		}}, said{}},
		"Unknown": {"It exists, and was neither requested nor granted.", 8, []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			s.Request.Clusters, s.Clusters["east"].Status.Reservations = nil, nil
		}}, said{Held: true, Replacing: true}},
		"NotRead": {"It was requested otherwise. It may run, although neither a grant nor an object was read.", 4, []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) {
			s.Clusters["east"].Status.Reservations, s.States = nil, nil
		}}, said{Replacing: true, Runs: 5}},
		"Lost": {"Without the last request, it is not known what runs.", 8, []func(*scheduling.Snapshot){func(s *scheduling.Snapshot) { s.Request = nil }}, said{Held: true, Replacing: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			demand := func(gpus int64) *scheduling.Demand {
				return &scheduling.Demand{
					ServiceID: schedulingtest.Service, Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "east", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}},
					Groups:          []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{{Name: "worker/0", Pods: map[string]int64{"w": 1}}}}},
					PodRequirements: map[string]capacity.PodRequirements{"w": {Requests: capacity.Resources{"nvidia.com/gpu": gpus * 1000}}},
				}
			}
			east := schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0"))
			east.Status.Reservations[0].Replicas[0].Generation = 5
			snapshot := schedulingtest.Snapshot(east)
			snapshot.States["east"] = schedulingtest.Existing("worker/0")
			snapshot.Request = scheduling.Schedule(demand(8), &snapshot).Request
			replica := &snapshot.Request.Clusters["east"].Groups[0].Replicas[0]
			snapshot.Request.Generation, replica.Generation, replica.Held, replica.Replacing = 5, 5, false, false
			for _, change := range tc.changes {
				change(&snapshot)
			}
			result := scheduling.Schedule(demand(tc.gpus), &snapshot)
			got := result.Request.Clusters["east"].Groups[0].Replicas[0]
			if diff := cmp.Diff(map[key.ReplicaID]int64{"worker/0": got.Generation}, result.Assignments[0].Generations); diff != "" {
				t.Errorf("%s The generation that is rendered: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, said{got.Held, got.Replacing, got.Runs}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
