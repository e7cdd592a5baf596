package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestRestartPolicy shows what LeaderWorkerSet does under each recovery policy. A policy that has the
// default's has its hash, too, so that a change between them is no update.
func TestRestartPolicy(t *testing.T) {
	cases := map[v1alpha1.RecoveryPolicy]struct {
		want string
		same bool
	}{
		v1alpha1.RecoverRole:           {"RecreateGroupOnPodRestart", true},
		v1alpha1.RecoverGroup:          {"RecreateGroupOnPodRestart", true},
		v1alpha1.RecoverRoleAfterStart: {"RecreateGroupAfterStart", false},
		v1alpha1.RecoverPod:            {"None", false},
	}
	rendered := func(policy v1alpha1.RecoveryPolicy) kube.Object {
		return render(t, service("svc", &plan.Role{
			Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8000, Leader: pods(t, qwen), Recovery: policy,
		}))[0]
	}
	hash := func(o kube.Object) string {
		return kube.Lookup(o.Resource, "metadata", "labels", naming.LabelSpecHash).GetStringValue()
	}
	for policy, tc := range cases {
		t.Run(string(policy), func(t *testing.T) {
			got := rendered(policy)
			if diff := cmp.Diff(tc.want, kube.Lookup(got.Resource, "spec", "leaderWorkerTemplate", "restartPolicy").GetStringValue()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if same := hash(got) == hash(rendered("")); same != tc.same {
				t.Errorf("the hash is that of the default: %v, want %v", same, tc.same)
			}
		})
	}
}

// TestRecovery proves what is noted on a LeaderWorkerSet, and that its pods have the failure for which
// they were made anew, and nothing else of it.
func TestRecovery(t *testing.T) {
	p := service("svc", &plan.Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 3, Nodes: 2, Port: 8000, EnginePort: 8000, Leader: pods(t, qwen), Worker: pods(t, qwen)})
	replicas := p.Clusters[0].Groups[0].Replicas
	replicas[1].Recovery = plan.Recovery{Failures: 2, Leader: plan.LeaderID{Revision: "r", UID: "u"}}
	replicas[2].Recovery = plan.Recovery{Failures: 2, Restart: 1}
	annotations := func(o kube.Object, path ...string) map[string]any {
		return kube.Lookup(o.Resource, append(path, "metadata", "annotations")...).GetStructValue().AsMap()
	}
	type notes struct{ Set, Leader, Worker map[string]any }
	want := []notes{
		{map[string]any{}, map[string]any{}, map[string]any{}},
		{map[string]any{"fusioninfer.io/group-failures": "2", "fusioninfer.io/leader-pod": "r/u"}, map[string]any{}, map[string]any{}},
		{
			map[string]any{"fusioninfer.io/group-failures": "2", "fusioninfer.io/restarted-for-failure": "1"},
			map[string]any{"fusioninfer.io/restarted-for-failure": "1"}, map[string]any{"fusioninfer.io/restarted-for-failure": "1"},
		},
	}
	var got []notes
	for _, o := range render(t, p) {
		got = append(got, notes{
			annotations(o), annotations(o, "spec", "leaderWorkerTemplate", "leaderTemplate"), annotations(o, "spec", "leaderWorkerTemplate", "workerTemplate"),
		})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
