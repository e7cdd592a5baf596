package model

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// A parsed request has the model and its ModelInput.
type parsed struct {
	// identity of the InferenceModel.
	identity naming.Identity
	spec     v1alpha1.InferenceModelSpec
	// model is what the endpoint picker gets.
	model modelroute.Model
	input *inputv1alpha1.ModelInput
}

// An xr is the part of the composite resource that is read.
type xr struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name       string            `json:"name"`
		Namespace  string            `json:"namespace"`
		UID        string            `json:"uid"`
		Generation int64             `json:"generation"`
		Labels     map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		v1alpha1.InferenceModelSpec

		ClaimRef v1alpha1.ClaimReference `json:"claimRef"`
	} `json:"spec"`
}

var xrView = incoming.NewCompositeView[xr]()

// parse reads a request, and reports every problem that it finds.
func parse(req incoming.Request) (*parsed, field.ErrorList) {
	in, errs := composite.ModelInput(req.Input())
	if tooLarge := composite.Bounded(req.Composite()); len(tooLarge) > 0 {
		return nil, append(errs, tooLarge...)
	}
	x := xr{}
	unread := xrView.Read(req.Composite(), &x)
	m := &v1alpha1.InferenceModel{
		TypeMeta: metav1.TypeMeta{APIVersion: x.APIVersion, Kind: x.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Name:       x.Metadata.Name,
			Namespace:  x.Metadata.Namespace,
			UID:        types.UID(x.Metadata.UID),
			Generation: x.Metadata.Generation,
			Labels:     x.Metadata.Labels,
		},
		Spec: x.Spec.InferenceModelSpec,
	}
	name, namespace := v1alpha1.ModelIdentity(m, x.Spec.ClaimRef)
	v1alpha1.DefaultModel(&m.Spec, name)
	errs = append(errs, unread...)
	errs = append(errs, composite.Without(v1alpha1.ValidateModel(m, x.Spec.ClaimRef), unread)...)
	p := &parsed{
		identity: naming.Identity{
			Name:       name,
			Namespace:  namespace,
			Generation: x.Metadata.Generation,
			UID:        x.Metadata.UID,
			Claimed:    x.Kind == v1alpha1.KindClaimedModel,
		},
		spec:  m.Spec,
		model: modelroute.Of(m.Spec.Served()),
		input: in,
	}
	return p, append(errs, p.checkPriority()...)
}

// checkPriority refuses a priority that the platform team does not allow to owners of models.
func (p *parsed) checkPriority() field.ErrorList {
	lowest, highest := p.input.PrioritiesOf(p.identity.Namespace)
	v := p.model.Priority
	if v == nil || *v >= lowest && *v <= highest {
		return nil
	}
	at := field.NewPath("spec", "priority")
	if p.spec.Priority == nil {
		at = field.NewPath("spec", "criticality")
	}
	if lowest > highest {
		return field.ErrorList{field.Forbidden(at, "must be left out: the platform team allows no priorities in this namespace")}
	}
	return field.ErrorList{field.Invalid(at, *v, fmt.Sprintf("must be a priority from %d to %d, which the platform team allows in this namespace", lowest, highest))}
}
