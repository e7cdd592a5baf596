package fleet

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const here = "us-east"

// an ask of one unit for each number of replicas, with one pod each.
func ask(uid string, gpus int64, units ...int) Ask {
	a := Ask{UID: uid, Namespace: "team", Name: "s-" + uid, Since: "2026-03-01T10:00:00Z", Shapes: map[string]Shape{"w": *shape(gpus, 1)}}
	at := AskedCluster{Namespace: "team"}
	for i, n := range units {
		u := Unit{Name: strconv.Itoa(i)}
		for j := range n {
			u.Replicas = append(u.Replicas, Replica{Name: fmt.Sprintf("%d/%d", i, j), Pods: map[string]int64{"w": 1}})
		}
		at.Units = append(at.Units, u)
	}
	a.Clusters = map[string]AskedCluster{here: at}
	return a
}

func since(a Ask, s string) Ask {
	a.Since = s
	return a
}

// inOne asks for all units in one cluster.
func inOne(a Ask) Ask {
	at := a.Clusters[here]
	at.Together = true
	a.Clusters[here] = at
	return a
}

// required marks the first replicas of each unit.
func required(a Ask, n int) Ask {
	for _, u := range a.Clusters[here].Units {
		for i := range u.Replicas[:n] {
			u.Replicas[i].Required = true
		}
	}
	return a
}

func held(a Ask, names ...string) Ask {
	at := a.Clusters[here]
	at.Held = names
	a.Clusters[here] = at
	return a
}

func barred(a Ask) Ask {
	a.Barred = "not allowed"
	return a
}

func in(a Ask, namespace string) Ask {
	a.Namespace = namespace
	return a
}

// asked gives the replicas of the first unit their serials.
func asked(a Ask, serials ...int64) Ask {
	for i, s := range serials {
		a.Clusters[here].Units[0].Replicas[i].Serial = s
	}
	return a
}

func serial(g Grant, s int64) Grant {
	g.Serial = s
	return g
}

func grant(uid string, replicas ...string) Grant {
	return Grant{UID: uid, Namespace: "team", Name: "s-" + uid, Replicas: replicas}
}

// sized is a grant of pods with so many GPUs.
func sized(g Grant, gpus int64) Grant {
	g.Shapes = map[string]Shape{"w": *shape(gpus, 1)}
	return g
}

func TestBook(t *testing.T) {
	type want struct {
		grants     []Grant
		waiting    map[string]string
		overbooked bool
		unfit      []string
	}
	cases := map[string]struct {
		reason string
		nodes  []Nodes
		grants []Grant
		asks   []Ask
		closed string
		want   want
	}{
		"Whole": {
			reason: "A unit that fits is granted whole.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{ask("a", 2, 3)},
			want:   want{grants: []Grant{grant("a", "0/0", "0/1", "0/2")}},
		},
		"AllOrNothing": {
			reason: "A unit that has to start whole gets all or nothing.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{required(ask("a", 4, 3), 3)},
			want:   want{waiting: map[string]string{"a": "8 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"Together": {
			reason: "A service that goes to one cluster as a whole gets all or nothing, although its replicas need not start together.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{inOne(ask("a", 4, 1, 1, 1))},
			want:   want{waiting: map[string]string{"a": "8 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"NoMinimum": {
			reason: "What need not start together gets what fits.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{ask("a", 4, 3)},
			want:   want{grants: []Grant{grant("a", "0/0", "0/1")}, waiting: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"Minimum": {
			reason: "What a unit needs to start comes first, the rest replica by replica.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{required(ask("a", 3, 3), 1)},
			want:   want{grants: []Grant{grant("a", "0/0", "0/1")}, waiting: map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"MinimumDoesNotFit": {
			reason: "A unit that cannot start gets nothing.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{required(ask("a", 3, 4), 3)},
			want:   want{waiting: map[string]string{"a": "8 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"Grows": {
			reason: "A unit that has started gets more as there is room.",
			nodes:  []Nodes{of(1, 8, 64)},
			grants: []Grant{grant("a", "0/1")},
			asks:   []Ask{ask("a", 3, 3)},
			want:   want{grants: []Grant{grant("a", "0/1", "0/0")}, waiting: map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"OldestFirst": {
			reason: "The oldest service is served first, whatever its name.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{since(ask("a", 8, 1), "2026-03-01T11:00:00Z"), since(ask("b", 8, 1), "2026-03-01T09:00:00Z")},
			want:   want{grants: []Grant{grant("b", "0/0")}, waiting: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"SmallOnesPass": {
			reason: "What does not fit does not hold up what does.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{since(ask("a", 9, 1), "2026-03-01T09:00:00Z"), ask("b", 8, 1)},
			want:   want{grants: []Grant{grant("b", "0/0")}, waiting: map[string]string{"a": "8 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"Released": {
			reason: "What is not asked for any more is given to the next.",
			nodes:  []Nodes{of(1, 8, 64)},
			grants: []Grant{grant("gone", "0/0"), grant("a", "0/0", "0/1")},
			asks:   []Ask{ask("a", 4, 1), ask("b", 4, 1)},
			want:   want{grants: []Grant{grant("a", "0/0"), grant("b", "0/0")}},
		},
		"Held": {
			reason: "What is there counts, although nobody granted it.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{ask("a", 8, 1), held(since(ask("b", 8, 1), "2026-03-01T11:00:00Z"), "0/0")},
			want:   want{grants: []Grant{grant("b", "0/0")}, waiting: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"HeldWithoutRoom": {
			reason: "What is there by its own word, and was never granted, gets no room that there is not, and keeps nobody else from it.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{held(since(ask("a", 4, 3), "0"), "0/0", "0/1", "0/2"), held(since(ask("m", 800, 1), "0"), "0/0"), ask("b", 8, 1)},
			want: want{
				grants: []Grant{grant("a", "0/0", "0/1")},
				waiting: map[string]string{
					"a": "1 replicas are there that were not granted: 0 of 8 nvidia.com/gpu free in pool p, 4 short",
					"m": "1 replicas are there that were not granted: 0 of 8 nvidia.com/gpu free in pool p, 800 short",
					"b": "0 of 8 nvidia.com/gpu free in pool p, 8 short",
				},
			},
		},
		"HeldWhileClosed": {
			reason: "A closed cluster counts what is there: it is not new.",
			nodes:  []Nodes{of(1, 8, 64)},
			asks:   []Ask{held(ask("a", 1, 2), "0/0")},
			closed: "the cluster is drained",
			want:   want{grants: []Grant{grant("a", "0/0")}, waiting: map[string]string{"a": "the cluster is drained"}},
		},
		"Barred": {
			reason: "A service that is barred keeps what it has, and gets nothing new: neither by asking nor by saying that it is there.",
			nodes:  []Nodes{of(2, 8, 64)},
			grants: []Grant{grant("a", "0/0")},
			asks:   []Ask{barred(ask("a", 1, 2)), barred(held(ask("m", 1, 1), "0/0")), ask("z", 1, 1)},
			want: want{
				grants:  []Grant{grant("a", "0/0"), grant("z", "0/0")},
				waiting: map[string]string{"a": "not allowed", "m": "1 replicas are there that were not granted: not allowed"},
			},
		},
		"HeldGranted": {
			reason: "What was granted is kept, however little room there is.",
			nodes:  []Nodes{of(1, 8, 64)},
			grants: []Grant{grant("a", "0/0", "0/1")},
			asks:   []Ask{held(ask("a", 8, 2), "0/0", "0/1")},
			want:   want{grants: []Grant{grant("a", "0/0", "0/1")}, overbooked: true},
		},
		"SameUID": {
			reason: "A UID in another namespace, or of another name, is another service, and takes nothing from the one that has a grant.",
			nodes:  []Nodes{of(1, 8, 64)},
			grants: []Grant{grant("a", "0/0")},
			asks:   []Ask{in(since(ask("a", 8, 1), "0"), "aa-mallory"), ask("a", 8, 1)},
			want:   want{grants: []Grant{grant("a", "0/0")}, waiting: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"Answered": {
			reason: "A grant has the serial of the ask that it answers; what was granted for an older one is kept.",
			nodes:  []Nodes{of(1, 8, 64)},
			grants: []Grant{grant("a", "0/0"), serial(grant("b", "0/0"), 4)},
			asks:   []Ask{asked(ask("a", 1, 2), 0, 3), asked(ask("b", 1, 1), 5)},
			want:   want{grants: []Grant{serial(grant("a", "0/0", "0/1"), 3), serial(grant("b", "0/0"), 5)}},
		},
		"Closed": {
			reason: "A closed cluster keeps what it granted, and grants nothing.",
			nodes:  []Nodes{of(1, 8, 64)},
			grants: []Grant{grant("a", "0/0")},
			asks:   []Ask{ask("a", 1, 1, 1), ask("b", 1, 1)},
			closed: "the cluster is drained",
			want:   want{grants: []Grant{grant("a", "0/0")}, waiting: map[string]string{"a": "the cluster is drained", "b": "the cluster is drained"}},
		},
		"Overbooked": {
			reason: "Nodes have gone: what was granted stays, and nothing is added.",
			nodes:  []Nodes{of(1, 8, 64)},
			grants: []Grant{grant("a", "0/0"), grant("c", "0/0")},
			asks:   []Ask{ask("a", 6, 1), ask("b", 1, 1), ask("c", 6, 1)},
			want: want{
				grants: []Grant{grant("a", "0/0"), grant("c", "0/0")}, overbooked: true,
				waiting: map[string]string{"b": "more runs in the cluster than it has room for"},
			},
		},
		"NodeAway": {
			reason: "What is short of a node for a moment is nobody's fault, and nothing of it is given away.",
			nodes:  []Nodes{of(2, 8, 64)},
			grants: []Grant{grant("a", "0/0", "0/1", "0/2"), grant("b", "0/0", "0/1", "0/2")},
			asks:   []Ask{ask("a", 6, 3), ask("b", 2, 3), ask("c", 2, 2)},
			want: want{
				grants: []Grant{grant("a", "0/0", "0/1", "0/2"), grant("b", "0/0", "0/1", "0/2")}, overbooked: true,
				waiting: map[string]string{"c": "more runs in the cluster than it has room for"},
			},
		},
		"Larger": {
			reason: "Pods that have changed are counted as they are now, if there is room.",
			nodes:  []Nodes{of(2, 8, 64)},
			grants: []Grant{sized(grant("a", "0/0", "0/1"), 2)},
			asks:   []Ask{ask("a", 6, 2), ask("b", 2, 3)},
			want: want{
				grants:  []Grant{grant("a", "0/0", "0/1"), grant("b", "0/0", "0/1")},
				waiting: map[string]string{"b": "0 of 16 nvidia.com/gpu free in pool p, 2 short"},
			},
		},
		"LargerOldestFirst": {
			reason: "Of two that want more the older one gets it.",
			nodes:  []Nodes{of(1, 8, 64)},
			grants: []Grant{sized(grant("a", "0/0"), 2), sized(grant("b", "0/0"), 2)},
			asks:   []Ask{ask("a", 6, 1), since(ask("b", 6, 1), "2026-03-01T09:00:00Z")},
			want:   want{grants: []Grant{sized(grant("a", "0/0"), 2), grant("b", "0/0")}, unfit: []string{"s-a"}},
		},
		"Smaller": {
			reason: "Pods that request less than they were granted give the rest back, also where nodes have gone.",
			nodes:  []Nodes{of(1, 8, 64)},
			grants: []Grant{sized(grant("a", "0/0", "0/1"), 8)},
			asks:   []Ask{ask("a", 3, 2), ask("b", 2, 1)},
			want:   want{grants: []Grant{grant("a", "0/0", "0/1"), grant("b", "0/0")}},
		},
		"Unfit": {
			reason: "Pods that were changed to what no node has keep what they were granted and get nothing more, and others what is free.",
			nodes:  []Nodes{of(4, 8, 64)},
			grants: []Grant{sized(grant("a", "0/0"), 8)},
			asks:   []Ask{ask("a", 16, 2), ask("b", 8, 4)},
			want: want{
				grants: []Grant{sized(grant("a", "0/0"), 8), grant("b", "0/0", "0/1", "0/2")}, unfit: []string{"s-a"},
				waiting: map[string]string{"a": ChangedPods, "b": "0 of 32 nvidia.com/gpu free in pool p, 8 short"},
			},
		},
		"UnfitForNow": {
			reason: "So do those that would fit, if others were not there.",
			nodes:  []Nodes{of(2, 8, 64)},
			grants: []Grant{sized(grant("a", "0/0"), 2), grant("b", "0/0", "0/1")},
			asks:   []Ask{ask("a", 8, 2), ask("b", 6, 2), ask("c", 2, 1)},
			want: want{
				grants: []Grant{sized(grant("a", "0/0"), 2), grant("b", "0/0", "0/1"), grant("c", "0/0")}, unfit: []string{"s-a"},
				waiting: map[string]string{"a": ChangedPods},
			},
		},
		"UnfitHeld": {
			reason: "What it says is there is not counted either.",
			nodes:  []Nodes{of(2, 8, 64)},
			grants: []Grant{sized(grant("a", "0/0"), 8)},
			asks:   []Ask{held(ask("a", 16, 2), "0/0", "0/1"), ask("b", 8, 1)},
			want: want{
				grants: []Grant{sized(grant("a", "0/0"), 8), grant("b", "0/0")}, unfit: []string{"s-a"},
				waiting: map[string]string{"a": "1 replicas are there that were not granted: " + ChangedPods},
			},
		},
		"UnfitUnknown": {
			reason: "Where it is not known what was granted, nothing is added.",
			nodes:  []Nodes{of(4, 8, 64)},
			grants: []Grant{grant("a", "0/0")},
			asks:   []Ask{ask("a", 16, 1), ask("b", 8, 1)},
			want: want{
				grants: []Grant{grant("a", "0/0")}, overbooked: true,
				waiting: map[string]string{"b": "more runs in the cluster than it has room for"},
			},
		},
		"AsksElsewhere": {
			reason: "Who asks other clusters only has nothing here.",
			nodes:  []Nodes{of(1, 8, 64)},
			grants: []Grant{grant("a", "0/0")},
			asks:   []Ask{{UID: "a", Clusters: map[string]AskedCluster{"us-west": {}}}},
			want:   want{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := Book(here, Room{Pools: []Pool{NewPool("p", nil, tc.nodes)}}, tc.grants, tc.asks, tc.closed)
			// Most are counted as they are asked for.
			for i, g := range tc.want.grants {
				for _, a := range tc.asks {
					if g.Shapes == nil && a.Service() == g.Service() {
						tc.want.grants[i].Shapes = a.Shapes
					}
				}
			}
			got := want{grants: b.Grants, overbooked: b.Overbooked}
			for _, s := range b.Unfit {
				got.unfit = append(got.unfit, s.Name)
			}
			for _, w := range b.Waiting {
				if got.waiting == nil {
					got.waiting = map[string]string{}
				}
				got.waiting[w.UID] = w.Message
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A fleet is a cluster and the services that ask it, as a control plane has them: the
// ledger has a version, and is written only over the version that was read.
type world struct {
	room    Room
	asks    []Ask
	grants  []Grant
	version int
	next    int
}

// view is what one call reads.
type view struct {
	asks    []Ask
	grants  []Grant
	version int
}

func (w *world) view() view {
	return view{asks: slices.Clone(w.asks), grants: slices.Clone(w.grants), version: w.version}
}

// apply is what an API server does.
func (w *world) apply(v view, b Booking) bool {
	if v.version != w.version {
		return false
	}
	if !reflect.DeepEqual(w.grants, b.Grants) {
		w.version++
	}
	w.grants = b.Grants
	return true
}

// step changes what is asked for.
func (w *world) step(random *rand.Rand) {
	switch n := random.IntN(6); {
	case n < 3 && len(w.asks) < 12 || len(w.asks) == 0:
		w.next++
		var units []int
		for range 1 + random.IntN(3) {
			units = append(units, 1+random.IntN(3))
		}
		a := since(ask(fmt.Sprintf("u%d", w.next), 1+random.Int64N(8), units...), fmt.Sprintf("2026-03-01T%02d:00:00Z", random.IntN(24)))
		if random.IntN(2) == 0 {
			a = required(a, 1)
		}
		w.asks = append(w.asks, a)
	case n == 3:
		i := random.IntN(len(w.asks))
		w.asks = slices.Delete(slices.Clone(w.asks), i, i+1)
	case n == 4 && random.IntN(2) == 0:
		// Other pods, now and then such as no node holds.
		i := random.IntN(len(w.asks))
		w.asks = slices.Clone(w.asks)
		w.asks[i].Shapes = map[string]Shape{"w": *shape(1+random.Int64N(10), 1)}
	default:
		// A unit more, or one less.
		i := random.IntN(len(w.asks))
		a := w.asks[i]
		units := slices.Clone(a.Clusters[here].Units)
		if random.IntN(2) == 0 && len(units) > 1 {
			units = units[:len(units)-1]
		} else {
			more := ask("x", 1, slices.Repeat([]int{1}, len(units)+1)...).Clusters[here].Units
			units = append(units, more[len(units)])
		}
		a.Clusters = map[string]AskedCluster{here: {Namespace: "team", Units: units}}
		w.asks = slices.Clone(w.asks)
		w.asks[i] = a
	}
	random.Shuffle(len(w.asks), func(i, j int) { w.asks[i], w.asks[j] = w.asks[j], w.asks[i] })
}

// Whatever services ask for, come and go, and however old what a call reads: no node is
// booked twice, nothing that was granted is lost while it is asked for, nothing waits
// that would fit, and the order in which asks are read does not matter.
func TestBookKeepsItsPromises(t *testing.T) {
	const steps = 500
	runs := max(1, *fleets/5)
	refused, granted, waited, doubted, short, changed := 0, 0, 0, 0, 0, 0
	for run := range uint64(runs) {
		random := rand.New(rand.NewPCG(run, 5))
		w := &world{room: Room{Pools: []Pool{NewPool("p", nil, []Nodes{of(1+random.Int64N(4), 8, 640), of(random.Int64N(3), 4, 640)})}}}
		views := []view{w.view()}
		for range steps {
			if random.IntN(2) == 0 {
				w.step(random)
			}
			views = append(views, w.view())
			// Mostly the newest view, now and then one that is old.
			v := views[len(views)-1]
			if random.IntN(5) == 0 {
				v = views[max(0, len(views)-1-random.IntN(4))]
			}
			// A node may be away, which changes nothing of what was granted, and gives nothing away.
			room := w.room
			away := random.IntN(5) == 0
			if away {
				room = Room{Pools: []Pool{NewPool("p", nil, []Nodes{of(room.Pools[0].Nodes/2, 8, 640)})}}
			}
			b := Book(here, room, v.grants, v.asks, "")
			if random.IntN(10) == 0 {
				checkOrder(t, random, room, v, b)
			}
			checkBooking(t, room, v, b)
			if !away && !b.Overbooked {
				changed += len(b.Unfit)
			}
			if !w.apply(v, b) {
				refused++
			}
			granted, waited = granted+len(b.Grants), waited+len(b.Waiting)
			if b.Overbooked && away {
				short++
			} else if b.Overbooked {
				doubted++
			}
		}
	}
	t.Logf("%d calls: %d refused, %d grants and %d waiting seen, %d times nodes were missed and %d times pods did not fit as they had been changed, %d times no way was found to place what was granted",
		runs*steps, refused, granted, waited, short, changed, doubted)
	if refused == 0 || granted == 0 || waited == 0 || short == 0 || changed == 0 {
		t.Error("nothing was tested")
	}
	// A cluster that is full to the last device is a puzzle: what was granted bit by bit
	// may not be found to fit at once. Then nothing is added, which is right anyway.
	if doubted > runs*steps/500 {
		t.Errorf("%d times the cluster was thought to be overbooked, and no node had gone", doubted)
	}
}

// checkOrder makes sure that the order of asks does not matter.
func checkOrder(t *testing.T, random *rand.Rand, room Room, v view, b Booking) {
	t.Helper()
	asks := slices.Clone(v.asks)
	random.Shuffle(len(asks), func(i, j int) { asks[i], asks[j] = asks[j], asks[i] })
	if again := Book(here, room, v.grants, asks, ""); !reflect.DeepEqual(b, again) {
		t.Fatalf("another order of asks gives another booking:\n%s", cmp.Diff(b, again))
	}
}

func checkBooking(t *testing.T, room Room, v view, b Booking) {
	t.Helper()
	byUID := map[string]Ask{}
	for _, a := range v.asks {
		byUID[a.UID] = a
	}
	now := map[string][]string{}
	var all []Need
	for i, g := range b.Grants {
		if now[g.UID] != nil || len(g.Replicas) == 0 {
			t.Fatalf("service %s has two grants, or one of nothing", g.UID)
		}
		now[g.UID] = g.Replicas
		a := byUID[g.UID]
		replicas := slices.DeleteFunc(everything(a), func(r Replica) bool { return !slices.Contains(g.Replicas, r.Name) })
		if len(replicas) != len(g.Replicas) {
			t.Fatalf("service %s was granted %q, and does not ask for all of it", g.UID, g.Replicas)
		}
		as := Ask{Shapes: g.Shapes}
		needs := as.needs(replicas)
		unfit := slices.Contains(b.Unfit, a.Service())
		for name, s := range g.Shapes {
			if now := a.Shapes[name]; s.id() != now.id() && !unfit {
				t.Fatalf("service %s is counted as %s, asks for %s, and nobody says so", g.UID, s.id(), now.id())
			}
		}
		all = append(all, needs...)
		total, pods := sum(needs)
		if want := (Usage{Resources: total, Pods: pods}); !reflect.DeepEqual(want, b.Used[i]) {
			t.Fatalf("service %s uses %v, want %v", g.UID, b.Used[i], want)
		}
	}
	if !b.Overbooked {
		conserved(t, room, b.Room, all)
	}
	for _, g := range v.grants {
		for _, r := range everything(byUID[g.UID]) {
			if slices.Contains(g.Replicas, r.Name) && !slices.Contains(now[g.UID], r.Name) {
				t.Fatalf("%s of service %s was granted, is asked for, and is lost", r.Name, g.UID)
			}
		}
	}
	for _, w := range b.Waiting {
		a := byUID[w.UID]
		for _, u := range a.Clusters[here].Units {
			missing := slices.DeleteFunc(slices.Clone(u.Replicas), func(r Replica) bool { return slices.Contains(now[a.UID], r.Name) })
			left := b.Room.Clone()
			if tried := left.fill(a.needs(missing)); tried == nil && len(missing) > 0 && !b.Overbooked && !slices.Contains(b.Unfit, a.Service()) {
				t.Fatalf("unit %s of service %s waits, and would fit", u.Name, a.UID)
			}
		}
		if w.Message == "" {
			t.Fatalf("service %s waits, and nobody says why", w.UID)
		}
	}
}

func everything(a Ask) []Replica { return all(a.Clusters[here].Units) }

// 50 services race for 10 slots: the ten oldest get them, and keep them, however old
// what some calls read is and in whatever order the services come.
func TestBookRace(t *testing.T) {
	for run := range uint64(20) {
		random := rand.New(rand.NewPCG(run, 6))
		w := &world{room: Room{Pools: []Pool{NewPool("p", nil, []Nodes{of(10, 8, 64)})}}}
		var coming []Ask
		for i := range 50 {
			coming = append(coming, since(ask(fmt.Sprintf("u%02d", i), 8, 1), fmt.Sprintf("2026-03-01T10:%02d:00Z", i)))
		}
		random.Shuffle(len(coming), func(i, j int) { coming[i], coming[j] = coming[j], coming[i] })
		placed := map[string]bool{}
		views := []view{w.view()}
		for i := range 500 {
			if i%3 == 0 && len(coming) > 0 {
				w.asks, coming = append(slices.Clone(w.asks), coming[0]), coming[1:]
			}
			views = append(views, w.view())
			v := views[max(0, len(views)-1-random.IntN(5))]
			if w.apply(v, Book(here, w.room, v.grants, v.asks, "")) {
				for _, g := range w.grants {
					placed[g.UID] = true
				}
			}
		}
		if len(placed) != 10 || len(w.grants) != 10 {
			t.Errorf("run %d: %d services were placed at some time, and %d are, want the same 10", run, len(placed), len(w.grants))
		}
	}
}
