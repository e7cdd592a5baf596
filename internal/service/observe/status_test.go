package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

func TestEvaluateStatus(t *testing.T) {
	v := running(newScene(t)).evaluate()
	component := engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5)
	component.UpdatedReplicas = 2
	want := v1alpha1.InferenceServiceStatus{
		ObservedGeneration: 7,
		Components:         map[string]v1alpha1.ComponentStatus{"engine": component},
		Rollout:            &v1alpha1.RolloutStatus{UpdatedReplicas: 2, CompletedGeneration: 7, Summary: "2/2"},
		URL:                "http://qwen.team-a.svc:8000",
		Replicas:           1,
		Selector:           "fusioninfer.io/service=qwen,fusioninfer.io/component-type in (decoder,prefiller,worker)",
		Summary:            "engine 2/2",
	}
	if diff := cmp.Diff(want, v.Status); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	// kubectl scale and autoscalers read the selector like this, and fail if they cannot.
	if _, err := metav1.ParseToLabelSelector(v.Status.Selector); err != nil {
		t.Errorf("the scale subresource cannot be read: %v", err)
	}
}

// TestSelector selects the pods that a HorizontalPodAutoscaler counts as replicas of a service.
func TestSelector(t *testing.T) {
	const all = "fusioninfer.io/service=svc,fusioninfer.io/component-type in (decoder,prefiller,worker)"
	cases := map[string]struct {
		reason  string
		grouped bool
		// prefill and decode are how many replicas the roles have in a group.
		prefill, decode int32
		want            string
	}{
		"Pods":    {reason: "There is one group, which nothing scales.", prefill: 1, decode: 2, want: all},
		"Groups":  {reason: "One pod of each group counts.", grouped: true, prefill: 1, decode: 2, want: "fusioninfer.io/service=svc,fusioninfer.io/role-name=prefill,fusioninfer.io/replica-index=0,leaderworkerset.sigs.k8s.io/worker-index=0"},
		"Decode":  {reason: "The first role has no pods.", grouped: true, decode: 2, want: "fusioninfer.io/service=svc,fusioninfer.io/role-name=decode,fusioninfer.io/replica-index=0,leaderworkerset.sigs.k8s.io/worker-index=0"},
		"Nothing": {reason: "No role has pods.", grouped: true, want: all},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := selector(&plan.Plan{
				Service: naming.Identity{Grouped: tc.grouped},
				Roles:   []*plan.Role{{Name: "prefill", Replicas: tc.prefill}, {Name: "decode", Replicas: tc.decode}},
			}, &plan.ClusterPlan{Base: "svc"})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			// kubectl scale and autoscalers read the selector like this, and fail if they cannot.
			if _, err := metav1.ParseToLabelSelector(got); err != nil {
				t.Errorf("the scale subresource cannot be read: %v", err)
			}
		})
	}
}

// A claim has a generation of its own, so that the XR's would never match it.
func TestEvaluateClaimedStatus(t *testing.T) {
	s := running(newScene(t))
	s.plan.Service.Claimed = true
	if got := s.evaluate().Status.ObservedGeneration; got != 0 {
		t.Errorf("want no observedGeneration, got %d", got)
	}
}

func TestEvaluateNothingDesired(t *testing.T) {
	s := newScene(t)
	s.plan.Roles[0].Replicas = 0
	s.plan.Clusters[0].Groups = nil
	for _, k := range []string{pgKey, lws0, lws1} {
		s.drop(k)
	}
	v := s.see(svcKey, map[string]any{"kind": "Service"}).evaluate()
	want := v1alpha1.ComponentStatus{NodesPerReplica: 4, Phase: v1alpha1.ComponentPhaseRunning}
	if diff := cmp.Diff(want, v.Status.Components["engine"]); diff != "" {
		t.Errorf("a role that is scaled to 0 runs\n-want, +got:\n%s", diff)
	}
	if !v.Stable || conditionLine(v, GangScheduled) != "True NoGang" {
		t.Errorf("stable %t, gang %q", v.Stable, conditionLine(v, GangScheduled))
	}
}
