package observe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// TestFleetParents proves that the gateways that do not follow the fleet route are named.
func TestFleetParents(t *testing.T) {
	const never, former = "has never reported on it, so no requests come from there", "has not accepted its newest generation, and may send requests to clusters that it left out: these keep their copies until then"
	says := func(name, status string, generation int) string {
		return fmt.Sprintf(`{"parentRef": {"name": %q}, "conditions": [{"type": "Accepted", "status": %q, "observedGeneration": %d, "reason": "R", "message": "m"}]}`, name, status, generation)
	}
	cases := map[string]struct {
		reason  string
		parents []string
		want    string
	}{
		"All":          {reason: "Both have accepted it.", parents: []string{says("a", "True", 7), says("b", "True", 7)}},
		"Silent":       {reason: "It may be a typo.", parents: []string{says("a", "True", 7)}, want: "RouteNotReported: Gateway hub/b (https) " + never},
		"NoneReported": {reason: "Neither has a controller.", want: "RouteNotReported: Gateway team-a/a " + never + "; Gateway hub/b (https) " + never},
		"Former":       {reason: "It holds back what services leave.", parents: []string{says("a", "True", 6)}, want: "RouteNotReported: Gateway team-a/a " + former + "; Gateway hub/b (https) " + never},
		"Refused":      {reason: "Its controller says why.", parents: []string{says("a", "False", 7)}, want: "NotAccepted: Gateway team-a/a refuses it: R: m"},
		"NoListener": {reason: "A controller may leave out which listener it means.", want: "RouteNotReported: Gateway hub/b (https) " + former,
			parents: []string{says("a", "True", 7), `{"parentRef": {"name": "b", "namespace": "hub"}, "conditions": [{"type": "Accepted", "status": "True", "observedGeneration": 6}]}`}},
		"RefusedBefore": {reason: "A refusal holds until its controller has seen the newest generation.", parents: []string{says("a", "False", 6), says("b", "True", 7)}, want: "NotAccepted: Gateway team-a/a refuses it, by its report on an earlier generation: R: m"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i, p := range tc.parents {
				tc.parents[i] = strings.ReplaceAll(p, `{"name": "b"}`, `{"name": "b", "namespace": "hub", "sectionName": "https"}`)
			}
			route := &structpb.Struct{}
			if err := route.UnmarshalJSON(fmt.Appendf(nil, `{
				"metadata": {"namespace": "team-a", "generation": 7},
				"spec": {"parentRefs": [{"name": "a"}, {"name": "b", "namespace": "hub", "sectionName": "https"}]},
				"status": {"parents": [%s]}
			}`, strings.Join(tc.parents, ","))); err != nil {
				t.Fatal(err)
			}
			got := ""
			s := &objectState{key: key.FleetRoute, actual: incomingtest.Object(t, route), view: &view{Metadata: metadata{Generation: 7}}}
			if reason, message, failed := fleetParents(s); failed {
				got = reason + ": " + message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
