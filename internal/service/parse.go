package service

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/servingprofile"
)

var xrView = incoming.NewCompositeView[composite.XR[v1alpha1.InferenceServiceSpec]]()

// A parsed request has the service, its spec and the Input.
type parsed struct {
	service naming.Identity
	spec    *v1alpha1.InferenceServiceSpec
	input   *inputv1alpha1.Input
	// document is the spec as it was decoded, with the profile that it names.
	document *structpb.Value
	// profile is nil if the service names none, or if it cannot be merged, which unmerged tells.
	profile  *servingprofile.Applied
	unmerged bool
	// unnumbered are the indexes of the roles for which the spec says no number of replicas.
	unnumbered []int
}

// parse reads a request. It reports every problem that it finds, and always
// returns what it could read.
func parse(req incoming.Request) (parsed, field.ErrorList) {
	in, errs := composite.Input(req.Input())
	if tooLarge := composite.CheckBounds(req.Composite()); len(tooLarge) > 0 {
		return parsed{spec: &v1alpha1.InferenceServiceSpec{}, input: in}, append(errs, tooLarge...)
	}
	of, profile, unmerged := withProfile(req.Composite(), in)
	if tooLarge := composite.CheckBounds(of); profile != nil && len(tooLarge) > 0 {
		profile.Explain(tooLarge)
		return parsed{spec: &v1alpha1.InferenceServiceSpec{}, input: in}, append(errs, tooLarge...)
	}
	x, unread := composite.Read(xrView, of)
	var unnumbered []int
	for i := range x.Spec.Roles {
		if x.Spec.Roles[i].Replicas == nil {
			unnumbered = append(unnumbered, i)
		}
	}
	v1alpha1.Default(&x.Spec)
	service := &v1alpha1.InferenceService{TypeMeta: x.TypeMeta, ObjectMeta: x.ObjectMeta(), Spec: x.Spec}
	errs = append(errs, unread...)
	errs = append(errs, withoutTemplates(composite.WithoutConsequences(v1alpha1.Validate(service, x.Claim), unread), unmerged)...)
	if !composite.InputInvalid(errs) {
		// An Input with problems does not say which profiles there are.
		nameTemplates(errs, service.Spec.Roles, in.Profiles)
		errs = append(errs, unmerged...)
	}
	identity := x.Identity()
	identity.Grouped = x.Spec.Replicas != nil
	return parsed{
		service:  identity,
		spec:     &service.Spec,
		input:    in,
		document: of.Spec(),
		profile:  profile,
		unmerged: len(unmerged) > 0,

		unnumbered: unnumbered,
	}, errs
}

// withProfile returns a service with the profile that it names under its spec.
func withProfile(c incoming.Composite, in *inputv1alpha1.Input) (incoming.Composite, *servingprofile.Applied, field.ErrorList) {
	spec, profile, errs := servingprofile.Apply(c.Spec().GetStructValue(), in.Profiles)
	if profile == nil {
		return c, nil, errs
	}
	return c.WithSpec(spec), profile, nil
}

// addedByModel matches a path into an element of a container or a pod that spec.model adds: a variable with the
// token, a volume, or where it is mounted.
var addedByModel = regexp.MustCompile(`^spec(\.roles\[\d+\]\.\w+\.spec(?:\.\w+\[\d+\])?\.(?:env|volumes|volumeMounts)\[\d+\])`)

// withoutAdded removes the errors about what the function adds to the pods because of spec.model, if there are
// errors about spec.model itself.
func withoutAdded(errs field.ErrorList, document *structpb.Value) field.ErrorList {
	if !slices.ContainsFunc(errs, func(e *field.Error) bool { return strings.HasPrefix(e.Field, "spec.model.") }) {
		return errs
	}
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		m := addedByModel.FindStringSubmatch(e.Field)
		if m == nil {
			return false
		}
		_, rest := kube.Find(document, m[1])
		return rest != ""
	})
}

// withoutTemplates removes the errors about missing templates if no profile could be merged: it may
// have them.
func withoutTemplates(errs, unmerged field.ErrorList) field.ErrorList {
	if len(unmerged) == 0 {
		return errs
	}
	return slices.DeleteFunc(errs, lacksTemplate)
}

// lacksTemplate tells whether an error is about a role without a template.
func lacksTemplate(e *field.Error) bool {
	return e.Type == field.ErrorTypeRequired && strings.HasSuffix(e.Field, "].template")
}

// nameTemplates adds to the errors about missing templates which profiles have one, which the validation of a
// service alone does not know.
func nameTemplates(errs field.ErrorList, roles []v1alpha1.Role, profiles []inputv1alpha1.Profile) {
	if len(profiles) == 0 {
		return
	}
	at := map[string]string{}
	for i := range roles[:min(len(roles), v1alpha1.MaxRoles)] {
		at[field.NewPath("spec", "roles").Index(i).Child("template").String()] = string(roles[i].ComponentType)
	}
	for _, e := range errs {
		if of := at[e.Field]; of != "" && lacksTemplate(e) {
			e.Detail += ": " + cmp.Or(servingprofile.WithTemplate(profiles, of), "so far, the Input has none")
		}
	}
}
