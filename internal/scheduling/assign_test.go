package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// nodes returns a pool of nodes with some GPUs each.
func nodes(name string, n, gpus int64) capacity.Pool {
	return capacity.Pool{Name: name, NodeCount: n, Total: capacity.Resources{capacitytest.GPU: n * gpus * 1000}, Free: []capacity.NodeClass{{Count: n, Free: capacity.Resources{capacitytest.GPU: gpus * 1000}}}}
}

// group returns a group of a prefill and a decode replica, each with pods of 8 GPUs.
func group(name string, prefill, decode int64) reservation.ReplicaGroup {
	return reservation.ReplicaGroup{Name: key.GroupID(name), Replicas: []reservation.ReplicaRequest{
		{Name: key.ReplicaID(name + "/prefill/0"), Pods: map[string]int64{"large": prefill}, Required: true},
		{Name: key.ReplicaID(name + "/decode/0"), Pods: map[string]int64{"large": decode}, Required: true},
	}}
}

var requirements = map[string]capacity.PodRequirements{"large": {Requests: capacity.Resources{capacitytest.GPU: 8000}}, "small": {Requests: capacity.Resources{capacitytest.GPU: 2000}}}

func set(names ...key.ReplicaID) map[key.ReplicaID]bool {
	m := map[key.ReplicaID]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// homeIn is the record that some groups have their home in a cluster.
func homeIn(cluster string, groups ...key.GroupID) map[key.GroupID]reservation.Home {
	all := map[key.GroupID]reservation.Home{}
	for _, g := range groups {
		all[g] = reservation.Home{Cluster: cluster, Epoch: 1}
	}
	return all
}

func TestAssign(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	oneGroup := []reservation.ReplicaGroup{group("0", 1, 1)}
	twoGroups := []reservation.ReplicaGroup{group("0", 1, 1), group("1", 1, 1)}
	twoGroupsAndReplica := []reservation.ReplicaGroup{twoGroups[0], {Name: "1", Replicas: append(slices.Clone(twoGroups[1].Replicas), reservation.ReplicaRequest{Name: "1/decode/1", Pods: map[string]int64{"large": 1}})}}
	firstGroup := set("0/prefill/0", "0/decode/0")
	bothGroups := set("0/prefill/0", "0/decode/0", "1/prefill/0", "1/decode/0")
	east := func(change ...func(*Candidate)) Candidate {
		c := Candidate{Name: "east", Weight: 1, ReceivesTraffic: true, RouterReady: true, Free: capacity.Free{Pools: []capacity.Pool{nodes("h100", 4, 8)}}}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	onHold := func(c *Candidate) { c.StopPolicy, c.NotSchedulable = v1alpha1.StopHold, "on hold" }
	paused := func(c *Candidate) { c.Paused, c.NotSchedulable = true, "paused" }
	named := func(name string, c Candidate) Candidate { c.Name = name; return c }
	almostFull := func(c *Candidate) { c.Free = capacity.Free{Pools: []capacity.Pool{nodes("h100", 1, 8)}} }
	running := func(c *Candidate) { c.Present, c.Ready, c.Reserved = firstGroup, firstGroup, firstGroup }
	drained := func(c *Candidate) { c.StopPolicy = v1alpha1.StopDrain }
	reservedThere := func(c *Candidate) { c.Reserved = firstGroup }
	unroutable := func(c *Candidate) { c.NoEntrypoint, c.ReceivesTraffic = true, false }
	half := func(c *Candidate) { c.Present = set("0/prefill/0") }
	lateStart := func(c *Candidate) {
		c.Present, c.Reserved, c.Created = firstGroup, firstGroup, map[key.ReplicaID]time.Time{"0/decode/0": *ago(time.Hour)}
	}
	requested := func(c *Candidate) { c.Requested = map[key.GroupID]bool{"0": true} }
	refused := func(c *Candidate) {
		c.Requested, c.Evaluated, c.PendingMessage = map[key.GroupID]bool{"0": true}, true, "8 short"
	}
	large := func(names ...key.ReplicaID) []reservation.ReplicaGroup {
		all := []reservation.ReplicaGroup{{Name: "0"}}
		for _, n := range names {
			all[0].Replicas = append(all[0].Replicas, reservation.ReplicaRequest{Name: n, Pods: map[string]int64{"large": 1}})
		}
		return all
	}
	withRest := large("0/prefill/0", "0/decode/0", "0/decode/1")
	withRest[0].Replicas[0].Required, withRest[0].Replicas[1].Required = true, true
	threeRequired := large("0/prefill/0", "0/decode/0", "0/decode/1")
	for i := range threeRequired[0].Replicas {
		threeRequired[0].Replicas[i].Required = true
	}
	withSpot := large("0/prefill/0", "0/decode/0", "0/spot/0")
	withSpot[0].Replicas[0].Required, withSpot[0].Replicas[1].Required = true, true
	oneOfTwo := large("0/prefill/0", "0/decode/0")
	oneOfTwo[0].Replicas[0].Required = true

	type outcome struct {
		State   v1alpha1.PlacementState
		Reason  string
		Message string
		Run     []key.ReplicaID
		Pending int
		// NoTraffic tells that the cluster leaves, and that requests go elsewhere.
		NoTraffic bool
		// Due is when the service leaves the cluster if it stays out of reach.
		Due time.Time
	}
	// These follow from what most cases are about: both replicas run, both were just asked for, or both run on until they do elsewhere.
	runsThere := outcome{State: v1alpha1.StatePlaced, Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}}
	asked := outcome{State: v1alpha1.StatePending, Reason: ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Pending: 2}
	drains := outcome{State: v1alpha1.StateLeaving, Reason: ReasonDraining, Message: "the cluster is drained, and is left once it runs elsewhere", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}}
	cases := map[string]struct {
		reason     string
		policy     v1alpha1.PlacementPolicy
		groups     []reservation.ReplicaGroup
		candidates []Candidate
		homes      map[key.GroupID]reservation.Home
		want       map[string]outcome
	}{
		"Requested": {
			reason: "Capacity is requested of the first cluster where the service fits. Nothing runs before it is reserved.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(almostFull), named("west", east())},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short"},
				"west": asked,
			},
		},
		"Uncounted": {
			reason: "Where Kueue admits, everything fits, without a free node.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(almostFull), named("west", east(func(c *Candidate) { c.Uncounted, c.Free = true, capacity.Free{} }))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short"},
				"west": asked,
			},
		},
		"UncountedOnHold": {
			reason: "A cluster on hold takes nothing new, whoever admits there.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(onHold, func(c *Candidate) { c.Uncounted = true }), named("west", east())},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonOnHold, Message: "on hold"},
				"west": asked,
			},
		},
		"Gang": {
			reason: "A gang goes to a cluster that takes gangs. What exists in another stays until it is refused.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(func(c *Candidate) { c.Uncounted, c.OutOfScope, c.OutOfScopeMessage = true, ReasonGang, "no gangs" }), named("west", east())},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonGang, Message: "no gangs"},
				"west": asked,
			},
		},
		"FitsNowhere": {
			reason: "If the service fits nowhere, capacity is requested of every cluster.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(almostFull), named("west", east(almostFull, func(c *Candidate) { c.PendingMessage = "8 short" }))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
				"west": {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
			},
		},
		"RefusedAsksAll": {
			reason: "Once a cluster has refused, all are asked, although one of them seems to have the capacity. The service is then in each queue.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(almostFull, func(c *Candidate) {
					c.Requested, c.Evaluated, c.PendingMessage = map[key.GroupID]bool{"0": true}, true, "8 short"
				}),
				named("west", east()), named("north", east(almostFull)),
			},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
				"west":  asked,
				"north": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
			},
		},
		"AwaitsAnswer": {
			reason: "Until the cluster answers, no other is asked, although the capacity seems to be gone.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(almostFull, func(c *Candidate) { c.Requested, c.AskedFor = map[key.GroupID]bool{"0": true}, RequestTimeout-1 }),
				named("west", east()),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "capacity is requested in east"},
			},
		},
		"RequestTimesOut": {
			reason: "A cluster that does not answer in time is asked further, beside all others.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(func(c *Candidate) { c.Requested, c.AskedFor = map[key.GroupID]bool{"0": true}, RequestTimeout }),
				named("west", east()),
			},
			want: map[string]outcome{
				"east": asked,
				"west": asked,
			},
		},
		"NeverReady": {
			reason: "A service that was never ready in its home moves to a cluster with room after the start time-out.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(func(c *Candidate) {
					c.Present, c.Reserved, c.Created = firstGroup, firstGroup, map[key.ReplicaID]time.Time{"0/decode/0": *ago(time.Hour)}
				}),
				named("west", east(almostFull)), named("north", east()),
			},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in north", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west":  {State: v1alpha1.StateNotPlaced, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short"},
				"north": asked,
			},
		},
		"NeverReadyNoRoom": {
			reason: "Without room elsewhere it stays, and asks the next one all the same. An estimate may not show the last node.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(func(c *Candidate) {
					c.Present, c.Reserved, c.Created = firstGroup, firstGroup, map[key.ReplicaID]time.Time{"0/decode/0": *ago(time.Hour)}
				}),
				named("west", east(almostFull)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
			},
		},
		"SpreadBesideHold": {
			reason: "A group that fits nowhere asks one that reserves something, although one on hold comes first.",
			policy: v1alpha1.PlacementSpread, groups: oneGroup,
			candidates: []Candidate{named("west", east(onHold)), east(almostFull)},
			want: map[string]outcome{
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "capacity is requested in east"},
				"east": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
			},
		},
		"SpreadAllOnHold": {
			reason: "If none reserves anything, it asks the first one.",
			policy: v1alpha1.PlacementSpread, groups: oneGroup,
			candidates: []Candidate{east(onHold), named("west", east(onHold))},
			want: map[string]outcome{
				"west": {State: v1alpha1.StatePending, Reason: ReasonOnHold, Message: "on hold", Pending: 2},
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "capacity is requested in west"},
			},
		},
		"NeverReadyQuota": {
			reason: "After a start time-out, a cluster that refuses although it seems to have room does not hide the next one.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(lateStart),
				named("west", east(refused)), named("north", east()),
			},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west, north", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west":  {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
				"north": asked,
			},
		},
		"NeverReadyAllRefused": {
			reason: "Once all with room have refused, nothing that is asked is withdrawn.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(lateStart), named("west", east(refused)), named("north", east(refused, almostFull))},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west, north", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west":  {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
				"north": {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
			},
		},
		"NeverReadyNextInLine": {
			reason: "Where one has refused, the next one is asked beside it, although it seems to have no room either.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(lateStart), named("west", east(refused, almostFull)), named("north", east(onHold)), named("south", east(almostFull))},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west, south", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west":  {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
				"north": {State: v1alpha1.StateNotPlaced, Reason: ReasonOnHold, Message: "on hold"},
				"south": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
			},
		},
		"NeverReadyAll": {
			reason: "After two refusals all others are asked at once. Each that is added later would make the request longer.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(lateStart), named("west", east(refused)), named("north", east(refused)), named("south", east()), named("middle", east(almostFull))},
			want: map[string]outcome{
				"east":   {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west, north, south, middle", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west":   {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
				"north":  {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
				"south":  asked,
				"middle": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
			},
		},
		"NeverReadyPaused": {
			reason: "A cluster that is known to be paused stays asked, where no other is. Otherwise it would look as if it was not.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(lateStart), named("west", east(requested, paused)), named("north", east(onHold))},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west":  {State: v1alpha1.StatePending, Reason: ReasonPaused, Message: "paused", Pending: 2},
				"north": {State: v1alpha1.StateNotPlaced, Reason: ReasonOnHold, Message: "on hold"},
			},
		},
		"PausedOnHold": {
			reason: "That it is paused is known only because it does not answer, and says more.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(onHold, requested, paused)},
			want:       map[string]outcome{"east": {State: v1alpha1.StatePending, Reason: ReasonPaused, Message: "paused", Pending: 2}},
		},
		"SpreadPaused": {
			reason: "So does it for a group without a home, although one on hold comes first.",
			policy: v1alpha1.PlacementSpread, groups: oneGroup,
			candidates: []Candidate{named("west", east(onHold)), named("north", east(requested, paused)), east(onHold)},
			want: map[string]outcome{
				"west":  {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "capacity is requested in north"},
				"north": {State: v1alpha1.StatePending, Reason: ReasonPaused, Message: "paused", Pending: 2},
				"east":  {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "capacity is requested in north"},
			},
		},
		"NeverReadyAwaits": {
			reason: "One that may still answer comes before the next one without room.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(lateStart), named("west", east(refused, almostFull)), named("north", east(almostFull, requested)), named("south", east(almostFull))},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west, north", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west":  {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
				"north": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
				"south": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in east, and capacity is requested in west, north"},
			},
		},
		"NeverReadyOnHold": {
			reason: "Where no other reserves anything, none is asked.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(lateStart), named("west", east(onHold))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and no other cluster has room for it", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonOnHold, Message: "on hold"},
			},
		},
		"RefusedBesideSilent": {
			reason: "Once one has refused, all are asked, although another may still answer.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(refused), named("west", east(requested)), named("north", east())},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
				"west":  asked,
				"north": asked,
			},
		},
		"NeverReadyRefused": {
			reason: "After a refusal, it asks the next cluster with room beside the one that it waits for, and no other.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(lateStart),
				named("west", east(almostFull, func(c *Candidate) { c.Requested, c.Evaluated = map[key.GroupID]bool{"0": true}, true })),
				named("north", east(almostFull)), named("south", east()),
			},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west, south", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west":  {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
				"north": {State: v1alpha1.StateNotPlaced, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short"},
				"south": asked,
			},
		},
		"DrainNoRoom": {
			reason: "What has to leave its home waits in the queue of each cluster.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(running, drained), named("west", east(almostFull)), named("north", east(almostFull))},
			want: map[string]outcome{
				"east":  drains,
				"west":  {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
				"north": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
			},
		},
		"NotRecordedBeside": {
			reason: "Nothing is removed before it was recorded that the home is the cluster of the XR, which has no name.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{named("", east(running)), named("west", east(running, drained))},
			want:       map[string]outcome{"": runsThere, "west": drains},
		},
		"NeitherRoutable": {
			reason: "It is left although no requests can be sent to the other one, because none reach this one either.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{east(running, drained, unroutable), named("west", east(running, unroutable, func(c *Candidate) { c.Ready = nil }))},
			want:       map[string]outcome{"east": drains, "west": runsThere},
		},
		"OwnRoute": {
			reason: "Requests reach a cluster outside of the fleet by a route of its own.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained, unroutable, func(c *Candidate) { c.OutsideFleet = true }),
				named("west", east(running, unroutable)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonDraining, Message: "the cluster is drained, and cannot be left: west has no entrypoint to which requests can be sent", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": runsThere,
			},
		},
		"OutsideFleet": {
			reason: "A cluster outside of the fleet runs everything, and reserves nothing.",
			policy: v1alpha1.PlacementReplicate, groups: oneGroup,
			candidates: []Candidate{east(func(c *Candidate) { c.OutsideFleet, c.Free = true, capacity.Free{} })},
			want:       map[string]outcome{"east": runsThere},
		},
		"TimedOut": {
			reason: "It says why it moves, until it is removed.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(func(c *Candidate) {
					c.Present, c.Reserved, c.Created = firstGroup, firstGroup, map[key.ReplicaID]time.Time{"0/decode/0": *ago(time.Hour)}
				}),
				named("west", east(func(c *Candidate) { c.Reserved = firstGroup })),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and it runs in west, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": runsThere,
			},
		},
		"FailedToStart": {
			reason: "What never became ready serves nobody, so it is removed as soon as the record names another home.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: map[key.GroupID]reservation.Home{"0": {Cluster: "west", Epoch: 2, FailedIn: "east"}},
			candidates: []Candidate{
				east(func(c *Candidate) { c.Present, c.Reserved = firstGroup, firstGroup }),
				named("west", east(func(c *Candidate) { c.Reserved = firstGroup })),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": runsThere,
			},
		},
		"NotRecorded": {
			reason: "Nothing is removed before the record of its new home was read back.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(running, drained), named("west", east(running))},
			want: map[string]outcome{
				"east": drains,
				"west": runsThere,
			},
		},
		"FirstReservationWins": {
			reason: "The first cluster that reserves all of it is used.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(almostFull), named("west", east(almostFull, func(c *Candidate) { c.Reserved = firstGroup }))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": runsThere,
			},
		},
		"Stays": {
			reason: "What runs stays, although it fits into an earlier cluster again.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(), named("west", east(almostFull, running))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": runsThere,
			},
		},
		"Unreachable": {
			reason: "A cluster that is out of reach for a short time keeps what it has, and nothing is started elsewhere.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(running, func(c *Candidate) { c.Unreachable = ago(time.Minute) }), named("west", east())},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonUnreachable, Message: "out of reach since 2026-03-01T11:59:00Z", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}, Due: now.Add(4 * time.Minute)},
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in east"},
			},
		},
		"UnreachableInOutage": {
			reason: "Nothing is due while most of the fleet is out of reach, because the service does not leave.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(running, func(c *Candidate) { c.Unreachable, c.InOutage = ago(time.Minute), true })},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonUnreachable, Message: "out of reach since 2026-03-01T11:59:00Z, like most of the fleet: the control plane is probably the cause, so nothing moves", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
			},
		},
		"UnreachableReplicate": {
			reason: "With Replicate it does not leave either.",
			policy: v1alpha1.PlacementReplicate, groups: oneGroup,
			candidates: []Candidate{east(running, func(c *Candidate) { c.Unreachable = ago(time.Minute) })},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonUnreachable, Message: "out of reach since 2026-03-01T11:59:00Z", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
			},
		},
		"Failover": {
			reason: "After a longer time the service is started elsewhere. It leaves only once it is ready there.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(running, func(c *Candidate) { c.Unreachable = ago(time.Hour) }), named("west", east())},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonUnreachable, Message: "out of reach since 2026-03-01T11:00:00Z, longer than 5m0s, and is left once it runs elsewhere", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": asked,
			},
		},
		"Drain": {
			reason: "While the new copy is ready and receives no traffic, the old one stays.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(running, func(c *Candidate) { c.StopPolicy, c.StopMessage = v1alpha1.StopDrain, "maintenance" }), named("west", east(running, func(c *Candidate) { c.ReceivesTraffic = false }))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonDraining, Message: "the cluster is drained: maintenance, and is left once it runs elsewhere", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": runsThere,
			},
		},
		"Drained": {
			reason: "Once the new copy is ready and receives traffic, the old one is removed.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(running, drained), named("west", east(running))},
			homes:      homeIn("west", "0"),
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonDraining, Message: "the cluster is drained"},
				"west": runsThere,
			},
		},
		"Hold": {
			reason: "What runs in a cluster that is on hold stays there.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(running, onHold), named("west", east())},
			want: map[string]outcome{
				"east": runsThere,
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in east"},
			},
		},
		"HoldNothingNew": {
			reason: "A service that does not run yet goes elsewhere.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(onHold), named("west", east())},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonOnHold, Message: "on hold"},
				"west": asked,
			},
		},
		"Paused": {
			reason: "Nobody answers a request of a paused cluster, so the next one is asked beside it.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(func(c *Candidate) {
					c.Paused, c.NotSchedulable, c.Requested = true, "it is paused", map[key.GroupID]bool{"0": true}
				}),
				named("west", east()),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePending, Reason: ReasonPaused, Message: "it is paused", Pending: 2},
				"west": asked,
			},
		},
		"PausedBoth": {
			reason: "Two paused clusters are not asked in turn: all are asked, so that it is in the queue of one that answers.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(requested, paused), named("west", east(requested, paused)), named("north", east(almostFull))},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePending, Reason: ReasonPaused, Message: "paused", Pending: 2},
				"west":  {State: v1alpha1.StatePending, Reason: ReasonPaused, Message: "paused", Pending: 2},
				"north": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
			},
		},
		"NeverReadyPausedBeside": {
			reason: "A paused one stays asked beside the next one, for a group that stays in its home, too.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(lateStart), named("west", east(requested, paused)), named("north", east())},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west, north", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west":  {State: v1alpha1.StatePending, Reason: ReasonPaused, Message: "paused", Pending: 2},
				"north": asked,
			},
		},
		"HoldGrowth": {
			reason: "Replicas that are added to a copy in such a cluster are pending.",
			policy: v1alpha1.PlacementReplicate, groups: twoGroups,
			candidates: []Candidate{east(running, onHold)},
			want:       map[string]outcome{"east": {State: v1alpha1.StatePlaced, Reason: ReasonOnHold, Message: "on hold", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}, Pending: 2}},
		},
		"Abandoned": {
			reason: "What is in an abandoned cluster stays until it can be forgotten without being deleted.",
			policy: v1alpha1.PlacementReplicate, groups: oneGroup,
			candidates: []Candidate{east(running, func(c *Candidate) { c.StopPolicy = v1alpha1.StopAbandon })},
			want:       map[string]outcome{"east": {State: v1alpha1.StateLeaving, Reason: ReasonAbandoned, Message: "the cluster is abandoned, and is left once it runs elsewhere", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}}},
		},
		"Forgotten": {
			reason: "Once it can be forgotten it is, whether or not it runs elsewhere.",
			policy: v1alpha1.PlacementReplicate, groups: oneGroup,
			candidates: []Candidate{east(running, func(c *Candidate) { c.StopPolicy, c.Orphaned = v1alpha1.StopAbandon, true })},
			want:       map[string]outcome{"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonAbandoned, Message: "the cluster is abandoned"}},
		},
		"NothingKnown": {
			reason: "While the fleet cannot be read, nothing moves and nothing new is started.",
			policy: v1alpha1.PlacementSpread, groups: oneGroup,
			candidates: []Candidate{east(running, func(c *Candidate) { c.Unknown = "not read" }), named("west", east(func(c *Candidate) { c.Unknown = "not read" }))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonUnknown, Message: "not read", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonUnknown, Message: "not read"},
			},
		},
		"OnlyCopy": {
			reason: "The only copy stays in a drained cluster as long as there is no other.",
			policy: v1alpha1.PlacementReplicate, groups: oneGroup,
			candidates: []Candidate{east(running, drained)},
			want:       map[string]outcome{"east": drains},
		},
		"NotNeeded": {
			reason: "A copy that is not needed receives no requests once the other one answers. Then it leaves.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(running, func(c *Candidate) { c.RouterReady, c.MayReceiveTraffic = true, true }), named("west", east(running, func(c *Candidate) { c.RouterReady, c.MayReceiveTraffic = true, true }))},
			want: map[string]outcome{
				"east": runsThere,
				"west": {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in east, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}, NoTraffic: true},
			},
		},
		"RecordedHome": {
			reason: "Of two copies, the one in the recorded home stays, although more of the other is ready. The other serves meanwhile.",
			policy: v1alpha1.PlacementFailover, groups: twoGroups, homes: homeIn("west", "0", "1"),
			candidates: []Candidate{
				east(func(c *Candidate) { c.Present, c.Ready, c.Reserved = firstGroup, firstGroup, firstGroup }),
				named("west", east(func(c *Candidate) { c.Present, c.Reserved = bothGroups, bothGroups })),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": {State: v1alpha1.StatePlaced, Run: []key.ReplicaID{"0/decode/0", "0/prefill/0", "1/decode/0", "1/prefill/0"}},
			},
		},
		"MoreReady": {
			reason: "Of two complete copies, the one with more ready replicas stays, although the other comes first.",
			policy: v1alpha1.PlacementFailover, groups: twoGroups, homes: homeIn("west", "0", "1"),
			candidates: []Candidate{
				east(func(c *Candidate) { c.Present, c.Ready, c.Reserved = bothGroups, firstGroup, bothGroups }),
				named("west", east(func(c *Candidate) { c.Present, c.Ready, c.Reserved = bothGroups, bothGroups, bothGroups })),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": {State: v1alpha1.StatePlaced, Run: []key.ReplicaID{"0/decode/0", "0/prefill/0", "1/decode/0", "1/prefill/0"}},
			},
		},
		"KeepsReplica": {
			reason: "A second copy stays because it has a replica that does not fit beside the first.",
			policy: v1alpha1.PlacementFailover, groups: twoGroupsAndReplica,
			candidates: []Candidate{
				east(func(c *Candidate) {
					c.Present = set("1/prefill/0", "1/decode/0", "1/decode/1")
					c.Ready, c.Reserved = c.Present, c.Present
					c.Free = capacity.Free{Pools: []capacity.Pool{nodes("h100", 0, 8)}}
				}),
				named("west", east(func(c *Candidate) {
					c.Present, c.Ready, c.Reserved = bothGroups, bothGroups, bothGroups
					c.Free = capacity.Free{Pools: []capacity.Pool{nodes("h100", 0, 8)}}
				})),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"1/decode/0", "1/decode/1", "1/prefill/0"}},
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonInsufficientCapacity, Message: "pool h100 has no nvidia.com/gpu", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0", "1/decode/0", "1/prefill/0"}, Pending: 1},
			},
		},
		"FreeCapacity": {
			reason: "Of two halves, the one stays where the other fits.",
			policy: v1alpha1.PlacementFailover, groups: twoGroups,
			candidates: []Candidate{
				east(almostFull, func(c *Candidate) { c.Present, c.Ready, c.Reserved = firstGroup, firstGroup, firstGroup }),
				named("west", east(func(c *Candidate) {
					c.Present = set("1/prefill/0", "1/decode/0")
					c.Ready, c.Reserved = c.Present, c.Present
				})),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Run: []key.ReplicaID{"1/decode/0", "1/prefill/0"}, Pending: 2},
			},
		},
		"Unroutable": {
			reason: "An unroutable cluster is not used while there is another.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(running, func(c *Candidate) { c.StopPolicy = v1alpha1.StopDrain; c.MayReceiveTraffic = true }),
				named("west", east(func(c *Candidate) { c.NoEntrypoint, c.Reserved, c.ReceivesTraffic = true, firstGroup, false })),
				named("north", east(func(c *Candidate) { c.ReceivesTraffic = false })),
			},
			want: map[string]outcome{
				"east":  drains,
				"west":  {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "capacity is requested in north"},
				"north": asked,
			},
		},
		"BothServe": {
			reason: "Two copies of a group that both leave keep serving: neither counts for the other.",
			policy: v1alpha1.PlacementFailover, groups: twoGroups,
			candidates: []Candidate{
				east(almostFull, func(c *Candidate) {
					c.Present, c.Ready, c.Reserved, c.MayReceiveTraffic = firstGroup, firstGroup, firstGroup, true
				}),
				named("west", east(almostFull, func(c *Candidate) {
					c.Present, c.Ready, c.Reserved, c.MayReceiveTraffic = firstGroup, firstGroup, firstGroup, true
				})),
				named("north", east(func(c *Candidate) {
					c.Present = set("1/prefill/0", "1/decode/0")
					c.Ready, c.Reserved, c.MayReceiveTraffic = c.Present, c.Present, true
				})),
			},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in west, north, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west":  {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in east, north, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"north": {State: v1alpha1.StatePlaced, Reason: ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Run: []key.ReplicaID{"1/decode/0", "1/prefill/0"}, Pending: 2},
			},
		},
		"SpreadRecordedHome": {
			reason: "A group that is in two clusters stays in its recorded home.",
			policy: v1alpha1.PlacementSpread, groups: twoGroupsAndReplica[1:], homes: homeIn("west", "1"),
			candidates: []Candidate{
				east(func(c *Candidate) {
					c.Present = set("1/prefill/0", "1/decode/0")
					c.Ready, c.Reserved = c.Present, c.Present
				}),
				named("west", east(almostFull, func(c *Candidate) {
					c.Present = set("1/prefill/0", "1/decode/0", "1/decode/1")
					c.Ready, c.Reserved = set("1/decode/1"), c.Present
				})),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"1/decode/0", "1/prefill/0"}},
				"west": {State: v1alpha1.StatePlaced, Run: []key.ReplicaID{"1/decode/0", "1/decode/1", "1/prefill/0"}},
			},
		},
		"SpreadUnroutable": {
			reason: "Spread does not use an unroutable cluster either.",
			policy: v1alpha1.PlacementSpread, groups: oneGroup,
			candidates: []Candidate{named("west", east(func(c *Candidate) { c.NoEntrypoint = true })), named("north", east())},
			want: map[string]outcome{
				"west":  {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "capacity is requested in north"},
				"north": asked,
			},
		},
		"NotSchedulable": {
			reason: "Nothing is requested of a cluster that is not schedulable, although the service fits.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(func(c *Candidate) { c.NotSchedulable = "its ledger is full" }), named("west", east())},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotSchedulable, Message: "its ledger is full"},
				"west": asked,
			},
		},
		"AllBeforeSome": {
			reason: "A cluster where all replicas fit comes before one where only the required ones fit.",
			policy: v1alpha1.PlacementFailover, groups: []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{
				{Name: "a", Pods: map[string]int64{"large": 1}, Required: true}, {Name: "b", Pods: map[string]int64{"large": 1}},
			}}},
			candidates: []Candidate{east(almostFull), named("west", east())},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "capacity is requested in west"},
				"west": asked,
			},
		},
		"OnHoldInPart": {
			reason: "A cluster that is on hold is not asked either if only what is needed to start would fit.",
			policy: v1alpha1.PlacementFailover, groups: oneOfTwo,
			candidates: []Candidate{
				east(almostFull, onHold),
				named("west", east(almostFull)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonOnHold, Message: "on hold"},
				"west": asked,
			},
		},
		"FailoverWhole": {
			reason: "A service of which no replica is required starts as a whole, so room for a part of it does not count.",
			policy: v1alpha1.PlacementFailover, groups: large("0/decode/0", "0/decode/1"),
			candidates: []Candidate{
				east(almostFull),
				named("west", east(almostFull)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
				"west": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
			},
		},
		"SpreadPart": {
			reason: "A group of which no replica is required starts with one of them.",
			policy: v1alpha1.PlacementSpread, groups: large("0/decode/0", "0/decode/1"),
			candidates: []Candidate{
				east(almostFull),
			},
			want: map[string]outcome{"east": asked},
		},
		"UnreachableCopy": {
			reason: "Under Replicate nothing moves, however long a cluster is out of reach.",
			policy: v1alpha1.PlacementReplicate, groups: oneGroup,
			candidates: []Candidate{
				east(running, func(c *Candidate) { c.Unreachable = ago(time.Hour) }),
				named("west", east(running)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonUnreachable, Message: "out of reach since 2026-03-01T11:00:00Z", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": runsThere,
			},
		},
		"WeightIsZero": {
			reason: "A cluster of weight 0 is left.",
			policy: v1alpha1.PlacementSpread, groups: oneGroup,
			candidates: []Candidate{
				east(running, func(c *Candidate) { c.Weight = 0 }),
				named("west", east()),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonWeight, Message: "its weight is 0, and is left once it runs elsewhere", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": asked,
			},
		},
		"Deselected": {
			reason: "A cluster that is deselected is left, and so is one that no longer allows the namespace.",
			policy: v1alpha1.PlacementReplicate, groups: oneGroup,
			candidates: []Candidate{
				east(running, func(c *Candidate) { c.Deselected = true }),
				named("west", east(running, func(c *Candidate) { c.Deselected, c.NotAllowed = true, true })),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonDeselected, Message: "the placement no longer names or selects it, and is left once it runs elsewhere", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": {State: v1alpha1.StateLeaving, Reason: ReasonDeselected, Message: "the cluster no longer allows this namespace, and is left once it runs elsewhere", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
			},
		},
		"CannotLeave": {
			reason: "Requests that reach this cluster would not reach the other one.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained),
				named("west", east(running, unroutable)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonDraining, Message: "the cluster is drained, and cannot be left: west has no entrypoint to which requests can be sent", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": runsThere,
			},
		},
		"CannotLeaveYet": {
			reason: "It is not known that they would not, before the endpoint picker of the other one runs.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained),
				named("west", east(running, unroutable, func(c *Candidate) { c.RouterReady = false })),
			},
			want: map[string]outcome{
				"east": drains,
				"west": runsThere,
			},
		},
		"CannotLeaveItself": {
			reason: "The cluster that is left is not in its own way.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(running, drained, unroutable, func(c *Candidate) { c.MayReceiveTraffic = true }),
			},
			want: map[string]outcome{"east": drains},
		},
		"BothUnroutable": {
			reason: "If no requests can reach either, the other one takes over once its endpoint picker runs.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained, unroutable),
				named("west", east(running, unroutable)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonDraining, Message: "the cluster is drained"},
				"west": runsThere,
			},
		},
		"BothUnroutableSoon": {
			reason: "Before that it does not.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained, unroutable),
				named("west", east(running, unroutable, func(c *Candidate) { c.RouterReady = false })),
			},
			want: map[string]outcome{
				"east": drains,
				"west": runsThere,
			},
		},
		"RoutableSoon": {
			reason: "Nor does one that requests will reach, before they do.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained, unroutable),
				named("west", east(running, func(c *Candidate) { c.ReceivesTraffic = false })),
			},
			want: map[string]outcome{
				"east": drains,
				"west": runsThere,
			},
		},
		"StillRouted": {
			reason: "Requests may still reach a cluster of which no entrypoint is known any more.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained, unroutable, func(c *Candidate) { c.MayReceiveTraffic = true }),
				named("west", east(running, unroutable)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonDraining, Message: "the cluster is drained, and cannot be left: west has no entrypoint to which requests can be sent", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": runsThere,
			},
		},
		"Used": {
			reason: "What others use stays, although it runs elsewhere.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained, func(c *Candidate) { c.Used = true }),
				named("west", east(running)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonDraining, Message: "the cluster is drained, and is left once nothing there uses it", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": runsThere,
			},
		},
		"StaysBesideHold": {
			reason: "A service that runs says why a cluster takes nothing, but not what is free.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(running),
				named("west", east(onHold)),
				named("north", east(almostFull)),
			},
			want: map[string]outcome{
				"east":  runsThere,
				"north": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in east"},
				"west":  {State: v1alpha1.StateNotPlaced, Reason: ReasonOnHold, Message: "on hold"},
			},
		},
		"DrainedPart": {
			reason: "What is reserved in a cluster that is drained does not start there.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(half, reservedThere, drained),
			},
			want: map[string]outcome{"east": {State: v1alpha1.StateLeaving, Reason: ReasonDraining, Message: "the cluster is drained, and is left once it runs elsewhere", Run: []key.ReplicaID{"0/prefill/0"}}},
		},
		"RefusedAndPaused": {
			reason: "Nobody waits for the answer of a cluster that is paused.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(almostFull, func(c *Candidate) {
					c.Requested, c.Evaluated, c.PendingMessage = map[key.GroupID]bool{"0": true}, true, "8 short"
				}),
				named("west", east(func(c *Candidate) {
					c.Paused, c.NotSchedulable, c.Requested = true, "it is paused", map[key.GroupID]bool{"0": true}
				})),
				named("north", east(almostFull)),
			},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StatePending, Reason: ReasonNotReserved, Message: "8 short", Pending: 2},
				"north": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
				"west":  {State: v1alpha1.StatePending, Reason: ReasonPaused, Message: "it is paused", Pending: 2},
			},
		},
		"RestPending": {
			reason: "Replicas that are not required, and run nowhere, may be pending in the other copy.",
			policy: v1alpha1.PlacementFailover, groups: withRest, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained),
				named("west", east(running, func(c *Candidate) { c.Free = capacity.Free{} })),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonDraining, Message: "the cluster is drained"},
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonInsufficientCapacity, Message: "the cluster has no nodes, or they are not known yet", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}, Pending: 1},
			},
		},
		"RequiredNotReady": {
			reason: "The other copy cannot answer without its required replicas, although these do not run here.",
			policy: v1alpha1.PlacementFailover, groups: withRest, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(drained, func(c *Candidate) { c.Present = set("0/decode/1"); c.Ready = c.Present }),
				named("west", east(running, func(c *Candidate) {
					c.Ready = set("0/decode/1")
					c.Present = set("0/decode/1", "0/prefill/0", "0/decode/0")
				})),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonDraining, Message: "the cluster is drained, and is left once it runs elsewhere", Run: []key.ReplicaID{"0/decode/1"}},
				"west": {State: v1alpha1.StatePlaced, Run: []key.ReplicaID{"0/decode/0", "0/decode/1", "0/prefill/0"}},
			},
		},
		"RequiredMissesEverywhere": {
			reason: "A copy is left once another one answers with all that it has, although required replicas fit nowhere.",
			policy: v1alpha1.PlacementFailover, groups: threeRequired, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running),
				named("west", east(running, func(c *Candidate) { c.Free = capacity.Free{} })),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonInsufficientCapacity, Message: "the cluster has no nodes, or they are not known yet", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}, Pending: 1},
			},
		},
		"NotRequiredMissesEverywhere": {
			reason: "A copy is left once another one has all that it has and all that is required, although a role is missing in both.",
			policy: v1alpha1.PlacementFailover, groups: withSpot, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(drained, running),
				named("west", east(running, func(c *Candidate) { c.Free = capacity.Free{} })),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonDraining, Message: "the cluster is drained"},
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonInsufficientCapacity, Message: "the cluster has no nodes, or they are not known yet", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}, Pending: 1},
			},
		},
		"LostPart": {
			reason: "Without its record, a group stays where a part of it exists.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(),
				named("west", east(half)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Run: []key.ReplicaID{"0/prefill/0"}, Pending: 1},
			},
		},
		"LostUsable": {
			reason: "If it exists in several clusters, it stays in one that can be used.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(running, func(c *Candidate) { c.Unknown = "not read" }),
				named("west", east(half)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonUnknown, Message: "not read", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Run: []key.ReplicaID{"0/prefill/0"}, Pending: 1},
			},
		},
		"LostLeaving": {
			reason: "If none can be used, it stays in one that need not be left.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(running, drained),
				named("west", east(half, func(c *Candidate) { c.Unknown = "not read" })),
			},
			want: map[string]outcome{
				"east": drains,
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonUnknown, Message: "not read", Run: []key.ReplicaID{"0/prefill/0"}, Pending: 1},
			},
		},
		"LostNoRoom": {
			reason: "If the rest fits nowhere, and nothing is ready, it stays in the first of them.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{
				east(half, func(c *Candidate) { c.Free = capacity.Free{} }),
				named("west", east(half, func(c *Candidate) { c.Free = capacity.Free{} })),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonInsufficientCapacity, Message: "the cluster has no nodes, or they are not known yet", Run: []key.ReplicaID{"0/prefill/0"}, Pending: 1},
				"west": {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in east, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/prefill/0"}},
			},
		},
		"HomeUnroutable": {
			reason: "A home that requests cannot reach changes to another complete copy.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(running, unroutable),
				named("west", east(running)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}, NoTraffic: true},
				"west": runsThere,
			},
		},
		"HomeComplete": {
			reason: "A home that has all that exists stays, although the rest fits elsewhere.",
			policy: v1alpha1.PlacementFailover, groups: withRest, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(running, func(c *Candidate) { c.Free = capacity.Free{} }),
				named("west", east(running)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonInsufficientCapacity, Message: "the cluster has no nodes, or they are not known yet", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}, Pending: 1},
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in east"},
			},
		},
		"MayRunElsewhere": {
			reason: "Nothing is started anew while a cluster that cannot be read may have some of it.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(running, drained),
				named("west", east(half, func(c *Candidate) { c.Unknown = "not read" })),
				named("north", east(reservedThere)),
			},
			want: map[string]outcome{
				"east":  drains,
				"north": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west":  {State: v1alpha1.StatePlaced, Reason: ReasonUnknown, Message: "not read", Run: []key.ReplicaID{"0/prefill/0"}},
			},
		},
		"RefusedByGateways": {
			reason: "A group that the gateways refuse moves, if those of another cluster may accept it.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(lateStart, running, func(c *Candidate) { c.Refused = true }),
				named("west", east()),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": asked,
			},
		},
		"RefusedEverywhere": {
			reason: "If all refuse it, it stays.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(lateStart, running, func(c *Candidate) { c.Refused = true }),
				named("west", east(func(c *Candidate) { c.Refused = true })),
			},
			want: map[string]outcome{
				"east": runsThere,
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in east"},
			},
		},
		"NoPicker": {
			reason: "Without its endpoint picker, a group answers nothing although it is ready.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(lateStart, running, func(c *Candidate) { c.RouterReady = false }),
				named("west", east()),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": asked,
			},
		},
		"NeverReadyNext": {
			reason: "It tries the clusters in turn, so the next one comes before the first one.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(),
				named("west", east(lateStart)),
				named("north", east()),
			},
			want: map[string]outcome{
				"east":  {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west, and capacity is requested in north"},
				"north": asked,
				"west":  {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in north", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
			},
		},
		"SpreadFitsNowhere": {
			reason: "A group that fits nowhere asks one cluster first under Spread.",
			policy: v1alpha1.PlacementSpread, groups: oneGroup,
			candidates: []Candidate{
				east(almostFull),
				named("west", east(almostFull)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "capacity is requested in west"},
				"west": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
			},
		},
		"SpreadRefused": {
			reason: "Once that has refused, it asks all.",
			policy: v1alpha1.PlacementSpread, groups: oneGroup,
			candidates: []Candidate{
				east(almostFull, func(c *Candidate) { c.Requested, c.Evaluated = map[key.GroupID]bool{"0": true}, true }),
				named("west", east(almostFull)),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
				"west": {State: v1alpha1.StatePending, Reason: ReasonInsufficientCapacity, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Pending: 2},
			},
		},
		"SpreadNotRecorded": {
			reason: "Under Spread, too, nothing is removed before the record of its new home was read back.",
			policy: v1alpha1.PlacementSpread, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(running, drained),
				named("west", east(running)),
			},
			want: map[string]outcome{
				"east": drains,
				"west": runsThere,
			},
		},
		"MovesAgain": {
			reason: "What has moved, and now moves once more, is not removed before the record names the last home.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained),
				named("west", east(running, drained)),
				named("north", east(running)),
			},
			want: map[string]outcome{
				"east":  drains,
				"north": runsThere,
				"west":  drains,
			},
		},
		"AbandonedIsNoCopy": {
			reason: "A copy in an abandoned cluster counts for no other, because it will be forgotten.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("west", "0"),
			candidates: []Candidate{
				east(running, drained),
				named("west", east(running, func(c *Candidate) { c.StopPolicy = v1alpha1.StopAbandon })),
			},
			want: map[string]outcome{
				"east": drains,
				"west": {State: v1alpha1.StateLeaving, Reason: ReasonAbandoned, Message: "the cluster is abandoned, and is left once it runs elsewhere", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
			},
		},
		"ForgottenAlone": {
			reason: "A cluster that was forgotten has nothing, although there is no other.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(running, func(c *Candidate) { c.StopPolicy, c.Orphaned = v1alpha1.StopAbandon, true }),
			},
			want: map[string]outcome{"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonAbandoned, Message: "the cluster is abandoned"}},
		},
		"RefusedKeepsTraffic": {
			reason: "The other copy keeps its requests, because the gateways at its home refuse the service.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(running, func(c *Candidate) { c.Refused = true }),
				named("west", east(running)),
			},
			want: map[string]outcome{
				"east": runsThere,
				"west": {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in east, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
			},
		},
		"RefusedByLast": {
			reason: "It moves whichever of the clusters comes last.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{named("west", east()), east(lateStart, running, func(c *Candidate) { c.Refused = true })},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonStartTimedOut, Message: "it did not become ready in time, and capacity is requested in west", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}},
				"west": asked,
			},
		},
		"RefusedBesideDrained": {
			reason: "Nothing moves for a cluster that takes nothing new, although its gateways accept the service.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(lateStart, running, func(c *Candidate) { c.Refused = true }), named("west", east(drained))},
			want: map[string]outcome{
				"east": runsThere,
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonDraining, Message: "the cluster is drained"},
			},
		},
		"RecordedNothing": {
			reason: "A recorded home where nothing of it exists, and nothing is reserved, is none.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(), named("west", east(reservedThere))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": runsThere,
			},
		},
		"UnreachableNothing": {
			reason: "It does not wait for a cluster that is out of reach, and where no replica exists.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(reservedThere, func(c *Candidate) { c.Unreachable, c.Exists = ago(time.Minute), true }), named("west", east())},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonUnreachable, Message: "out of reach since 2026-03-01T11:59:00Z"},
				"west": asked,
			},
		},
		"LostBeside": {
			reason: "No record does not mean that the home is the cluster of the XR, which has no name.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{named("", east(half)), named("west", east(running))},
			want: map[string]outcome{
				"":     {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/prefill/0"}, NoTraffic: true},
				"west": runsThere,
			},
		},
		"HomeNoRoom": {
			reason: "A home without room for the rest changes to a cluster that has all that exists.",
			policy: v1alpha1.PlacementFailover, groups: withRest, homes: homeIn("east", "0"),
			candidates: []Candidate{east(half, func(c *Candidate) { c.Free = capacity.Free{} }), named("west", east(running))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateLeaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves this cluster once it is ready there", Run: []key.ReplicaID{"0/prefill/0"}, NoTraffic: true},
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}, Pending: 1},
			},
		},
		"DrainPartElsewhere": {
			reason: "What has to leave asks a cluster that can be used, and has a part of it.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup, homes: homeIn("east", "0"),
			candidates: []Candidate{east(running, drained), named("west", east(half))},
			want: map[string]outcome{
				"east": drains,
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Run: []key.ReplicaID{"0/prefill/0"}, Pending: 1},
			},
		},
		"MinimumReserved": {
			reason: "It starts where its required replicas are reserved.",
			policy: v1alpha1.PlacementFailover, groups: withRest,
			candidates: []Candidate{east(), named("west", east(reservedThere))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": {State: v1alpha1.StatePlaced, Reason: ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Run: []key.ReplicaID{"0/decode/0", "0/prefill/0"}, Pending: 1},
			},
		},
		"FormerMessage": {
			reason: "What the cluster said of replicas that are no longer pending is not said.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(running, func(c *Candidate) { c.PendingMessage = "8 short" })},
			want:       map[string]outcome{"east": runsThere},
		},
		"SpreadTakesRoom": {
			reason: "What is missing of a group takes room in its home, so the next one does not fit there.",
			policy: v1alpha1.PlacementSpread, groups: twoGroups, homes: homeIn("east", "0"),
			candidates: []Candidate{
				east(half, func(c *Candidate) { c.Weight, c.Free = 9, capacity.Free{Pools: []capacity.Pool{nodes("h100", 2, 8)}} }),
				named("west", east()),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePlaced, Reason: ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Run: []key.ReplicaID{"0/prefill/0"}, Pending: 1},
				"west": asked,
			},
		},
		"HomeUnread": {
			reason: "Two clusters have reserved it. An older call would choose another one than a call that reads both, so the choice is written first.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(requested, reservedThere), named("west", east(requested, reservedThere))},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePending, Reason: ReasonRequested, Message: "capacity is reserved, and is used once the choice of this cluster is recorded", Pending: 2},
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in east"},
			},
		},
		"HomeRead": {
			reason: "The choice was read back, so each call makes it.",
			policy: v1alpha1.PlacementFailover, groups: oneGroup,
			candidates: []Candidate{east(requested, reservedThere), named("west", east(requested, reservedThere))},
			homes:      homeIn("west", "0"),
			want: map[string]outcome{
				"east": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": runsThere,
			},
		},
		"AskedAlone": {
			reason: "Only one cluster was asked, so each call chooses it.",
			policy: v1alpha1.PlacementSpread, groups: oneGroup,
			candidates: []Candidate{east(requested, reservedThere), named("west", east())},
			want: map[string]outcome{
				"east": runsThere,
				"west": {State: v1alpha1.StateNotPlaced, Reason: ReasonNotNeeded, Message: "it runs in east"},
			},
		},
		"SpreadByWeight": {
			reason: "Groups are spread three to one, like the weights. A group is in one cluster.",
			policy: v1alpha1.PlacementSpread, groups: []reservation.ReplicaGroup{group("0", 1, 1), group("1", 1, 1), group("2", 1, 1), group("3", 1, 1)},
			candidates: []Candidate{
				east(func(c *Candidate) { c.Weight = 3; c.Free = capacity.Free{Pools: []capacity.Pool{nodes("h100", 8, 8)}} }),
				named("west", east(func(c *Candidate) { c.Free = capacity.Free{Pools: []capacity.Pool{nodes("h100", 8, 8)}} })),
			},
			want: map[string]outcome{
				"east": {State: v1alpha1.StatePending, Reason: ReasonRequested, Message: "capacity was requested, and the cluster has not answered yet", Pending: 6},
				"west": asked,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]outcome{}
			for _, d := range Assign(Problem{Policy: tc.policy, Groups: tc.groups, PodRequirements: requirements, Candidates: tc.candidates, FailoverAfter: 5 * time.Minute, StartTimeout: time.Hour, Now: now, Homes: tc.homes}).Decisions {
				got[d.Name] = outcome{State: d.State, Reason: d.Reason, Message: d.Message, Run: slices.Sorted(maps.Keys(d.Run)), Pending: len(d.Pending), NoTraffic: d.Reason == ReasonNotNeeded && len(d.Run) > 0 && !d.Serves, Due: d.Due}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestServesWhileLeaving proves that a drained cluster receives requests until all of its
// replicas are ready elsewhere. The service leaves it only after it receives no more requests.
func TestServesWhileLeaving(t *testing.T) {
	all := set("0/prefill/0", "0/decode/0", "1/prefill/0", "1/decode/0")
	half := set("0/prefill/0", "0/decode/0")
	cases := map[string]struct {
		reason     string
		east, west Candidate
		// serving and runs are the expected state of the drained cluster.
		serving, runs bool
	}{
		"NothingElsewhere": {
			reason: "The only copy serves.",
			east:   Candidate{Ready: all, MayReceiveTraffic: true}, west: Candidate{RouterReady: true},
			serving: true, runs: true,
		},
		"PartElsewhere": {
			reason: "A part of the service elsewhere is not enough.",
			east:   Candidate{Ready: all, MayReceiveTraffic: true}, west: Candidate{Present: all, Ready: half, RouterReady: true, ReceivesTraffic: true},
			serving: true, runs: true,
		},
		"NoPickerElsewhere": {
			reason: "Without its endpoint picker, the other copy answers no requests.",
			east:   Candidate{Ready: all, MayReceiveTraffic: true}, west: Candidate{Present: all, Ready: all},
			serving: true, runs: true,
		},
		"AllElsewhere": {
			reason: "Requests go to the other copy. This one stays until the gateway has accepted that.",
			east:   Candidate{Ready: all, MayReceiveTraffic: true}, west: Candidate{Present: all, Ready: all, RouterReady: true, ReceivesTraffic: true},
			serving: false, runs: true,
		},
		"NoMoreRequests": {
			reason: "The service leaves the cluster.",
			east:   Candidate{Ready: all}, west: Candidate{Present: all, Ready: all, RouterReady: true, ReceivesTraffic: true},
			serving: false, runs: false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.east.Name, tc.west.Name = "east", "west"
			tc.east.StopPolicy, tc.east.Present, tc.east.Reserved, tc.west.Reserved = v1alpha1.StopDrain, all, all, all
			got := Assign(Problem{Policy: v1alpha1.PlacementFailover, Groups: []reservation.ReplicaGroup{group("0", 1, 1), group("1", 1, 1)}, PodRequirements: requirements, Candidates: []Candidate{tc.east, tc.west}, Homes: homeIn("west", "0", "1")}).Decisions
			if d := got[0]; d.Serves != tc.serving || (len(d.Run) > 0) != tc.runs {
				t.Errorf("%s It serves: %t, want %t; it runs: %v, want some: %t", tc.reason, d.Serves, tc.serving, d.Run, tc.runs)
			}
		})
	}
}

// TestLeavesByGroup proves which groups leave a cluster that receives requests. It is drained, and the first group is ready in west.
func TestLeavesByGroup(t *testing.T) {
	all, half := set("0/prefill/0", "0/decode/0", "1/prefill/0", "1/decode/0"), set("0/prefill/0", "0/decode/0")
	cases := map[string]struct {
		reason string
		ready  map[key.ReplicaID]bool
		want   []key.ReplicaID
	}{
		"OtherServes":   {reason: "The second group serves here.", ready: all, want: []key.ReplicaID{"1/decode/0", "1/prefill/0"}},
		"OtherNotReady": {reason: "The first group is the last one that serves here.", ready: half, want: []key.ReplicaID{"0/decode/0", "0/prefill/0", "1/decode/0", "1/prefill/0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Assign(Problem{Policy: v1alpha1.PlacementSpread, Groups: []reservation.ReplicaGroup{group("0", 1, 1), group("1", 1, 1)}, PodRequirements: requirements, Candidates: []Candidate{
				{Weight: 1, StopPolicy: v1alpha1.StopDrain, Present: all, Reserved: all, Ready: tc.ready, MayReceiveTraffic: true},
				{Name: "west", Weight: 1, Present: half, Reserved: half, Ready: half, RouterReady: true, ReceivesTraffic: true},
			}, Homes: homeIn("west", "0")}).Decisions
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got[0].Run))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got[0].Serves != (name == "OtherServes") {
				t.Errorf("%s It serves: %t", tc.reason, got[0].Serves)
			}
		})
	}
}

// fitNowhere is a service of some replicas, of which only searches know that they fit into none of 20 clusters. kind returns what the
// pods of each are called.
func fitNowhere(replicas int, kind func(i int) string) Problem {
	p := Problem{Policy: v1alpha1.PlacementSpread, FailoverAfter: time.Minute, PodRequirements: map[string]capacity.PodRequirements{}}
	for i := range replicas {
		p.PodRequirements[kind(i)] = *capacitytest.Requirements(3, 1)
		r := reservation.ReplicaRequest{Name: key.ReplicaID("w/" + strconv.Itoa(i)), Pods: map[string]int64{kind(i): 9}}
		p.Groups = append(p.Groups, reservation.ReplicaGroup{Name: key.GroupID(r.Name), Replicas: []reservation.ReplicaRequest{r}})
	}
	for i := range 20 {
		// Each of four nodes has 8 GPUs, and takes two of nine pods with 3.
		p.Candidates = append(p.Candidates, Candidate{Name: "c" + strconv.Itoa(i), Weight: 1, ReceivesTraffic: true, RouterReady: true, Free: capacity.Free{Pools: []capacity.Pool{nodes("h100", 4, 8)}}})
	}
	return p
}

// TestAssignIsBounded proves that replicas of many kinds that fit nowhere cost a call no more than one budget.
func TestAssignIsBounded(t *testing.T) {
	p := fitNowhere(1500, strconv.Itoa)
	// A search may go over by the classes of one step.
	if steps, most := StepsOf(p); steps < most || steps > most+len(p.Candidates) {
		t.Errorf("the searches looked at %d node classes, want %d", steps, most)
	}
}

// TestEqualUnitsAreSearchedOnce proves that a candidate into which a replica does not fit is not searched for the next replica of its kind.
func TestEqualUnitsAreSearchedOnce(t *testing.T) {
	steps := func(replicas int) int {
		n, _ := StepsOf(fitNowhere(replicas, func(int) string { return "w" }))
		return n
	}
	if some, many := steps(100), steps(1500); some == 0 || many != some {
		t.Errorf("the searches for 1500 replicas looked at %d node classes, want the %d of 100 replicas", many, some)
	}
}

// BenchmarkAssign assigns one service among 1,000 to 20 clusters.
func BenchmarkAssign(b *testing.B) {
	p := Problem{Policy: v1alpha1.PlacementSpread, PodRequirements: requirements, FailoverAfter: time.Minute}
	for i := range 4 {
		p.Groups = append(p.Groups, group(strconv.Itoa(i), 2, 4))
	}
	for i := range 20 {
		c := Candidate{Name: fmt.Sprintf("c%02d", i), Weight: 1, ReceivesTraffic: true, RouterReady: true, Free: capacity.Free{Pools: []capacity.Pool{nodes("h100", 200, 8)}}}
		for range 50 {
			_, _ = c.Free.Allocate([]capacity.PodSet{{Requirements: &capacity.PodRequirements{Requests: capacity.Resources{capacitytest.GPU: 3000}}, Count: 5}})
		}
		p.Candidates = append(p.Candidates, c)
	}
	for b.Loop() {
		Assign(p)
	}
}

// BenchmarkAssignLeaves leaves a cluster, once all of 1,000 groups run elsewhere, while a gateway still sends requests there.
func BenchmarkAssignLeaves(b *testing.B) {
	all := map[key.ReplicaID]bool{}
	p := Problem{Policy: v1alpha1.PlacementSpread, PodRequirements: requirements, FailoverAfter: time.Minute, Homes: map[key.GroupID]reservation.Home{}}
	for i := range 1000 {
		r := reservation.ReplicaRequest{Name: key.ReplicaID("w/" + strconv.Itoa(i)), Pods: map[string]int64{"w": 1}}
		g := reservation.ReplicaGroup{Name: key.GroupID(r.Name), Replicas: []reservation.ReplicaRequest{r}}
		p.Groups, all[r.Name], p.Homes[g.Name] = append(p.Groups, g), true, reservation.Home{Cluster: "west", Epoch: 2, Started: true}
	}
	p.AnswerAlone = map[string]bool{"w": true}
	for _, name := range []string{"east", "west"} {
		p.Candidates = append(p.Candidates, Candidate{Name: name, Weight: 1, Exists: true, Present: all, Ready: all, Reserved: all, RouterReady: true, ReceivesTraffic: true, MayReceiveTraffic: true})
	}
	p.Candidates[0].StopPolicy = v1alpha1.StopDrain
	for b.Loop() {
		Assign(p)
	}
}

// BenchmarkAssignTogether brings the replicas of two clusters together, once a service has added 1,000 that fit into none of 1,000 clusters.
func BenchmarkAssignTogether(b *testing.B) {
	p := Problem{Policy: v1alpha1.PlacementFailover, PodRequirements: requirements, FailoverAfter: time.Minute, Homes: homeIn("c0", "w/0")}
	add := func(name string) {
		r := reservation.ReplicaRequest{Name: key.ReplicaID(name), Pods: map[string]int64{"w": 1}}
		p.Groups = append(p.Groups, reservation.ReplicaGroup{Name: key.GroupID(name), Replicas: []reservation.ReplicaRequest{r}})
	}
	for i := range 1000 {
		add("added/" + strconv.Itoa(i))
		p.Candidates = append(p.Candidates, Candidate{Name: "c" + strconv.Itoa(i), Weight: 1, RouterReady: true, ReceivesTraffic: true})
	}
	for i := range 2 {
		name := "w/" + strconv.Itoa(i)
		add(name)
		p.Candidates[i].Exists, p.Candidates[i].Present = true, map[key.ReplicaID]bool{key.ReplicaID(name): true}
	}
	for b.Loop() {
		Assign(p)
	}
}
