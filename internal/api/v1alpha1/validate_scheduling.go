package v1alpha1

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

func validateScheduling(path *field.Path, spec *InferenceServiceSpec) field.ErrorList {
	s := spec.SchedulingStrategy
	if s == nil {
		return nil
	}
	errs := check.Length(path.Child("schedulerName"), s.SchedulerName, MaxName)
	errs = append(errs, check.Optional(path.Child("queueName"), s.QueueName, check.Name)...)
	if s.Gang == nil {
		return errs
	}
	path = path.Child("gang")
	errs = append(errs, check.OneOf(path.Child("mode"), s.Gang.Mode, GangAllOrNothing, GangMinimumFirst, GangNone)...)
	errs = append(errs, validateMinRoleReplicas(path.Child("minRoleReplicas"), s.Gang.MinRoleReplicas, spec.Roles)...)
	errs = append(errs, validateTopology(path.Child("networkTopology"), s.Gang.NetworkTopology)...)
	errs = append(errs, check.Optional(path.Child("priorityClassName"), s.Gang.PriorityClassName, check.Name)...)
	return errs
}

func validateMinRoleReplicas(path *field.Path, minimums map[string]int32, roles []Role) field.ErrorList {
	names, errs := check.Capped(path, slices.Sorted(maps.Keys(minimums)), MaxRoles)
	for _, name := range names {
		p := path.Key(text.Value(name))
		errs = append(errs, check.Between(p, minimums[name], 0, MaxReplicas)...)
		i := slices.IndexFunc(roles, func(r Role) bool { return r.Name == name })
		switch {
		case i < 0:
			errs = append(errs, field.Invalid(p, minimums[name], fmt.Sprintf("must be for a role of this service: one of %q", servingNames(roles))))
		case roles[i].ComponentType == ComponentTypeRouter:
			errs = append(errs, field.Invalid(p, minimums[name], fmt.Sprintf("must not be for the router, which is in no gang: use one of %q", servingNames(roles))))
		}
	}
	return errs
}

// servingNames returns the names of the roles that can be in a gang, for an error.
func servingNames(roles []Role) []string {
	roles = roles[:min(len(roles), MaxRoles)]
	names := make([]string, 0, len(roles))
	for _, r := range roles {
		if r.ComponentType != ComponentTypeRouter {
			names = append(names, text.Value(r.Name))
		}
	}
	return names
}

func validateTopology(path *field.Path, t *NetworkTopology) field.ErrorList {
	if t == nil {
		return nil
	}
	allowed, name := path.Child("highestTierAllowed"), path.Child("highestTierName")
	errs := check.OneOf(path.Child("mode"), t.Mode, TopologyHard, TopologySoft)
	errs = append(errs, check.Length(name, t.HighestTierName, MaxName)...)
	if t.HighestTierAllowed != nil && *t.HighestTierAllowed < 0 {
		errs = append(errs, field.Invalid(allowed, *t.HighestTierAllowed, "must be 0 or more"))
	}
	if t.Mode == TopologySoft {
		const none = "must be left out in mode soft, which has no highest tier"
		if t.HighestTierAllowed != nil {
			errs = append(errs, field.Invalid(allowed, *t.HighestTierAllowed, none))
		}
		if t.HighestTierName != "" {
			errs = append(errs, field.Invalid(name, text.Value(t.HighestTierName), none))
		}
		return errs
	}
	switch {
	case t.HighestTierAllowed == nil && t.HighestTierName == "":
		errs = append(errs, field.Required(allowed, "must be set in mode hard, unless highestTierName is set"))
	case t.HighestTierAllowed != nil && t.HighestTierName != "":
		errs = append(errs, field.Invalid(name, text.Value(t.HighestTierName), "must be left out if highestTierAllowed is set"))
	}
	return errs
}
