package observe

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// loadingJob is a loading Job with a pod that runs, until edited.
func loadingJob(edits ...edit[batchv1.Job]) *batchv1.Job {
	return apply(&batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: meta("qwen-model-1-a", 1, nil),
		Status: batchv1.JobStatus{Active: 1, Ready: ptr.To[int32](1)},
	}, edits)
}

func jobCondition(kind batchv1.JobConditionType, reason string) edit[batchv1.Job] {
	return func(j *batchv1.Job) {
		j.Status = batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: at(1)}}}
	}
}

// loads lets each cluster of a scene load the weights.
func (s *scene) loads() *scene {
	s.plan.Weights = &plan.Weights{Hash: "1", ClaimName: "qwen-model-1", LoaderName: "qwen-model-1", Own: true}
	for i := range s.plan.Clusters {
		c := &s.plan.Clusters[i]
		c.Loading = &plan.Loading{Job: c.Key(key.Job, "1", "a"), JobName: "qwen-model-1-a", Wanted: true, Renders: true}
		s.want(c.Target, c.Loading.Job.String(), loadingJob())
	}
	return s
}

// loaderPod answers the requirement for the pods of the Job.
func (s *scene) loaderPod(edits ...edit[corev1.Pod]) *scene {
	p := enginePod("engine", 0, 0, edits...)
	p.Name, p.Labels, p.Status.ContainerStatuses[0].Name = "qwen-model-1-a-x7x7x", nil, "loader"
	s.required[require.Loader(s.plan.Clusters[0].Loading.Job)] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: encode(s.tb, p)}}}
	return s
}

// claims has a claim for the weights, which is seen after a change, and no Job.
func (s *scene) claims(change edit[corev1.PersistentVolumeClaim]) {
	s.loads()
	c := &s.plan.Clusters[0]
	c.Loading.Renders = false
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: meta("qwen-model-1", 1, nil),
	}
	s.want(c.Target, s.plan.ClaimKey(c).String(), claim)
	change(claim)
	s.see(s.plan.ClaimKey(c).String(), claim)
}

// anotherLoader answers it with one more pod.
func (s *scene) anotherLoader(edits ...edit[corev1.Pod]) *scene {
	k := require.Loader(s.plan.Clusters[0].Loading.Job)
	first := s.required[k].GetItems()
	s.loaderPod(edits...)
	one := s.required[k].GetItems()[0]
	one.Resource.Fields["metadata"].GetStructValue().Fields["name"] = structpb.NewStringValue("qwen-model-1-a-y8y8y")
	s.required[k].Items = slices.Concat(first, s.required[k].GetItems())
	return s
}

// evicted fails a loading pod.
func evicted(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", ContainerStatuses: p.Status.ContainerStatuses}
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{}
}

// going lets a loading pod go.
func going(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(at(5)) }

// remoteLoader is a loading Job in the cluster east, whose pod an Object observes.
func (s *scene) remoteLoader(synced map[string]any, edits ...edit[corev1.Pod]) {
	const name = "qwen-model-1-a-x7x7x"
	p := enginePod("engine", 0, 0)
	p.Name, p.Labels, p.Status.ContainerStatuses[0].Name = name, map[string]string{naming.LabelModelLoader: "qwen-model-1"}, "loader"
	p = apply(p, edits)
	s.loads().seeRemote("cluster/east/job/1/a", loadingJob(func(j *batchv1.Job) { j.Status.Ready = nil }), map[string]any{"type": "Synced", "status": "True"})
	l := s.plan.Clusters[0].Loading
	l.FindsPods, l.PodNames = true, []string{name}
	s.seeRemote(key.LoaderPod("east", name).String(), p, synced)
}

// lastEnded is how the container ended before it was started again.
func lastEnded(code int32, message string) edit[corev1.Pod] {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: code, Message: message}
	}
}

// nowhere leaves a loading pod without a node.
func nowhere(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", LastTransitionTime: at(1)}}
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{}
}

// says lets the sidecar of a loading pod end with a message at a minute. It may wait to be started again.
func says(message string, minute int, waits bool) edit[corev1.Pod] {
	return func(p *corev1.Pod) {
		s := corev1.ContainerStatus{Name: "progress"}
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", Message: message, FinishedAt: at(minute)}
		if waits {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{s}
	}
}

// TestModelReady shows what is said of weights until they are there.
func TestModelReady(t *testing.T) {
	const jobKey = "job/1/a"
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}}
	cases := map[string]struct {
		reason string
		scene  func(*scene)
		remote bool
		want   string
	}{
		"NoCache": {reason: "Engines load what their commands say.", scene: func(*scene) {}, want: "True NoCache"},
		"Downloads": {
			reason: "It works, and costs time at each start.", scene: func(s *scene) { s.plan.Downloads = true },
			want: "True NoCache: each pod downloads the weights at each start: set spec.model.cache to load them once before, or spec.model.cacheRef to share them",
		},
		"NotMade": {reason: "The Job is made by this answer.", scene: func(s *scene) { s.loads() }, want: "False Loading: Job qwen-model-1-a: not created yet"},
		"Loading": {
			reason: "A pod loads.", scene: func(s *scene) { s.loads().loaderPod().see(jobKey, loadingJob()) },
			want: "False Loading: Job qwen-model-1-a loads them",
		},
		"Again": {
			reason: "It has failed before, and its last word was how much it had.",
			scene:  func(s *scene) { s.loads().loaderPod(lastEnded(1, "7340032\n")).see(jobKey, loadingJob()) },
			want:   "False Loading: Job qwen-model-1-a loads them, after Error (exit code 1), with 7Gi loaded so far",
		},
		"Progress": {
			reason: "A sidecar ends from time to time to say how much is loaded. That is no failure.",
			scene: func(s *scene) {
				s.loads().loaderPod(says("12582912 42949672960\n", 20, true)).see(jobKey, loadingJob())
			},
			want: "False Loading: Job qwen-model-1-a loads them, with 12Gi of 40Gi loaded at 2026-03-01T12:20:00Z",
		},
		"ProgressAfterFailure": {
			reason: "The newest word counts.",
			scene: func(s *scene) {
				s.loads().loaderPod(lastEnded(1, "7340032"), says("13002343 42949672960", 20, false)).see(jobKey, loadingJob())
			},
			want: "False Loading: Job qwen-model-1-a loads them, after Error (exit code 1), with 12.4Gi of 40Gi loaded at 2026-03-01T12:20:00Z",
		},
		"NoProgress": {
			reason: "Nothing but numbers is repeated.",
			scene: func(s *scene) {
				s.loads().loaderPod(says("12582912 hf_secret", 20, true)).see(jobKey, loadingJob())
			},
			want: "False Loading: Job qwen-model-1-a loads them",
		},
		"NoImage": {
			reason: "The sidecar has the loader's image, and is started first.",
			scene: func(s *scene) {
				s.loads().loaderPod(says("", 1, false), func(p *corev1.Pod) {
					p.Status.InitContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}
				}).see(jobKey, loadingJob())
			},
			want: "False LoadFailed: pod qwen-model-1-a-x7x7x: container progress: ErrImagePull, and it tries again",
		},
		"Failed": {
			reason: "The pod is named with its reason, and without any text that it wrote.",
			scene: func(s *scene) {
				s.loads().loaderPod(waits("CrashLoopBackOff"), lastEnded(1, "HF_TOKEN=hf_secret")).see(jobKey, loadingJob())
			},
			want: "False LoadFailed: pod qwen-model-1-a-x7x7x: container loader: CrashLoopBackOff after Error (exit code 1), and it tries again",
		},
		"NoSecret": {
			reason: "Nobody has made the Secret.", scene: func(s *scene) { s.loads().loaderPod(waits("CreateContainerConfigError")).see(jobKey, loadingJob()) },
			want: "False LoadFailed: pod qwen-model-1-a-x7x7x: container loader: CreateContainerConfigError, and it tries again",
		},
		"GivenUp": {
			reason: "Somebody has failed the Job.", scene: func(s *scene) { s.loads().see(jobKey, loadingJob(jobCondition(batchv1.JobFailed, "DeadlineExceeded"))) },
			want: "False LoadFailed: Job qwen-model-1-a: has failed (DeadlineExceeded), and is made anew some minutes later",
		},
		"Suspended": {
			reason: "Kueue may manage all Jobs.", scene: func(s *scene) { s.loads().see(jobKey, loadingJob(jobCondition(batchv1.JobSuspended, "JobSuspended"))) },
			want: "False Loading: Job qwen-model-1-a is suspended, for example by Kueue: whoever did that has to let it run",
		},
		"NoPod": {
			reason: "A quota or Pod Security may refuse its pod, which only events say.",
			scene: func(s *scene) {
				s.loads().see(jobKey, loadingJob(func(j *batchv1.Job) { j.Status = batchv1.JobStatus{} }))
			},
			want: "False Loading: Job qwen-model-1-a has no pod so far: if that lasts, its events say why",
		},
		"NodeLost": {
			reason: "Its pod is to go, and its node does not say that it is gone.",
			scene: func(s *scene) {
				s.loads().loaderPod(going).see(jobKey, loadingJob(func(j *batchv1.Job) { j.Status = batchv1.JobStatus{Terminating: ptr.To[int32](1)} }))
			},
			want: "False Loading: Job qwen-model-1-a has a pod that is being deleted, and gets another one once that is gone: if that lasts, its node does not answer",
		},
		"Evicted": {
			reason: "A pod has failed, and the Job keeps it. Another one loads.",
			scene: func(s *scene) {
				s.loads().loaderPod(evicted).anotherLoader().see(jobKey, loadingJob(func(j *batchv1.Job) { j.Status.Failed = 1 }))
			},
			want: "False Loading: Job qwen-model-1-a loads them, after Evicted",
		},
		"EvictedLast": {
			reason: "There is no other one so far.",
			scene: func(s *scene) {
				s.loads().loaderPod(evicted).see(jobKey, loadingJob(func(j *batchv1.Job) { j.Status = batchv1.JobStatus{Failed: 1} }))
			},
			want: "False LoadFailed: pod qwen-model-1-a-x7x7x: Evicted, and it tries again",
		},
		"EvictedAgain": {
			reason: "The other one cannot start.",
			scene: func(s *scene) {
				s.loads().loaderPod(evicted).anotherLoader(waits("ErrImagePull")).see(jobKey, loadingJob())
			},
			want: "False LoadFailed: pod qwen-model-1-a-y8y8y: container loader: ErrImagePull, after Evicted, and it tries again",
		},
		"NoNode": {
			reason: "No node has room for its pod.", scene: func(s *scene) { s.loads().loaderPod(nowhere).see(jobKey, loadingJob()) },
			want: "False Loading: Job qwen-model-1-a has a pod that waits for a node: if that lasts, its events say why",
		},
		"NotStarted": {
			reason: "Its pod pulls an image, or waits for a volume.", scene: func(s *scene) { s.loads().loaderPod(waits("ContainerCreating")).see(jobKey, loadingJob()) },
			want: "False Loading: Job qwen-model-1-a has a pod that is not started: if that lasts, its events say why",
		},
		"NoVolume": {
			reason: "The class may have no volumes that several nodes can mount.",
			scene: func(s *scene) {
				s.loads().loaderPod(nowhere).see(jobKey, loadingJob())
				s.see(s.plan.ClaimKey(&s.plan.Clusters[0]).String(), &corev1.PersistentVolumeClaim{
					TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: meta("qwen-model-1", 1, nil),
				})
			},
			want: "False Loading: Job qwen-model-1-a has a pod that waits for a node, and claim qwen-model-1 has no volume: if that lasts, the events of both say why",
		},
		"NoClaim": {
			reason: "The name of the claim may be mistyped.",
			scene: func(s *scene) {
				s.loads().loaderPod(nowhere).see(jobKey, loadingJob())
				s.plan.Weights.Own, s.plan.Weights.ClaimName = false, "shared"
				s.required[require.NamedClaim(s.plan.NamedClaimKey(&s.plan.Clusters[0]))] = &fnv1.Resources{}
			},
			want: "False Loading: Job qwen-model-1-a has a pod that waits for claim shared, which does not exist in namespace team-a",
		},
		"NoClaimKnown": {
			reason: "Crossplane has not answered.",
			scene: func(s *scene) {
				s.loads().loaderPod(nowhere).see(jobKey, loadingJob())
				s.plan.Weights.Own, s.plan.Weights.ClaimName = false, "shared"
			},
			want: "False Loading: Job qwen-model-1-a has a pod that waits for a node: if that lasts, its events say why",
		},
		"Deleting": {
			reason: "A claim that is deleted stays as long as pods use it.",
			scene: func(s *scene) {
				s.claims(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(at(1)) })
			},
			want: "False Loading: PersistentVolumeClaim qwen-model-1: is being deleted, which takes until no pod uses it: a change of spec.model.cache makes another claim",
		},
		"DeletingShared": {
			reason: "The spec of a ModelCache cannot be changed.",
			scene: func(s *scene) {
				s.claims(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(at(1)) })
				s.plan.Service.OfCache = true
			},
			want: "False Loading: PersistentVolumeClaim qwen-model-1: is being deleted, which takes until no pod uses it: another ModelCache has another claim",
		},
		"Lost": {
			reason: "Somebody has deleted its volume.",
			scene: func(s *scene) {
				s.claims(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost })
			},
			want: "False LoadFailed: PersistentVolumeClaim qwen-model-1: has lost its volume, and the weights with it: delete it, and it is made anew once no pod uses it, or a change of spec.model.cache makes another claim",
		},
		"Remote": {
			reason: "In another cluster the Job is known.", remote: true, scene: func(s *scene) { s.loads().seeRemote("cluster/east/"+jobKey, loadingJob(), synced("True", "")) },
			want: "False Loading: cluster east: Job qwen-model-1-a loads them",
		},
		"RemoteStuck": {
			reason: "Its pods are not, until the provider has found them.", remote: true,
			scene: func(s *scene) {
				s.loads().seeRemote("cluster/east/"+jobKey, loadingJob(func(j *batchv1.Job) { j.Status.Ready = nil }), synced("True", ""))
			},
			want: "False Loading: cluster east: Job qwen-model-1-a loads them, and its pod does not run at the moment: see the pods of the Job there",
		},
		"RemoteFailed": {
			reason: "Once its pod is known, it is named as in the cluster of the service.", remote: true,
			scene: func(s *scene) { s.remoteLoader(synced("True", ""), waits("ImagePullBackOff")) },
			want:  "False LoadFailed: cluster east: pod qwen-model-1-a-x7x7x: container loader: ImagePullBackOff, and it tries again",
		},
		"RemoteCrash": {
			reason: "No text of the pod is told.", remote: true,
			scene: func(s *scene) {
				s.remoteLoader(synced("True", ""), waits("CrashLoopBackOff"), lastEnded(1, "HF_TOKEN=hf_secret"))
			},
			want: "False LoadFailed: cluster east: pod qwen-model-1-a-x7x7x: container loader: CrashLoopBackOff after Error (exit code 1), and it tries again",
		},
		"RemoteKilled": {
			reason: "It has not been started again yet.", remote: true,
			scene: func(s *scene) { s.remoteLoader(synced("True", ""), ended("OOMKilled", 137)) },
			want:  "False LoadFailed: cluster east: pod qwen-model-1-a-x7x7x: container loader: OOMKilled (exit code 137), and it tries again",
		},
		"RemoteNoNode": {
			reason: "No node has room for its pod.", remote: true, scene: func(s *scene) { s.remoteLoader(synced("True", ""), nowhere) },
			want: "False Loading: cluster east: Job qwen-model-1-a has a pod that waits for a node: if that lasts, its events say why",
		},
		"RemoteProgress": {
			reason: "It says how much is loaded, too. Its sidecar waits, and that is no failure.", remote: true,
			scene: func(s *scene) { s.remoteLoader(synced("True", ""), says("12582912 42949672960\n", 20, true)) },
			want:  "False Loading: cluster east: Job qwen-model-1-a loads them, with 12Gi of 40Gi loaded at 2026-03-01T12:20:00Z",
		},
		"RemoteForeign": {
			reason: "Only the label tells that it is a pod of the Job.", remote: true,
			scene: func(s *scene) {
				s.remoteLoader(synced("True", ""), waits("ImagePullBackOff"), func(p *corev1.Pod) { p.Labels[naming.LabelModelLoader] = "another" })
			},
			want: "False Loading: cluster east: Job qwen-model-1-a loads them, and its pod does not run at the moment: see the pods of the Job there",
		},
		"RemoteGone": {
			reason: "The provider does not find the pod any more, or may not read it.", remote: true,
			scene: func(s *scene) { s.remoteLoader(synced("False", "not found"), waits("ImagePullBackOff")) },
			want:  "False Loading: cluster east: Job qwen-model-1-a loads them, and its pod does not run at the moment: see the pods of the Job there",
		},
		"Ready": {
			reason: "The Job stays until the status says so.",
			scene: func(s *scene) {
				s.loads().see(jobKey, loadingJob(jobCondition(batchv1.JobComplete, "")))
				s.plan.Clusters[0].Loading.Done = true
			},
			want: "True Loaded",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var targets []scheduling.Target
			if tc.remote {
				targets = append(targets, east)
			}
			s := newScene(t, targets...)
			tc.scene(s)
			if diff := cmp.Diff(tc.want, conditionLine(s.evaluate(), ModelReady)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
