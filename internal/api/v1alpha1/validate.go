package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// Validate says everything that is wrong with a service by itself: what its
// schema says, since an XR may have come past it, and what a schema cannot say.
// Not here is what needs a template's content, an endpoint picker's configuration
// or the input of the function.
//
// Nothing here loops over replicas, and lists are looked at up to their limits:
// a mistyped number or a huge XR costs no more than an error.
func Validate(xr *InferenceService, claim ClaimReference) field.ErrorList {
	spec := field.NewPath("spec")
	name, tenant := Identity(xr, claim)
	errs := validateIdentity(name, tenant)
	errs = append(errs, validateRoles(spec.Child("roles"), xr.Spec.Roles)...)
	if n := xr.Spec.Replicas; n != nil {
		errs = append(errs, check.Between(spec.Child("replicas"), *n, 0, MaxGroups)...)
	}
	errs = append(errs, validateScheduling(spec.Child("schedulingStrategy"), &xr.Spec)...)
	errs = append(errs, validatePlacement(spec.Child("placement"), xr.Spec.Placement, tenant, xr.Kind == ClusterKind)...)
	return append(errs, validateNames(spec.Child("roles"), &xr.Spec, name, tenant)...)
}

func validateIdentity(name, tenant string) field.ErrorList {
	var errs field.ErrorList
	meta := field.NewPath("metadata")
	if len(validation.IsDNS1035Label(name)) > 0 {
		errs = append(errs, field.Invalid(meta.Child("name"), check.Shown(name), "must be lower case letters, digits and '-', with a letter first and no '-' last: it becomes part of DNS names"))
	}
	if tenant == "" {
		errs = append(errs, field.Required(meta.Child("namespace"), "a service runs in a namespace: its own, or that of its claim"))
	}
	return errs
}

// A unique finds names that appear more than once in a list.
type unique map[string]bool

func (u unique) check(path *field.Path, name string) field.ErrorList {
	if name != "" && u[name] {
		return field.ErrorList{field.Duplicate(path, check.Shown(name))}
	}
	u[name] = true
	return nil
}
