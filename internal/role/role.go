/*
Package role takes an InferenceRole through the steps of a call. An InferenceRole is the scale target of one
role of an InferenceService. It composes nothing: the service that composes it reads how many replicas it asks
for, and writes into its spec what runs and what limits it. Here that is copied to the status, where the scale
subresource and people have it. So nothing is required and nothing is polled.
*/
package role

import (
	"slices"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
)

// Kind of the composite resources of this package.
const Kind = v1alpha1.KindInferenceRole

// A Role is the InferenceRole of one call. Its steps run in the order of the methods, each once, until one
// returns an error.
type Role struct {
	call *composite.Call
	spec v1alpha1.InferenceRoleSpec
}

// New returns the InferenceRole of a call.
func New(c *composite.Call) *Role {
	c.ConditionTypes = ConditionTypes()
	return &Role{call: c}
}

// ConditionTypes are the types of all conditions of an InferenceRole.
func ConditionTypes() []string { return []string{composite.Accepted, v1alpha1.ConditionScaled} }

var xrView = incoming.NewCompositeView[composite.XR[v1alpha1.InferenceRoleSpec]]()

// Parse reads the InferenceRole. Its Composition has no input.
func (r *Role) Parse() error {
	if err := r.call.CheckKinds(inputv1alpha1.KindInput, Kind); err != nil {
		return err
	}
	if tooLarge := composite.CheckBounds(r.call.Request.Composite()); len(tooLarge) > 0 {
		return composite.Invalid(tooLarge)
	}
	x, unread := composite.Read(xrView, r.call.Request.Composite())
	r.spec = x.Spec
	return composite.Invalid(slices.Concat(unread, composite.WithoutConsequences(v1alpha1.ValidateRole(&r.spec), unread)))
}

// Observe does nothing: nothing is composed.
func (*Role) Observe() error { return nil }

// Plan does nothing: the service decides.
func (*Role) Plan() error { return nil }

// Render does nothing: nothing is composed.
func (*Role) Render() error { return nil }

// Require does nothing: the spec has all that is needed.
func (*Role) Require() error { return nil }

// Respond answers with the status.
func (r *Role) Respond() error {
	scaled := composite.Condition{Type: v1alpha1.ConditionScaled, Status: composite.True, Reason: v1alpha1.ScaledAsRequested}
	if l := r.spec.Current.Limit; l != nil {
		scaled = composite.Condition{Type: v1alpha1.ConditionScaled, Status: composite.False, Reason: l.Reason, Message: l.Message}
	}
	return r.call.Accept(composite.Outcome{
		Status:     v1alpha1.InferenceRoleStatus{Replicas: r.spec.Current.Replicas, Selector: r.spec.Current.Selector},
		Conditions: []composite.Condition{{Type: composite.Accepted, Status: composite.True, Reason: composite.ReasonAccepted}, scaled},
		Stable:     true,
	})
}
