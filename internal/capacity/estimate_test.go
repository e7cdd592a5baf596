package capacity

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nodesOf is a pool of nodes of 8 GPUs, by the GPUs that are free on each.
func nodesOf(free ...int64) Pool {
	p := Pool{Name: "p", NodeCount: int64(len(free)), Total: Resources{"nvidia.com/gpu": 8000 * int64(len(free))}}
	for _, n := range free {
		p.Free = append(p.Free, NodeClass{Count: 1, Free: Resources{"nvidia.com/gpu": 1000 * n}})
	}
	return p
}

func TestEstimate(t *testing.T) {
	empty := Pool{NodeCount: 2, Total: Resources{"cpu": 128_000, "nvidia.com/gpu": 8000}, Free: []NodeClass{{Count: 2, Free: Resources{"cpu": 64_000, "nvidia.com/gpu": 4000}}}}
	scarce := empty
	scarce.Free = []NodeClass{{Count: 2, Free: Resources{"cpu": 16_000, "nvidia.com/gpu": 4000}}}
	cases := map[string]struct {
		reason string
		pool   Pool
		want   Estimate
	}{
		"Empty":   {"Each node takes a pod of a whole node, or 8 of an eighth.", nodesOf(8, 8), Estimate{2, 4, 8, 16}},
		"Partly":  {"Each size is counted by itself.", nodesOf(7, 4, 1), Estimate{0, 2, 5, 12}},
		"Full":    {"Nothing fits.", nodesOf(0, 0), Estimate{}},
		"NoNodes": {"Nothing fits.", nodesOf(), Estimate{}},
		"HalfADevice": {"Half a device is not free, so an eighth of a node of 4 devices stands for none.", Pool{
			NodeCount: 1, Total: Resources{"nvidia.com/gpu": 4000}, Free: []NodeClass{{Count: 1, Free: Resources{"nvidia.com/gpu": 1000}}},
		}, Estimate{0, 0, 1, 2}},
		"AllCount":   {"Without CPU, a device is of no use.", scarce, Estimate{0, 0, 2, 4}},
		"Both":       {"All of it is free.", empty, Estimate{2, 4, 8, 16}},
		"Overcommit": {"Less than nothing is nothing.", nodesOf(-3, 8), Estimate{1, 2, 4, 8}},
		"Most":       {"No amount overflows.", Pool{NodeCount: 1, Total: Resources{"cpu": math.MaxInt64}, Free: []NodeClass{{Count: math.MaxInt64, Free: Resources{"cpu": math.MaxInt64}}}}, Estimate{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.pool.Estimate()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSteady(t *testing.T) {
	empty := Estimate{100, 200, 400, 800}
	cases := map[string]struct {
		reason           string
		before, now, all Estimate
		want             Estimate
	}{
		"Close":    {"It is about right.", Estimate{30, 60, 120, 240}, Estimate{11, 21, 41, 81}, empty, Estimate{30, 60, 120, 240}},
		"Fewer":    {"A third of it is left.", Estimate{30, 60, 120, 240}, Estimate{10, 20, 40, 80}, empty, Estimate{10, 20, 40, 80}},
		"More":     {"There is three times as much.", Estimate{10, 20, 40, 80}, Estimate{30, 60, 120, 240}, empty, Estimate{30, 60, 120, 240}},
		"UsedUp":   {"Nobody should ask for what is used up.", Estimate{1, 2, 4, 8}, Estimate{0, 0, 0, 1}, empty, Estimate{0, 0, 0, 1}},
		"LastNode": {"The last node comes and goes.", Estimate{0, 0, 0, 0}, Estimate{1, 2, 4, 8}, empty, Estimate{0, 0, 0, 0}},
		"TwoNodes": {"Two nodes are free.", Estimate{0, 0, 0, 0}, Estimate{2, 4, 8, 16}, empty, Estimate{2, 4, 8, 16}},
		"Unequal":  {"Half of two unequal nodes.", Estimate{0, 0, 0, 0}, Estimate{1, 3, 6, 13}, Estimate{2, 4, 8, 16}, Estimate{1, 3, 6, 13}},
		"AllFree":  {"Nothing runs.", Estimate{1, 2, 4, 8}, Estimate{2, 4, 8, 16}, Estimate{2, 4, 8, 16}, Estimate{2, 4, 8, 16}},
		"OneNode":  {"There is only one.", Estimate{0, 0, 0, 0}, Estimate{1, 2, 4, 8}, Estimate{1, 2, 4, 8}, Estimate{1, 2, 4, 8}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.now.Steady(tc.before, tc.all)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEstimateIsHonest shows that as many pods of each size fit as an estimate says, and no more. It counts without an Estimate.
func TestEstimateIsHonest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		free := make([]int64, 1+r.IntN(6))
		for i := range free {
			free[i] = r.Int64N(9)
		}
		pool := nodesOf(free...)
		e := pool.Estimate()
		estimated := Pool{Free: e.Nodes(pool.Node(), nil)}
		for i, gpus := range []int64{8, 4, 2, 1} {
			pod := &PodRequirements{Requests: Resources{"nvidia.com/gpu": 1000 * gpus}}
			for is, p := range map[string]Pool{"nodes": pool, "estimated nodes": estimated} {
				most := &Free{Pools: []Pool{p}}
				var fits int64
				for fits = 0; ; fits++ {
					if ok, _ := most.Allocate([]PodSet{{Requirements: pod, Count: 1}}); !ok {
						break
					}
				}
				if fits != e[i] {
					t.Fatalf("%d pods of %d GPUs fit onto %s with %v free, and the estimate is %v", fits, gpus, is, free, e)
				}
			}
		}
	}
}

// TestSteadySettles shows that services that come and go by turns do not change a steady estimate.
func TestSteadySettles(t *testing.T) {
	for _, start := range []int64{1, 2, 3, 5, 40} {
		t.Run(strconv.FormatInt(start, 10), func(t *testing.T) {
			empty, is := Estimate{100, 200, 400, 800}, Estimate{start, 2 * start, 4 * start, 8 * start}
			seen := is
			changes := 0
			for i := range 20 {
				now := start - int64(i%2)
				next := Estimate{now, 2 * now, 4 * now, 8 * now}.Steady(seen, empty)
				if next != seen {
					changes++
				}
				seen = next
			}
			if changes > 1 {
				t.Errorf("it changed %d times, want 1 at most", changes)
			}
		})
	}
}
