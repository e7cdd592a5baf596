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

// TestPins proves that a new replica is pinned to the pool of its grant, and that one that exists
// keeps what it has. The request has the same pools.
func TestPins(t *testing.T) {
	pinTo := func(pool string) *capacity.Pin {
		return &capacity.Pin{Pool: pool, NodeSelector: map[string]string{"gpu": pool}}
	}
	// grants sets the pool of the reservation.
	grants := func(pool string) schedulingtest.Change {
		return func(c *v1alpha1.InferenceCluster) {
			c.Status.Pools = []v1alpha1.PoolStatus{{Name: "h100", NodeSelector: map[string]string{"gpu": "h100"}}, {Name: "l40s", NodeSelector: map[string]string{"gpu": "l40s"}}, {Name: "bare"}}
			c.Status.Reservations[0].Replicas[0].Pool = pool
		}
	}
	exists := func(pin *capacity.Pin) *scheduling.ClusterState {
		at := schedulingtest.Existing("worker/0")
		at.Pins = map[key.ReplicaID]*capacity.Pin{"worker/0": pin}
		return at
	}
	cases := map[string]struct {
		reason       string
		grant        string
		exists       *scheduling.ClusterState
		nodeSelector map[string]string
		unreadable   bool
		want         *capacity.Pin
	}{
		"New":         {reason: "It is pinned to the pool of its grant.", grant: "h100", want: pinTo("h100")},
		"NewNoPool":   {reason: "Its grant has no pool."},
		"NewBare":     {reason: "The pool has no labels.", grant: "bare"},
		"NewUnknown":  {reason: "The cluster does not have the pool any more.", grant: "gone"},
		"NewOther":    {reason: "The pool has not the labels that the user selects now.", grant: "h100", nodeSelector: map[string]string{"gpu": "l40s"}},
		"NewSelected": {reason: "The user selects the same.", grant: "h100", nodeSelector: map[string]string{"gpu": "h100"}, want: pinTo("h100")},
		"Exists":      {reason: "It stays where it is.", grant: "h100", exists: exists(pinTo("h100")), want: pinTo("h100")},
		"ExistsOther": {reason: "It stays where it is, whatever the grant says.", grant: "h100", exists: exists(pinTo("l40s")), want: pinTo("l40s")},
		"ExistsFormer": {
			reason: "It keeps the labels that the pool had.", grant: "h100", exists: exists(&capacity.Pin{Pool: "h100", NodeSelector: map[string]string{"gpu": "old"}}),
			want: &capacity.Pin{Pool: "h100", NodeSelector: map[string]string{"gpu": "old"}},
		},
		"ExistsWithout":    {reason: "It is not pinned later.", grant: "h100", exists: exists(nil)},
		"ExistsUnselected": {reason: "The user selects other nodes.", grant: "l40s", exists: exists(pinTo("h100")), nodeSelector: map[string]string{"gpu": "l40s"}},
		"ExistsUnreadable": {reason: "Nothing is known of the cluster.", grant: "l40s", exists: exists(pinTo("h100")), unreadable: true, want: pinTo("h100")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0"), grants(tc.grant)))
			if tc.exists != nil {
				snapshot.States["east"] = tc.exists
			}
			if tc.unreadable {
				snapshot.Clusters = nil
			}
			requirements := capacity.PodRequirements{Requests: capacity.Resources{"nvidia.com/gpu": 8000}, NodeSelector: tc.nodeSelector}
			snapshot.Request.PodRequirements["worker/leader"] = requirements
			result := scheduling.Schedule(&scheduling.Demand{
				ServiceID: schedulingtest.Service,
				Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "east", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}},
				Groups: []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{
					{Name: "worker/0", Pods: map[string]int64{"worker/leader": 1}},
				}}},
				PodRequirements: map[string]capacity.PodRequirements{"worker/leader": requirements},
			}, &snapshot)
			a := result.Assignments[0]
			if !a.Run["worker/0"] {
				t.Fatalf("%s It does not run: %s", tc.reason, a.Message)
			}
			if diff := cmp.Diff(tc.want, a.Pins["worker/0"]); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.Name(), reservation.Replicas(result.Request.Clusters["east"].Groups)[0].Pool); diff != "" {
				t.Errorf("%s In the request: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
