package reservation

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

const here = "us-east"

// request returns a request of one group for each number of replicas, with one pod each.
func request(uid string, gpus int64, groups ...int) CapacityRequest {
	req := CapacityRequest{UID: uid, Namespace: "team", Name: "s-" + uid, Created: "2026-03-01T10:00:00Z", PodRequirements: map[string]capacity.PodRequirements{"w": *capacitytest.Requirements(gpus, 1)}}
	cr := ClusterRequest{Namespace: "team"}
	for i, n := range groups {
		group := ReplicaGroup{Name: key.GroupID(strconv.Itoa(i))}
		for j := range n {
			group.Replicas = append(group.Replicas, ReplicaRequest{Name: key.ReplicaID(fmt.Sprintf("%d/%d", i, j)), Pods: map[string]int64{"w": 1}})
		}
		cr.Groups = append(cr.Groups, group)
	}
	req.Clusters = map[string]ClusterRequest{here: cr}
	return req
}

func created(req CapacityRequest, s string) CapacityRequest {
	req.Created = s
	return req
}

// allOrNothing makes a request all-or-nothing.
func allOrNothing(req CapacityRequest) CapacityRequest {
	cr := req.Clusters[here]
	cr.AllOrNothing = true
	req.Clusters[here] = cr
	return req
}

// required marks the first n replicas of each group as required.
func required(req CapacityRequest, n int) CapacityRequest {
	for _, group := range req.Clusters[here].Groups {
		for i := range group.Replicas[:n] {
			group.Replicas[i].Required = true
		}
	}
	return req
}

func running(req CapacityRequest, names ...key.ReplicaID) CapacityRequest {
	cr := req.Clusters[here]
	cr.Running = names
	req.Clusters[here] = cr
	return req
}

func notAllowed(req CapacityRequest) CapacityRequest {
	req.NotAllowed = "not allowed"
	return req
}

func inNamespace(req CapacityRequest, namespace string) CapacityRequest {
	req.Namespace = namespace
	return req
}

// withGenerations sets the generations of the first replicas of the first group.
func withGenerations(req CapacityRequest, generations ...int64) CapacityRequest {
	for i, s := range generations {
		req.Clusters[here].Groups[0].Replicas[i].Generation = s
	}
	return req
}

func withGeneration(g Reservation, s int64) Reservation {
	g.Generation = s
	return g
}

func reserved(uid string, replicas ...key.ReplicaID) Reservation {
	return Reservation{UID: uid, Namespace: "team", Name: "s-" + uid, Replicas: replicas}
}

// withGPUs sets the GPUs of each pod that a reservation counts.
func withGPUs(g Reservation, gpus int64) Reservation {
	g.PodRequirements = map[string]capacity.PodRequirements{"w": *capacitytest.Requirements(gpus, 1)}
	return g
}

func TestReserve(t *testing.T) {
	type want struct {
		reservations  []Reservation
		pending       map[string]string
		overcommitted bool
		changed       []string
	}
	cases := map[string]struct {
		reason         string
		nodes          []capacity.NodeClass
		reservations   []Reservation
		requests       []CapacityRequest
		notSchedulable string
		want           want
	}{
		"Whole": {
			reason:   "All of a group that fits is reserved.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{request("a", 2, 3)},
			want:     want{reservations: []Reservation{reserved("a", "0/0", "0/1", "0/2")}},
		},
		"AllOrNothing": {
			reason:   "A group whose replicas are all required gets all or nothing.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{required(request("a", 4, 3), 3)},
			want:     want{pending: map[string]string{"a": "8 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"WholeService": {
			reason:   "An all-or-nothing request gets all or nothing, although none of its replicas is required.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{allOrNothing(request("a", 4, 1, 1, 1))},
			want:     want{pending: map[string]string{"a": "8 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"NoMinimum": {
			reason:   "A group without required replicas gets what fits.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{request("a", 4, 3)},
			want:     want{reservations: []Reservation{reserved("a", "0/0", "0/1")}, pending: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"Minimum": {
			reason:   "The required replicas of a group come first, the rest replica by replica.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{required(request("a", 3, 3), 1)},
			want:     want{reservations: []Reservation{reserved("a", "0/0", "0/1")}, pending: map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"MinimumDoesNotFit": {
			reason:   "A group whose required replicas do not fit gets nothing.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{required(request("a", 3, 4), 3)},
			want:     want{pending: map[string]string{"a": "8 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"Grows": {
			reason:       "A group that has started gets as many more replicas as fit.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Reservation{reserved("a", "0/1")},
			requests:     []CapacityRequest{request("a", 3, 3)},
			want:         want{reservations: []Reservation{reserved("a", "0/1", "0/0")}, pending: map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"OldestFirst": {
			reason:   "The oldest service is served first, whatever its name.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{created(request("a", 8, 1), "2026-03-01T11:00:00Z"), created(request("b", 8, 1), "2026-03-01T09:00:00Z")},
			want:     want{reservations: []Reservation{reserved("b", "0/0")}, pending: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"SmallerPasses": {
			reason:   "A request that does not fit does not block a younger one that does.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{created(request("a", 9, 1), "2026-03-01T09:00:00Z"), request("b", 8, 1)},
			want:     want{reservations: []Reservation{reserved("b", "0/0")}, pending: map[string]string{"a": "8 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"Released": {
			reason:       "Capacity that is no longer requested is reserved for the next service.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Reservation{reserved("gone", "0/0"), reserved("a", "0/0", "0/1")},
			requests:     []CapacityRequest{request("a", 4, 1), request("b", 4, 1)},
			want:         want{reservations: []Reservation{reserved("a", "0/0"), reserved("b", "0/0")}},
		},
		"Running": {
			reason:   "Replicas that run without a reservation are counted if they fit.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{request("a", 8, 1), running(created(request("b", 8, 1), "2026-03-01T11:00:00Z"), "0/0")},
			want:     want{reservations: []Reservation{reserved("b", "0/0")}, pending: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"RunningWithoutCapacity": {
			reason:   "Replicas that are claimed to run, and do not fit, get no reservation and do not block other services.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{running(created(request("a", 4, 3), "0"), "0/0", "0/1", "0/2"), running(created(request("m", 800, 1), "0"), "0/0"), request("b", 8, 1)},
			want: want{
				reservations: []Reservation{reserved("a", "0/0", "0/1")},
				pending: map[string]string{
					"a": "1 replicas run without a reservation: 0 of 8 nvidia.com/gpu free in pool p, 4 short",
					"m": "1 replicas run without a reservation: 0 of 8 nvidia.com/gpu free in pool p, 800 short",
					"b": "0 of 8 nvidia.com/gpu free in pool p, 8 short",
				},
			},
		},
		"RunningWhileNotSchedulable": {
			reason:         "A cluster that is not schedulable counts what runs, since it is not new.",
			nodes:          []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests:       []CapacityRequest{running(request("a", 1, 2), "0/0")},
			notSchedulable: "the cluster is drained",
			want:           want{reservations: []Reservation{reserved("a", "0/0")}, pending: map[string]string{"a": "the cluster is drained"}},
		},
		"NotAllowed": {
			reason:       "A service that is not allowed keeps its reservation and gets nothing new, neither by a request nor by a claim to run.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Reservation{reserved("a", "0/0")},
			requests:     []CapacityRequest{notAllowed(request("a", 1, 2)), notAllowed(running(request("m", 1, 1), "0/0")), request("z", 1, 1)},
			want: want{
				reservations: []Reservation{reserved("a", "0/0"), reserved("z", "0/0")},
				pending:      map[string]string{"a": "not allowed", "m": "1 replicas run without a reservation: not allowed"},
			},
		},
		"RunningReserved": {
			reason:       "A reservation is kept although it does not fit.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Reservation{reserved("a", "0/0", "0/1")},
			requests:     []CapacityRequest{running(request("a", 8, 2), "0/0", "0/1")},
			want:         want{reservations: []Reservation{reserved("a", "0/0", "0/1")}, overcommitted: true},
		},
		"SameUID": {
			reason:       "A request with the same UID in another namespace is another service, and takes nothing from the owner of the reservation.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Reservation{reserved("a", "0/0")},
			requests:     []CapacityRequest{inNamespace(created(request("a", 8, 1), "0"), "aa-mallory"), request("a", 8, 1)},
			want:         want{reservations: []Reservation{reserved("a", "0/0")}, pending: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"Answered": {
			reason:       "A reservation has the generation of the request that it answers. What was reserved for an older one is kept.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Reservation{reserved("a", "0/0"), withGeneration(reserved("b", "0/0"), 4)},
			requests:     []CapacityRequest{withGenerations(request("a", 1, 2), 0, 3), withGenerations(request("b", 1, 1), 5)},
			want:         want{reservations: []Reservation{withGeneration(reserved("a", "0/0", "0/1"), 3), withGeneration(reserved("b", "0/0"), 5)}},
		},
		"NotSchedulable": {
			reason:         "A cluster that is not schedulable keeps its reservations, and makes none.",
			nodes:          []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations:   []Reservation{reserved("a", "0/0")},
			requests:       []CapacityRequest{request("a", 1, 1, 1), request("b", 1, 1)},
			notSchedulable: "the cluster is drained",
			want:           want{reservations: []Reservation{reserved("a", "0/0")}, pending: map[string]string{"a": "the cluster is drained", "b": "the cluster is drained"}},
		},
		"Overcommitted": {
			reason:       "If nodes are gone, every reservation stays, and nothing is added.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Reservation{reserved("a", "0/0"), reserved("c", "0/0")},
			requests:     []CapacityRequest{request("a", 6, 1), request("b", 1, 1), request("c", 6, 1)},
			want: want{
				reservations: []Reservation{reserved("a", "0/0"), reserved("c", "0/0")}, overcommitted: true,
				pending: map[string]string{"b": "more is reserved than the cluster has"},
			},
		},
		"NodeMissing": {
			reason:       "If a node is missing for a moment, no reservation is given to another service.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Reservation{reserved("a", "0/0", "0/1", "0/2"), reserved("b", "0/0", "0/1", "0/2")},
			requests:     []CapacityRequest{request("a", 6, 3), request("b", 2, 3), request("c", 2, 2)},
			want: want{
				reservations: []Reservation{reserved("a", "0/0", "0/1", "0/2"), reserved("b", "0/0", "0/1", "0/2")}, overcommitted: true,
				pending: map[string]string{"c": "more is reserved than the cluster has"},
			},
		},
		"Larger": {
			reason:       "Pods that have changed are counted as they are now, if they fit.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Reservation{withGPUs(reserved("a", "0/0", "0/1"), 2)},
			requests:     []CapacityRequest{request("a", 6, 2), request("b", 2, 3)},
			want: want{
				reservations: []Reservation{reserved("a", "0/0", "0/1"), reserved("b", "0/0", "0/1")},
				pending:      map[string]string{"b": "0 of 16 nvidia.com/gpu free in pool p, 2 short"},
			},
		},
		"LargerOldestFirst": {
			reason:       "If the pods of two services grow, and only one fits, the older service gets it.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Reservation{withGPUs(reserved("a", "0/0"), 2), withGPUs(reserved("b", "0/0"), 2)},
			requests:     []CapacityRequest{request("a", 6, 1), created(request("b", 6, 1), "2026-03-01T09:00:00Z")},
			want:         want{reservations: []Reservation{withGPUs(reserved("a", "0/0"), 2), reserved("b", "0/0")}, changed: []string{"s-a"}},
		},
		"Smaller": {
			reason:       "Pods that request less than is reserved release the rest, even if nodes are gone.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Reservation{withGPUs(reserved("a", "0/0", "0/1"), 8)},
			requests:     []CapacityRequest{request("a", 3, 2), request("b", 2, 1)},
			want:         want{reservations: []Reservation{reserved("a", "0/0", "0/1"), reserved("b", "0/0")}},
		},
		"RequirementsChanged": {
			reason:       "Pods that grow beyond any node keep their reservation and get nothing more. Other services get what is free.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(4, 8, 64)},
			reservations: []Reservation{withGPUs(reserved("a", "0/0"), 8)},
			requests:     []CapacityRequest{request("a", 16, 2), request("b", 8, 4)},
			want: want{
				reservations: []Reservation{withGPUs(reserved("a", "0/0"), 8), reserved("b", "0/0", "0/1", "0/2")}, changed: []string{"s-a"},
				pending: map[string]string{"a": MessageRequirementsChanged, "b": "0 of 32 nvidia.com/gpu free in pool p, 8 short"},
			},
		},
		"RequirementsChangedForNow": {
			reason:       "The same applies to pods that would fit without the other services.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Reservation{withGPUs(reserved("a", "0/0"), 2), reserved("b", "0/0", "0/1")},
			requests:     []CapacityRequest{request("a", 8, 2), request("b", 6, 2), request("c", 2, 1)},
			want: want{
				reservations: []Reservation{withGPUs(reserved("a", "0/0"), 2), reserved("b", "0/0", "0/1"), reserved("c", "0/0")}, changed: []string{"s-a"},
				pending: map[string]string{"a": MessageRequirementsChanged},
			},
		},
		"RequirementsChangedRunning": {
			reason:       "Replicas that such a service claims to run are not counted either.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Reservation{withGPUs(reserved("a", "0/0"), 8)},
			requests:     []CapacityRequest{running(request("a", 16, 2), "0/0", "0/1"), request("b", 8, 1)},
			want: want{
				reservations: []Reservation{withGPUs(reserved("a", "0/0"), 8), reserved("b", "0/0")}, changed: []string{"s-a"},
				pending: map[string]string{"a": "1 replicas run without a reservation: " + MessageRequirementsChanged},
			},
		},
		"RequirementsUnknown": {
			reason:       "If a reservation does not say what it counts, and the pods do not fit, nothing is added.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(4, 8, 64)},
			reservations: []Reservation{reserved("a", "0/0")},
			requests:     []CapacityRequest{request("a", 16, 1), request("b", 8, 1)},
			want: want{
				reservations: []Reservation{reserved("a", "0/0")}, overcommitted: true,
				pending: map[string]string{"b": "more is reserved than the cluster has"},
			},
		},
		"RequestsElsewhere": {
			reason:       "A service that requests capacity of other clusters only has no reservation here.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Reservation{reserved("a", "0/0")},
			requests:     []CapacityRequest{{UID: "a", Clusters: map[string]ClusterRequest{"us-west": {}}}},
			want:         want{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := Reserve(here, capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, tc.nodes)}}, tc.reservations, tc.requests, tc.notSchedulable)
			// Most reservations count the pods as they are requested.
			for i, g := range tc.want.reservations {
				for _, req := range tc.requests {
					if g.PodRequirements == nil && req.ServiceID() == g.ServiceID() {
						tc.want.reservations[i].PodRequirements = req.PodRequirements
					}
				}
			}
			got := want{reservations: result.Reservations, overcommitted: result.Overcommitted}
			for _, s := range result.RequirementsChanged {
				got.changed = append(got.changed, s.Name)
			}
			for _, w := range result.Pending {
				if got.pending == nil {
					got.pending = map[string]string{}
				}
				got.pending[w.UID] = w.Message
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A clusterSim is a cluster with the services that request its capacity, as a control plane has
// them. The ledger has a version, and is written only over the version that was read.
type clusterSim struct {
	free         capacity.Free
	requests     []CapacityRequest
	reservations []Reservation
	version      int
	next         int
}

// A snapshot is what one call reads.
type snapshot struct {
	requests     []CapacityRequest
	reservations []Reservation
	version      int
}

func (sim *clusterSim) snapshot() snapshot {
	return snapshot{requests: slices.Clone(sim.requests), reservations: slices.Clone(sim.reservations), version: sim.version}
}

// apply writes the ledger like an API server: not over a version that the writer has not read.
func (sim *clusterSim) apply(snap snapshot, result Result) bool {
	if snap.version != sim.version {
		return false
	}
	if !reflect.DeepEqual(sim.reservations, result.Reservations) {
		sim.version++
	}
	sim.reservations = result.Reservations
	return true
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
		sim.requests = append(sim.requests, req)
	case n == 3:
		i := random.IntN(len(sim.requests))
		sim.requests = slices.Delete(slices.Clone(sim.requests), i, i+1)
	case n == 4 && random.IntN(2) == 0:
		// Other pods, some of which fit onto no node.
		i := random.IntN(len(sim.requests))
		sim.requests = slices.Clone(sim.requests)
		sim.requests[i].PodRequirements = map[string]capacity.PodRequirements{"w": *capacitytest.Requirements(1+random.Int64N(10), 1)}
	default:
		// Add or remove a group.
		i := random.IntN(len(sim.requests))
		req := sim.requests[i]
		groups := slices.Clone(req.Clusters[here].Groups)
		if random.IntN(2) == 0 && len(groups) > 1 {
			groups = groups[:len(groups)-1]
		} else {
			more := request("x", 1, slices.Repeat([]int{1}, len(groups)+1)...).Clusters[here].Groups
			groups = append(groups, more[len(groups)])
		}
		req.Clusters = map[string]ClusterRequest{here: {Namespace: "team", Groups: groups}}
		sim.requests = slices.Clone(sim.requests)
		sim.requests[i] = req
	}
	random.Shuffle(len(sim.requests), func(i, j int) { sim.requests[i], sim.requests[j] = sim.requests[j], sim.requests[i] })
}

// TestReserveInvariants proves the invariants of Reserve for random requests that come, change
// and go, and for snapshots of any age. No capacity is reserved twice. No reservation is lost
// while it is requested. Nothing that fits is pending. The order of the requests does not
// matter.
func TestReserveInvariants(t *testing.T) {
	const steps = 500
	runs := 10
	rejected, reserved, pending, falseAlarms, overcommitted, changed := 0, 0, 0, 0, 0, 0
	for run := range uint64(runs) {
		random := rand.New(rand.NewPCG(run, 5))
		sim := &clusterSim{free: capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, []capacity.NodeClass{capacitytest.Nodes(1+random.Int64N(4), 8, 640), capacitytest.Nodes(random.Int64N(3), 4, 640)})}}}
		snapshots := []snapshot{sim.snapshot()}
		for range steps {
			if random.IntN(2) == 0 {
				sim.change(random)
			}
			snapshots = append(snapshots, sim.snapshot())
			// Mostly the newest snapshot, sometimes an old one.
			snap := snapshots[len(snapshots)-1]
			if random.IntN(5) == 0 {
				snap = snapshots[max(0, len(snapshots)-1-random.IntN(4))]
			}
			// If nodes are missing for a moment, every reservation stays, and nothing new is
			// reserved.
			free := sim.free
			away := random.IntN(5) == 0
			if away {
				free = capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, []capacity.NodeClass{capacitytest.Nodes(free.Pools[0].NodeCount/2, 8, 640)})}}
			}
			result := Reserve(here, free, snap.reservations, snap.requests, "")
			if random.IntN(10) == 0 {
				checkOrder(t, random, free, snap, result)
			}
			checkResult(t, free, snap, result)
			if !away && !result.Overcommitted {
				changed += len(result.RequirementsChanged)
			}
			if !sim.apply(snap, result) {
				rejected++
			}
			reserved, pending = reserved+len(result.Reservations), pending+len(result.Pending)
			if result.Overcommitted && away {
				overcommitted++
			} else if result.Overcommitted {
				falseAlarms++
			}
		}
	}
	t.Logf("%d calls: %d writes rejected, %d reservations, %d pending, %d times overcommitted while nodes were missing, %d times changed pods did not fit, %d times reservations did not fit by the search",
		runs*steps, rejected, reserved, pending, overcommitted, changed, falseAlarms)
	if rejected == 0 || reserved == 0 || pending == 0 || overcommitted == 0 || changed == 0 {
		t.Error("some case never occurred: the test proves nothing")
	}
	// Packing is a bounded search. In a cluster that is almost full, it may not find a way to
	// fit all reservations at once. Then nothing new is reserved, which is safe.
	if falseAlarms > runs*steps/500 {
		t.Errorf("%d times the cluster was overcommitted although no node was missing", falseAlarms)
	}
}

// checkOrder proves that the order of requests does not matter.
func checkOrder(t *testing.T, random *rand.Rand, free capacity.Free, snap snapshot, result Result) {
	t.Helper()
	requests := slices.Clone(snap.requests)
	random.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
	if shuffled := Reserve(here, free, snap.reservations, requests, ""); !reflect.DeepEqual(result, shuffled) {
		t.Fatalf("another order of requests gives another result:\n%s", cmp.Diff(result, shuffled))
	}
}

func checkResult(t *testing.T, free capacity.Free, snap snapshot, result Result) {
	t.Helper()
	byUID := map[string]CapacityRequest{}
	for _, req := range snap.requests {
		byUID[req.UID] = req
	}
	now := map[string][]key.ReplicaID{}
	var all []capacity.PodSet
	for i, g := range result.Reservations {
		if now[g.UID] != nil || len(g.Replicas) == 0 {
			t.Fatalf("service %s has two reservations, or an empty one", g.UID)
		}
		now[g.UID] = g.Replicas
		req := byUID[g.UID]
		replicas := slices.DeleteFunc(allReplicas(req), func(r ReplicaRequest) bool { return !slices.Contains(g.Replicas, r.Name) })
		if len(replicas) != len(g.Replicas) {
			t.Fatalf("%q is reserved for service %s, which does not request all of it", g.Replicas, g.UID)
		}
		as := CapacityRequest{PodRequirements: g.PodRequirements}
		podSets := as.PodSets(replicas)
		requirementsChanged := slices.Contains(result.RequirementsChanged, req.ServiceID())
		for name, s := range g.PodRequirements {
			if now := req.PodRequirements[name]; s.Key() != now.Key() && !requirementsChanged {
				t.Fatalf("service %s is counted as %s, requests %s, and is not reported as changed", g.UID, s.Key(), now.Key())
			}
		}
		all = append(all, podSets...)
		total, pods := capacity.Sum(podSets)
		if want := (Usage{Resources: total, Pods: pods}); !reflect.DeepEqual(want, result.Usage[i]) {
			t.Fatalf("service %s uses %v, want %v", g.UID, result.Usage[i], want)
		}
	}
	if !result.Overcommitted {
		capacitytest.Conserved(t, free, result.Free, all)
	}
	for _, g := range snap.reservations {
		for _, r := range allReplicas(byUID[g.UID]) {
			if slices.Contains(g.Replicas, r.Name) && !slices.Contains(now[g.UID], r.Name) {
				t.Fatalf("%s of service %s was reserved, is requested, and is lost", r.Name, g.UID)
			}
		}
	}
	for _, w := range result.Pending {
		req := byUID[w.UID]
		for _, group := range req.Clusters[here].Groups {
			missing := slices.DeleteFunc(slices.Clone(group.Replicas), func(r ReplicaRequest) bool { return slices.Contains(now[req.UID], r.Name) })
			left := result.Free.Clone()
			if fits, _ := left.Allocate(req.PodSets(missing)); fits && len(missing) > 0 && !result.Overcommitted && !slices.Contains(result.RequirementsChanged, req.ServiceID()) {
				t.Fatalf("group %s of service %s is pending, and would fit", group.Name, req.UID)
			}
		}
		if w.Message == "" {
			t.Fatalf("service %s is pending without a message", w.UID)
		}
	}
}

func allReplicas(req CapacityRequest) []ReplicaRequest { return Replicas(req.Clusters[here].Groups) }

// TestReserveRace lets 50 services race for 10 nodes. The first ten get them and keep them,
// whatever snapshots the calls read and in whatever order the services come.
func TestReserveRace(t *testing.T) {
	for run := range uint64(20) {
		random := rand.New(rand.NewPCG(run, 6))
		sim := &clusterSim{free: capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, []capacity.NodeClass{capacitytest.Nodes(10, 8, 64)})}}}
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
			if sim.apply(snap, Reserve(here, sim.free, snap.reservations, snap.requests, "")) {
				for _, g := range sim.reservations {
					served[g.UID] = true
				}
			}
		}
		if len(served) != 10 || len(sim.reservations) != 10 {
			t.Errorf("run %d: %d services were served at some time, and %d are, want the same 10", run, len(served), len(sim.reservations))
		}
	}
}
