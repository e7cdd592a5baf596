package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

func TestEvaluateClusters(t *testing.T) {
	config := v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: config}
	west := scheduling.Target{Cluster: "west", Namespace: "models", ProviderConfig: config}
	const in = "cluster/west/"

	type want struct {
		total, west v1alpha1.ComponentStatus
		workloads   string
		roles, url  string
		stable      bool
	}
	double := func(phase v1alpha1.ComponentPhase, ready, pods int32) v1alpha1.ComponentStatus {
		return v1alpha1.ComponentStatus{DesiredReplicas: 4, ReadyReplicas: ready, NodesPerReplica: 4, TotalPods: 16, ReadyPods: pods, Phase: phase, LastUpdateTime: ptrTo(at(5))}
	}
	cases := map[string]struct {
		reason string
		west   func(s *scene)
		want   want
	}{
		"Ready": {
			reason: "Two clusters are judged like one, each and in sum. A Service in them is no URL here.",
			west:   func(*scene) {},
			want: want{
				total: double(v1alpha1.ComponentPhaseRunning, 4, 16), west: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady", roles: "engine 4/4", stable: true,
			},
		},
		"NotThereYet": {
			reason: "An Object that has not reported is not created, as far as is known.",
			west: func(s *scene) {
				s.seeRemote(in+lws0, nil).seeRemote(in+lws1, nil)
			},
			want: want{
				total: double(v1alpha1.ComponentPhaseDeploying, 2, 8), west: engine(v1alpha1.ComponentPhasePending, 0, 0, -1),
				workloads: "False NotCreated: cluster west: LeaderWorkerSet qwen-engine-0, LeaderWorkerSet qwen-engine-1: provider-kubernetes has not reported it yet",
				roles:     "engine 2/4",
			},
		},
		"Unreadable": {
			reason: "A cluster that does not answer is Unknown, whatever was read of it before.",
			west: func(s *scene) {
				s.seeRemote(in+lws1, workload("qwen-engine-1"), synced("False", "observe failed: cannot get object: dial tcp: no route to host"))
			},
			want: want{
				total: double(v1alpha1.ComponentPhaseUnknown, 3, 12), west: engine(v1alpha1.ComponentPhaseUnknown, 1, 4, 5),
				workloads: "Unknown CannotBeRead: cluster west: LeaderWorkerSet qwen-engine-1: provider-kubernetes cannot reach or change it: observe failed: cannot get object: dial tcp: no route to host",
				roles:     "engine 3+?/4",
			},
		},
		"Stale": {
			reason: "A remote status can be stale as well.",
			west:   func(s *scene) { s.seeRemote(in+lws1, workload("qwen-engine-1", staleWorkload), synced("True", "")) },
			want: want{
				total: double(v1alpha1.ComponentPhaseUnknown, 3, 12), west: engine(v1alpha1.ComponentPhaseUnknown, 1, 4, 5),
				workloads: "Unknown GenerationNotObserved: cluster west: LeaderWorkerSet qwen-engine-1: its status is of generation 2, not 3",
				roles:     "engine 3/4",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, east, west)
			for _, c := range []string{"cluster/east/", in} {
				ok := synced("True", "")
				s.seeRemote(c+svcKey, map[string]any{"kind": "Service"}, ok).
					seeRemote(c+pgKey, podGroup("qwen", volcano.PodGroupRunning), ok).
					seeRemote(c+lws0, workload("qwen-engine-0"), ok).
					seeRemote(c+lws1, workload("qwen-engine-1"), ok)
			}
			tc.west(s)
			v := s.evaluate()
			got := want{
				total: withoutUpdated(v.Status.Components["engine"]), west: withoutUpdated(v.Status.Clusters[1].Components["engine"]),
				workloads: conditionLine(v, WorkloadsReady), roles: v.Status.Summary, url: v.Status.URL, stable: v.Stable,
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got, want := v.Status.Clusters[1].URL, "http://qwen.models.svc:8000"; got != want {
				t.Errorf("the cluster's own URL: want %q, got %q", want, got)
			}
		})
	}
}

// What leaves its only cluster still serves and counts, also where more of it is wanted that no
// cluster takes.
func TestEvaluateLeavingOnlyCluster(t *testing.T) {
	s := running(newScene(t))
	s.plan.Clusters[0].Leaving = true
	more := s.plan.Clusters[0].Groups[0].Replicas[0]
	more.Index, more.Key = 2, key.Parse("leaderworkerset/engine/2")
	s.plan.Clusters = append(s.plan.Clusters, plan.ClusterPlan{Pending: []plan.Replica{more}, NotStarted: true, Unschedulable: true})
	if got, want := s.evaluate().Status.Summary, "engine 2/3"; got != want {
		t.Errorf("its roles are %q, want %q", got, want)
	}
}
