package simulation

import "testing"

// TestReadLost proves that a reconcile is excused for what it read as ready and what has lost its nodes since, and only until that
// is reported.
func TestReadLost(t *testing.T) {
	w := New(Options{Seed: 1}, InProcess())
	w.calm = true
	w.addCluster("c0", "r1", []nodePool{{"a", 2, 8, false}}, false)
	u := worker(0, "Failover")
	u.roles[0].replicas = 2
	w.create(u)
	w.settle()
	read := func() *reconcile {
		r := &reconcile{crossplane: w.crossplane, key: xrKey{serviceKind, u.name}, xr: w.server.get(serviceKind, u.name)}
		if err := r.observeComposed(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := read()
	if w.readLost(before) {
		t.Error("nothing was lost")
	}
	w.remotes["c0"].lose(1)
	if !w.readLost(before) {
		t.Error("a replica that was read as ready has no node any more")
	}
	w.settle()
	if w.readLost(read()) {
		t.Error("a reconcile that read that the replica is not ready is not excused")
	}
}
