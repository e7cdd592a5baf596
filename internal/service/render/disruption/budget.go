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
// A budget counts pods, and all but one have to be ready for an eviction. That protects whole
// replicas: when a pod is evicted, LeaderWorkerSet makes all pods of its replica anew, and no other
// one may be evicted until they are ready. maxUnavailable would not do: it counts the pods that
// exist, and between two generations of a replica there are none
// (pkg/controller/disruption/disruption.go of Kubernetes v1.36). Pods that are not ready may be
// evicted at any time, since nobody loses anything.
func Render(cluster *plan.ClusterPlan) ([]kube.Object, error) {
	replicas, pods := map[*plan.Role]int{}, map[*plan.Role]int32{}
	var roles []*plan.Role
	for r := range cluster.Replicas() {
		if r.Extra {
			continue
		}
		pods[r.Role] += r.Nodes
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
				WithMinAvailable(intstr.FromInt32(pods[role] - 1)).
				WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
				WithSelector(meta.LabelSelector().WithMatchLabels(labels))))
		if err != nil {
			return nil, fmt.Errorf("cannot render PodDisruptionBudget %q: %w", name, err)
		}
		all = append(all, kube.Object{Key: cluster.BudgetKey(role), Resource: s})
	}
	return all, nil
}
