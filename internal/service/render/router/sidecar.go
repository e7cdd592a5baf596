package router

import (
	rbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// RenderSidecarAccess returns what the routing sidecars in one cluster may read. A sidecar serves
// nothing before it was able to list the pool. The list may be empty, so there need not be a router.
func RenderSidecarAccess(p *plan.Plan, cluster *plan.ClusterPlan) ([]kube.Object, error) {
	accounts := p.SidecarAccounts(cluster)
	if len(accounts) == 0 {
		return nil, nil
	}
	return encodeAll(cluster, []object{
		{cluster.SidecarKey(key.Role), sidecarRole(cluster)},
		{cluster.SidecarKey(key.RoleBinding), sidecarRoleBinding(cluster, accounts)},
	})
}

// sidecarRole lets the routing sidecars read which pods belong to the pool. They list and watch
// the pool by its name, to which RBAC restricts them. They select pods by labels, to which RBAC
// cannot restrict them, so they may read all pods of the namespace.
func sidecarRole(cluster *plan.ClusterPlan) *rbacv1.RoleApplyConfiguration {
	return rbacv1.Role(cluster.SidecarName(), cluster.Target.Namespace).WithRules(
		rbacv1.PolicyRule().WithAPIGroups(inference.GroupName).WithResources("inferencepools").WithResourceNames(cluster.PoolName()).WithVerbs("list", "watch"),
		rbacv1.PolicyRule().WithAPIGroups("").WithResources("pods").WithVerbs("list", "watch"),
	)
}

func sidecarRoleBinding(cluster *plan.ClusterPlan, accounts []string) *rbacv1.RoleBindingApplyConfiguration {
	b := rbacv1.RoleBinding(cluster.SidecarName(), cluster.Target.Namespace).
		WithRoleRef(rbacv1.RoleRef().WithAPIGroup(groupRBAC).WithKind("Role").WithName(cluster.SidecarName()))
	for _, a := range accounts {
		b.WithSubjects(rbacv1.Subject().WithKind("ServiceAccount").WithName(a).WithNamespace(cluster.Target.Namespace))
	}
	return b
}
