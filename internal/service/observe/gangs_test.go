package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestEvaluateGangs proves what becomes of a PodGroup in each of its phases.
func TestEvaluateGangs(t *testing.T) {
	evaluateComponents(t, map[string]componentCase{
		"GangDeleting": {
			reason: "A PodGroup that is going away is not ready, even where its replicas run.",
			scene: func(s *scene) {
				pg := podGroup("qwen", volcano.PodGroupRunning)
				pg.DeletionTimestamp = ptrTo(at(9))
				running(s).see(pgKey, pg)
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady",
				gang:      "False Deleting: PodGroup qwen: is being deleted",
				ready:     []string{lws0, lws1, svcKey},
			},
		},
		"Unschedulable": {
			reason: "Volcano's reason is shown, on one line.",
			scene: func(s *scene) {
				running(s).see(lws0, workload("qwen-engine-0", progressing)).see(lws1, workload("qwen-engine-1", progressing)).
					see(pgKey, podGroup("qwen", volcano.PodGroupInqueue, gangCondition(volcano.PodGroupUnschedulableType, 3)))
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 0, 0, 1),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-0, LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready",
				gang:      "False Unschedulable: PodGroup qwen: NotEnoughResources: 8/8 tasks in gang unschedulable: 0/5 nodes are available",
				ready:     []string{svcKey},
			},
		},
		"UnschedulableBefore": {
			reason: "Volcano leaves Unschedulable True when it has scheduled the gang; the younger condition counts.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", progressing)).
					see(pgKey, podGroup("qwen", volcano.PodGroupInqueue, gangCondition(volcano.PodGroupUnschedulableType, 3), gangCondition(volcano.PodGroupScheduled, 4)))
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready",
				gang:      "False NotScheduled: PodGroup qwen: is in phase Inqueue",
				ready:     []string{lws0, svcKey},
			},
		},
		"UnschedulableAgain": {
			reason: "A condition Scheduled that is no longer True silences nothing.",
			scene: func(s *scene) {
				was := gangCondition(volcano.PodGroupScheduled, 4)
				was.Status = corev1.ConditionFalse
				running(s).see(lws1, workload("qwen-engine-1", progressing)).
					see(pgKey, podGroup("qwen", volcano.PodGroupUnknown, gangCondition(volcano.PodGroupUnschedulableType, 3), was))
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready",
				gang:      "False Unschedulable: PodGroup qwen: NotEnoughResources: 8/8 tasks in gang unschedulable: 0/5 nodes are available",
				ready:     []string{lws0, svcKey},
			},
		},
		"GangServed": {
			reason: "A PodGroup does not delay a service whose replicas all run.",
			scene: func(s *scene) {
				running(s).see(pgKey, podGroup("qwen", volcano.PodGroupUnknown, gangCondition(volcano.PodGroupUnschedulableType, 3)))
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
				stable:    true,
			},
		},
	})
}
