package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestSleeping proves that a service without replicas is ready, and says whether anything starts it again.
func TestSleeping(t *testing.T) {
	role := func(least int32) *plan.Role {
		return &plan.Role{Name: "w", Autoscaler: &plan.Autoscaler{Min: least, Max: 4}}
	}
	cases := map[string]struct {
		plan plan.Plan
		want composite.Condition
	}{
		"nothing starts it": {
			plan: plan.Plan{Roles: []*plan.Role{{Name: "w"}}},
			want: composite.Condition{Reason: "ScaledToZero"},
		},
		"an autoscaler keeps at least one": {
			plan: plan.Plan{Roles: []*plan.Role{role(1)}},
			want: composite.Condition{Reason: "ScaledToZero"},
		},
		"a trigger starts it": {
			plan: plan.Plan{Roles: []*plan.Role{role(0)}, Router: &plan.Router{}},
			want: composite.Condition{Reason: "Sleeping", Message: "no replicas run until an autoscaler starts some, of: w"},
		},
		"a request starts it": {
			plan: plan.Plan{Roles: []*plan.Role{role(0)}, Router: &plan.Router{QueueTTL: time.Hour}},
			want: composite.Condition{Reason: "Sleeping", Message: "no replicas run until a request comes, which waits up to 1h0m0s in the endpoint picker for: w"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &evaluator{plan: &tc.plan}
			tc.want.Type, tc.want.Status = WorkloadsReady, composite.True
			if diff := cmp.Diff(tc.want, e.workloadsReady(&conditionGroup{})); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
