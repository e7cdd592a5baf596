package fleet

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A randomView is what a service may see of its clusters, whether that can come to be or not.
func randomView(random *rand.Rand) Request {
	r := Request{Policy: []Policy{Replicate, Spread, Failover}[random.IntN(3)], Shapes: shapes, FailoverAfter: time.Minute, Now: time.Now()}
	for i := range 1 + random.IntN(3) {
		u := Unit{Name: strconv.Itoa(i)}
		required := random.IntN(3)
		for j := range 1 + random.IntN(3) {
			u.Replicas = append(u.Replicas, Replica{Name: u.Name + "/" + strconv.Itoa(j), Pods: map[string]int64{"large": 1}, Required: j < required})
		}
		r.Units = append(r.Units, u)
	}
	routed := random.IntN(3) > 0
	for i := range 2 + random.IntN(3) {
		r.Candidates = append(r.Candidates, randomCandidate(random, "c"+strconv.Itoa(i), routed, &r))
	}
	return r
}

func randomCandidate(random *rand.Rand, name string, routed bool, r *Request) Candidate {
	c := Candidate{
		Name: name, Weight: int64(1 + random.IntN(2)), Answers: random.IntN(3) > 0, Room: Room{Pools: []Pool{nodes("a", int64(random.IntN(4)), 8)}},
		Present: map[string]bool{}, Ready: map[string]bool{}, Granted: map[string]bool{}, Asked: map[string]bool{},
	}
	some := random.IntN(4) > 0
	for _, x := range all(r.Units) {
		if some && random.IntN(3) > 0 {
			c.Present[x.Name], c.Granted[x.Name] = true, true
			c.Ready[x.Name] = random.IntN(3) > 0
		}
	}
	c.Routed = c.Answers
	if routed {
		c.NoEntrance = random.IntN(4) == 0
		c.Led = !c.NoEntrance && random.IntN(2) == 0
		c.Routed = c.Answers && c.Led && random.IntN(3) > 0
	}
	why, since := "a test", r.Now.Add(-time.Hour)
	switch random.IntN(9) {
	case 0:
		c.Drain = &why
	case 1:
		c.Deselected = true
	case 2:
		c.Unknown = why
	case 3:
		c.Unreachable, c.Ready, c.Routed = &since, nil, false
	case 4:
		since = r.Now.Add(-time.Second)
		c.Unreachable, c.Ready, c.Routed = &since, nil, false
	case 5:
		c.Weight = int64(random.IntN(3))
	case 6:
		c.Uncounted = random.IntN(3) == 0
	}
	return c
}

// Whatever a service sees: requests are led to something that is ready, if there is such a thing, and
// nothing is stopped that is not ready elsewhere, where it stays.
func TestPlaceServesWhateverItSees(t *testing.T) {
	led, stopped := 0, 0
	for seed := range uint64(20000) {
		r := randomView(rand.New(rand.NewPCG(seed, 77)))
		decisions := Place(r)
		ready, serving := 0, 0
		for i := range decisions {
			c, d := &r.Candidates[i], &decisions[i]
			for _, x := range all(r.Units) {
				if c.Ready[x.Name] && c.Answers && !c.NoEntrance {
					ready++
					if d.Serving && d.Run[x.Name] {
						serving++
					}
				}
			}
			for _, u := range r.Units {
				if !slices.ContainsFunc(u.Replicas, func(x Replica) bool { return c.Present[x.Name] && !d.Run[x.Name] }) {
					continue
				}
				stopped++
				if !readyElsewhere(&r, decisions, i, &u) {
					t.Fatalf("view %d (%s): what %s has of unit %s is stopped, and not ready elsewhere:\n%+v\n%+v", seed, r.Policy, c.Name, u.Name, r.Candidates, decisions)
				}
			}
		}
		if ready > 0 {
			led++
			if serving == 0 {
				t.Fatalf("view %d (%s): %d replicas are ready, and requests are led to none:\n%+v\n%+v", seed, r.Policy, ready, r.Candidates, decisions)
			}
		}
	}
	t.Logf("in %d views something was ready, and %d times a unit was stopped", led, stopped)
	if led == 0 || stopped == 0 {
		t.Error("nothing was tested")
	}
}

// readyElsewhere tells whether another cluster serves what one has of a unit, and what the unit needs.
func readyElsewhere(r *Request, decisions []Decision, i int, u *Unit) bool {
	for j := range decisions {
		o, d := &r.Candidates[j], &decisions[j]
		if j != i && o.Answers && !slices.ContainsFunc(u.Replicas, func(x Replica) bool {
			return (x.Required || r.Candidates[i].Present[x.Name]) && (!o.Ready[x.Name] || !d.Run[x.Name])
		}) {
			return true
		}
	}
	return false
}

// A replica does not wait where its service is granted nothing more, if another cluster has room.
func TestUnfitGoesElsewhere(t *testing.T) {
	unit := func(name, shape string) Unit {
		return Unit{Name: name, Replicas: []Replica{{Name: name, Pods: map[string]int64{shape: 1}}}}
	}
	now := map[string]Shape{"big": *shape(16, 1), "small": *shape(1, 1)}
	was := map[string]Shape{"big": *shape(4, 1), "small": *shape(1, 1)}
	units := []Unit{unit("big/0", "big"), unit("small/0", "small"), unit("small/1", "small"), unit("small/2", "small"), unit("small/3", "small")}
	room := Room{Pools: []Pool{NewPool("p", nil, []Nodes{of(2, 8, 64)})}}
	g := grant("a", "big/0", "small/0")
	g.Shapes = was
	grants := map[string][]Grant{"east": {g}}
	a := Ask{UID: "a", Namespace: "team", Name: "s-a", Shapes: now, Clusters: map[string]AskedCluster{"east": {Units: units[:2]}}}
	var last []Decision
	for range 10 {
		r := Request{Policy: Spread, Units: units, Shapes: now}
		for _, name := range []string{"east", "west"} {
			b := Book(name, room, grants[name], []Ask{a}, "")
			grants[name] = b.Grants
			c := Candidate{Name: name, Weight: 1, Routed: true, Answers: true, Room: b.Room, Asked: map[string]bool{}, Granted: map[string]bool{}}
			if name == "east" {
				c.Present, c.Ready = set("big/0", "small/0"), set("small/0")
			}
			if len(b.Unfit) > 0 {
				c.Closed = ChangedPods // As the service reads it.
			}
			for _, u := range a.Clusters[name].Units {
				c.Asked[u.Name] = true
			}
			for _, g := range b.Grants {
				for _, x := range g.Replicas {
					c.Granted[x] = true
				}
			}
			r.Candidates = append(r.Candidates, c)
		}
		a.Clusters = map[string]AskedCluster{}
		last = Place(r)
		for _, d := range last {
			if len(d.Units) > 0 {
				a.Clusters[d.Name] = AskedCluster{Units: d.Units}
			}
		}
	}
	if len(last[0].Wait) > 0 || !last[1].Run["small/3"] {
		t.Errorf("in the end %q wait in east, and west runs %v", last[0].Wait, last[1].Run)
	}
}
