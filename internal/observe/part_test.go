package observe

import (
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// TestConditionOfRights proves that what is about the engines is told of with them, and
// what is about the router with it.
func TestConditionOfRights(t *testing.T) {
	j := &judgement{plan: &plan.Plan{Router: &plan.Router{HasRoute: true}}}
	for key, want := range map[string]string{
		"networkpolicy":              WorkloadsReady,
		"cluster/east/networkpolicy": WorkloadsReady,
		"role/sidecar":               RouterReady,
		"rolebinding/sidecar":        RouterReady,
	} {
		if got := j.conditionOf(key); got != want {
			t.Errorf("conditionOf(%q) = %s, want %s", key, got, want)
		}
	}
}
