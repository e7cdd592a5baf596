package reservation

import (
	"fmt"
	"slices"
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
		return fmt.Sprintf(`{"uid":"u","namespace":"n","name":%q,"created":%q,"podRequirements":{%s},"clusters":[{"names":["us-east"],"namespace":"n",%s}]}`, name, created, requirements, cr)
	}
	left := func(clusters string) string {
		return fmt.Sprintf(`{"uid":"u","namespace":"n","name":"s","left":{%s}}`, clusters)
	}
	const requirements, none = `"s":{}`, `"groups":[]`
	group := `{"replicas":[{"name":"a/#","pods":{"s":1}}]}`
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Fits":            {reason: "The largest service.", text: request("s", "", requirements, `"groups":[`+many(4096, group)+`],"running":[`+many(8192, `"a/#"`)+`]`)},
		"Nodes":           {reason: "The largest replica, with its leader.", text: request("s", "", `"l":{},"s":{}`, `"groups":[{"replicas":[{"name":"a/0","pods":{"l":1,"s":1023}}]}]`)},
		"Replicas":        {reason: "One replica too many.", text: request("s", "", requirements, `"groups":[`+many(4097, group)+`]`), want: "at most 4096 are allowed"},
		"Groups":          {reason: "Groups without replicas.", text: request("s", "", requirements, `"groups":[`+many(5000, `{}`)+`]`), want: "at most 4096 are allowed"},
		"Running":         {reason: "Replicas that are claimed to run.", text: request("s", "", requirements, `"running":[`+many(8193, `"a/#"`)+`]`), want: "at most 8192 are allowed"},
		"ManyClusters":    {reason: "Clusters of one entry count each.", text: fmt.Sprintf(`{"uid":"u","namespace":"n","name":"s","podRequirements":{"s":{}},"clusters":[{"names":[%s],"namespace":"n","groups":[{"name":"0","replicas":[%s]}]}]}`, many(200, `"c#"`), many(100, `{"name":"a/#","pods":{"s":1}}`)), want: "more than 16384 replicas in all clusters"},
		"Names":           {reason: "A cluster too many.", text: fmt.Sprintf(`{"uid":"u","namespace":"n","name":"s","clusters":[{"names":[%s],"namespace":"n"}]}`, many(1025, `"c#"`)), want: "at most 1024 are allowed"},
		"PodRequirements": {reason: "Pod requirements.", text: request("s", "", many(129, `"s#":{}`), none), want: "at most 128 are allowed"},
		"Labels":          {reason: "Labels of a node selector.", text: request("s", "", `"s":{"nodeSelector":{`+many(257, `"k#":"v"`)+`}}`, none), want: "at most 256 are allowed"},
		"Tolerations":     {reason: "Tolerations of one pod.", text: request("s", "", `"s":{"tolerations":[`+many(65, `{"key":"k#"}`)+`]}`, none), want: "have 65 tolerations: at most 64 are allowed"},
		"Name":            {reason: "The name is repeated in the ledger and in the status.", text: request(strings.Repeat("x", 254), "", requirements, none), want: "254 characters: at most 253 are allowed"},
		"Created":         {reason: "So is the time.", text: request("s", strings.Repeat("x", 65), requirements, none), want: "at most 64 are allowed"},
		"Resources":       {reason: "Resources of one pod.", text: request("s", "", `"s":{"requests":{`+many(65, `"r#":1`)+`}}`, none), want: "have 65 resources: at most 64 are allowed"},
		"LeftClusters":    {reason: "Clusters that replicas left.", text: left(many(1025, `"c#":[]`)), want: "replicas left 1025 clusters: at most 1024 are allowed"},
		"LeftReplicas":    {reason: "Replicas that left a cluster.", text: left(`"c":[` + many(8193, `"a/#"`) + `]`), want: "8193 replicas left cluster \"c\": at most 8192 are allowed"},
		"LeftFits":        {reason: "All that may run left.", text: left(`"c":[` + many(8192, `"a/#"`) + `]`)},
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
	result := reserve(free, nil, []CapacityRequest{hostile, modest})
	if len(result.Services) != 1 || result.Services[0].Namespace != "modest" {
		t.Errorf("nothing is granted to the other tenant, although it fits: %v", result.Services)
	}
	if len(result.Pending) != 1 || len(result.Pending[0].Replicas) != 4000 {
		t.Errorf("not all replicas of the first tenant are pending: %d services", len(result.Pending))
	}
	b := open(&Input{Cluster: here, Free: free, Requests: []CapacityRequest{hostile, modest}, Now: noon})
	if got := b.serving.shares["hostile"]; got.looks > maxLooks/2 || got.steps > searchSteps/2 {
		t.Errorf("one of two namespaces has %+v", got)
	}
}

// TestReserveContinues proves that the next calls grant what is too much for one call.
func TestReserveContinues(t *testing.T) {
	free := capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, nil)}}
	for i := range int64(2000) {
		free.Pools[0].Free = append(free.Pools[0].Free, capacity.NodeClass{Count: 1, Free: capacity.Resources{"nvidia.com/gpu": 8000 + i}})
		free.Pools[0].Total = capacity.Resources{"nvidia.com/gpu": 20_000_000}
	}
	req := CapacityRequest{UID: "u", Namespace: "n", Name: "s", PodRequirements: map[string]capacity.PodRequirements{"s": {Requests: capacity.Resources{"nvidia.com/gpu": 1000}}}, Clusters: map[string]ClusterRequest{}}
	cr := ClusterRequest{Namespace: "n"}
	for i := range 1200 {
		// Every other group is too large for any node, so no two of them can be granted together.
		pods := map[string]int64{"s": 1 + int64(i)%7}
		if i%2 == 1 {
			pods = map[string]int64{"s": 1<<19 + int64(i)}
		}
		cr.Groups = append(cr.Groups, ReplicaGroup{Replicas: []ReplicaRequest{{Name: key.ReplicaID(fmt.Sprint("a/", i)), Pods: pods, Required: true}}})
	}
	req.Clusters[here] = cr
	result, calls := Result{}, 0
	for granted0(result) < 500 {
		before := granted0(result)
		result = Reserve(Input{Cluster: here, Free: free, Ledger: result.Ledger, Requests: []CapacityRequest{req}, Now: noon})
		if calls++; granted0(result) == before {
			t.Fatalf("call %d grants nothing more than %d", calls, before)
		}
	}
	if calls == 1 {
		t.Error("one call evaluated everything")
	}
}

// granted0 is the number of replicas that the first service of a result has.
func granted0(result Result) int {
	n := 0
	for _, s := range result.Services[:min(1, len(result.Services))] {
		for _, g := range s.Grants {
			n += len(g.Replicas)
		}
	}
	return n
}

// TestYoungerBehindMisfits proves that what fits is granted although older services of its namespace do not fit, and take all that a call
// looks at for the namespace.
func TestYoungerBehindMisfits(t *testing.T) {
	pool := capacity.NewPool("p", map[string]string{"pool": "p"}, nil)
	for i := range int64(300) {
		pool.Free = append(pool.Free, capacity.NodeClass{Count: 1, Free: capacity.Resources{"nvidia.com/gpu": 7000, "cpu": 64000 + i}})
	}
	pool.Total = capacity.Resources{"nvidia.com/gpu": 2_100_000, "cpu": 20_000_000}
	free := capacity.Free{Pools: []capacity.Pool{pool}}
	request := func(namespace, name, created string, gpus, cpus int64) CapacityRequest {
		group := ReplicaGroup{Name: "0", Replicas: []ReplicaRequest{{Name: "w/0", Pods: map[string]int64{"s": 1}, Required: true}}}
		return CapacityRequest{
			UID: namespace + name, Namespace: namespace, Name: name, Created: created,
			PodRequirements: map[string]capacity.PodRequirements{"s": {Requests: capacity.Resources{"nvidia.com/gpu": 1000 * gpus, "cpu": cpus}}},
			Clusters:        map[string]ClusterRequest{here: {Namespace: namespace, Groups: []ReplicaGroup{group}}},
		}
	}
	for name, gpus := range map[string]int64{"OthersAreServed": 1, "OthersWait": 8} {
		t.Run(name, func(t *testing.T) {
			var requests []CapacityRequest
			for i := range 63 {
				requests = append(requests, request(fmt.Sprint("other-", i), "s", "2026-01-01T00:00:00Z", gpus, 1))
			}
			first := Reserve(Input{Cluster: here, Free: free, Requests: requests, Now: noon})
			for i := range 20 {
				requests = append(requests, request("a", fmt.Sprint("old-", i), "2026-01-02T00:00:00Z", 8, int64(1000+i)))
			}
			requests = append(requests, request("a", "young", "2026-01-03T00:00:00Z", 1, 1))
			result := Reserve(Input{Cluster: here, Free: free, Ledger: first.Ledger, Requests: requests, Now: noon})
			if !slices.ContainsFunc(result.Services, func(s Service) bool { return s.Name == "young" }) {
				i := slices.IndexFunc(result.Pending, func(p Pending) bool { return p.Name == "young" })
				t.Errorf("it is pending: %s", result.Pending[i].Message)
			}
		})
	}
}
