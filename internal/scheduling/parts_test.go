package scheduling

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// tenEach is the size of each replica.
func tenEach(key.ReplicaID) int { return 10 }

// oneReplica is a group of a single replica.
func oneReplica(name key.ReplicaID) reservation.ReplicaGroup {
	return reservation.ReplicaGroup{Name: key.GroupID(name), Replicas: []reservation.ReplicaRequest{{Name: name, Pods: map[string]int64{"large": 1}}}}
}

// TestPartsMoveOn proves that a move in parts goes on where the rest is sick or is being updated: the part that has
// moved leaves its former cluster, and only that part counts as started in the new one.
func TestPartsMoveOn(t *testing.T) {
	all := set("w/0", "w/1", "w/2")
	for name, change := range map[string]func(*Candidate){
		"sick":    func(c *Candidate) { c.Ready = set("w/0") },
		"updated": func(c *Candidate) { c.Ready, c.Updating, c.MayReceiveTraffic = all, all, true },
	} {
		t.Run(name, func(t *testing.T) {
			free := capacity.Free{Pools: []capacity.Pool{nodes("h100", 4, 8)}}
			east := Candidate{Name: "east", Weight: 1, StopPolicy: v1alpha1.StopDrain, Present: all, RouterReady: true, Free: free}
			change(&east)
			first := set("w/0")
			s := Assign(Problem{
				Policy: v1alpha1.PlacementFailover, Groups: []reservation.ReplicaGroup{oneReplica("w/0"), oneReplica("w/1"), oneReplica("w/2")}, PodRequirements: requirements,
				Homes: homeIn("west", "w/0", "w/1", "w/2"), Seed: "uid", Room: 40, Size: tenEach,
				Candidates: []Candidate{east, {Name: "west", Weight: 1, Present: first, Ready: first, Reserved: all, ReceivesTraffic: true, MayReceiveTraffic: true, RouterReady: true, Free: free}},
			})
			got := [][]key.ReplicaID{slices.Sorted(maps.Keys(s.Decisions[0].Run)), slices.Sorted(maps.Keys(s.Decisions[1].Run))}
			if diff := cmp.Diff([][]key.ReplicaID{{"w/1", "w/2"}, {"w/0", "w/1"}}, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if !s.Homes["w/0"].Started || s.Homes["w/1"].Started {
				t.Errorf("the homes are %v", s.Homes)
			}
			if sick := name == "sick"; s.Decisions[0].Serves == sick {
				t.Errorf("east, where the rest is %s: gets requests = %t", name, !sick)
			}
		})
	}
}

// TestMovesInParts proves which groups start in another cluster while the first one runs all of them.
func TestMovesInParts(t *testing.T) {
	groups := []reservation.ReplicaGroup{oneReplica("w/0"), oneReplica("w/1"), oneReplica("w/2")}
	all := set("w/0", "w/1", "w/2")
	const requested = "capacity was requested, and the cluster has not answered yet"
	cases := map[string]struct {
		reason string
		policy v1alpha1.PlacementPolicy
		room   int
		west   Candidate
		// added are groups that run nowhere so far, and missing one that west has not reserved.
		added   []reservation.ReplicaGroup
		missing key.ReplicaID
		want    []key.ReplicaID
		// because is the message, if it is not that of a move in parts.
		because string
	}{
		"NoSizes":   {reason: "A service whose groups were not measured moves at once.", policy: v1alpha1.PlacementFailover, want: []key.ReplicaID{"w/0", "w/1", "w/2"}},
		"AllFit":    {reason: "There is room for two copies.", policy: v1alpha1.PlacementFailover, room: 60, want: []key.ReplicaID{"w/0", "w/1", "w/2"}},
		"TwoFit":    {reason: "There is room for two more groups.", policy: v1alpha1.PlacementFailover, room: 59, want: []key.ReplicaID{"w/0", "w/1"}},
		"Spread":    {reason: "Groups with homes of their own wait in the same way.", policy: v1alpha1.PlacementSpread, room: 59, want: []key.ReplicaID{"w/0", "w/1"}},
		"NoneFits":  {reason: "The first one starts, so that the answer is refused with a reason.", policy: v1alpha1.PlacementFailover, room: 30, want: []key.ReplicaID{"w/0"}},
		"OneMoves":  {reason: "What moves already is not stopped, and nothing joins it.", policy: v1alpha1.PlacementFailover, room: 30, west: Candidate{Present: set("w/1")}, want: []key.ReplicaID{"w/1"}},
		"Added":     {reason: "A group that runs nowhere else starts at once, because nothing would make room for it.", policy: v1alpha1.PlacementFailover, room: 59, added: []reservation.ReplicaGroup{oneReplica("w/3")}, want: []key.ReplicaID{"w/0", "w/3"}},
		"Pending":   {reason: "A group that is not reserved takes no room.", policy: v1alpha1.PlacementFailover, room: 50, missing: "w/1", want: []key.ReplicaID{"w/0", "w/2"}, because: requested},
		"Both":      {reason: "What is said first is that a group waits for its capacity.", policy: v1alpha1.PlacementFailover, room: 40, missing: "w/1", want: []key.ReplicaID{"w/0"}, because: requested},
		"Replicate": {reason: "Each cluster has a copy, so nothing would make room.", policy: v1alpha1.PlacementReplicate, room: 30, want: []key.ReplicaID{"w/0", "w/1", "w/2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			free := capacity.Free{Pools: []capacity.Pool{nodes("h100", 4, 8)}}
			reserved := set("w/0", "w/1", "w/2", "w/3")
			delete(reserved, tc.missing)
			p := Problem{
				Policy: tc.policy, Groups: slices.Concat(groups, tc.added), PodRequirements: requirements, Homes: homeIn("west", "w/0", "w/1", "w/2"), Room: tc.room, Seed: "uid",
				Candidates: []Candidate{
					{Name: "east", Weight: 1, StopPolicy: v1alpha1.StopDrain, Present: all, Ready: all, ReceivesTraffic: true, RouterReady: true, Free: free},
					{Name: "west", Weight: 1, Present: tc.west.Present, Reserved: reserved, ReceivesTraffic: true, Free: free},
				},
			}
			if tc.room > 0 {
				p.Size = tenEach
			}
			got := Assign(p).Decisions
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got[1].Run))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(all, got[0].Run); diff != "" {
				t.Errorf("what runs stays until it runs elsewhere\n-want, +got:\n%s", diff)
			}
			waits := len(p.Groups) - len(tc.want)
			if len(got[1].Pending) != waits {
				t.Errorf("%s %v are pending", tc.reason, got[1].Pending)
			}
			message := tc.because
			if waits > 0 && message == "" {
				message = "an answer to Crossplane has no room for two copies of everything, so each group starts here once one before it has left its former cluster"
			}
			if diff := cmp.Diff(message, got[1].Message); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if (got[1].Reason == ReasonMovesInParts) != (waits > 0 && tc.because == "") {
				t.Errorf("%s got the reason %q", tc.reason, got[1].Reason)
			}
		})
	}
}

// TestMeasured proves that replicas are measured only while something moves.
func TestMeasured(t *testing.T) {
	all := set("w/0", "w/1")
	for name, leaves := range map[string]bool{"Stays": false, "Moves": true} {
		t.Run(name, func(t *testing.T) {
			east := Candidate{Name: "east", Weight: 1, Present: all, Ready: all, Reserved: all, ReceivesTraffic: true, RouterReady: true}
			if leaves {
				east.StopPolicy = v1alpha1.StopDrain
			}
			measured := map[key.ReplicaID]bool{}
			Assign(Problem{
				Policy: v1alpha1.PlacementFailover, Groups: []reservation.ReplicaGroup{oneReplica("w/0"), oneReplica("w/1")}, PodRequirements: requirements,
				Homes: homeIn("east", "w/0", "w/1"), Seed: "uid", Room: 1000,
				Size:       func(r key.ReplicaID) int { measured[r] = true; return 10 },
				Candidates: []Candidate{east, {Name: "west", Weight: 1, Reserved: all, ReceivesTraffic: true}},
			})
			if got := len(measured) > 0; got != leaves {
				t.Errorf("measured %v, want that only of a service that moves", measured)
			}
		})
	}
}
