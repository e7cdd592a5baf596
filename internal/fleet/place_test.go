package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// nodes is a pool of nodes with some GPUs each.
func nodes(name string, n, gpus int64) Pool {
	return Pool{Name: name, Nodes: n, Total: Resources{gpu: n * gpus * 1000}, Left: []Nodes{{Count: n, Left: Resources{gpu: gpus * 1000}}}}
}

// group is a unit of a prefill and a decode replica, each with pods of 8 GPUs.
func group(name string, prefill, decode int64) Unit {
	return Unit{Name: name, Replicas: []Replica{
		{Name: name + "/prefill/0", Pods: map[string]int64{"large": prefill}, Required: true},
		{Name: name + "/decode/0", Pods: map[string]int64{"large": decode}, Required: true},
	}}
}

var shapes = map[string]Shape{"large": {Requests: Resources{gpu: 8000}}, "small": {Requests: Resources{gpu: 2000}}}

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

func TestPlace(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	text := func(s string) *string { return &s }
	one := []Unit{group("0", 1, 1)}
	two := []Unit{group("0", 1, 1), group("1", 1, 1)}
	more := []Unit{two[0], {Name: "1", Replicas: append(slices.Clone(two[1].Replicas), Replica{Name: "1/decode/1", Pods: map[string]int64{"large": 1}})}}
	there := set("0/prefill/0", "0/decode/0")
	both := set("0/prefill/0", "0/decode/0", "1/prefill/0", "1/decode/0")
	east := func(change ...func(*Candidate)) Candidate {
		c := Candidate{Name: "east", Weight: 1, Routed: true, Answers: true, Room: Room{Pools: []Pool{nodes("h100", 4, 8)}}}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	named := func(name string, c Candidate) Candidate { c.Name = name; return c }
	full := func(c *Candidate) { c.Room = Room{Pools: []Pool{nodes("h100", 1, 8)}} }
	runs := func(c *Candidate) { c.Present, c.Ready, c.Granted = there, there, there }

	type told struct {
		State   State
		Reason  string
		Message string
		Run     []string
		Wait    int
		// Turned tells that requests go elsewhere.
		Turned bool
	}
	cases := map[string]struct {
		reason     string
		policy     Policy
		units      []Unit
		candidates []Candidate
		want       map[string]told
	}{
		"Asked": {
			reason: "The first cluster with room is asked, and nothing runs before it has granted it.",
			policy: Failover, units: one,
			candidates: []Candidate{east(full), named("west", east())},
			want: map[string]told{
				"east": {State: NotPlaced, Reason: ReasonNoRoom, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short"},
				"west": {State: Waiting, Reason: ReasonAsked, Message: "asked, and not answered yet", Wait: 2},
			},
		},
		"NowhereRoom": {
			reason: "Where there is no room at all, every cluster is asked, so that the service is served in turn.",
			policy: Failover, units: one,
			candidates: []Candidate{east(full), named("west", east(full, func(c *Candidate) { c.Waiting = "8 short" }))},
			want: map[string]told{
				"east": {State: Waiting, Reason: ReasonNoRoom, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short", Wait: 2},
				"west": {State: Waiting, Reason: ReasonNotGranted, Message: "8 short", Wait: 2},
			},
		},
		"FirstGrantWins": {
			reason: "The first cluster that grants all of it is the one.",
			policy: Failover, units: one,
			candidates: []Candidate{east(full), named("west", east(full, func(c *Candidate) { c.Granted = there }))},
			want: map[string]told{
				"east": {State: NotPlaced, Reason: ReasonNoRoom, Message: "8 of 8 nvidia.com/gpu free in pool h100, 8 short"},
				"west": {State: Placed, Run: []string{"0/decode/0", "0/prefill/0"}},
			},
		},
		"Sticky": {
			reason: "What runs stays, though a better cluster has room again.",
			policy: Failover, units: one,
			candidates: []Candidate{east(), named("west", east(full, runs))},
			want: map[string]told{
				"east": {State: NotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": {State: Placed, Run: []string{"0/decode/0", "0/prefill/0"}},
			},
		},
		"Unreachable": {
			reason: "A cluster that has been out of reach for a short time keeps what it has, and nothing is started elsewhere.",
			policy: Failover, units: one,
			candidates: []Candidate{east(runs, func(c *Candidate) { c.Unreachable = ago(time.Minute) }), named("west", east())},
			want: map[string]told{
				"east": {State: Placed, Reason: ReasonUnreachable, Message: "out of reach since 2026-03-01T11:59:00Z", Run: []string{"0/decode/0", "0/prefill/0"}},
				"west": {State: NotPlaced, Reason: ReasonNotNeeded, Message: "it runs in east"},
			},
		},
		"Failover": {
			reason: "After a longer time it is started elsewhere, and leaves only once it is ready there.",
			policy: Failover, units: one,
			candidates: []Candidate{east(runs, func(c *Candidate) { c.Unreachable = ago(time.Hour) }), named("west", east())},
			want: map[string]told{
				"east": {State: Leaving, Reason: ReasonUnreachable, Message: "out of reach since 2026-03-01T11:00:00Z, longer than 5m0s, and is left once it runs elsewhere", Run: []string{"0/decode/0", "0/prefill/0"}},
				"west": {State: Waiting, Reason: ReasonAsked, Message: "asked, and not answered yet", Wait: 2},
			},
		},
		"Drain": {
			reason: "Make before break: while the new copy is ready and not routed, the old one stays.",
			policy: Failover, units: one,
			candidates: []Candidate{east(runs, func(c *Candidate) { c.Drain = text("maintenance") }), named("west", east(runs, func(c *Candidate) { c.Routed = false }))},
			want: map[string]told{
				"east": {State: Leaving, Reason: ReasonDrained, Message: "the cluster is drained: maintenance, and is left once it runs elsewhere", Run: []string{"0/decode/0", "0/prefill/0"}},
				"west": {State: Placed, Run: []string{"0/decode/0", "0/prefill/0"}},
			},
		},
		"Drained": {
			reason: "Once the new copy is ready and routed, the old one goes.",
			policy: Failover, units: one,
			candidates: []Candidate{east(runs, func(c *Candidate) { c.Drain = text("") }), named("west", east(runs))},
			want: map[string]told{
				"east": {State: NotPlaced, Reason: ReasonDrained, Message: "the cluster is drained"},
				"west": {State: Placed, Run: []string{"0/decode/0", "0/prefill/0"}},
			},
		},
		"Dead": {
			reason: "What is in a dead cluster stays until it can be forgotten without being deleted.",
			policy: Replicate, units: one,
			candidates: []Candidate{east(runs, func(c *Candidate) { c.Dead = text("") })},
			want:       map[string]told{"east": {State: Leaving, Reason: ReasonDead, Message: "the cluster is declared dead, and is left once it runs elsewhere", Run: []string{"0/decode/0", "0/prefill/0"}}},
		},
		"Forgotten": {
			reason: "Then it is forgotten at once, whether it runs elsewhere or not.",
			policy: Replicate, units: one,
			candidates: []Candidate{east(runs, func(c *Candidate) { c.Dead, c.Orphaned = text(""), true })},
			want:       map[string]told{"east": {State: NotPlaced, Reason: ReasonDead, Message: "the cluster is declared dead"}},
		},
		"NothingKnown": {
			reason: "While the fleet cannot be read, nothing moves and nothing new is started.",
			policy: Spread, units: one,
			candidates: []Candidate{east(runs, func(c *Candidate) { c.Unknown = "not read" }), named("west", east(func(c *Candidate) { c.Unknown = "not read" }))},
			want: map[string]told{
				"east": {State: Placed, Reason: ReasonUnknown, Message: "not read", Run: []string{"0/decode/0", "0/prefill/0"}},
				"west": {State: NotPlaced, Reason: ReasonUnknown, Message: "not read"},
			},
		},
		"OnlyCopy": {
			reason: "The only copy stays in a drained cluster as long as there is no other.",
			policy: Replicate, units: one,
			candidates: []Candidate{east(runs, func(c *Candidate) { c.Drain = text("") })},
			want:       map[string]told{"east": {State: Leaving, Reason: ReasonDrained, Message: "the cluster is drained, and is left once it runs elsewhere", Run: []string{"0/decode/0", "0/prefill/0"}}},
		},
		"TurnedAway": {
			reason: "A copy that is not needed gets no requests any more once the other answers, and then it goes.",
			policy: Failover, units: one,
			candidates: []Candidate{east(runs, func(c *Candidate) { c.Answers, c.Led = true, true }), named("west", east(runs, func(c *Candidate) { c.Answers, c.Led = true, true }))},
			want: map[string]told{
				"east": {State: Placed, Run: []string{"0/decode/0", "0/prefill/0"}},
				"west": {State: Leaving, Reason: ReasonNotNeeded, Message: "it runs in east, and leaves here once that is ready", Run: []string{"0/decode/0", "0/prefill/0"}, Turned: true},
			},
		},
		"NothingTwice": {
			reason: "Of two copies, the one stays where nothing has to be started that is in the other, though more is ready there. That one serves meanwhile.",
			policy: Failover, units: two,
			candidates: []Candidate{
				east(func(c *Candidate) { c.Present, c.Ready, c.Granted = there, there, there }),
				named("west", east(func(c *Candidate) { c.Present, c.Granted = both, both })),
			},
			want: map[string]told{
				"east": {State: Leaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves here once that is ready", Run: []string{"0/decode/0", "0/prefill/0"}},
				"west": {State: Placed, Run: []string{"0/decode/0", "0/prefill/0", "1/decode/0", "1/prefill/0"}},
			},
		},
		"MoreReady": {
			reason: "Of two whole copies, the one stays of which more is ready, though the other comes first.",
			policy: Failover, units: two,
			candidates: []Candidate{
				east(func(c *Candidate) { c.Present, c.Ready, c.Granted = both, there, both }),
				named("west", east(func(c *Candidate) { c.Present, c.Ready, c.Granted = both, both, both })),
			},
			want: map[string]told{
				"east": {State: NotPlaced, Reason: ReasonNotNeeded, Message: "it runs in west"},
				"west": {State: Placed, Run: []string{"0/decode/0", "0/prefill/0", "1/decode/0", "1/prefill/0"}},
			},
		},
		"NothingGivenUp": {
			reason: "A second copy stays for the sake of a replica for which there is no room beside the first.",
			policy: Failover, units: more,
			candidates: []Candidate{
				east(func(c *Candidate) {
					c.Present = set("1/prefill/0", "1/decode/0", "1/decode/1")
					c.Ready, c.Granted = c.Present, c.Present
					c.Room = Room{Pools: []Pool{nodes("h100", 0, 8)}}
				}),
				named("west", east(func(c *Candidate) {
					c.Present, c.Ready, c.Granted = both, both, both
					c.Room = Room{Pools: []Pool{nodes("h100", 0, 8)}}
				})),
			},
			want: map[string]told{
				"east": {State: Leaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves here once that is ready", Run: []string{"1/decode/0", "1/decode/1", "1/prefill/0"}},
				"west": {State: Placed, Reason: ReasonNoRoom, Message: "0 of 0 nvidia.com/gpu free in pool h100, 8 short", Run: []string{"0/decode/0", "0/prefill/0", "1/decode/0", "1/prefill/0"}, Wait: 1},
			},
		},
		"HomeWithRoom": {
			reason: "Of two halves, the one stays where there is room for the other.",
			policy: Failover, units: two,
			candidates: []Candidate{
				east(full, func(c *Candidate) { c.Present, c.Ready, c.Granted = there, there, there }),
				named("west", east(func(c *Candidate) {
					c.Present = set("1/prefill/0", "1/decode/0")
					c.Ready, c.Granted = c.Present, c.Present
				})),
			},
			want: map[string]told{
				"east": {State: Leaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves here once that is ready", Run: []string{"0/decode/0", "0/prefill/0"}},
				"west": {State: Placed, Reason: ReasonAsked, Message: "asked, and not answered yet", Run: []string{"1/decode/0", "1/prefill/0"}, Wait: 2},
			},
		},
		"Entrance": {
			reason: "A cluster to which no requests can be led is not chosen while there is another.",
			policy: Failover, units: one,
			candidates: []Candidate{
				east(runs, func(c *Candidate) { c.Drain = text(""); c.Led = true }),
				named("west", east(func(c *Candidate) { c.NoEntrance, c.Granted, c.Routed = true, there, false })),
				named("north", east(func(c *Candidate) { c.Routed = false })),
			},
			want: map[string]told{
				"east":  {State: Leaving, Reason: ReasonDrained, Message: "the cluster is drained, and is left once it runs elsewhere", Run: []string{"0/decode/0", "0/prefill/0"}},
				"west":  {State: NotPlaced, Reason: ReasonNotNeeded, Message: "it is asked for in north"},
				"north": {State: Waiting, Reason: ReasonAsked, Message: "asked, and not answered yet", Wait: 2},
			},
		},
		"BothServe": {
			reason: "Two copies of a unit that are both on their way out serve: neither counts on the other.",
			policy: Failover, units: two,
			candidates: []Candidate{
				east(full, func(c *Candidate) { c.Present, c.Ready, c.Granted, c.Led = there, there, there, true }),
				named("west", east(full, func(c *Candidate) { c.Present, c.Ready, c.Granted, c.Led = there, there, there, true })),
				named("north", east(func(c *Candidate) {
					c.Present = set("1/prefill/0", "1/decode/0")
					c.Ready, c.Granted, c.Led = c.Present, c.Present, true
				})),
			},
			want: map[string]told{
				"east":  {State: Leaving, Reason: ReasonNotNeeded, Message: "it runs in west, north, and leaves here once that is ready", Run: []string{"0/decode/0", "0/prefill/0"}},
				"west":  {State: Leaving, Reason: ReasonNotNeeded, Message: "it runs in east, north, and leaves here once that is ready", Run: []string{"0/decode/0", "0/prefill/0"}},
				"north": {State: Placed, Reason: ReasonAsked, Message: "asked, and not answered yet", Run: []string{"1/decode/0", "1/prefill/0"}, Wait: 2},
			},
		},
		"SpreadFuller": {
			reason: "A unit that is in two clusters in part stays where nothing of it has to be started twice.",
			policy: Spread, units: more[1:],
			candidates: []Candidate{
				east(func(c *Candidate) {
					c.Present = set("1/prefill/0", "1/decode/0")
					c.Ready, c.Granted = c.Present, c.Present
				}),
				named("west", east(full, func(c *Candidate) {
					c.Present = set("1/prefill/0", "1/decode/0", "1/decode/1")
					c.Ready, c.Granted = set("1/decode/1"), c.Present
				})),
			},
			want: map[string]told{
				"east": {State: Leaving, Reason: ReasonNotNeeded, Message: "it runs in west, and leaves here once that is ready", Run: []string{"1/decode/0", "1/prefill/0"}},
				"west": {State: Placed, Run: []string{"1/decode/0", "1/decode/1", "1/prefill/0"}},
			},
		},
		"SpreadEntrance": {
			reason: "The same where units are spread.",
			policy: Spread, units: one,
			candidates: []Candidate{named("west", east(func(c *Candidate) { c.NoEntrance = true })), named("north", east())},
			want: map[string]told{
				"west":  {State: NotPlaced, Reason: ReasonNotNeeded, Message: "it is asked for in north"},
				"north": {State: Waiting, Reason: ReasonAsked, Message: "asked, and not answered yet", Wait: 2},
			},
		},
		"Closed": {
			reason: "A cluster that grants nothing new is not asked, whatever room it has.",
			policy: Failover, units: one,
			candidates: []Candidate{east(func(c *Candidate) { c.Closed = "its ledger is full" }), named("west", east())},
			want: map[string]told{
				"east": {State: NotPlaced, Reason: ReasonNoRoom, Message: "its ledger is full"},
				"west": {State: Waiting, Reason: ReasonAsked, Message: "asked, and not answered yet", Wait: 2},
			},
		},
		"AllBeforeSome": {
			reason: "A cluster with room for all comes before one with room for what has to start.",
			policy: Failover, units: []Unit{{Name: "0", Replicas: []Replica{
				{Name: "a", Pods: map[string]int64{"large": 1}, Required: true}, {Name: "b", Pods: map[string]int64{"large": 1}},
			}}},
			candidates: []Candidate{east(full), named("west", east())},
			want: map[string]told{
				"east": {State: NotPlaced, Reason: ReasonNotNeeded, Message: "it is asked for in west"},
				"west": {State: Waiting, Reason: ReasonAsked, Message: "asked, and not answered yet", Wait: 2},
			},
		},
		"SpreadByWeight": {
			reason: "Three to one, as the weights are; a group is in one cluster.",
			policy: Spread, units: []Unit{group("0", 1, 1), group("1", 1, 1), group("2", 1, 1), group("3", 1, 1)},
			candidates: []Candidate{
				east(func(c *Candidate) { c.Weight = 3; c.Room = Room{Pools: []Pool{nodes("h100", 8, 8)}} }),
				named("west", east(func(c *Candidate) { c.Room = Room{Pools: []Pool{nodes("h100", 8, 8)}} })),
			},
			want: map[string]told{
				"east": {State: Waiting, Reason: ReasonAsked, Message: "asked, and not answered yet", Wait: 6},
				"west": {State: Waiting, Reason: ReasonAsked, Message: "asked, and not answered yet", Wait: 2},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]told{}
			for _, d := range Place(Request{Policy: tc.policy, Units: tc.units, Shapes: shapes, Candidates: tc.candidates, FailoverAfter: 5 * time.Minute, Now: now}) {
				got[d.Name] = told{State: d.State, Reason: d.Reason, Message: d.Message, Run: slices.Sorted(maps.Keys(d.Run)), Wait: len(d.Wait), Turned: d.Reason == ReasonNotNeeded && len(d.Run) > 0 && !d.Serving}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestServing proves of a cluster that is drained that requests go there until all of it is
// answered elsewhere, and that it is left only after none go there any more.
func TestServing(t *testing.T) {
	drained := "a test"
	all := set("0/prefill/0", "0/decode/0", "1/prefill/0", "1/decode/0")
	half := set("0/prefill/0", "0/decode/0")
	cases := map[string]struct {
		reason     string
		east, west Candidate
		// serving and runs are of the cluster that is drained.
		serving, runs bool
	}{
		"NothingElsewhere": {
			reason: "Its only copy serves.",
			east:   Candidate{Ready: all, Led: true}, west: Candidate{Answers: true},
			serving: true, runs: true,
		},
		"PartElsewhere": {
			reason: "A part of it would be too little.",
			east:   Candidate{Ready: all, Led: true}, west: Candidate{Present: all, Ready: half, Answers: true, Routed: true},
			serving: true, runs: true,
		},
		"NoPickerElsewhere": {
			reason: "What is ready elsewhere answers nothing without its endpoint picker.",
			east:   Candidate{Ready: all, Led: true}, west: Candidate{Present: all, Ready: all},
			serving: true, runs: true,
		},
		"AllElsewhere": {
			reason: "Requests turn to the other, and it is left once the gateway has taken that up.",
			east:   Candidate{Ready: all, Led: true}, west: Candidate{Present: all, Ready: all, Answers: true, Routed: true},
			serving: false, runs: true,
		},
		"NoneComeHere": {
			reason: "It is left.",
			east:   Candidate{Ready: all}, west: Candidate{Present: all, Ready: all, Answers: true, Routed: true},
			serving: false, runs: false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.east.Drain, tc.east.Present, tc.east.Granted, tc.west.Granted = &drained, all, all, all
			got := Place(Request{Policy: Failover, Units: []Unit{group("0", 1, 1), group("1", 1, 1)}, Shapes: shapes, Candidates: []Candidate{tc.east, tc.west}})
			if d := got[0]; d.Serving != tc.serving || (len(d.Run) > 0) != tc.runs {
				t.Errorf("%s It serves: %t, want %t; it runs: %v, want some: %t", tc.reason, d.Serving, tc.serving, d.Run, tc.runs)
			}
		})
	}
}

// TestLeavesPartly proves that a unit leaves a cluster that requests go to while another unit
// answers them there.
func TestLeavesPartly(t *testing.T) {
	drained := "a test"
	all, half := set("0/prefill/0", "0/decode/0", "1/prefill/0", "1/decode/0"), set("0/prefill/0", "0/decode/0")
	got := Place(Request{Policy: Spread, Units: []Unit{group("0", 1, 1), group("1", 1, 1)}, Shapes: shapes, Candidates: []Candidate{
		{Weight: 1, Drain: &drained, Present: all, Granted: all, Ready: all, Led: true},
		{Weight: 1, Present: half, Granted: half, Ready: half, Answers: true, Routed: true},
	}})
	want := []string{"1/decode/0", "1/prefill/0"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got[0].Run))); diff != "" || !got[0].Serving {
		t.Errorf("it serves: %t, want true; it runs: -want, +got:\n%s", got[0].Serving, diff)
	}
}

// BenchmarkPlace plans one service among 1,000 on 20 clusters.
func BenchmarkPlace(b *testing.B) {
	r := Request{Policy: Spread, Shapes: shapes, FailoverAfter: time.Minute}
	for i := range 4 {
		r.Units = append(r.Units, group(strconv.Itoa(i), 2, 4))
	}
	for i := range 20 {
		c := Candidate{Name: fmt.Sprintf("c%02d", i), Weight: 1, Routed: true, Answers: true, Room: Room{Pools: []Pool{nodes("h100", 200, 8)}}}
		for range 50 {
			_, _ = c.Room.Take([]Need{{Shape: &Shape{Requests: Resources{gpu: 3000}}, Pods: 5}})
		}
		r.Candidates = append(r.Candidates, c)
	}
	for b.Loop() {
		Place(r)
	}
}
