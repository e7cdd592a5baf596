package plan

import (
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// tenantLength is the number of hex digits of the hash of a tenant's namespace. It is short
// because a workload's name may have at most 50 characters, and there are few tenants.
const tenantLength = 10

// baseName starts the names of all objects of a service in one cluster. In the tenant's own
// namespace it is the service's name. Several tenants may share any other namespace, so there
// it also has a hash of the tenant's namespace. This keeps names and selectors of two tenants'
// services with the same name apart.
func baseName(s naming.Identity, t scheduling.Target) string {
	if t.Namespace == s.Namespace {
		return s.Name
	}
	return s.Name + "-" + naming.Digest(s.Namespace)[:tenantLength]
}

// workloadName is {service}-{role}-{replica}, or
// {service}-{group}-{role}-{replica} in a grouped service.
func workloadName(base string, s naming.Identity, group int32, role string, replica int32) string {
	return base + "-" + scoped(s, group, "-", role, key.Number(replica))
}

// A LeaderWorkerSet creates a StatefulSet of its own name for the leaders, and one named
// {name}-{group} for the workers of each group. Each of ours has one group. So the name of one
// LeaderWorkerSet may be that of another's workers. Service s with role a on two nodes, and
// service s-a with role 1, both have a StatefulSet s-a-1-0.

// WorkersName is the name of the StatefulSet of the replica's workers. It is empty if the
// replica runs on one node.
func (r *Replica) WorkersName() string {
	if r.Role.Nodes < 2 {
		return ""
	}
	return r.Name + groupSuffix
}

// WorkersOwner is the name of the LeaderWorkerSet whose workers' StatefulSet would have the
// replica's name. It is empty if no such LeaderWorkerSet can exist, because the names of ours
// end with a number.
func (r *Replica) WorkersOwner() string {
	owner, ok := strings.CutSuffix(r.Name, groupSuffix)
	if i := strings.LastIndexByte(owner, '-'); !ok || i < 0 || !digits(owner[i+1:]) {
		return ""
	}
	return owner
}

// groupSuffix ends the name of the only group of a LeaderWorkerSet. Its leader pod and the StatefulSet
// of its workers have that name.
const groupSuffix = "-0"

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// podGroupName is {service}, or {service}-{group} in a grouped service.
func podGroupName(base string, s naming.Identity, group int32) string {
	if s.Grouped {
		return base + "-" + key.Number(group)
	}
	return base
}

// taskName is the name of a replica in its gang.
func taskName(role string, replica int32) string { return role + "-" + key.Number(replica) }

// The names of the router's objects start with the base. Validation keeps workloads' names
// below 50 characters, so these stay below 63.

// PoolName is the name of the InferencePool.
func (c *ClusterPlan) PoolName() string { return c.Base + naming.PoolSuffix }

// EPPName is the name of the endpoint picker's Deployment, Service,
// ServiceAccount, Role, RoleBinding and PodDisruptionBudget.
func (c *ClusterPlan) EPPName() string { return c.Base + eppSuffix }

// eppSuffix ends the names of what the endpoint picker runs as.
const eppSuffix = "-epp"

// EPPConfigName is the name of the endpoint picker's ConfigMap.
func (c *ClusterPlan) EPPConfigName() string { return c.Base + "-epp-config" }

// SidecarName is the name of the Role and the RoleBinding of the routing sidecars.
func (c *ClusterPlan) SidecarName() string { return c.Base + "-routing-sidecar" }

// SidecarKey is the key of the Role, or of the RoleBinding, of the routing sidecars.
func (c *ClusterPlan) SidecarKey(kind string) key.Key { return c.Key(kind, ofSidecars) }

// IsOfSidecars tells whether a key is that of the Role or the RoleBinding of the routing sidecars.
func IsOfSidecars(k key.Key) bool {
	return (k.Kind == key.Role || k.Kind == key.RoleBinding) && k.Name == ofSidecars
}

const ofSidecars = "sidecar"

// NetworkPolicyName is the name of the NetworkPolicy of the engines' pods.
func (c *ClusterPlan) NetworkPolicyName() string { return c.Base + "-engines" }

// EnginesName is the name of the PodDisruptionBudget and of the PodMonitor of a role's pods. Those of the endpoint
// picker have the name EPPName.
func (c *ClusterPlan) EnginesName(r *Role) string { return c.Base + "-" + r.Name + "-engines" }

// BudgetKey is the key of a role's PodDisruptionBudget. That of the endpoint picker has no role.
func (c *ClusterPlan) BudgetKey(r *Role) key.Key {
	return c.Key(key.PodDisruptionBudget, keyOfRole, r.Name)
}

// IsBudgetOfRole tells whether a key is that of a role's PodDisruptionBudget.
func IsBudgetOfRole(k key.Key) bool {
	return k.Kind == key.PodDisruptionBudget && strings.HasPrefix(k.Name, keyOfRole+"/")
}

// IsSpared tells whether a service that runs goes on without the object of a key, if somebody else has its name: scaling adds it, and no
// request needs it.
func IsSpared(k key.Key) bool {
	return (k.Kind == key.PodDisruptionBudget || k.Kind == key.PodMonitor) && strings.HasPrefix(k.Name, keyOfRole+"/")
}

const keyOfRole = "role"

// MonitorKey is the key of the PodMonitor of a role's leaders. That of the endpoint picker has no role.
func (c *ClusterPlan) MonitorKey(r *Role) key.Key {
	return c.Key(key.PodMonitor, keyOfRole, r.Name)
}

// RouteName is the name of the HTTPRoute.
func (c *ClusterPlan) RouteName() string { return c.Base + "-httproute" }

// GatewayName is the name of the Gateway.
func (c *ClusterPlan) GatewayName() string { return c.Base + "-gateway" }

// ModelName is the name of the objects of a model. Clients send it in the header
// x-llm-d-inference-objective. Kubernetes does not allow all names of models (org/model:tag).
// A changed or shortened name ends with a hash, so that it stays unique.
func (c *ClusterPlan) ModelName(model string) string {
	slug := naming.DNSLabel(model)
	name := c.Base + "-" + slug
	if slug == model && len(name) <= naming.MaxLabel {
		return name
	}
	return naming.Shorten(name, model, naming.MaxLabel)
}

// Key of an object in this cluster: its kind, and the parts that identify it.
func (c *ClusterPlan) Key(kind string, parts ...string) key.Key {
	return key.New(c.Target.Cluster, kind, parts...)
}

// scoped joins parts. In a grouped service the group's index comes first.
func scoped(s naming.Identity, group int32, sep string, parts ...string) string {
	if s.Grouped {
		parts = append([]string{key.Number(group)}, parts...)
	}
	return strings.Join(parts, sep)
}

// ScaleTargetName is the name of a role's InferenceRole. It has the start of the names of the role's
// LeaderWorkerSets, which the API limits.
func (p *Plan) ScaleTargetName(r *Role) string { return p.Service.Name + "-" + r.Name }
