package respond

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/observe"
)

func TestTimeToLive(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	condition := func(of, status string, ago time.Duration) map[string]any {
		return map[string]any{"type": of, "status": status, "lastTransitionTime": now.Add(-ago).Format(time.RFC3339)}
	}
	waits := []observe.Condition{{Type: "WorkloadsReady", Status: observe.False}}
	cases := map[string]struct {
		reason   string
		observed []any
		answer   Answer
		want     time.Duration
	}{
		"First":      {reason: "Nothing was said before.", answer: Answer{Conditions: waits}, want: Soon},
		"JustNow":    {reason: "It has just begun to wait.", observed: []any{condition("WorkloadsReady", "False", time.Second)}, answer: Answer{Conditions: waits}, want: Soon},
		"AWhile":     {reason: "The longer nothing changes, the later.", observed: []any{condition("WorkloadsReady", "False", 40*time.Second)}, answer: Answer{Conditions: waits}, want: 40 * time.Second},
		"Long":       {reason: "But not later than that.", observed: []any{condition("WorkloadsReady", "False", time.Hour)}, answer: Answer{Conditions: waits}, want: Seldom},
		"Changes":    {reason: "This answer changes a condition.", observed: []any{condition("WorkloadsReady", "True", time.Hour)}, answer: Answer{Conditions: waits}, want: Soon},
		"Elsewhere":  {reason: "A condition of Crossplane's own has changed.", observed: []any{condition("WorkloadsReady", "False", time.Hour), condition("Synced", "False", 20*time.Second)}, answer: Answer{Conditions: waits}, want: 20 * time.Second},
		"ClockAhead": {reason: "Whose clock is wrong does not matter.", observed: []any{condition("WorkloadsReady", "False", -time.Hour)}, answer: Answer{Conditions: waits}, want: Soon},
		"Timed":      {reason: "The time decides what comes next.", observed: []any{condition("WorkloadsReady", "False", time.Hour)}, answer: Answer{Conditions: waits, Timed: true}, want: Soon},
		"Settled":    {reason: "Nothing is waited for.", observed: []any{condition("WorkloadsReady", "False", time.Second)}, answer: Answer{Settled: true}, want: Later},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr, err := structpb.NewStruct(map[string]any{"status": map[string]any{"conditions": tc.observed}})
			if err != nil {
				t.Fatal(err)
			}
			tc.answer.Now = now
			req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}}}
			if got := timeToLive(observedConditions(req), tc.answer); got != tc.want {
				t.Errorf("%s It is %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
