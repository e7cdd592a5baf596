package scheduling

import (
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// Pins are those of the pods of some replicas.
type Pins map[key.ReplicaID]*capacity.Pin

// pins returns the pins of the pods that run in a cluster. A new replica is pinned to the pool of
// its grant. One that exists keeps the pin that it has, or has none, whatever the cluster says now:
// another pin is another pod template, which restarts its pods. A pin ends when the user selects
// other nodes than those of its pool. That restarts the pods anyway. Until then the object of the
// replica notes the pin, so that it returns with the former selection.
func (v *view) pins(m member, d *Decision) Pins {
	if len(d.Run) == 0 {
		return nil
	}
	pins := Pins{}
	at := v.snapshot.States[m.target.Cluster]
	grants, _ := v.granted(m.inferenceCluster)
	for _, r := range reservation.Replicas(v.groups(m)) {
		var pin *capacity.Pin
		switch {
		case !d.Run[r.Name]:
		case at != nil && at.Present[r.Name]:
			pin = at.Pins[r.Name]
		default:
			pin = v.poolOf(m.inferenceCluster, grants[r.Name].Pool)
		}
		if pin != nil && v.admits(pin, &r) {
			pins[r.Name] = pin
		}
	}
	return pins
}

// admits tells whether the pods of a replica can have a pin beside their node selectors.
func (v *view) admits(pin *capacity.Pin, r *reservation.ReplicaRequest) bool {
	for name := range r.Pods {
		if !pin.Admits(v.demand.PodRequirements[name].NodeSelector) {
			return false
		}
	}
	return true
}

// poolOf returns the pin to a pool of a cluster, or nil if its nodes have no labels that are known.
func (v *view) poolOf(inferenceCluster, name string) *capacity.Pin {
	ic := v.clusters[inferenceCluster]
	if ic == nil || name == "" {
		return nil
	}
	for i := range ic.Status.Pools {
		if p := &ic.Status.Pools[i]; p.Name == name {
			return capacity.NewPin(name, p.NodeSelector)
		}
	}
	return nil
}
