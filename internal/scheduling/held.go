package scheduling

import (
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// hold compares what a cluster of the fleet has granted with what is requested from now on. What
// exists and has grown or changed keeps its pods until the cluster has granted the change. What
// does not exist waits: its grant was for something else.
func (v *view) hold(m member, c *Candidate, d *Decision, request *reservation.CapacityRequest) {
	if m.inferenceCluster == "" || d.Abandoned {
		return
	}
	granted := v.granted(m.inferenceCluster)
	for _, r := range reservation.Replicas(request.Clusters[m.inferenceCluster].Groups) {
		if !d.Run[r.Name] {
			continue
		}
		grant, has := granted[r.Name]
		switch {
		case has && grant.generation >= r.Generation:
		case c.Present[r.Name]:
			if d.Held == nil {
				d.Held = map[key.ReplicaID]int32{}
			}
			d.Held[r.Name] = grant.nodes
		default:
			delete(d.Run, r.Name)
			d.Pending = append(d.Pending, r.Name)
		}
	}
}

// A granted replica has the generation that its grant answers, and its nodes in that grant, or 0
// if they are not known.
type granted struct {
	generation int64
	nodes      int32
}

// granted returns what a cluster has granted to the service.
func (v *view) granted(inferenceCluster string) map[key.ReplicaID]granted {
	ic := v.clusters[inferenceCluster]
	if ic == nil {
		return nil
	}
	reserved := reservationOf(ic, v.demand.ServiceID)
	if reserved == nil {
		return nil
	}
	return grantsFromStatus(reserved.Replicas)
}

func grantsFromStatus(list []v1alpha1.Replicas) map[key.ReplicaID]granted {
	all := map[key.ReplicaID]granted{}
	for i := range list {
		for _, r := range ReplicasFromStatus(list[i : i+1]) {
			all[r] = granted{list[i].Generation, list[i].Nodes}
		}
	}
	return all
}
