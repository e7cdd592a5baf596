package scheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// TestUnknownServes proves that a copy keeps its traffic while its cluster cannot be read, and
// that the other copies serve, too.
func TestUnknownServes(t *testing.T) {
	present := set("0/prefill/0", "0/decode/0")
	message := "a test"
	cases := map[string]struct {
		reason string
		policy v1alpha1.PlacementPolicy
		east   Candidate
		want   []bool
	}{
		"Known":      {reason: "Every copy serves.", policy: v1alpha1.PlacementReplicate, want: []bool{true, true}},
		"Unknown":    {reason: "The copy may still serve.", policy: v1alpha1.PlacementReplicate, east: Candidate{Unknown: message}, want: []bool{true, true}},
		"Deselected": {reason: "The copy stopped receiving traffic before.", policy: v1alpha1.PlacementReplicate, east: Candidate{Unknown: message, Deselected: true}, want: []bool{false, true}},
		"Drained":    {reason: "The copy stopped receiving traffic before.", policy: v1alpha1.PlacementReplicate, east: Candidate{Unknown: message, StopPolicy: v1alpha1.StopDrain}, want: []bool{false, true}},
		"Abandoned":  {reason: "The copy is forgotten.", policy: v1alpha1.PlacementReplicate, east: Candidate{Unknown: message, StopPolicy: v1alpha1.StopAbandon}, want: []bool{false, true}},
		"Failover":   {reason: "A service that runs in one cluster serves from the one that is known.", policy: v1alpha1.PlacementFailover, east: Candidate{Unknown: message}, want: []bool{false, true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			east, west := tc.east, Candidate{}
			for _, c := range []*Candidate{&east, &west} {
				c.Present, c.Ready, c.Reserved, c.RouterReady, c.ReceivesTraffic = present, present, present, true, true
			}
			var got []bool
			for _, d := range Assign(Problem{Policy: tc.policy, Groups: []reservation.ReplicaGroup{group("0", 1, 1)}, PodRequirements: requirements, Candidates: []Candidate{east, west}}).Decisions {
				got = append(got, d.Serves)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestServes proves which of two clusters get requests. Both have both groups, and all of it is ready.
func TestServes(t *testing.T) {
	first, second, all := set("0/prefill/0", "0/decode/0"), set("1/prefill/0", "1/decode/0"), set("0/prefill/0", "0/decode/0", "1/prefill/0", "1/decode/0")
	since := simNow.Add(-time.Minute)
	has := func(c *Candidate, replicas map[key.ReplicaID]bool) {
		c.Present, c.Ready, c.Reserved = replicas, replicas, replicas
	}
	drained := func(east, _ *Candidate) { east.StopPolicy = v1alpha1.StopDrain }
	abandoned := func(east, _ *Candidate) { east.StopPolicy = v1alpha1.StopAbandon }
	const replicate, spread = v1alpha1.PlacementReplicate, v1alpha1.PlacementSpread
	cases := map[string]struct {
		reason  string
		policy  v1alpha1.PlacementPolicy
		homes   map[key.GroupID]reservation.Home
		changes []func(east, west *Candidate)
		want    map[string]bool
	}{
		"Starts": {reason: "Nothing exists in east so far.", policy: replicate, changes: []func(east, west *Candidate){func(east, _ *Candidate) {
			east.Present, east.Ready = nil, nil
		}}, want: map[string]bool{"west": true}},
		"Unreachable": {reason: "East is out of reach, and west answers.", policy: replicate, changes: []func(east, west *Candidate){func(east, _ *Candidate) { east.Unreachable = &since }}, want: map[string]bool{"west": true}},
		"OutOfScope":  {reason: "The model is to be elsewhere, and the copy stays.", policy: replicate, changes: []func(east, west *Candidate){func(east, _ *Candidate) { east.OutOfScope = "NoModelCache" }}, want: map[string]bool{"east": true, "west": true}},
		"Gang":        {reason: "It is a gang since an edit, and the copy stays.", policy: replicate, changes: []func(east, west *Candidate){func(east, _ *Candidate) { east.OutOfScope = ReasonGang }}, want: map[string]bool{"east": true, "west": true}},
		"Deselected":  {reason: "East is left.", policy: replicate, changes: []func(east, west *Candidate){func(east, _ *Candidate) { east.OutOfScope, east.Deselected = "NoModelCache", true }}, want: map[string]bool{"west": true}},
		"OnlyCopy":    {reason: "East is out of reach, and its copy is the only one.", policy: replicate, changes: []func(east, west *Candidate){func(east, west *Candidate) { east.Unreachable = &since; has(west, nil) }}, want: map[string]bool{"east": true}},
		"Abandoned":   {reason: "East is forgotten, although its copy is the only one.", policy: replicate, changes: []func(east, west *Candidate){abandoned, func(_, west *Candidate) { has(west, nil) }}, want: map[string]bool{}},
		"Moved":       {reason: "All of it answers in west.", policy: spread, homes: homeIn("west", "0", "1"), changes: []func(east, west *Candidate){drained}, want: map[string]bool{"west": true}},
		"HomeDrained": {reason: "The first group has its home in east, where it answers.", policy: spread, homes: homeIn("east", "0"), changes: []func(east, west *Candidate){drained, func(_, west *Candidate) { has(west, second) }}, want: map[string]bool{"east": true, "west": true}},
		"SilentHome":  {reason: "The group with its home in east answers nothing, and the other one answers in west.", policy: spread, homes: homeIn("east", "1"), changes: []func(east, west *Candidate){drained, func(east, west *Candidate) { east.Ready = nil; has(west, first) }}, want: map[string]bool{"west": true}},
		"NothingElse": {reason: "The group in east is not ready, and is in no other cluster.", policy: spread, changes: []func(east, west *Candidate){drained, func(east, west *Candidate) {
			east.Present, east.Ready = first, nil
			has(west, second)
		}}, want: map[string]bool{"east": true, "west": true}},
		"NoEntrypoint": {reason: "No requests can be sent to west.", policy: spread, homes: homeIn("west", "0", "1"), changes: []func(east, west *Candidate){drained, func(_, west *Candidate) { west.NoEntrypoint = true }}, want: map[string]bool{"east": true, "west": true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			east := Candidate{Name: "east", Weight: 1, Present: all, Ready: all, Reserved: all, RouterReady: true, ReceivesTraffic: true, MayReceiveTraffic: true}
			west := east
			west.Name = "west"
			for _, change := range tc.changes {
				change(&east, &west)
			}
			got := map[string]bool{}
			for _, d := range Assign(Problem{Policy: tc.policy, Groups: numbered(2), PodRequirements: requirements, Candidates: []Candidate{east, west}, Homes: tc.homes, Now: simNow, FailoverAfter: time.Hour}).Decisions {
				if d.Serves {
					got[d.Name] = true
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPendingKeepsNoTraffic proves that a copy that leaves gets no requests because of another
// group that is assigned there and pending. It would stay for as long as that group is pending.
func TestPendingKeepsNoTraffic(t *testing.T) {
	present := set("0/prefill/0", "0/decode/0")
	east := Candidate{Name: "east", Weight: 1, Present: present, Ready: present, Reserved: present, RouterReady: true, ReceivesTraffic: true, MayReceiveTraffic: true}
	west := east
	west.Name, west.Requested = "west", map[key.GroupID]bool{"1": true}
	got := map[string]bool{}
	for _, d := range Assign(Problem{Policy: v1alpha1.PlacementSpread, Groups: []reservation.ReplicaGroup{group("0", 1, 1), group("1", 1, 1)}, PodRequirements: requirements, Candidates: []Candidate{east, west}, Homes: homeIn("east", "0")}).Decisions {
		got[d.Name] = d.Serves
	}
	if diff := cmp.Diff(map[string]bool{"east": true, "west": false}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestUpdatingReplacesNoCopy proves that a copy stays, and serves, until the pods of the other one
// are ready and stay so.
func TestUpdatingReplacesNoCopy(t *testing.T) {
	all := set("0/prefill/0", "0/decode/0")
	cases := map[string]struct {
		reason   string
		updating map[key.ReplicaID]bool
		want     map[string]bool
	}{
		"Stays":    {"The other copy is ready.", nil, map[string]bool{"east": true}},
		"Updating": {"Its pods may be gone before this copy is.", set("0/decode/0"), map[string]bool{"east": true, "west": true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			east := Candidate{Name: "east", Present: all, Ready: all, Reserved: all, RouterReady: true, ReceivesTraffic: true}
			west := east
			east.Updating, west.Name, west.StopPolicy = tc.updating, "west", v1alpha1.StopDrain
			runs, serves := map[string]bool{}, map[string]bool{}
			for _, d := range Assign(Problem{Policy: v1alpha1.PlacementFailover, Groups: []reservation.ReplicaGroup{group("0", 1, 1)}, PodRequirements: requirements, Candidates: []Candidate{east, west}, Homes: homeIn("east", "0")}).Decisions {
				if len(d.Run) > 0 {
					runs[d.Name] = true
				}
				if d.Serves {
					serves[d.Name] = true
				}
			}
			if diff := cmp.Diff([]map[string]bool{tc.want, tc.want}, []map[string]bool{runs, serves}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
