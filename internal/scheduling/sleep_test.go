package scheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// TestSleeps proves where a service without replicas stays. It slept in a, and requests reach it there.
func TestSleeps(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	brief := func(c *Candidate) { c.Unreachable = ago(time.Second) }
	type states map[string]v1alpha1.PlacementState
	const placed, leaving, not = v1alpha1.StatePlaced, v1alpha1.StateLeaving, v1alpha1.StateNotPlaced
	cases := map[string]struct {
		reason string
		policy v1alpha1.PlacementPolicy
		change func(a *Candidate)
		// noQueue tells that requests fail if nothing is ready, and noGroups that the service is stopped.
		noQueue, noGroups bool
		// alone tells that b is drained, and receives that requests reach it.
		alone, receives bool
		want            states
	}{
		"Undisturbed":        {reason: "It stays.", want: states{"a": placed, "b": not}},
		"BrieflyUnreachable": {reason: "Replicas stay, too.", change: brief, want: states{"a": placed, "b": not}},
		"Unreachable":        {reason: "It moves, and requests may still wait there.", change: func(c *Candidate) { c.Unreachable = ago(time.Hour) }, want: states{"a": leaving, "b": placed}},
		"Unknown":            {reason: "It is read again later.", change: func(c *Candidate) { c.Unknown = "x" }, want: states{"a": placed, "b": not}},
		"Gone":               {reason: "Nobody says that it comes back.", change: func(c *Candidate) { c.Unknown, c.Gone = "x", true }, want: states{"a": leaving, "b": placed}},
		"OutOfScope":         {reason: "It could not wake there.", change: func(c *Candidate) { c.OutOfScope = ReasonNoCache }, want: states{"a": leaving, "b": placed}},
		"Drained":            {reason: "It moves.", change: func(c *Candidate) { c.StopPolicy = v1alpha1.StopDrain }, want: states{"a": leaving, "b": placed}},
		"DrainedNoTraffic":   {reason: "The route leads elsewhere.", receives: true, change: func(c *Candidate) { c.StopPolicy, c.MayReceiveTraffic = v1alpha1.StopDrain, false }, want: states{"a": not, "b": placed}},
		"DrainedNoRoute":     {reason: "No route leads anywhere, and the next endpoint picker is not ready.", change: func(c *Candidate) { c.StopPolicy, c.MayReceiveTraffic = v1alpha1.StopDrain, false }, want: states{"a": leaving, "b": placed}},
		"DrainedNothing":     {reason: "Nothing exists there.", change: func(c *Candidate) { c.StopPolicy, c.Exists = v1alpha1.StopDrain, false }, want: states{"a": not, "b": placed}},
		"DrainedNoQueue":     {reason: "No request waits.", noQueue: true, change: func(c *Candidate) { c.StopPolicy = v1alpha1.StopDrain }, want: states{"a": not, "b": placed}},
		"Alone":              {reason: "It has no other place.", alone: true, change: func(c *Candidate) { c.StopPolicy = v1alpha1.StopDrain }, want: states{"a": leaving, "b": not}},
		"AloneNotReady": {reason: "The endpoint picker comes back.", alone: true, change: func(c *Candidate) {
			c.StopPolicy, c.MayReceiveTraffic, c.ReceivesTraffic, c.RouterReady = v1alpha1.StopDrain, false, false, false
		}, want: states{"a": leaving, "b": not}},
		"AloneUnroutable": {reason: "It has no other place, and no requests can be sent to it.", alone: true, change: func(c *Candidate) {
			c.StopPolicy, c.MayReceiveTraffic, c.NoEntrypoint = v1alpha1.StopDrain, false, true
		}, want: states{"a": not, "b": not}},
		"DrainedTraffic":  {reason: "Requests can wait elsewhere, and a gateway may still send some here.", receives: true, change: func(c *Candidate) { c.StopPolicy = v1alpha1.StopDrain }, want: states{"a": leaving, "b": placed}},
		"Abandoned":       {reason: "It is forgotten.", change: func(c *Candidate) { c.StopPolicy = v1alpha1.StopAbandon }, want: states{"a": not, "b": placed}},
		"UnreachableGone": {reason: "Nothing of the service exists there.", change: func(c *Candidate) { brief(c); c.Exists = false }, want: states{"a": not, "b": placed}},
		"DrainedUnknown": {reason: "It cannot be read, and is read again later, so it is not left.", change: func(c *Candidate) {
			c.Unknown, c.StopPolicy = "x", v1alpha1.StopDrain
		}, want: states{"a": placed, "b": not}},
		"Stopped":          {reason: "spec.replicas is 0.", noGroups: true, change: func(c *Candidate) { c.StopPolicy = v1alpha1.StopDrain }, want: states{"a": not, "b": not}},
		"Replicate":        {reason: "It sleeps in both.", policy: v1alpha1.PlacementReplicate, want: states{"a": placed, "b": placed}},
		"ReplicateBriefly": {reason: "The copy in a stays.", policy: v1alpha1.PlacementReplicate, change: brief, want: states{"a": placed, "b": placed}},
		"ReplicateNothing": {reason: "Nothing is made where it is not known to succeed.", policy: v1alpha1.PlacementReplicate, change: func(c *Candidate) {
			brief(c)
			c.Exists, c.MayReceiveTraffic = false, false
		}, want: states{"a": not, "b": placed}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Problem{
				Policy: tc.policy, Waits: !tc.noQueue, FailoverAfter: time.Minute, Now: now,
				Groups: []reservation.ReplicaGroup{{Name: "0"}}, Homes: map[key.GroupID]reservation.Home{"0": {Cluster: "a", Epoch: 2, Started: true}},
				Candidates: []Candidate{{Name: "a", Exists: true, MayReceiveTraffic: true, ReceivesTraffic: true, RouterReady: true}, {Name: "b"}},
			}
			if p.Policy == "" {
				p.Policy = v1alpha1.PlacementFailover
			}
			if tc.noGroups {
				p.Groups = nil
			}
			if tc.alone {
				p.Candidates[1].StopPolicy = v1alpha1.StopDrain
			}
			p.Candidates[1].RouterReady, p.Candidates[1].ReceivesTraffic = tc.receives, tc.receives
			if tc.change != nil {
				tc.change(&p.Candidates[0])
			}
			got := states{}
			for _, d := range Assign(p).Decisions {
				got[d.Name] = d.State
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestQueueLeaves proves what is said of a cluster where requests wait, and which the service leaves. It slept in a, which
// is drained, and moves to b.
func TestQueueLeaves(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(a, b *Candidate)
		want   string
	}{
		"Requests":   {reason: "A gateway sends requests to a.", change: func(a, _ *Candidate) { a.MayReceiveTraffic = true }, want: "the cluster is drained, and is left once no gateway sends requests there"},
		"NoRequests": {reason: "No gateway does, and requests wait in a.", change: func(_, _ *Candidate) {}, want: "the cluster is drained, and is left once requests can wait elsewhere"},
		"Unroutable": {reason: "No requests can be sent to b.", change: func(a, b *Candidate) {
			a.MayReceiveTraffic, b.NoEntrypoint, b.RouterReady = true, true, true
		}, want: "the cluster is drained, and cannot be left: b has no entrypoint to which requests can be sent"},
		"TakenOver": {reason: "Requests can wait in b.", change: func(_, b *Candidate) { b.ReceivesTraffic, b.RouterReady = true, true }, want: "the cluster is drained"},
		"Alone":     {reason: "There is no other place.", change: func(_, b *Candidate) { b.StopPolicy = v1alpha1.StopDrain }, want: "the cluster is drained, and is left once requests can wait elsewhere"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := Candidate{Name: "a", Exists: true, StopPolicy: v1alpha1.StopDrain}, Candidate{Name: "b"}
			tc.change(&a, &b)
			got := Assign(Problem{
				Policy: v1alpha1.PlacementFailover, Waits: true, Groups: []reservation.ReplicaGroup{{Name: "0"}, {Name: "1"}},
				Homes:      map[key.GroupID]reservation.Home{"0": {Cluster: "a", Epoch: 2, Started: true}, "1": {Cluster: "a", Epoch: 2, Started: true}},
				Candidates: []Candidate{a, b},
			}).Decisions[0]
			if diff := cmp.Diff(tc.want, got.Message); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got.State != v1alpha1.StateLeaving {
				return
			}
			if diff := cmp.Diff([]reservation.ReplicaGroup{{Name: "0"}, {Name: "1"}}, got.Groups); diff != "" {
				t.Errorf("%s It is requested that the groups wait there: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
