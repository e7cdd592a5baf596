package capacity

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// nodesOf is a pool of nodes of 8 GPUs, by the GPUs that are free on each.
func nodesOf(free ...int64) Pool {
	p := NewPool("p", nil, []NodeClass{{Count: int64(len(free)), Free: gpus(8)}})
	p.Free = nil
	for _, n := range free {
		p.Free = append(p.Free, NodeClass{Count: 1, Free: gpus(n)})
	}
	return p
}

func gpus(n int64) Resources { return Resources{"nvidia.com/gpu": 1000 * n} }

func TestEstimate(t *testing.T) {
	empty := NewPool("p", nil, []NodeClass{{Count: 2, Free: Resources{"cpu": 64_000, "nvidia.com/gpu": 4000}}})
	scarce := empty
	scarce.Free = []NodeClass{{Count: 2, Free: Resources{"cpu": 16_000, "nvidia.com/gpu": 4000}}}
	quarter := NewPool("p", nil, []NodeClass{{Count: 1, Free: gpus(4)}})
	quarter.Free = []NodeClass{{Count: 1, Free: gpus(1)}}
	cases := map[string]struct {
		reason string
		pool   Pool
		want   Estimate
	}{
		"Empty":       {"Each node takes a pod of a whole node, or 8 of an eighth.", nodesOf(8, 8), Estimate{2, 4, 8, 16}},
		"Partly":      {"Each size is counted by itself.", nodesOf(7, 4, 1), Estimate{0, 2, 5, 12}},
		"Full":        {"Nothing fits.", nodesOf(0, 0), Estimate{}},
		"NoNodes":     {"Nothing fits.", nodesOf(), Estimate{}},
		"HalfADevice": {"Half a device is not free, so an eighth of a node of 4 devices stands for none.", quarter, Estimate{0, 0, 1, 2}},
		"AllCount":    {"Without CPU, a device is of no use.", scarce, Estimate{0, 0, 2, 4}},
		"Both":        {"All of it is free.", empty, Estimate{2, 4, 8, 16}},
		"Overcommit":  {"Less than nothing is nothing.", nodesOf(-3, 8), Estimate{1, 2, 4, 8}},
		"Most":        {"No amount overflows.", NewPool("p", nil, []NodeClass{{Count: math.MaxInt64, Free: Resources{"cpu": math.MaxInt64}}}), Estimate{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}},
		"Smaller":     {"A node without all of its devices is less than a whole one.", NewPool("p", nil, []NodeClass{{Count: 99, Free: gpus(8)}, {Count: 1, Free: gpus(7)}}), Estimate{99, 199, 399, 799}},
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

// TestNode proves of which node an estimate counts parts.
func TestNode(t *testing.T) {
	of := func(count, gpus, cpus int64) NodeClass {
		return NodeClass{Count: count, Free: Resources{"nvidia.com/gpu": 1000 * gpus, "cpu": 1000 * cpus}}
	}
	tainted := func(n NodeClass) NodeClass {
		n.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		return n
	}
	cases := map[string]struct {
		reason string
		nodes  []NodeClass
		want   Resources
	}{
		"None":      {reason: "There is none."},
		"Typed":     {reason: "A pool may be typed in with no nodes.", nodes: []NodeClass{of(0, 8, 64)}},
		"Broken":    {reason: "One node lost a device.", nodes: []NodeClass{of(1, 7, 64), of(99, 8, 64)}, want: of(1, 8, 64).Free},
		"Few":       {reason: "Large pods fit onto few nodes.", nodes: []NodeClass{of(9, 4, 32), of(1, 8, 64)}, want: of(1, 8, 64).Free},
		"NoDevices": {reason: "Pods of a service want devices.", nodes: []NodeClass{{Count: 9, Free: Resources{"cpu": 64_000}}, of(1, 8, 32)}, want: of(1, 8, 32).Free},
		"Commonest": {reason: "One node with more CPU would make halves of all others.", nodes: []NodeClass{of(1, 8, 128), of(9, 8, 64)}, want: of(1, 8, 64).Free},
		"AlsoTaint": {reason: "Nodes with taints are no others.", nodes: []NodeClass{of(2, 8, 64), of(3, 8, 32), tainted(of(2, 8, 64))}, want: of(1, 8, 64).Free},
		"AsMany":    {reason: "The smaller ones make whole nodes of all.", nodes: []NodeClass{of(2, 8, 65), of(2, 8, 64)}, want: of(1, 8, 64).Free},
		"OnlyCPU":   {reason: "Without devices, the commonest count.", nodes: []NodeClass{{Count: 1, Free: Resources{"cpu": 64_000}}, {Count: 9, Free: Resources{"cpu": 8_000}}}, want: Resources{"cpu": 8_000}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := NewPool("p", nil, tc.nodes)
			if diff := cmp.Diff(tc.want, pool.Node()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWholeNodes proves that pods of a whole node fit onto what is estimated of a pool of unequal nodes, and no more of them than there
// are such nodes.
func TestWholeNodes(t *testing.T) {
	for name, nodes := range map[string][]NodeClass{
		"a broken device": {{Count: 99, Free: gpus(8)}, {Count: 1, Free: gpus(7)}},
		"two sizes":       {{Count: 200, Free: gpus(4)}, {Count: 99, Free: gpus(8)}},
	} {
		p := NewPool("p", nil, nodes)
		for pods, want := range map[int64]bool{99: true, 100: false} {
			free := Free{Pools: []Pool{{Estimated: true, Free: p.Estimate().Nodes(p.Node(), nil)}}}
			if got, why := free.Allocate([]PodSet{{Requirements: &PodRequirements{Requests: gpus(8)}, Count: pods}}); got != want {
				t.Errorf("%s: %d pods fit: want %t, got %t: %s", name, pods, want, got, why)
			}
		}
	}
}

// TestEmpty proves that a pool of unequal nodes on which nothing runs is known to be empty.
func TestEmpty(t *testing.T) {
	p := NewPool("p", nil, []NodeClass{{Count: 1, Free: gpus(8)}, {Count: 4, Free: gpus(4)}})
	if diff := cmp.Diff(Estimate{1, 6, 12, 24}, p.Empty()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(p.Estimate(), p.Estimate().Steady(Estimate{}, p.Empty())); diff != "" {
		t.Errorf("after it was full: -want, +got:\n%s", diff)
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
		if r.IntN(2) == 0 { // Nodes of different sizes, on which nothing runs.
			nodes := []NodeClass{{Count: 1, Free: gpus(8)}}
			for _, n := range free {
				nodes = append(nodes, NodeClass{Count: 1, Free: gpus(n)})
			}
			pool = NewPool("p", nil, nodes)
		}
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
