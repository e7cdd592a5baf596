package plan

import (
	"iter"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// Replicas yields the replicas of all clusters that are rendered, in the order of the plan.
// Pending replicas are left out.
func (p *Plan) Replicas() iter.Seq2[*ClusterPlan, *Replica] {
	return func(yield func(*ClusterPlan, *Replica) bool) {
		for i := range p.Clusters {
			for r := range p.Clusters[i].Replicas() {
				if !yield(&p.Clusters[i], r) {
					return
				}
			}
		}
	}
}

// RoleOf returns the role that a replica is of, or nil if there is none.
func (p *Plan) RoleOf(id key.ReplicaID) *Role {
	_, name, _, ok := id.Parts()
	if i := slices.IndexFunc(p.Roles, func(r *Role) bool { return r.Name == name }); ok && i >= 0 {
		return p.Roles[i]
	}
	return nil
}

// Replicas yields the replicas of the cluster that are rendered, in the order of the plan.
func (c *ClusterPlan) Replicas() iter.Seq[*Replica] {
	return func(yield func(*Replica) bool) { eachReplica(c.Groups, yield) }
}

// hasReplicas tells whether there are any.
func (c *ClusterPlan) hasReplicas() bool {
	return slices.ContainsFunc(c.Groups, func(g Group) bool { return len(g.Replicas) > 0 })
}
