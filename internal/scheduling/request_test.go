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

// TestStopping proves that a replica that is no longer wanted keeps its capacity, as it was
// requested, until its object is gone.
func TestStopping(t *testing.T) {
	replica := func(i int32) reservation.ReplicaRequest {
		return reservation.ReplicaRequest{Name: key.ReplicaOf("worker", i), Pods: map[string]int64{"worker/leader": 1}}
	}
	// The service had two replicas of 8 GPUs, and wants one of other pods.
	demand := func(gpus int64) *scheduling.Demand {
		return &scheduling.Demand{
			ServiceID: schedulingtest.Service, Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "east", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}},
			Groups:          []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{replica(0)}}},
			PodRequirements: map[string]capacity.PodRequirements{"worker/leader": {Requests: capacity.Resources{"nvidia.com/gpu": gpus * 1000}}},
		}
	}
	cases := map[string]struct {
		reason string
		gpus   int64
		change func(*scheduling.Snapshot)
		// want has the GPUs that are requested for each replica.
		want map[key.ReplicaID]int64
	}{
		"Exists":  {reason: "Its object exists.", gpus: 8, want: map[key.ReplicaID]int64{"worker/0": 8000, "worker/1": 8000}},
		"Changed": {reason: "It keeps what it requested, and not what others request now.", gpus: 4, want: map[key.ReplicaID]int64{"worker/0": 4000, "worker/1": 8000}},
		"Deleting": {reason: "Its object is being deleted.", gpus: 8, change: func(s *scheduling.Snapshot) {
			delete(s.States["east"].Present, "worker/1")
			s.Deleting = map[string]map[key.ReplicaID]bool{"east": {"worker/1": true}}
		}, want: map[key.ReplicaID]int64{"worker/0": 8000, "worker/1": 8000}},
		"Gone": {reason: "Its object is gone.", gpus: 8, change: func(s *scheduling.Snapshot) { delete(s.States["east"].Present, "worker/1") }, want: map[key.ReplicaID]int64{"worker/0": 8000}},
		"LastGoes": {reason: "All objects in the cluster are being deleted, and the placement names it no longer.", gpus: 8, change: func(s *scheduling.Snapshot) {
			s.States, s.Clusters["east"].Spec.StopPolicy = nil, v1alpha1.StopDrain
			s.Deleting = map[string]map[key.ReplicaID]bool{"east": {"worker/1": true}}
		}, want: map[key.ReplicaID]int64{"worker/1": 8000}},
		"Abandoned": {reason: "Nothing waits for an abandoned cluster.", gpus: 8, change: func(s *scheduling.Snapshot) {
			s.Clusters["east"].Spec.StopPolicy, s.States["east"].Orphaned = v1alpha1.StopAbandon, true
		}, want: map[key.ReplicaID]int64{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1")))
			snapshot.States["east"] = schedulingtest.Existing("worker/0", "worker/1")
			if tc.change != nil {
				tc.change(&snapshot)
			}
			d := demand(tc.gpus)
			request := scheduling.Schedule(d, &snapshot).Request
			got := map[key.ReplicaID]int64{}
			for _, r := range reservation.Replicas(request.Clusters["east"].Groups) {
				for name, n := range r.Pods {
					got[r.Name] += n * request.PodRequirements[name].Requests["nvidia.com/gpu"]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			text, err := reservation.EncodeRequest(request)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := reservation.DecodeRequest(text); err != nil {
				t.Errorf("%s The request is invalid: %v", tc.reason, err)
			}
			if len(d.PodRequirements) != 1 {
				t.Errorf("the demand was changed: %v", d.PodRequirements)
			}
		})
	}
}
