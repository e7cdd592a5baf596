package composite

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// CheckBounds checks the size of a composite resource's spec. It leaves out Crossplane's own
// fields, which have a reference to each composed resource.
func CheckBounds(c incoming.Composite) field.ErrorList {
	return kube.CheckBounds(c.Spec().GetStructValue(), field.NewPath("spec"), "crossplane", "resourceRefs")
}

// WithoutConsequences removes the errors that only follow from fields that could not be read, such as that a
// field is missing. unread has the errors about these fields themselves.
func WithoutConsequences(errs, unread field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		return slices.ContainsFunc(unread, func(u *field.Error) bool { return follows(e, u.Field) })
	})
}

// follows tells whether an error may follow from a field that could not be read. It is about that
// field, about the selector that the field is a part of, or about a field beside it or above it that
// depends on it. The message of the last names the other field, such as "must be set unless x is set".
func follows(e *field.Error, unread string) bool {
	if e.Field == unread || strings.HasPrefix(e.Field, unread+".") || strings.HasPrefix(e.Field, unread+"[") || strings.HasPrefix(unread, e.Field+".matchExpressions[") {
		return true
	}
	parent, name := splitPath(unread)
	beside, _ := splitPath(e.Field)
	return (parent == beside || parent == e.Field) && slices.Contains(strings.FieldsFunc(e.Detail, func(r rune) bool { return !unicode.IsLetter(r) }), name)
}

// splitPath splits the path of a field into its parent's path and its name.
func splitPath(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}

// CheckKinds refuses a composite resource or an Input of another API version or kind, whose fields may have
// another meaning. kinds are those of the composite resource. A request may have no Input.
func (c *Call) CheckKinds(inputKind string, kinds ...string) error {
	in, composite := c.Request.Input(), c.Request.Composite()
	errs := oneOf(field.NewPath("apiVersion"), composite.APIVersion(), v1alpha1.APIVersion)
	errs = append(errs, oneOf(field.NewPath("kind"), composite.Kind(), kinds...)...)
	if len(in.GetFields()) > 0 {
		root := field.NewPath(inputPath)
		errs = append(errs, oneOf(root.Child("apiVersion"), kube.Lookup(in, "apiVersion").GetStringValue(), inputv1alpha1.APIVersion)...)
		errs = append(errs, oneOf(root.Child("kind"), kube.Lookup(in, "kind").GetStringValue(), inputKind)...)
	}
	return Invalid(errs)
}

// oneOf refuses any other value of a field. check.OneOf accepts an empty one, because fields of a
// spec may be left out. These may not.
func oneOf(path *field.Path, got string, want ...string) field.ErrorList {
	if slices.Contains(want, got) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, text.Value(got), want)}
}

// Input reads the platform team's Input for InferenceServices and ModelCaches. Without one, it
// returns the defaults.
func Input(s *structpb.Struct) (*inputv1alpha1.Input, field.ErrorList) {
	return readInput(s, inputv1alpha1.KindInput, inputv1alpha1.Default, inputv1alpha1.Validate)
}

// ClusterInput reads the platform team's ClusterInput for InferenceClusters. Without one, it
// returns the defaults.
func ClusterInput(s *structpb.Struct) (*inputv1alpha1.ClusterInput, field.ErrorList) {
	return readInput(s, inputv1alpha1.KindClusterInput, inputv1alpha1.DefaultCluster, inputv1alpha1.ValidateCluster)
}

// ModelInput reads the platform team's ModelInput for InferenceModels. Without one, it returns the
// defaults.
func ModelInput(s *structpb.Struct) (*inputv1alpha1.ModelInput, field.ErrorList) {
	return readInput(s, inputv1alpha1.KindModelInput, inputv1alpha1.DefaultModel, inputv1alpha1.ValidateModel)
}

func readInput[T any](s *structpb.Struct, kind string, setDefaults func(*T), validate func(*T, *field.Path) field.ErrorList) (*T, field.ErrorList) {
	in, root := new(T), field.NewPath(inputPath)
	errs := kube.CheckBounds(s, root)
	if len(errs) > 0 {
		setDefaults(in)
		return in, errs
	}
	unread := kube.Decode(s, root, in)
	setDefaults(in)
	return in, slices.Concat(unknown[T](s, kind, root), unread, WithoutConsequences(validate(in, root), unread))
}

// unknown refuses fields that the kind does not have. No API server validates an Input, and a
// misspelt limit would have no effect.
func unknown[T any](s *structpb.Struct, kind string, root *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, u := range kube.UnknownFields(kube.AsMap(s), reflect.TypeFor[T](), kube.MaxProblems) {
		errs = append(errs, field.Forbidden(root.Child(u.Path), fmt.Sprintf("is not a field of %s, which has here only %s: see docs/api.md", kind, text.Names(u.Known, maxFields))))
	}
	return errs
}

// maxFields is the most fields that an error lists. An Input has fewer at any level.
const maxFields = 32
