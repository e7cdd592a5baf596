package capacity_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
)

func TestPinText(t *testing.T) {
	cases := map[string]struct {
		pool string
		text string
		want *capacity.Pin
	}{
		"one label":               {"h100", "gpu=h100", &capacity.Pin{Pool: "h100", NodeSelector: map[string]string{"gpu": "h100"}}},
		"several labels":          {"h100", "example.com/zone=a,gpu=h100", &capacity.Pin{Pool: "h100", NodeSelector: map[string]string{"gpu": "h100", "example.com/zone": "a"}}},
		"a label without a value": {"h100", "node-role=", &capacity.Pin{Pool: "h100", NodeSelector: map[string]string{"node-role": ""}}},
		"no pool":                 {"", "gpu=h100", nil},
		"no labels":               {"h100", "", nil},
		"no selector":             {"h100", "gpu", nil},
		"no label value":          {"h100", "gpu=a b", nil},
		"a repeated label":        {"h100", strings.TrimSuffix(strings.Repeat("a=b,", 17), ","), &capacity.Pin{Pool: "h100", NodeSelector: map[string]string{"a": "b"}}},
		"too long":                {"h100", strings.Repeat("x", 1<<20), nil},
		"a pool's long name":      {strings.Repeat("x", 64), "gpu=h100", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := capacity.ParsePin(c.pool, c.text)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("pin (-want +got):\n%s", diff)
			}
			if got == nil {
				return
			}
			if diff := cmp.Diff(got, capacity.NewPin(got.Pool, got.NodeSelector)); diff != "" {
				t.Errorf("pin of its labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewPin(t *testing.T) {
	cases := map[string]map[string]string{
		"no labels":             nil,
		"a value that is none":  {"gpu": "a b"},
		"a value of two labels": {"gpu": "a,b=c"},
	}
	for name, labels := range cases {
		t.Run(name, func(t *testing.T) {
			if got := capacity.NewPin("p", labels); got != nil {
				t.Errorf("got %v, want none", got)
			}
		})
	}
}

func TestAllocateInPools(t *testing.T) {
	node := func(count int64) capacity.NodeClass { return capacitytest.Nodes(count, 8, 64) }
	tainted := func(count int64) capacity.NodeClass { return capacitytest.Tainted(node(count), "x") }
	pods := func(count, gpus int64, pool ...string) capacity.PodSet {
		return capacity.PodSet{Requirements: capacitytest.Requirements(gpus, 1, pool...), Count: count}
	}
	cases := map[string]struct {
		pools    []capacity.Pool
		pods     []capacity.PodSet
		replicas int64
		want     map[string]int64
	}{
		"all in one pool":            {[]capacity.Pool{capacitytest.Pool("a", node(2)), capacitytest.Pool("b", node(2))}, []capacity.PodSet{pods(1, 4)}, 3, map[string]int64{"a": 3}},
		"more than one pool takes":   {[]capacity.Pool{capacitytest.Pool("a", node(1)), capacitytest.Pool("b", node(2))}, []capacity.PodSet{pods(1, 4)}, 5, map[string]int64{"a": 2, "b": 3}},
		"more than all take":         {[]capacity.Pool{capacitytest.Pool("a", node(1)), capacitytest.Pool("b", node(2))}, []capacity.PodSet{pods(1, 4)}, 9, map[string]int64{"a": 2, "b": 4}},
		"never half a replica":       {[]capacity.Pool{capacitytest.Pool("a", node(3)), capacitytest.Pool("b", node(3))}, []capacity.PodSet{pods(2, 8)}, 3, map[string]int64{"a": 1, "b": 1}},
		"the pool of a nodeSelector": {[]capacity.Pool{capacitytest.Pool("a", node(1)), capacitytest.Pool("b", node(1))}, []capacity.PodSet{pods(1, 8, "b")}, 2, map[string]int64{"b": 1}},
		"pods of two pools":          {[]capacity.Pool{capacitytest.Pool("a", node(1)), capacitytest.Pool("b", node(1))}, []capacity.PodSet{pods(1, 4, "a"), pods(1, 4, "b")}, 1, map[string]int64{}},
		"the best fitting pool":      {[]capacity.Pool{capacitytest.Pool("a", node(1)), capacitytest.Pool("cpu", capacitytest.Nodes(1, 0, 8))}, []capacity.PodSet{pods(1, 0)}, 1, map[string]int64{"cpu": 1}},
		"a taint of one pool":        {[]capacity.Pool{capacitytest.Pool("a", tainted(2)), capacitytest.Pool("b", node(1))}, []capacity.PodSet{pods(1, 8)}, 3, map[string]int64{"b": 1}},
		"a taint of the only pool":   {[]capacity.Pool{capacitytest.Pool("a", tainted(2))}, []capacity.PodSet{pods(1, 8)}, 1, map[string]int64{}},
		"a taint that is tolerated":  {[]capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(1, 8, 8)), capacitytest.Pool("b", tainted(1))}, []capacity.PodSet{{Requirements: capacitytest.Tolerating(capacitytest.Requirements(8, 1), "x"), Count: 1}}, 1, map[string]int64{"b": 1}},
		"no labels":                  {[]capacity.Pool{capacity.NewPool("x", nil, []capacity.NodeClass{node(1)})}, []capacity.PodSet{pods(1, 8)}, 1, map[string]int64{"": 1}},
		"no pods":                    {[]capacity.Pool{capacitytest.Pool("a", node(1))}, nil, 1, map[string]int64{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			free := capacity.Free{Pools: c.pools}
			before := free.Clone()
			got, taken := map[string]int64{}, []capacity.PodSet{}
			for _, in := range free.AllocateInPools(c.pods, c.replicas) {
				got[in.Pin.Name()] += in.Replicas
				for _, podSet := range c.pods {
					taken = append(taken, capacity.PodSet{Requirements: podSet.Requirements, Count: podSet.Count * in.Replicas})
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("replicas by pool (-want +got):\n%s", diff)
			}
			capacitytest.Conserved(t, before, free, taken)
		})
	}
}

// TestConfined proves which pods can go nowhere but to some pools, by the labels of these and by the taints of the others.
func TestConfined(t *testing.T) {
	free := capacity.Free{Pools: []capacity.Pool{
		capacitytest.Pool("a", capacitytest.Nodes(1, 8, 64)), capacitytest.Pool("b", capacitytest.Nodes(1, 8, 64)), capacitytest.Pool("x", capacitytest.Tainted(capacitytest.Nodes(1, 8, 64), "x")),
	}}
	pod := func(pool ...string) *capacity.PodRequirements { return capacitytest.Requirements(1, 1, pool...) }
	pinned := pod()
	pinned.Pin = &capacity.Pin{Pool: "x", NodeSelector: map[string]string{"pool": "x"}}
	cases := map[string]struct {
		reason string
		pod    *capacity.PodRequirements
		pools  []string
		want   bool
	}{
		"Elsewhere":  {reason: "It can go to another pool.", pod: pod(), pools: []string{"a"}},
		"Selects":    {reason: "It selects the pool.", pod: pod("a"), pools: []string{"a"}, want: true},
		"Nowhere":    {reason: "No pool has its labels.", pod: pod("c"), pools: []string{"a"}},
		"Barred":     {reason: "The third pool does not take it.", pod: pod(), pools: []string{"a", "b"}, want: true},
		"Tolerates":  {reason: "The third pool takes it.", pod: capacitytest.Tolerating(pod(), "x"), pools: []string{"a", "b"}},
		"PinnedAway": {reason: "It stays where it was counted before the taint came.", pod: pinned, pools: []string{"a", "x"}, want: true},
		"BarredAll":  {reason: "None of these pools has its labels, and the one that has them does not take it.", pod: pod("x"), pools: []string{"a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := free.Confined(tc.pools)(tc.pod); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
	if got := free.PinnedTo(pinned); got != "x" {
		t.Errorf("a pod is pinned to %q, whatever taints the nodes have: want x", got)
	}
}
