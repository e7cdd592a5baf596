package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// ValidateModel returns all errors that show in a model alone, as Validate does for a service. The model
// is defaulted.
func ValidateModel(xr *InferenceModel, claim ClaimReference) field.ErrorList {
	spec, meta := field.NewPath("spec"), field.NewPath("metadata")
	name, tenant := Identity(xr.Kind, &xr.ObjectMeta, claim)
	errs := check.Label(meta.Child("name"), name)
	if tenant == "" {
		errs = append(errs, field.Required(meta.Child("namespace"), "must be set: a model is in the namespace of its service, or its claim is"))
	}
	errs = append(errs, validateServiceName(spec.Child("serviceName"), xr.Spec.ServiceName)...)
	errs = append(errs, validateModelName(spec.Child("modelName"), xr.Spec.ModelName, unique{})...)
	errs = append(errs, validatePriority(spec, xr.Spec.Priority, xr.Spec.Criticality)...)
	errs = append(errs, validateTargets(spec.Child("targets"), xr.Spec.Served().Targets)...)
	for i := range min(len(xr.Spec.Targets), MaxTargets) {
		errs = append(errs, validateAdapter(spec.Child("targets").Index(i).Child("adapter"), xr.Spec.Targets[i].Adapter)...)
	}
	return errs
}

func validateAdapter(at *field.Path, a *Adapter) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := check.Length(at.Child("uri"), a.URI, maxURI)
	errs = append(errs, matches(at.Child("uri"), a.URI, adapterURI, bucketFirst(a.URI, "must be hf://{organization}/{name} or s3://{bucket}/{prefix}"))...)
	known := len(errs) == 0 // See validateModel.
	if a.Revision == "" {
		return errs
	}
	errs = append(errs, check.Length(at.Child("revision"), a.Revision, MaxName)...)
	errs = append(errs, matches(at.Child("revision"), a.Revision, modelRevision, "must be a branch, a tag or a commit")...)
	if known && !strings.HasPrefix(a.URI, schemeHub) {
		errs = append(errs, field.Invalid(at.Child("revision"), text.Value(a.Revision), "must be left out: only an adapter of a hub, "+schemeHub+", has revisions"))
	}
	return errs
}

func validateServiceName(path *field.Path, name string) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "must be the name of an InferenceService in this namespace")}
	case len(validation.IsDNS1035Label(name)) > 0:
		return field.ErrorList{field.Invalid(path, text.Value(name), "must be the name of an InferenceService: lower case letters, digits and '-', starting with a letter and ending with a letter or digit")}
	}
	return nil
}

// validatePriority checks the priority of a model, which has two forms.
func validatePriority(path *field.Path, priority *int32, c Criticality) field.ErrorList {
	errs := check.OneOf(path.Child("criticality"), c, CriticalityCritical, CriticalityStandard, CriticalitySheddable)
	if priority != nil && c != "" {
		errs = append(errs, field.Invalid(path.Child("criticality"), c, "must be left out if priority is set: both set the priority of the model"))
	}
	return errs
}
