package reservation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
)

// TestPodsHash proves that a grant has the hash of the pods that were requested, whatever the names of
// their requirements and the pool of the grant, and that no other pods have it.
func TestPodsHash(t *testing.T) {
	gpus := func(n int64, selector ...string) capacity.PodRequirements {
		r := capacity.PodRequirements{Requests: capacity.Resources{capacitytest.GPU: n * 1000}}
		for _, zone := range selector {
			r.NodeSelector = map[string]string{"zone": zone}
		}
		return r
	}
	type shapes = map[string]capacity.PodRequirements
	type numbers = map[string]int64
	hash := func(of shapes, pods numbers) string {
		return PodsHashes(of, []ReplicaGroup{{Replicas: []ReplicaRequest{{Name: "w/0", Pods: pods}}}})["w/0"]
	}
	// granted returns the hash of what a cluster grants for a request that it has read, after the
	// ledger was read back.
	granted := func(of shapes, pods numbers) string {
		req := &CapacityRequest{UID: "u", Namespace: "n", Name: "s", PodRequirements: of, Clusters: map[string]ClusterRequest{"east": {Namespace: "n", Groups: []ReplicaGroup{{Name: "0", Replicas: []ReplicaRequest{{Name: "w/0", Pods: pods}}}}}}}
		req.AssignGenerations(nil, 0)
		text, err := EncodeRequest(req)
		if err != nil {
			t.Fatal(err)
		}
		if req, err = DecodeRequest(text); err != nil {
			t.Fatal(err)
		}
		pool := capacity.NewPool("p", map[string]string{"zone": "a"}, []capacity.NodeClass{capacitytest.Nodes(9, 8, 64)})
		result := Reserve(Input{Cluster: "east", Free: capacity.Free{Pools: []capacity.Pool{pool}}, Requests: []CapacityRequest{*req}})
		encoded, _, err := Compress(&result.Ledger)
		if err != nil {
			t.Fatal(err)
		}
		ledger, err := DecodeLedger(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if len(ledger.Services) != 1 || ledger.Services[0].Grants[0].Pin == nil {
			t.Fatalf("nothing is granted and pinned: %+v", result)
		}
		return ledger.Services[0].Hasher()(&ledger.Services[0].Grants[0])
	}
	tolerates := func(r capacity.PodRequirements, team string) capacity.PodRequirements {
		return *capacitytest.Tolerating(&r, team)
	}
	of, pods := shapes{"leader": gpus(4), "worker": gpus(8, "a"), "other": gpus(1)}, numbers{"leader": 1, "worker": 2}
	cases := map[string]struct {
		reason string
		of     shapes
		pods   numbers
		same   bool
	}{
		"Same":      {reason: "Equal pods.", of: of, pods: pods, same: true},
		"Names":     {reason: "The names of the requirements say nothing.", of: shapes{"former/1": gpus(4), "x": gpus(8, "a")}, pods: numbers{"former/1": 1, "x": 2}, same: true},
		"Split":     {reason: "Two names for one shape are one.", of: shapes{"a": gpus(4), "b": gpus(8, "a"), "c": gpus(8, "a")}, pods: numbers{"a": 1, "b": 1, "c": 1}, same: true},
		"Zero":      {reason: "A number of zero is none.", of: of, pods: numbers{"leader": 1, "worker": 2, "other": 0}, same: true},
		"Number":    {reason: "One pod less.", of: of, pods: numbers{"leader": 1, "worker": 1}},
		"Smaller":   {reason: "A pod requests less.", of: shapes{"leader": gpus(4), "worker": gpus(7, "a")}, pods: pods},
		"Selector":  {reason: "A pod selects other nodes.", of: shapes{"leader": gpus(4), "worker": gpus(8)}, pods: pods},
		"Tolerates": {reason: "A pod may go to other nodes, too.", of: shapes{"leader": gpus(4), "worker": tolerates(gpus(8, "a"), "x")}, pods: pods},
		"Swapped":   {reason: "The numbers are swapped.", of: of, pods: numbers{"leader": 2, "worker": 1}},
	}
	want := hash(of, pods)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := []bool{hash(tc.of, tc.pods) == want, granted(tc.of, tc.pods) == want}
			if diff := cmp.Diff([]bool{tc.same, tc.same}, got); diff != "" {
				t.Errorf("%s The hashes of what is requested, and of what is granted, are the same: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPodsHashOfStatus proves that a grant whose pods the ledger does not have has no hash.
func TestPodsHashOfStatus(t *testing.T) {
	s := Service{Grants: []Grant{{Generation: 1}}}
	if got := s.Hasher()(&s.Grants[0]); got != "" {
		t.Errorf("the hash is %q, want none", got)
	}
}

// TestHashOfFormerVersions holds a hash. It is on what runs, and another one would have every replica granted anew.
func TestHashOfFormerVersions(t *testing.T) {
	of := map[string]capacity.PodRequirements{"w": *capacitytest.Requirements(8, 2, "a"), "l": {Requests: capacity.Resources{"cpu": 1000}}}
	got := PodsHashes(of, []ReplicaGroup{{Replicas: []ReplicaRequest{{Name: "w/0", Pods: map[string]int64{"w": 2, "l": 1}}}}})["w/0"]
	if diff := cmp.Diff("42e94c6281032d38bfc2375f2ea41383", got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHasherIsCheap proves that the hashes of many grants cost no more for each where a service has many shapes.
func TestHasherIsCheap(t *testing.T) {
	const grants = 2000
	cost := func(shapes int) float64 {
		s := Service{}
		for i := range shapes {
			s.Shapes = append(s.Shapes, *capacitytest.Requirements(1, int64(i+1)))
		}
		g := Grant{Pods: make([]int64, shapes)}
		g.Pods[shapes-1] = 1
		return testing.AllocsPerRun(3, func() {
			hash := s.Hasher()
			for range grants {
				hash(&g)
			}
		})
	}
	if few, many := cost(1), cost(128); many > 2*few {
		t.Errorf("it takes %v allocations, and %v with one shape", many, few)
	}
}
