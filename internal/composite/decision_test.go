package composite

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
)

// TestDecided proves that each change is told once: by the call that sees the status from before it, and has
// everything that the function requires.
func TestDecided(t *testing.T) {
	condition := func(status, reason string) []any {
		return []any{map[string]any{"type": Accepted, "status": status, "reason": reason}}
	}
	placed := Decision{What: DecisionPlaced, To: "east", Units: 2}
	problems := Refusal(ReasonInvalidSpec, field.ErrorList{field.Required(field.NewPath("spec"), ""), field.Required(field.NewPath("spec"), "")})
	cases := map[string]struct {
		reason   string
		observed []any
		err      error
		requires bool
		found    bool
		want     []Decision
	}{
		"Placed":       {reason: "A decision is told.", want: []Decision{placed}},
		"NotResolved":  {reason: "Crossplane calls again with what is required.", requires: true},
		"Resolved":     {reason: "Crossplane uses this answer.", requires: true, found: true, want: []Decision{placed}},
		"StillGood":    {reason: "It was accepted before.", observed: condition("True", ReasonAccepted), want: []Decision{placed}},
		"Mended":       {reason: "It was refused before.", observed: condition("False", ReasonInvalidSpec), want: []Decision{{What: DecisionAccepted}, placed}},
		"Refused":      {reason: "It was accepted before.", observed: condition("True", ReasonAccepted), err: problems, want: []Decision{{What: DecisionRefused, Reason: ReasonInvalidSpec, Problems: 2}}},
		"RefusedFirst": {reason: "It is new.", err: problems, want: []Decision{{What: DecisionRefused, Reason: ReasonInvalidSpec, Problems: 2}}},
		"StillRefused": {reason: "It was told before.", observed: condition("False", ReasonInvalidSpec), err: problems},
		"OtherReason":  {reason: "The platform team has mended the Input.", observed: condition("False", ReasonInvalidInput), err: problems, want: []Decision{{What: DecisionRefused, Reason: ReasonInvalidSpec, Problems: 2}}},
		"Internal":     {reason: "An error of the function is no decision.", err: errors.New("broken")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr, err := structpb.NewStruct(map[string]any{"status": map[string]any{"conditions": tc.observed}})
			if err != nil {
				t.Fatal(err)
			}
			req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}}}
			if tc.found {
				req.RequiredResources = map[string]*fnv1.Resources{"pods": {}}
			}
			c := NewCall(req, time.Time{})
			c.ConditionTypes = []string{Accepted}
			if tc.requires {
				c.Response.Requirements = &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{"pods": {}}}
			}
			if tc.err != nil {
				c.Refuse(tc.err)
			} else if err := c.Accept(Outcome{Status: map[string]any{}, Decisions: []Decision{placed}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.Decided()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A recorder records what is logged.
type recorder struct {
	lines  *[][]any
	values []any
}

func (r recorder) Info(msg string, values ...any) {
	*r.lines = append(*r.lines, append(append([]any{msg}, r.values...), values...))
}
func (r recorder) Debug(string, ...any) {}

func TestLog(t *testing.T) {
	xr, err := structpb.NewStruct(map[string]any{"kind": "InferenceService", "metadata": map[string]any{"name": "chat", "namespace": "team"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &Call{Request: incoming.Of(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}}}), Response: &fnv1.RunFunctionResponse{}}
	c.decisions = []Decision{{What: DecisionMoved, From: "east", To: "west", Units: 3}, {What: DecisionRefused, Reason: ReasonTooLarge, Problems: 1}}
	var lines [][]any
	c.Log(recorder{lines: &lines})
	want := [][]any{
		{"Decided", "kind", "InferenceService", "namespace", "team", "name", "chat", "decision", "moved", "from", "east", "to", "west", "units", 3},
		{"Decided", "kind", "InferenceService", "namespace", "team", "name", "chat", "decision", "refused", "reason", "TooLarge", "problems", 1},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func (r recorder) WithValues(values ...any) logging.Logger {
	return recorder{lines: r.lines, values: append(r.values, values...)}
}
