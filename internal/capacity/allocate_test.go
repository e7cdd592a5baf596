package capacity_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
)

func TestAllocate(t *testing.T) {
	cases := map[string]struct {
		reason  string
		free    capacity.Free
		podSets []capacity.PodSet
		want    string
		// left is the expected free capacity afterwards.
		left []capacity.NodeClass
	}{
		"Fits": {
			reason:  "A pod that uses a part of a node takes only that part.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(2, 8, 64))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(1, 8), 3}},
			left:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64), capacitytest.Nodes(1, 5, 40)},
		},
		"WholeNodesStayWhole": {
			reason:  "Nodes that are partly used are filled first.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(1, 8, 64), capacitytest.Nodes(1, 2, 64))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(2, 1), 1}},
			left:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64), capacitytest.Nodes(1, 0, 63)},
		},
		"Searched": {
			reason:  "Placing the largest pods first fails here. The node with 6 GPUs has to take both pods of 3, the one with 4 both pods of 2.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(1, 6, 64), capacitytest.Nodes(1, 4, 64))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(3, 1), 2}, {capacitytest.Requirements(2, 1), 2}},
			left:    []capacity.NodeClass{capacitytest.Nodes(2, 0, 62)},
		},
		"Short": {
			reason:  "The message says how much is missing in total.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(3, 8, 64))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(8, 1), 4}},
			want:    "24 of 24 nvidia.com/gpu free in pool a, 8 short",
			left:    []capacity.NodeClass{capacitytest.Nodes(3, 8, 64)},
		},
		"ShortOfCPU": {
			reason:  "Every resource counts.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(1, 8, 4)), capacitytest.Pool("b", capacitytest.Nodes(1, 8, 4))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(1, 5), 2}},
			want:    "8 of 8 cpu free in pools a, b, 2 short",
		},
		"Fragmented": {
			reason:  "8 GPUs on two nodes do not fit a pod that needs 8 on one.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(2, 4, 64))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(8, 1), 1}},
			want:    "1 pod does not fit: no node has 8 nvidia.com/gpu, 1 cpu free, although the nodes together have enough",
			left:    []capacity.NodeClass{capacitytest.Nodes(2, 4, 64)},
		},
		"Selected": {
			reason:  "A pod goes only to pools that its node selector selects.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(1, 8, 64)), capacitytest.Pool("b", capacitytest.Nodes(1, 2, 64))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(4, 1, "b"), 1}},
			want:    "2 of 2 nvidia.com/gpu free in pool b, 2 short",
		},
		"NoPool": {
			reason:  "No pool has the label that the pod selects.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(1, 8, 64))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(1, 1, "c"), 1}},
			want:    "no pool has the labels pool=c",
		},
		"Tainted": {
			reason:  "Nodes with a taint that the pod does not tolerate take none of it.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Tainted(capacitytest.Nodes(2, 8, 64), "b"))}},
			podSets: []capacity.PodSet{{capacitytest.Tolerating(capacitytest.Requirements(8, 1), "c"), 1}},
			want:    "the nodes of pool a have taints that the pods do not tolerate: dedicated=b:NoSchedule",
		},
		"TaintedPools": {
			reason:  "The message has each taint once.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Tainted(capacitytest.Nodes(1, 8, 64), "b"), capacitytest.Tainted(capacitytest.Nodes(1, 4, 64), "b")), capacitytest.Pool("b", capacitytest.Tainted(capacitytest.Nodes(1, 8, 64), "c"))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(8, 1), 1}},
			want:    "the nodes of pools a, b have taints that the pods do not tolerate: dedicated=b:NoSchedule, dedicated=c:NoSchedule",
		},
		"Tolerated": {
			reason:  "A pod that tolerates a taint leaves the other nodes to those that do not.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(1, 4, 64), capacitytest.Tainted(capacitytest.Nodes(1, 8, 64), "b"))}},
			podSets: []capacity.PodSet{{capacitytest.Tolerating(capacitytest.Requirements(4, 1), "b"), 1}},
			left:    []capacity.NodeClass{capacitytest.Nodes(1, 4, 64), capacitytest.Tainted(capacitytest.Nodes(1, 4, 63), "b")},
		},
		"ToleratesOne": {
			reason:  "A pod has to tolerate all taints of a node.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Tainted(capacitytest.Nodes(1, 8, 64), "b", "c"))}},
			podSets: []capacity.PodSet{{capacitytest.Tolerating(capacitytest.Requirements(8, 1), "b"), 1}},
			want:    "the nodes of pool a have taints that the pods do not tolerate: dedicated=c:NoSchedule",
		},
		"PartlyTainted": {
			reason:  "What is free on nodes with a taint is of no use to the pods.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(1, 8, 64), capacitytest.Tainted(capacitytest.Nodes(2, 8, 64), "b"))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(8, 1), 2}, {capacitytest.Tolerating(capacitytest.Requirements(8, 1), "b"), 1}},
			want:    "8 of 24 nvidia.com/gpu free in pool a, 8 short, without the nodes that have taints that the pods do not tolerate: dedicated=b:NoSchedule",
			left:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64), capacitytest.Tainted(capacitytest.Nodes(2, 8, 64), "b")},
		},
		"NoNodes": {
			reason:  "A pool without nodes has no taints.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Tainted(capacitytest.Nodes(0, 8, 64), "b"))}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(8, 1), 1}},
			want:    "pool a has no nvidia.com/gpu",
		},
		"Uncounted": {
			reason:  "A pool that leaves out memory has enough of it. A pool that leaves out a device has none.",
			free:    capacity.Free{Pools: []capacity.Pool{capacity.NewPool("a", nil, []capacity.NodeClass{{Count: 1, Free: capacity.Resources{capacitytest.GPU: 8000}}})}},
			podSets: []capacity.PodSet{{&capacity.PodRequirements{Requests: capacity.Resources{"memory": 1 << 60, "amd.com/gpu": 1000}}, 1}},
			want:    "pool a has no amd.com/gpu",
		},
		"OtherNames": {
			reason:  "Nodes of one pool name different resources. A device that a node does not name is not there, and a CPU that it does not name is no limit.",
			free:    capacity.Free{Pools: []capacity.Pool{capacity.NewPool("a", nil, []capacity.NodeClass{{Count: 1, Free: capacity.Resources{capacitytest.GPU: 8000}}, {Count: 2, Free: capacity.Resources{"cpu": 8000}}})}},
			podSets: []capacity.PodSet{{capacitytest.Requirements(1, 80), 1}, {capacitytest.Requirements(0, 8), 1}},
			left:    []capacity.NodeClass{{Count: 1, Free: capacity.Resources{capacitytest.GPU: 7000}}, {Count: 1, Free: capacity.Resources{"cpu": 8000}}, {Count: 1, Free: capacity.Resources{"cpu": 0}}},
		},
		"UncountedTwice": {
			reason:  "Several pools have none.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(1, 8, 64)), capacitytest.Pool("b", capacitytest.Nodes(1, 8, 64))}},
			podSets: []capacity.PodSet{{&capacity.PodRequirements{Requests: capacity.Resources{"amd.com/gpu": 1000}}, 1}},
			want:    "pools a, b have no amd.com/gpu",
		},
		"Pods": {
			reason:  "A node limits the number of its pods.",
			free:    capacity.Free{Pools: []capacity.Pool{capacity.NewPool("a", nil, []capacity.NodeClass{{Count: 2, Free: capacity.Resources{"pods": 3000}}})}},
			podSets: []capacity.PodSet{{&capacity.PodRequirements{}, 7}},
			want:    "6 of 6 pods free in pool a, 1 short",
		},
		"Nothing": {
			reason:  "No pods always fit.",
			free:    capacity.Free{},
			podSets: []capacity.PodSet{{capacitytest.Requirements(1, 1), 0}},
		},
		"Enormous": {
			reason:  "Requests beyond int64 do not overflow, and do not fit.",
			free:    capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(5000, 8, 64))}},
			podSets: []capacity.PodSet{{&capacity.PodRequirements{Requests: capacity.ResourcesOf(corev1.ResourceList{capacitytest.GPU: resource.MustParse("9E")})}, 1 << 20}},
			want:    "40k of 40k nvidia.com/gpu free in pool a, 9223372036814775807m short",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			free := tc.free.Clone()
			ok, got := free.Allocate(tc.podSets)
			if ok != (tc.want == "") || !ok && got != tc.want {
				t.Errorf("%s\nwant %q, got %t %q", tc.reason, tc.want, ok, got)
			}
			if tc.left != nil {
				if diff := cmp.Diff(tc.left, free.Pools[0].Classes()); diff != "" {
					t.Errorf("%s\nleft: -want +got:\n%s", tc.reason, diff)
				}
			}
			if !ok {
				if diff := cmp.Diff(tc.free, free); diff != "" {
					t.Errorf("pods that do not fit take nothing: -want +got:\n%s", diff)
				}
			}
		})
	}
}

// randomTeams returns one of two teams, both, or most often none.
func randomTeams(random *rand.Rand) []string {
	return [][]string{nil, nil, nil, {"x"}, {"y"}, {"x", "y"}}[random.IntN(6)]
}

// randomCase returns free capacity of up to 4 nodes, and up to 9 pods.
func randomCase(random *rand.Rand) (capacity.Free, []capacity.PodSet) {
	free := capacity.Free{}
	for i := range 1 + random.IntN(2) {
		var nodes []capacity.NodeClass
		for range 1 + random.IntN(2) {
			nodes = append(nodes, capacitytest.Tainted(capacitytest.Nodes(1, random.Int64N(9), random.Int64N(9)), randomTeams(random)...))
		}
		free.Pools = append(free.Pools, capacitytest.Pool(string(rune('a'+i)), nodes...))
	}
	return free, randomPodSets(random)
}

func randomPodSets(random *rand.Rand) []capacity.PodSet {
	var podSets []capacity.PodSet
	for range 1 + random.IntN(3) {
		s := capacitytest.Requirements(random.Int64N(5), random.Int64N(5))
		if random.IntN(3) == 0 {
			s = capacitytest.Requirements(random.Int64N(5), random.Int64N(5), string(rune('a'+random.IntN(2))))
		}
		podSets = append(podSets, capacity.PodSet{capacitytest.Tolerating(s, randomTeams(random)...), random.Int64N(4)})
	}
	return podSets
}

// fits tries every way to put pods onto nodes. It is the oracle of TestAllocateIsExact.
func fits(free capacity.Free, podSets []capacity.PodSet) bool {
	type node struct {
		pool   *capacity.Pool
		left   capacity.Resources
		taints []corev1.Taint
	}
	tolerates := func(pod *capacity.PodRequirements, team string) bool {
		return slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return t.Value == team })
	}
	var nodes []node
	for i := range free.Pools {
		for _, n := range free.Pools[i].Free {
			for range n.Count {
				nodes = append(nodes, node{&free.Pools[i], n.Free, n.Taints})
			}
		}
	}
	var pods []*capacity.PodRequirements
	for _, n := range podSets {
		for range n.Count {
			pods = append(pods, n.Requirements)
		}
	}
	var tryFrom func(int) bool
	tryFrom = func(i int) bool {
		if i == len(pods) {
			return true
		}
		for j, n := range nodes {
			if want := pods[i].NodeSelector["pool"]; want != "" && want != n.pool.Name {
				continue
			}
			if slices.ContainsFunc(n.taints, func(t corev1.Taint) bool { return !tolerates(pods[i], t.Value) }) {
				continue
			}
			left := capacity.Resources{}
			for name, amount := range n.left {
				left[name] = amount - pods[i].Requests[name]
			}
			if left[capacitytest.GPU] < 0 || left[capacitytest.CPU] < 0 {
				continue
			}
			nodes[j].left = left
			if tryFrom(i + 1) {
				return true
			}
			nodes[j].left = n.left
		}
		return false
	}
	return tryFrom(0)
}

// TestAllocateIsExact proves that Allocate succeeds exactly where some way exists, for cases
// that are small enough to try all of them.
func TestAllocateIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	fitted := 0
	for range 20000 {
		free, podSets := randomCase(random)
		before := free.Clone()
		ok, why := free.Allocate(podSets)
		if want := fits(before, podSets); ok != want {
			t.Fatalf("want %t, got %t (%s): %s of %v", want, ok, why, capacitytest.Text(podSets), before)
		}
		if ok {
			fitted++
			capacitytest.Conserved(t, before, free, podSets)
		} else if why == "" {
			t.Fatalf("no reason is given: %s of %v", capacitytest.Text(podSets), before)
		}
	}
	if fitted < 2000 || fitted > 18000 {
		t.Errorf("%d of 20000 random cases fit: they prove nothing", fitted)
	}
}

// TestAllocateOrder proves that neither the order of the pod sets nor that of the nodes
// matters.
func TestAllocateOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		free, podSets := randomCase(random)
		one, two := free.Clone(), free.Clone()
		shuffled := slices.Clone(podSets)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for _, p := range two.Pools {
			slices.Reverse(p.Free)
		}
		ok, why := one.Allocate(podSets)
		again, whyAgain := two.Allocate(shuffled)
		if ok != again || why != whyAgain {
			t.Fatalf("%t %q in one order, %t %q in another: %s of %v", ok, why, again, whyAgain, capacitytest.Text(podSets), free)
		}
		for i := range one.Pools {
			if diff := cmp.Diff(one.Pools[i].Classes(), two.Pools[i].Classes()); diff != "" {
				t.Fatalf("what is left depends on the order: %s of %v:\n%s", capacitytest.Text(podSets), free, diff)
			}
		}
	}
}

// TestForceAllocate proves that pods that do not all fit take as much as there is.
func TestForceAllocate(t *testing.T) {
	free := capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(2, 8, 64))}}
	left := free.ForceAllocate([]capacity.PodSet{{capacitytest.Requirements(8, 1), 3}})
	if diff := cmp.Diff([]capacity.PodSet{{capacitytest.Requirements(8, 1), 1}}, left); diff != "" {
		t.Errorf("three pods do not fit onto two nodes: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]capacity.NodeClass{capacitytest.Nodes(2, 0, 63)}, free.Pools[0].Classes()); diff != "" {
		t.Errorf("two of them take the nodes: -want +got:\n%s", diff)
	}
}

// TestClose proves that room is kept only on nodes that the pods may go to.
func TestClose(t *testing.T) {
	free := capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(2, 4, 64), capacitytest.Tainted(capacitytest.Nodes(2, 8, 64), "x"))}}
	free.Close(capacity.PodSet{Requirements: capacitytest.Requirements(8, 1), Count: 1}, &capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(2, 8, 64))}})
	want := []capacity.NodeClass{capacitytest.Tainted(capacitytest.Nodes(2, 8, 64), "x"), capacitytest.Nodes(1, 4, 64), capacitytest.Nodes(1, 0, 0)}
	if diff := cmp.Diff(want, free.Pools[0].Classes()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNodeResources proves that nodes of one kind that differ by some bytes have equal
// resources.
func TestNodeResources(t *testing.T) {
	list := func(memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse("63770m"), "memory": resource.MustParse(memory), "hugepages-1Gi": {}, "pods": resource.MustParse("110")}
	}
	want := capacity.Resources{"cpu": 63770, "memory": 502 << 30 * 1000, "pods": 110000}
	for _, memory := range []string{"527951112Ki", "527951032Ki"} {
		if diff := cmp.Diff(want, capacity.NodeResources(list(memory))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", memory, diff)
		}
	}
	for _, bytes := range []int64{0, 1, 255, 256, 1 << 40, 1<<53 + 1} {
		q := *resource.NewQuantity(bytes, resource.BinarySI)
		got := capacity.NodeResources(corev1.ResourceList{"memory": q})["memory"] / 1000
		if got > bytes || bytes-got > bytes/100 {
			t.Errorf("%d bytes are %d", bytes, got)
		}
	}
}

// oddNodes returns nodes that all differ, and pods that do not fit although the sums suffice:
// each node has an odd number of GPUs.
func oddNodes(classes int64) (capacity.Free, []capacity.PodSet) {
	nodes := make([]capacity.NodeClass, 0, classes)
	for i := range classes {
		nodes = append(nodes, capacitytest.Nodes(1, 3, 64+i))
	}
	return capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", nodes...)}}, []capacity.PodSet{{capacitytest.Requirements(2, 1), classes}, {capacitytest.Requirements(1, 1), classes / 2}, {capacitytest.Requirements(2, 2), classes / 4}}
}

// TestAllocateEnds proves that a search stops once it has looked at as many node classes as it
// may. Each pending service is tried on each call, and an unbounded search would take minutes.
func TestAllocateEnds(t *testing.T) {
	const classes = 500
	free, podSets := oddNodes(classes)
	if ok, _ := free.Allocate(podSets); ok {
		t.Fatal("the pods cannot fit")
	}
	steps := capacity.SearchSteps
	if capacity.Search(&free, podSets, &steps) {
		t.Fatal("the pods cannot fit")
	}
	if steps >= 0 || steps < -2*classes {
		t.Errorf("the search looked at %d classes, and may look at %d", capacity.SearchSteps-steps, capacity.SearchSteps)
	}
}

// manyShapes returns nodes, and as many pods as fit onto them, all of which differ.
func manyShapes(shapes int64) (capacity.Free, []capacity.PodSet) {
	const each = 8 // Pods of a node.
	podSets := make([]capacity.PodSet, shapes)
	for i := range shapes {
		podSets[i] = capacity.PodSet{capacitytest.Requirements(1, 1+i), 1}
	}
	return capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(shapes/each, each, each*shapes))}}, podSets
}

// TestPackShapes proves that a pod set looks at no more rows than there are nodes, however many others came before it. Tenants
// decide how many pod sets differ, and cannot add nodes.
func TestPackShapes(t *testing.T) {
	for _, shapes := range []int{80, 800} {
		free, podSets := manyShapes(int64(shapes))
		nodes := int(free.Pools[0].NodeCount)
		if looks := capacity.Looks(&free, podSets); looks > shapes*nodes {
			t.Errorf("%d pod sets look at %d rows of %d nodes", shapes, looks, nodes)
		}
		if ok, why := free.Allocate(podSets); !ok {
			t.Fatal(why)
		}
		if classes := free.ClassCount(); classes > nodes {
			t.Errorf("%d nodes have %d classes", nodes, classes)
		}
	}
}

// TestEstimatesInOrder proves that the classes of an estimate are filled in their order, and that one without nodes keeps its place.
func TestEstimatesInOrder(t *testing.T) {
	free := capacity.Free{Pools: []capacity.Pool{{Name: "a", Estimated: true, Free: []capacity.NodeClass{capacitytest.Nodes(2, 4, 64), capacitytest.Nodes(1, 1, 64)}}}}
	// The second class becomes empty with the third pod, and gets a node again with the fourth.
	for _, gpus := range []int64{1, 1, 1, 2, 1} {
		if ok, why := free.Allocate([]capacity.PodSet{{capacitytest.Requirements(gpus, 0), 1}}); !ok {
			t.Fatal(why)
		}
	}
	want := []capacity.NodeClass{capacitytest.Nodes(1, 3, 64), capacitytest.Nodes(2, 0, 64)}
	if diff := cmp.Diff(want, free.Pools[0].Classes()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func BenchmarkAllocate(b *testing.B) {
	for _, classes := range []int64{4, 50, 500} {
		free, podSets := oddNodes(classes)
		b.Run(strconv.FormatInt(classes, 10), func(b *testing.B) {
			for b.Loop() {
				free.Allocate(podSets)
			}
		})
	}
}

func BenchmarkPackShapes(b *testing.B) {
	for _, shapes := range []int64{1_000, 10_000} {
		free, podSets := manyShapes(shapes)
		b.Run(strconv.FormatInt(shapes, 10), func(b *testing.B) {
			for b.Loop() {
				clone := free.Clone()
				clone.Allocate(podSets)
			}
		})
	}
}
