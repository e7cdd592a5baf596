package observe

import (
	"slices"
	"sync"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// stopFirst advises how to stop roles, so that an edit can be made which what serves forbids. what are the replicas in the sentence.
// With scaling, the InferenceRole has the number. Its limits or an autoscaler raise a 0 there, so only a number in the spec stops
// the role.
func (r *ObservedState) stopFirst(what string, roles ...string) string {
	advice := "set " + what + " to 0 first"
	last := sync.OnceValue(func() scaledStatus { return lastScaling(r.req) })
	if !slices.ContainsFunc(roles, func(name string) bool { return r.scales(name, last) }) {
		return advice
	}
	advice += ", in place of scaling"
	if slices.ContainsFunc(r.plan.ScaledRoles(), func(of *plan.Role) bool {
		return of.Type != v1alpha1.ComponentTypeWorker && slices.Contains(roles, of.Name)
	}) && r.plan.HasRatio() {
		advice += ", and leave out spec.scaling.ratio"
	}
	return advice
}

// scales tells whether a role has scaling, or had it until it was removed from the spec.
func (r *ObservedState) scales(role string, last func() scaledStatus) bool {
	if slices.Contains(r.roleNames(), role) {
		return r.plan.Scales[role] != nil
	}
	return hadScaling(r.req, last, role)
}

// roleNames are the names of the roles in the spec, without the router.
func (r *ObservedState) roleNames() []string {
	var all []string
	for _, of := range r.plan.Roles {
		all = append(all, of.Name)
	}
	return all
}
