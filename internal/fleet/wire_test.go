package fleet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

const wellFormed = `{"uid":"u","namespace":"team","name":"s","since":"2026-03-01T10:00:00Z","shapes":{"w":{"requests":{"nvidia.com/gpu":1000}}},` +
	`"clusters":{"us-east":{"namespace":"team","units":[{"name":"0","replicas":[{"name":"w/0","pods":{"w":2},"required":true}]}],"held":["w/0"]}}}`

func TestDecodeAsk(t *testing.T) {
	change := func(from, to string) string { return strings.Replace(wellFormed, from, to, 1) }
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"WellFormed":    {reason: "What a service writes.", text: wellFormed},
		"Younger":       {reason: "Fields that are not known yet are passed over.", text: change(`"uid"`, `"younger":{},"uid"`)},
		"Empty":         {reason: "A ConfigMap without the key.", text: "", want: "unexpected end of JSON input"},
		"NoUID":         {reason: "A grant belongs to somebody.", text: change(`"uid":"u",`, ``), want: `it is of a service with the UID "", namespace "team" and name "s", and needs all of them`},
		"Negative":      {reason: "Less than nothing would make room.", text: change(`1000`, `-1000`), want: `shape "w" requests less than nothing of nvidia.com/gpu`},
		"NoShape":       {reason: "A pod without a shape would count nothing.", text: change(`"w":2`, `"x":2`), want: `replica "w/0" has 2 pods of shape "x"`},
		"NegativePods":  {reason: "Fewer pods than none.", text: change(`"w":2`, `"w":-2`), want: `replica "w/0" has -2 pods of shape "w"`},
		"ManyPods":      {reason: "Sums must not overflow.", text: change(`"w":2`, `"w":9000000000`), want: `replica "w/0" has 9000000000 pods of shape "w"`},
		"Twice":         {reason: "A replica is granted by its name.", text: change(`[{"name":"w/0"`, `[{"name":"w/0","pods":{"w":1}},{"name":"w/0"`), want: `each replica has a name of its own, and one is called "w/0"`},
		"NoPods":        {reason: "It would be granted without room.", text: change(`"w":2`, `"w":0`), want: `replica "w/0" has no pods`},
		"LongName":      {reason: "It would fill the ledger.", text: change(`"w/0"`, `"`+strings.Repeat("w", 101)+`"`), want: "the name of a replica has 101 characters, and none has more than 100"},
		"TwoFaults":     {reason: "The same is said each time.", text: change(`"w":2`, `"z":1,"y":1,"x":1`), want: `replica "w/0" has 1 pods of shape "x"`},
		"NoSerial":      {reason: "A serial below none.", text: change(`"shapes"`, `"serial":-1,"shapes"`), want: "its serial is -1, and none is above"},
		"BadSerial":     {reason: "No replica was added after the ask.", text: change(`"required":true`, `"serial":1`), want: `replica "w/0" has the serial 1, and the ask 0`},
		"BadNamespace":  {reason: "It is made in the cluster.", text: change(`{"namespace":"team","units"`, `{"namespace":"../team","units"`), want: `"../team" is no name of a namespace`},
		"BadCluster":    {reason: "Clusters have names.", text: change(`"us-east"`, `"US"`), want: `"US" is no name of a cluster`},
		"SomethingElse": {reason: "Not an ask at all.", text: `[1]`, want: "cannot unmarshal array"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, err := DecodeAsk(tc.text)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			text, err := EncodeAsk(a)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wellFormed, text); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGrants(t *testing.T) {
	for _, grants := range [][]Grant{nil, {{UID: "u", Namespace: "n", Name: "s", Replicas: []string{"w/0"}}}} {
		text, err := EncodeGrants(grants)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeGrants(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]Grant{}, grants...), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	for _, text := range []string{"", "{}", "[1]"} {
		if _, err := DecodeGrants(text); err == nil {
			t.Errorf("%q is no list of grants", text)
		}
	}
}

// The label is one for every name that a cluster can have.
func TestAskLabel(t *testing.T) {
	for _, cluster := range []string{"a", "us-east-1", strings.Repeat("a", 63)} {
		if errs := validation.IsQualifiedName(AskLabel(cluster)); len(errs) > 0 {
			t.Errorf("%s: %v", AskLabel(cluster), errs)
		}
	}
	if errs := validation.IsValidLabelValue(AskLabelValue); len(errs) > 0 {
		t.Error(errs)
	}
}

// FuzzDecodeAsk grants whatever can be read of an ask: nothing breaks, and no node is
// booked twice.
func FuzzDecodeAsk(f *testing.F) {
	f.Add(wellFormed, int64(2))
	f.Add(`{"uid":"u","namespace":"n","name":"s","shapes":{"":{}},"clusters":{"us-east":{"namespace":"n","units":[{"replicas":[{"name":"a","pods":{"":1048576}}]},{}]}}}`, int64(0))
	f.Add(`{"uid":"u","namespace":"n","name":"s","shapes":{"a":{"requests":{"nvidia.com/gpu":9223372036854775807,"cpu":1}}},"clusters":{"us-east":{"namespace":"n","units":[{"replicas":[{"name":"a","pods":{"a":1000}}]}]}}}`, int64(5000))
	f.Fuzz(func(t *testing.T, text string, nodes int64) {
		a, err := DecodeAsk(text)
		if err != nil {
			return
		}
		again, err := EncodeAsk(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeAsk(again); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		room := Room{Pools: []Pool{NewPool("p", nil, []Nodes{of(min(max(nodes, 0), 5000), 8, 64)})}}
		b := Book(here, room, nil, []Ask{*a}, "")
		for _, n := range b.Room.Pools[0].Left {
			for name, left := range n.Left {
				if left < 0 || n.Count < 0 {
					t.Fatalf("%d of %s are left on %d nodes", left, name, n.Count)
				}
			}
		}
		b = Book(here, room, b.Grants, []Ask{*a}, "closed")
		if _, err := EncodeGrants(b.Grants); err != nil {
			t.Fatal(err)
		}
	})
}
