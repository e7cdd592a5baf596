package simulation

import (
	"flag"
	"fmt"
	"runtime/debug"
	"testing"
)

var (
	seeds = flag.Int("seeds", 4, "how many random fleets to run")
	first = flag.Uint64("first", 0, "the seed of the first random fleet")
	steps = flag.Int("steps", 200, "how many steps of random events each fleet has")
)

// known are the invariants that do not hold today, and the events that break them, with the reason.
var known = map[string]string{
	"lose-request":        "the room of running pods is given away while their capacity request is missing",
	"garble-request":      "the room of running pods is given away while their capacity request cannot be read",
	"grow":                "requests that grow are applied at once, whether or not they fit",
	"node-count":          "a nodeCount that grows is applied at once, whether or not it fits",
	"image":               "a copy counts as ready by the status of the template before, so the other copy goes while its pods restart",
	"shrink":              "a copy counts as ready by the status of the template before, so the other copy goes while its pods restart",
	"room of the leaving": "room is free as soon as an Object is being deleted",
}

func TestSimulation(t *testing.T) {
	debug.SetGCPercent(400)
	fn := InProcess()
	without := map[string]bool{}
	for n := range known {
		without[n] = true
	}
	total := map[string]int{}
	for i := range *seeds {
		seed := *first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := New(Options{Seed: seed, Steps: *steps, Without: without, Trace: true}, fn)
			if v := w.Run(); v != nil {
				t.Error(v)
			}
			for n, c := range w.Cost.Violations {
				total[n] += c
			}
			t.Logf("reconciles %v, writes %d, services %d", w.Cost.Reconciles, w.Cost.Writes, len(w.services))
		})
	}
	t.Log(total)
}

func TestShow(t *testing.T) {
	w := New(Options{Seed: *first, Steps: *steps, Without: map[string]bool{}, Trace: true}, InProcess())
	v := w.Run()
	for _, e := range w.events {
		t.Log(e)
	}
	t.Log(v, w.fatals)
	for _, u := range w.services {
		t.Log(u.name, u, w.placement(u))
	}
	for k, c := range w.Cost.Calls {
		t.Log(k, *c)
	}
}
