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
	fn := InProcess()
	each(t, *seeds, func(seed uint64) *ViolationError {
		return New(Options{Seed: seed, Steps: *steps, Trace: true}, fn).Run()
	})
}

// TestSleepers runs random fleets in which half of the services stop while nobody uses them. It runs an eighth of the seeds.
func TestSleepers(t *testing.T) {
	fn := InProcess()
	each(t, max(1, *seeds/8), func(seed uint64) *ViolationError {
		return New(Options{Seed: seed, Steps: *steps, Trace: true, Sleepers: true}, fn).Run()
	})
}

// TestQuotas runs random fleets in which the namespaces have quotas and priorities. It runs an eighth of the seeds.
func TestQuotas(t *testing.T) {
	fn := InProcess()
	each(t, max(1, *seeds/8), func(seed uint64) *ViolationError {
		return New(Options{Seed: seed, Steps: *steps, Trace: true, Quotas: true}, fn).Run()
	})
}

// TestKueue runs random fleets in which Kueue admits what runs in some clusters. It runs an eighth of the seeds. Kueue refuses changes of what
// pods request, so there are none.
func TestKueue(t *testing.T) {
	fn, without := InProcess(), map[string]bool{"shrink": true, "grow": true, "node-count": true}
	each(t, max(1, *seeds/8), func(seed uint64) *ViolationError {
		return New(Options{Seed: seed, Steps: *steps, Without: without, Trace: true, Kueue: true}, fn).Run()
	})
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
	each(t, *seeds, func(seed uint64) *ViolationError {
		return New(Options{Seed: seed, Without: none, Trace: true}, fn).Move(*steps)
	})
}

// TestRoll changes one service again and again, and asks whether its requests are answered meanwhile. It runs an eighth of the seeds with half
// of the steps, because each failure is followed until all is quiet.
func TestRoll(t *testing.T) {
	fn, none := InProcess(), noEvents()
	each(t, max(1, *seeds/8), func(seed uint64) *ViolationError {
		return New(Options{Seed: seed, Without: none, Trace: true}, fn).Roll(*steps / 2)
	})
}

// TestHere does the same as TestRoll with services that run in the control plane's own cluster.
func TestHere(t *testing.T) {
	fn, without := InProcess(), noEvents()
	without["roll-drain"], without["roll-reach"] = true, true
	each(t, max(1, *seeds/8), func(seed uint64) *ViolationError {
		return New(Options{Seed: seed, Without: without, Trace: true, Here: true}, fn).Roll(*steps)
	})
}

// each runs a simulation for some seeds, from the first one on.
func each(t *testing.T, n int, run func(seed uint64) *ViolationError) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // A simulation allocates much and keeps little.
	for i := range n {
		seed := *first + uint64(i)
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			if v := run(seed); v != nil {
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
