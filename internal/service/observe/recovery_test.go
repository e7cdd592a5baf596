package observe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestLeaders shows which pod counts as the leader of a replica.
func TestLeaders(t *testing.T) {
	leader := func(p *corev1.Pod) {
		p.Name = strings.TrimSuffix(p.Name, "-0") // The workers' names go on.
		p.UID, p.Labels["leaderworkerset.sigs.k8s.io/worker-index"], p.Labels["leaderworkerset.sigs.k8s.io/template-revision-hash"] = "u0", "0", "r0"
	}
	worker := func(p *corev1.Pod) {
		p.UID, p.Labels["leaderworkerset.sigs.k8s.io/worker-index"] = "u1", "1"
	}
	copied := func(p *corev1.Pod) { p.Name, p.UID = p.Name+"-copy", "u2" }
	created := at(1).Time
	id := plan.LeaderID{Revision: "r0", UID: "u0"}
	cases := map[string]struct {
		reason string
		policy v1alpha1.RecoveryPolicy
		pods   []*corev1.Pod
		want   plan.Leader
		seen   bool
	}{
		"Ready":       {"The leader, and none of its workers.", v1alpha1.RecoverGroup, []*corev1.Pod{enginePod("engine", 0, 0, leader), enginePod("engine", 0, 1, worker)}, plan.Leader{LeaderID: id, Created: created, Ready: true}, true},
		"Copied":      {"A copy of it is another pod.", v1alpha1.RecoverGroup, []*corev1.Pod{enginePod("engine", 0, 0, leader), enginePod("engine", 0, 0, leader, copied)}, plan.Leader{LeaderID: id, Created: created, Ready: true}, true},
		"Unready":     {"One that is not ready is told apart.", v1alpha1.RecoverGroup, []*corev1.Pod{enginePod("engine", 0, 0, leader, unready)}, plan.Leader{LeaderID: id, Created: created}, true},
		"Terminating": {"One that is being deleted will be followed by another one.", v1alpha1.RecoverGroup, []*corev1.Pod{enginePod("engine", 0, 0, leader, terminating)}, plan.Leader{}, false},
		"Other":       {"The leader of another replica.", v1alpha1.RecoverGroup, []*corev1.Pod{enginePod("engine", 1, 0, leader)}, plan.Leader{}, false},
		"NoPods":      {"Pods may not be there.", v1alpha1.RecoverGroup, nil, plan.Leader{}, false},
		"Unwatched":   {"Nobody asks for them.", v1alpha1.RecoverRole, []*corev1.Pod{enginePod("engine", 0, 0, leader)}, plan.Leader{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).pods(tc.pods...)
			s.plan.Roles[0].Recovery = tc.policy
			got, seen := Read(s.request(), s.plan).Leader(&s.plan.Clusters[0].Groups[0].Replicas[0])
			if diff := cmp.Diff(tc.want, got); diff != "" || seen != tc.seen {
				t.Errorf("%s\nseen: %v, -want +got:\n%s", tc.reason, seen, diff)
			}
		})
	}
}

// TestReadLastFailure shows that a note is read of a LeaderWorkerSet, here or as an Object last had it.
func TestReadLastFailure(t *testing.T) {
	const note = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"annotations": {"fusioninfer.io/last-failure": "abc pod p: container c: Error (exit code 1)"}}}`
	cases := map[string]struct{ cluster, observed string }{
		"Here":   {"", note},
		"Remote": {"east", `{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "spec": {"forProvider": {"manifest": ` + note + `}}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON([]byte(tc.observed)); err != nil {
				t.Fatal(err)
			}
			k := key.New(tc.cluster, key.LeaderWorkerSet, "worker", "0")
			r := Read(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{k.String(): {Resource: s}}}}), &plan.Plan{})
			if diff := cmp.Diff(plan.Failure{Revision: "abc", Text: "pod p: container c: Error (exit code 1)"}, r.LastFailure(k)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestReadRecovery shows what is read of the notes on a LeaderWorkerSet.
func TestReadRecovery(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		want        plan.Recovery
	}{
		"None": {nil, plan.Recovery{}},
		"All": {
			map[string]string{"fusioninfer.io/group-failures": "4", "fusioninfer.io/restarted-for-failure": "3", "fusioninfer.io/leader-pod": "r/u"},
			plan.Recovery{Failures: 4, Restart: 3, Leader: plan.LeaderID{Revision: "r", UID: "u"}},
		},
		"NoNumbers": {map[string]string{"fusioninfer.io/group-failures": "x", "fusioninfer.io/restarted-for-failure": "-1", "fusioninfer.io/leader-pod": "u"}, plan.Recovery{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			w := workload("qwen-engine-0", progressing)
			w.Annotations = tc.annotations
			s.see(lws0, w)
			if diff := cmp.Diff(tc.want, Read(s.request(), s.plan).Recovery(key.Parse(lws0))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
