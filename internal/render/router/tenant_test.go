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

	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// A pod of a tenant may carry any label but the function's own, which it sets over those of
// a template. So a label app alone takes no requests away from the endpoint picker.
func TestServiceSelectsEndpointPickerOnly(t *testing.T) {
	p := everything()
	d := &p.Deployments[0]
	service, budget, deployment := &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &appsv1.Deployment{}
	decode(t, p, d.Key("service", "epp"), service)
	decode(t, p, d.Key("poddisruptionbudget", "epp"), budget)
	decode(t, p, d.Key("deployment", "epp"), deployment)
	budgets, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	picker := deployment.Spec.Template.Labels
	tenants := map[string]string{"app": d.EPPName(), "fusioninfer.io/service": d.Base, "fusioninfer.io/component-type": "worker"}
	for name, s := range map[string]labels.Selector{"service": labels.SelectorFromSet(service.Spec.Selector), "budget": budgets} {
		if !s.Matches(labels.Set(picker)) {
			t.Errorf("the %s must select the endpoint picker's pods, which have %v", name, picker)
		}
		if s.Matches(labels.Set(tenants)) {
			t.Errorf("the %s must not select an engine's pod with the labels %v", name, tenants)
		}
	}
}

// Endpoint pickers of one service cannot touch the leases of others.
func TestRoleNamesLeases(t *testing.T) {
	p := everything()
	d := &p.Deployments[0]
	role := &rbacv1.Role{}
	decode(t, p, d.Key("role", "epp"), role)
	var got []rbacv1.PolicyRule
	for _, rule := range role.Rules {
		if rule.Resources[0] == "leases" {
			got = append(got, rule)
		}
	}
	group, leases := []string{"coordination.k8s.io"}, []string{"leases"}
	want := []rbacv1.PolicyRule{
		{APIGroups: group, Resources: leases, Verbs: []string{"get", "update"}, ResourceNames: []string{
			"epp-" + d.Target.Namespace + "-" + d.PoolName() + ".gateway-api-inference-extension.sigs.k8s.io",
			"epp-" + d.Target.Namespace + "-" + d.PoolName() + ".llm-d.ai",
		}},
		{APIGroups: group, Resources: leases, Verbs: []string{"create"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// decode reads a rendered object into its own type.
func decode(t *testing.T, p *plan.Plan, key string, into any) {
	t.Helper()
	objects, err := Render(p, &p.Deployments[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.Key == key {
			if err := yaml.UnmarshalStrict(marshal(t, o), into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no object has the key %s", key)
}
