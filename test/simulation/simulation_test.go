package simulation

import (
	"flag"
	"runtime/debug"
	"strconv"
	"testing"
)

var (
	seeds = flag.Int("seeds", 4, "how many random fleets to run")
	first = flag.Uint64("first", 0, "the seed of the first random fleet")
	steps = flag.Int("steps", 200, "how many steps with random events each fleet has")
)

// TestSimulation runs random fleets. A failure names the seed: repeat it with -first SEED -seeds 1.
func TestSimulation(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // A simulation allocates much and keeps little.
	fn := InProcess()
	for i := range *seeds {
		seed := *first + uint64(i)
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := New(Options{Seed: seed, Steps: *steps, Trace: true}, fn)
			if v := w.Run(); v != nil {
				t.Error(v)
			}
		})
	}
}

// TestSleepers runs random fleets in which half of the services stop while nobody uses them. It runs a quarter of the seeds.
func TestSleepers(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // As above.
	fn := InProcess()
	for i := range max(1, *seeds/4) {
		seed := *first + uint64(i)
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := New(Options{Seed: seed, Steps: *steps, Trace: true, Sleepers: true}, fn)
			if v := w.Run(); v != nil {
				t.Error(v)
			}
		})
	}
}

// TestStarvation has small services come and go in a full cluster, where a large one waits that is older than those that come.
func TestStarvation(t *testing.T) {
	w := New(Options{Seed: 1}, InProcess())
	if got := w.Starve(200); got < 0 {
		t.Errorf("the oldest service waits after 200 minutes, in which %d younger ones came and were served", -got)
	}
}

// TestMove moves one service while its image changes.
func TestMove(t *testing.T) {
	fn, none := InProcess(), noEvents()
	for i := range *seeds {
		seed := *first + uint64(i)
		w := New(Options{Seed: seed, Without: none, Trace: true}, fn)
		if v := w.Move(*steps); v != nil {
			t.Error(v)
		}
	}
}

// TestRoll changes one service again and again, and asks whether its requests are answered meanwhile. It runs a quarter of the seeds with half
// of the steps, because each failure is followed until all is quiet.
func TestRoll(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // As above.
	fn := InProcess()
	for i := range max(1, *seeds/4) {
		seed := *first + uint64(i)
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := New(Options{Seed: seed, Without: noEvents(), Trace: true}, fn)
			if v := w.Roll(*steps / 2); v != nil {
				t.Error(v)
			}
		})
	}
}

// noEvents leaves out all random events.
func noEvents() map[string]bool {
	none := map[string]bool{}
	for _, e := range events {
		none[e.name] = true
	}
	return none
}
