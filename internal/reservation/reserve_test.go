package reservation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
	for i, g := range generations {
		req.Clusters[here].Groups[0].Replicas[i].Generation = g
		req.Generation = max(req.Generation, g)
	}
	return req
}

// grown makes a request one that was changed: all of its replicas have a higher generation than
// the grants of a test.
func grown(req CapacityRequest) CapacityRequest {
	for _, group := range req.Clusters[here].Groups {
		for i := range group.Replicas {
			group.Replicas[i].Generation = 1
		}
	}
	req.Generation = 1
	return req
}

// replacing says of all replicas of a request that pods from before may still run.
func replacing(req CapacityRequest) CapacityRequest {
	for _, group := range req.Clusters[here].Groups {
		for i := range group.Replicas {
			group.Replicas[i].Replacing = true
		}
	}
	return req
}

// reserved returns the grants of a service, for the pods that it requests.
func reserved(uid string, replicas ...key.ReplicaID) Service {
	return Service{ServiceID: ServiceID{Namespace: "team", Name: "s-" + uid, UID: uid}, Grants: []Grant{{Replicas: replicas}}}
}

// started says of all grants that the service runs the replicas.
func started(s Service) Service {
	s.Grants = slices.Clone(s.Grants)
	for i := range s.Grants {
		s.Grants[i].Started = true
	}
	return s
}

// leaving says of all grants that the request lacks the replicas since noon.
func leaving(s Service) Service {
	s.MissingSince = noon
	for i := range s.Grants {
		s.Grants[i].Leaving = true
	}
	return s
}

// withGeneration sets the generation of all grants.
func withGeneration(s Service, generation int64) Service {
	s.Grants = slices.Clone(s.Grants)
	for i := range s.Grants {
		s.Grants[i].Generation = generation
	}
	return s
}

// runs says of all replicas of a request that all of their pods are of a generation.
func runs(req CapacityRequest, generation int64) CapacityRequest {
	for _, group := range req.Clusters[here].Groups {
		for i := range group.Replicas {
			group.Replicas[i].Runs = generation
		}
	}
	return req
}

// requested says of all grants that one pod of some GPUs is requested, beside those from before.
func requested(s Service, gpus int64) Service {
	s.Shapes = append([]capacity.PodRequirements{*capacitytest.Requirements(gpus, 1)}, s.Shapes...)
	for i := range s.Grants {
		s.Grants[i].Pods, s.Grants[i].Requested = append([]int64{0}, s.Grants[i].Pods...), []int64{1}
	}
	return s
}

// withGPUs sets the GPUs of each pod that is granted.
func withGPUs(s Service, gpus int64) Service {
	s.Shapes = []capacity.PodRequirements{*capacitytest.Requirements(gpus, 1)}
	s.Grants = slices.Clone(s.Grants)
	for i := range s.Grants {
		s.Grants[i].Pods = []int64{1}
	}
	return s
}

// and adds further grants to a service that has the same shapes.
func and(s, more Service) Service {
	s.Grants = append(slices.Clone(s.Grants), more.Grants...)
	return s
}

// noon is the time of most calls.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// reserve decides at noon.
func reserve(free capacity.Free, services []Service, requests []CapacityRequest) Result {
	return Reserve(Input{Cluster: here, Free: free, Ledger: Ledger{Services: services}, Requests: requests, Now: noon})
}

// pool returns a cluster of one pool.
func pool(nodes ...capacity.NodeClass) capacity.Free {
	return capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, nodes)}}
}

// nodes sets the number of pods of each replica.
func nodes(req CapacityRequest, n int64) CapacityRequest {
	for _, group := range req.Clusters[here].Groups {
		for i := range group.Replicas {
			group.Replicas[i].Pods = map[string]int64{"w": n}
		}
	}
	return req
}

// requesting has the pods request some GPUs and CPUs.
func requesting(req CapacityRequest, gpus, cpus int64) CapacityRequest {
	req.PodRequirements["w"] = *capacitytest.Requirements(gpus, cpus)
	return req
}

const keptBefore = "what was reserved before is kept: "

func TestReserve(t *testing.T) {
	type want struct {
		reservations  []Service
		pending       map[string]string
		overcommitted bool
		grows         []string
	}
	cases := map[string]struct {
		reason         string
		nodes          []capacity.NodeClass
		reservations   []Service
		requests       []CapacityRequest
		notSchedulable string
		want           want
	}{
		"Whole": {
			reason:   "All of a group that fits is reserved.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{request("a", 2, 3)},
			want:     want{reservations: []Service{reserved("a", "0/0", "0/1", "0/2")}},
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
			want:     want{reservations: []Service{reserved("a", "0/0", "0/1")}, pending: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"Minimum": {
			reason:   "The required replicas of a group come first, the rest replica by replica.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{required(request("a", 3, 3), 1)},
			want:     want{reservations: []Service{reserved("a", "0/0", "0/1")}, pending: map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 1 short"}},
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
			reservations: []Service{reserved("a", "0/1")},
			requests:     []CapacityRequest{request("a", 3, 3)},
			want:         want{reservations: []Service{reserved("a", "0/1", "0/0")}, pending: map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"OldestFirst": {
			reason:   "The oldest service is served first, whatever its name.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{created(request("a", 8, 1), "2026-03-01T11:00:00Z"), created(request("b", 8, 1), "2026-03-01T09:00:00Z")},
			want:     want{reservations: []Service{reserved("b", "0/0")}, pending: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"SmallerPasses": {
			reason:   "A request that does not fit does not block a younger one that does.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{created(request("a", 9, 1), "2026-03-01T09:00:00Z"), request("b", 8, 1)},
			want:     want{reservations: []Service{reserved("b", "0/0")}, pending: map[string]string{"a": "8 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"Released": {
			reason:       "Capacity that is no longer requested is reserved for the next service.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{reserved("gone", "0/0"), reserved("a", "0/0", "0/1")},
			requests:     []CapacityRequest{{UID: "gone", Namespace: "team", Name: "s-gone"}, request("a", 4, 1), request("b", 4, 1)},
			want:         want{reservations: []Service{reserved("a", "0/0"), reserved("b", "0/0")}},
		},
		"Running": {
			reason:   "Replicas that run without a reservation are counted if they fit.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{request("a", 8, 1), running(created(request("b", 8, 1), "2026-03-01T11:00:00Z"), "0/0")},
			want:     want{reservations: []Service{started(reserved("b", "0/0"))}, pending: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"RunningWithoutCapacity": {
			reason:   "Replicas that are claimed to run, and do not fit, get no reservation and do not block other services.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{running(created(request("a", 4, 3), "0"), "0/0", "0/1", "0/2"), running(created(request("m", 800, 1), "0"), "0/0"), request("b", 8, 1)},
			want: want{
				reservations: []Service{started(reserved("a", "0/0", "0/1"))},
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
			want:           want{reservations: []Service{started(reserved("a", "0/0"))}, pending: map[string]string{"a": "the cluster is drained"}},
		},
		"NotAllowed": {
			reason:       "A service that is not allowed keeps its reservation and gets nothing new, neither by a request nor by a claim to run.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Service{reserved("a", "0/0")},
			requests:     []CapacityRequest{notAllowed(request("a", 1, 2)), notAllowed(running(request("m", 1, 1), "0/0")), request("z", 1, 1)},
			want: want{
				reservations: []Service{reserved("a", "0/0"), reserved("z", "0/0")},
				pending:      map[string]string{"a": "not allowed", "m": "1 replicas run without a reservation: not allowed"},
			},
		},
		"RunningReserved": {
			reason:       "A reservation is kept although it does not fit.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{reserved("a", "0/0", "0/1")},
			requests:     []CapacityRequest{running(request("a", 8, 2), "0/0", "0/1")},
			want:         want{reservations: []Service{started(reserved("a", "0/0", "0/1"))}, overcommitted: true},
		},
		"SameUID": {
			reason:       "A request with the same UID in another namespace is another service, and takes nothing from the owner of the reservation.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{reserved("a", "0/0")},
			requests:     []CapacityRequest{inNamespace(created(request("a", 8, 1), "0"), "aa-mallory"), request("a", 8, 1)},
			want:         want{reservations: []Service{reserved("a", "0/0")}, pending: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"Answered": {
			reason:       "A grant has the generation of the replica's request. A higher one for the same pods is granted at once.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0"), 1), withGPUs(withGeneration(reserved("b", "0/0"), 4), 1)},
			requests:     []CapacityRequest{withGenerations(request("a", 1, 2), 0, 3), withGenerations(request("b", 1, 1), 5)},
			want:         want{reservations: []Service{withGPUs(and(reserved("a", "0/0"), withGeneration(reserved("a", "0/1"), 3)), 1), withGeneration(reserved("b", "0/0"), 5)}},
		},
		"NotSchedulable": {
			reason:         "A cluster that is not schedulable keeps its reservations, and makes none.",
			nodes:          []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations:   []Service{reserved("a", "0/0")},
			requests:       []CapacityRequest{request("a", 1, 1, 1), request("b", 1, 1)},
			notSchedulable: "the cluster is drained",
			want:           want{reservations: []Service{reserved("a", "0/0")}, pending: map[string]string{"a": "the cluster is drained", "b": "the cluster is drained"}},
		},
		"Overcommitted": {
			reason:       "If nodes are gone, every reservation stays, and nothing is added.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{reserved("a", "0/0"), reserved("c", "0/0")},
			requests:     []CapacityRequest{request("a", 6, 1), request("b", 1, 1), request("c", 6, 1)},
			want: want{
				reservations: []Service{reserved("a", "0/0"), reserved("c", "0/0")}, overcommitted: true,
				pending: map[string]string{"b": "more is reserved than the cluster has"},
			},
		},
		"NodeMissing": {
			reason:       "If a node is missing for a moment, no reservation is given to another service.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Service{reserved("a", "0/0", "0/1", "0/2"), reserved("b", "0/0", "0/1", "0/2")},
			requests:     []CapacityRequest{request("a", 6, 3), request("b", 2, 3), request("c", 2, 2)},
			want: want{
				reservations: []Service{reserved("a", "0/0", "0/1", "0/2"), reserved("b", "0/0", "0/1", "0/2")}, overcommitted: true,
				pending: map[string]string{"c": "more is reserved than the cluster has"},
			},
		},
		"Larger": {
			reason:       "Pods that grow are granted as they are requested now, if they fit.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0", "0/1"), 2)},
			requests:     []CapacityRequest{grown(request("a", 6, 2)), request("b", 2, 3)},
			want: want{
				reservations: []Service{withGeneration(reserved("a", "0/0", "0/1"), 1), reserved("b", "0/0", "0/1")},
				pending:      map[string]string{"b": "0 of 16 nvidia.com/gpu free in pool p, 2 short"},
			},
		},
		"LargerInPart": {
			reason:       "Replicas grow one by one, as they fit. What was granted before is kept for the others.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0", "0/1"), 2)},
			requests:     []CapacityRequest{grown(request("a", 5, 2)), request("b", 1, 2)},
			want: want{
				reservations: []Service{
					{ServiceID: reserved("a").ServiceID, Shapes: []capacity.PodRequirements{*capacitytest.Requirements(2, 1), *capacitytest.Requirements(5, 1)}, Grants: []Grant{{Generation: 1, Pods: []int64{0, 1}, Replicas: []key.ReplicaID{"0/0"}}, {Pods: []int64{1}, Replicas: []key.ReplicaID{"0/1"}}}},
					reserved("b", "0/0"),
				},
				pending: map[string]string{"a": keptBefore + "1 of 8 nvidia.com/gpu free in pool p, 2 short", "b": "0 of 8 nvidia.com/gpu free in pool p, 1 short"}, grows: []string{"s-a"},
			},
		},
		"LargerOldestFirst": {
			reason:       "If the pods of two services grow, and only one fits, the older service gets it.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0"), 2), withGPUs(reserved("b", "0/0"), 2)},
			requests:     []CapacityRequest{grown(request("a", 6, 1)), created(grown(request("b", 6, 1)), "2026-03-01T09:00:00Z")},
			want: want{
				reservations: []Service{withGPUs(reserved("a", "0/0"), 2), withGeneration(reserved("b", "0/0"), 1)}, grows: []string{"s-a"},
				pending: map[string]string{"a": keptBefore + "0 of 8 nvidia.com/gpu free in pool p, 4 short"},
			},
		},
		"OlderBeforeGrowth": {
			reason:       "Growth of a younger service does not come before a new request of an older one.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0"), 2)},
			requests:     []CapacityRequest{grown(request("a", 8, 1)), created(request("b", 6, 1), "2026-03-01T09:00:00Z")},
			want: want{
				reservations: []Service{withGPUs(reserved("a", "0/0"), 2), reserved("b", "0/0")}, grows: []string{"s-a"},
				pending: map[string]string{"a": keptBefore + "0 of 8 nvidia.com/gpu free in pool p, 6 short"},
			},
		},
		"Smaller": {
			reason:       "Pods that request less than is granted release the rest, even if nodes are gone.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0", "0/1"), 8)},
			requests:     []CapacityRequest{grown(request("a", 3, 2)), request("b", 2, 1)},
			want:         want{reservations: []Service{withGeneration(reserved("a", "0/0", "0/1"), 1), reserved("b", "0/0")}},
		},
		"SmallerWhileReplacing": {
			reason:       "Pods that request less keep what is granted until those from before are gone.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0"), 8)},
			requests:     []CapacityRequest{replacing(grown(request("a", 3, 1))), request("b", 8, 2)},
			want: want{
				reservations: []Service{requested(withGeneration(withGPUs(reserved("a", "0/0"), 8), 1), 3), reserved("b", "0/0")},
				pending:      map[string]string{"b": "0 of 16 nvidia.com/gpu free in pool p, 8 short"},
			},
		},
		"RequiredLargerInPart": {
			reason:       "So do replicas that are required: their group has started.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0", "0/1"), 2)},
			requests:     []CapacityRequest{required(grown(request("a", 5, 2)), 2)},
			want: want{
				reservations: []Service{{ServiceID: reserved("a").ServiceID, Shapes: []capacity.PodRequirements{*capacitytest.Requirements(2, 1), *capacitytest.Requirements(5, 1)}, Grants: []Grant{{Generation: 1, Pods: []int64{0, 1}, Replicas: []key.ReplicaID{"0/0"}}, {Pods: []int64{1}, Replicas: []key.ReplicaID{"0/1"}}}}},
				pending:      map[string]string{"a": keptBefore + "1 of 8 nvidia.com/gpu free in pool p, 2 short"}, grows: []string{"s-a"},
			},
		},
		"RequiredAdded": {
			reason:       "Required replicas that are added to a group that has started are granted one by one.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{reserved("a", "0/0")},
			requests:     []CapacityRequest{required(request("a", 3, 3), 3)},
			want:         want{reservations: []Service{reserved("a", "0/0", "0/1")}, pending: map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"NoMinimumSmaller": {
			reason: "Of a group without required replicas, any starts that fits.",
			nodes:  []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{func() CapacityRequest {
				r := request("a", 5, 2)
				r.Clusters[here].Groups[0].Replicas[0].Pods = map[string]int64{"w": 2}
				return r
			}()},
			want: want{reservations: []Service{reserved("a", "0/1")}, pending: map[string]string{"a": "8 of 8 nvidia.com/gpu free in pool p, 2 short"}},
		},
		"WholeGrows": {
			reason:       "A group that is added to an all-or-nothing request that has started needs all that it requires.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{reserved("a", "0/0", "0/1")},
			requests:     []CapacityRequest{allOrNothing(required(request("a", 2, 2, 3), 2))},
			want:         want{reservations: []Service{reserved("a", "0/0", "0/1", "1/0", "1/1")}, pending: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 2 short"}},
		},
		"WholeGrowsNot": {
			reason:       "Without room for that it gets nothing.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{reserved("a", "0/0", "0/1")},
			requests:     []CapacityRequest{allOrNothing(required(request("a", 3, 2, 2), 2))},
			want:         want{reservations: []Service{reserved("a", "0/0", "0/1")}, pending: map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"OlderRequest": {
			reason:       "A cache may show a request from before. It takes nothing of what was granted since.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(withGeneration(reserved("a", "0/0"), 2), 8)},
			requests:     []CapacityRequest{request("a", 3, 1)},
			want:         want{reservations: []Service{withGPUs(withGeneration(reserved("a", "0/0"), 2), 8)}},
		},
		"Offline": {
			reason:   "A service that is planned offline does not exist yet, so it comes last.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{created(request("a", 8, 1), ""), request("b", 8, 1)},
			want:     want{reservations: []Service{reserved("b", "0/0")}, pending: map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"RunningAnew": {
			reason:       "What runs may only fit if what was granted one by one is put onto nodes anew.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0", "0/1"), 3)},
			requests:     []CapacityRequest{request("a", 3, 2), running(request("b", 5, 2), "0/0", "0/1")},
			want:         want{reservations: []Service{withGPUs(reserved("a", "0/0", "0/1"), 3), started(reserved("b", "0/0", "0/1"))}},
		},
		"RunningInPart": {
			reason:   "What fits of what runs is counted before an older service is served.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{created(request("a", 4, 1), "2026-03-01T09:00:00Z"), running(request("b", 4, 3), "0/0", "0/1", "0/2")},
			want: want{
				reservations: []Service{started(reserved("b", "0/0", "0/1"))},
				pending:      map[string]string{"a": "0 of 8 nvidia.com/gpu free in pool p, 4 short", "b": "1 replicas run without a reservation: 0 of 8 nvidia.com/gpu free in pool p, 4 short"},
			},
		},
		"RunningWhileOvercommitted": {
			reason:       "If nodes are gone, nothing is added for what runs either.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{reserved("a", "0/0", "0/1")},
			requests:     []CapacityRequest{request("a", 6, 2), running(request("b", 1, 1), "0/0")},
			want: want{
				reservations: []Service{reserved("a", "0/0", "0/1")}, overcommitted: true,
				pending: map[string]string{"b": "1 replicas run without a reservation: more is reserved than the cluster has"},
			},
		},
		"ReplacedAlready": {
			reason:       "What runs as it was granted keeps that, while its growth waits.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGeneration(withGPUs(reserved("a", "0/0"), 3), 1)},
			requests:     []CapacityRequest{runs(replacing(withGenerations(request("a", 9, 1), 2)), 1)},
			want:         want{reservations: []Service{withGeneration(withGPUs(reserved("a", "0/0"), 3), 1)}, grows: []string{"s-a"}, pending: map[string]string{"a": keptBefore + "5 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"LargerBeforeLastReplaced": {
			reason:       "Pods of a generation before that of the grant say nothing of those that it was made for.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{requested(withGeneration(withGPUs(reserved("a", "0/0"), 6), 2), 3)},
			requests:     []CapacityRequest{runs(replacing(nodes(withGenerations(request("a", 3, 1), 3), 4)), 1)},
			want:         want{reservations: []Service{requested(withGeneration(withGPUs(reserved("a", "0/0"), 6), 2), 3)}, grows: []string{"s-a"}, pending: map[string]string{"a": keptBefore + "2 of 8 nvidia.com/gpu free in pool p, 7 short"}},
		},
		"LargerBeforeReplaced": {
			reason:       "Pods that have shrunk and then grow keep what is granted, until those from before are gone.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{requested(withGeneration(withGPUs(reserved("a", "0/0"), 6), 1), 3)},
			requests:     []CapacityRequest{replacing(nodes(withGenerations(request("a", 3, 1), 2), 4)), request("b", 4, 1)},
			want: want{
				reservations: []Service{requested(withGeneration(withGPUs(reserved("a", "0/0"), 6), 1), 3)}, grows: []string{"s-a"},
				pending: map[string]string{"a": keptBefore + "2 of 8 nvidia.com/gpu free in pool p, 7 short", "b": "2 of 8 nvidia.com/gpu free in pool p, 2 short"},
			},
		},
		"LargerAfterReplaced": {
			reason:       "Once they are gone, others get their room, although the growth still waits.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{requested(withGeneration(withGPUs(reserved("a", "0/0"), 6), 1), 3)},
			requests:     []CapacityRequest{runs(replacing(nodes(withGenerations(request("a", 3, 1), 2), 4)), 1), request("b", 4, 1)},
			want: want{
				reservations: []Service{withGeneration(withGPUs(reserved("a", "0/0"), 3), 1), reserved("b", "0/0")}, grows: []string{"s-a"},
				pending: map[string]string{"a": keptBefore + "5 of 8 nvidia.com/gpu free in pool p, 4 short"},
			},
		},
		"LargerWhileReplacing": {
			reason:       "Pods that request more take the place of those from before.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0"), 4)},
			requests:     []CapacityRequest{replacing(grown(request("a", 8, 1)))},
			want:         want{reservations: []Service{withGeneration(withGPUs(reserved("a", "0/0"), 8), 1)}},
		},
		"SmallerWhileNotSchedulable": {
			reason:         "Shrinking is not new.",
			nodes:          []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations:   []Service{withGPUs(reserved("a", "0/0"), 8)},
			requests:       []CapacityRequest{grown(request("a", 3, 1))},
			notSchedulable: "the cluster is drained",
			want:           want{reservations: []Service{withGeneration(reserved("a", "0/0"), 1)}},
		},
		"NodeCount": {
			reason:       "A replica that wants more nodes than the cluster has keeps what it has, and everything else goes on as before.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(100, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0"), 8)},
			requests:     []CapacityRequest{nodes(grown(request("a", 8, 1)), 200), request("b", 8, 1)},
			want: want{
				reservations: []Service{withGPUs(reserved("a", "0/0"), 8), reserved("b", "0/0")}, grows: []string{"s-a"},
				pending: map[string]string{"a": keptBefore + "792 of 800 nvidia.com/gpu free in pool p, 800 short"},
			},
		},
		"GrowthNeverFits": {
			reason:       "Pods that grow beyond any node keep what they have. The service gets further replicas that fit.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(4, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0"), 8)},
			requests:     []CapacityRequest{grown(request("a", 16, 2)), request("b", 8, 4)},
			want: want{
				reservations: []Service{withGPUs(reserved("a", "0/0"), 8), reserved("b", "0/0", "0/1", "0/2")}, grows: []string{"s-a"},
				pending: map[string]string{"a": keptBefore + "1 pod does not fit: no node has 16 nvidia.com/gpu, 1 cpu free, although the nodes together have enough", "b": "0 of 32 nvidia.com/gpu free in pool p, 8 short"},
			},
		},
		"GrowthNeverFitsRunning": {
			reason:       "Replicas that such a service claims to run are not counted if they do not fit.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0"), 8)},
			requests:     []CapacityRequest{running(grown(request("a", 16, 2)), "0/0", "0/1"), request("b", 8, 1)},
			want: want{
				reservations: []Service{started(withGPUs(reserved("a", "0/0"), 8)), reserved("b", "0/0")}, grows: []string{"s-a"},
				pending: map[string]string{"a": "1 replicas run without a reservation: 8 of 16 nvidia.com/gpu free in pool p, 8 short"},
			},
		},
		"GrowthWhileNotSchedulable": {
			reason:         "Growth is new.",
			nodes:          []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)},
			reservations:   []Service{withGPUs(reserved("a", "0/0"), 2)},
			requests:       []CapacityRequest{grown(request("a", 4, 1))},
			notSchedulable: "the cluster is drained",
			want:           want{reservations: []Service{withGPUs(reserved("a", "0/0"), 2)}, grows: []string{"s-a"}, pending: map[string]string{"a": keptBefore + "the cluster is drained"}},
		},
		"Restored": {
			reason:       "Grants that do not say what they are for are for what is requested, and are kept though it does not fit.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(4, 8, 64)},
			reservations: []Service{reserved("a", "0/0")},
			requests:     []CapacityRequest{request("a", 16, 1), request("b", 8, 1)},
			want: want{
				reservations: []Service{reserved("a", "0/0")}, overcommitted: true,
				pending: map[string]string{"b": "more is reserved than the cluster has"},
			},
		},
		"Exchanged": {
			reason:       "What an older service gives back in exchange goes to those after it, although an equal request before it did not fit.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("b", "0/0"), 6)},
			requests: []CapacityRequest{
				created(request("a", 5, 1), "2026-03-01T08:00:00Z"), created(requesting(grown(request("b", 0, 1)), 2, 9), "2026-03-01T09:00:00Z"), request("c", 5, 1),
			},
			want: want{
				reservations: []Service{withGeneration(reserved("b", "0/0"), 1), reserved("c", "0/0")},
				pending:      map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 3 short"},
			},
		},
		"ExchangedInOrder": {
			reason:       "What an exchange gives back goes to the next one that fits, although an equal request before did not, and not to a younger one.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("b", "0/0"), 6)},
			requests: []CapacityRequest{
				created(request("z", 100, 1), "2026-03-01T06:00:00Z"), created(request("a", 6, 1), "2026-03-01T08:00:00Z"), created(requesting(grown(request("b", 0, 1)), 2, 9), "2026-03-01T09:00:00Z"),
				created(request("c", 6, 1), "2026-03-01T10:00:00Z"), created(request("d", 2, 1), "2026-03-01T11:00:00Z"),
			},
			want: want{
				reservations: []Service{withGeneration(reserved("b", "0/0"), 1), reserved("c", "0/0")},
				pending:      map[string]string{"z": "2 of 8 nvidia.com/gpu free in pool p, 98 short", "a": "2 of 8 nvidia.com/gpu free in pool p, 4 short", "d": "0 of 8 nvidia.com/gpu free in pool p, 2 short"},
			},
		},
		"ExchangedTogether": {
			reason:       "So it does if more is granted together with the exchange.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 16, 64)},
			reservations: []Service{withGPUs(reserved("b", "0/0"), 6)},
			requests: []CapacityRequest{
				created(request("x", 1, 1), "2026-03-01T06:00:00Z"), created(request("y", 1, 1), "2026-03-01T07:00:00Z"), created(request("a", 11, 1), "2026-03-01T08:00:00Z"),
				created(requesting(grown(request("b", 0, 1)), 2, 9), "2026-03-01T09:00:00Z"), created(request("d", 1, 1), "2026-03-01T10:00:00Z"), created(request("e", 11, 1), "2026-03-01T11:00:00Z"),
			},
			want: want{
				reservations: []Service{withGeneration(reserved("b", "0/0"), 1), reserved("x", "0/0"), reserved("y", "0/0"), reserved("d", "0/0"), reserved("e", "0/0")},
				pending:      map[string]string{"a": "8 of 16 nvidia.com/gpu free in pool p, 3 short"},
			},
		},
		"EqualInPart": {
			reason:       "A group that needs only a part of what did not fit before gets that, before a younger service.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("used", "0/0"), 4)},
			requests: []CapacityRequest{
				created(required(request("a", 4, 2), 2), "2026-03-01T08:00:00Z"), created(request("b", 4, 2), "2026-03-01T09:00:00Z"), request("c", 4, 1), request("used", 4, 1),
			},
			want: want{
				reservations: []Service{withGPUs(reserved("used", "0/0"), 4), reserved("b", "0/0")},
				pending: map[string]string{
					"a": "4 of 8 nvidia.com/gpu free in pool p, 4 short", "b": "0 of 8 nvidia.com/gpu free in pool p, 4 short", "c": "0 of 8 nvidia.com/gpu free in pool p, 4 short",
				},
			},
		},
		"FirstReason": {
			reason:       "A service says why its first group waits.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("used", "0/0"), 6)},
			requests: []CapacityRequest{request("used", 6, 1), func() CapacityRequest {
				r := nodes(request("a", 3, 1, 1), 1)
				r.Clusters[here].Groups[0].Replicas[0].Pods = map[string]int64{"w": 2}
				return r
			}()},
			want: want{reservations: []Service{withGPUs(reserved("used", "0/0"), 6)}, pending: map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"OneLine": {
			reason:         "What a cluster says is one line of a status.",
			nodes:          []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests:       []CapacityRequest{request("a", 1, 1)},
			notSchedulable: "the cluster is drained:\nmaintenance",
			want:           want{pending: map[string]string{"a": "the cluster is drained: maintenance"}},
		},
		"WholeMinimum": {
			reason:   "An all-or-nothing request starts with the required replicas of all groups, if it has some.",
			nodes:    []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			requests: []CapacityRequest{allOrNothing(required(request("a", 3, 2, 2), 1))},
			want:     want{reservations: []Service{reserved("a", "0/0", "1/0")}, pending: map[string]string{"a": "2 of 8 nvidia.com/gpu free in pool p, 1 short"}},
		},
		"RequiredLargerAndAdded": {
			reason:       "A required replica grows although one that is added does not fit beside it: the group has started.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{withGPUs(reserved("a", "0/0"), 2)},
			requests:     []CapacityRequest{required(grown(request("a", 5, 2)), 2)},
			want:         want{reservations: []Service{withGeneration(reserved("a", "0/0"), 1)}, pending: map[string]string{"a": "3 of 8 nvidia.com/gpu free in pool p, 2 short"}},
		},
		"ReplacedUnknown": {
			reason:       "While it is not known what runs, a grant without a generation covers all of it.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{requested(withGPUs(reserved("a", "0/0"), 6), 3)},
			requests:     []CapacityRequest{replacing(nodes(withGenerations(request("a", 3, 1), 2), 4)), request("b", 4, 1)},
			want: want{
				reservations: []Service{requested(withGPUs(reserved("a", "0/0"), 6), 3)}, grows: []string{"s-a"},
				pending: map[string]string{"a": keptBefore + "2 of 8 nvidia.com/gpu free in pool p, 7 short", "b": "2 of 8 nvidia.com/gpu free in pool p, 2 short"},
			},
		},
		"RestoredLeft": {
			reason:       "So are those of a replica that may still run, and comes back before it is known that it does not.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{leaving(started(reserved("a", "0/0")))},
			requests:     []CapacityRequest{request("a", 4, 1), request("b", 8, 1)},
			want: want{
				reservations: []Service{leaving(started(reserved("a", "0/0")))},
				pending:      map[string]string{"b": "4 of 8 nvidia.com/gpu free in pool p, 4 short"},
			},
		},
		"RequestsElsewhere": {
			reason:       "A service that requests capacity of other clusters only has no reservation here.",
			nodes:        []capacity.NodeClass{capacitytest.Nodes(1, 8, 64)},
			reservations: []Service{reserved("a", "0/0")},
			requests:     []CapacityRequest{{UID: "a", Namespace: "team", Name: "s-a", Clusters: map[string]ClusterRequest{"us-west": {}}}},
			want:         want{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := Reserve(Input{Cluster: here, Free: pool(tc.nodes...), Ledger: Ledger{Services: tc.reservations}, Requests: tc.requests, NotSchedulable: tc.notSchedulable, Now: noon})
			// Most grants are for the pods that are requested.
			for i, s := range tc.want.reservations {
				for _, req := range tc.requests {
					if s.Shapes == nil && req.ServiceID() == s.ServiceID {
						tc.want.reservations[i].Shapes = []capacity.PodRequirements{req.PodRequirements["w"]}
						for j := range s.Grants {
							s.Grants[j].Pods = []int64{1}
						}
					}
				}
			}
			got := want{reservations: result.Services, overcommitted: result.Overcommitted}
			for _, w := range result.Pending {
				if w.Grows {
					got.grows = append(got.grows, w.Name)
				}
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

// TestSeveralShapes proves that pods of several shapes, which grow and do not fit, keep what they have.
func TestSeveralShapes(t *testing.T) {
	leader := func(generation, gpus int64) CapacityRequest {
		r := withGenerations(request("a", 1, 1), generation)
		r.PodRequirements["leader"] = *capacitytest.Requirements(gpus, 2)
		r.Clusters[here].Groups[0].Replicas[0].Pods = map[string]int64{"leader": 1, "w": 2}
		return r
	}
	free := pool(capacitytest.Nodes(1, 8, 64))
	first := reserve(free, nil, []CapacityRequest{leader(1, 2)})
	again := reserve(free, first.Services, []CapacityRequest{leader(2, 9)})
	if diff := cmp.Diff(first.Services, again.Services); diff != "" || len(again.Services) != 1 || again.Pending[0].Generation != 2 {
		t.Errorf("generation %d is pending\n-want +got:\n%s", again.Pending[0].Generation, diff)
	}
}

// TestOutOfLooks proves that a call that has looked at enough node classes grants several units together no more, and
// puts nothing onto nodes anew, but still grants single ones.
func TestOutOfLooks(t *testing.T) {
	cases := map[string]struct {
		reason          string
		looks, packings int
		together, grows bool
	}{
		"Enough":   {"It may still look.", 1, minPackings, true, true},
		"Packings": {"Some packings are always left, however large they are.", 0, minPackings - 1, true, true},
		"Neither":  {"The next call continues.", 0, minPackings, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := func() *book {
				ledger := Ledger{Services: []Service{withGPUs(reserved("a", "0/0"), 2)}}
				b := open(&Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 64)), Ledger: ledger, Requests: []CapacityRequest{grown(request("a", 4, 1)), request("b", 2, 1)}, Now: noon})
				b.count()
				b.serving.looks, b.serving.packings = tc.looks, tc.packings
				return b
			}
			b := start()
			if got := b.grantAll(b.units(b.accounts[1])[0].wants); got != tc.together {
				t.Errorf("%s It grants together: %t", tc.reason, got)
			}
			b = start()
			b.serve()
			waits := map[string]string{"a": messageNextCall}
			if tc.grows {
				waits = map[string]string{}
			}
			got := map[string]string{}
			for _, p := range b.close().Pending {
				got[p.UID] = strings.TrimPrefix(p.Message, keptBefore)
			}
			if diff := cmp.Diff(waits, got); diff != "" || len(b.serving.failed) > 0 {
				t.Errorf("%s %d count as refused.\n-want +got:\n%s", tc.reason, len(b.serving.failed), diff)
			}
		})
	}
}

func allNames(req CapacityRequest) []key.ReplicaID {
	var all []key.ReplicaID
	for _, r := range allReplicas(req) {
		all = append(all, r.Name)
	}
	return all
}

// TestFull proves what a cluster whose ledger takes no further grants still does. The service has one grant.
func TestFull(t *testing.T) {
	type outcome struct {
		Granted map[key.ReplicaID]int64
		Pending []key.ReplicaID
	}
	cases := map[string]struct {
		reason  string
		request CapacityRequest
		want    outcome
	}{
		"Same":          {reason: "A grant stays.", request: request("a", 4, 1), want: outcome{Granted: map[key.ReplicaID]int64{"0/0": 0}}},
		"Added":         {reason: "Nothing is granted.", request: request("a", 4, 2), want: outcome{Granted: map[key.ReplicaID]int64{"0/0": 0}, Pending: []key.ReplicaID{"0/1"}}},
		"Runs":          {reason: "Nor is what runs without a grant.", request: running(request("a", 4, 2), "0/0", "0/1"), want: outcome{Granted: map[key.ReplicaID]int64{"0/0": 0}, Pending: []key.ReplicaID{"0/1"}}},
		"NewGeneration": {reason: "A new generation of the same pods would be a further grant.", request: grown(request("a", 4, 1)), want: outcome{Granted: map[key.ReplicaID]int64{"0/0": 0}, Pending: []key.ReplicaID{"0/0"}}},
		"Smaller":       {reason: "Pods that request less free some room.", request: grown(request("a", 3, 1)), want: outcome{Granted: map[key.ReplicaID]int64{"0/0": 1}}},
		"Withdrawn":     {reason: "What is withdrawn is freed.", request: withoutGroups(request("a", 4, 1)), want: outcome{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := Reserve(Input{
				Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 64)), Ledger: Ledger{Services: []Service{withGPUs(reserved("a", "0/0"), 4)}},
				Requests: []CapacityRequest{tc.request}, NotSchedulable: "its ledger is full", Full: true, Now: noon,
			})
			got := outcome{}
			for i := range result.Services {
				got.Granted = generations(&result.Services[i])
			}
			for _, p := range result.Pending {
				got.Pending = append(got.Pending, p.Replicas...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFrozen proves that nothing of a request changes a frozen grant until it is withdrawn. The service has one grant of 4 GPUs.
func TestFrozen(t *testing.T) {
	cases := map[string]struct {
		reason  string
		request CapacityRequest
		// pending is how many replicas wait.
		pending int
		leaves  bool
	}{
		"Same":      {reason: "It is requested.", request: request("a", 4, 1)},
		"Smaller":   {reason: "A smaller grant may take more of the ledger.", request: grown(request("a", 3, 1)), pending: 1},
		"Added":     {reason: "So does a further one.", request: request("a", 4, 2), pending: 1},
		"Runs":      {reason: "So do those that run.", request: running(request("a", 4, 2), "0/0", "0/1"), pending: 1},
		"Withdrawn": {reason: "It goes once it is known that it has no workloads.", request: withoutGroups(request("a", 4, 1)), leaves: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			has := withGPUs(reserved("a", "0/0"), 4)
			other := request("b", 4, 1)
			other.Namespace = "other"
			heavy := map[string]bool{has.Namespace: true}
			result := Reserve(Input{
				Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 64)), Ledger: Ledger{Services: []Service{has}}, Requests: []CapacityRequest{tc.request, other},
				Heavy: heavy, Frozen: heavy, Now: noon,
			})
			want := has
			if tc.leaves {
				want.Grants = []Grant{has.Grants[0]}
				want.Grants[0].Leaving, want.MissingSince = true, noon
			}
			got := slices.DeleteFunc(slices.Clone(result.Services), func(s Service) bool { return s.Namespace == "other" })
			if diff := cmp.Diff([]Service{want}, got); diff != "" || len(result.Services) != 2 {
				t.Errorf("%s\n-before +after:\n%s", tc.reason, diff)
			}
			pending := 0
			for _, p := range result.Pending {
				pending += len(p.Replicas)
			}
			if pending != tc.pending {
				t.Errorf("%s %d replicas wait, want %d", tc.reason, pending, tc.pending)
			}
		})
	}
}

// TestHeavy proves that a namespace with more than its share of the ledger gets nothing new, and that what it runs counts all the same.
func TestHeavy(t *testing.T) {
	result := Reserve(Input{
		Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 64)), Requests: []CapacityRequest{running(request("a", 4, 2), "0/0")},
		Heavy: map[string]bool{reserved("a").Namespace: true}, Now: noon,
	})
	if len(result.Services) != 1 || len(result.Services[0].Grants) != 1 || len(result.Services[0].Grants[0].Replicas) != 1 {
		t.Errorf("these have reservations: %v", result.Services)
	}
	if len(result.Pending) != 1 || len(result.Pending[0].Replicas) != 1 || len(result.Waiting) != 1 {
		t.Errorf("these wait: %v, and the ledger remembers: %v", result.Pending, result.Waiting)
	}
}

// TestBorrowersOfOthers proves that a service which borrows gets what it wants itself. Before it come a service that is not allowed, and
// one that its quota refuses.
func TestBorrowersOfOthers(t *testing.T) {
	refused, borrows, beyond := request("a", 1, 1), request("b", 2, 1), request("c", 8, 1)
	refused.Namespace, refused.NotAllowed, refused.Created = "other", "not allowed", "1970-01-01T00:00:00Z"
	q := Quota{Nominal: capacity.Resources{"nvidia.com/gpu": 1000}, Borrowing: capacity.Resources{"nvidia.com/gpu": 2000}}
	result := Reserve(Input{
		Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 64)), Requests: []CapacityRequest{refused, borrows, beyond},
		Quotas: map[string]Quota{borrows.Namespace: q}, Now: noon,
	})
	var got []string
	for _, s := range result.Services {
		got = append(got, s.Namespace+"/"+s.Name)
	}
	if diff := cmp.Diff([]string{borrows.Namespace + "/" + borrows.Name}, got); diff != "" {
		t.Errorf("reservations: -want, +got:\n%s", diff)
	}
	if len(result.Pending) != 2 {
		t.Errorf("these wait: %v", result.Pending)
	}
}
