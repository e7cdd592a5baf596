package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// demand returns what scheduling needs to know of the service: its groups and what they request.
func (p *Plan) demand(running *RunningView) *scheduling.Demand {
	d := &scheduling.Demand{
		ServiceID:     reservation.ServiceID{Namespace: p.Service.Namespace, Name: p.Service.Name, UID: p.Service.UID},
		Claimed:       p.Service.Claimed,
		Placement:     p.spec.Placement,
		HasRouter:     p.Router != nil,
		Waits:         p.Router != nil && p.Router.Waits(),
		HasFleetRoute: p.FleetRoute != nil,
		HasGang:       p.gang.exists(),
		MaxRequested:  reservation.MaxRequested,
	}
	if p.Shared != nil {
		d.Scope = p.Shared.Scope
	}
	if p.FleetRoute != nil {
		d.HostnameBackend = p.FleetRoute.HostnameBackend
	}
	pods := make([]map[string]int64, len(p.Roles))
	d.PodRequirements, d.AnswerAlone = map[string]capacity.PodRequirements{}, map[string]bool{}
	for i, r := range p.Roles {
		pods[i] = map[string]int64{}
		d.AnswerAlone[r.Name] = r.Type == v1alpha1.ComponentTypeWorker
		// Each name contains the role, so an edit of one role renames no requirements of another.
		add := func(name string, t *PodTemplate, requests corev1.ResourceList, n int64) {
			if n > 0 {
				d.PodRequirements[r.Name+"/"+name] = t.requirements(requests)
				pods[i][r.Name+"/"+name] += n
			}
		}
		add("leader", &r.Leader, r.leaderRequests, 1)
		add("worker", &r.Worker, r.workerRequests, int64(r.Nodes)-1)
	}
	for g := range ptr.Deref(p.spec.Replicas, 1) {
		d.Groups = append(d.Groups, p.replicaGroups(g, pods)...)
	}
	d.Extra = p.extraDemand(running, pods)
	p.measure(d, running)
	return d
}

// requirements are what the pods of a template require of a cluster, if they request some resources.
func (t *PodTemplate) requirements(requests corev1.ResourceList) capacity.PodRequirements {
	return capacity.PodRequirements{Requests: capacity.RequestsOf(requests), NodeSelector: t.Spec.NodeSelector, Tolerations: capacity.TolerationsOf(t.Spec.Tolerations)}
}

// measure lets the scheduler measure what can move in parts: several groups. Each role is measured once.
func (p *Plan) measure(d *scheduling.Demand, running *RunningView) {
	if len(d.Groups) < 2 || running.Size == nil {
		return
	}
	sizes := map[*Role]int{}
	d.Room, d.Size = running.Room, func(replica key.ReplicaID) int {
		r := p.RoleOf(replica)
		if _, known := sizes[r]; !known && r != nil {
			sizes[r] = running.Size(r)
		}
		return sizes[r]
	}
}

// replicaGroups returns the replicas of one group of the spec in groups that are never split
// over clusters. Usually that is one group. Under the policy Spread each replica is a group of
// its own, if the service has neither spec.replicas nor prefill or decode roles.
func (p *Plan) replicaGroups(group int32, pods []map[string]int64) []reservation.ReplicaGroup {
	spec := p.spec
	split := spec.Placement != nil && spec.Placement.Policy == v1alpha1.PlacementSpread && !p.Service.Grouped && !hasPrefillOrDecode(spec)
	whole := reservation.ReplicaGroup{Name: key.GroupOf(group)}
	var each []reservation.ReplicaGroup
	for i, r := range p.Roles {
		minimum := p.required(r)
		for j := range r.Replicas {
			replica := reservation.ReplicaRequest{Name: p.replicaID(group, r, j), Pods: pods[i], Required: j < minimum && !split}
			whole.Replicas = append(whole.Replicas, replica)
			each = append(each, reservation.ReplicaGroup{Name: key.GroupID(replica.Name), Replicas: []reservation.ReplicaRequest{replica}})
		}
	}
	if split {
		return each
	}
	return []reservation.ReplicaGroup{whole}
}

// hasPrefillOrDecode tells whether a service has prefill or decode, which need each other in one cluster.
func hasPrefillOrDecode(spec *v1alpha1.InferenceServiceSpec) bool {
	return hasType(spec, v1alpha1.ComponentTypePrefiller) || hasType(spec, v1alpha1.ComponentTypeDecoder)
}

// required is the number of replicas of a role that a cluster must reserve at once. With a gang
// it is the gang's minimum. Without one it is 0, except that prefill and decode need one
// replica each, because neither serves requests without the other.
func (p *Plan) required(r *Role) int32 {
	switch {
	case p.gang.exists():
		return p.gang.minimum(r)
	case hasPairs(p.spec):
		return min(1, r.Replicas)
	}
	return 0
}
