package simulation

import (
	"fmt"
	"time"
)

// Starve has a large service wait in a cluster that is full of small ones. Each minute a small one goes, and another comes. It
// returns the minutes until the large one is served, or, negative, the number of younger ones that were served before it.
func (w *World) Starve(minutes int) int {
	w.calm = true
	w.addCluster("c0", "r1", []nodePool{{"a", 4, 8, false}}, false)
	w.settle()
	small := func(i int) *user {
		u := worker(i, "Failover")
		u.name.name, u.roles[0].gpus = fmt.Sprintf("small-%d", i), 2
		return u
	}
	var running []*user
	for i := range 16 {
		running = append(running, small(i))
		w.create(running[i])
		w.settle()
	}
	w.now = w.now.Add(time.Minute)
	large := worker(1000, "Failover")
	large.roles[0].nodes = 3
	w.create(large)
	w.settle()
	served := 0
	for minute := range minutes {
		w.now = w.now.Add(time.Minute)
		w.remove(running[0])
		next := small(16 + minute)
		running = append(running[1:], next)
		w.create(next)
		w.crossplane.tick()
		w.settle()
		if len(w.placedIn(large)) > 0 {
			return minute
		}
		if len(w.placedIn(next)) > 0 {
			served++
		}
	}
	return -served
}
