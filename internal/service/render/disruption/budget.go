// Package disruption renders the PodDisruptionBudgets of roles.
package disruption

import (
	"fmt"

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
// A budget counts pods, and one pod may be unavailable. That is one replica: when a pod of a
// replica is evicted, LeaderWorkerSet makes all of its pods anew, and the budget is used up until
// they are ready. Pods that are not ready may be evicted at any time, since nobody loses anything.
func Render(cluster *plan.ClusterPlan) ([]kube.Object, error) {
	replicas := map[*plan.Role]int{}
	var roles []*plan.Role
	for r := range cluster.Replicas() {
		if r.Extra {
			continue
		}
		if replicas[r.Role]++; replicas[r.Role] == 2 {
			roles = append(roles, r.Role)
		}
	}
	all := make([]kube.Object, 0, len(roles))
	for _, role := range roles {
		labels := map[string]string{naming.LabelService: cluster.Base, naming.LabelRoleName: role.Name}
		name := cluster.BudgetName(role)
		s, err := kube.Encode(apply.PodDisruptionBudget(name, cluster.Target.Namespace).
			WithLabels(labels).
			WithSpec(apply.PodDisruptionBudgetSpec().
				WithMaxUnavailable(intstr.FromInt32(1)).
				WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
				WithSelector(meta.LabelSelector().WithMatchLabels(labels))))
		if err != nil {
			return nil, fmt.Errorf("cannot render PodDisruptionBudget %q: %w", name, err)
		}
		all = append(all, kube.Object{Key: cluster.BudgetKey(role), Resource: s})
	}
	return all, nil
}
