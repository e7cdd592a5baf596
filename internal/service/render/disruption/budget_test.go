package disruption

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// A role has a budget if it has several replicas in a cluster, of all groups together. Replicas have
// as many pods as they run on nodes now. Those that get no pods for now do not count, and the budget stays.
func TestRender(t *testing.T) {
	one, several, none := &plan.Role{Name: "one"}, &plan.Role{Name: "several"}, &plan.Role{Name: "none"}
	cluster := &plan.ClusterPlan{Target: scheduling.Target{Namespace: "team-a"}, Base: "chat", Groups: []plan.Group{
		{Replicas: []plan.Replica{{Role: one, Nodes: 4}, {Role: several, Nodes: 4}}},
		{Index: 1, Replicas: []plan.Replica{{Role: several, Nodes: 3}, {Role: one, Nodes: 4, Extra: true}}},
		{Index: 2, Replicas: []plan.Replica{{Role: several, Nodes: 4, Absent: true}, {Role: none, Nodes: 2, Absent: true}, {Role: none, Nodes: 2, Absent: true}}},
	}}
	all, err := Render(cluster)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]policyv1.PodDisruptionBudget{}
	for _, o := range all {
		budget := policyv1.PodDisruptionBudget{}
		if errs := kube.Decode(o.Resource, nil, &budget); len(errs) > 0 {
			t.Fatal(errs)
		}
		got[o.Key.String()] = budget
	}
	want := map[string]policyv1.PodDisruptionBudget{}
	for role, least := range map[string]int32{"several": 6, "none": 0} {
		labels := map[string]string{"fusioninfer.io/role-name": role, "fusioninfer.io/service": "chat"}
		want["poddisruptionbudget/role/"+role] = policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: metav1.ObjectMeta{Name: "chat-" + role + "-engines", Namespace: "team-a", Labels: labels},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: ptr.To(intstr.FromInt32(least)), UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
				Selector: &metav1.LabelSelector{MatchLabels: labels},
			},
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
