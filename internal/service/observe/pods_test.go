package observe

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// TestEvaluatePods proves what the pods add to what their LeaderWorkerSets say.
func TestEvaluatePods(t *testing.T) {
	evaluateComponents(t, map[string]componentCase{
		"PartlyReadyWithPods": {
			reason: "Pods that are read count one by one; one that is going away does not.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", progressing)).pods(slices.Concat(
					replicaPods(0),
					[]*corev1.Pod{enginePod("engine", 1, 0), enginePod("engine", 1, 1, unready), enginePod("engine", 1, 2, terminating), enginePod("engine", 1, 3, unscheduled)},
				)...)
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 5, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: 1 of 4 pods are ready, 1 cannot be scheduled (the pods' events say why)",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"PodsNotStarted": {
			reason: "A pod that mounts a volume or pulls an image is told from one whose engine loads its model.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", progressing)).pods(slices.Concat(
					replicaPods(0),
					[]*corev1.Pod{enginePod("engine", 1, 0, unready), enginePod("engine", 1, 1, waits("ContainerCreating")), enginePod("engine", 1, 2, waits("PodInitializing")), enginePod("engine", 1, 3, unscheduled)},
				)...)
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: 0 of 4 pods are ready, 1 cannot be scheduled, 2 not started (the pods' events say why)",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"PodsMissing": {
			reason: "A quota or a webhook may refuse pods. StatefulSets make them.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", progressing)).pods(append(replicaPods(0), enginePod("engine", 1, 0))...)
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 5, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: 1 of 4 pods are ready, 3 not seen (if that lasts, the events of the StatefulSets say why)",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"NoPods": {
			reason: "All pods are read, so the replica has none.",
			scene:  func(s *scene) { running(s).see(lws1, workload("qwen-engine-1", progressing)).pods(replicaPods(0)...) },
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: 0 of 4 pods are ready, 4 not seen (if that lasts, the events of the StatefulSets say why)",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"PodsAreNewer": {
			reason: "The newest timestamp of what was observed dates the component.",
			scene: func(s *scene) {
				running(s).pods(replicaPods(0, func(p *corev1.Pod) { p.Status.Conditions[1].LastTransitionTime = at(8) })...)
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 8),
				workloads: "True AllReady",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
				stable:    true,
			},
		},
		"NoPodsShown": {
			reason: "Where no pod of a ready replica is shown, the LeaderWorkerSet's word counts.",
			scene:  func(s *scene) { running(s).pods() },
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
				stable:    true,
			},
		},
		"Failed": {
			reason: "A crashing container fails the component and is named, without its message, which may contain a secret.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", progressing)).
					pods(slices.Concat(replicaPods(0), replicaPods(1, waits("CrashLoopBackOff")))...)
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseFailed, 1, 7, 5),
				workloads: "False Failed: pod qwen-engine-1-0-3: container vllm: CrashLoopBackOff",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"FailedThoughReady": {
			reason: "A pod has failed and its LeaderWorkerSet has not noticed: the role is Failed, and the service is not stable.",
			scene: func(s *scene) {
				running(s).pods(slices.Concat(replicaPods(0), replicaPods(1, ended("OOMKilled", 137)))...)
			},
			want: componentWant{
				component: engine(v1alpha1.ComponentPhaseFailed, 2, 7, 5),
				workloads: "False Failed: pod qwen-engine-1-0-3: container vllm: OOMKilled (exit code 137)",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
			},
		},
		"TooManyPods": {
			reason: "While a group is replaced there may be more pods than it has.",
			scene: func(s *scene) {
				running(s).pods(append(replicaPods(0), enginePod("engine", 0, 4))...)
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

// TestLosesPod proves that a replica serves no more once a pod of it is seen to be deleted, though its LeaderWorkerSet says that it is
// ready. It is not broken, so a rollout does not release it for that.
func TestLosesPod(t *testing.T) {
	cases := map[string]struct {
		reason string
		scene  func(*scene)
		want   []bool
	}{
		"NotRead":     {reason: "Pods are not read.", scene: func(*scene) {}, want: []bool{true, true}},
		"None":        {reason: "What is read may be older than the pods.", scene: func(s *scene) { s.pods() }, want: []bool{true, true}},
		"Missing":     {reason: "So it may be of one pod.", scene: func(s *scene) { s.pods(replicaPods(0)[1:]...) }, want: []bool{true, true}},
		"All":         {reason: "No pod is being deleted.", scene: func(s *scene) { s.pods(slices.Concat(replicaPods(0), replicaPods(1))...) }, want: []bool{true, true}},
		"Worker":      {reason: "A worker is being deleted.", scene: func(s *scene) { s.pods(slices.Concat(replicaPods(0, terminating), replicaPods(1))...) }, want: []bool{false, true}},
		"Leader":      {reason: "The leader is.", scene: func(s *scene) { s.pods(append(replicaPods(1)[1:], enginePod("engine", 1, 0, terminating))...) }, want: []bool{true, false}},
		"OneTooMany":  {reason: "All of its nodes have another pod.", scene: func(s *scene) { s.pods(append(replicaPods(0), enginePod("engine", 0, 4, terminating))...) }, want: []bool{true, true}},
		"OtherRole":   {reason: "The pod is of another role.", scene: func(s *scene) { s.pods(enginePod("other", 0, 0, terminating)) }, want: []bool{true, true}},
		"EndpointPod": {reason: "The pod is an endpoint picker.", scene: func(s *scene) { s.pods(enginePod("engine", 0, 0, terminating, asPicker)) }, want: []bool{true, true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := running(newScene(t))
			tc.scene(s)
			state := Read(s.request(), s.plan)
			var serving, broken []bool
			for _, k := range []string{lws0, lws1} {
				r := state.Replica(key.Parse(k))
				serving, broken = append(serving, r.Serving), append(broken, r.Broken)
			}
			if diff := cmp.Diff(tc.want, serving); diff != "" {
				t.Errorf("%s Serving\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]bool{false, false}, broken); diff != "" {
				t.Errorf("%s Broken\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func asPicker(p *corev1.Pod) {
	p.Labels[naming.LabelComponentType] = string(v1alpha1.ComponentTypeRouter)
}

func TestPodFailure(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   edit[corev1.Pod]
		want   string
	}{
		"Ready":     {reason: "A ready pod has no failure.", edit: func(*corev1.Pod) {}},
		"Starting":  {reason: "A pod that is being made has none.", edit: waits("ContainerCreating")},
		"CrashLoop": {edit: waits("CrashLoopBackOff"), want: "pod p: container vllm: CrashLoopBackOff"},
		"CrashLoopAfter": {reason: "How it ended says more than that it waits.", edit: func(p *corev1.Pod) { waits("CrashLoopBackOff")(p); lastEnded(137, "")(p) },
			want: "pod p: container vllm: CrashLoopBackOff after Error (exit code 137)"},
		"ImagePullAfter": {reason: "An image that is missing has nothing to do with it.", edit: func(p *corev1.Pod) { waits("ImagePullBackOff")(p); lastEnded(137, "")(p) },
			want: "pod p: container vllm: ImagePullBackOff"},
		"ImagePull":     {edit: waits("ImagePullBackOff"), want: "pod p: container vllm: ImagePullBackOff"},
		"ErrImagePull":  {edit: waits("ErrImagePull"), want: "pod p: container vllm: ErrImagePull"},
		"InvalidImage":  {edit: waits("InvalidImageName"), want: "pod p: container vllm: InvalidImageName"},
		"ConfigError":   {edit: waits("CreateContainerConfigError"), want: "pod p: container vllm: CreateContainerConfigError"},
		"CreateError":   {edit: waits("CreateContainerError"), want: "pod p: container vllm: CreateContainerError"},
		"RunError":      {edit: waits("RunContainerError"), want: "pod p: container vllm: RunContainerError"},
		"InitContainer": {reason: "Sidecars and other init containers fail as well.", edit: initWaits("CrashLoopBackOff"), want: "pod p: container routing-sidecar: CrashLoopBackOff"},
		"Ended":         {edit: ended("Error", 1), want: "pod p: container vllm: Error (exit code 1)"},
		"Done":          {reason: "An engine that ends does not serve, with an error or without.", edit: ended("Completed", 0), want: "pod p: container vllm: Completed (exit code 0)"},
		"DoneOnce": {reason: "A container may say itself that it is not started again.", edit: func(p *corev1.Pod) {
			ended("Completed", 0)(p)
			p.Spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
		}},
		"DoneInit":    {reason: "Init containers have to end.", edit: func(p *corev1.Pod) { ended("Completed", 0)(p); asInit(p) }},
		"DoneSidecar": {reason: "Sidecars have to run on.", edit: func(p *corev1.Pod) { ended("Completed", 0)(p); asSidecar(p) }, want: "pod p: container vllm: Completed (exit code 0)"},
		"DoneWithNode": {reason: "The pod says why all of its containers ended.", edit: func(p *corev1.Pod) {
			ended("Completed", 0)(p)
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Terminated"
		}, want: "pod p: Terminated"},
		"Evicted":           {edit: func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }, want: "pod p: Evicted"},
		"FailedWithoutWord": {reason: "Only one word is passed on as a reason.", edit: func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "token=s3cret" }, want: "pod p: Failed"},
		"Terminating":       {reason: "A pod that is going away cannot fail any more.", edit: func(p *corev1.Pod) { waits("CrashLoopBackOff")(p); terminating(p) }},
		"Restarted":         {reason: "A container that runs again may serve.", edit: crashedAt(7, 1)},
		"Replaced":          {reason: "LeaderWorkerSet deletes a pod for a container that has crashed.", edit: func(p *corev1.Pod) { crashedAt(7, 1)(p); deletedAt(p, 8) }, want: "pod p: container vllm: Error (exit code 1)"},
		"ReplacedWithInit":  {reason: "A sidecar may be the one that has.", edit: func(p *corev1.Pod) { crashedAt(7, 1)(p); deletedAt(p, 8); asInit(p) }, want: "pod p: container vllm: Error (exit code 1)"},
		"DeletedLater":      {reason: "It has run since, and is deleted for another reason.", edit: func(p *corev1.Pod) { crashedAt(6, 1)(p); deletedAt(p, 8) }},
		"DeletedBefore":     {reason: "How a container ends once its pod is deleted is no failure.", edit: func(p *corev1.Pod) { crashedAt(9, 1)(p); deletedAt(p, 8) }},
		"DoneBefore":        {reason: "LeaderWorkerSet deletes a pod for a container that has ended without an error, too.", edit: func(p *corev1.Pod) { crashedAt(7, 0)(p); deletedAt(p, 8) }, want: "pod p: container vllm: Error (exit code 0)"},
		"DoneBeforeAsInit":  {reason: "Init containers run again with their pod.", edit: func(p *corev1.Pod) { crashedAt(7, 0)(p); deletedAt(p, 8); asInit(p) }},
		"DoneAfter":         {reason: "Engines end without an error when they are told to end.", edit: func(p *corev1.Pod) { ended("Completed", 0)(p); deletedAt(p, 8) }},
		"Drained":           {reason: "An engine may end with an error when it is told to end.", edit: func(p *corev1.Pod) { ended("Error", 143)(p); deletedAt(p, 8) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := running(newScene(t)).pods(enginePod("engine", 0, 0, tc.edit, func(p *corev1.Pod) { p.Name = "p" }))
			var got string
			if f := s.failures(); len(f) > 0 {
				got = strings.Join(f, "|")
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q\n got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func (s *scene) failures() []string {
	index := Read(s.request(), s.plan).pods()
	return index.of(s.plan.Service, &s.plan.Clusters[0].Groups[0].Replicas[0]).failures
}

// crashedAt says of a pod's container that it runs, and has ended before.
func crashedAt(minute int, code int32) edit[corev1.Pod] {
	return func(p *corev1.Pod) {
		unready(p)
		p.Status.ContainerStatuses[0].RestartCount = 1
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: code, FinishedAt: at(minute)}
	}
}

// deletedAt says of a pod that it was deleted, and may take ten minutes to end.
func deletedAt(p *corev1.Pod, minute int) {
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptrTo(at(minute+10)), ptr.To[int64](600)
}

// asSidecar makes the container of a pod an init container that is started again when it ends.
func asSidecar(p *corev1.Pod) {
	asInit(p)
	p.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
}

func asInit(p *corev1.Pod) {
	p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
	p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
}
