/*
Package model takes an InferenceModel through the steps of a call. An InferenceModel gives a service the name
of a model, with a priority and targets, in each cluster where the service has an InferencePool.

A model name belongs to one InferenceModel of a service. Whoever composes the ConfigMap of the name first
holds it: the name lock. Its name follows from the service and the model name, so the API server decides
between two that want it. Nothing else is composed before the lock is observed. The lock costs each model one
object and one requirement, however many models there are. To compare the ages of all models of a namespace
instead, each call would have to read all of them, and each change would call all of them.

What a model composes for a pool stays as long as the pool does, and as long as it is not known whether the
pool exists. So nothing is lost while the service is missing in one call. Only Jobs go then, because the service
says how their pods run. The next ones go on where they were.
*/
package model

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// IsKind tells whether composite resources of a kind are of this package.
func IsKind(kind string) bool {
	return kind == v1alpha1.KindInferenceModel || kind == v1alpha1.KindClaimedModel
}

// A Model is the InferenceModel of one call. Its steps run in the order of the methods, each once, until
// one returns an error.
type Model struct {
	call *composite.Call

	parsed  *parsed
	state   *observedState
	objects []kube.Object
	// left are the objects that are left out for now, and why.
	left deferred
}

// New returns the InferenceModel of a call.
func New(c *composite.Call) *Model {
	c.ConditionTypes = ConditionTypes()
	return &Model{call: c}
}

// Parse reads the InferenceModel and the ModelInput.
func (m *Model) Parse() error {
	if err := m.call.CheckKinds(inputv1alpha1.KindModelInput, v1alpha1.KindInferenceModel, v1alpha1.KindClaimedModel); err != nil {
		return err
	}
	var problems field.ErrorList
	m.parsed, problems = parse(m.call.Request)
	return composite.Invalid(problems)
}

// Observe reads the service and its pools, and what the model has composed.
func (m *Model) Observe() error {
	var err error
	m.state, err = observeModel(m.call.Request, m.parsed, m.call.Now)
	return err
}

// Plan refuses a name that the model may not have, and adapters of which nobody says where they are.
func (m *Model) Plan() error {
	if err := composite.Refusal(composite.ReasonInvalidSpec, slices.Concat(m.state.forbidden(m.parsed), m.state.lostAdapters(m.parsed))); err != nil {
		return err
	}
	return composite.Refusal(composite.ReasonNameConflict, m.state.nameConflicts(m.parsed))
}

// Render makes the name lock, and the objects of each pool once the lock is held.
func (m *Model) Render() error {
	var err error
	m.objects, err = render(m.parsed, m.state)
	return err
}

// Require asks Crossplane for what the next call reads. Objects of missing kinds, and those whose names
// others have, are left out.
func (m *Model) Require() error {
	m.left = require(m.call.Request, m.call.Response, m.parsed, m.state, m.objects)
	return nil
}

// Respond answers with the objects, the status and the conditions.
func (m *Model) Respond() error {
	// What observes the pods of Jobs comes later.
	if total := m.call.Size(m.objects) + m.state.laterLoaderObjects()*remote.ObserverSize; total > composite.MaxResponse {
		return composite.Refusal(composite.ReasonTooLarge, field.ErrorList{field.Invalid(field.NewPath("spec", "targets"), fmt.Sprintf("%d bytes", total), fmt.Sprintf(
			"makes more for the %d clusters of the service than fits into an answer of %d bytes, Crossplane's limit: have fewer targets", len(m.state.pools), composite.MaxResponse))})
	}
	return m.call.Accept(evaluate(m.parsed, m.state, m.objects, m.left))
}
