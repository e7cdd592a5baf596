package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
)

// written is a capacity request as somebody wrote it by hand.
func written(t *testing.T, uid, namespace, name, requirements, replicas string) *fnv1.Resource {
	t.Helper()
	s, err := structpb.NewStruct(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": uid, "namespace": namespace, "ownerReferences": []any{map[string]any{"controller": true, "uid": uid}}},
		"data": map[string]any{"request": fmt.Sprintf(
			`{"uid":%q,"namespace":%q,"name":%q,"created":"2020-01-01T00:00:00Z","podRequirements":{%s},"clusters":[{"names":["us-east"],"namespace":"models","groups":[{"name":"0","replicas":[%s]}]}]}`,
			uid, namespace, name, requirements, replicas)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &fnv1.Resource{Resource: s}
}

// letters returns a text that cannot be compressed.
func letters(random *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + random.IntN(26))
	}
	return string(b)
}

// inOnePart returns the UID of a service with its answer in the first part. It starts with a text.
func inOnePart(text string) string {
	for i := 0; ; i++ {
		if uid := text + strconv.Itoa(i); profile.PartOf(uid) == 0 {
			return uid
		}
	}
}

// TestAnswersFit proves that the API server and Crossplane take the answers, whatever a tenant requests, and that this tenant stops
// nobody else. A hash of the pods of each replica is in an answer. It cannot be compressed, and the ledger does not have it.
func TestAnswersFit(t *testing.T) {
	const ofConfigMap, side = 1 << 20, 64
	xr := head + "spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeCount: 5000, allocatable: {cpu: 1000, nvidia.com/gpu: 8}}]}\n"
	var differ, equal []string
	for i := range side * side {
		differ = append(differ, fmt.Sprintf(`{"name":"w/%d","pods":{"a":%d,"b":%d}}`, i, 1+i/side, 1+i%side))
		equal = append(equal, fmt.Sprintf(`{"name":"w/%d","pods":{"a":1}}`, i))
	}
	random := rand.New(rand.NewPCG(5, 6))
	cases := map[string]struct {
		reason   string
		forged   int
		replicas []string
		// waiting are services that wait, with long names.
		waiting int
		full    bool
	}{
		"Few":    {reason: "They fit.", forged: 2, replicas: differ},
		"Part":   {reason: "All of their answers are in one part, which is a ConfigMap.", forged: 20, replicas: differ, full: true},
		"All":    {reason: "All parts are in one response.", forged: 26, replicas: differ, waiting: 1600, full: true},
		"Status": {reason: "A number in the status has more bytes in the response than in JSON.", forged: 46, replicas: equal, waiting: 1600},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, xr, map[string]string{"object/reachable": reached}, map[string][]string{requests: nil})
			items := &req.RequiredResources[requests].Items
			for i := range tc.forged {
				uid := fmt.Sprintf("h%d", i)
				if tc.waiting == 0 {
					uid = inOnePart(uid + "-")
				}
				*items = append(*items, written(t, uid, "hostile", uid, `"a":{"requests":{"cpu":1}},"b":{"requests":{"cpu":2}}`, strings.Join(tc.replicas, ",")))
			}
			for range tc.waiting {
				*items = append(*items, written(t, letters(random, 253), "hostile", letters(random, 253), `"w":{"requests":{"nvidia.com/gpu":9000}}`, `{"name":"w/0","pods":{"w":1}}`))
			}
			*items = append(*items, written(t, "friendly", "friendly", "friendly", `"w":{"requests":{"nvidia.com/gpu":8000}}`, `{"name":"w/0","pods":{"w":1}}`))
			ledger, full := "{}", false
			for call := range 2 {
				req.Observed.Resources[keyLedger] = doc(t, ledgerOf(ledger))
				rsp := run(t, req)
				o := outcomeOf(rsp)
				if o.fatal != "" {
					t.Fatal(o.fatal)
				}
				if size := proto.Size(rsp); size > composite.MaxResponse+64<<10 {
					t.Fatalf("%s In call %d the response has %d bytes", tc.reason, call, size)
				}
				for i := range profile.Parts {
					part := kube.Lookup(rsp.GetDesired().GetResources()[key.Answers(i).String()].GetResource(), "binaryData", profile.AnswersKey).GetStringValue()
					if len(part) > ofConfigMap {
						t.Fatalf("%s In call %d, a part has %d bytes", tc.reason, call, len(part))
					}
				}
				if !strings.Contains(fmt.Sprint(o.allocated), "friendly") {
					t.Fatalf("%s In call %d, nothing is reserved for the other tenant: %v", tc.reason, call, o.not)
				}
				ledger = o.ledger
				full = slices.ContainsFunc(rsp.GetConditions(), func(c *fnv1.Condition) bool { return c.GetType() == Schedulable && c.GetReason() == reasonFull })
			}
			if full != tc.full {
				t.Errorf("%s It is full: %t, want %t", tc.reason, full, tc.full)
			}
		})
	}
}
