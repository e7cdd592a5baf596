package model

import (
	"fmt"

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

var xrView = incoming.NewCompositeView[composite.XR[v1alpha1.InferenceModelSpec]]()

// parse reads a request, and reports every problem that it finds.
func parse(req incoming.Request) (*parsed, field.ErrorList) {
	in, errs := composite.ModelInput(req.Input())
	if tooLarge := composite.CheckBounds(req.Composite()); len(tooLarge) > 0 {
		return nil, append(errs, tooLarge...)
	}
	x, unread := composite.Read(xrView, req.Composite())
	identity := x.Identity()
	v1alpha1.DefaultModel(&x.Spec, identity.Name)
	m := &v1alpha1.InferenceModel{TypeMeta: x.TypeMeta, ObjectMeta: x.ObjectMeta(), Spec: x.Spec}
	errs = append(errs, unread...)
	errs = append(errs, composite.WithoutConsequences(v1alpha1.ValidateModel(m, x.Claim), unread)...)
	p := &parsed{identity: identity, spec: x.Spec, model: modelroute.Of(x.Spec.Served()), input: in}
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
