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

// CheckGrowth refuses a change that makes what runs in a cluster of the fleet larger than all
// that is free there. Such a change is applied where it runs, and the cluster counts it
// afterwards: one GPU that was reserved would become 320. A change is checked while it is
// new, until the request has it. What is reserved for others later does not stop this service.
func CheckGrowth(s *Demand, snapshot *Snapshot) field.ErrorList {
	if snapshot.Request == nil {
		return nil
	}
	v := &view{demand: s, snapshot: snapshot}
	now := &reservation.Request{PodRequirements: s.PodRequirements}
	wanted := map[key.Replica]reservation.Replica{}
	for _, r := range reservation.Replicas(s.Groups) {
		wanted[r.Name] = r
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(snapshot.Request.Clusters)) {
		ic := snapshot.Clusters[name]
		if ic == nil || len(ic.Status.Pools) == 0 {
			continue
		}
		c := Candidate{}
		if readCluster(&c, ic); c.StopPolicy == v1alpha1.StopAbandon {
			continue
		}
		if lacks := v.lacks(&c, ic, name, now, wanted); lacks != "" {
			errs = append(errs, field.Invalid(field.NewPath("spec", "roles"), snapshot.Request.Clusters[name].Name, fmt.Sprintf(
				"what runs in this cluster must not grow by more than is free there: %s. Request less, or move it to another cluster first", lacks)))
		}
	}
	return errs
}

// lacks says what a cluster has too little of for what runs there to grow, or nothing.
func (v *view) lacks(c *Candidate, ic *v1alpha1.InferenceCluster, name string, now *reservation.Request, wanted map[key.Replica]reservation.Replica) string {
	before, after := v.running(v.snapshot.Request.Clusters[name], ic, wanted)
	grown := reservation.Grown(v.snapshot.Request, before, now, after)
	reserved, changed := capacity.Resources{}, false
	if a := v.reservation(ic); a != nil {
		reserved, changed = capacity.ResourcesOf(a.Resources), a.RequirementsChanged
	}
	if len(grown) == 0 || now.Covers(reserved, after) {
		return ""
	}
	if lacks := c.Free.Shortage(grown); lacks != "" {
		return lacks
	}
	// Several edits may fit one by one and not together: the cluster counts what was reserved
	// until it has answered the latest request.
	if lacks := c.Free.Shortage(now.Beyond(reserved, after)); lacks != "" {
		return lacks
	}
	if changed {
		return "what an earlier change needs does not fit there"
	}
	return ""
}

// running are the replicas that are reserved or exist in a cluster, as they were requested,
// and those of them that are still wanted, as they are now.
func (v *view) running(at reservation.ClusterRequest, ic *v1alpha1.InferenceCluster, wanted map[key.Replica]reservation.Replica) (before, after []reservation.Replica) {
	a, state := v.reservation(ic), v.snapshot.States[at.Name]
	reserved := map[key.Replica]bool{}
	if a != nil {
		for _, name := range ReplicasOf(a.Replicas) {
			reserved[name] = true
		}
	}
	for _, r := range reservation.Replicas(at.Groups) {
		if !reserved[r.Name] && (state == nil || !state.Present[r.Name]) {
			continue
		}
		before = append(before, r)
		if now, ok := wanted[r.Name]; ok {
			after = append(after, now)
		}
	}
	return before, after
}
