package router

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestServiceSelectsEndpointPickerOnly proves that a tenant's pod with the label app gets none
// of the endpoint picker's requests. Only the function sets its own labels, over those of a
// template.
func TestServiceSelectsEndpointPickerOnly(t *testing.T) {
	p := everything()
	cluster := &p.Clusters[0]
	service, budget, deployment := &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &appsv1.Deployment{}
	decode(t, p, cluster.Key(key.Service, "epp"), service)
	decode(t, p, cluster.Key(key.PodDisruptionBudget, "epp"), budget)
	decode(t, p, cluster.DeploymentKey(), deployment)
	budgets, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	picker := deployment.Spec.Template.Labels
	tenants := map[string]string{"app": cluster.EPPName(), "fusioninfer.io/service": cluster.Base, "fusioninfer.io/component-type": "worker"}
	for name, s := range map[string]labels.Selector{"service": labels.SelectorFromSet(service.Spec.Selector), "budget": budgets} {
		if !s.Matches(labels.Set(picker)) {
			t.Errorf("the %s must select the endpoint picker's pods, which have %v", name, picker)
		}
		if s.Matches(labels.Set(tenants)) {
			t.Errorf("the %s must not select an engine's pod with the labels %v", name, tenants)
		}
	}
}

// TestRoleNamesLeases proves that the endpoint pickers of one service cannot write the leases
// of others.
func TestRoleNamesLeases(t *testing.T) {
	p := everything()
	cluster := &p.Clusters[0]
	role := &rbacv1.Role{}
	decode(t, p, cluster.Key(key.Role, "epp"), role)
	var got []rbacv1.PolicyRule
	for _, rule := range role.Rules {
		if rule.Resources[0] == "leases" {
			got = append(got, rule)
		}
	}
	group, leases := []string{"coordination.k8s.io"}, []string{"leases"}
	want := []rbacv1.PolicyRule{
		{APIGroups: group, Resources: leases, Verbs: []string{"get", "update"}, ResourceNames: []string{
			"epp-" + cluster.Target.Namespace + "-" + cluster.PoolName() + ".gateway-api-inference-extension.sigs.k8s.io",
			"epp-" + cluster.Target.Namespace + "-" + cluster.PoolName() + ".llm-d.ai",
		}},
		{APIGroups: group, Resources: leases, Verbs: []string{"create"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// decode decodes a rendered object into its own type.
func decode(t *testing.T, p *plan.Plan, k key.Key, into any) {
	t.Helper()
	objects, err := RenderSidecarAccess(p, &p.Clusters[0])
	if err != nil {
		t.Fatal(err)
	}
	if p.Router != nil {
		more, err := Render(p, &p.Clusters[0])
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, more...)
	}
	for _, o := range objects {
		if o.Key == k {
			if err := yaml.UnmarshalStrict(marshal(t, o), into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no object has the key %s", k)
}
