package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// electing has two endpoint pickers elect a leader, which took longer than their Deployment's
// progress deadline. Some of them are available.
func electing(available int32) edit[appsv1.Deployment] {
	return func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](2)
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 2, 2, available, available
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
		}
	}
}

// TestRouterComponent proves that the router is among the components like each other role.
func TestRouterComponent(t *testing.T) {
	component := func(phase v1alpha1.ComponentPhase, desired, ready int32, updated *metav1.Time) v1alpha1.ComponentStatus {
		return v1alpha1.ComponentStatus{DesiredReplicas: desired, ReadyReplicas: ready, NodesPerReplica: 1, TotalPods: desired, ReadyPods: ready, Phase: phase, LastUpdateTime: updated}
	}
	created := ptrTo(at(0))
	failing := func(p *corev1.Pod) {
		p.Name, p.Labels = "qwen-epp-abc", map[string]string{naming.LabelService: "qwen", naming.LabelComponentType: "router"}
	}
	cases := map[string]struct {
		reason   string
		replicas int32
		scene    func(s *scene)
		want     v1alpha1.ComponentStatus
	}{
		"NotThereYet": {reason: "Nothing of it exists.", replicas: 1, scene: func(*scene) {}, want: component(v1alpha1.ComponentPhasePending, 1, 0, nil)},
		"Ready":       {reason: "Its Deployment is ready.", replicas: 1, scene: func(s *scene) { s.see(eppKey, picker()) }, want: component(v1alpha1.ComponentPhaseRunning, 1, 1, created)},
		"Leader": {
			reason: "Of two, only the leader is ever available.", replicas: 2,
			scene: func(s *scene) { s.see(eppKey, picker(electing(1))) },
			want:  component(v1alpha1.ComponentPhaseRunning, 2, 2, created),
		},
		"NoLeader": {
			reason: "None of two is available.", replicas: 2,
			scene: func(s *scene) { s.see(eppKey, picker(electing(0))) },
			want:  component(v1alpha1.ComponentPhaseFailed, 2, 0, created),
		},
		"Updating": {reason: "What is ready is of the spec before.", replicas: 1, scene: func(s *scene) { s.see(eppKey, picker(updatingPicker)) }, want: component(v1alpha1.ComponentPhaseDeploying, 1, 0, created)},
		"GivenUp":  {reason: "Its controller gave up.", replicas: 1, scene: func(s *scene) { s.see(eppKey, picker(stuckPicker)) }, want: component(v1alpha1.ComponentPhaseFailed, 1, 0, created)},
		"Crashes": {
			reason: "Its pod fails.", replicas: 1,
			scene: func(s *scene) {
				s.see(eppKey, picker(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 })).pods(enginePod("router", 0, 0, waits("CrashLoopBackOff"), failing))
			},
			want: component(v1alpha1.ComponentPhaseFailed, 1, 0, ptrTo(at(4))),
		},
		"Stale": {
			reason: "Its status is of another generation.", replicas: 1,
			scene: func(s *scene) { s.see(eppKey, picker(func(d *appsv1.Deployment) { d.Generation = 2 })) },
			want:  component(v1alpha1.ComponentPhaseUnknown, 1, 0, created),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := running(newScene(t)).routed(plan.Router{Name: "router", Replicas: tc.replicas})
			tc.scene(s)
			status := s.evaluate().Status
			if diff := cmp.Diff(tc.want, status.Components["router"]); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got, want := status.Summary, "engine 2/2"; got != want {
				t.Errorf("the summary is about the other roles: want %q, got %q", want, got)
			}
		})
	}
}

// TestServedModels proves that users need not guess what the objective of a model is called.
func TestServedModels(t *testing.T) {
	router := plan.Router{Name: "router", Models: []modelroute.Model{{Name: "org/chat:1", Priority: ptr.To[int32](10)}, {Name: "plain"}}}
	east := plan.ClusterPlan{Target: scheduling.Target{Cluster: "east"}, Base: "qwen"}
	west := plan.ClusterPlan{Target: scheduling.Target{Cluster: "west"}, Base: "qwen-f3af427cc4"}
	cases := map[string]struct {
		reason string
		plan   plan.Plan
		want   []v1alpha1.ServedModelStatus
	}{
		"NoRouter": {reason: "Nobody knows models.", plan: plan.Plan{Clusters: []plan.ClusterPlan{east}}},
		"One":      {reason: "Only a model with a priority has an objective.", plan: plan.Plan{Router: &router, Clusters: []plan.ClusterPlan{east}}, want: []v1alpha1.ServedModelStatus{{Name: "org/chat:1", ObjectiveName: east.ModelName("org/chat:1")}, {Name: "plain"}}},
		"Several":  {reason: "No name is right in both clusters.", plan: plan.Plan{Router: &router, Clusters: []plan.ClusterPlan{east, west}}, want: []v1alpha1.ServedModelStatus{{Name: "org/chat:1"}, {Name: "plain"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, servedModels(&tc.plan)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
