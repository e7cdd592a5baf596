package reservation

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// TestDecodeRequestSizes proves that a request is no larger than that of the largest service.
// Only the function writes requests, but whoever may write a ConfigMap can, too.
func TestDecodeRequestSizes(t *testing.T) {
	many := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(format, "#", strconv.Itoa(i))
		}
		return strings.Join(all, ",")
	}
	request := func(name, created, requirements, cr string) string {
		return fmt.Sprintf(`{"uid":"u","namespace":"n","name":%q,"created":%q,"podRequirements":{%s},"clusters":{"us-east":{"namespace":"n",%s}}}`, name, created, requirements, cr)
	}
	const requirements, none = `"s":{}`, `"groups":[]`
	group := `{"replicas":[{"name":"a/#","pods":{"s":1}}]}`
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Fits":            {reason: "The largest service.", text: request("s", "", requirements, `"groups":[`+many(4096, group)+`],"running":[`+many(8192, `"a/#"`)+`]`)},
		"Replicas":        {reason: "One replica too many.", text: request("s", "", requirements, `"groups":[`+many(4097, group)+`]`), want: "at most 4096 are allowed"},
		"Groups":          {reason: "Groups without replicas.", text: request("s", "", requirements, `"groups":[`+many(5000, `{}`)+`]`), want: "at most 4096 are allowed"},
		"Running":         {reason: "Replicas that are claimed to run.", text: request("s", "", requirements, `"running":[`+many(8193, `"a/#"`)+`]`), want: "at most 8192 are allowed"},
		"PodRequirements": {reason: "Pod requirements.", text: request("s", "", many(129, `"s#":{}`), none), want: "at most 128 are allowed"},
		"Labels":          {reason: "Labels of a node selector.", text: request("s", "", `"s":{"nodeSelector":{`+many(257, `"k#":"v"`)+`}}`, none), want: "at most 256 are allowed"},
		"Name":            {reason: "The name is repeated in the ledger and in the status.", text: request(strings.Repeat("x", 254), "", requirements, none), want: "254 characters: at most 253 are allowed"},
		"Created":         {reason: "So is the time.", text: request("s", strings.Repeat("x", 65), requirements, none), want: "at most 64 are allowed"},
		"Text":            {reason: "No ConfigMap has that many bytes.", text: strings.Repeat(" ", 1<<20) + "{}", want: "at most 1048576 are allowed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeRequest(tc.text)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// unplaceable returns a request whose groups are all searched for in vain: the sums suffice,
// but no node has enough.
func unplaceable(namespace string, groups int) CapacityRequest {
	req := CapacityRequest{
		UID: "u-" + namespace, Namespace: namespace, Name: "s",
		PodRequirements: map[string]capacity.PodRequirements{"s": {Requests: capacity.Resources{"nvidia.com/gpu": 60_000}}, "t": {Requests: capacity.Resources{"nvidia.com/gpu": 1}}},
		Clusters:        map[string]ClusterRequest{},
	}
	cr := ClusterRequest{Namespace: namespace}
	for i := range groups {
		cr.Groups = append(cr.Groups, ReplicaGroup{Replicas: []ReplicaRequest{{Name: key.ReplicaID(fmt.Sprint("a/", i)), Pods: map[string]int64{"s": 13, "t": int64(i)}}}})
	}
	req.Clusters[here] = cr
	return req
}

// TestReserveIsBounded proves that a tenant can neither make a cluster search for ever nor use
// up the budget of another tenant.
func TestReserveIsBounded(t *testing.T) {
	free := capacity.Free{}
	for i := range int64(12) {
		free.Pools = append(free.Pools, capacity.NewPool(fmt.Sprint("p", i), nil, []capacity.NodeClass{{Count: 1, Free: capacity.Resources{"nvidia.com/gpu": 80_000 + 1000*i}}}))
	}
	modest := CapacityRequest{
		UID: "u", Namespace: "modest", Name: "s", Created: "2026-03-01T12:00:00Z", PodRequirements: map[string]capacity.PodRequirements{"s": {Requests: capacity.Resources{"nvidia.com/gpu": 1000}}},
		Clusters: map[string]ClusterRequest{here: {Namespace: "modest", Groups: []ReplicaGroup{{Replicas: []ReplicaRequest{{Name: "a/0", Pods: map[string]int64{"s": 1}}}}}}},
	}
	hostile := unplaceable("hostile", 4000)
	hostile.Created = "2026-01-01T12:00:00Z"
	result := Reserve(here, free, nil, []CapacityRequest{hostile, modest}, "")
	if len(result.Reservations) != 1 || result.Reservations[0].Namespace != "modest" {
		t.Errorf("nothing is reserved for the other tenant, although it fits: %v", result.Reservations)
	}
	if len(result.Pending) != 1 || len(result.Pending[0].Replicas) != 4000 {
		t.Errorf("not all replicas of the first tenant are pending: %d services", len(result.Pending))
	}
	budgets := sharedBudget([]CapacityRequest{hostile, modest})
	if got := *budgets["hostile"]; got > reserveBudget/2 {
		t.Errorf("one of two namespaces has %d of %d steps", got, reserveBudget)
	}
}

// TestReserveContinues proves that the next calls reserve what is too much for one call.
func TestReserveContinues(t *testing.T) {
	free := capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, nil)}}
	for i := range int64(2000) {
		free.Pools[0].Free = append(free.Pools[0].Free, capacity.NodeClass{Count: 1, Free: capacity.Resources{"nvidia.com/gpu": 8000 + i}})
		free.Pools[0].Total = capacity.Resources{"nvidia.com/gpu": 20_000_000}
	}
	req := CapacityRequest{UID: "u", Namespace: "n", Name: "s", PodRequirements: map[string]capacity.PodRequirements{"s": {Requests: capacity.Resources{"nvidia.com/gpu": 1000}}}, Clusters: map[string]ClusterRequest{}}
	cr := ClusterRequest{Namespace: "n"}
	for i := range 300 {
		cr.Groups = append(cr.Groups, ReplicaGroup{Replicas: []ReplicaRequest{{Name: key.ReplicaID(fmt.Sprint("a/", i)), Pods: map[string]int64{"s": 1}}}})
	}
	req.Clusters[here] = cr
	var reservations []Reservation
	for round := range 10 {
		result := Reserve(here, free, reservations, []CapacityRequest{req}, "")
		reservations = result.Reservations
		if len(result.Pending) == 0 {
			if round == 0 {
				t.Error("one call evaluated everything")
			}
			return
		}
	}
	t.Errorf("after ten calls %d of 300 replicas are reserved", len(reservations[0].Replicas))
}

// TestManyChangedRequirements proves that few tries suffice if the pods of thousands of
// services change at once, as an Input may change them.
func TestManyChangedRequirements(t *testing.T) {
	free := capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, []capacity.NodeClass{{Count: 100, Free: capacity.Resources{"cpu": 64_000}}})}}
	var reservations []Reservation
	var requests []CapacityRequest
	for i := range 3000 {
		uid := fmt.Sprintf("u%04d", i)
		reservations = append(reservations, Reservation{UID: uid, Namespace: "n", Name: uid, Replicas: []key.ReplicaID{"a/0"}, PodRequirements: map[string]capacity.PodRequirements{"s": {Requests: capacity.Resources{"cpu": 1000}}}})
		requests = append(requests, CapacityRequest{UID: uid, Namespace: "n", Name: uid, Created: strconv.Itoa(i + 1000), PodRequirements: map[string]capacity.PodRequirements{"s": {Requests: capacity.Resources{"cpu": 4000}}}, Clusters: map[string]ClusterRequest{
			here: {Namespace: "n", Groups: []ReplicaGroup{{Replicas: []ReplicaRequest{{Name: "a/0", Pods: map[string]int64{"s": 1}}}}}},
		}})
	}
	result := Reserve(here, free, reservations, requests, "")
	if result.Overcommitted || len(result.Reservations) != 3000 {
		t.Fatalf("%d services keep their reservations, overcommitted: %t", len(result.Reservations), result.Overcommitted)
	}
	// The cluster has 6,400 CPUs, of which 3,000 are reserved, and each change takes 3 more:
	// 1,133 fit.
	changed := 0
	for _, g := range result.Reservations {
		if g.PodRequirements["s"].Requests["cpu"] == 4000 {
			changed++
		}
	}
	if changed < 1000 || changed > 1133 || len(result.RequirementsChanged) != 3000-changed {
		t.Errorf("%d changes are counted, and %d do not fit", changed, len(result.RequirementsChanged))
	}
}
