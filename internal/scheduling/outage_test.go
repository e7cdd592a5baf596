package scheduling_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestOutage proves that a service does not fail over when most of the fleet goes out of reach
// at the same time. The service runs in east, which is out of reach for an hour.
func TestOutage(t *testing.T) {
	lost := func(minutes int) schedulingtest.Change {
		return func(c *v1alpha1.InferenceCluster) {
			since := metav1.NewTime(schedulingtest.Noon.Add(-time.Duration(minutes) * time.Minute))
			c.Status.UnreachableSince = &since
		}
	}
	back := func(since, until int) schedulingtest.Change {
		return func(c *v1alpha1.InferenceCluster) {
			at := func(minutes int) metav1.Time {
				return metav1.NewTime(schedulingtest.Noon.Add(-time.Duration(minutes) * time.Minute))
			}
			c.Status.LastOutage = &v1alpha1.Outage{Since: at(since), Until: at(until)}
		}
	}
	stop := func(policy v1alpha1.StopPolicy) schedulingtest.Change {
		return func(c *v1alpha1.InferenceCluster) { c.Spec.StopPolicy = policy }
	}
	uid := func(uid string) schedulingtest.Change {
		return func(c *v1alpha1.InferenceCluster) { c.Status.ClusterUID = uid }
	}
	const message = "out of reach since 2026-03-01T11:00:00Z, like most of the fleet: the control plane is probably the cause, so nothing moves"
	type outcome struct {
		State   v1alpha1.PlacementState
		Message string
		Due     time.Time
	}
	// staysUntil is when the first cluster that came back no longer counts as lost.
	staysUntil := func(minutes int) outcome {
		return outcome{State: v1alpha1.StatePlaced, Message: message, Due: schedulingtest.Noon.Add(time.Duration(minutes) * time.Minute)}
	}
	leaves := outcome{State: v1alpha1.StateLeaving, Message: "out of reach since 2026-03-01T11:00:00Z, longer than 5m0s, and is left once it runs elsewhere"}
	stays := outcome{State: v1alpha1.StatePlaced, Message: message}
	east := func(changes ...schedulingtest.Change) *v1alpha1.InferenceCluster {
		return schedulingtest.Cluster("east", append([]schedulingtest.Change{schedulingtest.Reserved("worker/0"), lost(60)}, changes...)...)
	}
	cases := map[string]struct {
		reason string
		fleet  []*v1alpha1.InferenceCluster
		want   outcome
	}{
		"One":       {reason: "One cluster of three is lost.", fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west"), schedulingtest.Cluster("south")}, want: leaves},
		"OneOfTwo":  {reason: "Half of the fleet is not most of it.", fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west")}, want: leaves},
		"Alone":     {reason: "A single cluster says nothing about the others.", fleet: []*v1alpha1.InferenceCluster{east()}, want: leaves},
		"Most":      {reason: "Two of three were lost within some minutes.", fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", lost(52)), schedulingtest.Cluster("south")}, want: stays},
		"TwoOfFour": {reason: "Half of the fleet is not most of it, however many these are.", fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", lost(52)), schedulingtest.Cluster("south"), schedulingtest.Cluster("north")}, want: leaves},
		"MostOfTheRest": {
			reason: "A cluster that was lost before does not count as one that can be reached.", want: stays,
			fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", lost(52)), schedulingtest.Cluster("south"), schedulingtest.Cluster("north", lost(600))},
		},
		"Shared":    {reason: "Two of the three are one real cluster.", fleet: []*v1alpha1.InferenceCluster{east(uid("one")), schedulingtest.Cluster("west", lost(52), uid("one")), schedulingtest.Cluster("south")}, want: leaves},
		"Later":     {reason: "Another cluster was lost long after this one.", fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", lost(10)), schedulingtest.Cluster("south")}, want: leaves},
		"Before":    {reason: "A cluster that was lost before was not of the fleet any more.", fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", lost(600)), schedulingtest.Cluster("south")}, want: leaves},
		"Abandoned": {reason: "Abandoned clusters are not counted.", fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", lost(60), stop(v1alpha1.StopAbandon)), schedulingtest.Cluster("south")}, want: leaves},
		"ComesBack": {
			reason: "Two of three were lost, and one of them was read again a minute ago.", want: staysUntil(9),
			fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", back(52, 1)), schedulingtest.Cluster("south")},
		},
		"ComeBack": {
			reason: "Four of five were lost. The first that came back may end the outage.", want: staysUntil(4),
			fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", back(52, 6)), schedulingtest.Cluster("south", back(58, 1)), schedulingtest.Cluster("north"), schedulingtest.Cluster("center", lost(60))},
		},
		"CameBack": {
			reason: "The other one is back for longer, so this one is lost by itself.", want: leaves,
			fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", back(52, 10)), schedulingtest.Cluster("south")},
		},
		"LostBeforeAndBack": {
			reason: "The other one was lost long before this one.", want: leaves,
			fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", back(600, 1)), schedulingtest.Cluster("south")},
		},
		"Flaps": {
			reason: "The other one comes and goes since then.", want: leaves,
			fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", back(10, 8)), schedulingtest.Cluster("south")},
		},
		"BackBefore": {
			reason: "The other one was back before this one went.",
			want:   outcome{State: v1alpha1.StateLeaving, Message: "out of reach since 2026-03-01T11:54:00Z, longer than 5m0s, and is left once it runs elsewhere"},
			fleet:  []*v1alpha1.InferenceCluster{east(lost(6)), schedulingtest.Cluster("west", back(8, 7)), schedulingtest.Cluster("south")},
		},
		"LostAgain": {
			reason: "The other one came back with it, and is lost once more.", want: staysUntil(8),
			fleet: []*v1alpha1.InferenceCluster{east(), schedulingtest.Cluster("west", back(60, 2), lost(1)), schedulingtest.Cluster("south")},
		},
		"Drained": {
			reason: "Whoever drains a cluster moves its services all the same.", fleet: []*v1alpha1.InferenceCluster{east(stop(v1alpha1.StopDrain)), schedulingtest.Cluster("west", lost(60)), schedulingtest.Cluster("south")},
			want: outcome{State: v1alpha1.StateLeaving, Message: "the cluster is drained, and is left once it runs elsewhere"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(tc.fleet...)
			snapshot.States["east"] = schedulingtest.Existing("worker/0")
			r := scheduling.Schedule(&scheduling.Demand{
				ServiceID: schedulingtest.Service,
				Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, ClusterSelector: &metav1.LabelSelector{}},
				Groups:    schedulingtest.Requested(nil, "east", 0, "worker/0").Clusters["east"].Groups,
			}, &snapshot)
			var got outcome
			for _, a := range r.Assignments {
				if a.Name == "east" {
					got = outcome{a.State, a.Message, a.Due}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
