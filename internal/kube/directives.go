package kube

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckDirectives refuses the directives of Kubernetes' strategic merge patch in a document. A document
// that is merged with another says only what it wants, not how to merge it. At most MaxProblems are
// reported.
func CheckDirectives(s *structpb.Struct, at *field.Path) field.ErrorList {
	if !hasDirectives(structpb.NewStructValue(s)) {
		return nil
	}
	var errs field.ErrorList
	directives(structpb.NewStructValue(s), func() *field.Path { return at }, &errs)
	return errs
}

// isDirective tells whether a field's name is that of a directive. No field of Kubernetes has such a
// name, and no label can have it.
func isDirective(name string) bool {
	return name == "$patch" || name == "$retainKeys" || strings.HasPrefix(name, "$setElementOrder/") || strings.HasPrefix(name, "$deleteFromPrimitiveList/")
}

func hasDirectives(v *structpb.Value) bool {
	for name, e := range v.GetStructValue().GetFields() {
		if isDirective(name) || hasDirectives(e) {
			return true
		}
	}
	return slices.ContainsFunc(v.GetListValue().GetValues(), hasDirectives)
}

func directives(v *structpb.Value, at pathFunc, errs *field.ErrorList) {
	for _, name := range slices.Sorted(maps.Keys(v.GetStructValue().GetFields())) {
		below := at.step(step{name: name})
		switch {
		case len(*errs) >= MaxProblems:
			return
		case isDirective(name):
			*errs = append(*errs, field.Forbidden(below(), "is a directive of a strategic merge patch: write only what the template has, and null for a field that it must not have"))
		default:
			directives(v.GetStructValue().GetFields()[name], below, errs)
		}
	}
	for i, e := range v.GetListValue().GetValues() {
		directives(e, at.step(step{index: i}), errs)
	}
}
