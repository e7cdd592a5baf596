package scheduling

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// TestLocations proves that the message of a cluster that is not needed says where the service
// runs, and where capacity is requested.
func TestLocations(t *testing.T) {
	present := set("0/prefill/0", "0/decode/0")
	free := capacity.Free{Pools: []capacity.Pool{nodes("h100", 4, 8)}}
	cases := map[string]struct {
		reason     string
		policy     v1alpha1.PlacementPolicy
		groups     []reservation.ReplicaGroup
		candidates []Candidate
		want       string
	}{
		"NoGroups":  {reason: "A service without groups runs nowhere.", policy: v1alpha1.PlacementFailover, want: "it runs in no cluster"},
		"Requested": {reason: "Nothing runs before it is reserved.", policy: v1alpha1.PlacementFailover, groups: []reservation.ReplicaGroup{group("0", 1, 1)}, candidates: []Candidate{{Name: "a", Free: free}}, want: "capacity is requested in a"},
		"Reserved":  {reason: "What is reserved starts.", policy: v1alpha1.PlacementFailover, groups: []reservation.ReplicaGroup{group("0", 1, 1)}, candidates: []Candidate{{Name: "a", Free: free, Reserved: present}}, want: "it runs in a"},
		"Stopped": {
			reason: "Nothing is requested of the cluster in which it has stopped, and starts again.", policy: v1alpha1.PlacementFailover, groups: []reservation.ReplicaGroup{{Name: "0"}},
			candidates: []Candidate{{Name: "a", Free: free}}, want: "it runs in a",
		},
		"Moves": {
			reason: "The service leaves the cluster where it runs for the one where capacity is requested.", policy: v1alpha1.PlacementFailover, groups: []reservation.ReplicaGroup{group("0", 1, 1)},
			candidates: []Candidate{{Name: "a", Free: free, Present: present, StopPolicy: v1alpha1.StopDrain}, {Name: "b", Free: free}}, want: "capacity is requested in b",
		},
		"Spread": {
			reason: "A part of the service runs, and capacity for the rest is requested.", policy: v1alpha1.PlacementSpread, groups: []reservation.ReplicaGroup{group("0", 1, 1), group("1", 1, 1)},
			candidates: []Candidate{{Name: "a", Weight: 2, Free: free, Present: present}, {Name: "b", Weight: 2, Free: free}}, want: "it runs in a, and capacity is requested in b",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			decisions := Candidate{Name: "z", Weight: 1, Free: free}
			all := Assign(Problem{Policy: tc.policy, Groups: tc.groups, PodRequirements: requirements, Candidates: append(tc.candidates, decisions)}).Decisions
			if diff := cmp.Diff(tc.want, all[len(all)-1].Message); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
