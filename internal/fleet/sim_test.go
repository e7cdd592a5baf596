package fleet

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fleets is the number of fleets of TestFleets, each of which is planned some hundred times, and the hundredth of
// the steps of TestBookKeepsItsPromises.
var fleets = flag.Int("fleets", 50, "how many random fleets to run")

// first is the fleet that TestFleets begins with, so that several processes can share many.
var first = flag.Int("first", 0, "the number of the first random fleet")

// simNow is when everything in a sim happens.
var simNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A trouble is what a cluster may be in.
type trouble int

const (
	fine trouble = iota
	drained
	deselected
	// away is out of reach for longer than FailoverAfter, and blinking for a short time.
	away
	blinking
	// unread cannot be read by services, and removed is gone with its ledger.
	unread
	removed
	// dead is for good.
	dead
	troubles
)

// leaves tells that services leave a cluster in that trouble, and stays that they neither
// come nor go.
func (t trouble) leaves(p Policy) bool {
	return t == drained || t == deselected || t == dead || t == away && p != Replicate
}

func (t trouble) stays(p Policy) bool { return t != fine && !t.leaves(p) }

// A sim is a fleet with its services. A service sees what clusters decided some time ago.
type sim struct {
	t *testing.T
	// rand has what happens, and order who acts first.
	rand, order *rand.Rand
	seed        uint64
	clusters    []*simCluster
	services    []*simService
	// delay is how many rounds old what a service sees may be.
	delay int
	// mended tells that some trouble is over: what has moved for it may be in two
	// clusters, until one of them is left.
	mended bool
	// seen counts what happened.
	seen simCounts
}

type simCounts struct{ started, outdated, moved, forgotten, calls int }

type simCluster struct {
	name    string
	total   Room
	grants  []Grant
	booking Booking
	// walled tells that no gateway of it is known.
	walled bool
	// said are all bookings so far, as its status had them.
	said    []Booking
	trouble trouble
}

type simService struct {
	uid    string
	policy Policy
	// units that it has, of those that it may have.
	units, most    []Unit
	ask            Ask
	present, ready map[string]map[string]bool
	// changed tells that its policy was another one once: what was right for that moves.
	changed bool
	// hub tells that there is a route over clusters, and led where it led after the last
	// round.
	hub bool
	led map[string]bool
	// rand has what it sees, so that it is the same in every order.
	rand *rand.Rand
}

func newSim(t *testing.T, seed, order uint64) *sim {
	t.Helper()
	s := &sim{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), order: rand.New(rand.NewPCG(seed, 2+order))}
	for i := range 1 + s.rand.IntN(5) {
		c := &simCluster{name: fmt.Sprintf("c%d", i), total: Room{Pools: []Pool{nodes("a", int64(s.rand.IntN(12)), 8)}}}
		c.walled = s.rand.IntN(6) == 0
		if s.rand.IntN(3) == 0 {
			c.total.Pools = append(c.total.Pools, nodes("b", int64(s.rand.IntN(6)), 4))
		}
		s.add(c)
	}
	for i := range 1 + s.rand.IntN(12) {
		v := &simService{
			uid: fmt.Sprintf("u%02d", i), policy: []Policy{Replicate, Spread, Failover}[s.rand.IntN(3)], hub: s.rand.IntN(2) == 0,
			present: map[string]map[string]bool{}, ready: map[string]map[string]bool{}, led: map[string]bool{}, rand: rand.New(rand.NewPCG(seed, 100+uint64(i))),
		}
		if v.policy != Spread && s.rand.IntN(3) == 0 {
			v.most = []Unit{workers(1 + s.rand.IntN(5))}
			v.units = v.most
			s.services = append(s.services, v)
			continue
		}
		single := v.policy == Spread && s.rand.IntN(2) == 0
		for g := range 1 + s.rand.IntN(3) {
			name := strconv.Itoa(g)
			if single {
				v.most = append(v.most, Unit{Name: name, Replicas: []Replica{{Name: name, Pods: map[string]int64{"small": 1 + s.rand.Int64N(4)}}}})
				continue
			}
			u := group(name, 1+s.rand.Int64N(2), 1+s.rand.Int64N(3))
			if s.rand.IntN(2) == 0 {
				u.Replicas = append(u.Replicas, Replica{Name: name + "/decode/1", Pods: map[string]int64{"small": 1}})
			}
			v.most = append(v.most, u)
		}
		v.units = v.most
		s.services = append(s.services, v)
	}
	return s
}

// workers is the unit of a service of one role without a gang: none of its replicas needs another.
func workers(n int) Unit {
	u := Unit{Name: "0"}
	for i := range n {
		u.Replicas = append(u.Replicas, Replica{Name: "worker/" + strconv.Itoa(i), Pods: map[string]int64{"large": 1}})
	}
	return u
}

func (s *sim) add(c *simCluster) {
	c.book(nil)
	s.clusters = append(s.clusters, c)
}

func (c *simCluster) book(asks []Ask) {
	closed := map[trouble]string{drained: "drained", away: "out of reach", blinking: "out of reach", dead: "dead"}[c.trouble]
	if len(c.said) == 0 {
		closed = "no ledger yet"
	}
	c.booking = Book(c.name, c.total, c.grants, asks, closed)
	c.grants = c.booking.Grants
	c.said = append(c.said, c.booking)
}

// granted tells whether a service has a replica granted in a cluster.
func (c *simCluster) granted(uid, replica string) bool {
	return slices.ContainsFunc(c.grants, func(g Grant) bool { return g.UID == uid && slices.Contains(g.Replicas, replica) })
}

// get has a cluster get into trouble, or out of it.
func (s *sim) get(c *simCluster, t trouble) {
	if c.trouble == dead {
		return
	}
	if c.trouble != fine {
		s.mended = true
	}
	if c.trouble = t; t == removed {
		// Nothing is left of it but what runs there.
		c.grants, c.said, c.booking = nil, nil, Booking{}
	}
}

// round lets everybody act once, in some order.
func (s *sim) round() {
	for _, i := range s.order.Perm(len(s.services)) {
		s.act(s.services[i])
	}
	for _, v := range s.services {
		v.proceed(s.rand)
	}
	asks := make([]Ask, 0, len(s.services))
	for _, i := range s.order.Perm(len(s.services)) {
		asks = append(asks, s.services[i].ask)
	}
	for _, c := range s.clusters {
		if c.trouble != removed {
			c.book(asks)
		}
	}
	s.check()
}

// proceed makes some of what is there ready.
func (v *simService) proceed(random *rand.Rand) {
	for _, c := range slices.Sorted(maps.Keys(v.present)) {
		ready := map[string]bool{}
		for _, r := range slices.Sorted(maps.Keys(v.present[c])) {
			if v.ready[c][r] || random.IntN(2) == 0 {
				ready[r] = true
			}
		}
		v.ready[c] = ready
	}
}

// scale changes how many units a service has, and how many replicas one of them.
func (v *simService) scale(random *rand.Rand) {
	v.units = slices.Clone(v.most[:random.IntN(len(v.most)+1)])
	for i, u := range v.units {
		if len(u.Replicas) > 2 && random.IntN(2) == 0 {
			v.units[i].Replicas = u.Replicas[:2]
		}
	}
	if len(v.units) > 0 && random.IntN(32) == 0 {
		v.policy, v.changed = []Policy{Replicate, Spread, Failover}[random.IntN(3)], true
	}
}

// candidate is a cluster as a service sees it.
func (s *sim) candidate(v *simService, c *simCluster) Candidate {
	m := Candidate{Name: c.name, Weight: 1, Routed: true, Answers: true, Present: v.present[c.name], Ready: v.ready[c.name], Asked: map[string]bool{}}
	if v.hub {
		m.Led, m.Routed = v.led[c.name], v.led[c.name]
	}
	asked := v.ask.Clusters[c.name]
	for _, u := range asked.Units {
		m.Asked[u.Name] = true
	}
	why := "a test"
	if len(c.said) == 0 {
		m.Unknown, m.Ready = why, nil
		return m
	}
	switch c.trouble {
	case unread, removed:
		m.Unknown, m.Ready = why, nil
		return m
	case away, blinking:
		since := simNow.Add(-time.Second)
		if c.trouble == away {
			since = simNow.Add(-time.Hour)
		}
		m.Unreachable, m.Ready = &since, nil
	case drained:
		m.Drain = &why
	case deselected:
		m.Deselected = true
	case dead:
		m.Dead, m.Ready, m.Orphaned = &why, nil, v.rand.IntN(2) == 0
	case fine, troubles:
	}
	said := c.said[max(0, len(c.said)-1-v.rand.IntN(s.delay+1))]
	m.Room = said.Room
	// It may be that asks or nodes are not known for a moment.
	if s.delay > 0 && v.rand.IntN(6) == 0 {
		m.Closed = why
	}
	if v.hub && c.walled {
		m.NoEntrance, m.Routed, m.Led = true, false, false
	}
	for _, g := range said.Grants {
		if g.UID == v.uid {
			m.Granted = asked.Granted(g.Serial, g.Replicas)
			s.seen.outdated += len(g.Replicas) - len(m.Granted)
		}
	}
	return m
}

func (s *sim) act(v *simService) {
	r := Request{Policy: v.policy, Units: v.units, Shapes: shapes, FailoverAfter: time.Minute, Now: simNow}
	for _, c := range s.clusters {
		r.Candidates = append(r.Candidates, s.candidate(v, c))
	}
	decisions := Place(r)
	s.seen.calls++
	if s.order.IntN(8) == 0 && v.policy == Replicate {
		s.reordered(v, r, decisions)
	}
	before, readable := v.present, map[string]map[string]bool{}
	for _, c := range r.Candidates {
		readable[c.Name] = c.Ready
	}
	ask := Ask{UID: v.uid, Since: v.uid, Shapes: shapes, Clusters: map[string]AskedCluster{}}
	v.present = map[string]map[string]bool{}
	for _, d := range decisions {
		v.present[d.Name], v.led[d.Name] = d.Run, d.Serving
		if len(d.Units) > 0 {
			// What was there when the service looked.
			ask.Clusters[d.Name] = AskedCluster{Units: d.Units, Together: d.Together, Held: slices.Sorted(maps.Keys(before[d.Name]))}
		}
	}
	if v.ask.Clusters == nil {
		ask.Renew(nil, 0)
	} else {
		ask.Renew(&v.ask, 0)
	}
	v.ask = ask
	for _, c := range s.clusters {
		s.starts(v, c, before)
		s.stops(v, c, before, readable)
	}
	if !s.mended && !v.changed {
		s.straddles(v)
	}
}

// starts makes sure that nothing is started before it was granted, or elsewhere than where
// its unit is.
func (s *sim) starts(v *simService, c *simCluster, before map[string]map[string]bool) {
	s.t.Helper()
	for _, u := range v.units {
		for _, r := range u.Replicas {
			if !v.present[c.name][r.Name] || before[c.name][r.Name] {
				continue
			}
			s.seen.started++
			if !c.granted(v.uid, r.Name) {
				s.t.Fatalf("fleet %d: %s of %s (%s) is started in %s, which has not granted it, or not any more", s.seed, r.Name, v.uid, v.policy, c.name)
			}
			if v.policy == Replicate || v.changed || some(&u, before[c.name]) {
				continue
			}
			for _, o := range s.clusters {
				// Where no requests can be led is no place to stay, if there is another.
				if o != c && !o.trouble.leaves(v.policy) && some(&u, before[o.name]) && !(v.hub && o.walled) {
					s.t.Fatalf("fleet %d: unit %s of %s (%s) is started in %s, and is in %s, which it need not leave", s.seed, u.Name, v.uid, v.policy, c.name, o.name)
				}
			}
		}
	}
}

// stops makes sure that nothing that is still wanted is stopped before what is there of its unit,
// and what that needs, is ready elsewhere, but for what is in a dead cluster; and nothing where
// it can stay.
func (s *sim) stops(v *simService, c *simCluster, before, readable map[string]map[string]bool) {
	s.t.Helper()
	for _, u := range v.units {
		for _, r := range u.Replicas {
			if !before[c.name][r.Name] || v.present[c.name][r.Name] {
				continue
			}
			if c.trouble == dead {
				s.seen.forgotten++
				continue
			}
			s.seen.moved++
			if c.trouble.stays(v.policy) || c.trouble == fine && v.policy == Replicate {
				s.t.Fatalf("fleet %d: %s of %s (%s) leaves %s, and need not", s.seed, r.Name, v.uid, v.policy, c.name)
			}
			to := slices.IndexFunc(s.clusters, func(o *simCluster) bool {
				return o != c && !o.trouble.leaves(v.policy) && some(&u, readable[o.name]) && !slices.ContainsFunc(u.Replicas, func(r Replica) bool {
					return (r.Required || before[c.name][r.Name]) && !(readable[o.name][r.Name] && v.present[o.name][r.Name])
				})
			})
			if to < 0 {
				s.t.Fatalf("fleet %d: %s of %s (%s) is stopped in %s before its unit is ready elsewhere", s.seed, r.Name, v.uid, v.policy, c.name)
			}
			if c.trouble == fine && !some(&u, before[s.clusters[to].name]) {
				s.t.Fatalf("fleet %d: unit %s of %s (%s) moves from %s to %s, and need not", s.seed, u.Name, v.uid, v.policy, c.name, s.clusters[to].name)
			}
		}
	}
}

// whole tells whether one of some clusters has all that the others have of a unit, and may have
// its requests.
func (v *simService) whole(u *Unit, in []string, walled map[string]bool) bool {
	if v.policy == Failover {
		u = &Unit{Replicas: all(v.units)} // They stay together.
	}
	return slices.ContainsFunc(in, func(c string) bool {
		return !walled[c] && !slices.ContainsFunc(u.Replicas, func(r Replica) bool {
			return !v.present[c][r.Name] && slices.ContainsFunc(in, func(o string) bool { return v.present[o][r.Name] })
		})
	})
}

// straddles makes sure that no unit is in two clusters that it need not leave. After a
// trouble in the midst of a move, or another policy, it may be, if neither has room for what only the other has, or no
// requests can be led to the one that has.
func (s *sim) straddles(v *simService) {
	s.t.Helper()
	if v.policy == Replicate {
		return
	}
	for _, u := range v.units {
		var in []string
		walled := map[string]bool{}
		for _, c := range s.clusters {
			here := &u
			if v.policy == Failover {
				here = &Unit{Replicas: all(v.units)} // They stay together.
			}
			if some(here, v.present[c.name]) && !c.trouble.leaves(v.policy) {
				in = append(in, c.name)
				walled[c.name] = v.hub && c.walled
			}
		}
		if len(in) > 1 && (!s.mended && !v.changed || v.whole(&u, in, walled)) {
			s.t.Fatalf("fleet %d: unit %s of %s (%s) is in %v", s.seed, u.Name, v.uid, v.policy, in)
		}
	}
}

func some(u *Unit, names map[string]bool) bool {
	return slices.ContainsFunc(u.Replicas, func(r Replica) bool { return names[r.Name] })
}

// reordered makes sure that the order of the candidates changes nothing of what runs.
func (s *sim) reordered(v *simService, r Request, decisions []Decision) {
	s.t.Helper()
	running := func(all []Decision) map[string]map[string]bool {
		m := map[string]map[string]bool{}
		for _, d := range all {
			m[d.Name] = d.Run
		}
		return m
	}
	other := r
	other.Candidates = slices.Clone(r.Candidates)
	s.order.Shuffle(len(other.Candidates), func(i, j int) {
		other.Candidates[i], other.Candidates[j] = other.Candidates[j], other.Candidates[i]
	})
	if diff := cmp.Diff(running(decisions), running(Place(other))); diff != "" {
		s.t.Fatalf("fleet %d: %s (%s) runs elsewhere with its candidates in another order: -want, +got:\n%s", s.seed, v.uid, v.policy, diff)
	}
}

// check makes sure that no node has more than it holds, and that all that is there is
// booked.
func (s *sim) check() {
	s.t.Helper()
	for _, c := range s.clusters {
		if c.trouble == removed {
			continue
		}
		if c.booking.Overbooked {
			s.t.Fatalf("fleet %d: %s is booked twice: %+v", s.seed, c.name, c.booking)
		}
		a, there := Ask{Shapes: shapes}, []Replica{}
		for _, v := range s.services {
			for _, r := range all(v.units) {
				if !v.present[c.name][r.Name] {
					continue
				}
				there = append(there, r)
				if !c.granted(v.uid, r.Name) {
					s.t.Fatalf("fleet %d: %s of %s (%s) runs in %s, and is not booked there", s.seed, r.Name, v.uid, v.policy, c.name)
				}
			}
		}
		used, _ := sum(a.needs(there))
		for i := range c.total.Pools {
			used[gpu] -= c.total.Pools[i].Total[gpu]
		}
		if used[gpu] > 0 {
			s.t.Fatalf("fleet %d: %s runs %d more than it has", s.seed, c.name, used[gpu])
		}
		for i := range c.booking.Room.Pools {
			for _, n := range c.booking.Room.Pools[i].Left {
				for name, left := range n.Left {
					if left < 0 || n.Count < 0 {
						s.t.Fatalf("fleet %d: %s: %d nodes with %d %s left", s.seed, c.name, n.Count, left, name)
					}
				}
			}
		}
	}
}

// where everything is: what runs, and what is asked for.
func (s *sim) where() map[string]map[string][]string {
	w := map[string]map[string][]string{}
	for _, v := range s.services {
		w[v.uid] = map[string][]string{}
		for c, run := range v.present {
			if len(run) > 0 {
				w[v.uid][c] = slices.Sorted(maps.Keys(run))
			}
		}
		for c, at := range v.ask.Clusters {
			for _, r := range all(at.Units) {
				w[v.uid]["asked of "+c] = append(w[v.uid]["asked of "+c], fmt.Sprintf("%s at %d", r.Name, r.Serial))
			}
		}
	}
	return w
}

// ready tells whether everything that is there is ready.
func (s *sim) ready() bool {
	for _, v := range s.services {
		for c, run := range v.present {
			for r := range run {
				if !v.ready[c][r] {
					return false
				}
			}
		}
	}
	return true
}

// rest lets a fleet come to rest, and makes sure that nothing changes any more then,
// whoever acts first, and whatever the order of the clusters.
func (s *sim) rest() {
	s.t.Helper()
	s.delay = 0
	const quiet = 6
	was, same := s.where(), 0
	for rounds := 0; same < quiet; rounds++ {
		if rounds > 60 {
			s.t.Fatalf("fleet %d does not come to rest: -before, +after the last round:\n%s", s.seed, cmp.Diff(was, s.where()))
		}
		was = s.where()
		if s.round(); reflect.DeepEqual(was, s.where()) && s.ready() {
			same++
		} else {
			same = 0
		}
	}
	for _, v := range s.services {
		s.straddles(v)
		r := Request{Policy: v.policy, Units: v.units, Shapes: shapes, FailoverAfter: time.Minute, Now: simNow}
		for _, c := range s.clusters {
			if c.trouble != dead {
				r.Candidates = append(r.Candidates, s.candidate(v, c))
			}
		}
		s.reordered(v, r, Place(r))
	}
}

// happens lets services scale and clusters get into trouble, or out of it.
func (s *sim) happens(scaling, trouble bool) {
	for _, v := range s.services {
		if scaling && s.rand.IntN(4) == 0 {
			v.scale(s.rand)
		}
	}
	if trouble && s.rand.IntN(4) == 0 {
		s.get(s.clusters[s.rand.IntN(len(s.clusters))], anyTrouble(s.rand))
	}
}

func anyTrouble(random *rand.Rand) trouble {
	t := trouble(random.IntN(int(troubles)))
	if t == dead && random.IntN(3) > 0 {
		return fine
	}
	return t
}

// run is the life of a fleet. It calls look after each round.
func (s *sim) run(look func()) {
	rounds := func(n int, scaling, trouble bool) {
		for range n {
			s.happens(scaling, trouble)
			s.round()
			look()
		}
	}
	s.delay = 4
	rounds(10, true, false)
	s.rest()
	// Another cluster moves nobody, and neither do old views of it.
	s.add(&simCluster{name: "new", total: Room{Pools: []Pool{nodes("a", 4, 8)}}})
	s.delay = 4
	rounds(5, false, false)
	// One trouble moves nothing elsewhere.
	s.get(s.clusters[s.rand.IntN(len(s.clusters))], 1+trouble(s.rand.IntN(int(troubles)-1)))
	rounds(8, false, false)
	rounds(4, true, false)
	// Everything at once.
	rounds(20, true, true)
	for _, c := range s.clusters {
		s.get(c, fine)
	}
	s.rest()
	look()
}

// TestFleets runs many small fleets, whose services scale and see what was decided some time
// ago, and whose clusters come and get into every kind of trouble: nothing is booked twice or
// started without a grant, no unit straddles clusters, nothing is lost and nothing moves that
// need not, and everything comes to rest.
func TestFleets(t *testing.T) {
	sum := simCounts{}
	for i := range *fleets {
		s := newSim(t, uint64(*first+i), 0)
		s.run(func() {})
		sum.started, sum.outdated, sum.moved = sum.started+s.seen.started, sum.outdated+s.seen.outdated, sum.moved+s.seen.moved
		sum.forgotten, sum.calls = sum.forgotten+s.seen.forgotten, sum.calls+s.seen.calls
	}
	t.Logf("%+v", sum)
	// Few fleets, such as one that is looked at again, need not see everything.
	if *fleets < 50 {
		return
	}
	if sum.started == 0 || sum.outdated == 0 || sum.moved == 0 || sum.forgotten == 0 {
		t.Errorf("not everything was tested: %+v", sum)
	}
}

// TestFleetsInAnyOrder proves that it does not matter which service acts first.
func TestFleetsInAnyOrder(t *testing.T) {
	for seed := range max(1, *fleets/30) {
		var lives [2][]map[string]map[string][]string
		for order := range lives {
			s := newSim(t, uint64(seed), uint64(order))
			s.run(func() { lives[order] = append(lives[order], s.where()) })
		}
		for i := range lives[0] {
			if !reflect.DeepEqual(lives[0][i], lives[1][i]) {
				t.Fatalf("fleet %d, round %d: -one order, +another:\n%s", seed, i, cmp.Diff(lives[0][i], lives[1][i]))
			}
		}
	}
}
