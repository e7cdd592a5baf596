package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// inspected is a service with so many replicas of so many nodes each, in one cluster.
func inspected(target scheduling.Target, replicas, nodes int32, limit int32, gang bool) *Plan {
	p := &Plan{Service: naming.Identity{Name: "qwen"}, PodLimit: limit}
	c := ClusterPlan{Target: target, Base: "qwen", Groups: []Group{{}}}
	role := &Role{Name: "engine", Replicas: replicas, Nodes: nodes}
	for i := range replicas {
		c.Groups[0].Replicas = append(c.Groups[0].Replicas, p.replica(&c, role, 0, i))
	}
	if gang {
		c.Groups[0].PodGroup = &PodGroup{Key: c.Key(key.PodGroup)}
	}
	p.Clusters = []ClusterPlan{c}
	return p
}

// from returns the numbers of n replicas, the first of them i.
func from(i, n int32) []int32 {
	all := make([]int32, n)
	for j := range n {
		all[j] = i + j
	}
	return all
}

// TestInspect proves which pods are read by their names: those of replicas that are not ready, and
// never more than the limit.
func TestInspect(t *testing.T) {
	local, east := scheduling.Target{Namespace: "llm"}, scheduling.Target{Cluster: "east", Namespace: "llm"}
	cases := map[string]struct {
		reason          string
		target          scheduling.Target
		replicas, nodes int32
		// limit is podObservationLimit, 64 if it is 0, and 0 if it is -1.
		limit  int32
		broken []int32
		// unknown are the replicas that may be broken. All others serve.
		unknown []int32
		// gang tells that there is a PodGroup, and waits that it waits for room.
		gang, waits bool
		// kueue tells that Kueue admits the replicas, of which it has admitted some.
		kueue    bool
		admitted []int32
		// observed are the replicas whose leaders have Objects.
		observed []int32
		want     []string
	}{
		"Small":   {reason: "All pods of a small service are read anyway.", target: local, replicas: 64, broken: []int32{3}},
		"Large":   {reason: "Of a large one, those that may say why a replica is not ready.", target: local, replicas: 65, broken: []int32{3, 60}, want: []string{"qwen-engine-3-0", "qwen-engine-60-0"}},
		"Settled": {reason: "A service that is settled costs nothing.", target: local, replicas: 200},
		"Workers": {reason: "Workers fail as well.", target: local, replicas: 33, nodes: 2, broken: []int32{3}, want: []string{"qwen-engine-3-0", "qwen-engine-3-0-1"}},
		"Bounded": {
			reason: "Leaders come before workers.", target: local, replicas: 3, nodes: 2, limit: 4, broken: []int32{0, 1, 2},
			want: []string{"qwen-engine-0-0", "qwen-engine-0-0-1", "qwen-engine-1-0", "qwen-engine-2-0"},
		},
		"TooMany":  {reason: "As many as of a small service.", target: local, replicas: 5, limit: 2, broken: from(0, 5), want: []string{"qwen-engine-0-0", "qwen-engine-1-0"}},
		"Never":    {reason: "The platform team does not allow to read pods.", target: local, replicas: 5, limit: -1, broken: []int32{3}},
		"Waiting":  {reason: "A replica without room may still have been evicted.", target: local, replicas: 65, gang: true, waits: true, broken: []int32{3}, want: []string{"qwen-engine-3-0"}},
		"Remote":   {reason: "In another cluster no pod is read until a replica is not ready.", target: east, replicas: 2, nodes: 2, gang: true, broken: []int32{1}, want: []string{"qwen-engine-1-0", "qwen-engine-1-0-1"}},
		"NoGang":   {reason: "Without a gang nothing tells that a replica waits.", target: east, replicas: 2, broken: []int32{1}, want: []string{"qwen-engine-1-0"}},
		"NoRoom":   {reason: "What waits for room needs no Object.", target: east, replicas: 2, gang: true, waits: true, broken: []int32{0, 1}},
		"Replaced": {reason: "A pod that is made anew waits for room for a moment. Its Object stays.", target: east, replicas: 2, gang: true, waits: true, broken: []int32{0, 1}, observed: []int32{1}, want: []string{"qwen-engine-1-0"}},
		"Ready":    {reason: "The Object goes once the replica is ready.", target: east, replicas: 2, gang: true, observed: []int32{1}},
		"NotKnown": {reason: "It also stays while that is not known.", target: east, replicas: 3, unknown: []int32{0, 1}, observed: []int32{1}, want: []string{"qwen-engine-1-0"}},
		"Objects": {
			reason: "Objects are few.", target: east, replicas: 20, broken: from(2, 18),
			want: []string{"qwen-engine-2-0", "qwen-engine-3-0", "qwen-engine-4-0", "qwen-engine-5-0", "qwen-engine-6-0", "qwen-engine-7-0", "qwen-engine-8-0", "qwen-engine-9-0"},
		},
		"Kept": {
			reason: "An Object is not replaced by another one.", target: east, replicas: 20, broken: from(2, 18), observed: []int32{19},
			want: []string{"qwen-engine-2-0", "qwen-engine-3-0", "qwen-engine-4-0", "qwen-engine-5-0", "qwen-engine-6-0", "qwen-engine-7-0", "qwen-engine-8-0", "qwen-engine-19-0"},
		},
		"NeverRemote": {reason: "The same setting holds in other clusters.", target: east, replicas: 2, limit: -1, broken: []int32{1}},
		"Kueue":       {reason: "Kueue keeps pods from starting, too.", target: east, replicas: 3, kueue: true, broken: []int32{0, 1}, admitted: []int32{1, 2}, want: []string{"qwen-engine-1-0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limit := tc.limit
			switch limit {
			case 0:
				limit = 64
			case -1:
				limit = 0
			}
			p := inspected(tc.target, tc.replicas, max(tc.nodes, 1), limit, tc.gang)
			c := &p.Clusters[0]
			replicas := c.Groups[0].Replicas
			for i := range replicas {
				replicas[i].broken = slices.Contains(tc.broken, int32(i))
				replicas[i].serving = !replicas[i].broken && !slices.Contains(tc.unknown, int32(i))
			}
			if tc.kueue {
				c.LocalQueue = "default"
			}
			has := func(keys []int32, of func(*Replica) key.Key) func(key.Key) bool {
				return func(k key.Key) bool {
					return slices.ContainsFunc(keys, func(i int32) bool { return of(&replicas[i]) == k })
				}
			}
			p.inspect(&RunningView{
				PodGroup: func(key.Key) PodGroupView { return PodGroupView{Started: !tc.waits} },
				Admitted: has(tc.admitted, c.WorkloadKey),
				Observed: has(tc.observed, func(r *Replica) key.Key { return c.PodKey(r, 0) }),
			})
			var got []string
			for r := range c.Replicas() {
				for i := range r.PodsRead {
					got = append(got, r.PodName(i))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReadsPods proves in which clusters all pods are read. That must not depend on what is read.
func TestReadsPods(t *testing.T) {
	local := scheduling.Target{Namespace: "llm"}
	cases := map[string]struct {
		reason       string
		target       scheduling.Target
		wanted, more int32
		want         bool
	}{
		"Small":  {reason: "It has as many as the limit.", target: local, wanted: 8, want: true},
		"Large":  {reason: "It has more.", target: local, wanted: 9},
		"Extra":  {reason: "Which extra replicas stay depends on these pods.", target: local, wanted: 8, more: 2, want: true},
		"Remote": {reason: "Objects would have to observe them.", target: scheduling.Target{Cluster: "east"}, wanted: 1},
		"None":   {reason: "There are none.", target: local},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := inspected(tc.target, tc.wanted+tc.more, 1, 8, false)
			for i := range p.Clusters[0].Groups[0].Replicas {
				p.Clusters[0].Groups[0].Replicas[i].Extra = int32(i) >= tc.wanted
			}
			if got := p.ReadsPods(&p.Clusters[0]); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestPodKeys proves that no two pods have the same key.
func TestPodKeys(t *testing.T) {
	p := inspected(scheduling.Target{Cluster: "east"}, 12, 12, 64, false)
	c := &p.Clusters[0]
	seen := map[key.Key]string{}
	for r := range c.Replicas() {
		for i := range r.Nodes {
			k := c.PodKey(r, i)
			if other, taken := seen[k]; taken {
				t.Errorf("%s is the key of %s and %s", k, other, r.PodName(i))
			}
			seen[k] = r.PodName(i)
		}
	}
	if want := key.Parse("cluster/east/pod/engine/1/2"); seen[want] != "qwen-engine-1-0-2" {
		t.Errorf("%s is the key of %q", want, seen[want])
	}
}
