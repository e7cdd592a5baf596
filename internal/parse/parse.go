// Package parse reads what a request is about: the InferenceService and the
// platform team's input, defaulted and validated.
package parse

import (
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// A Request is what one call is about.
type Request struct {
	Service plan.Service
	Spec    *v1alpha1.InferenceServiceSpec
	Input   *v1beta1.Input
}

// An xr is the part of the composite resource that is read. Its metadata is not
// metav1.ObjectMeta, because decoding managedFields costs more than all the rest.
type xr struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name       string            `json:"name"`
	Namespace  string            `json:"namespace"`
	UID        string            `json:"uid"`
	Generation int64             `json:"generation"`
	Labels     map[string]string `json:"labels"`
}

// A spec is the user's, with the one field of Crossplane's that is needed.
type spec struct {
	v1alpha1.InferenceServiceSpec

	ClaimRef v1alpha1.ClaimReference `json:"claimRef"`
}

// Parse reads a request. It reports every problem that it finds, and always
// returns what it could read.
func Parse(req *fnv1.RunFunctionRequest) (Request, field.ErrorList) {
	in, errs := Input(req.GetInput())
	x, resource := xr{}, req.GetObserved().GetComposite().GetResource()
	if tooLarge := Bounded(resource); len(tooLarge) > 0 {
		return Request{Spec: &x.Spec.InferenceServiceSpec, Input: in}, append(errs, tooLarge...)
	}
	unread := kube.Decode(resource, nil, &x)
	v1alpha1.Default(&x.Spec.InferenceServiceSpec)
	service := &v1alpha1.InferenceService{
		TypeMeta: metav1.TypeMeta{APIVersion: x.APIVersion, Kind: x.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Name:       x.Metadata.Name,
			Namespace:  x.Metadata.Namespace,
			UID:        types.UID(x.Metadata.UID),
			Generation: x.Metadata.Generation,
			Labels:     x.Metadata.Labels,
		},
		Spec: x.Spec.InferenceServiceSpec,
	}
	errs = append(errs, unread...)
	errs = append(errs, Without(v1alpha1.Validate(service, x.Spec.ClaimRef), unread)...)
	name, namespace := v1alpha1.Identity(service, x.Spec.ClaimRef)
	return Request{
		Service: plan.Service{
			Name:       name,
			Namespace:  namespace,
			Generation: x.Metadata.Generation,
			UID:        x.Metadata.UID,
			Claimed:    x.Kind == v1alpha1.ClusterKind,
			Grouped:    x.Spec.Replicas != nil,
		},
		Spec:  &service.Spec,
		Input: in,
	}, errs
}

// Bounded checks the size of the spec of a composite resource. Fields of Crossplane's own
// are not the user's, and have a reference to each composed resource.
func Bounded(resource *structpb.Struct) field.ErrorList {
	return kube.Bounded(kube.Lookup(resource, "spec").GetStructValue(), field.NewPath("spec"), "crossplane", "resourceRefs")
}

// Without leaves out what is wrong only because a field could not be read, which
// has been said.
func Without(errs, unread field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		return slices.ContainsFunc(unread, func(u *field.Error) bool {
			return e.Field == u.Field || strings.HasPrefix(e.Field, u.Field+".") || strings.HasPrefix(e.Field, u.Field+"[")
		})
	})
}

// Input reads the platform team's input.
func Input(s *structpb.Struct) (*v1beta1.Input, field.ErrorList) {
	in := &v1beta1.Input{}
	root := field.NewPath("input")
	errs := kube.Bounded(s, root)
	if len(errs) > 0 {
		v1beta1.Default(in)
		return in, errs
	}
	errs = append(unknown(s, root), kube.Decode(s, root, in)...)
	v1beta1.Default(in)
	return in, append(errs, v1beta1.Validate(in, root)...)
}

// unknown refuses fields that an input does not have. No API server looks at it, and what is
// misspelt would not be there: a limit would limit nobody.
func unknown(s *structpb.Struct, root *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, path := range kube.UnknownFields(kube.AsMap(s), reflect.TypeFor[v1beta1.Input](), "") {
		if len(errs) == kube.MaxProblems {
			break
		}
		errs = append(errs, field.Forbidden(root.Child(path), "is no field of an Input: docs/api.md has them all"))
	}
	return errs
}
