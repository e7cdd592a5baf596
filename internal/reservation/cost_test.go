package reservation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
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
			if b.serving.packings > 0 {
				t.Error("nothing runs without a grant, and all is put onto nodes anew")
			}
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

// TestRefusalsAreCheap proves that what is refused at once costs no more in a large cluster, or for a large group. It
// counts allocations, since copies make them.
func TestRefusalsAreCheap(t *testing.T) {
	// Grants of many shapes fill a cluster, and a group of many replicas waits.
	full := func(n int) (*book, *unit) {
		in := Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 0, 0)), Now: noon, Quotas: map[string]Quota{"team": gpuQuota(0, 1<<20, 0)}, Requests: []CapacityRequest{required(request("a", 1, n), n/2)}}
		b := open(&in)
		for i := range int64(n) {
			b.counted[capacitytest.Requirements(1, i)] = 1
		}
		units := b.units(b.accounts[0])
		return b, &units[0]
	}
	cases := map[string]struct {
		reason string
		refuse func(b *book, u *unit)
	}{
		"Short": {reason: "The sums do not suffice, whatever else is counted.", refuse: func(b *book, u *unit) { b.try(u.wants[:1], false, nil) }},
		"Quota": {reason: "Nothing is held for a service that has not waited, so it does not matter what it needs first.", refuse: func(b *book, u *unit) { b.beyondQuota(u) }},
		"Hold":  {reason: "So it is with room.", refuse: func(b *book, u *unit) { b.refuse(u, refusal{why: "no"}); u.account.waits = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				b, u := full(n)
				return testing.AllocsPerRun(10, func() { tc.refuse(b, u) })
			}
			if few, many := cost(2), cost(2000); few != many {
				t.Errorf("%s It takes %v allocations, and %v in a small cluster", tc.reason, many, few)
			}
		})
	}
}

// TestWaitingIsCheap proves that each of many equal units for which nothing can be held costs no more beside many grants. Their service
// has waited for long.
func TestWaitingIsCheap(t *testing.T) {
	cases := map[string]struct {
		reason string
		quota  int64
		refuse func(b *book, u *unit)
	}{
		"Room":  {reason: "No node is large enough.", quota: 1 << 20, refuse: func(b *book, u *unit) { b.refuse(u, refusal{why: "no"}); u.account.waits = nil }},
		"Quota": {reason: "The quota is smaller.", quota: 4, refuse: func(b *book, u *unit) { b.beyondQuota(u) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				in := Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 0)), Now: noon, Quotas: map[string]Quota{"team": gpuQuota(0, tc.quota, 0)}, Requests: []CapacityRequest{request("a", 9, 1)}}
				b := open(&in)
				a := b.accounts[0]
				a.waitingSince = noon.Add(-time.Hour)
				for i := range n {
					shape := &capacity.PodRequirements{Requests: capacity.Resources{fmt.Sprintf("example.com/%d", i): 1000}}
					a.set(key.ReplicaID(fmt.Sprintf("9/%d", i)), granted{generation: 1, pods: b.pods(tally{shape: 1})})
				}
				units := b.units(a)
				return testing.AllocsPerRun(10, func() { tc.refuse(b, &units[0]) })
			}
			if few, many := cost(2), cost(2000); few != many {
				t.Errorf("%s It takes %v allocations, and %v beside few grants", tc.reason, many, few)
			}
		})
	}
}

// TestHoldingIsBounded proves that what room and quota are held for is looked for within the budget of the namespace. A service that has
// waited for long has many grants, and many different units that wait.
func TestHoldingIsBounded(t *testing.T) {
	const waiting = 300
	start := func(grants int, quota int64) (*book, []unit) {
		req := request("a", 9, slices.Repeat([]int{1}, waiting)...)
		for i, g := range req.Clusters[here].Groups {
			g.Replicas[0].Pods["w"] = int64(i + 1)
		}
		in := Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 0)), Now: noon, Quotas: map[string]Quota{"team": gpuQuota(0, quota, 0)}, Requests: []CapacityRequest{req}}
		for i := range grants {
			shape := capacity.PodRequirements{Requests: capacity.Resources{fmt.Sprintf("example.com/%d", i): 1000}}
			in.Ledger.Services = append(in.Ledger.Services, Service{ServiceID: req.ServiceID(), Shapes: []capacity.PodRequirements{shape}, Grants: []Grant{{Pods: []int64{1}, Replicas: []key.ReplicaID{key.ReplicaID(fmt.Sprint("w/", i))}, Started: true}}})
		}
		b := open(&in)
		b.count()
		b.accounts[0].waitingSince = noon.Add(-time.Hour)
		return b, b.units(b.accounts[0])
	}
	rooms := map[string]struct {
		reason string
		grants int
		want   int
	}{
		"Few":  {"All of them are looked at.", 2, waiting},
		"Many": {"Each time, as many shapes are put onto nodes. What is left of the budget decides.", 2000, 1},
	}
	for name, tc := range rooms {
		t.Run(name, func(t *testing.T) {
			b, units := start(tc.grants, 1<<20)
			for i := range units {
				b.refuse(&units[i], refusal{why: "no"})
			}
			if got := len(b.accounts[0].noRoom); got != tc.want || len(b.accounts[0].waits) != waiting {
				t.Errorf("%s It looks at %d of %d units, want %d", tc.reason, got, waiting, tc.want)
			}
		})
	}
	t.Run("Quota", func(t *testing.T) {
		cost := func(grants int) float64 {
			b, units := start(grants, 4)
			i := 0
			return testing.AllocsPerRun(waiting-1, func() { b.beyondQuota(&units[i]); i++ })
		}
		if few, many := cost(2), cost(2000); few != many {
			t.Errorf("A unit takes %v allocations, and %v beside few grants", many, few)
		}
	})
}

// TestSums proves that the sums of what is granted follow each grant.
func TestSums(t *testing.T) {
	growing := grown(request("a", 4, 2, 1))
	growing.PodRequirements["w"] = *capacitytest.Requirements(2, 3)
	cases := map[string]struct {
		reason   string
		requests []CapacityRequest
	}{
		"New":   {"What is granted is added.", []CapacityRequest{request("a", 1, 1, 2), request("b", 2, 3)}},
		"Grows": {"What it replaces is gone.", []CapacityRequest{growing}},
		"Runs":  {"So is what runs without a grant.", []CapacityRequest{running(request("a", 4, 3), "0/2")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := open(&Input{
				Cluster: here, Free: twoPools(2, 2), Now: noon, Quotas: map[string]Quota{"team": gpuQuota(0, 100, 0)},
				Ledger: Ledger{Services: []Service{withGPUs(reserved("a", "0/0", "0/1"), 1)}}, Requests: tc.requests,
			})
			b.count()
			b.serveRunning()
			b.serve()
			for _, a := range b.accounts {
				want := tally{}
				for _, g := range a.granted {
					want.add(g.pods, 1)
				}
				if diff := cmp.Diff(b.pods(want).id, b.pods(a.all).id); diff != "" || len(want) == 0 {
					t.Errorf("%s %s has other pods.\n-want +got:\n%s", tc.reason, a.Name, diff)
				}
				if diff := cmp.Diff(b.amount(b.pods(want)), a.amount); diff != "" {
					t.Errorf("%s %s has other amounts.\n-want +got:\n%s", tc.reason, a.Name, diff)
				}
			}
		})
	}
}

// combined is a request of some groups, each of which has other numbers of pods of two shapes, and a cluster whose pools have labels. If some are
// too large, every other one fits no node.
func combined(groups int, large bool) Input {
	req := request("a", 1, slices.Repeat([]int{1}, groups)...)
	req.PodRequirements["x"], req.PodRequirements["large"] = *capacitytest.Requirements(1, 2), *capacitytest.Requirements(9, 1)
	for i, g := range req.Clusters[here].Groups {
		g.Replicas[0].Pods = map[string]int64{"w": int64(1 + i%100), "x": int64(1 + i/100)}
		if large && i%2 == 1 {
			g.Replicas[0].Pods = map[string]int64{"w": int64(i), "large": 1}
		}
	}
	return Input{Cluster: here, Free: twoPools(5000, 5000), Now: noon, Requests: []CapacityRequest{req}}
}

// TestChoosingIsBounded proves that what it costs to choose pools counts. Each set of pods that differs is put onto nodes by itself, however
// few shapes there are.
func TestChoosingIsBounded(t *testing.T) {
	in := combined(400, false)
	b := open(&in)
	b.count()
	var all []want
	for _, u := range b.units(b.accounts[0]) {
		all = append(all, u.wants...)
	}
	b.serving.looks = 1500
	if b.grantAll(all) {
		t.Error("400 sets of pods take as little as two")
	}
	if !b.grantAll(all[:100]) || b.serving.looks > 1000 {
		t.Errorf("100 sets of pods are not granted, or count for nothing: %d node classes are left", b.serving.looks)
	}
	if cost, why := b.try(all[100:], false, new(int)); why != "" || cost < 300 {
		t.Errorf("one service may choose within its share, and it counts: %d, %s", cost, why)
	}
}

// TestTogetherIsBounded proves that once a call has looked at enough, it tries several units at once a few times more, and then each alone.
func TestTogetherIsBounded(t *testing.T) {
	in := combined(4000, true)
	b := open(&in)
	b.hasLabels = false
	b.count()
	b.serving.looks = 100
	b.serve()
	if got := b.serving.packings; got != minPackings || b.serving.looks < -1000 {
		t.Errorf("it tries several units %d times more, want %d: %d node classes are left", got, minPackings, b.serving.looks)
	}
}

// TestAddingUpCounts proves that what is refused by the sums counts, too: they are those of all node classes. A service requests
// thousands of different numbers of pods that do not fit, and the cluster has thousands of different nodes.
func TestAddingUpCounts(t *testing.T) {
	const units = 4000
	req := request("a", 1, slices.Repeat([]int{1}, units)...)
	for i, g := range req.Clusters[here].Groups {
		g.Replicas[0].Pods["w"] = int64(1<<20 + i)
	}
	for _, tc := range []struct {
		reason         string
		classes, least int
		all            bool
	}{
		{"In a small cluster, all of them are refused.", 100, 0, true},
		{"In a large one, some are left for the next call.", 3200, 1000, false},
	} {
		in := Input{Cluster: here, Free: pool(), Now: noon, Requests: []CapacityRequest{req}}
		for i := range int64(tc.classes) {
			in.Free.Pools[0].Free = append(in.Free.Pools[0].Free, capacitytest.Nodes(1, 8, 64+i))
		}
		b := open(&in)
		b.count()
		b.serve()
		if got := len(b.serving.failed); got < tc.least || (got == units) != tc.all || len(b.accounts[0].waits) != units {
			t.Errorf("%s %d of %d are refused", tc.reason, got, units)
		}
		if !tc.all && b.serving.packings != minPackings {
			t.Errorf("%s It tries several at once %d times more, want %d", tc.reason, b.serving.packings, minPackings)
		}
	}
}

// TestWantsOf proves that units that come one after the other share what they want with the list of all, and that others do not.
func TestWantsOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		units  []int
		want   []key.ReplicaID
		shared bool
	}{
		"All":  {"A copy for each try would take as much again.", []int{0, 1, 2}, []key.ReplicaID{"0/0", "0/1", "1/0", "2/0"}, true},
		"Some": {"So it is with those in between.", []int{1, 2}, []key.ReplicaID{"1/0", "2/0"}, true},
		"Gap":  {"What is hopeless is left out.", []int{0, 2}, []key.ReplicaID{"0/0", "0/1", "2/0"}, false},
		"None": {"All of it may be hopeless.", nil, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := open(&Input{Cluster: here, Free: pool(), Requests: []CapacityRequest{request("a", 1, 2, 1, 1)}, Now: noon})
			units := b.units(b.accounts[0])
			var some []*unit
			for _, i := range tc.units {
				some = append(some, &units[i])
			}
			wants := b.wantsOf(some)
			var got []key.ReplicaID
			shared := false
			for i := range wants {
				got = append(got, wants[i].replica.Name)
				shared = shared || &wants[i] == &b.serving.wants[some[0].at]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || shared != tc.shared {
				t.Errorf("%s They are a part of the list: %t\n-want +got:\n%s", tc.reason, shared, diff)
			}
		})
	}
}

// TestToStart proves which replicas a group needs first, and that each of a large group is looked at once.
func TestToStart(t *testing.T) {
	cases := map[string]struct {
		reason string
		all    []int
		// required are those above this.
		above         int
		first, others []int
	}{
		"Required": {reason: "All that are required are needed.", all: []int{1, 5, 2, 6}, above: 4, first: []int{5, 6}, others: []int{1, 2}},
		"None":     {reason: "Otherwise any of them suffices.", all: []int{1, 2, 3}, above: 4, first: []int{1}, others: []int{2, 3}},
		"All":      {reason: "There are no others.", all: []int{5, 6}, above: 4, first: []int{5, 6}},
		"Empty":    {reason: "Nothing is needed."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			looked := 0
			first, others := toStart(tc.all, func(n int) bool { looked++; return n > tc.above })
			if diff := cmp.Diff([][]int{tc.first, tc.others}, [][]int{first, others}, cmpopts.EquateEmpty()); diff != "" || looked != len(tc.all) {
				t.Errorf("%s It looks at %d of %d. -want +got:\n%s", tc.reason, looked, len(tc.all), diff)
			}
		})
	}
}
