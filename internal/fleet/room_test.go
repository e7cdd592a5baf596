package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	gpu = "nvidia.com/gpu"
	cpu = "cpu"
)

func shape(gpus, cpus int64, selector ...string) *Shape {
	s := &Shape{Requests: Resources{}}
	if gpus > 0 {
		s.Requests[gpu] = 1000 * gpus
	}
	if cpus > 0 {
		s.Requests[cpu] = 1000 * cpus
	}
	if len(selector) > 0 {
		s.NodeSelector = map[string]string{"pool": selector[0]}
	}
	return s
}

func pool(name string, nodes ...Nodes) Pool {
	return NewPool(name, map[string]string{"pool": name}, nodes)
}

func of(count, gpus, cpus int64) Nodes {
	return Nodes{Count: count, Left: Resources{gpu: 1000 * gpus, cpu: 1000 * cpus}}
}

func TestTake(t *testing.T) {
	cases := map[string]struct {
		reason string
		room   Room
		needs  []Need
		want   string
		// left is what Free has afterwards.
		left []Nodes
	}{
		"Fits": {
			reason: "A fraction of a node is not charged as a node.",
			room:   Room{Pools: []Pool{pool("a", of(2, 8, 64))}},
			needs:  []Need{{shape(1, 8), 3}},
			left:   []Nodes{of(1, 8, 64), of(1, 5, 40)},
		},
		"WholeNodesStayWhole": {
			reason: "Nodes that are partly taken are filled first.",
			room:   Room{Pools: []Pool{pool("a", of(1, 8, 64), of(1, 2, 64))}},
			needs:  []Need{{shape(2, 1), 1}},
			left:   []Nodes{of(1, 8, 64), of(1, 0, 63)},
		},
		"Searched": {
			reason: "The largest pods first is not the way here: 6 GPUs are two pods of 3, and the 4 of the other node two of 2.",
			room:   Room{Pools: []Pool{pool("a", of(1, 6, 64), of(1, 4, 64))}},
			needs:  []Need{{shape(3, 1), 2}, {shape(2, 1), 2}},
			left:   []Nodes{of(2, 0, 62)},
		},
		"Short": {
			reason: "The missing number is the sum's.",
			room:   Room{Pools: []Pool{pool("a", of(3, 8, 64))}},
			needs:  []Need{{shape(8, 1), 4}},
			want:   "24 of 24 nvidia.com/gpu free in pool a, 8 short",
			left:   []Nodes{of(3, 8, 64)},
		},
		"ShortOfCPU": {
			reason: "Every resource counts.",
			room:   Room{Pools: []Pool{pool("a", of(1, 8, 4)), pool("b", of(1, 8, 4))}},
			needs:  []Need{{shape(1, 5), 2}},
			want:   "8 of 8 cpu free in pools a, b, 2 short",
		},
		"Fragmented": {
			reason: "8 GPUs on two nodes are no 8 on one.",
			room:   Room{Pools: []Pool{pool("a", of(2, 4, 64))}},
			needs:  []Need{{shape(8, 1), 1}},
			want:   "1 pod finds no node with 8 nvidia.com/gpu, 1 cpu left, although there is as much in all",
			left:   []Nodes{of(2, 4, 64)},
		},
		"Selected": {
			reason: "A pod goes only where its node selector leads.",
			room:   Room{Pools: []Pool{pool("a", of(1, 8, 64)), pool("b", of(1, 2, 64))}},
			needs:  []Need{{shape(4, 1, "b"), 1}},
			want:   "2 of 2 nvidia.com/gpu free in pool b, 2 short",
		},
		"NoPool": {
			reason: "A label that no pool has.",
			room:   Room{Pools: []Pool{pool("a", of(1, 8, 64))}},
			needs:  []Need{{shape(1, 1, "c"), 1}},
			want:   "no pool has the labels pool=c",
		},
		"Uncounted": {
			reason: "A pool that does not name its memory has enough of it; a device that it does not name it has not.",
			room:   Room{Pools: []Pool{NewPool("a", nil, []Nodes{{Count: 1, Left: Resources{gpu: 8000}}})}},
			needs:  []Need{{&Shape{Requests: Resources{"memory": 1 << 60, "amd.com/gpu": 1000}}, 1}},
			want:   "0 of 0 amd.com/gpu free in pool a, 1 short",
		},
		"Pods": {
			reason: "A node takes so many pods and no more.",
			room:   Room{Pools: []Pool{NewPool("a", nil, []Nodes{{Count: 2, Left: Resources{"pods": 3000}}})}},
			needs:  []Need{{&Shape{}, 7}},
			want:   "6 of 6 pods free in pool a, 1 short",
		},
		"Nothing": {
			reason: "What has no pods always fits.",
			room:   Room{},
			needs:  []Need{{shape(1, 1), 0}},
		},
		"Enormous": {
			reason: "What is beyond all numbers does not fit either.",
			room:   Room{Pools: []Pool{pool("a", of(5000, 8, 64))}},
			needs:  []Need{{&Shape{Requests: Amounts(corev1.ResourceList{gpu: resource.MustParse("9E")})}, maxPods}},
			want:   "40k of 40k nvidia.com/gpu free in pool a, 9223372036814775807m short",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			room := tc.room.Clone()
			ok, got := room.Take(tc.needs)
			if ok != (tc.want == "") || !ok && got != tc.want {
				t.Errorf("%s\nwant %q, got %t %q", tc.reason, tc.want, ok, got)
			}
			if tc.left != nil {
				if diff := cmp.Diff(tc.left, room.Pools[0].Free()); diff != "" {
					t.Errorf("%s\nleft: -want +got:\n%s", tc.reason, diff)
				}
			}
			if !ok {
				if diff := cmp.Diff(tc.room, room); diff != "" {
					t.Errorf("what does not fit takes nothing: -want +got:\n%s", diff)
				}
			}
		})
	}
}

// few is a room of up to 4 nodes, and what is asked of it: up to 7 pods.
func few(random *rand.Rand) (Room, []Need) {
	room := Room{}
	for i := range 1 + random.IntN(2) {
		var nodes []Nodes
		for range 1 + random.IntN(2) {
			nodes = append(nodes, of(1, random.Int64N(9), random.Int64N(9)))
		}
		room.Pools = append(room.Pools, pool(string(rune('a'+i)), nodes...))
	}
	return room, fewNeeds(random)
}

func fewNeeds(random *rand.Rand) []Need {
	var needs []Need
	for range 1 + random.IntN(3) {
		s := shape(random.Int64N(5), random.Int64N(5))
		if random.IntN(3) == 0 {
			s = shape(random.Int64N(5), random.Int64N(5), string(rune('a'+random.IntN(2))))
		}
		needs = append(needs, Need{s, random.Int64N(4)})
	}
	return needs
}

// fits tries every way to put pods onto nodes.
func fits(room Room, needs []Need) bool {
	type node struct {
		pool *Pool
		left Resources
	}
	var nodes []node
	for i := range room.Pools {
		for _, n := range room.Pools[i].Left {
			for range n.Count {
				nodes = append(nodes, node{&room.Pools[i], n.Left})
			}
		}
	}
	var pods []*Shape
	for _, n := range needs {
		for range n.Pods {
			pods = append(pods, n.Shape)
		}
	}
	var place func(int) bool
	place = func(i int) bool {
		if i == len(pods) {
			return true
		}
		for j, n := range nodes {
			if !n.pool.takes(pods[i]) || (&Nodes{Left: n.left}).holds(pods[i]) < 1 {
				continue
			}
			nodes[j].left = (&Nodes{Left: n.left}).after(pods[i], 1)
			if place(i + 1) {
				return true
			}
			nodes[j].left = n.left
		}
		return false
	}
	return place(0)
}

// Take finds a way exactly where there is one, as far as all ways can be tried.
func TestTakeIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	took := 0
	for range 20000 {
		room, needs := few(random)
		before := room.Clone()
		ok, why := room.Take(needs)
		if want := fits(before, needs); ok != want {
			t.Fatalf("want %t, got %t (%s): %s of %v", want, ok, why, needsText(needs), before)
		}
		if ok {
			took++
			conserved(t, before, room, needs)
		} else if why == "" {
			t.Fatalf("no reason is given: %s of %v", needsText(needs), before)
		}
	}
	if took < 2000 || took > 18000 {
		t.Errorf("of 20000 random rooms %d fit: nothing is tested", took)
	}
}

// conserved makes sure that what was taken is what was asked, and that no node has
// less than nothing left.
func conserved(t *testing.T, before, after Room, needs []Need) {
	t.Helper()
	want := Resources{}
	for _, n := range needs {
		want.add(n.Shape.Requests, n.Pods)
	}
	got := Resources{}
	for i := range after.Pools {
		count := int64(0)
		for _, n := range after.Pools[i].Left {
			count += n.Count
			for name, left := range n.Left {
				if left < 0 || n.Count < 0 {
					t.Fatalf("overbooked: %v of %s", after, needsText(needs))
				}
				got[name] -= left * n.Count
			}
		}
		if count != before.Pools[i].Nodes {
			t.Fatalf("pool %d has %d nodes, of %d", i, count, before.Pools[i].Nodes)
		}
		for _, n := range before.Pools[i].Left {
			for name, left := range n.Left {
				got[name] += left * n.Count
			}
		}
	}
	for _, name := range []string{gpu, cpu} {
		if got[name] != want[name] {
			t.Fatalf("%d of %s were taken, and %d asked for: %s", got[name], name, want[name], needsText(needs))
		}
	}
}

func needsText(needs []Need) string {
	all := make([]string, 0, len(needs))
	for _, n := range needs {
		all = append(all, fmt.Sprintf("%d x %s", n.Pods, n.Shape.id()))
	}
	return strings.Join(all, "; ")
}

// The order of what is asked for, and of the nodes, does not matter.
func TestTakeOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		room, needs := few(random)
		one, two := room.Clone(), room.Clone()
		shuffled := slices.Clone(needs)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for _, p := range two.Pools {
			slices.Reverse(p.Left)
		}
		ok, why := one.Take(needs)
		again, whyAgain := two.Take(shuffled)
		if ok != again || why != whyAgain {
			t.Fatalf("%t %q in one order, %t %q in another: %s of %v", ok, why, again, whyAgain, needsText(needs), room)
		}
		for i := range one.Pools {
			if diff := cmp.Diff(one.Pools[i].Free(), two.Pools[i].Free()); diff != "" {
				t.Fatalf("what is left depends on the order: %s of %v:\n%s", needsText(needs), room, diff)
			}
		}
	}
}

// What is there whatever is counted takes what there is.
func TestTakeAnyway(t *testing.T) {
	room := Room{Pools: []Pool{pool("a", of(2, 8, 64))}}
	if room.TakeAnyway([]Need{{shape(8, 1), 3}}) {
		t.Error("three pods do not fit onto two nodes")
	}
	if diff := cmp.Diff([]Nodes{of(2, 0, 63)}, room.Pools[0].Free()); diff != "" {
		t.Errorf("two of them take the nodes: -want +got:\n%s", diff)
	}
}

// Nodes of one kind differ by some bytes, and are alike.
func TestOfNode(t *testing.T) {
	list := func(memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse("63770m"), "memory": resource.MustParse(memory), "hugepages-1Gi": {}, "pods": resource.MustParse("110")}
	}
	want := Resources{"cpu": 63770, "memory": 502 << 30 * 1000, "pods": 110000}
	for _, memory := range []string{"527951112Ki", "527951032Ki"} {
		if diff := cmp.Diff(want, OfNode(list(memory))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", memory, diff)
		}
	}
	for _, bytes := range []int64{0, 1, 255, 256, 1 << 40, 1<<53 + 1} {
		q := *resource.NewQuantity(bytes, resource.BinarySI)
		got := OfNode(corev1.ResourceList{"memory": q})["memory"] / 1000
		if got > bytes || bytes-got > bytes/100 {
			t.Errorf("%d bytes are %d", bytes, got)
		}
	}
}

// halves is a room of nodes that all differ, and needs of which there is as much in all
// and which find no place: every node has an odd number of GPUs.
func halves(classes int64) (Room, []Need) {
	nodes := make([]Nodes, 0, classes)
	for i := range classes {
		nodes = append(nodes, of(1, 3, 64+i))
	}
	return Room{Pools: []Pool{pool("a", nodes...)}}, []Need{{shape(2, 1), classes}, {shape(1, 1), classes / 2}, {shape(2, 2), classes / 4}}
}

// Taking ends, however many nodes differ: every service that waits is tried at every
// call. A search stops as soon as it has looked at as much as it may; unbounded, it would
// take minutes.
func TestTakeEnds(t *testing.T) {
	const classes = 500
	room, needs := halves(classes)
	if ok, _ := room.Take(needs); ok {
		t.Fatal("it cannot fit")
	}
	steps := searchSteps
	if room.search(needs, &steps) {
		t.Fatal("it cannot fit")
	}
	if steps >= 0 || steps < -2*classes {
		t.Errorf("%d classes were looked at, and %d are the limit", searchSteps-steps, searchSteps)
	}
}

func BenchmarkTake(b *testing.B) {
	for _, classes := range []int64{4, 50, 500} {
		room, needs := halves(classes)
		b.Run(strconv.FormatInt(classes, 10), func(b *testing.B) {
			for b.Loop() {
				room.Take(needs)
			}
		})
	}
}
