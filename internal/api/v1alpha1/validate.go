package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Validate returns all errors that show in a service alone. It repeats the rules of the
// schema, because an XR may have been stored under another one, and adds those that a
// schema cannot express. It does not check templates, the configuration of the endpoint
// picker, or the service against the Input.
//
// Validation does not loop over replicas, and reads lists only up to their limits. A
// mistyped number or a huge XR therefore costs no more than an error.
func Validate(xr *InferenceService, claim ClaimReference) field.ErrorList {
	spec := field.NewPath("spec")
	name, tenant := Identity(xr.Kind, &xr.ObjectMeta, claim)
	errs := validateIdentity(name, tenant)
	if p := xr.Spec.ProfileName; p != "" {
		errs = append(errs, check.Label(spec.Child("profileName"), p)...)
	}
	errs = append(errs, validateModel(spec.Child("model"), xr.Spec.Model)...)
	errs = append(errs, validateAdapterCache(spec.Child("adapterCache"), xr.Spec.AdapterCache)...)
	errs = append(errs, validateRoles(spec.Child("roles"), xr.Spec.Roles)...)
	if n := xr.Spec.Replicas; n != nil {
		errs = append(errs, check.Between(spec.Child("replicas"), *n, 0, MaxGroups)...)
	}
	errs = append(errs, validateScaling(spec, &xr.Spec)...)
	errs = append(errs, validateScheduling(spec.Child("schedulingStrategy"), &xr.Spec)...)
	errs = append(errs, validateRollout(spec.Child("rollout"), xr.Spec.Rollout)...)
	errs = append(errs, validatePlacement(spec.Child("placement"), xr.Spec.Placement, tenant, xr.Kind == KindClaimedService)...)
	return append(errs, validateNames(spec.Child("roles"), &xr.Spec, name, tenant)...)
}

func validateIdentity(name, tenant string) field.ErrorList {
	var errs field.ErrorList
	meta := field.NewPath("metadata")
	switch long := check.Length(meta.Child("name"), name, validation.DNS1035LabelMaxLength); {
	case len(long) > 0:
		errs = append(errs, long...)
	case len(validation.IsDNS1035Label(name)) > 0:
		errs = append(errs, field.Invalid(meta.Child("name"), text.Value(name), "must consist of lower case letters, digits and '-', start with a letter and end with a letter or digit: it becomes part of DNS names"))
	}
	if tenant == "" {
		errs = append(errs, field.Required(meta.Child("namespace"), "must be set: a service runs in its own namespace, or in that of its claim"))
	}
	return errs
}

// A unique finds names that appear more than once in a list. It has the path at which each one appears first.
type unique map[string]*field.Path

func (u unique) check(path *field.Path, name string) field.ErrorList {
	if first := u[name]; name != "" && first != nil {
		e := field.Duplicate(path, text.Value(name))
		e.Detail = fmt.Sprintf("must differ from %s, which is the same", first)
		return field.ErrorList{e}
	}
	u[name] = path
	return nil
}
