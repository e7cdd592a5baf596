package modelroute

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

func TestOf(t *testing.T) {
	zero, half, five, minus := int32(0), int32(50), int32(5), int32(-10)
	cases := map[string]struct {
		model v1alpha1.ServedModel
		want  Model
	}{
		"Plain": {model: v1alpha1.ServedModel{Name: "plain"}, want: Model{Name: "plain", Targets: []Target{{"plain", 1}}}},
		"Weighted": {
			model: v1alpha1.ServedModel{Name: "weighted", Priority: &five, Targets: []v1alpha1.ModelTarget{{Name: "a", Weight: &half}, {Name: "off", Weight: &zero}, {Name: "b"}}},
			want:  Model{Name: "weighted", Priority: &five, Targets: []Target{{"a", 50}, {"b", 1}}},
		},
		"Standard":  {model: v1alpha1.ServedModel{Name: "m", Criticality: v1alpha1.CriticalityStandard}, want: Model{Name: "m", Priority: &zero, Targets: []Target{{"m", 1}}}},
		"Sheddable": {model: v1alpha1.ServedModel{Name: "m", Criticality: v1alpha1.CriticalitySheddable}, want: Model{Name: "m", Priority: &minus, Targets: []Target{{"m", 1}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Of(tc.model)); diff != "" {
				t.Errorf("Of(): -want, +got:\n%s", diff)
			}
		})
	}
}
