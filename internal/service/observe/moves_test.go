package observe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// in is the status of a cluster with some groups.
func in(name string, state v1alpha1.PlacementState, message string, groups ...int32) v1alpha1.ClusterStatus {
	c := v1alpha1.ClusterStatus{Name: name, State: state, Message: message}
	for _, g := range groups {
		c.Assigned = append(c.Assigned, v1alpha1.Replicas{Group: ptr.To(g)})
	}
	return c
}

func roles(c v1alpha1.ClusterStatus, role string, indexes ...int32) v1alpha1.ClusterStatus {
	c.Assigned = append(c.Assigned, v1alpha1.Replicas{Role: role, Indexes: indexes})
	return c
}

// queued is the status of a cluster in which Kueue admits nothing of a service.
func queued(name, reason string) v1alpha1.ClusterStatus {
	return v1alpha1.ClusterStatus{Name: name, State: v1alpha1.StatePending, Reason: reason, Message: "insufficient quota"}
}

func TestDescribeMoves(t *testing.T) {
	const (
		placed, pending, leaving, none = v1alpha1.StatePlaced, v1alpha1.StatePending, v1alpha1.StateLeaving, v1alpha1.StateNotPlaced
		drained                        = "the cluster is drained"
	)
	type statuses []v1alpha1.ClusterStatus
	many := statuses{}
	for i := range int32(12) {
		many = append(many, in(fmt.Sprintf("c%d", i), placed, "", i))
	}
	cases := map[string]struct {
		reason      string
		before, now statuses
		want        []string
	}{
		"Nothing":      {"Nothing changes.", statuses{in("e", placed, "", 0)}, statuses{in("e", placed, "", 0)}, nil},
		"Pending":      {"A request for capacity is no move.", nil, statuses{in("e", pending, "")}, nil},
		"Starts":       {"The first start.", nil, statuses{in("e", placed, "", 0)}, []string{"group 0 starts in e"}},
		"Replicate":    {"One more copy is no move.", statuses{in("e", placed, "", 0)}, statuses{in("e", placed, "", 0), in("w", placed, "", 0)}, []string{"group 0 starts in w"}},
		"MustLeave":    {"There is no capacity elsewhere yet.", statuses{in("e", placed, "", 0)}, statuses{in("e", leaving, drained, 0), in("w", pending, "")}, []string{"group 0 must leave e: the cluster is drained"}},
		"StillWaits":   {"It was said before.", statuses{in("e", leaving, "", 0)}, statuses{in("e", leaving, drained, 0)}, nil},
		"Moves":        {"The new copy starts.", statuses{in("e", leaving, "", 0)}, statuses{in("e", leaving, drained, 0), in("w", placed, "", 0)}, []string{"group 0 moves from e to w: the cluster is drained"}},
		"Moved":        {"The old copy is gone.", statuses{in("e", leaving, "", 0), in("w", placed, "", 0)}, statuses{in("e", none, drained), in("w", placed, "", 0)}, []string{"group 0 runs in w now, and left e"}},
		"Abandoned":    {"It runs nowhere.", statuses{in("e", placed, "", 0)}, statuses{in("e", none, "the cluster is abandoned")}, []string{"group 0 left e: the cluster is abandoned"}},
		"NotListed":    {"The placement does not name the cluster any more.", statuses{in("e", placed, "", 0)}, statuses{}, []string{"group 0 left e"}},
		"Together":     {"What happens to several groups is one event.", statuses{in("e", leaving, "", 0, 1)}, statuses{in("e", leaving, drained, 0, 1), in("w", placed, "", 0, 1)}, []string{"group 0, group 1 move from e to w: the cluster is drained"}},
		"Apart":        {"Two groups go to different clusters.", statuses{in("e", leaving, "", 0, 1), in("n", pending, ""), in("w", none, "")}, statuses{in("e", leaving, drained, 0, 1), in("n", placed, "", 0), in("w", placed, "", 1)}, []string{"group 0 moves from e to n: the cluster is drained", "group 1 moves from e to w: the cluster is drained"}},
		"Singles":      {"Replicas that may be in clusters of their own.", statuses{roles(in("e", placed, ""), "w", 0)}, statuses{roles(in("e", placed, ""), "w", 0, 1, 2)}, []string{"w 1, w 2 start in e"}},
		"IntoFleet":    {"What ran before the service was in the fleet does not start.", statuses{in("e", placed, "")}, statuses{in("e", placed, "", 0)}, nil},
		"ControlPlane": {"The cluster of the XR has no name.", statuses{in("", leaving, "", 0), in("e", placed, "", 0)}, statuses{in("e", placed, "", 0)}, []string{"group 0 runs in e now, and left the control plane's cluster"}},
		"Queued":       {"What waits for Kueue has not left.", statuses{in("e", placed, "", 0)}, statuses{queued("e", ReasonWaitingForAdmission)}, nil},
		"Admitted":     {"Its start was said when it was placed there.", statuses{queued("e", ReasonWaitingForAdmission)}, statuses{in("e", placed, "", 0)}, nil},
		"Preempted":    {"What Kueue stops keeps its home. The condition Placed says why.", statuses{in("e", placed, "", 0)}, statuses{queued("e", ReasonPreempted)}, nil},
		"Evicted":      {"Kueue starts it there again.", statuses{queued("e", ReasonEvicted)}, statuses{in("e", placed, "", 0)}, nil},
		"TiredOfQueue": {"It was not admitted in time, and has somewhere to go.", statuses{queued("e", ReasonWaitingForAdmission)}, statuses{in("e", leaving, "it did not start", 0), in("w", placed, "", 0)}, []string{"group 0 moves from e to w: it did not start"}},
		"NotReserved":  {"Without capacity nothing was placed.", statuses{queued("e", scheduling.ReasonRequested)}, statuses{in("e", placed, "", 0)}, []string{"group 0 starts in e"}},
		"LongName":     {"A status that somebody has edited makes no long events.", statuses{roles(in("e", placed, ""), strings.Repeat("w", v1alpha1.MaxRoleName+1), 0, 1)}, statuses{roles(in("w", placed, ""), "w", 0)}, []string{"w 0 starts in w"}},
		"LongestName":  {"Roles may have names of this length.", statuses{roles(in("e", placed, ""), strings.Repeat("w", v1alpha1.MaxRoleName), 0)}, nil, []string{strings.Repeat("w", v1alpha1.MaxRoleName) + " 0 left e"}},
		"Bounded": {"An outage of many clusters.", nil, many, []string{
			"group 0 starts in c0", "group 1 starts in c1", "group 2 starts in c2", "group 3 starts in c3", "group 4 starts in c4", "group 5 starts in c5",
			"group 6 starts in c6", "group 7 starts in c7", "and 4 more changes of where the service runs",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, describe(movesBetween(tc.before, tc.now))); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDecisions proves that each move is a decision once: when replicas start in another cluster, and when they
// have left the former one.
func TestDecisions(t *testing.T) {
	const placed, leaving, none = v1alpha1.StatePlaced, v1alpha1.StateLeaving, v1alpha1.StateNotPlaced
	type statuses []v1alpha1.ClusterStatus
	cases := map[string]struct {
		reason      string
		before, now statuses
		want        []composite.Decision
	}{
		"Starts":    {"The first start.", nil, statuses{in("e", placed, "", 0, 1)}, []composite.Decision{{What: composite.DecisionPlaced, To: "e", Units: 2}}},
		"MustLeave": {"There is no capacity elsewhere yet.", statuses{in("e", placed, "", 0)}, statuses{in("e", leaving, "drained", 0)}, nil},
		"Moves":     {"The new copy starts.", statuses{in("e", leaving, "", 0)}, statuses{in("e", leaving, "drained", 0), in("w", placed, "", 0)}, []composite.Decision{{What: composite.DecisionMoved, From: "e", To: "w", Units: 1}}},
		"Moved":     {"The old copy is gone.", statuses{in("e", leaving, "", 0), in("w", placed, "", 0)}, statuses{in("e", none, ""), in("w", placed, "", 0)}, []composite.Decision{{What: composite.DecisionReleased, From: "e", To: "w", Units: 1}}},
		"Gone":      {"It runs nowhere.", statuses{in("e", placed, "", 0)}, statuses{}, []composite.Decision{{What: composite.DecisionReleased, From: "e", Units: 1}}},
		"Queued":    {"Kueue makes it wait where it is.", statuses{in("e", placed, "", 0)}, statuses{queued("e", ReasonWaitingForAdmission)}, nil},
		"Admitted":  {"It was placed before.", statuses{queued("e", ReasonPreempted)}, statuses{in("e", placed, "", 0)}, nil},
		"Stays":     {"Nothing changes.", statuses{in("e", placed, "", 0)}, statuses{in("e", placed, "", 0)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decisions(movesBetween(tc.before, tc.now))); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
