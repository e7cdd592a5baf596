package scheduling

import (
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// hold compares what a cluster of the fleet has granted with what is requested from now on. What
// exists and has grown or changed keeps its pods until the cluster has granted the change. What
// does not exist waits: its grant was for something else.
//
// While the answers of the cluster are not read, what was held stays held, and only changes are held
// anew. A service that runs does not read them, and nothing that runs is touched because an
// InferenceCluster is gone.
func (v *view) hold(m member, c *Candidate, d *Decision, request *reservation.CapacityRequest) {
	if m.inferenceCluster == "" && m.deselected {
		v.holdUnknown(m, d)
	}
	if m.inferenceCluster == "" {
		return
	}
	d.Held, d.Generations = map[key.ReplicaID]bool{}, map[key.ReplicaID]int64{}
	if d.Abandoned {
		for name := range c.Present {
			d.Held[name] = true // Nobody grants a change there.
		}
		return
	}
	granted, readable := v.granted(m.inferenceCluster)
	before := v.lastRequested(m.inferenceCluster)
	at := request.Clusters[m.inferenceCluster]
	all := v.reserved(&at, granted)
	for i := range at.Groups {
		for j := range at.Groups[i].Replicas {
			r := &at.Groups[i].Replicas[j]
			d.Generations[r.Name] = r.Generation
			reserved := all[r.Name]
			if last, requested := before[r.Name]; !readable && requested {
				reserved = !last.Held && last.Generation == r.Generation && !v.changes(v.snapshot.States[m.target.Cluster], r.Name)
			}
			switch {
			case !d.Run[r.Name] || reserved:
			case c.Present[r.Name]:
				d.Held[r.Name], r.Held = true, true
			default:
				d.wait(r.Name)
			}
		}
	}
}

// wait keeps a replica from starting.
func (d *Decision) wait(name key.ReplicaID) {
	delete(d.Run, name)
	if !d.Extra[name] {
		d.Pending = append(d.Pending, name)
	}
}

// holdUnknown holds what leaves a cluster that the request does not name, if its pods would change.
// It was reserved something there once, and nobody reserves the change.
func (v *view) holdUnknown(m member, d *Decision) {
	for r := range d.Run {
		if v.changes(v.snapshot.States[m.target.Cluster], r) {
			if d.Held == nil {
				d.Held = map[key.ReplicaID]bool{}
			}
			d.Held[r] = true
		}
	}
}

// changes tells whether a replica runs with other pods than those that the service wants now, by
// what its object notes. The request may have been forged, so that nothing seems to change.
func (v *view) changes(at *ClusterState, r key.ReplicaID) bool {
	if at == nil || !at.Present[r] {
		return false
	}
	runs := at.Notes[r].PodsHash
	return runs != "" && runs != v.podsHashes[r]
}

// noteReplacing notes which replicas of a request may still have pods that they requested otherwise
// before. That ends when the cluster runs what this request was granted for. Until then, nobody else
// gets the room of these pods. It also notes the newest generation that runs. A later change may be waiting.
func (v *view) noteReplacing(r *reservation.CapacityRequest) {
	for name, at := range r.Clusters {
		state, before := v.snapshot.States[at.Name], v.lastRequested(name)
		granted, _ := v.granted(name)
		if state == nil {
			state = &ClusterState{}
		}
		for i := range at.Groups {
			for j := range at.Groups[i].Replicas {
				now := &at.Groups[i].Replicas[j]
				last, requested := before[now.Name]
				if _, kept := granted[now.Name]; !requested && !kept && !state.Present[now.Name] {
					continue
				}
				runs := newestRun(&last, state.Told[now.Name])
				changed := !requested || last.Replacing || last.Generation != now.Generation
				if now.Replacing = changed && runs != now.Generation; now.Replacing {
					now.Runs = runs
				}
			}
		}
	}
}

// newestRun returns the newest generation that all pods of a replica are known to have been of. It is
// 0 if that is not known.
func newestRun(last *reservation.ReplicaRequest, told Told) int64 {
	runs := last.Generation
	if last.Replacing {
		runs = last.Runs
	}
	if told.Runs {
		runs = max(runs, told.Generation)
	}
	return runs
}

// lastRequested returns what the last request has of a cluster.
func (v *view) lastRequested(inferenceCluster string) map[key.ReplicaID]reservation.ReplicaRequest {
	return reservation.ReplicasByName(v.last.Clusters[inferenceCluster].Groups)
}

// reserved returns those of the requested replicas that are granted as they are requested. A grant without a
// hash may be for any pods: an older version wrote the answer, or a person wrote the status.
func (v *view) reserved(requested *reservation.ClusterRequest, grants map[key.ReplicaID]v1alpha1.Replicas) map[key.ReplicaID]bool {
	generations := map[key.ReplicaID]int64{}
	for r, g := range grants {
		if g.PodsHash == "" || g.PodsHash == v.podsHashes[r] {
			generations[r] = g.Generation
		}
	}
	return requested.Reserved(generations)
}

// granted returns what a cluster has granted to the service, replica by replica, and whether its answers are read.
func (v *view) granted(inferenceCluster string) (map[key.ReplicaID]v1alpha1.Replicas, bool) {
	ic := v.clusters[inferenceCluster]
	if ic == nil || v.snapshot.Unanswered[inferenceCluster] {
		return nil, false
	}
	return v.grantsOf(ic), true
}

// grantsOf returns what a cluster has granted to the service, or nil if it knows nothing of the service.
func (v *view) grantsOf(ic *v1alpha1.InferenceCluster) map[key.ReplicaID]v1alpha1.Replicas {
	reserved := reservationOf(ic, v.demand.ServiceID)
	if reserved == nil {
		return nil
	}
	all, list := map[key.ReplicaID]v1alpha1.Replicas{}, reserved.Replicas
	for i := range list {
		for _, r := range ReplicasFromStatus(list[i : i+1]) {
			all[r] = list[i]
		}
	}
	return all
}
