package reservation

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// twoPools returns a cluster of two pools with labels, which have some nodes of 8 GPUs each.
func twoPools(a, b int64) capacity.Free {
	return capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(a, 8, 64)), capacitytest.Pool("b", capacitytest.Nodes(b, 8, 64))}}
}

// pinnedTo pins all grants of a service to a pool of capacitytest.
func pinnedTo(s Service, pool string) Service {
	for i := range s.Grants {
		s.Grants[i].Pin = &capacity.Pin{Pool: pool, NodeSelector: map[string]string{"pool": pool}}
	}
	return s
}

// runningIn makes a request one of replicas that run, pinned to a pool if one is named.
func runningIn(req CapacityRequest, pool string, names ...key.ReplicaID) CapacityRequest {
	req = running(req, names...)
	for _, group := range req.Clusters[here].Groups {
		for i := range group.Replicas {
			group.Replicas[i].Pool = pool
		}
	}
	return req
}

// selecting has the pods select the nodes of a pool of capacitytest by themselves.
func selecting(req CapacityRequest, pool string) CapacityRequest {
	w := req.PodRequirements["w"]
	w.NodeSelector = map[string]string{"pool": pool}
	req.PodRequirements["w"] = w
	return req
}

// tolerating has the pods tolerate the taint for a team of capacitytest.
func tolerating(req CapacityRequest, team string) CapacityRequest {
	w := req.PodRequirements["w"]
	req.PodRequirements = map[string]capacity.PodRequirements{"w": *capacitytest.Tolerating(&w, team)}
	return req
}

// taintedFor gives all nodes of a pool the taint for a team of capacitytest.
func taintedFor(free capacity.Free, pool, team string) capacity.Free {
	for i := range free.Pools {
		for j := range free.Pools[i].Free {
			if n := &free.Pools[i].Free[j]; free.Pools[i].Name == pool {
				*n = capacitytest.Tainted(*n, team)
			}
		}
	}
	return free
}

func TestPools(t *testing.T) {
	small := func() Service { return withGPUs(reserved("1", "0/0"), 4) }
	cases := map[string]struct {
		free     capacity.Free
		ledger   []Service
		requests []CapacityRequest
		// want has the pool of each replica that is granted, by service and replica.
		want map[string]string
	}{
		"a new replica gets the first pool in which it fits": {
			free: twoPools(1, 1), requests: []CapacityRequest{request("1", 8, 1)},
			want: map[string]string{"1 0/0": "a"},
		},
		"replicas that are alike fill one pool after the other": {
			free: twoPools(1, 2), requests: []CapacityRequest{request("1", 4, 5)},
			want: map[string]string{"1 0/0": "a", "1 0/1": "a", "1 0/2": "b", "1 0/3": "b", "1 0/4": "b"},
		},
		"the pool of a partly used node comes first": {
			free: twoPools(1, 1), ledger: []Service{pinnedTo(small(), "b")}, requests: []CapacityRequest{request("1", 4, 1), request("2", 4, 1)},
			want: map[string]string{"1 0/0": "b", "2 0/0": "b"},
		},
		"a replica of several nodes stays in one pool": {
			free: twoPools(1, 2), requests: []CapacityRequest{nodes(request("1", 8, 1), 2)},
			want: map[string]string{"1 0/0": "b"},
		},
		"a pool with a taint that is not tolerated is none for it": {
			free: taintedFor(twoPools(1, 1), "a", "x"), ledger: []Service{pinnedTo(small(), "b")}, requests: []CapacityRequest{request("1", 4, 1), request("2", 4, 2)},
			want: map[string]string{"1 0/0": "b", "2 0/0": "b"},
		},
		"a pool with a taint that is tolerated comes first": {
			free: taintedFor(twoPools(1, 1), "b", "x"), requests: []CapacityRequest{tolerating(request("1", 8, 1), "x"), request("2", 8, 1)},
			want: map[string]string{"1 0/0": "b", "2 0/0": "a"},
		},
		"a replica that fits into no single pool is not pinned": {
			free: twoPools(1, 2), requests: []CapacityRequest{nodes(request("1", 8, 1), 3)},
			want: map[string]string{"1 0/0": ""},
		},
		"nothing is pinned to a pool without labels": {
			free: pool(capacitytest.Nodes(1, 8, 64)), requests: []CapacityRequest{request("1", 8, 1)},
			want: map[string]string{"1 0/0": ""},
		},
		"a grant keeps its pool, whatever would be better now": {
			free: twoPools(2, 2), ledger: []Service{pinnedTo(small(), "b")}, requests: []CapacityRequest{request("1", 4, 1)},
			want: map[string]string{"1 0/0": "b"},
		},
		"pods without a pin make room for pods that need their nodes": {
			free:     twoPools(1, 1),
			ledger:   []Service{small(), withGPUs(reserved("2", "0/0"), 4)},
			requests: []CapacityRequest{request("1", 4, 1), request("2", 4, 1), selecting(request("3", 8, 1), "a")},
			want:     map[string]string{"1 0/0": "", "2 0/0": "", "3 0/0": ""},
		},
		"pods without a pin that can go nowhere else make no room": {
			free: twoPools(1, 0), ledger: []Service{small()}, requests: []CapacityRequest{request("1", 4, 1), selecting(request("3", 8, 1), "a")},
			want: map[string]string{"1 0/0": ""},
		},
		"a grant of an earlier version has no pool and gets none": {
			free: twoPools(1, 1), ledger: []Service{small()}, requests: []CapacityRequest{request("1", 4, 1)},
			want: map[string]string{"1 0/0": ""},
		},
		"a grant without a pool that grows gets none": {
			free: twoPools(1, 1), ledger: []Service{small()}, requests: []CapacityRequest{grown(request("1", 8, 1))},
			want: map[string]string{"1 0/0": ""},
		},
		"a grant with a pool that grows before it runs gets one again": {
			free: twoPools(1, 1), ledger: []Service{pinnedTo(small(), "b")}, requests: []CapacityRequest{grown(request("1", 8, 1))},
			want: map[string]string{"1 0/0": "a"},
		},
		"what runs in its pool keeps it": {
			free: twoPools(1, 1), ledger: []Service{pinnedTo(small(), "b")}, requests: []CapacityRequest{runningIn(request("1", 4, 1), "b", "0/0")},
			want: map[string]string{"1 0/0": "b"},
		},
		"what runs without a pool is counted in any": {
			free: twoPools(1, 1), ledger: []Service{pinnedTo(small(), "b")}, requests: []CapacityRequest{runningIn(request("1", 4, 1), "", "0/0")},
			want: map[string]string{"1 0/0": ""},
		},
		"what runs in another pool than granted is counted in any": {
			free: twoPools(1, 1), ledger: []Service{pinnedTo(small(), "b")}, requests: []CapacityRequest{runningIn(request("1", 4, 1), "a", "0/0")},
			want: map[string]string{"1 0/0": ""},
		},
		"what runs without a grant is counted where it runs": {
			free: twoPools(1, 1), requests: []CapacityRequest{runningIn(request("1", 4, 1), "b", "0/0")},
			want: map[string]string{"1 0/0": "b"},
		},
		"what runs without a grant or a pool gets none": {
			free: twoPools(1, 1), requests: []CapacityRequest{runningIn(request("1", 4, 1), "", "0/0")},
			want: map[string]string{"1 0/0": ""},
		},
		"what runs in an unknown pool is counted in any": {
			free: twoPools(1, 1), requests: []CapacityRequest{runningIn(request("1", 4, 1), "x", "0/0")},
			want: map[string]string{"1 0/0": ""},
		},
		"a ledger that was made again takes the pool of what runs": {
			free: twoPools(1, 1), ledger: []Service{reserved("1", "0/0")}, requests: []CapacityRequest{runningIn(request("1", 4, 1), "b", "0/0")},
			want: map[string]string{"1 0/0": "b"},
		},
		"a ledger that was made again has the pools of the status": {
			free: twoPools(1, 1), ledger: []Service{{ServiceID: reserved("1").ServiceID, Grants: []Grant{{Pin: &capacity.Pin{Pool: "b"}, Replicas: []key.ReplicaID{"0/0"}}}}},
			requests: []CapacityRequest{request("1", 4, 1)},
			want:     map[string]string{"1 0/0": "b"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			result := reserve(c.free, c.ledger, c.requests)
			for _, s := range result.Services {
				for _, g := range s.Grants {
					for _, r := range g.Replicas {
						got[s.UID+" "+string(r)] = g.Pin.Name()
						if g.Pin != nil && g.Pin.NodeSelector["pool"] != g.Pin.Pool {
							t.Errorf("the pin to %s has the labels %v", g.Pin.Pool, g.Pin.NodeSelector)
						}
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
			pending := 0
			for _, p := range result.Pending {
				pending += len(p.Replicas)
				for _, r := range p.Replicas {
					if _, is := got[p.UID+" "+string(r)]; is {
						t.Errorf("%s %s is granted and pending: %s", p.UID, r, p.Message)
					}
				}
			}
			for i := range c.requests {
				pending -= len(allReplicas(c.requests[i]))
			}
			if pending+len(got) != 0 || result.Overcommitted {
				t.Errorf("%d replicas are granted, and %d more are not pending, overcommitted: %t", len(got), -pending-len(got), result.Overcommitted)
			}
		})
	}
}

// TestPinnedPodsCount proves that pinned pods are counted in their pool, and nowhere else.
func TestPinnedPodsCount(t *testing.T) {
	big := func() Service { return pinnedTo(withGPUs(reserved("1", "0/0"), 8), "a") }
	onlyA := request("2", 8, 1)
	onlyA.PodRequirements = map[string]capacity.PodRequirements{"w": *capacitytest.Requirements(8, 1, "a")}
	twoPods := withGPUs(reserved("3", "0/0"), 2)
	twoPods.Grants[0].Pods[0] = 2
	renamed := twoPools(1, 1)
	renamed.Pools[0].Name = "c"
	relabelled := twoPools(1, 1)
	relabelled.Pools[0].Labels = map[string]string{"pool": "other"}
	nowhere := withGPUs(reserved("4", "0/0", "0/1"), 8)
	nowhere.Shapes[0].NodeSelector = map[string]string{"pool": "gone"}
	removed := twoPools(1, 1)
	removed.Pools = removed.Pools[1:]
	cases := map[string]struct {
		free     capacity.Free
		ledger   []Service
		requests []CapacityRequest
		pending  string
		over     bool
		short    []string
	}{
		"the room of its pool is taken": {
			free: twoPools(1, 1), ledger: []Service{big()}, requests: []CapacityRequest{request("1", 8, 1), onlyA},
			pending: "0 of 8 nvidia.com/gpu free in pool a, 8 short",
		},
		"others in any pool make room for it": {
			free: twoPools(1, 1), ledger: []Service{withGPUs(reserved("3", "0/0"), 8), big()}, requests: []CapacityRequest{request("3", 8, 1), request("1", 8, 1)},
		},
		"it grows in its pool only": {
			free: twoPools(1, 2), ledger: []Service{pinnedTo(withGPUs(reserved("1", "0/0"), 4), "a")}, requests: []CapacityRequest{grown(runningIn(nodes(request("1", 8, 1), 2), "a", "0/0"))},
			pending: "what was reserved before is kept: 4 of 8 nvidia.com/gpu free in pool a, 8 short",
		},
		"nodes of its pool are gone, and others are served elsewhere": {
			free: twoPools(0, 1), ledger: []Service{big()}, requests: []CapacityRequest{request("1", 8, 1), request("3", 8, 1), onlyA},
			pending: "pool a has no nvidia.com/gpu", short: []string{"a"},
		},
		"nodes of its pool got a taint, and others are served elsewhere": {
			free: taintedFor(twoPools(1, 1), "a", "x"), ledger: []Service{big()}, requests: []CapacityRequest{request("1", 8, 1), request("3", 8, 1), onlyA},
			pending: "the nodes of pool a have taints that the pods do not tolerate: dedicated=x:NoSchedule", short: []string{"a"},
		},
		"it tolerates the taint that nodes of its pool got": {
			free: taintedFor(twoPools(1, 1), "a", "x"), ledger: []Service{big()}, requests: []CapacityRequest{grown(tolerating(runningIn(request("1", 8, 1), "a", "0/0"), "x")), tolerating(onlyA, "x")},
			pending: "0 of 8 nvidia.com/gpu free in pool a, 8 short",
		},
		"nodes of its pool are gone, and what is left there is kept for it": {
			free: twoPools(1, 0), ledger: []Service{pinnedTo(withGPUs(reserved("1", "0/0", "0/1", "0/2"), 3), "a")}, requests: []CapacityRequest{request("1", 3, 3), request("3", 2, 1)},
			pending: "0 of 8 nvidia.com/gpu free in pools a, b, 2 short", short: []string{"a"},
		},
		"nodes of its pool are gone, and others grow elsewhere": {
			free:     twoPools(1, 2),
			ledger:   []Service{pinnedTo(withGPUs(reserved("1", "0/0", "0/1"), 8), "a"), pinnedTo(withGPUs(reserved("3", "0/0"), 4), "b"), withGPUs(reserved("4", "0/0"), 1)},
			requests: []CapacityRequest{request("1", 8, 2), grown(runningIn(request("3", 8, 1), "b", "0/0")), grown(runningIn(request("4", 8, 1), "", "0/0"))},
			short:    []string{"a"},
		},
		"nodes of its pool are gone, and it grows elsewhere before it runs": {
			free: twoPools(1, 2), ledger: []Service{pinnedTo(withGPUs(reserved("1", "0/0", "0/1", "0/2"), 4), "a"), pinnedTo(withGPUs(reserved("3", "0/0"), 4), "a")},
			requests: []CapacityRequest{request("1", 4, 3), grown(request("3", 8, 1))},
			short:    []string{"a"},
		},
		"nodes of its pool are gone, and nothing that changes there is granted": {
			free: twoPools(1, 2), ledger: []Service{pinnedTo(withGPUs(reserved("1", "0/0", "0/1"), 4), "a"), pinnedTo(withGPUs(reserved("3", "0/0"), 4), "a")},
			requests: []CapacityRequest{request("1", 4, 2), grown(runningIn(nodes(request("3", 2, 1), 3), "a", "0/0"))},
			pending:  "what was reserved before is kept: 0 of 8 nvidia.com/gpu free in pool a, 2 short", short: []string{"a"},
		},
		"nodes of its pool are gone, and nothing of the same size there is granted": {
			free: twoPools(1, 2), ledger: []Service{pinnedTo(withGPUs(reserved("1", "0/0", "0/1"), 4), "a"), pinnedTo(twoPods, "a")},
			requests: []CapacityRequest{request("1", 4, 2), grown(runningIn(request("3", 4, 1), "a", "0/0"))},
			pending:  "what was reserved before is kept: 0 of 8 nvidia.com/gpu free in pool a, 4 short", short: []string{"a"},
		},
		"what is pinned comes first where nodes are gone": {
			free: twoPools(1, 0), ledger: []Service{withGPUs(reserved("3", "0/0"), 8), big()}, requests: []CapacityRequest{request("1", 8, 1), request("3", 8, 1)},
			over: true,
		},
		"nodes of its pool are gone, and others have no pool any more": {
			free: twoPools(1, 2), ledger: []Service{pinnedTo(withGPUs(reserved("1", "0/0", "0/1"), 8), "a"), nowhere},
			requests: []CapacityRequest{request("1", 8, 2), selecting(request("4", 8, 2), "gone"), request("5", 8, 1)},
			pending:  "more is reserved than the cluster has", short: []string{"a"}, over: true,
		},
		"what was granted in this call is counted in its pool": {
			free: twoPools(1, 1), ledger: []Service{pinnedTo(withGPUs(reserved("3", "0/0"), 4), "a")},
			requests: []CapacityRequest{request("1", 4, 1), grown(runningIn(request("3", 8, 1), "a", "0/0")), request("9", 9, 1)},
			pending:  "what was reserved before is kept: 0 of 8 nvidia.com/gpu free in pool a, 4 short8 of 16 nvidia.com/gpu free in pools a, b, 1 short",
		},
		"nodes of its pool are gone, and others are counted elsewhere": {
			free: twoPools(1, 1), ledger: []Service{pinnedTo(withGPUs(reserved("1", "0/0", "0/1", "0/2"), 3), "a"), withGPUs(reserved("3", "0/0"), 2)},
			requests: []CapacityRequest{request("1", 3, 3), request("3", 2, 1), request("4", 8, 1)},
			pending:  "6 of 16 nvidia.com/gpu free in pools a, b, 2 short", short: []string{"a"},
		},
		"nodes of its pool are gone, and others need what is left there": {
			free: twoPools(1, 1), ledger: []Service{pinnedTo(withGPUs(reserved("1", "0/0", "0/1", "0/2"), 3), "a"), withGPUs(reserved("3", "0/0"), 8), withGPUs(reserved("4", "0/0"), 1)},
			requests: []CapacityRequest{request("1", 3, 3), request("3", 8, 1), request("4", 1, 1), request("5", 1, 1)},
			pending:  "0 of 16 nvidia.com/gpu free in pools a, b, 1 short", short: []string{"a"},
		},
		"nodes of both pools are gone": {
			free:     twoPools(1, 1),
			ledger:   []Service{pinnedTo(withGPUs(reserved("1", "0/0", "0/1"), 8), "b"), pinnedTo(withGPUs(reserved("2", "0/0", "0/1"), 7), "a"), pinnedTo(withGPUs(reserved("3", "0/0", "0/1"), 6), "a")},
			requests: []CapacityRequest{request("1", 8, 2), request("2", 7, 2), request("3", 6, 2)},
			short:    []string{"a", "b"},
		},
		"its pool was renamed":      {free: renamed, ledger: []Service{big()}, requests: []CapacityRequest{request("1", 8, 1)}},
		"its pool has other labels": {free: relabelled, ledger: []Service{big()}, requests: []CapacityRequest{request("1", 8, 1)}},
		"its pool is gone":          {free: removed, ledger: []Service{big()}, requests: []CapacityRequest{request("1", 8, 1)}, over: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			result := reserve(c.free, c.ledger, c.requests)
			var pending []string
			for _, p := range result.Pending {
				pending = append(pending, p.Message)
			}
			if diff := cmp.Diff(c.pending, strings.Join(pending, "")); diff != "" {
				t.Errorf("pending (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.short, result.ShortPools); diff != "" {
				t.Errorf("pools that are short (-want +got):\n%s", diff)
			}
			if result.Overcommitted != c.over {
				t.Errorf("overcommitted: %t, want %t", result.Overcommitted, c.over)
			}
		})
	}
}

// TestGrowthBesideShortPool proves that what is granted while a pool is short makes no other pool short, and the
// cluster not overcommitted: the next call counts it in the same way.
func TestGrowthBesideShortPool(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	short, grew := 0, 0
	for n := range 5000 {
		in := Input{Cluster: here, Free: twoPools(random.Int64N(3), 1+random.Int64N(3)), Now: noon}
		if n%2 == 0 {
			in.Free = taintedFor(in.Free, []string{"a", "b"}[random.IntN(2)], "x")
		}
		for i := range 2 + random.IntN(5) {
			uid, pool, gpus := strconv.Itoa(i), []string{"a", "b", ""}[random.IntN(3)], 1+random.Int64N(6)
			service, req := withGPUs(reserved(uid, "0/0"), gpus), request(uid, gpus, 1)
			if pool != "" {
				service = pinnedTo(service, pool)
			}
			if random.IntN(2) == 0 {
				req = grown(nodes(request(uid, 1+random.Int64N(8), 1), 1+random.Int64N(2)))
			}
			if random.IntN(3) > 0 {
				req = runningIn(req, pool, "0/0")
			}
			// What has no pool has to fit somewhere, or the cluster is overcommitted.
			if pool == "" || random.IntN(2) == 0 {
				service.Shapes[0] = *capacitytest.Tolerating(&service.Shapes[0], "x")
				req = tolerating(req, "x")
			}
			in.Ledger.Services, in.Requests = append(in.Ledger.Services, service), append(in.Requests, req)
		}
		first := Reserve(in)
		if len(first.ShortPools) == 0 || first.Overcommitted {
			continue
		}
		short++
		for _, s := range first.Services {
			grew += int(s.Grants[0].Generation)
		}
		in.Ledger = first.Ledger
		again := Reserve(in)
		isNew := func(pool string) bool { return !slices.Contains(first.ShortPools, pool) }
		if again.Overcommitted || slices.ContainsFunc(again.ShortPools, isNew) {
			t.Fatalf("case %d: the pools %v were short, and then %v, overcommitted: %t", n, first.ShortPools, again.ShortPools, again.Overcommitted)
		}
	}
	if short < 1000 || grew < 1000 {
		t.Errorf("a pool is short in %d cases, and %d replicas grow in these: that proves nothing", short, grew)
	}
}

// TestMovesAreShared proves that requests which fit nowhere, and those of one other namespace, leave enough moves for
// the request of a third one.
func TestMovesAreShared(t *testing.T) {
	of := func(namespace, uid string, gpus int64) CapacityRequest {
		return inNamespace(selecting(request(uid, gpus, 1), "a"), namespace)
	}
	both := func(uid string, gpus int64) CapacityRequest {
		r := inNamespace(request(uid, gpus, 1), "greedy") // Two pods, which need both nodes.
		for name := range r.Clusters[here].Groups[0].Replicas[0].Pods {
			r.Clusters[here].Groups[0].Replicas[0].Pods[name] = 2
		}
		return r
	}
	requests := []CapacityRequest{
		request("1", 4, 1), request("2", 4, 1),
		of("other", "0a", 100), of("other", "0b", 101), of("other", "0c", 102), of("more", "0d", 103), of("most", "0e", 104), of("last", "0f", 105),
		both("0g", 5), both("0h", 6), both("0i", 7), both("0j", 8),
		of("greedy", "0k", 8), // The same as the last one, after the move of its namespace.
		selecting(request("3", 8, 1), "a"),
	}
	ledger := Ledger{Services: []Service{withGPUs(reserved("1", "0/0"), 4), withGPUs(reserved("2", "0/0"), 4)}}
	got := grantedTo(Reserve(Input{Cluster: here, Free: twoPools(1, 1), Ledger: ledger, Requests: requests, Now: noon}))
	if diff := cmp.Diff(map[string]bool{"1": true, "2": true, "3": true}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestTolerationsOfFormerVersion proves that what runs on nodes with taints, and was granted when nobody counted these,
// keeps its grant, and is granted anew as soon as its request has the tolerations of its pods.
func TestTolerationsOfFormerVersion(t *testing.T) {
	const formerLedger = `{"services":[{"namespace":"team","name":"s-1","uid":"1","shapes":[{"requests":{"cpu":1000,"nvidia.com/gpu":8000}}],"grants":[{"pods":[1],"pin":{"pool":"a","nodeSelector":{"pool":"a"}},"started":true,"replicas":["w/0"]}]}]}`
	const formerRequest = `{"uid":"1","namespace":"team","name":"s-1","podRequirements":{"w":{"requests":{"cpu":1000,"nvidia.com/gpu":8000}}},` +
		`"clusters":[{"names":["us-east"],"namespace":"team","groups":[{"name":"0","replicas":[{"name":"w/0","pods":{"w":1},"pool":"a"}]}],"running":["w/0"]}]}`
	tolerations := []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	compressed, _, err := Compress(json.RawMessage(formerLedger))
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := DecodeLedger(compressed)
	if err != nil {
		t.Fatal(err)
	}
	former, err := DecodeRequest(formerRequest)
	if err != nil {
		t.Fatal(err)
	}
	now, err := DecodeRequest(formerRequest)
	if err != nil {
		t.Fatal(err)
	}
	now.PodRequirements["w"] = *capacitytest.Tolerating(capacitytest.Requirements(8, 1), "x")
	now.AssignGenerations(former, 0)
	replaces := *now
	replaces.Clusters = map[string]ClusterRequest{here: {Namespace: "team", Groups: []ReplicaGroup{{Name: "0", Replicas: slices.Clone(Replicas(now.Clusters[here].Groups))}}, Running: []key.ReplicaID{"w/0"}}}
	replaces.Clusters[here].Groups[0].Replicas[0].Replacing = true
	type outcome struct {
		Generation  int64
		Tolerations []corev1.Toleration
		Pool        string
		Short       []string
	}
	cases := map[string]struct {
		reason   string
		requests []CapacityRequest
		want     outcome
	}{
		"NoRequest": {reason: "A service that is not reconciled loses nothing.", want: outcome{Pool: "a", Short: []string{"a"}}},
		"Former":    {reason: "Its request is from the former version, too.", requests: []CapacityRequest{*former}, want: outcome{Pool: "a", Short: []string{"a"}}},
		"Now":       {reason: "Its request has the tolerations.", requests: []CapacityRequest{*now}, want: outcome{Generation: 1, Tolerations: tolerations, Pool: "a"}},
		"Replacing": {reason: "It does not matter that pods from before may still run: they are the same.", requests: []CapacityRequest{replaces}, want: outcome{Generation: 1, Tolerations: tolerations, Pool: "a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := Reserve(Input{Cluster: here, Free: taintedFor(twoPools(1, 0), "a", "x"), Ledger: ledger, Requests: tc.requests, Now: noon})
			if len(result.Services) != 1 || len(result.Pending) != 0 || result.Overcommitted {
				t.Fatalf("%s It does not keep its grant: %+v", tc.reason, result)
			}
			s := result.Services[0]
			got := outcome{s.Grants[0].Generation, s.Shapes[0].Tolerations, s.Grants[0].Pin.Name(), result.ShortPools}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
