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

// TestExtra proves that what a rollout runs beyond what is wanted needs capacity of its own, that only
// whole groups of it start, and that nothing else goes by it.
func TestExtra(t *testing.T) {
	type decided struct {
		State         v1alpha1.PlacementState
		Run, Partial  []key.ReplicaID
		Requested     []key.ReplicaID
		Pending       []key.ReplicaID
		RunsInRequest []key.ReplicaID
	}
	one := reservation.ReplicaRequest{Name: "worker/0", Pods: map[string]int64{"worker/leader": 1}}
	two, three, nine := one, one, one
	nine.Name = "worker/9"
	two.Name, two.Required, three.Name, three.Required = "worker/1", true, "worker/2", true
	drained := func(c *v1alpha1.InferenceCluster) { c.Spec.StopPolicy = v1alpha1.StopDrain }
	all := []key.ReplicaID{"worker/0", "worker/1", "worker/2"}
	cases := map[string]struct {
		reason   string
		exist    []key.ReplicaID
		reserved []key.ReplicaID
		change   schedulingtest.Change
		further  []reservation.ReplicaRequest
		want     decided
	}{
		"Waits": {
			reason: "It has no capacity so far, and the service is placed all the same.", exist: all[:1], reserved: all[:1],
			want: decided{State: v1alpha1.StatePlaced, Run: all[:1], Requested: all, RunsInRequest: all[:1]},
		},
		"Whole": {
			reason: "All of it is reserved.", exist: all[:1], reserved: all,
			want: decided{State: v1alpha1.StatePlaced, Run: all, Requested: all, RunsInRequest: all},
		},
		"Part": {
			reason: "A part of it does not start.", exist: all[:1], reserved: all[:2],
			want: decided{State: v1alpha1.StatePlaced, Run: all[:1], Requested: all, RunsInRequest: all[:1]},
		},
		"PartRuns": {
			reason: "A part of it that exists stays.", exist: all[:2], reserved: all[:2],
			want: decided{State: v1alpha1.StatePlaced, Run: all[:2], Partial: all[1:2], Requested: all, RunsInRequest: all[:2]},
		},
		"Leaves": {
			reason: "It stays as long as the rest, and nothing is added.", exist: all[:2], reserved: all, change: drained,
			want: decided{State: v1alpha1.StateLeaving, Run: all[:2], Partial: all[1:2], Requested: all[:2], RunsInRequest: all[:2]},
		},
		"WantedFirst": {
			reason: "A wanted replica has no capacity so far.", exist: all[:1], reserved: all[:1], further: []reservation.ReplicaRequest{nine},
			want: decided{State: v1alpha1.StatePlaced, Run: all[:1], Requested: []key.ReplicaID{"worker/0", "worker/9"}, Pending: []key.ReplicaID{"worker/9"}, RunsInRequest: all[:1]},
		},
		"Absent": {
			reason: "The service does not run there.", reserved: nil,
			want: decided{State: v1alpha1.StatePending, Requested: all[:1], Pending: all[:1]},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			east := schedulingtest.Cluster("east", schedulingtest.Reserved(tc.reserved...))
			if tc.change != nil {
				tc.change(east)
			}
			for i := range east.Status.Reservations[0].Replicas {
				east.Status.Reservations[0].Replicas[i].Generation = 1
			}
			snapshot := schedulingtest.Snapshot(east)
			if len(tc.exist) > 0 {
				snapshot.States["east"] = schedulingtest.Existing(tc.exist...)
			}
			demand := &scheduling.Demand{
				ServiceID: schedulingtest.Service, Placement: placementIn("east"), PodRequirements: gpus(1),
				Groups: []reservation.ReplicaGroup{{Name: "0", Replicas: append([]reservation.ReplicaRequest{one}, tc.further...)}},
				Extra:  map[string][]reservation.ReplicaGroup{"east": {{Name: "worker/1", Replicas: []reservation.ReplicaRequest{two, three}}}},
			}
			snapshot.Request = scheduling.Schedule(demand, &snapshot).Request
			for i := range snapshot.Request.Clusters["east"].Groups {
				for j := range snapshot.Request.Clusters["east"].Groups[i].Replicas {
					snapshot.Request.Clusters["east"].Groups[i].Replicas[j].Generation = 1
				}
			}
			r := scheduling.Schedule(demand, &snapshot)
			a, at := r.Assignments[0], r.Request.Clusters["east"]
			got := decided{State: a.State, Run: slices.Sorted(maps.Keys(a.Run)), Partial: slices.Sorted(maps.Keys(a.Partial)), Pending: a.Pending, RunsInRequest: at.Running}
			for _, r := range reservation.Replicas(at.Groups) {
				got.Requested = append(got.Requested, r.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func placementIn(cluster string) *v1alpha1.Placement {
	return &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: cluster, InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: cluster}}}}
}
