package reservation

import (
	"fmt"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
)

// allChanged are 2,000 services whose shapes all change in one call, and the cluster that they
// run in. Not all of the new shapes fit.
func allChanged(shapes int64) Input {
	in := Input{Cluster: here, Free: pool(capacitytest.Nodes(500, 8, 640)), Now: noon}
	for i := range int64(2000) {
		uid := fmt.Sprintf("u%04d", i)
		req := created(grown(request(uid, 1, 1)), fmt.Sprintf("2026-03-01T10:%02d:%02dZ", i/60, i%60))
		req.Namespace = fmt.Sprintf("team-%03d", i%200)
		r := *capacitytest.Requirements(1+i%2, 8)
		r.Requests[capacitytest.CPU] += i % shapes
		was := r
		was.Requests = capacity.Resources{capacitytest.GPU: r.Requests[capacitytest.GPU], capacitytest.CPU: 4000 + i%shapes}
		if i%7 == 0 {
			r.Requests = capacity.Resources{capacitytest.GPU: 7000, capacitytest.CPU: r.Requests[capacitytest.CPU]}
		}
		req.PodRequirements = map[string]capacity.PodRequirements{"w": r}
		in.Requests = append(in.Requests, req)
		in.Ledger.Services = append(in.Ledger.Services, Service{ServiceID: req.ServiceID(), Shapes: []capacity.PodRequirements{was}, Grants: []Grant{{Pods: []int64{1}, Replicas: allNames(req)}}})
	}
	return in
}

// inPools are 2,000 new services of some shapes in one call, and a cluster of two pools with labels.
func inPools(shapes int64) Input {
	in := allChanged(shapes)
	in.Free, in.Ledger = twoPools(200, 100), Ledger{}
	return in
}

// fragmented are 200 services that wait for pods that fit no node, though the sums suffice.
func fragmented() Input {
	in := Input{Cluster: here, Now: noon}
	for i := range int64(12) {
		in.Free.Pools = append(in.Free.Pools, capacity.NewPool(fmt.Sprint("p", i), nil, []capacity.NodeClass{{Count: 1, Free: capacity.Resources{"nvidia.com/gpu": 80_000 + 1000*i}}}))
	}
	for i := range 200 {
		req := unplaceable(fmt.Sprintf("team-%03d", i), 1)
		req.Clusters[here].Groups[0].Replicas[0].Pods["t"] = int64(i + 1)
		in.Requests = append(in.Requests, req)
	}
	return in
}

// TestCost proves that a call looks at a bounded number of node classes, however much changes at
// once. It counts them, since a time says nothing on a busy machine.
func TestCost(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     Input
		grows  int
		looks  int
		steps  int
	}{
		"AllChanged": {reason: "All shapes change, and there are ten.", in: allChanged(10), grows: 286, looks: 150_000},
		"Fragmented": {reason: "All waiting services search.", in: fragmented(), looks: 60_000, steps: searchSteps + 200*24},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := open(&tc.in)
			b.count()
			b.serveRunning()
			looks, steps := maxLooks, 0
			for _, s := range b.serving.shares {
				looks, steps = looks+s.looks, steps+s.steps
			}
			b.serve()
			looks -= b.serving.looks
			for _, s := range b.serving.shares {
				looks, steps = looks-s.looks, steps-s.steps
			}
			t.Logf("it looks at %d node classes, and at %d in searches", looks, steps)
			if looks > tc.looks || steps > tc.steps {
				t.Errorf("%s It looks at %d node classes, and at %d in searches: want at most %d and %d", tc.reason, looks, steps, tc.looks, tc.steps)
			}
			grows := 0
			for _, p := range b.close().Pending {
				if p.Grows {
					grows++
				}
			}
			if grows > tc.grows {
				t.Errorf("%s %d services keep their old shapes, want at most %d", tc.reason, grows, tc.grows)
			}
		})
	}
}

func BenchmarkReserve(b *testing.B) {
	for name, in := range map[string]Input{"2000Changed": allChanged(10), "2000ChangedAllDifferent": allChanged(2000), "200Fragmented": fragmented(), "2000NewInPools": inPools(10)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Reserve(in)
			}
		})
	}
}
