// Package disruption renders the PodDisruptionBudgets of roles.
package disruption

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// Render returns the PodDisruptionBudgets of the roles that have several replicas in a cluster.
// Without another replica, a budget would only keep nodes from being drained.
//
// A budget counts pods, and all but one have to be ready for an eviction. That protects whole
// replicas: when a pod is evicted, LeaderWorkerSet recreates all pods of its replica, and no other
// one may be evicted until they are ready. maxUnavailable would not do: it counts the pods that
// exist, and between two generations of a replica there are none
// (pkg/controller/disruption/disruption.go of Kubernetes v1.36). Pods that are not ready may be
// evicted at any time, since nobody loses anything.
//
// Replicas that get no pods for now do not count: nobody knows for how long, and no pod of the others could be evicted
// until then. The budget is there all the same, so that it changes by one number as they come and go.
func Render(cluster *plan.ClusterPlan) ([]kube.Object, error) {
	replicas, pods := map[*plan.Role]int{}, map[*plan.Role]int32{}
	var roles []*plan.Role
	for r := range cluster.Replicas() {
		if r.Extra {
			continue
		}
		if !r.Absent {
			pods[r.Role] += r.Nodes
		}
		if replicas[r.Role]++; replicas[r.Role] == 2 {
			roles = append(roles, r.Role)
		}
	}
	all := make([]kube.Object, 0, len(roles))
	for _, role := range roles {
		labels := map[string]string{naming.LabelService: cluster.Base, naming.LabelRoleName: role.Name}
		o, err := kube.Render(cluster.BudgetKey(role), apply.PodDisruptionBudget(cluster.EnginesName(role), cluster.Target.Namespace).
			WithLabels(labels).
			WithSpec(apply.PodDisruptionBudgetSpec().
				WithMinAvailable(intstr.FromInt32(max(pods[role]-1, 0))).
				WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
				WithSelector(meta.LabelSelector().WithMatchLabels(labels))))
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}
