package reservation

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// gpuQuota returns a quota of GPUs. A borrowing limit below zero is none.
func gpuQuota(priority int32, nominal, borrowing int64) Quota {
	q := Quota{Priority: priority, Nominal: capacity.Resources{capacitytest.GPU: 1000 * nominal}, Borrowing: capacity.Resources{}}
	if borrowing >= 0 {
		q.Borrowing[capacitytest.GPU] = 1000 * borrowing
	}
	return q
}

// of moves a request or grants into a namespace.
func of(namespace string, req CapacityRequest) CapacityRequest { return inNamespace(req, namespace) }

func grantedIn(namespace string, s Service) Service {
	s.Namespace = namespace
	return s
}

// replicasGranted counts the replicas of each service that have a grant of some generation.
func replicasGranted(result Result) map[string]int {
	all := map[string]int{}
	for _, s := range result.Services {
		for _, g := range s.Grants {
			all[s.UID] += len(g.Replicas)
		}
	}
	return all
}

const (
	old     = "2026-03-01T08:00:00Z"
	younger = "2026-03-01T11:00:00Z"
)

func TestQuotas(t *testing.T) {
	type want struct {
		granted map[string]int
		pending []string
	}
	cases := map[string]struct {
		reason   string
		gpus     int64
		quotas   map[string]Quota
		services []Service
		requests []CapacityRequest
		stopped  string
		// waits and waitsToo are services that have waited for long.
		waits, waitsToo string
		want            want
	}{
		"Within": {
			reason: "What is within the quota is granted, and the other namespace has none.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 8, 0)},
			requests: []CapacityRequest{of("a", request("a", 8, 1)), of("b", request("b", 8, 1))},
			want:     want{granted: map[string]int{"a": 1, "b": 1}},
		},
		"NeverBorrows": {
			reason: "With a borrowing limit of 0, a namespace gets its nominal quota, although more is free.",
			gpus:   32, quotas: map[string]Quota{"a": gpuQuota(0, 8, 0)},
			requests: []CapacityRequest{of("a", request("a", 4, 3))},
			want:     want{granted: map[string]int{"a": 2}, pending: []string{"a: namespace a has 8 of the 8 nvidia.com/gpu that its quota allows, and 4 more are requested"}},
		},
		"Borrows": {
			reason: "It borrows up to its limit.",
			gpus:   32, quotas: map[string]Quota{"a": gpuQuota(0, 8, 4)},
			requests: []CapacityRequest{of("a", request("a", 4, 4))},
			want:     want{granted: map[string]int{"a": 3}, pending: []string{"a: namespace a has 12 of the 12 nvidia.com/gpu that its quota allows (8, and 4 borrowed), and 4 more are requested"}},
		},
		"BorrowsAll": {
			reason: "Without a limit it borrows all that is free.",
			gpus:   32, quotas: map[string]Quota{"a": gpuQuota(0, 8, -1)},
			requests: []CapacityRequest{of("a", request("a", 4, 9))},
			want:     want{granted: map[string]int{"a": 8}, pending: []string{"a: 0 of 32 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"EachForItself": {
			reason: "Services of one namespace share its quota. Another namespace has its own.",
			gpus:   32, quotas: map[string]Quota{"a": gpuQuota(0, 8, 0), "b": gpuQuota(0, 8, 0)},
			requests: []CapacityRequest{of("a", request("a1", 8, 1)), of("a", request("a2", 8, 1)), of("b", request("b", 8, 1))},
			want:     want{granted: map[string]int{"a1": 1, "b": 1}, pending: []string{"a2: namespace a has 8 of the 8 nvidia.com/gpu that its quota allows, and 8 more are requested"}},
		},
		"ExchangedInOrder": {
			reason: "Quota that an exchange gives back goes to the next service, and not to a younger one.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 8, 0)},
			services: []Service{grantedIn("a", withGPUs(reserved("a1", "0/0"), 6))},
			requests: []CapacityRequest{
				of("a", created(requesting(grown(request("a1", 0, 1)), 2, 9), "2026-03-01T08:00:00Z")), of("a", created(request("a2", 6, 1), "2026-03-01T10:00:00Z")), of("a", created(request("a3", 2, 1), "2026-03-01T11:00:00Z")),
			},
			want: want{granted: map[string]int{"a1": 1, "a2": 1}, pending: []string{"a3: namespace a has 8 of the 8 nvidia.com/gpu that its quota allows, and 2 more are requested"}},
		},
		"NominalFirst": {
			reason: "A request within the nominal quota comes before an older one that borrows, whatever the priority of that.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(5, 8, -1), "b": gpuQuota(0, 8, 0)},
			requests: []CapacityRequest{of("a", created(request("a", 8, 2), old)), of("b", request("b", 8, 1))},
			want:     want{granted: map[string]int{"a": 1, "b": 1}, pending: []string{"a: 0 of 16 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"Priority": {
			reason: "A higher priority comes before age, and a namespace without an entry has the priority 0.",
			gpus:   8, quotas: map[string]Quota{"a": {Priority: -1}, "c": {Priority: 1}},
			requests: []CapacityRequest{of("a", created(request("a", 8, 1), old)), of("b", request("b", 8, 1)), of("c", created(request("c", 8, 1), younger))},
			want:     want{granted: map[string]int{"c": 1}, pending: []string{"b: 0 of 8 nvidia.com/gpu free in pool p, 8 short", "a: 0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"PriorityAmongBorrowers": {
			reason: "Among those that borrow, the priority counts, and then the age.",
			gpus:   8, quotas: map[string]Quota{"a": gpuQuota(0, 0, -1), "b": gpuQuota(0, 0, -1), "c": gpuQuota(1, 0, -1)},
			requests: []CapacityRequest{of("a", request("a", 4, 1)), of("b", created(request("b", 4, 1), old)), of("c", created(request("c", 4, 1), younger))},
			want:     want{granted: map[string]int{"b": 1, "c": 1}, pending: []string{"a: 0 of 8 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"SamePriority": {
			reason: "The oldest comes first among equals.",
			gpus:   8, quotas: map[string]Quota{"a": {Priority: 1}, "b": {Priority: 1}},
			requests: []CapacityRequest{of("a", request("a", 8, 1)), of("b", created(request("b", 8, 1), old))},
			want:     want{granted: map[string]int{"b": 1}, pending: []string{"a: 0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"Borrowed": {
			reason: "What is borrowed stays until it is given back: nothing is preempted.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 8, -1), "b": gpuQuota(9, 8, 0)},
			services: []Service{grantedIn("a", reserved("a", "0/0", "0/1"))},
			requests: []CapacityRequest{of("a", request("a", 8, 2)), of("b", request("b", 8, 1))},
			want:     want{granted: map[string]int{"a": 2}, pending: []string{"b: 0 of 16 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"Lowered": {
			reason: "A lower quota takes nothing away, and grants nothing new.",
			gpus:   32, quotas: map[string]Quota{"a": gpuQuota(0, 8, 0)},
			services: []Service{grantedIn("a", reserved("a", "0/0", "0/1"))},
			requests: []CapacityRequest{of("a", request("a", 8, 3))},
			want:     want{granted: map[string]int{"a": 2}, pending: []string{"a: namespace a has 16 of the 8 nvidia.com/gpu that its quota allows, and 8 more are requested"}},
		},
		"LoweredOther": {
			reason: "It refuses only what requests more of the resource.",
			gpus:   32, quotas: map[string]Quota{"a": gpuQuota(0, 8, 0)},
			services: []Service{grantedIn("a", reserved("a", "0/0", "0/1"))},
			requests: []CapacityRequest{of("a", request("a", 8, 2)), of("a", request("b", 0, 1))},
			want:     want{granted: map[string]int{"a": 2, "b": 1}},
		},
		"BorrowersLast": {
			reason: "Those that borrow wait behind those that do not.",
			gpus:   8, quotas: map[string]Quota{"a": gpuQuota(0, 0, -1)},
			requests: []CapacityRequest{of("a", created(request("a", 8, 1), old)), of("b", request("b", 8, 1)), of("c", created(request("c", 8, 1), younger))},
			want:     want{granted: map[string]int{"b": 1}, pending: []string{"c: 0 of 8 nvidia.com/gpu free in pool p, 8 short", "a: 0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"GangHasNoRoom": {
			reason: "If there is no room for the minimum, the message says so, and not that all of it exceeds the quota.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 16, 0)},
			requests: []CapacityRequest{of("a", required(request("a", 9, 2), 1))},
			want:     want{pending: []string{"a: 1 pod does not fit: no node has 9 nvidia.com/gpu, 1 cpu free, although the nodes together have enough"}},
		},
		"Growth": {
			reason: "Growth counts by what it adds.",
			gpus:   32, quotas: map[string]Quota{"a": gpuQuota(0, 10, 0)},
			services: []Service{grantedIn("a", withGPUs(reserved("a", "0/0", "0/1"), 4))},
			requests: []CapacityRequest{of("a", grown(request("a", 6, 2)))},
			want:     want{granted: map[string]int{"a": 2}, pending: []string{"a: " + keptBefore + "namespace a has 10 of the 10 nvidia.com/gpu that its quota allows, and 2 more are requested"}},
		},
		"Missing": {
			reason: "Grants count while their request is missing.",
			gpus:   32, quotas: map[string]Quota{"a": gpuQuota(0, 8, 0)},
			services: []Service{grantedIn("a", withGPUs(reserved("gone", "0/0"), 8))},
			requests: []CapacityRequest{of("a", request("a", 8, 1))},
			want:     want{granted: map[string]int{"gone": 1}, pending: []string{"a: namespace a has 8 of the 8 nvidia.com/gpu that its quota allows, and 8 more are requested"}},
		},
		"Gang": {
			reason: "A group that starts together needs quota for all of it, and borrows with all of it.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 8, 0), "b": gpuQuota(0, 8, 8)},
			requests: []CapacityRequest{of("a", required(request("a", 4, 3), 3)), of("b", required(request("b", 4, 3), 3))},
			want:     want{granted: map[string]int{"b": 3}, pending: []string{"a: namespace a has 0 of the 8 nvidia.com/gpu that its quota allows, and 12 more are requested"}},
		},
		"GangMinimum": {
			reason: "The minimum of a group is within the nominal quota, and the rest borrows.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 8, -1)},
			requests: []CapacityRequest{of("a", created(required(request("a", 4, 4), 2), old)), of("b", request("b", 4, 1))},
			want:     want{granted: map[string]int{"a": 3, "b": 1}, pending: []string{"a: 0 of 16 nvidia.com/gpu free in pool p, 4 short"}},
		},
		"OtherResource": {
			reason: "Every resource with a quota counts, and the number of pods.",
			gpus:   32, quotas: map[string]Quota{"a": {Nominal: capacity.Resources{"cpu": 2000}, Borrowing: capacity.Resources{"cpu": 0}}, "b": {Nominal: capacity.Resources{"pods": 1000}, Borrowing: capacity.Resources{"pods": 0}}},
			requests: []CapacityRequest{of("a", request("a", 1, 3)), of("b", request("b", 1, 2))},
			want: want{granted: map[string]int{"a": 2, "b": 1}, pending: []string{
				"a: namespace a has 2 of the 2 cpu that its quota allows, and 1 more are requested",
				"b: namespace b has 1 of the 1 pods that its quota allows, and 1 more are requested",
			}},
		},
		"Running": {
			reason: "A claim to run borrows nothing before others are served.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 8, -1)},
			requests: []CapacityRequest{of("a", running(request("a", 8, 2), "0/0", "0/1")), of("b", created(request("b", 8, 1), younger))},
			want:     want{granted: map[string]int{"a": 1, "b": 1}, pending: []string{"a: 1 replicas run without a reservation: 0 of 16 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"RunningPriority": {
			reason: "A claim to run does not come before a higher priority.",
			gpus:   8, quotas: map[string]Quota{"b": {Priority: 1}},
			requests: []CapacityRequest{of("a", running(created(request("a", 8, 1), old), "0/0")), of("b", request("b", 8, 1))},
			want:     want{granted: map[string]int{"b": 1}, pending: []string{"a: 1 replicas run without a reservation: 0 of 8 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"RunningAfterPriority": {
			reason: "It comes before others of its priority, if nothing of a higher one waits.",
			gpus:   16, quotas: map[string]Quota{"b": {Priority: 1}},
			requests: []CapacityRequest{of("a", running(request("a", 8, 1), "0/0")), of("c", created(request("c", 8, 1), old)), of("b", running(request("b", 8, 1), "0/0"))},
			want:     want{granted: map[string]int{"a": 1, "b": 1}, pending: []string{"c: 0 of 16 nvidia.com/gpu free in pool p, 8 short"}},
		},
		"RunningWhileStopped": {
			reason: "Where nothing new is granted, no priority waits for it.",
			gpus:   8, quotas: map[string]Quota{"b": {Priority: 1}}, stopped: "on hold",
			requests: []CapacityRequest{of("a", running(request("a", 8, 1), "0/0")), of("b", request("b", 8, 1))},
			want:     want{granted: map[string]int{"a": 1}, pending: []string{"b: on hold"}},
		},
		"Exchanged": {
			reason: "What is given back in exchange counts no longer.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 8, 0)},
			services: []Service{grantedIn("a", withGPUs(reserved("a1", "0/0"), 6))},
			requests: []CapacityRequest{
				of("a", created(requesting(grown(request("a1", 0, 1)), 2, 9), old)), of("a", request("a2", 2, 1)), of("a", created(request("a3", 4, 1), "2026-03-01T10:30:00Z")), of("a", created(request("a4", 3, 1), younger)),
			},
			want: want{granted: map[string]int{"a1": 1, "a2": 1, "a3": 1}, pending: []string{"a4: namespace a has 8 of the 8 nvidia.com/gpu that its quota allows, and 3 more are requested"}},
		},
		"HeldBeforeYounger": {
			reason: "Quota is held for an older service before a younger one is served that would be within it.",
			gpus:   32, quotas: map[string]Quota{"a": gpuQuota(0, 16, 0)}, waits: "a1",
			services: []Service{grantedIn("a", withGPUs(reserved("used", "0/0", "0/1"), 6))},
			requests: []CapacityRequest{of("a", required(created(request("a1", 8, 2), old), 2)), of("a", request("used", 6, 2)), of("a", created(request("a2", 4, 1), younger))},
			want: want{granted: map[string]int{"used": 2}, pending: []string{
				"a1: namespace a has 12 of the 16 nvidia.com/gpu that its quota allows, and 16 more are requested. Quota is held for it",
				"a2: namespace a has 12 of the 16 nvidia.com/gpu that its quota allows, and 4 more are requested, while 16 are held for a service that comes first",
			}},
		},
		"OlderBorrows": {
			reason: "Quota that is held for a younger service is held from those after it only, and an older one borrows.",
			gpus:   32, quotas: map[string]Quota{"a": gpuQuota(0, 8, 8)}, waits: "a2",
			services: []Service{grantedIn("a", withGPUs(reserved("used", "0/0"), 8))},
			requests: []CapacityRequest{
				of("a", request("used", 8, 1)), of("a", created(request("a1", 4, 1), old)), of("a", required(created(request("a2", 6, 2), "2026-03-01T10:30:00Z"), 2)), of("a", created(request("a3", 4, 1), younger)),
			},
			want: want{granted: map[string]int{"used": 1, "a1": 1}, pending: []string{
				"a2: namespace a has 12 of the 16 nvidia.com/gpu that its quota allows (8, and 8 borrowed), and 12 more are requested. Quota is held for it",
				"a3: namespace a has 12 of the 16 nvidia.com/gpu that its quota allows (8, and 8 borrowed), and 4 more are requested, while 12 are held for a service that comes first",
			}},
		},
		"OlderBorrowsAfterNominal": {
			reason: "What is held within the nominal quota comes before all that borrow, and so before an older one.",
			gpus:   8, quotas: map[string]Quota{"a": {Nominal: capacity.Resources{capacitytest.CPU: 16000}, Borrowing: capacity.Resources{capacitytest.CPU: 32000}}}, waits: "a2",
			services: []Service{grantedIn("b", withGPUs(reserved("b", "0/0"), 1))},
			requests: []CapacityRequest{
				of("b", request("b", 1, 1)), of("a", required(created(requesting(request("a1", 0, 2), 0, 20), old), 2)), of("a", created(requesting(request("a2", 0, 1), 8, 16), younger)),
			},
			want: want{granted: map[string]int{"b": 1}, pending: []string{
				"a2: 7 of 8 nvidia.com/gpu free in pool p, 1 short. Room is held for it",
				"a1: namespace a has 0 of the 48 cpu that its quota allows (16, and 32 borrowed), and 40 more are requested, while 16 are held for a service that comes first",
			}},
		},
		"HeldWithoutNominal": {
			reason: "A resource without a nominal quota is not limited, whatever may be borrowed of it.",
			gpus:   32, quotas: map[string]Quota{"a": {Nominal: capacity.Resources{capacitytest.GPU: 16000}, Borrowing: capacity.Resources{capacitytest.GPU: 0, capacitytest.CPU: 0}}}, waits: "a1",
			services: []Service{grantedIn("a", withGPUs(reserved("used", "0/0", "0/1"), 6))},
			requests: []CapacityRequest{of("a", required(created(request("a1", 8, 2), old), 2)), of("a", request("used", 6, 2))},
			want:     want{granted: map[string]int{"used": 2}, pending: []string{"a1: namespace a has 12 of the 16 nvidia.com/gpu that its quota allows, and 16 more are requested. Quota is held for it"}},
		},
		"HeldForOne": {
			reason: "Quota is held for one service of a namespace, although room is held for another one.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 16, 0)}, waits: "a1", waitsToo: "a2",
			services: []Service{grantedIn("a", withGPUs(reserved("used", "0/0"), 6))},
			requests: []CapacityRequest{
				of("a", required(created(request("a1", 6, 2), old), 2)), of("a", nodes(created(requesting(request("a2", 0, 1), 0, 64), "2026-03-01T09:00:00Z"), 3)), of("a", request("used", 6, 1)),
			},
			want: want{granted: map[string]int{"used": 1}, pending: []string{
				"a2: 191 of 192 cpu free in pool p, 1 short. Room is held for it",
				"a1: namespace a has 6 of the 16 nvidia.com/gpu that its quota allows, and 12 more are requested. Quota is held for it",
			}},
		},
		"BorrowsBesideShort": {
			reason: "A replica that may borrow does so, although another one of its group has no room.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 0, -1)},
			requests: []CapacityRequest{of("a", func() CapacityRequest {
				r := request("a", 8, 2)
				r.PodRequirements["large"] = *capacitytest.Requirements(0, 100)
				r.Clusters[here].Groups[0].Replicas[1].Pods = map[string]int64{"large": 1}
				return r
			}())},
			want: want{granted: map[string]int{"a": 1}, pending: []string{"a: 1 pod does not fit: no node has 100 cpu free, although the nodes together have enough"}},
		},
		"HeldOnlyBeyond": {
			reason: "No quota is held for what may borrow it, so a younger one within the nominal quota is served first.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(0, 8, -1)}, waits: "a1",
			requests: []CapacityRequest{of("a", required(created(request("a1", 8, 2), old), 2)), of("a", created(request("a2", 8, 1), younger))},
			want:     want{granted: map[string]int{"a2": 1}, pending: []string{"a1: 8 of 16 nvidia.com/gpu free in pool p, 8 short. Room is held for it"}},
		},
		"SmallerPasses": {
			reason: "A request that its quota refuses does not stop those after it.",
			gpus:   16, quotas: map[string]Quota{"a": gpuQuota(9, 8, 0)},
			requests: []CapacityRequest{of("a", created(request("a1", 16, 1), old)), of("a", request("a2", 8, 1)), of("b", request("b", 8, 1))},
			want:     want{granted: map[string]int{"a2": 1, "b": 1}, pending: []string{"a1: namespace a has 8 of the 8 nvidia.com/gpu that its quota allows, and 16 more are requested"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := Input{
				Cluster: here, Free: pool(capacitytest.Nodes(tc.gpus/8, 8, 64), capacitytest.Nodes(1, 0, 64)), Ledger: Ledger{Services: tc.services},
				Requests: tc.requests, Quotas: tc.quotas, NotSchedulable: tc.stopped, Now: noon,
			}
			for i := range tc.requests {
				if id := tc.requests[i].ServiceID(); id.UID == tc.waits || id.UID == tc.waitsToo {
					in.Ledger.Waiting = append(in.Ledger.Waiting, Waiting{ServiceID: id, Since: noon.Add(-time.Hour)})
				}
			}
			result := Reserve(in)
			got := want{granted: replicasGranted(result)}
			for _, p := range result.Pending {
				got.pending = append(got.pending, p.UID+": "+p.Message)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHoldQuota proves that quota is held within a namespace, as room is in a cluster, and that
// what a quota refuses holds no room.
func TestHoldQuota(t *testing.T) {
	large := of("a", required(created(request("large", 8, 2), old), 2))
	used := grantedIn("a", withGPUs(reserved("used", "0/0"), 8))
	usedNow := of("a", request("used", 8, 1))
	small := of("a", created(request("small", 8, 1), younger))
	other := of("b", created(request("other", 8, 1), younger))
	const held = ". Quota is held for it"
	cases := map[string]struct {
		reason  string
		nodes   int64
		quota   Quota
		minutes int
		granted map[string]int
		message string
	}{
		"Soon":   {reason: "It has not waited for long.", nodes: 4, quota: gpuQuota(0, 16, 0), minutes: 9, granted: map[string]int{"used": 1, "small": 1, "other": 1}, message: "namespace a has 16 of the 16 nvidia.com/gpu that its quota allows, and 16 more are requested"},
		"Long":   {reason: "It has: nobody younger of its namespace passes, and the other namespace does.", nodes: 4, quota: gpuQuota(0, 16, 0), minutes: 10, granted: map[string]int{"used": 1, "other": 1}, message: "namespace a has 8 of the 16 nvidia.com/gpu that its quota allows, and 16 more are requested" + held},
		"Never":  {reason: "The quota is too small for it, so nothing is held.", nodes: 4, quota: gpuQuota(0, 8, 7), minutes: 60, granted: map[string]int{"used": 1, "other": 1}, message: "namespace a has 8 of the 15 nvidia.com/gpu that its quota allows (8, and 7 borrowed), and 16 more are requested"},
		"NoRoom": {reason: "Its quota allows it, so room is held for it.", nodes: 2, quota: gpuQuota(0, 24, 0), minutes: 10, granted: map[string]int{"used": 1}, message: "8 of 16 nvidia.com/gpu free in pool p, 8 short. Room is held for it"},
		"Borrow": {reason: "Those that borrow hold room only after all that is within the nominal quotas.", nodes: 2, quota: gpuQuota(0, 8, -1), minutes: 10, granted: map[string]int{"used": 1, "other": 1}, message: "0 of 16 nvidia.com/gpu free in pool p, 16 short. Room is held for it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := Reserve(Input{
				Cluster: here, Free: pool(capacitytest.Nodes(tc.nodes, 8, 64)), Requests: []CapacityRequest{large, usedNow, small, other}, Quotas: map[string]Quota{"a": tc.quota},
				Ledger: Ledger{Services: []Service{used}, Waiting: []Waiting{{ServiceID: large.ServiceID(), Since: noon.Add(-time.Duration(tc.minutes) * time.Minute)}}}, Now: noon,
			})
			if diff := cmp.Diff(tc.granted, replicasGranted(result)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			message := ""
			for _, p := range result.Pending {
				if p.UID == "large" {
					message = p.Message
				}
				if room := strings.Contains(p.Message, "while room is held"); room != (name == "Borrow" && p.UID == "small" || name == "NoRoom" && p.UID == "other") {
					t.Errorf("%s %s is pending: %s", tc.reason, p.UID, p.Message)
				}
				if held := strings.Contains(p.Message, "while 16 are held for a service that comes first"); held != ((name == "Long" || name == "NoRoom") && p.UID == "small") {
					t.Errorf("%s %s is pending: %s", tc.reason, p.UID, p.Message)
				}
			}
			if diff := cmp.Diff(tc.message, message); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestQuotaInvariants proves for random requests that nothing new is granted beyond a quota, that
// the order of the requests does not matter, and that whatever is pending is refused by room or
// quota if it is requested alone.
func TestQuotaInvariants(t *testing.T) {
	quotas := map[string]Quota{"a": gpuQuota(1, 8, 8), "b": gpuQuota(0, 12, 0), "c": gpuQuota(2, 4, -1)}
	granted, pending := 0, 0
	for run := range uint64(100) {
		random := rand.New(rand.NewPCG(run, 9))
		in := Input{Cluster: here, Free: pool(capacitytest.Nodes(2+random.Int64N(5), 8, 640)), Quotas: quotas, Now: noon}
		var requests []CapacityRequest
		for i := range 1 + random.IntN(12) {
			req := created(request(fmt.Sprint("u", i), 1+random.Int64N(4), 1+random.IntN(4), 1), fmt.Sprintf("2026-03-01T%02d:00:00Z", random.IntN(12)))
			if random.IntN(2) == 0 {
				req = required(req, 1)
			}
			if random.IntN(4) == 0 {
				req = running(req, "0/0", "1/0")
			}
			requests = append(requests, of([]string{"a", "b", "c", "d"}[random.IntN(4)], req))
		}
		for step := range 6 {
			// Services come, change and go.
			in.Requests, in.Now = nil, noon.Add(time.Duration(step)*6*time.Minute)
			for i, req := range requests {
				switch random.IntN(8) {
				case 0:
					req.Clusters = nil
				case 1:
					requests[i] = grown(of(req.Namespace, created(request(req.UID, 1+random.Int64N(6), 2, 1), req.Created)))
					req = requests[i]
				}
				in.Requests = append(in.Requests, req)
			}
			result := Reserve(in)
			shuffled := in
			shuffled.Requests = append([]CapacityRequest(nil), in.Requests...)
			random.Shuffle(len(shuffled.Requests), func(i, j int) {
				shuffled.Requests[i], shuffled.Requests[j] = shuffled.Requests[j], shuffled.Requests[i]
			})
			if other := Reserve(shuffled); !reflect.DeepEqual(result, other) {
				t.Fatalf("another order of requests gives another result:\n%s", cmp.Diff(result, other))
			}
			checkQuotas(t, in, result)
			granted, pending = granted+len(result.Services), pending+len(result.Pending)
			in.Ledger = result.Ledger
		}
	}
	if granted == 0 || pending == 0 {
		t.Errorf("%d granted and %d pending: the test proves nothing", granted, pending)
	}
}

func checkQuotas(t *testing.T, in Input, result Result) {
	t.Helper()
	before, after := gpusOf(in.Ledger), gpusOf(result.Ledger)
	for namespace, q := range in.Quotas {
		if limit, limited := q.limit(capacitytest.GPU, true); limited && after[namespace] > max(limit, before[namespace]) {
			t.Fatalf("namespace %s has %d thousandths of GPUs, and its quota is %d", namespace, after[namespace], limit)
		}
	}
	has := map[ServiceID]map[key.ReplicaID]bool{}
	for _, s := range result.Services {
		has[s.ServiceID] = map[key.ReplicaID]bool{}
		for _, g := range s.Grants {
			for _, r := range g.Replicas {
				has[s.ServiceID][r] = true
			}
		}
	}
	for _, p := range result.Pending {
		if p.Message == "" {
			t.Fatalf("service %s is pending without a message", p.UID)
		}
	}
	for i := range in.Requests {
		req := &in.Requests[i]
		for _, group := range req.Clusters[here].Groups {
			var missing []ReplicaRequest
			for _, r := range group.Replicas {
				if !has[req.ServiceID()][r.Name] {
					missing = append(missing, r)
				}
			}
			resources, _ := capacity.Sum(PodSets(req.PodRequirements, missing))
			q := in.Quotas[req.Namespace]
			limit, limited := q.limit(capacitytest.GPU, true)
			held := len(result.Waiting) > 0 && in.Now.Sub(noon) >= HoldAfter
			left := result.Free.Clone()
			if fits, _ := left.Allocate(PodSets(req.PodRequirements, missing)); fits && len(missing) > 0 && !held && !result.Overcommitted && (!limited || after[req.Namespace]+resources[capacitytest.GPU] <= limit) {
				t.Fatalf("group %s of service %s is pending, and both room and quota would allow it", group.Name, req.UID)
			}
		}
	}
}

// gpusOf returns the GPUs that each namespace has granted.
func gpusOf(l Ledger) map[string]int64 {
	all := map[string]int64{}
	for i := range l.Services {
		resources, _ := l.Services[i].Usage()
		all[l.Services[i].Namespace] += resources[capacitytest.GPU]
	}
	return all
}
