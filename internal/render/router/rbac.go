package router

import (
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
)

// The API groups of InferenceObjective and InferenceModelRewrite, by dialect. LLMD
// prefers its own, and falls back to the older one where a cluster has only that.
const (
	groupLLMD = "llm-d.ai"
	groupGAIE = "inference.networking.x-k8s.io"
	groupRBAC = "rbac.authorization.k8s.io"

	groupLeases = "coordination.k8s.io"
)

func (r *rendering) serviceAccount() *corev1.ServiceAccountApplyConfiguration {
	return corev1.ServiceAccount(r.d.EPPName(), r.d.Target.Namespace)
}

// role lets the endpoint picker read its own namespace. It is a Role, because
// neither a namespaced XR nor this service's tenant may grant more.
func (r *rendering) role() *rbacv1.RoleApplyConfiguration {
	groups := []string{groupGAIE}
	if r.r.Dialect == v1beta1.DialectLLMD {
		groups = []string{groupGAIE, groupLLMD}
	}
	role := rbacv1.Role(r.d.EPPName(), r.d.Target.Namespace).
		WithRules(
			readOnly([]string{""}, "pods"),
			readOnly([]string{inference.GroupName}, "inferencepools"),
			readOnly(groups, "inferencemodelrewrites", "inferenceobjectives"),
		)
	if r.highlyAvailable() {
		role.WithRules(
			rbacv1.PolicyRule().WithAPIGroups(groupLeases).WithResources("leases").WithResourceNames(r.leases()...).
				WithVerbs("get", "update"),
			// What is created has no name yet as far as RBAC is concerned.
			rbacv1.PolicyRule().WithAPIGroups(groupLeases).WithResources("leases").WithVerbs("create"),
			rbacv1.PolicyRule().WithAPIGroups("").WithResources("events").WithVerbs("create", "patch"),
		)
	}
	return role
}

// leases are those by which the endpoint pickers elect a leader: the name that either
// project gives it (pkg/epp/server/controller_manager.go, LeaderElectionID, of GAIE v1.5.0
// and of llm-d-router v0.10.0). An image of the platform's own may be of either.
func (r *rendering) leases() []string {
	name := "epp-" + r.d.Target.Namespace + "-" + r.d.PoolName()
	return []string{name + ".gateway-api-inference-extension.sigs.k8s.io", name + ".llm-d.ai"}
}

// sidecarRole lets the routing sidecars see which pods are the pool's. Of pools it names the
// one that they read: they list and watch it by its name, which RBAC compares. Pods they
// select by labels, which it does not, so that they may see all those of the namespace.
func (r *rendering) sidecarRole() *rbacv1.RoleApplyConfiguration {
	return rbacv1.Role(r.d.SidecarName(), r.d.Target.Namespace).WithRules(
		rbacv1.PolicyRule().WithAPIGroups(inference.GroupName).WithResources("inferencepools").WithResourceNames(r.d.PoolName()).WithVerbs("list", "watch"),
		rbacv1.PolicyRule().WithAPIGroups("").WithResources("pods").WithVerbs("list", "watch"),
	)
}

func (r *rendering) sidecarRoleBinding(accounts []string) *rbacv1.RoleBindingApplyConfiguration {
	b := rbacv1.RoleBinding(r.d.SidecarName(), r.d.Target.Namespace).
		WithRoleRef(rbacv1.RoleRef().WithAPIGroup(groupRBAC).WithKind("Role").WithName(r.d.SidecarName()))
	for _, a := range accounts {
		b.WithSubjects(rbacv1.Subject().WithKind("ServiceAccount").WithName(a).WithNamespace(r.d.Target.Namespace))
	}
	return b
}

func readOnly(groups []string, resources ...string) *rbacv1.PolicyRuleApplyConfiguration {
	return rbacv1.PolicyRule().WithAPIGroups(groups...).WithResources(resources...).WithVerbs("get", "list", "watch")
}

func (r *rendering) roleBinding() *rbacv1.RoleBindingApplyConfiguration {
	return rbacv1.RoleBinding(r.d.EPPName(), r.d.Target.Namespace).
		WithRoleRef(rbacv1.RoleRef().WithAPIGroup(groupRBAC).WithKind("Role").WithName(r.d.EPPName())).
		WithSubjects(rbacv1.Subject().WithKind("ServiceAccount").WithName(r.d.EPPName()).WithNamespace(r.d.Target.Namespace))
}
