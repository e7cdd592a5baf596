package cli

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/service/observe"
)

// withAllKinds returns an Input that takes every kind for installed, unless the files have
// definitions of kinds.
func withAllKinds(input *object, all []object) *object {
	if input == nil || slices.ContainsFunc(all, func(o object) bool { return o.GetKind() == "CustomResourceDefinition" }) {
		return input
	}
	i := input.DeepCopy()
	if _, set := i.Object["missingKinds"]; set {
		i.Object["missingKinds"] = "Fail"
	}
	return i
}

// installAll takes every kind for installed, unless the files have definitions of kinds.
func (g *given) installAll() {
	if g.input == nil {
		return
	}
	before := g.input.Object["missingKinds"]
	g.input = withAllKinds(g.input, g.cluster)
	g.assumed = g.input.Object["missingKinds"] != before
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
