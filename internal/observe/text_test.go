package observe

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestJoinErrors makes sure that what is wrong with a spec is said in an answer that
// arrives, however much it is.
func TestJoinErrors(t *testing.T) {
	var errs field.ErrorList
	for i := range 50_000 {
		errs = append(errs, field.Invalid(field.NewPath("spec").Index(i), strings.Repeat("x", 80), "must be shorter"))
	}
	got := JoinErrors(append(errs[:1:1], errs...))
	if len(got) > maxErrors+100 {
		t.Errorf("%d problems make %d bytes", len(errs), len(got))
	}
	if n := strings.Count(got, "must be shorter"); !strings.HasSuffix(got, fmt.Sprintf("; and %d more", len(errs)-n)) {
		t.Errorf("the %d problems that are left out are not counted: ...%s", len(errs)-n, got[len(got)-50:])
	}
	if huge := JoinErrors(field.ErrorList{field.Invalid(field.NewPath("a"), strings.Repeat("x", 1<<20), "x")}); len(huge) > maxErrors+10 {
		t.Errorf("one problem makes %d bytes", len(huge))
	}
}
