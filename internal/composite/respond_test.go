package composite

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

func TestTimeToLive(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	condition := func(of, status string, ago time.Duration) map[string]any {
		return map[string]any{"type": of, "status": status, "lastTransitionTime": now.Add(-ago).Format(time.RFC3339)}
	}
	pending := []Condition{{Type: "WorkloadsReady", Status: False}}
	cases := map[string]struct {
		reason   string
		observed []any
		outcome  Outcome
		want     time.Duration
	}{
		"First":      {reason: "There were no conditions before.", outcome: Outcome{Conditions: pending}, want: Soon},
		"JustNow":    {reason: "The condition has just become False.", observed: []any{condition("WorkloadsReady", "False", time.Second)}, outcome: Outcome{Conditions: pending}, want: Soon},
		"AWhile":     {reason: "The time grows while nothing changes.", observed: []any{condition("WorkloadsReady", "False", 40*time.Second)}, outcome: Outcome{Conditions: pending}, want: 40 * time.Second},
		"Long":       {reason: "The time is limited.", observed: []any{condition("WorkloadsReady", "False", time.Hour)}, outcome: Outcome{Conditions: pending}, want: WhileStuck},
		"Changes":    {reason: "The outcome changes a condition.", observed: []any{condition("WorkloadsReady", "True", time.Hour)}, outcome: Outcome{Conditions: pending}, want: Soon},
		"Elsewhere":  {reason: "A condition of Crossplane's own has changed.", observed: []any{condition("WorkloadsReady", "False", time.Hour), condition("Synced", "False", 20*time.Second)}, outcome: Outcome{Conditions: pending}, want: 20 * time.Second},
		"ClockAhead": {reason: "A transition time in the future counts as now.", observed: []any{condition("WorkloadsReady", "False", -time.Hour)}, outcome: Outcome{Conditions: pending}, want: Soon},
		"Due":        {reason: "The next decision depends on the time.", observed: []any{condition("WorkloadsReady", "False", time.Hour)}, outcome: Outcome{Conditions: pending, Due: now.Add(time.Minute)}, want: time.Minute},
		"Stable":     {reason: "Nothing is pending.", observed: []any{condition("WorkloadsReady", "False", time.Second)}, outcome: Outcome{Stable: true}, want: WhileStable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr, err := structpb.NewStruct(map[string]any{"status": map[string]any{"conditions": tc.observed}})
			if err != nil {
				t.Fatal(err)
			}
			req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}}}
			if got := timeToLive(observedConditions(incomingtest.Request(t, req).Composite()), tc.outcome, now); got != tc.want {
				t.Errorf("%s It is %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestDue proves that a response does not live longer than until something is due.
func TestDue(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		due    time.Time
		want   time.Duration
	}{
		"Nothing": {reason: "Nothing is due.", want: WhileStable},
		"Soon":    {reason: "Something is due soon.", due: now.Add(time.Minute), want: time.Minute},
		"Late":    {reason: "It is due later than the next call.", due: now.Add(time.Hour), want: WhileStable},
		"Over":    {reason: "It was due before.", due: now.Add(-time.Hour), want: time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := timeToLive(nil, Outcome{Stable: true, Due: tc.due}, now); got != tc.want {
				t.Errorf("%s It lives for %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestEarlierFunctions proves that a response keeps what earlier functions of the pipeline desire of the composite resource.
func TestEarlierFunctions(t *testing.T) {
	object := func(fields map[string]any) *structpb.Struct {
		s, err := structpb.NewStruct(fields)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	secret := map[string][]byte{"password": []byte("secret")}
	cases := map[string]struct {
		reason   string
		desired  *fnv1.Resource
		deferred bool
		want     *fnv1.Resource
	}{
		"None": {
			reason: "No function ran before.",
			want:   &fnv1.Resource{Resource: object(map[string]any{"apiVersion": "v1", "kind": "XR", "status": map[string]any{"ours": "now"}})},
		},
		"All": {
			reason:  "Of the status, only the fields of the outcome are replaced.",
			desired: &fnv1.Resource{Resource: object(map[string]any{"status": map[string]any{"ours": "before", "theirs": "before"}}), ConnectionDetails: secret, Ready: fnv1.Ready_READY_TRUE},
			want: &fnv1.Resource{
				Resource:          object(map[string]any{"apiVersion": "v1", "kind": "XR", "status": map[string]any{"ours": "now", "theirs": "before"}}),
				ConnectionDetails: secret, Ready: fnv1.Ready_READY_TRUE,
			},
		},
		"Deferred": {
			reason:   "It is not ready while an object is left out.",
			desired:  &fnv1.Resource{ConnectionDetails: secret, Ready: fnv1.Ready_READY_TRUE},
			deferred: true,
			want: &fnv1.Resource{
				Resource:          object(map[string]any{"apiVersion": "v1", "kind": "XR", "status": map[string]any{"ours": "now"}}),
				ConnectionDetails: secret, Ready: fnv1.Ready_READY_FALSE,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := &fnv1.RunFunctionRequest{
				Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: object(map[string]any{"apiVersion": "v1", "kind": "XR"})}},
				Desired:  &fnv1.State{Composite: tc.desired},
			}
			c := NewCall(req, time.Time{})
			if err := c.Accept(Outcome{Status: map[string]any{"ours": "now"}, Deferred: tc.deferred}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.Response.GetDesired().GetComposite(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTakenKeys proves that a response never replaces what earlier functions of the pipeline desire.
func TestTakenKeys(t *testing.T) {
	object := func(kind, name string) *structpb.Struct {
		s, err := structpb.NewStruct(map[string]any{"kind": kind, "metadata": map[string]any{"name": name}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ours := []kube.Object{
		{Key: key.New("", key.Service), Resource: object("Service", "qwen")},
		{Key: key.New("", key.Gateway), Resource: object("Gateway", "qwen-gateway")},
	}
	cases := map[string]struct {
		reason  string
		earlier map[string]*structpb.Struct
		want    string
	}{
		"Others": {reason: "Resources with names of their own are passed on.", earlier: map[string]*structpb.Struct{"bucket": object("Bucket", "qwen"), "service-of-mine": object("Service", "mine")}},
		"Taken": {
			reason:  "Crossplane composes one object for each name, so theirs would be lost.",
			earlier: map[string]*structpb.Struct{"service": object("Service", "mine"), "bucket": object("Bucket", "qwen")},
			want: `desired.resources[service]: Invalid value: "Service mine": is of an earlier step of the Composition's pipeline, ` +
				"and the Service qwen of this function has the same resource name: rename the resource of that step",
		},
		"Nameless": {
			reason:  "Crossplane may name it later.",
			earlier: map[string]*structpb.Struct{"gateway": object("Gateway", "")},
			want: `desired.resources[gateway]: Invalid value: "Gateway": is of an earlier step of the Composition's pipeline, ` +
				"and the Gateway qwen-gateway of this function has the same resource name: rename the resource of that step",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired := &fnv1.State{Resources: map[string]*fnv1.Resource{}}
			for k, o := range tc.earlier {
				desired.Resources[k] = &fnv1.Resource{Resource: o}
			}
			c := NewCall(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: &structpb.Struct{}}}, Desired: desired}, time.Time{})
			got := ""
			var problems *ProblemsError
			if errors.As(c.Accept(Outcome{Objects: ours, Status: map[string]any{}}), &problems) {
				got = problems.Error()
				if problems.Reason != ReasonInvalidInput {
					t.Errorf("The reason is %s: only the platform team can rename it", problems.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
