package observe

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestSleeping proves that a service without replicas is ready, and says whether anything starts it again.
func TestSleeping(t *testing.T) {
	role := func(least int32) *plan.Role {
		return &plan.Role{Name: "w", Autoscaler: &plan.Autoscaler{Min: least, Max: 4}}
	}
	beside := func(kind, reason string) *objectState {
		o := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: kind}, ObjectMeta: metav1.ObjectMeta{Name: "chat"}}
		return &objectState{key: key.Key{Kind: kind}, cluster: &plan.ClusterPlan{}, desired: kube.Object{Resource: encode(t, o)}, reason: reason, message: reason}
	}
	asleep := plan.Plan{Roles: []*plan.Role{role(0)}, Router: &plan.Router{QueueTTL: time.Hour}}
	sleeps := composite.Condition{Reason: "Sleeping", Message: "no replicas run until a request comes, which waits up to 1h0m0s in the endpoint picker for: w"}
	cases := map[string]struct {
		plan  plan.Plan
		group conditionGroup
		want  composite.Condition
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
		"a request starts it": {plan: asleep, want: sleeps},
		"what is beside replicas is there without them": {
			plan:  asleep,
			group: conditionGroup{objects: []*objectState{beside(key.PodMonitor, ""), beside(key.NetworkPolicy, "")}},
			want:  sleeps,
		},
		"what is beside replicas is not there yet": {
			plan:  asleep,
			group: conditionGroup{objects: []*objectState{beside(key.PodMonitor, ReasonNotCreated)}},
			want:  composite.Condition{Status: composite.False, Reason: "NotCreated", Message: "podmonitor chat: NotCreated"},
		},
		"it runs": {
			plan:  asleep,
			group: conditionGroup{objects: []*objectState{beside(key.PodMonitor, ""), beside(key.LeaderWorkerSet, "")}},
			want:  composite.Condition{Reason: "AllReady"},
		},
		"it starts": {
			plan:  asleep,
			group: conditionGroup{deferred: []plan.Deferred{{Key: key.Key{Kind: key.LeaderWorkerSet}, Reason: "WaitsForGang", Message: "it waits"}}},
			want:  composite.Condition{Status: composite.False, Reason: "WaitsForGang", Message: "it waits"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &evaluator{plan: &tc.plan}
			tc.want.Type, tc.want.Status = WorkloadsReady, cmp.Or(tc.want.Status, composite.True)
			if diff := gocmp.Diff(tc.want, e.workloadsReady(&tc.group)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
