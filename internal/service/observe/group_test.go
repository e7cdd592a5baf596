package observe

import (
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestConditionOf proves which condition is about the rights and policies of the roles and
// of the router.
func TestConditionOf(t *testing.T) {
	e := &evaluator{plan: &plan.Plan{Router: &plan.Router{HasRoute: true}}}
	for k, want := range map[string]string{
		"networkpolicy":              WorkloadsReady,
		"cluster/east/networkpolicy": WorkloadsReady,
		"role/sidecar":               WorkloadsReady,
		"rolebinding/sidecar":        WorkloadsReady,
		"role/epp":                   RouterReady,
	} {
		if got := e.conditionOf(key.Parse(k)); got != want {
			t.Errorf("conditionOf(%q) = %s, want %s", k, got, want)
		}
	}
}
