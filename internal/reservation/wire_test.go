package reservation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

const wellFormed = `{"uid":"u","namespace":"team","name":"s","created":"2026-03-01T10:00:00Z","podRequirements":{"w":{"requests":{"nvidia.com/gpu":1000}}},` +
	`"clusters":[{"names":["us-east"],"namespace":"team","groups":[{"name":"0","replicas":[{"name":"w/0","pods":{"w":2},"required":true}]}],"running":["w/0"]}]}`

// former is the same in the form that requests had before.
const former = `{"uid":"u","namespace":"team","name":"s","created":"2026-03-01T10:00:00Z","podRequirements":{"w":{"requests":{"nvidia.com/gpu":1000}}},` +
	`"clusters":[{"names":["us-east"],"namespace":"team","groups":[{"name":"0","replicas":[{"name":"w/0","pods":{"w":2},"required":true}]}],"running":["w/0"]}]}`

func TestDecodeRequest(t *testing.T) {
	change := func(from, to string) string { return strings.Replace(wellFormed, from, to, 1) }
	var labels []string
	for i := range 28 {
		labels = append(labels, fmt.Sprintf(`"%02d":%q`, i, strings.Repeat("v", 300)))
	}
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"WellFormed":         {reason: "A request as a service writes it.", text: wellFormed},
		"Former":             {reason: "A request that an earlier version wrote.", text: former},
		"NoCluster":          {reason: "An entry for no cluster would be expanded for nothing.", text: change(`"names":["us-east"]`, `"names":[]`), want: "there is an entry for no cluster"},
		"TwoEntries":         {reason: "A cluster reads one entry.", text: change(`["us-east"]`, `["us-east","us-east"]`), want: `there are two entries for cluster "us-east"`},
		"UnknownField":       {reason: "Unknown fields of later versions are ignored.", text: change(`"uid"`, `"younger":{},"uid"`)},
		"Zero":               {reason: "An amount of zero is none.", text: change(`1000`, `1000,"cpu":0`)},
		"Pods":               {reason: "Each pod is one, whatever it requests.", text: change(`1000`, `1000,"pods":1000`)},
		"Repeated":           {reason: "Whoever reads the first name reads something else than who reads the last.", text: change(`"uid":"u"`, `"uid":"other","uid":"u"`), want: "it repeats a name, or is not UTF-8"},
		"Empty":              {reason: "The ConfigMap does not have the key.", text: "", want: "unexpected end of JSON input"},
		"NoUID":              {reason: "A reservation needs an owner.", text: change(`"uid":"u",`, ``), want: `the UID "", namespace "team" and name "s" of the service are required`},
		"NoNamespace":        {reason: "A request counts for its namespace.", text: change(`"namespace":"team",`, ``), want: `the UID "u", namespace "" and name "s" of the service are required`},
		"NoName":             {reason: "A reservation names its service.", text: change(`"name":"s",`, ``), want: `the UID "u", namespace "team" and name "" of the service are required`},
		"LargeGeneration":    {reason: "A status has numbers as float64.", text: change(`"podRequirements"`, `"generation":1125899906842625,"podRequirements"`), want: "it must be between 0 and 1125899906842624"},
		"NoReplicaName":      {reason: "Capacity is reserved by the names of replicas.", text: change(`"name":"w/0"`, `"name":""`), want: `the name "" of a replica is empty or not unique`},
		"NegativeReplica":    {reason: "A generation is not negative.", text: change(`"required":true`, `"generation":-1`), want: `replica "w/0" has the generation -1: it must be between 0 and 0, that of the request`},
		"LongPool":           {reason: "Pools are named in the ledger.", text: change(`"required":true`, `"pool":"`+strings.Repeat("p", 254)+`"`), want: `the pool of replica "w/0" has 254 characters: at most 253 are allowed`},
		"Negative":           {reason: "A negative amount would add capacity.", text: change(`1000`, `-1000`), want: `pod requirements "w" have a negative amount of nvidia.com/gpu`},
		"NoRequirements":     {reason: "A pod without requirements would use no capacity.", text: change(`"w":2`, `"x":2`), want: `replica "w/0" names the pod requirements "x", which podRequirements does not have`},
		"NegativePods":       {reason: "The number of pods is not negative.", text: change(`"w":2`, `"w":-2`), want: `replica "w/0" has -2 pods with the requirements "w": it must be between 0 and 1024`},
		"ManyPods":           {reason: "No replica has more nodes.", text: change(`"w":2`, `"w":1025`), want: `replica "w/0" has 1025 pods with the requirements "w": it must be between 0 and 1024`},
		"ManyInAll":          {reason: "All pods count.", text: strings.Replace(change(`{"w":{"requests"`, `{"v":{},"u":{},"w":{"requests"`), `"w":2`, `"v":1024,"u":1`, 1), want: `replica "w/0" has 1025 pods: at most 1024 are allowed`},
		"DuplicateName":      {reason: "Capacity is reserved by the names of replicas.", text: change(`[{"name":"w/0"`, `[{"name":"w/0","pods":{"w":1}},{"name":"w/0"`), want: `the name "w/0" of a replica is empty or not unique`},
		"ManyPodSets":        {reason: "All of them are compared with each other.", text: change(`"w":2`, `"w":2,"1":1,"2":1,"3":1,"4":1`), want: `replica "w/0" has pods with 5 requirements: at most 4 are allowed`},
		"NoPods":             {reason: "The replica would get a reservation without capacity.", text: change(`"w":2`, `"w":0`), want: `replica "w/0" has no pods`},
		"NotAName":           {reason: "Roles are found by the names of replicas.", text: change(`"w/0"`, `"w/00"`), want: `"w/00" is not the name of a replica: it must be {role}/{index} or {group}/{role}/{index}`},
		"LongName":           {reason: "Long names would fill the ledger.", text: change(`"w/0"`, `"`+strings.Repeat("w", 101)+`"`), want: "the name of a replica has 101 characters: at most 100 are allowed"},
		"LongResource":       {reason: "Messages name resources.", text: change("nvidia.com/gpu", strings.Repeat("r", 318)), want: "have a resource whose name has 318 characters: at most 317 are allowed"},
		"LongLabel":          {reason: "Messages name labels.", text: change(`{"w":{"requests"`, `{"w":{"nodeSelector":{"a":"`+strings.Repeat("v", 318)+`"},"requests"`), want: "pod requirements \"w\" select nodes by a label of 318 characters: at most 317 are allowed"},
		"LongToleration":     {reason: "The ledger has them.", text: change(`{"w":{"requests"`, `{"w":{"tolerations":[{"key":"k","value":"`+strings.Repeat("v", 318)+`"}],"requests"`), want: "pod requirements \"w\" have a toleration with a text of 318 characters: at most 317 are allowed"},
		"LongInAll":          {reason: "Each grant is hashed with them.", text: change(`{"w":{"requests"`, `{"w":{"nodeSelector":{`+strings.Join(labels, ",")+`},"requests"`), want: "pod requirements \"w\" have 8648 bytes of resources, labels and tolerations: at most 8192 are allowed"},
		"Prefers":            {reason: "Such a toleration says nothing.", text: change(`{"w":{"requests"`, `{"w":{"tolerations":[{"key":"k","effect":"PreferNoSchedule"}],"requests"`)},
		"TwoFaults":          {reason: "The message is the same each time.", text: change(`"w":2`, `"z":1,"y":1,"x":1`), want: `replica "w/0" names the pod requirements "x", which podRequirements does not have`},
		"NegativeGeneration": {reason: "A generation is not negative.", text: change(`"podRequirements"`, `"generation":-1,"podRequirements"`), want: "the generation is -1: it must be between 0 and"},
		"NegativeEpoch":      {reason: "No home has such an epoch.", text: change(`"podRequirements"`, `"homes":{"0":{"cluster":"us-east","epoch":-1}},"podRequirements"`)},
		"LargeEpoch":         {reason: "The next epoch would be below 0.", text: change(`"podRequirements"`, `"homes":{"0":{"cluster":"us-east","epoch":9223372036854775807}},"podRequirements"`)},
		"BadGeneration":      {reason: "No replica is newer than its request.", text: change(`"required":true`, `"generation":1`), want: `replica "w/0" has the generation 1: it must be between 0 and 0, that of the request`},
		"BadNamespace":       {reason: "The namespace is created in the cluster.", text: change(`"namespace":"team","groups"`, `"namespace":"../team","groups"`), want: `"../team" is not the name of a namespace`},
		"BadCluster":         {reason: "A cluster has a valid name.", text: change(`"us-east"`, `"US"`), want: `"US" is not the name of a cluster`},
		"BadLeft":            {reason: "The cluster becomes a label.", text: change(`"clusters"`, `"left":{"US":["w/0"]},"clusters"`), want: `replicas left "US", which is not the name of a cluster`},
		"SomethingElse":      {reason: "The text is not a request.", text: `[1]`, want: "cannot unmarshal array"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req, err := DecodeRequest(tc.text)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			text, err := EncodeRequest(req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wellFormed, text); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRequestIsShort proves that a request says once what is the same for several clusters, and that nothing of it is lost.
func TestRequestIsShort(t *testing.T) {
	group := []ReplicaGroup{{"0", []ReplicaRequest{{Name: "w/0", Pods: map[string]int64{"w": 1}, Generation: 3}}}}
	cases := map[string]struct {
		reason   string
		clusters map[string]ClusterRequest
		want     string
	}{
		"SameForAll": {
			reason: "Clusters differ in their names only.",
			clusters: map[string]ClusterRequest{
				"b": {Name: "b", Namespace: "n", ProviderConfig: "b", Groups: group},
				"a": {Name: "a", Namespace: "n", ProviderConfig: "a", Groups: group},
				"c": {Name: "a", Namespace: "n", ProviderConfig: "c", Groups: group},
			},
			want: `[{"names":["a","b"],"name":"*","namespace":"n","providerConfig":"*","groups":[{"name":"0","replicas":[{"name":"w/0","pods":{"w":1},"generation":3}]}]},` +
				`{"names":["c"],"name":"a","namespace":"n","providerConfig":"*","groups":[{"name":"0","replicas":[{"name":"w/0","pods":{"w":1},"generation":3}]}]}]`,
		},
		"Different": {
			reason: "One runs in its pool, and waits with the pods that it had.",
			clusters: map[string]ClusterRequest{
				"a": {Name: "a", Namespace: "n", Groups: []ReplicaGroup{{"w/0", []ReplicaRequest{{Name: "w/0", Pods: map[string]int64{"w": 1}, Pool: "p", Held: true, Replacing: true}}}}, Running: []key.ReplicaID{"w/0"}},
				"b": {Name: "b", Namespace: "n", Groups: []ReplicaGroup{{"w/0", []ReplicaRequest{{Name: "w/0", Pods: map[string]int64{"w": 1}}}}}},
			},
			want: `[{"names":["a"],"name":"*","namespace":"n","groups":[{"name":"w/0","replicas":[{"name":"w/0","pods":{"w":1},"pool":"p","held":true,"replacing":true}]}],"running":["w/0"]},` +
				`{"names":["b"],"name":"*","namespace":"n","groups":[{"name":"w/0","replicas":[{"name":"w/0","pods":{"w":1}}]}]}]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := &CapacityRequest{UID: "u", Namespace: "n", Name: "s", Generation: 3, PodRequirements: map[string]capacity.PodRequirements{"w": {}}, Clusters: tc.clusters}
			text, err := EncodeRequest(req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(`{"uid":"u","namespace":"n","name":"s","generation":3,"podRequirements":{"w":{}},"clusters":`+tc.want+"}", text); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			got, err := DecodeRequest(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(req, got); diff != "" {
				t.Errorf("%s\n-encoded +decoded:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOnly proves that a cluster keeps of a request what is for itself. One request may name a thousand clusters.
func TestOnly(t *testing.T) {
	req := request("a", 1, 1)
	req.Homes, req.Left = map[key.GroupID]Home{"0": {Cluster: here}}, map[string][]key.ReplicaID{here: {"0/1"}, "us-west": {"0/2"}}
	req.Clusters["us-west"] = ClusterRequest{Namespace: "other"}
	want := request("a", 1, 1)
	want.Left = map[string][]key.ReplicaID{here: {"0/1"}}
	none := request("a", 1)
	none.Clusters = nil
	cases := map[string]struct {
		reason, cluster string
		want            CapacityRequest
	}{
		"Named":  {"What is for others is left out.", here, want},
		"Others": {"A cluster that it does not name reads nothing.", "us-north", none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(&tc.want, req.Only(tc.cluster)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRequestLabel proves that the label is valid for every name that a cluster can have.
func TestRequestLabel(t *testing.T) {
	for _, cluster := range []string{"a", "us-east-1", strings.Repeat("a", 63)} {
		if errs := validation.IsQualifiedName(RequestLabel(cluster)); len(errs) > 0 {
			t.Errorf("%s: %v", RequestLabel(cluster), errs)
		}
	}
	if errs := validation.IsValidLabelValue(RequestLabelValue); len(errs) > 0 {
		t.Error(errs)
	}
}

// FuzzDecodeRequest reserves whatever can be decoded. Nothing panics, and no capacity is
// reserved twice.
func FuzzDecodeRequest(f *testing.F) {
	f.Add(wellFormed, int64(2))
	f.Add(former, int64(2))
	f.Add(`{"uid":"u","namespace":"n","name":"s","podRequirements":{"":{}},"clusters":[{"names":["us-east"],"namespace":"n","groups":[{"replicas":[{"name":"a/0","pods":{"":1024}}]},{}]}]}`, int64(0))
	f.Add(`{"uid":"u","namespace":"n","name":"s","podRequirements":{"a":{"requests":{"nvidia.com/gpu":9223372036854775807,"cpu":1}}},"clusters":[{"names":["us-east"],"namespace":"n","groups":[{"replicas":[{"name":"a/0","pods":{"a":1000}}]}]}]}`, int64(5000))
	f.Add(strings.Replace(wellFormed, `{"w":{"requests"`, `{"w":{"tolerations":[{"key":"dedicated","value":"x"},{"operator":"Gt","key":"dedicated","value":"1","tolerationSeconds":1}],"requests"`, 1), int64(2))
	f.Fuzz(func(t *testing.T, text string, nodes int64) {
		req, err := DecodeRequest(text)
		if err != nil {
			return
		}
		again, err := EncodeRequest(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeRequest(again); err != nil {
			t.Fatalf("an encoded request cannot be decoded: %v", err)
		}
		free := capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, []capacity.NodeClass{capacitytest.Nodes(min(max(nodes, 0), 5000), 8, 64), capacitytest.Tainted(capacitytest.Nodes(2, 8, 64), "x")})}}
		result := reserve(free, nil, []CapacityRequest{*req})
		for _, n := range result.Free.Pools[0].Free {
			for name, left := range n.Free {
				if left < 0 || n.Count < 0 {
					t.Fatalf("%d of %s are left on %d nodes", left, name, n.Count)
				}
			}
		}
		result = Reserve(Input{Cluster: here, Free: free, Ledger: result.Ledger, Requests: []CapacityRequest{*req}, NotSchedulable: "not schedulable", Now: noon})
		compressed, _, err := Compress(&result.Ledger)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeLedger(compressed); err != nil {
			t.Fatalf("a ledger cannot be decoded: %v", err)
		}
	})
}
