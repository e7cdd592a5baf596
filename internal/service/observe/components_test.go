package observe

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// A componentWant is what becomes of the role engine and of its gang.
type componentWant struct {
	component v1alpha1.ComponentStatus
	workloads string
	gang      string
	ready     []string
	stable    bool
}

// A componentCase changes what is observed of an empty scene.
type componentCase struct {
	reason string
	scene  func(s *scene)
	want   componentWant
}

func evaluateComponents(t *testing.T, cases map[string]componentCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tc.scene(s)
			v := s.evaluate()
			got := componentWant{
				component: withoutUpdated(v.Status.Components["engine"]),
				workloads: conditionLine(v, WorkloadsReady),
				gang:      conditionLine(v, GangScheduled),
				ready:     readyKeys(v),
				stable:    v.Stable,
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(componentWant{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func readyKeys(v evaluated) []string {
	var keys []string
	for k, ready := range v.Ready {
		if ready {
			keys = append(keys, k.String())
		}
	}
	slices.Sort(keys)
	return keys
}

// TestEvaluateComponents proves the status that the LeaderWorkerSets give a role.
func TestEvaluateComponents(t *testing.T) {
	evaluateComponents(t, map[string]componentCase{
		"FirstReconcile": {
			reason: "Nothing exists: the component is Pending, with nothing to date it by.",
			scene:  func(*scene) {},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhasePending, 0, 0, -1),
				workloads: "False NotCreated: Service qwen, LeaderWorkerSet qwen-engine-0, LeaderWorkerSet qwen-engine-1: not created yet",
				gang:      "False NotCreated: PodGroup qwen: not created yet",
			},
		},
		"JustCreated": {
			reason: "An object without a status is on its way, not unknown.",
			scene: func(s *scene) {
				w := workload("qwen-engine-0")
				w.Status.ObservedGeneration, w.Status.Conditions, w.Status.ReadyReplicas = 0, nil, 0
				s.see(lws0, w)
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 0, 0, 0),
				workloads: "False NotCreated: Service qwen, LeaderWorkerSet qwen-engine-1: not created yet; LeaderWorkerSet qwen-engine-0: its controller has not reported on it yet",
				gang:      "False NotCreated: PodGroup qwen: not created yet",
			},
		},
		"PartlyReady": {
			reason: "One of two replicas is ready, with its 4 pods of 8: the role is Deploying.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", progressing))
				s.see(pgKey, podGroup("qwen", volcano.PodGroupInqueue))
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready",
				gang:      "False NotScheduled: PodGroup qwen: is in phase Inqueue",
				ready:     []string{lws0, svcKey},
			},
		},
		"Ready": {
			reason: "All is ready and quiet.",
			scene:  func(s *scene) { running(s).pods(slices.Concat(replicaPods(0), replicaPods(1))...) },
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
				stable:    true,
			},
		},
		"Stale": {
			reason: "A status of an older generation says nothing about this one.",
			scene:  func(s *scene) { running(s).see(lws1, workload("qwen-engine-1", staleWorkload)) },
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseUnknown, 1, 4, 5),
				workloads: "Unknown GenerationNotObserved: LeaderWorkerSet qwen-engine-1: its status is of generation 2, not 3",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"Outdated": {
			reason: "A LeaderWorkerSet that this answer changes is not ready, whatever it says of what it was.",
			scene: func(s *scene) {
				w := workload("qwen-engine-1")
				w.Labels[naming.LabelSpecHash] = "ffffffff"
				running(s).see(lws1, w)
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 8, 5),
				workloads: "False Updating: LeaderWorkerSet qwen-engine-1: is being updated",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"AvailableWithTooFew": {
			reason: "Available is not believed where the counts say otherwise.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", func(w *lws.LeaderWorkerSet) { w.Status.ReadyReplicas = 0 }))
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"RollingOut": {
			reason: "Pods of the old template do not count, ready or not.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", func(w *lws.LeaderWorkerSet) {
					w.Status.Conditions = append(w.Status.Conditions, is("UpdateInProgress", "True", "GroupsUpdating", 2))
				}))
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 8, 5),
				workloads: "False Updating: LeaderWorkerSet qwen-engine-1: its pods are being updated",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"Deleting": {
			reason: "An object that is going away is not ready.",
			scene:  func(s *scene) { running(s).see(lws1, workload("qwen-engine-1", deletedWorkload)) },
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 8, 5),
				workloads: "False Deleting: LeaderWorkerSet qwen-engine-1: is being deleted",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"Deferred": {
			reason: "A deferred replica counts as desired, and the service is not stable.",
			scene: func(s *scene) {
				running(s).deferObject(plan.Deferred{Key: key.Parse(lws1), Reason: plan.DeferredForGang, Message: "LeaderWorkerSet qwen-engine-1 waits until PodGroup qwen counts task engine-1"})
				delete(s.observed, lws1)
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False WaitingForGang: LeaderWorkerSet qwen-engine-1 waits until PodGroup qwen counts task engine-1",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
	})
}

// A service recovers: the failure and the doubt go when their cause goes.
func TestEvaluateRecovers(t *testing.T) {
	s := running(newScene(t)).pods(slices.Concat(replicaPods(0), replicaPods(1, waits("ImagePullBackOff")))...)
	if got := s.evaluate().Status.Components["engine"].Phase; got != v1alpha1.ComponentPhaseFailed {
		t.Fatalf("phase with a failing pod: %s", got)
	}
	s.pods(slices.Concat(replicaPods(0), replicaPods(1))...).see(lws1, workload("qwen-engine-1", staleWorkload))
	if got := s.evaluate().Status.Components["engine"].Phase; got != v1alpha1.ComponentPhaseUnknown {
		t.Fatalf("phase with a stale status: %s", got)
	}
	v := s.see(lws1, workload("qwen-engine-1")).evaluate()
	if got := v.Status.Components["engine"].Phase; got != v1alpha1.ComponentPhaseRunning || !v.Stable {
		t.Fatalf("phase after all of it: %s, stable %t", got, v.Stable)
	}
}

// withoutUpdated leaves out the updated replicas. TestRolledOut is about them.
func withoutUpdated(s v1alpha1.ComponentStatus) v1alpha1.ComponentStatus {
	s.UpdatedReplicas = 0
	return s
}
