package fleet

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
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
	there := set("0/prefill/0", "0/decode/0")
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

// A sim is a fleet with its services, in which everybody acts on what they last saw.
type sim struct {
	t        *testing.T
	rand     *rand.Rand
	clusters []*simCluster
	services []*simService
}

type simCluster struct {
	name    string
	total   Room
	grants  []Grant
	booking Booking
	drain   bool
}

type simService struct {
	uid       string
	policy    Policy
	units     []Unit
	ask       Ask
	decisions []Decision
	present   map[string]map[string]bool
	// led are the clusters to which the route led after the last round.
	led map[string]bool
}

func newSim(t *testing.T, seed uint64) *sim {
	t.Helper()
	s := &sim{t: t, rand: rand.New(rand.NewPCG(seed, 1))}
	for i := range 1 + s.rand.IntN(5) {
		c := &simCluster{name: fmt.Sprintf("c%d", i), total: Room{Pools: []Pool{nodes("a", int64(s.rand.IntN(12)), 8)}}}
		if s.rand.IntN(3) == 0 {
			c.total.Pools = append(c.total.Pools, nodes("b", int64(s.rand.IntN(6)), 4))
		}
		c.book(nil)
		s.clusters = append(s.clusters, c)
	}
	for i := range 1 + s.rand.IntN(12) {
		v := &simService{uid: fmt.Sprintf("u%02d", i), policy: []Policy{Replicate, Spread, Failover}[s.rand.IntN(3)], present: map[string]map[string]bool{}, led: map[string]bool{}}
		for g := range 1 + s.rand.IntN(3) {
			name := strconv.Itoa(g)
			if v.policy == Spread && s.rand.IntN(2) == 0 {
				v.units = append(v.units, Unit{Name: name, Replicas: []Replica{{Name: name, Pods: map[string]int64{"small": 1 + s.rand.Int64N(4)}}}})
				continue
			}
			v.units = append(v.units, group(name, 1+s.rand.Int64N(2), 1+s.rand.Int64N(3)))
		}
		s.services = append(s.services, v)
	}
	return s
}

func (c *simCluster) book(asks []Ask) {
	closed := ""
	if c.drain {
		closed = "drained"
	}
	c.booking = Book(c.name, c.total, c.grants, asks, closed)
	c.grants = c.booking.Grants
}

// round lets everybody act once, in some order.
func (s *sim) round() {
	for _, i := range s.rand.Perm(len(s.services)) {
		s.services[i].act(s.clusters)
	}
	asks := make([]Ask, 0, len(s.services))
	for _, i := range s.rand.Perm(len(s.services)) {
		asks = append(asks, s.services[i].ask)
	}
	for _, i := range s.rand.Perm(len(s.clusters)) {
		s.clusters[i].book(asks)
	}
	s.check()
}

func (v *simService) act(clusters []*simCluster) {
	r := Request{Policy: v.policy, Units: v.units, Shapes: shapes, FailoverAfter: time.Minute}
	for _, c := range clusters {
		m := Candidate{Name: c.name, Weight: 1, Routed: true, Answers: true, Room: c.booking.Room, Granted: map[string]bool{}, Present: v.present[c.name], Ready: v.present[c.name], Asked: map[string]bool{}}
		if c.drain {
			why := "drained"
			m.Drain = &why
		}
		for _, g := range c.grants {
			if g.UID == v.uid {
				m.Granted = set(g.Replicas...)
			}
		}
		for _, u := range v.ask.Clusters[c.name].Units {
			m.Asked[u.Name] = true
		}
		r.Candidates = append(r.Candidates, m)
	}
	v.decisions = Place(r)
	v.ask = Ask{UID: v.uid, Since: v.uid, Shapes: shapes, Clusters: map[string]AskedCluster{}}
	for _, d := range v.decisions {
		v.present[d.Name] = d.Run
		v.led[d.Name] = d.Serving
		if len(d.Units) > 0 {
			v.ask.Clusters[d.Name] = AskedCluster{Units: d.Units, Together: d.Together, Held: slices.Sorted(maps.Keys(d.Run))}
		}
	}
}

// check makes sure that no node has more than it holds, and that no unit is in two
// clusters for good.
func (s *sim) check() {
	s.t.Helper()
	for _, c := range s.clusters {
		if c.booking.Overbooked {
			s.t.Fatalf("%s is booked twice: %+v", c.name, c.booking)
		}
		room := c.total.Clone()
		used := Resources{}
		for _, v := range s.services {
			for _, u := range v.units {
				for _, r := range u.Replicas {
					if v.present[c.name][r.Name] {
						a := Ask{Shapes: shapes}
						total, _ := a.sum([]Replica{r})
						used.add(total, 1)
					}
				}
			}
		}
		for i := range room.Pools {
			used[gpu] -= room.Pools[i].Total[gpu]
		}
		if used[gpu] > 0 {
			s.t.Fatalf("%s runs %d more than it has", c.name, used[gpu])
		}
		for i := range c.booking.Room.Pools {
			for _, n := range c.booking.Room.Pools[i].Left {
				for name, left := range n.Left {
					if left < 0 || n.Count < 0 {
						s.t.Fatalf("%s: %d nodes with %d %s left", c.name, n.Count, left, name)
					}
				}
			}
		}
	}
}

// where a service runs.
func (v *simService) where() map[string][]string {
	w := map[string][]string{}
	for c, run := range v.present {
		if len(run) > 0 {
			w[c] = slices.Sorted(maps.Keys(run))
		}
	}
	return w
}

// fleets is the number of fleets of TestFleets, each of which is planned some hundred times, and the hundredth of
// the steps of TestBookKeepsItsPromises.
var fleets = flag.Int("fleets", 300, "how many random fleets to run")

// TestFleets runs many small fleets: nothing is booked twice, no unit straddles
// clusters, everything comes to rest, and a cluster that is added moves nobody.
func TestFleets(t *testing.T) {
	for seed := range *fleets {
		s := newSim(t, uint64(seed))
		for range 6 {
			s.round()
		}
		rest := make([]map[string][]string, len(s.services))
		for i, v := range s.services {
			rest[i] = v.where()
			s.straddles(seed, v)
		}
		more := &simCluster{name: "new", total: Room{Pools: []Pool{nodes("a", 4, 8)}}}
		more.book(nil)
		s.clusters = append(s.clusters, more)
		for range 4 {
			s.round()
		}
		for i, v := range s.services {
			for c, names := range rest[i] {
				for _, n := range names {
					if !v.present[c][n] {
						t.Fatalf("fleet %d: %s of %s (%s) left %s, because another cluster came", seed, n, v.uid, v.policy, c)
					}
				}
			}
		}
		drained := s.clusters[s.rand.IntN(len(s.clusters))]
		before := map[string]int{}
		for _, v := range s.services {
			before[v.uid] = running(v)
		}
		drained.drain = true
		for range 8 {
			s.round()
			for _, v := range s.services {
				if n := running(v); n < before[v.uid] && v.policy != Replicate {
					t.Fatalf("fleet %d: %s (%s) runs %d replicas while %s is drained, and had %d", seed, v.uid, v.policy, n, drained.name, before[v.uid])
				}
			}
		}
	}
}

// running counts the replicas that run somewhere.
func running(v *simService) int {
	names := map[string]bool{}
	for _, run := range v.present {
		maps.Copy(names, run)
	}
	return len(names)
}

func (s *sim) straddles(seed int, v *simService) {
	s.t.Helper()
	if v.policy == Replicate {
		return
	}
	for _, u := range v.units {
		in := map[string]bool{}
		for c, run := range v.present {
			for _, r := range u.Replicas {
				if run[r.Name] {
					in[c] = true
				}
			}
		}
		if len(in) > 1 {
			s.t.Fatalf("fleet %d: unit %s of %s (%s) is in %v", seed, u.Name, v.uid, v.policy, in)
		}
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
