package cli

import (
	"slices"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/service/observe"
)

// withAllKinds returns an Input that takes every kind for installed, unless the files have
// definitions of kinds. Only an Input that skips kinds is changed: the function judges any other
// value.
func withAllKinds(input *object, all []object) *object {
	if input == nil || input.Object["missingKinds"] != string(inputv1alpha1.MissingKindsSkip) ||
		slices.ContainsFunc(all, func(o object) bool { return o.GetKind() == "CustomResourceDefinition" }) {
		return input
	}
	i := input.DeepCopy()
	i.Object["missingKinds"] = string(inputv1alpha1.MissingKindsFail)
	return i
}

// installAll takes every kind for installed, unless the files have definitions of kinds.
func (g *snapshot) installAll() {
	before := g.input
	g.input = withAllKinds(g.input, g.cluster)
	g.assumed = g.input != before
}

// sayAssumed says in the condition KindsAvailable why no kind is missing. The function has not been asked to
// look, and says so of an Input that asks for it.
func sayAssumed(xr *object) {
	for _, c := range conditionsOf(*xr) {
		if c.Type == observe.KindsAvailable && c.Reason == observe.ReasonNotChecked {
			c.Message = "--required has no CustomResourceDefinition, so all kinds count as installed"
			setCondition(xr, c)
		}
	}
}
