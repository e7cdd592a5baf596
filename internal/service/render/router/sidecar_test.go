package router

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestSidecarRights proves that the service accounts of decode pods may list and watch pods and
// the service's own pool, and nothing else. The service needs no router for it.
func TestSidecarRights(t *testing.T) {
	p := example()
	p.Router = nil
	p.Roles = []*plan.Role{
		{Name: "d", Sidecar: &plan.Sidecar{PoolOnly: true, ServiceAccount: "default"}},
		{Name: "e", Sidecar: &plan.Sidecar{PoolOnly: true, ServiceAccount: "models"}},
		{Name: "f", Sidecar: &plan.Sidecar{ServiceAccount: "other"}},
	}
	cluster := &p.Clusters[0]
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	decode(t, p, cluster.Key(key.Role, "sidecar"), role)
	decode(t, p, cluster.Key(key.RoleBinding, "sidecar"), binding)
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"inference.networking.k8s.io"}, Resources: []string{"inferencepools"}, ResourceNames: []string{"my-service-pool"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	}
	if diff := cmp.Diff(rules, role.Rules); diff != "" {
		t.Errorf("rules: -want, +got:\n%s", diff)
	}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: "default"}, {Kind: "ServiceAccount", Name: "models", Namespace: "default"}}
	if diff := cmp.Diff(subjects, binding.Subjects); diff != "" || binding.RoleRef.Name != role.Name || role.Namespace != "default" {
		t.Errorf("%s is bound to %s: -want, +got:\n%s", role.Name, binding.RoleRef.Name, diff)
	}
}

// TestNoSidecarRights proves that no rights are rendered that no sidecar needs.
func TestNoSidecarRights(t *testing.T) {
	p := example()
	p.Roles = []*plan.Role{{Name: "d", Sidecar: &plan.Sidecar{ServiceAccount: "default"}}, {Name: "w"}}
	objects, err := RenderSidecarAccess(p, &p.Clusters[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		t.Errorf("%s is rendered", o.Key)
	}
}
