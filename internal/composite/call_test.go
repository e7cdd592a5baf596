package composite

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestInvalid proves that the reason says who can fix the problems.
func TestInvalid(t *testing.T) {
	of := func(paths ...string) field.ErrorList {
		var errs field.ErrorList
		for _, p := range paths {
			errs = append(errs, &field.Error{Type: field.ErrorTypeInvalid, Field: p})
		}
		return errs
	}
	cases := map[string]struct {
		reason string
		errs   field.ErrorList
		want   string
	}{
		"None":      {reason: "There are no problems."},
		"Spec":      {reason: "The author of the spec can fix it.", errs: of("spec.roles"), want: ReasonInvalidSpec},
		"Metadata":  {reason: "The author of the spec can fix metadata, too.", errs: of("metadata.name"), want: ReasonInvalidSpec},
		"Input":     {reason: "The platform team can fix it.", errs: of("input", "input.sidecar.image"), want: ReasonInvalidInput},
		"InputLike": {reason: "A field with the same prefix is not a field of an Input.", errs: of("inputs"), want: ReasonInvalidSpec},
		"Both":      {reason: "No spec is accepted until the platform team has fixed the Input.", errs: of("spec.roles", "input.ray"), want: ReasonInvalidInput},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			var problems *ProblemsError
			if errors.As(Invalid(tc.errs), &problems) {
				got = problems.Reason
			}
			if got != tc.want {
				t.Errorf("%s\nThe reason is %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
