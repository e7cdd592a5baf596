package reservation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// A clusterSim is a cluster with the services that request its capacity, as a control plane has
// them. The ledger has a version, and is written only over the version that was read.
type clusterSim struct {
	free     capacity.Free
	requests []CapacityRequest
	ledger   Ledger
	version  int
	next     int
	// now is the time, which goes on with each snapshot.
	now time.Time
}

// A snapshot is what one call reads.
type snapshot struct {
	requests []CapacityRequest
	ledger   Ledger
	version  int
	now      time.Time
	// inUse tells of some services whether they have workloads.
	inUse map[ServiceID]map[key.ReplicaID]bool
}

func (s *snapshot) reserve(free capacity.Free, requests []CapacityRequest) Result {
	return Reserve(Input{Cluster: here, Free: free, Ledger: s.ledger, Requests: requests, InUse: s.inUse, Now: s.now})
}

func (sim *clusterSim) snapshot() snapshot {
	sim.now = sim.now.Add(20 * time.Second)
	snap := snapshot{requests: slices.Clone(sim.requests), ledger: sim.ledger, version: sim.version, now: sim.now, inUse: map[ServiceID]map[key.ReplicaID]bool{}}
	for i, s := range sim.ledger.Services {
		// Of every third service it is not known, and every third has workloads.
		if n := (sim.now.Second()/20 + i) % 3; n > 0 {
			snap.inUse[s.ServiceID] = map[key.ReplicaID]bool{}
			if n == 2 {
				snap.inUse[s.ServiceID][s.Grants[0].Replicas[0]] = true
			}
		}
	}
	return snap
}

// apply writes the ledger like an API server: not over a version that the writer has not read.
func (sim *clusterSim) apply(snap snapshot, result Result) bool {
	if snap.version != sim.version {
		return false
	}
	if !reflect.DeepEqual(sim.ledger, result.Ledger) {
		sim.version++
	}
	sim.ledger = result.Ledger
	return true
}

// edit changes a request, as its service does.
func (sim *clusterSim) edit(i int, change func(*CapacityRequest)) {
	sim.requests = slices.Clone(sim.requests)
	last := sim.requests[i]
	sim.requests[i].Clusters = maps.Clone(last.Clusters)
	change(&sim.requests[i])
	sim.requests[i].AssignGenerations(&last, 0)
}

// change changes what is requested.
func (sim *clusterSim) change(random *rand.Rand) {
	switch n := random.IntN(6); {
	case n < 3 && len(sim.requests) < 12 || len(sim.requests) == 0:
		sim.next++
		var groups []int
		for range 1 + random.IntN(3) {
			groups = append(groups, 1+random.IntN(3))
		}
		req := created(request(fmt.Sprintf("u%d", sim.next), 1+random.Int64N(8), groups...), fmt.Sprintf("2026-03-01T%02d:00:00Z", random.IntN(24)))
		if random.IntN(2) == 0 {
			req = required(req, 1)
		}
		if random.IntN(2) == 0 {
			req = tolerating(req, "x")
		}
		req.AssignGenerations(nil, 0)
		sim.requests = append(sim.requests, req)
	case n == 3:
		i := random.IntN(len(sim.requests))
		sim.requests = slices.Delete(slices.Clone(sim.requests), i, i+1)
	case n == 4 && random.IntN(2) == 0:
		// Other pods, some of which fit onto no node.
		sim.edit(random.IntN(len(sim.requests)), func(req *CapacityRequest) {
			req.PodRequirements = map[string]capacity.PodRequirements{"w": *capacitytest.Requirements(1+random.Int64N(10), 1)}
			if random.IntN(2) == 0 {
				*req = tolerating(*req, "x")
			}
		})
	case n == 4:
		// Another number of pods.
		sim.edit(random.IntN(len(sim.requests)), func(req *CapacityRequest) {
			groups := slices.Clone(req.Clusters[here].Groups)
			if len(groups) == 0 {
				return
			}
			groups[0].Replicas = slices.Clone(groups[0].Replicas)
			groups[0].Replicas[0].Pods = map[string]int64{"w": 1 + random.Int64N(3)}
			req.Clusters = map[string]ClusterRequest{here: {Namespace: "team", Groups: groups}}
		})
	default:
		// Add or remove a group. All may go.
		sim.edit(random.IntN(len(sim.requests)), func(req *CapacityRequest) {
			groups := slices.Clone(req.Clusters[here].Groups)
			if random.IntN(2) == 0 && len(groups) > 0 {
				groups = groups[:len(groups)-1]
			} else {
				more := request("x", 1, slices.Repeat([]int{1}, len(groups)+1)...).Clusters[here].Groups
				groups = append(groups, more[len(groups)])
			}
			req.Clusters = map[string]ClusterRequest{here: {Namespace: "team", Groups: groups}}
		})
	}
	random.Shuffle(len(sim.requests), func(i, j int) { sim.requests[i], sim.requests[j] = sim.requests[j], sim.requests[i] })
}

// run lets some services say that they run what they were granted, in the pools of the grants.
func (sim *clusterSim) run(random *rand.Rand) {
	pools := map[ServiceID]map[key.ReplicaID]string{}
	for _, s := range sim.ledger.Services {
		pools[s.ServiceID] = map[key.ReplicaID]string{}
		for _, g := range s.Grants {
			for _, r := range g.Replicas {
				pools[s.ServiceID][r] = g.Pin.Name()
			}
		}
	}
	for i := range sim.requests {
		if random.IntN(10) > 0 {
			continue
		}
		sim.edit(i, func(req *CapacityRequest) {
			cr := req.Clusters[here]
			cr.Running, cr.Groups = nil, slices.Clone(cr.Groups)
			for g := range cr.Groups {
				cr.Groups[g].Replicas = slices.Clone(cr.Groups[g].Replicas)
				for j := range cr.Groups[g].Replicas {
					r := &cr.Groups[g].Replicas[j]
					if pool, granted := pools[req.ServiceID()][r.Name]; granted {
						cr.Running, r.Pool = append(cr.Running, r.Name), pool
					}
				}
			}
			req.Clusters = map[string]ClusterRequest{here: cr}
		})
	}
}

// TestReserveInvariants proves the invariants of Reserve for random requests that come, change
// and go, and for snapshots of any age. No capacity is granted twice. No grant is lost while it is
// requested and of use, or its request is missing and its service may have workloads. Nothing that fits is pending. The order
// of the requests does not matter.
func TestReserveInvariants(t *testing.T) {
	const steps = 500
	runs := 10
	counts := map[string]int{}
	for run := range uint64(runs) {
		random := rand.New(rand.NewPCG(run, 5))
		cluster := func(a, b int64) capacity.Free {
			switch {
			case run%4 == 0:
				return pool(capacitytest.Nodes(a, 8, 640), capacitytest.Nodes(b, 4, 640))
			case run%4 == 2:
				return pool(capacitytest.Nodes(a, 8, 640), capacitytest.Tainted(capacitytest.Nodes(b, 4, 640), "x"))
			case run%8 == 3:
				return taintedFor(capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(a, 8, 640)), capacitytest.Pool("b", capacitytest.Nodes(b, 4, 640))}}, "b", "x")
			}
			return capacity.Free{Pools: []capacity.Pool{capacitytest.Pool("a", capacitytest.Nodes(a, 8, 640)), capacitytest.Pool("b", capacitytest.Nodes(b, 4, 640))}}
		}
		sim := &clusterSim{now: noon, free: cluster(1+random.Int64N(4), random.Int64N(3))}
		snapshots := []snapshot{sim.snapshot()}
		for range steps {
			if random.IntN(2) == 0 {
				sim.change(random)
			}
			sim.run(random)
			snapshots = append(snapshots, sim.snapshot())
			// Mostly the newest snapshot, sometimes an old one.
			snap := snapshots[len(snapshots)-1]
			if random.IntN(5) == 0 {
				snap = snapshots[max(0, len(snapshots)-1-random.IntN(4))]
			}
			// If nodes are missing for a moment, every grant stays, and nothing new is granted.
			free := sim.free
			away := random.IntN(5) == 0
			if away {
				free = cluster(free.Pools[0].NodeCount/2, 0)
			}
			result := snap.reserve(free, snap.requests)
			if random.IntN(10) == 0 {
				checkOrder(t, random, free, snap, result)
			}
			checkResult(t, free, snap, result, counts)
			if !sim.apply(snap, result) {
				counts["rejected"]++
			}
			switch {
			case (result.Overcommitted || len(result.ShortPools) > 0) && away:
				counts["overcommitted"]++
			case result.Overcommitted || len(result.ShortPools) > 0:
				counts["false alarms"]++
			}
		}
	}
	t.Logf("%d calls: %v", runs*steps, counts)
	for _, name := range []string{"rejected", "granted", "pending", "overcommitted", "grows", "missing", "unknown", "in use", "lost", "held", "pinned", "given back", "leaving"} {
		if counts[name] == 0 {
			t.Errorf("never %s: the test proves nothing", name)
		}
	}
	// Packing is a bounded search. In a cluster that is almost full, it may not find a way to
	// fit all grants at once. Then nothing new is granted, which is safe.
	if counts["false alarms"] > runs*steps/500 {
		t.Errorf("%d times the cluster was overcommitted although no node was missing", counts["false alarms"])
	}
}

// checkOrder proves that the order of requests does not matter.
func checkOrder(t *testing.T, random *rand.Rand, free capacity.Free, snap snapshot, result Result) {
	t.Helper()
	requests := slices.Clone(snap.requests)
	random.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
	if shuffled := snap.reserve(free, requests); !reflect.DeepEqual(result, shuffled) {
		t.Fatalf("another order of requests gives another result:\n%s", cmp.Diff(result, shuffled))
	}
}

func checkResult(t *testing.T, free capacity.Free, snap snapshot, result Result, counts map[string]int) {
	t.Helper()
	requests := map[ServiceID]*CapacityRequest{}
	for i := range snap.requests {
		requests[snap.requests[i].ServiceID()] = &snap.requests[i]
	}
	var all []capacity.PodSet
	held := false
	for _, w := range result.Pending {
		held = held || strings.Contains(w.Message, "Room is held for it")
	}
	granted := map[ServiceID]map[key.ReplicaID]int64{}
	for i := range result.Services {
		s := &result.Services[i]
		if granted[s.ServiceID] != nil || len(s.Grants) == 0 {
			t.Fatalf("service %s has two entries, or an empty one", s.UID)
		}
		granted[s.ServiceID] = generations(s)
		counts["granted"]++
		for _, g := range s.Grants {
			if g.Pin != nil {
				counts["pinned"]++
			}
		}
		all = append(all, s.podSets()...)
		checkGrants(t, s, requests[s.ServiceID])
	}
	switch {
	case held:
		counts["held"]++
	case !result.Overcommitted && len(result.ShortPools) == 0:
		capacitytest.Conserved(t, free, result.Free, all)
	}
	for _, s := range snap.ledger.Services {
		req := requests[s.ServiceID]
		for _, g := range s.Grants {
			for _, r := range g.Replicas {
				now, kept := granted[s.ServiceID][r]
				inUse, known := snap.inUse[s.ServiceID]
				switch {
				case req == nil && (s.MissingSince.IsZero() || snap.now.Sub(s.MissingSince) < Grace):
					counts["missing"]++
				case req == nil && !known:
					counts["unknown"]++
				case req == nil && len(inUse) > 0:
					counts["in use"]++
				case req == nil && !kept:
					counts["lost"]++
					continue
				case !slices.ContainsFunc(allReplicas(*req), func(wanted ReplicaRequest) bool { return wanted.Name == r }):
					if !g.Started || known && !inUse[r] && !s.MissingSince.IsZero() && snap.now.Sub(s.MissingSince) >= LeavingGrace {
						continue
					}
					counts["leaving"]++
				}
				if !kept && isUseless(&s, &snap, req, r) {
					counts["given back"]++
					continue
				}
				if !kept || now < g.Generation {
					t.Fatalf("%s of service %s was granted with generation %d, and is now: %t with %d", r, s.UID, g.Generation, kept, now)
				}
			}
		}
	}
	for _, w := range result.Pending {
		counts["pending"]++
		if w.Grows {
			counts["grows"]++
		}
		req := requests[w.ServiceID]
		for _, group := range req.Clusters[here].Groups {
			missing := slices.DeleteFunc(slices.Clone(group.Replicas), func(r ReplicaRequest) bool { _, has := granted[w.ServiceID][r.Name]; return has })
			left := result.Free.Clone()
			if fits, _ := left.Allocate(PodSets(req.PodRequirements, missing)); fits && len(missing) > 0 && !result.Overcommitted {
				t.Fatalf("group %s of service %s is pending, and would fit: %s", group.Name, req.UID, w.Message)
			}
		}
		if w.Message == "" || w.Generation == 0 {
			t.Fatalf("service %s is pending without a message or a generation", w.UID)
		}
	}
}

// isUseless tells whether a replica that left is requested with other pods, and known to be gone. Or whether the service has
// waited for the grace time, and either the group of a replica runs nothing and lacks a replica that it needs to start, or the
// replica starts by itself, does not run, and was granted other pods.
func isUseless(s *Service, snap *snapshot, req *CapacityRequest, r key.ReplicaID) bool {
	waited, has, leaves := false, generations(s), false
	for _, g := range s.Grants {
		leaves = leaves || g.Leaving && slices.Contains(g.Replicas, r)
	}
	inUse, known := snap.inUse[s.ServiceID]
	gone := leaves && known && !inUse[r] && !s.MissingSince.IsZero() && snap.now.Sub(s.MissingSince) >= LeavingGrace
	for _, w := range snap.ledger.Waiting {
		waited = waited || w.ServiceID == s.ServiceID && snap.now.Sub(w.Since) >= Grace
	}
	for _, group := range req.Clusters[here].Groups {
		in, runs, short, alone, again := false, false, false, false, false
		for _, other := range group.Replicas {
			in = in || other.Name == r
			runs = runs || slices.Contains(req.Clusters[here].Running, other.Name)
			generation, granted := has[other.Name]
			lacks := !granted || generation < other.Generation
			short = short || other.Required && lacks
			again = again || other.Name == r && gone && lacks
			alone = alone || other.Name == r && !other.Required && lacks && !slices.Contains(req.Clusters[here].Running, r)
		}
		if in {
			return again || waited && (!runs && short || alone)
		}
	}
	return false
}

// generations returns the generation of each grant of a service.
func generations(s *Service) map[key.ReplicaID]int64 {
	all := map[key.ReplicaID]int64{}
	for _, g := range s.Grants {
		for _, r := range g.Replicas {
			all[r] = g.Generation
		}
	}
	return all
}

// checkGrants proves that what is granted for the current generation are the pods that are
// requested, and that nothing else is granted.
func checkGrants(t *testing.T, s *Service, req *CapacityRequest) {
	t.Helper()
	if req == nil {
		if s.MissingSince.IsZero() {
			t.Fatalf("the request of service %s is missing, and the ledger does not say so", s.UID)
		}
		return
	}
	wanted := map[key.ReplicaID]ReplicaRequest{}
	for _, r := range allReplicas(*req) {
		wanted[r.Name] = r
	}
	for _, g := range s.Grants {
		for _, name := range g.Replicas {
			r, requested := wanted[name]
			if !requested && g.Started {
				continue // Its workloads may not be gone yet.
			}
			if !requested || g.Generation > r.Generation {
				t.Fatalf("%s is granted to service %s, which does not request it", name, s.UID)
			}
			if g.Generation < r.Generation {
				continue
			}
			one := Service{Shapes: s.Shapes, Grants: []Grant{{Pods: g.Pods, Replicas: []key.ReplicaID{name}}}}
			want, _ := capacity.Sum(PodSets(req.PodRequirements, []ReplicaRequest{r}))
			if got, _ := one.Usage(); !reflect.DeepEqual(want, got) {
				t.Fatalf("%s of service %s is granted %v, and requests %v", name, s.UID, got, want)
			}
		}
	}
}

func allReplicas(req CapacityRequest) []ReplicaRequest { return Replicas(req.Clusters[here].Groups) }

// TestReserveRace lets 50 services race for 10 nodes. The first ten get them and keep them,
// whatever snapshots the calls read and in whatever order the services come.
func TestReserveRace(t *testing.T) {
	for run := range uint64(20) {
		random := rand.New(rand.NewPCG(run, 6))
		sim := &clusterSim{now: noon, free: pool(capacitytest.Nodes(10, 8, 64))}
		var arriving []CapacityRequest
		for i := range 50 {
			arriving = append(arriving, created(request(fmt.Sprintf("u%02d", i), 8, 1), fmt.Sprintf("2026-03-01T10:%02d:00Z", i)))
		}
		random.Shuffle(len(arriving), func(i, j int) { arriving[i], arriving[j] = arriving[j], arriving[i] })
		served := map[string]bool{}
		snapshots := []snapshot{sim.snapshot()}
		for i := range 500 {
			if i%3 == 0 && len(arriving) > 0 {
				sim.requests, arriving = append(slices.Clone(sim.requests), arriving[0]), arriving[1:]
			}
			snapshots = append(snapshots, sim.snapshot())
			snap := snapshots[max(0, len(snapshots)-1-random.IntN(5))]
			if sim.apply(snap, snap.reserve(sim.free, snap.requests)) {
				for _, g := range sim.ledger.Services {
					served[g.UID] = true
				}
			}
		}
		if len(served) != 10 || len(sim.ledger.Services) != 10 {
			t.Errorf("run %d: %d services were served at some time, and %d are, want the same 10", run, len(served), len(sim.ledger.Services))
		}
	}
}
