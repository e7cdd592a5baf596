package plan

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
)

// checkGrowth refuses a change that makes what runs in a cluster of the fleet larger than all
// that is free there. Such a change is applied where it runs, and the cluster counts it
// afterwards: one GPU that was granted would become 320. It is looked at while it is new,
// until the ask has it: what others are granted later is no reason to stop this service.
func (f *fleetPlanner) checkGrowth() field.ErrorList {
	if f.world.Ask == nil {
		return nil
	}
	units, shapes := f.demand()
	now := &fleet.Ask{Shapes: shapes}
	wanted := map[string]fleet.Replica{}
	for _, u := range units {
		for _, r := range u.Replicas {
			wanted[r.Name] = r
		}
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(f.world.Ask.Clusters)) {
		ic := f.world.Clusters[name]
		if ic == nil || len(ic.Status.Pools) == 0 || dead(ic) {
			continue
		}
		before, after := f.holding(f.world.Ask.Clusters[name], ic, wanted)
		grown := fleet.Grown(f.world.Ask, before, now, after)
		granted, unfit := fleet.Resources{}, false
		if a := f.allocation(ic); a != nil {
			granted, unfit = fleet.Amounts(a.Resources), a.Unfit
		}
		if len(grown) == 0 || now.Covers(granted, after) {
			continue
		}
		c := fleet.Candidate{}
		readCluster(&c, ic)
		lacks := c.Room.Lacks(grown)
		if lacks == "" {
			// Several edits, each of which would have room, may not have it together: the cluster
			// counts what was granted, until it grants what was asked for since.
			lacks = c.Room.Lacks(now.Beyond(granted, after))
		}
		if lacks == "" && unfit {
			lacks = "what it needs since an earlier change does not fit there"
		}
		if lacks == "" {
			continue
		}
		errs = append(errs, field.Invalid(field.NewPath("spec", "roles"), f.world.Ask.Clusters[name].As, fmt.Sprintf(
			"what runs in this cluster must not grow by more than is free there: %s. Request less, or let it run elsewhere first", lacks)))
	}
	return errs
}

// holding are the replicas that were granted in a cluster, or are there, as they were asked
// for, and those of them that are still wanted, as they are now.
func (f *fleetPlanner) holding(at fleet.AskedCluster, ic *v1alpha1.InferenceCluster, wanted map[string]fleet.Replica) (before, after []fleet.Replica) {
	a, place := f.allocation(ic), f.world.Places[at.As]
	for _, u := range at.Units {
		for _, r := range u.Replicas {
			if (a == nil || !slices.Contains(a.Replicas, r.Name)) && (place == nil || !place.Present[r.Name]) {
				continue
			}
			before = append(before, r)
			if w, ok := wanted[r.Name]; ok {
				after = append(after, w)
			}
		}
	}
	return before, after
}

func dead(ic *v1alpha1.InferenceCluster) bool {
	return slices.ContainsFunc(ic.Spec.Taints, func(t v1alpha1.Taint) bool { return t.Effect == v1alpha1.TaintDead })
}
