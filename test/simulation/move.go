package simulation

// Move has a service move between two clusters, which are drained in turn, while its image changes. Nothing else happens.
func (w *World) Move(steps int) *ViolationError {
	for _, n := range []string{"c0", "c1"} {
		w.addCluster(n, "r1", []nodePool{{"a", 4, 8, false}}, false)
	}
	w.settle()
	u := worker(0, []string{"Failover", "Spread"}[w.rand.IntN(2)])
	w.create(u)
	for i := range steps {
		if w.rand.IntN(6) == 0 {
			u.image++
			w.update(u, "image changed")
		}
		if i%movesEvery == 0 {
			drained := i / movesEvery % 2
			for j, stop := range []string{"Drain", ""} {
				w.fleet[(j+drained)%2].stopPolicy = stop
				w.fleet[(j+drained)%2].update("stop policy")
			}
		}
		if w.step(); w.violation != nil {
			break
		}
	}
	return w.violation
}

// movesEvery is the number of steps after which the other cluster is drained.
const movesEvery = 25
