package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// TestAtMost proves that the texts of pending requests are bounded, which their tenants choose for the most part.
func TestAtMost(t *testing.T) {
	requests := func(messages ...string) []v1alpha1.PendingRequest {
		var all []v1alpha1.PendingRequest
		for _, m := range messages {
			all = append(all, v1alpha1.PendingRequest{Namespace: "ns", Name: "svc", UID: "12345", Message: m})
		}
		return all
	}
	long := strings.Repeat("x", 100)
	cases := map[string]struct {
		reason string
		all    []v1alpha1.PendingRequest
		bytes  int
		want   int
	}{
		"All":   {reason: "They fit.", all: requests("", "", ""), bytes: 30, want: 3},
		"Names": {reason: "Names and UIDs count.", all: requests("", "", ""), bytes: 29, want: 2},
		"Equal": {reason: "An equal message takes next to nothing once it is compressed.", all: requests(long, long, long), bytes: 130, want: 3},
		"Other": {reason: "Another one does.", all: requests(long, long+"y", long), bytes: 219, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := len(atMost(tc.all, len(tc.all), tc.bytes, inAnswer)); got != tc.want {
				t.Errorf("%s %d are left, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestAtMostOfNamespaces proves that no namespace takes the place of another one.
func TestAtMostOfNamespaces(t *testing.T) {
	// UID, namespace and name of each have this many bytes.
	const each = 12
	cases := map[string]struct {
		reason      string
		names       []string
		most, bytes int
		want        []string
	}{
		"Fit":    {reason: "The order stays.", names: []string{"b1", "b2", "a1"}, most: 9, bytes: 9 * each, want: []string{"b1", "b2", "a1"}},
		"Bytes":  {reason: "The first one of each has a place.", names: []string{"b1", "b2", "b3", "a1", "a2"}, most: 9, bytes: 3 * each, want: []string{"b1", "b2", "a1"}},
		"Number": {reason: "So it has if their number is limited.", names: []string{"b1", "b2", "b3", "a1"}, most: 2, bytes: 9 * each, want: []string{"b1", "a1"}},
		"Large":  {reason: "A large one of another namespace stops nobody.", names: []string{"b-large", "b2", "a1", "a2"}, most: 9, bytes: 3 * each, want: []string{"a1", "a2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []v1alpha1.PendingRequest
			for _, name := range tc.names {
				p := v1alpha1.PendingRequest{Namespace: name[:1] + "s", Name: name, UID: strings.Repeat("u", 8)}
				if strings.HasSuffix(name, "large") {
					p.Message = strings.Repeat("x", 100)
				}
				all = append(all, p)
			}
			var got []string
			for _, p := range atMost(all, tc.most, tc.bytes, inAnswer) {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRefusalsOfOneTenant proves that a service reads why it waits, and people see it in the status, whatever another tenant requests.
func TestRefusalsOfOneTenant(t *testing.T) {
	req := request(t, typedIn, map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached}, map[string][]string{requests: nil})
	items := &req.RequiredResources[requests].Items
	// Forged requests say that they are the oldest. Each has a message of its own.
	for i := range maxPending + 500 {
		uid := inOnePart(strings.Repeat("h", 180) + strconv.Itoa(i) + "-")
		*items = append(*items, written(t, uid, "hostile", strings.Repeat("<", 240), fmt.Sprintf(`"w":{"requests":{"example.com/%s%d":1000}}`, strings.Repeat("r", 200), i), `{"name":"w/0","pods":{"w":1}}`))
	}
	victim := inOnePart("victim")
	*items = append(*items, written(t, victim, "team", "victim", `"w":{"requests":{"nvidia.com/gpu":9000}}`, `{"name":"w/0","pods":{"w":1}}`))
	rsp := run(t, req)
	want := "team/victim waits: 8 of 8 nvidia.com/gpu free in pool p, 1 short"
	if all := answered(t, rsp); !slices.Contains(all, want) {
		t.Errorf("%d services get an answer, and the other tenant's does not", len(all))
	}
	status := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue()
	listed := kube.Lookup(status, "pending").GetListValue().GetValues()
	if !slices.ContainsFunc(listed, func(v *structpb.Value) bool {
		return kube.Lookup(v.GetStructValue(), "name").GetStringValue() == "victim"
	}) {
		t.Errorf("the status has %d of them, and not the other tenant's", len(listed))
	}
	text, err := json.Marshal(status.AsMap())
	if err != nil {
		t.Fatal(err)
	}
	if most := 512 << 10; len(text) > most {
		t.Errorf("the status has %d bytes, want %d at most", len(text), most)
	}
}
