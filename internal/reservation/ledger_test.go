package reservation

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// manyServices returns a ledger of services of one replica each. Their UIDs are random, and so are
// the letters of their names, which is more than real names have.
func manyServices(n int) Ledger {
	random := rand.New(rand.NewPCG(1, 2))
	letters := func(of string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = of[random.IntN(len(of))]
		}
		return string(b)
	}
	l := Ledger{}
	for i := range n {
		uid := letters("0123456789abcdef", 32)
		l.Services = append(l.Services, Service{
			ServiceID: ServiceID{Namespace: fmt.Sprintf("team-%03d", random.IntN(200)), Name: letters("abcdefghijklmnopqrstuvwxyz", 25), UID: strings.Join([]string{uid[:8], uid[8:12], uid[12:16], uid[16:20], uid[20:]}, "-")},
			Shapes:    []capacity.PodRequirements{*capacitytest.Requirements(1+int64(i%8), 16)},
			Grants:    []Grant{{Generation: 1 + int64(random.IntN(9)), Pods: []int64{1}, Replicas: []key.ReplicaID{"worker/0"}}},
		})
	}
	return l
}

// TestLedgerSize proves that a ConfigMap takes the ledger of 10,000 services.
func TestLedgerSize(t *testing.T) {
	l := manyServices(10_000)
	compressed, plain, err := Compress(&l)
	if err != nil {
		t.Fatal(err)
	}
	n := base64.StdEncoding.EncodedLen(len(compressed))
	t.Logf("10,000 services take %d bytes, and %d before they are compressed", n, plain)
	if text, _ := json.Marshal(l); plain != len(text)+1 {
		t.Errorf("the JSON has %d bytes with its line break, and it says %d", len(text)+1, plain)
	}
	if n >= 900<<10 {
		t.Errorf("10,000 services take %d bytes, and the limit is %d", n, 900<<10)
	}
	got, err := DecodeLedger(compressed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLedger(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Empty":           {reason: "A cluster without grants.", text: `{}`},
		"Full":            {reason: "Everything that a ledger has.", text: `{"services":[{"namespace":"n","name":"s","uid":"u","missingSince":"2026-03-01T12:00:00Z","shapes":[{"requests":{"cpu":1000},"nodeSelector":{"a":"b"}},{}],"grants":[{"generation":3,"pods":[0,2],"replicas":["w/0","w/1"]},{"replicas":["w/2"]}]}],"waiting":[{"namespace":"n","name":"s","uid":"u","since":"2026-03-01T12:00:00Z"}]}`},
		"Zero":            {reason: "An amount of zero is none.", text: `{"services":[{"namespace":"n","name":"s","uid":"u","shapes":[{"requests":{"cpu":1000,"memory":0}}],"grants":[{"pods":[1],"replicas":["w/0"]}]}]}`},
		"Text":            {reason: "It is not JSON.", text: `{`, want: "unexpected end of JSON input"},
		"List":            {reason: "It is not an object.", text: `[]`, want: "cannot unmarshal array"},
		"Negative":        {reason: "A negative amount would add capacity.", text: `{"services":[{"name":"s","shapes":[{"requests":{"cpu":-1}}],"grants":[]}]}`, want: "shape 0: have a negative amount of cpu"},
		"Pods":            {reason: "So would a negative number of pods.", text: `{"services":[{"name":"s","shapes":[{}],"grants":[{"pods":[-1],"replicas":["w/0"]}]}]}`, want: `["w/0"] have -1 pods`},
		"ManyPods":        {reason: "Sums must not overflow.", text: `{"services":[{"name":"s","shapes":[{}],"grants":[{"pods":[9000000000],"replicas":["w/0"]}]}]}`, want: "have 9000000000 pods"},
		"NoShape":         {reason: "Pods without a shape cannot be counted.", text: `{"services":[{"name":"s","grants":[{"pods":[1],"replicas":["w/0"]}]}]}`, want: "have pods of 1 shapes, and there are 0"},
		"Generation":      {reason: "A generation is not negative.", text: `{"services":[{"name":"s","grants":[{"generation":-1,"replicas":["w/0"]}]}]}`, want: "have the generation -1"},
		"LargeGeneration": {reason: "No status could have it.", text: `{"services":[{"name":"s","grants":[{"generation":1125899906842625,"replicas":["w/0"]}]}]}`, want: "have the generation 1125899906842625"},
		"Bomb":            {reason: "What is decompressed is limited.", text: strings.Repeat(" ", MaxDecompressed+1), want: "cannot read the ledger: it has more than 33554432 bytes when decompressed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &bytes.Buffer{}
			z := gzip.NewWriter(b)
			if _, err := z.Write([]byte(tc.text)); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			l, err := DecodeLedger(b.Bytes())
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			for _, s := range l.Services {
				for _, shape := range s.Shapes {
					if _, has := shape.Requests["memory"]; has {
						t.Errorf("%s It has %v", tc.reason, shape.Requests)
					}
				}
			}
			one, _, _ := Compress(&l)
			again, err := DecodeLedger(one)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(l, again); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
	whole, _, _ := Compress(&Ledger{})
	for _, b := range [][]byte{nil, []byte("[]"), {0x1f, 0x8b}, whole[:len(whole)-1]} {
		if _, err := DecodeLedger(b); err == nil {
			t.Errorf("%q is not a ledger", b)
		}
	}
}

// TestLedgerStandsAlone proves that a ledger is counted without any request.
func TestLedgerStandsAlone(t *testing.T) {
	s := Service{
		ServiceID: ServiceID{Namespace: "team", Name: "s", UID: "u"},
		Shapes:    []capacity.PodRequirements{*capacitytest.Requirements(1, 2), *capacitytest.Requirements(4, 8)},
		Grants:    []Grant{{Pods: []int64{1, 1}, Replicas: []key.ReplicaID{"w/0", "w/1"}}, {Generation: 2, Pods: []int64{3}, Replicas: []key.ReplicaID{"w/2"}}},
	}
	result := reserve(pool(capacitytest.Nodes(4, 8, 64)), []Service{s}, nil)
	capacitytest.Conserved(t, pool(capacitytest.Nodes(4, 8, 64)), result.Free, []capacity.PodSet{{Requirements: capacitytest.Requirements(1, 2), Count: 5}, {Requirements: capacitytest.Requirements(4, 8), Count: 2}})
	s.MissingSince = noon
	if diff := cmp.Diff([]Service{s}, result.Services); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(noon.Add(2*time.Minute), result.GraceEnds); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
