package plan

import (
	"maps"
	"slices"
	"sync"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// extraDemand returns what a rollout runs in clusters of the fleet beyond what is wanted, by the
// cluster. Capacity has to be reserved for it, so it is part of what the service requests. Each
// cluster has its own: one without room does not hold up the others.
func (p *Plan) extraDemand(running *RunningView, pods []map[string]int64) map[string][]reservation.ReplicaGroup {
	all := make(map[string][]reservation.ReplicaGroup, len(p.snapshot.States))
	p.extra = make(map[string]map[string][]extraUnit, len(p.snapshot.States))
	elsewhere := p.movable()
	for name := range p.snapshot.States {
		wanted := sync.OnceValue(func() *ClusterPlan { return p.wanted(name, elsewhere) })
		ids := p.beyond(name, running, wanted)
		if *p.Rollout.MaxSurge == 0 && len(ids) == 0 {
			continue
		}
		p.extra[name] = p.extraUnits(wanted(), ids, running)
		all[name] = p.requestExtra(wanted(), p.extra[name], pods)
	}
	return all
}

// movable are the replicas that are ready in any cluster and may move to another one. Outside of the fleet none moves. Nor does any under
// Replicate: each cluster has its own of each name.
func (p *Plan) movable() map[key.ReplicaID]bool {
	if !p.inFleet || p.policy() == v1alpha1.PlacementReplicate {
		return nil
	}
	all := map[key.ReplicaID]bool{}
	for _, at := range p.snapshot.States {
		maps.Copy(all, at.Ready)
	}
	return all
}

// wanted is the plan of a cluster with the replicas that exist there, and those that the service last
// requested of it. The others run elsewhere. One that is ready elsewhere serves there until it has started here. It is not
// missing, and no extra replica keeps the room for which it waits.
func (p *Plan) wanted(cluster string, elsewhere map[key.ReplicaID]bool) *ClusterPlan {
	here := maps.Clone(p.snapshot.States[cluster].Present)
	if p.snapshot.Request != nil {
		for _, at := range p.snapshot.Request.Clusters {
			if at.Name != cluster {
				continue
			}
			for _, r := range reservation.Replicas(at.Groups) {
				here[r.Name] = here[r.Name] || !elsewhere[r.Name]
			}
		}
	}
	c := p.layout(scheduling.Target{Cluster: cluster}, func(r key.ReplicaID) bool { return here[r] })
	return &c
}

// requestExtra returns what extra units of a cluster request. A part of a unit is of no use.
func (p *Plan) requestExtra(c *ClusterPlan, units map[string][]extraUnit, pods []map[string]int64) []reservation.ReplicaGroup {
	var all []reservation.ReplicaGroup
	at := map[unitID]int{}
	for _, r := range p.extraReplicas(c, units) {
		of, name := unitID{p.kind(r.Role), p.unitIndex(&r)}, key.GroupID(r.ID)
		if p.Service.Grouped && r.Group >= p.groups {
			of.kind, name = "", key.GroupOf(r.Group)
		}
		i, known := at[of]
		if !known {
			i = len(all)
			at[of] = i
			all = append(all, reservation.ReplicaGroup{Name: name})
		}
		all[i].Replicas = append(all[i].Replicas, reservation.ReplicaRequest{Name: r.ID, Pods: pods[slices.Index(p.Roles, r.Role)], Required: true})
	}
	return all
}
