package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestAnswerAlone proves that scheduling knows which roles answer requests without another one.
func TestAnswerAlone(t *testing.T) {
	spec := &v1alpha1.InferenceServiceSpec{}
	want := map[string]bool{"worker": true, "prefiller": false, "decoder": false}
	for _, of := range []v1alpha1.ComponentType{v1alpha1.ComponentTypeWorker, v1alpha1.ComponentTypePrefiller, v1alpha1.ComponentTypeDecoder} {
		spec.Roles = append(spec.Roles, v1alpha1.Role{Name: string(of), ComponentType: of, Template: document(t, "{spec: {containers: [{name: engine, image: x}]}}")})
	}
	v1alpha1.Default(spec)
	p, errs := Build(naming.Identity{Name: "svc", Namespace: "ns"}, spec, defaultInput(), scheduling.Snapshot{}, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if diff := cmp.Diff(want, p.demand(p.spec, p.gang, &Running{}).AnswerAlone); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
