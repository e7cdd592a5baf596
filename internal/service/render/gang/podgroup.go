// Package gang renders the PodGroup of a gang, whose pods Volcano starts all at once or not at
// all.
package gang

import (
	"strconv"

	metav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	apply "volcano.sh/apis/pkg/client/applyconfiguration/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// Render returns the PodGroup of one group. Volcano owns its status. If no queue is named,
// Volcano's webhook sets one.
func Render(cluster *plan.ClusterPlan, g *plan.Group, grouped bool) (kube.Object, error) {
	pg := g.PodGroup
	spec := apply.PodGroupSpec().
		WithMinMember(pg.MinMember).
		WithMinTaskMember(pg.MinTaskMember)
	if len(pg.MinResources) > 0 {
		spec.WithMinResources(pg.MinResources)
	}
	if pg.Queue != "" {
		spec.WithQueue(pg.Queue)
	}
	if pg.PriorityClassName != "" {
		spec.WithPriorityClassName(pg.PriorityClassName)
	}
	if pg.NetworkTopology != nil {
		spec.WithNetworkTopology(topology(pg.NetworkTopology))
	}
	for _, s := range pg.SubGroups {
		spec.WithSubGroupPolicy(subGroup(cluster, g, s, grouped))
	}
	// The name is set because the pods' annotations refer to it.
	o := apply.PodGroup(pg.Name, cluster.Target.Namespace).
		WithLabels(map[string]string{naming.LabelService: cluster.Base}).
		WithSpec(spec)
	if grouped {
		o.WithLabels(map[string]string{naming.LabelGroupIndex: strconv.Itoa(int(g.Index))})
	}
	return kube.Render(pg.Key, o)
}

func topology(t *v1alpha1.NetworkTopology) *apply.NetworkTopologySpecApplyConfiguration {
	n := apply.NetworkTopologySpec().WithMode(v1beta1.NetworkTopologyMode(t.Mode))
	if t.HighestTierAllowed != nil {
		n.WithHighestTierAllowed(int(*t.HighestTierAllowed))
	}
	if t.HighestTierName != "" {
		n.WithHighestTierName(t.HighestTierName)
	}
	return n
}

// subGroup makes each replica of a role a subgroup: pods with the same replica index start
// together.
func subGroup(cluster *plan.ClusterPlan, g *plan.Group, s plan.SubGroup, grouped bool) *apply.SubGroupPolicySpecApplyConfiguration {
	pods := map[string]string{naming.LabelService: cluster.Base, naming.LabelRoleName: s.Role}
	if grouped {
		pods[naming.LabelGroupIndex] = strconv.Itoa(int(g.Index))
	}
	return apply.SubGroupPolicySpec().
		WithName(s.Role).
		WithSubGroupSize(s.Size).
		WithMinSubGroups(s.Min).
		WithLabelSelector(metav1.LabelSelector().WithMatchLabels(pods)).
		WithMatchLabelKeys(naming.LabelReplicaIndex)
}
