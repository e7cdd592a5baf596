package observe

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// mayServe tells whether a replica serves, or it is not known that it does not: its status may be older
// than its spec, or its cluster out of reach.
func (r *ObservedState) mayServe(k key.Key) bool {
	s := r.Replica(k)
	return s.Serving || s.Exists && !s.Broken
}

// servingRolesRemoved finds roles that were removed while they serve, and before every role that is
// left serves. All that they run would be deleted at once. A role that is renamed is such a one. What is
// being deleted already cannot be kept.
func (r *ObservedState) servingRolesRemoved() field.ErrorList {
	waits := map[string]bool{}
	for _, role := range r.plan.Roles {
		waits[role.Name] = role.Replicas > 0
	}
	removed := map[string]bool{}
	for _, k := range r.req.ObservedKeys() {
		id, is := k.ReplicaID()
		_, role, _, ok := id.Parts()
		if _, kept := waits[role]; is && ok && !kept && r.req.Observed(k).DeletionTimestamp() == "" && r.mayServe(k) {
			removed[role] = true
		}
	}
	if len(removed) == 0 {
		return nil
	}
	for _, k := range r.req.ObservedKeys() {
		id, is := k.ReplicaID()
		if _, role, _, ok := id.Parts(); is && ok && waits[role] && r.Replica(k).Serving {
			waits[role] = false
		}
	}
	maps.DeleteFunc(waits, func(_ string, waits bool) bool { return !waits })
	if len(waits) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "roles"), fmt.Sprintf(
		"must keep roles that serve requests until the others do. Removed: %s. Not ready: %s. To remove a role at once, set its replicas to 0 first",
		text.Names(slices.Sorted(maps.Keys(removed)), maxNames), text.Names(slices.Sorted(maps.Keys(waits)), maxNames)))}
}
