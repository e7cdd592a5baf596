package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestAnswerAlone proves that scheduling knows which roles answer requests without another one.
func TestAnswerAlone(t *testing.T) {
	spec := &v1alpha1.InferenceServiceSpec{}
	want := map[string]bool{"worker": true, "prefiller": false, "decoder": false}
	for _, of := range []v1alpha1.ComponentType{v1alpha1.ComponentTypeWorker, v1alpha1.ComponentTypePrefiller, v1alpha1.ComponentTypeDecoder} {
		spec.Roles = append(spec.Roles, v1alpha1.Role{Name: string(of), ComponentType: of, Template: document(t, "{spec: {containers: [{name: engine, image: x}]}}")})
	}
	v1alpha1.Default(spec)
	p, errs := Build(naming.Identity{Name: "svc", Namespace: "ns"}, spec, defaultInput(), scheduling.Snapshot{}, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if diff := cmp.Diff(want, p.demand(&RunningView{}).AnswerAlone); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTolerations proves that a cluster is told which taints the pods tolerate, as they will be made: those of leaders and
// those of workers.
func TestTolerations(t *testing.T) {
	const tolerates = `{"spec":{"tolerations":[{"key":"dedicated","value":"team-b","effect":"NoSchedule"},{"key":"slow","operator":"Exists","effect":"PreferNoSchedule"}],"containers":[{"name":"vllm","image":"i"}]}}`
	const all = `{"spec":{"tolerations":[{"operator":"Exists","effect":"NoExecute","tolerationSeconds":30}],"containers":[{"name":"vllm","image":"i"}]}}`
	dedicated := []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "team-b", Effect: corev1.TaintEffectNoSchedule}}
	cases := map[string]struct {
		reason           string
		template, leader string
		want             map[string][]corev1.Toleration
	}{
		"None":   {reason: "Most pods tolerate nothing.", template: `{"spec":{"containers":[{"name":"vllm","image":"i"}]}}`, want: map[string][]corev1.Toleration{"worker/leader": nil, "worker/worker": nil}},
		"Both":   {reason: "Leaders have the template of workers.", template: tolerates, want: map[string][]corev1.Toleration{"worker/leader": dedicated, "worker/worker": dedicated}},
		"Leader": {reason: "Leaders have a template of their own.", template: tolerates, leader: all, want: map[string][]corev1.Toleration{"worker/leader": {{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}, "worker/worker": dedicated}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, tc.template), Multinode: &v1alpha1.Multinode{NodeCount: ptr.To[int32](2), Launcher: v1alpha1.LauncherNone}}
			if tc.leader != "" {
				role.LeaderTemplate = document(t, tc.leader)
			}
			spec := &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{role}}
			v1alpha1.Default(spec)
			p, errs := Build(naming.Identity{Name: "svc", Namespace: "ns"}, spec, defaultInput(), scheduling.Snapshot{}, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := map[string][]corev1.Toleration{}
			for name, r := range p.demand(&RunningView{}).PodRequirements {
				got[name] = r.Tolerations
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
