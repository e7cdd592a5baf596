package observe

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// podOf is a pod of a replica by the name that LeaderWorkerSet gives it. Pod 0 is the leader.
func podOf(replica, index int, edits ...edit[corev1.Pod]) *corev1.Pod {
	p := enginePod("engine", replica, index)
	set := "qwen-engine-" + strconv.Itoa(replica)
	p.Labels[lws.SetNameLabelKey] = set
	p.Name = set + "-0"
	if index > 0 {
		p.Name += "-" + strconv.Itoa(index)
	}
	return apply(p, edits)
}

// podKey is the key of a pod of the scene's second replica.
func podKey(index int) string { return "pod/engine/1/" + strconv.Itoa(index) }

// podByName answers the requirement for a pod.
func (s *scene) podByName(k string, p *corev1.Pod) *scene {
	s.tb.Helper()
	s.required[k] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: encode(s.tb, p)}}}
	return s
}

func of(label, value string) edit[corev1.Pod] {
	return func(p *corev1.Pod) { p.Labels[label] = value }
}

// TestPodsByName proves that a service says the same of a pod that fails, whether all of its pods are
// read, or a few by their names, or whether Objects observe them in another cluster.
func TestPodsByName(t *testing.T) {
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}}
	ok := synced("True", "")
	const in = "cluster/east/"
	crash := waits("CrashLoopBackOff")
	large := func(s *scene) {
		running(s).see(lws1, workload("qwen-engine-1", progressing))
		s.plan.PodLimit = 7
	}
	elsewhere := func(s *scene) {
		s.seeRemote(in+svcKey, map[string]any{"kind": "Service"}, ok).seeRemote(in+pgKey, podGroup("qwen", volcano.PodGroupRunning), ok)
		s.seeRemote(in+lws0, workload("qwen-engine-0"), ok).seeRemote(in+lws1, workload("qwen-engine-1", progressing), ok)
	}
	type want struct {
		Phase     v1alpha1.ComponentPhase
		Pods      int32
		Workloads string
		RolledOut string
		Stable    bool
	}
	deploying := func(where string) want {
		return want{
			Phase: v1alpha1.ComponentPhaseDeploying, Pods: 4, Workloads: "False NotReady: " + where + "LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready",
			RolledOut: "False NotReady: 2 of 2 replicas are updated (1 of them not ready)",
		}
	}
	failed := func(message string) want {
		return want{Phase: v1alpha1.ComponentPhaseFailed, Pods: 4, Workloads: "False Failed: " + message, RolledOut: "False UpdateFailed: 2 of 2 replicas are updated (1 of them not ready): " + message}
	}
	cases := map[string]struct {
		reason string
		remote bool
		scene  func(s *scene)
		want   want
	}{
		"Leader": {
			reason: "The leader crashes.",
			scene:  func(s *scene) { large(s); s.podByName(podKey(0), podOf(1, 0, crash)) },
			want:   failed("pod qwen-engine-1-0: container vllm: CrashLoopBackOff"),
		},
		"Worker": {
			reason: "A worker crashes.",
			scene: func(s *scene) {
				large(s)
				s.podByName(podKey(0), podOf(1, 0, unready)).podByName(podKey(2), podOf(1, 2, ended("OOMKilled", 137)))
			},
			want: failed("pod qwen-engine-1-0-2: container vllm: OOMKilled (exit code 137)"),
		},
		"Starting": {
			reason: "A pod that starts has not failed. How many are ready, the LeaderWorkerSet says.",
			scene:  func(s *scene) { large(s); s.podByName(podKey(0), podOf(1, 0)) },
			want:   deploying(""),
		},
		"NotRead": {
			reason: "Crossplane has not answered yet.",
			scene:  large,
			want:   deploying(""),
		},
		"Unscheduled": {
			reason: "The leader waits for a node.",
			scene:  func(s *scene) { large(s); s.podByName(podKey(0), podOf(1, 0, unscheduled)) },
			want: want{
				Phase: v1alpha1.ComponentPhaseDeploying, Pods: 4,
				Workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready, 1 cannot be scheduled (the pods' events say why)",
				RolledOut: "False NotReady: 2 of 2 replicas are updated (1 of them not ready)",
			},
		},
		"Terminating": {
			reason: "A pod that is going away cannot fail any more.",
			scene:  func(s *scene) { large(s); s.podByName(podKey(0), podOf(1, 0, crash, terminating)) },
			want:   deploying(""),
		},
		"OtherService": {
			reason: "A pod of that name may be another service's.",
			scene: func(s *scene) {
				large(s)
				s.podByName(podKey(0), podOf(1, 0, crash, of("fusioninfer.io/service", "other")))
			},
			want: deploying(""),
		},
		"OtherReplica": {
			reason: "It may be another replica's.",
			scene: func(s *scene) {
				large(s)
				s.podByName(podKey(0), podOf(1, 0, crash, of(lws.SetNameLabelKey, "qwen-engine-0")))
			},
			want: deploying(""),
		},
		"OtherPod": {
			reason: "Another pod than the one that was asked for says nothing.",
			scene:  func(s *scene) { large(s); s.podByName(podKey(0), podOf(1, 1, crash)) },
			want:   deploying(""),
		},
		"NotAsked": {
			reason: "The pods of a replica that is ready are not read.",
			scene:  func(s *scene) { large(s); s.podByName("pod/engine/0/0", podOf(0, 0, crash)) },
			want:   deploying(""),
		},
		"Remote": {
			reason: "In another cluster an Object shows the pod. The message names the cluster.",
			remote: true,
			scene:  func(s *scene) { elsewhere(s); s.seeRemote(in+podKey(0), podOf(1, 0, crash), ok) },
			want:   failed("cluster east: pod qwen-engine-1-0: container vllm: CrashLoopBackOff"),
		},
		"RemoteForeign": {
			reason: "Whoever made a pod of that name there does not speak for the service.",
			remote: true,
			scene: func(s *scene) {
				elsewhere(s)
				s.seeRemote(in+podKey(0), podOf(1, 0, crash, of("fusioninfer.io/service", "other")), ok)
			},
			want: deploying("cluster east: "),
		},
		"RemoteNotSynced": {
			reason: "What the provider could read last may be long ago. The pod may be gone.",
			remote: true,
			scene: func(s *scene) {
				elsewhere(s)
				s.seeRemote(in+podKey(0), podOf(1, 0, crash), synced("False", "external resource does not exist"))
			},
			want: deploying("cluster east: "),
		},
		"RemoteNotReported": {
			reason: "An Object that nobody has reported on keeps nothing from being ready.",
			remote: true,
			scene:  func(s *scene) { elsewhere(s); s.seeRemote(in+podKey(0), nil) },
			want:   deploying("cluster east: "),
		},
		"RemoteReady": {
			reason: "An Object that is left says nothing of a replica that is ready.",
			remote: true,
			scene: func(s *scene) {
				elsewhere(s)
				s.seeRemote(in+lws1, workload("qwen-engine-1"), ok).seeRemote(in+podKey(0), podOf(1, 0, crash), ok)
			},
			want: want{Phase: v1alpha1.ComponentPhaseRunning, Pods: 8, Workloads: "True AllReady", RolledOut: "True AllUpdated", Stable: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if tc.remote {
				s = newScene(t, east)
			}
			for r := range s.plan.Clusters[0].Replicas() {
				r.ID = key.ReplicaOf(r.Role.Name, r.Index)
			}
			tc.scene(s)
			v := s.evaluate()
			got := want{
				Phase: v.Status.Components["engine"].Phase, Pods: v.Status.Components["engine"].ReadyPods,
				Workloads: conditionLine(v, WorkloadsReady), RolledOut: conditionLine(v, RolledOut), Stable: v.Stable,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPodObject proves that nothing waits for the Object of a pod, whatever is known of it.
func TestPodObject(t *testing.T) {
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}}
	k := key.Parse("cluster/east/" + podKey(0))
	cases := map[string]struct {
		reason string
		see    func(s *scene)
	}{
		"NotCreated": {reason: "It does not exist yet.", see: func(*scene) {}},
		"NoPod":      {reason: "There is no such pod.", see: func(s *scene) { s.seeRemote(k.String(), nil, synced("False", "external resource does not exist")) }},
		"Failed":     {reason: "The pod fails.", see: func(s *scene) { s.seeRemote(k.String(), podOf(1, 0, waits("CrashLoopBackOff")), synced("True", "")) }},
		"Owned": {
			reason: "A pod belongs to a StatefulSet, which is no conflict.",
			see: func(s *scene) {
				owned := func(p *corev1.Pod) {
					p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "qwen-engine-1", UID: "u", Controller: ptr.To(true)}}
				}
				s.seeRemote(k.String(), podOf(1, 0, owned), synced("True", ""))
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, east)
			o, err := remote.WrapPod(k, "qwen-engine-1-0", s.plan.Service, east)
			if err != nil {
				t.Fatal(err)
			}
			s.objects = append(s.objects[:0:0], o)
			tc.see(s)
			if seen := s.observed[k.String()]; seen != nil {
				seen.Resource = kube.With(seen.GetResource(), structpb.NewStringValue(o.Name()), "metadata", "name")
			}
			v := s.evaluate()
			if diff := cmp.Diff(map[key.Key]bool{k: true}, v.Ready); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if errs := Read(s.request(), s.plan).Conflicts(s.objects).Refused; len(errs) > 0 {
				t.Errorf("%s It is refused: %v", tc.reason, errs)
			}
		})
	}
}
