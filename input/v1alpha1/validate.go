package v1alpha1

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Limits of the input. The markers of the types repeat them for the schema.
const (
	maxPodObservationLimit = 1000
	maxImage               = 1024
	maxParentRefs          = 32
	maxKind                = 63
)

// kindPattern is that of Gateway API's Kind.
var kindPattern = regexp.MustCompile(`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`)

// Validate returns all errors of an Input. No API server validates it, because it is part
// of a Composition.
func Validate(in *Input, root *field.Path) field.ErrorList {
	errs := validateEndpointPicker(root.Child("endpointPicker"), &in.EndpointPicker)
	errs = append(errs, check.Length(root.Child("sidecar", "image"), in.Sidecar.Image, maxImage)...)
	errs = append(errs, check.OneOf(root.Child("sidecar", "ssrfProtection"), in.Sidecar.SSRFProtection, Enabled, Disabled)...)
	errs = append(errs, check.Resources(root.Child("sidecar", "resources"), in.Sidecar.Resources)...)
	errs = append(errs, validatePort(root.Child("ray", "port"), in.Ray.Port)...)
	errs = append(errs, validateModelLoader(root.Child("modelLoader"), &in.ModelLoader)...)
	experimental := in.Routes != nil && in.Routes.ExperimentalFields == Allow
	errs = append(errs, validateParentRefs(root.Child("gateway", "parentRefs"), in.Gateway.ParentRefs, experimental)...)
	errs = append(errs, validateParentRefs(root.Child("fleet", "parentRefs"), in.Fleet.ParentRefs, experimental)...)
	errs = append(errs, check.Label(root.Child("fleet", "namespace"), in.Fleet.Namespace)...)
	if h := in.Fleet.HostnameBackends; h != "" {
		errs = append(errs, check.OneOf(root.Child("fleet", "hostnameBackends"), h, HostnameEndpointSlice, HostnameExternalName, HostnameServiceEntry)...)
	}
	errs = append(errs, validateSchedulingStrategy(root.Child("defaults", "schedulingStrategy"), &in.Defaults.SchedulingStrategy)...)
	errs = append(errs, validateProfiles(root.Child("profiles"), in.Profiles)...)
	errs = append(errs, check.OneOf(root.Child("missingKinds"), in.MissingKinds, MissingKindsFail, MissingKindsSkip)...)
	errs = append(errs, validateMonitoring(root.Child("monitoring"), &in.Monitoring)...)
	errs = append(errs, validateScaling(root.Child("scaling"), &in.Scaling)...)
	errs = append(errs, validatePolicies(in, root)...)
	errs = append(errs, validateMetadata(root, in.Labels, in.Annotations)...)
	if n := in.PodObservationLimit; n != nil {
		errs = append(errs, check.Between(root.Child("podObservationLimit"), *n, 0, maxPodObservationLimit)...)
	}
	return errs
}

func validateEndpointPicker(path *field.Path, e *EndpointPickerSettings) field.ErrorList {
	errs := check.OneOf(path.Child("dialect"), e.Dialect, DialectGAIE, DialectLLMD)
	switch {
	case e.Image != "" && e.Dialect == "":
		errs = append(errs, field.Required(path.Child("dialect"), "must be the dialect that the image reads, GAIE or LLMD; to replace only a default image, use images"))
	case e.Image == "" && e.Dialect != "":
		errs = append(errs, field.Required(path.Child("image"), "must be an image that reads the dialect; to replace only a default image, use images"))
	}
	errs = append(errs, check.Length(path.Child("image"), e.Image, maxImage)...)
	errs = append(errs, check.Length(path.Child("images", "gaie"), e.Images.GAIE, maxImage)...)
	errs = append(errs, check.Length(path.Child("images", "llmd"), e.Images.LLMD, maxImage)...)
	errs = append(errs, check.OneOf(path.Child("revisionScreening"), e.RevisionScreening, RevisionScreeningAuto, RevisionScreeningEnabled, RevisionScreeningDisabled)...)
	errs = append(errs, check.OneOf(path.Child("imagePullPolicy"), e.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	for i, s := range e.ImagePullSecrets {
		errs = append(errs, check.Name(path.Child("imagePullSecrets").Index(i).Child("name"), s.Name)...)
	}
	for i, t := range e.Tolerations {
		errs = append(errs, validateToleration(path.Child("tolerations").Index(i), t)...)
	}
	errs = append(errs, check.Labels(path.Child("nodeSelector"), e.NodeSelector)...)
	return append(errs, check.Resources(path.Child("resources"), e.Resources)...)
}

func validateToleration(path *field.Path, t corev1.Toleration) field.ErrorList {
	errs := check.OneOf(path.Child("operator"), t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt)
	errs = append(errs, check.OneOf(path.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	switch {
	case t.Key == "" && t.Operator != corev1.TolerationOpExists:
		errs = append(errs, field.Invalid(path.Child("operator"), t.Operator, "must be Exists if there is no key"))
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		errs = append(errs, field.Invalid(path.Child("value"), text.Value(t.Value), "must be left out if operator is Exists"))
	}
	return errs
}

// validateParentRefs checks what every HTTPRoute gets, by the rules of Gateway API (apis/v1/shared_types.go). experimental tells that
// clusters have its experimental channel. Where that is not said, what either channel takes is accepted.
func validateParentRefs(path *field.Path, all []ParentRef, experimental bool) field.ErrorList {
	refs, errs := check.Capped(path, all, maxParentRefs)
	for i := range refs {
		errs = append(errs, validateParentRef(path.Index(i), refs[i])...)
		if slices.ContainsFunc(refs[:i], func(earlier ParentRef) bool { return reflect.DeepEqual(earlier, refs[i]) }) {
			errs = append(errs, field.Duplicate(path.Index(i), refs[i].Name))
			continue
		}
		collides := func(earlier ParentRef) bool {
			a, b := attachmentOf(earlier), attachmentOf(refs[i])
			return earlier.Name != "" && sameParent(earlier, refs[i]) && a.Collides(b, true) && (experimental || a.Collides(b, false))
		}
		if j := slices.IndexFunc(refs[:i], collides); j >= 0 {
			errs = append(errs, field.Invalid(path.Index(i), text.Value(refs[i].Name), tellApart(path.Index(j), experimental)))
		}
	}
	return errs
}

// tellApart says what tells a reference from an earlier one to the same gateway, which is at the path.
func tellApart(earlier *field.Path, experimental bool) string {
	if experimental {
		return "must have another sectionName or port than " + earlier.String() + ", which names the same gateway, and each of the two only if that has it too"
	}
	return "must have another sectionName than " + earlier.String() + ", which names the same gateway, and both need one"
}

// sameParent tells whether two references name the same object, with the defaults that the definition of HTTPRoutes has.
func sameParent(a, b ParentRef) bool {
	return cmp.Or(a.Group, gateway.GroupName) == cmp.Or(b.Group, gateway.GroupName) && cmp.Or(a.Kind, "Gateway") == cmp.Or(b.Kind, "Gateway") &&
		a.Namespace == b.Namespace && a.Name == b.Name
}

func attachmentOf(ref ParentRef) check.Attachment {
	return check.Attachment{Section: ref.SectionName, Port: ptr.Deref(ref.Port, 0)}
}

func validateParentRef(path *field.Path, ref ParentRef) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, check.Required(path.Child("name"), ref.Name, "must be the name of a gateway", check.Name)...)
	errs = append(errs, check.Optional(path.Child("group"), ref.Group, check.Name)...)
	if ref.Kind != "" && (len(ref.Kind) > maxKind || !kindPattern.MatchString(ref.Kind)) {
		errs = append(errs, field.Invalid(path.Child("kind"), text.Value(ref.Kind), "must be a kind, such as Gateway: at most 63 letters, digits and '-', starting with a letter and ending with a letter or digit"))
	}
	errs = append(errs, check.Optional(path.Child("namespace"), ref.Namespace, check.Label)...)
	errs = append(errs, check.Optional(path.Child("sectionName"), ref.SectionName, check.Name)...)
	return append(errs, validatePort(path.Child("port"), ref.Port)...)
}

func validateSchedulingStrategy(path *field.Path, s *SchedulingStrategyDefaults) field.ErrorList {
	errs := check.Length(path.Child("schedulerName"), s.SchedulerName, 253)
	errs = append(errs, check.Optional(path.Child("queueName"), s.QueueName, check.Name)...)
	errs = append(errs, check.OneOf(path.Child("gang", "mode"), s.Gang.Mode, "AllOrNothing", "MinimumFirst", "None")...)
	return append(errs, check.Optional(path.Child("gang", "priorityClassName"), s.Gang.PriorityClassName, check.Name)...)
}

func validatePort(path *field.Path, port *int32) field.ErrorList {
	if port == nil {
		return nil
	}
	return check.Port(path, *port)
}

// validateMetadata checks the labels and annotations of everything that is composed.
func validateMetadata(root *field.Path, labels, annotations map[string]string) field.ErrorList {
	errs := check.Labels(root.Child("labels"), labels)
	errs = append(errs, check.Annotations(root.Child("annotations"), annotations)...)
	for _, m := range []struct {
		name string
		all  map[string]string
	}{{"labels", labels}, {"annotations", annotations}} {
		for _, k := range slices.Sorted(maps.Keys(m.all)) {
			if strings.HasPrefix(strings.ToLower(k), check.OwnPrefix) {
				errs = append(errs, field.Forbidden(root.Child(m.name).Key(text.Value(k)), "must have another prefix: "+check.OwnPrefix+" is the function's own"))
			}
		}
	}
	return errs
}
