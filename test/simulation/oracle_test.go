package simulation

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

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

// TestToldPods proves that a partition keeps the template of the pods from before, but not their number.
func TestToldPods(t *testing.T) {
	manifest := func(size, partition float64) *stored {
		body, err := structpb.NewStruct(map[string]any{"spec": map[string]any{"forProvider": map[string]any{"manifest": map[string]any{"spec": map[string]any{
			"rolloutStrategy": map[string]any{"rollingUpdateConfiguration": map[string]any{"partition": partition}},
			"leaderWorkerTemplate": map[string]any{"size": size, "workerTemplate": map[string]any{"spec": map[string]any{"containers": []any{
				map[string]any{"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "8"}}},
			}}}},
		}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return &stored{body: body}
	}
	before := []pod{{gpus: 4}, {gpus: 4}}
	for name, c := range map[string]struct {
		now    *stored
		before []pod
		want   int
	}{
		"no partition":         {manifest(2, 0), before, 16},
		"held":                 {manifest(2, 1), before, 8},
		"held, another number": {manifest(3, 1), before, 12},
		"held, and new":        {manifest(2, 1), nil, 16},
	} {
		if got := gpusOf(toldPods(c.now, c.before)); got != c.want {
			t.Errorf("%s: %d GPUs, want %d", name, got, c.want)
		}
	}
}
