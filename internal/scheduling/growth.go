package scheduling

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// CheckGrowth refuses a change by which what runs in a cluster of the fleet grows by more than is
// free there. The change is applied in place, and the cluster counts it only afterwards, so one
// reserved GPU could become 320. It is checked until the service's request includes it. Later
// reservations of others do not stop this service.
func CheckGrowth(demand *Demand, snapshot *Snapshot) field.ErrorList {
	if snapshot.Request == nil {
		return nil
	}
	c := newChange(demand, snapshot)
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(c.requested.Clusters)) {
		ic := snapshot.Clusters[name]
		if ic == nil || len(ic.Status.Pools) == 0 {
			continue
		}
		there := Candidate{}
		if readCluster(&there, ic); there.StopPolicy == v1alpha1.StopAbandon {
			continue
		}
		at := c.requested.Clusters[name]
		if lacks := c.lacks(&there.Free, at, reservationOf(ic, demand.ServiceID)); lacks != "" {
			errs = append(errs, field.Invalid(field.NewPath("spec", "roles"), at.Name, fmt.Sprintf(
				"what runs in this cluster must not grow by more than is free there: %s. Request less, or move it to another cluster first", lacks)))
		}
	}
	return errs
}

// A change is what a service requested last, and what it needs now.
type change struct {
	// requested is the last request. now has the requirements of the pods as they are now.
	requested, now *reservation.CapacityRequest
	// wanted are the replicas as they are now.
	wanted map[key.ReplicaID]reservation.ReplicaRequest
	// states are what exists of the service, by the cluster's name in the placement.
	states map[string]*ClusterState
}

func newChange(demand *Demand, snapshot *Snapshot) *change {
	c := &change{
		requested: snapshot.Request,
		now:       &reservation.CapacityRequest{PodRequirements: demand.PodRequirements},
		wanted:    map[key.ReplicaID]reservation.ReplicaRequest{},
		states:    snapshot.States,
	}
	for _, r := range reservation.Replicas(demand.Groups) {
		c.wanted[r.Name] = r
	}
	return c
}

// lacks says what a cluster has too little of for what runs there to grow, or nothing.
// reserved is the service's reservation there, or nil.
func (c *change) lacks(free *capacity.Free, at reservation.ClusterRequest, reserved *v1alpha1.Reservation) string {
	before, after := c.running(at, reserved)
	grown := reservation.Grown(c.requested, before, c.now, after)
	resources, changed := capacity.Resources{}, false
	if reserved != nil {
		resources, changed = capacity.ResourcesOf(reserved.Resources), reserved.RequirementsChanged
	}
	if len(grown) == 0 || c.now.CoveredBy(resources, after) {
		return ""
	}
	if lacks := free.Shortage(grown); lacks != "" {
		return lacks
	}
	// Several edits may fit one by one and not together: the cluster counts what was reserved
	// until it has answered the latest request.
	if lacks := free.Shortage(c.now.Beyond(resources, after)); lacks != "" {
		return lacks
	}
	if changed {
		return "what an earlier change needs does not fit there"
	}
	return ""
}

// running are the replicas that are reserved or exist in a cluster, as they were requested,
// and those of them that are still wanted, as they are now.
func (c *change) running(at reservation.ClusterRequest, reserved *v1alpha1.Reservation) (before, after []reservation.ReplicaRequest) {
	has := map[key.ReplicaID]bool{}
	if reserved != nil {
		for _, name := range ReplicasFromStatus(reserved.Replicas) {
			has[name] = true
		}
	}
	state := c.states[at.Name]
	for _, r := range reservation.Replicas(at.Groups) {
		if !has[r.Name] && (state == nil || !state.Present[r.Name]) {
			continue
		}
		before = append(before, r)
		if now, ok := c.wanted[r.Name]; ok {
			after = append(after, now)
		}
	}
	return before, after
}
