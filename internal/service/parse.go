package service

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

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

// A spec has the fields of users, and the one field of Crossplane that is read.
type spec struct {
	v1alpha1.InferenceServiceSpec

	ClaimRef v1alpha1.ClaimReference `json:"claimRef"`
}

var xrView = incoming.NewCompositeView[xr]()

// A parsed request has the service, its spec and the Input.
type parsed struct {
	service naming.Identity
	spec    *v1alpha1.InferenceServiceSpec
	input   *inputv1alpha1.Input
}

// parse reads a request. It reports every problem that it finds, and always
// returns what it could read.
func parse(req incoming.Request) (parsed, field.ErrorList) {
	in, errs := composite.Input(req.Input())
	x := xr{}
	if tooLarge := composite.Bounded(req.Composite()); len(tooLarge) > 0 {
		return parsed{spec: &x.Spec.InferenceServiceSpec, input: in}, append(errs, tooLarge...)
	}
	unread := xrView.Read(req.Composite(), &x)
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
	errs = append(errs, composite.Without(v1alpha1.Validate(service, x.Spec.ClaimRef), unread)...)
	name, namespace := v1alpha1.Identity(service, x.Spec.ClaimRef)
	return parsed{
		service: naming.Identity{
			Name:       name,
			Namespace:  namespace,
			Generation: x.Metadata.Generation,
			UID:        x.Metadata.UID,
			Claimed:    x.Kind == v1alpha1.KindClaimedService,
			Grouped:    x.Spec.Replicas != nil,
		},
		spec:  &service.Spec,
		input: in,
	}, errs
}
