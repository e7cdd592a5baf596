package router

import (
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/epp"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
)

const (
	groupRBAC = "rbac.authorization.k8s.io"

	groupLeases = "coordination.k8s.io"
)

func (r *rendering) serviceAccount() *corev1.ServiceAccountApplyConfiguration {
	return corev1.ServiceAccount(r.cluster.EPPName(), r.cluster.Target.Namespace)
}

// role lets the endpoint picker read its own namespace. It is a Role, because neither a
// namespaced XR nor a tenant may grant more. The rights depend neither on the dialect nor on the number of replicas: while
// a change of these replaces the endpoint pickers, the former ones go on using what they had.
func (r *rendering) role() *rbacv1.RoleApplyConfiguration {
	return rbacv1.Role(r.cluster.EPPName(), r.cluster.Target.Namespace).
		WithRules(
			readOnly([]string{""}, "pods"),
			readOnly([]string{inference.GroupName}, "inferencepools"),
			// The dialect LLMD prefers its own group, and uses the older one in clusters that have only that.
			readOnly([]string{epp.GroupGAIE, modelroute.Group}, "inferencemodelrewrites", "inferenceobjectives"),
			rbacv1.PolicyRule().WithAPIGroups(groupLeases).WithResources("leases").WithResourceNames(r.leases()...).
				WithVerbs("get", "update"),
			// RBAC cannot restrict create by name.
			rbacv1.PolicyRule().WithAPIGroups(groupLeases).WithResources("leases").WithVerbs("create"),
			rbacv1.PolicyRule().WithAPIGroups("").WithResources("events").WithVerbs("create", "patch"),
		)
}

// leases are the names of the leases by which the endpoint pickers elect a leader. There is one
// for each project, because an image of the platform team may be of either
// (pkg/epp/server/controller_manager.go, LeaderElectionID, of GAIE v1.5.0 and llm-d-router v0.10.0).
func (r *rendering) leases() []string {
	name := "epp-" + r.cluster.Target.Namespace + "-" + r.cluster.PoolName()
	return []string{name + ".gateway-api-inference-extension.sigs.k8s.io", name + ".llm-d.ai"}
}

func readOnly(groups []string, resources ...string) *rbacv1.PolicyRuleApplyConfiguration {
	return rbacv1.PolicyRule().WithAPIGroups(groups...).WithResources(resources...).WithVerbs("get", "list", "watch")
}

func (r *rendering) roleBinding() *rbacv1.RoleBindingApplyConfiguration {
	return rbacv1.RoleBinding(r.cluster.EPPName(), r.cluster.Target.Namespace).
		WithRoleRef(rbacv1.RoleRef().WithAPIGroup(groupRBAC).WithKind("Role").WithName(r.cluster.EPPName())).
		WithSubjects(rbacv1.Subject().WithKind("ServiceAccount").WithName(r.cluster.EPPName()).WithNamespace(r.cluster.Target.Namespace))
}
