package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
)

func modelInput(t *testing.T, doc string) *inputv1alpha1.ModelInput {
	t.Helper()
	in := &inputv1alpha1.ModelInput{}
	if err := yaml.UnmarshalStrict([]byte(doc), in); err != nil {
		t.Fatal(err)
	}
	inputv1alpha1.DefaultModel(in)
	return in
}

func TestValidateModelInput(t *testing.T) {
	cases := map[string]struct {
		doc  string
		want []string
	}{
		"Empty":   {doc: `{}`},
		"Full":    {doc: `{missingKinds: Skip, priorities: {minimum: -5, maximum: 5}, tenants: [{namespaces: [a, "b-*"], priorities: {maximum: 0}}], labels: {a: b}, annotations: {a: b}}`},
		"Range":   {doc: `{priorities: {minimum: 1, maximum: 0}}`, want: []string{"input.priorities.minimum"}},
		"Tenants": {doc: `{tenants: [{namespaces: [], priorities: {minimum: 1, maximum: 0}}]}`, want: []string{"input.tenants[0].namespaces", "input.tenants[0].priorities.minimum"}},
		"Own":     {doc: `{labels: {fusioninfer.io/service: b}, annotations: {Fusioninfer.io/extra: "true"}}`, want: []string{"input.labels[fusioninfer.io/service]", "input.annotations[Fusioninfer.io/extra]"}},
		"Others":  {doc: `{missingKinds: Maybe, labels: {a: "b c"}, annotations: {"a b": c}}`, want: []string{"input.missingKinds", "input.labels[a]", "input.annotations[a b]"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range inputv1alpha1.ValidateModel(modelInput(t, tc.doc), field.NewPath("input")) {
				got = append(got, e.Field)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("problems at: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestPrioritiesOf proves that owners of models can choose a range only, which the platform team sets for all namespaces or
// for some.
func TestPrioritiesOf(t *testing.T) {
	const tenants = `tenants: [{namespaces: [a], priorities: {maximum: 0}}, {namespaces: ["*"], priorities: {minimum: -1, maximum: 7}}]`
	cases := map[string]struct {
		doc, namespace string
		want           [2]int32
	}{
		"Default":      {doc: `{}`, want: [2]int32{-10, 10}},
		"All":          {doc: `{priorities: {maximum: 100}}`, want: [2]int32{-10, 100}},
		"FirstTenant":  {doc: `{` + tenants + `}`, namespace: "a", want: [2]int32{-1, 0}},
		"SecondTenant": {doc: `{` + tenants + `}`, namespace: "b", want: [2]int32{-1, 7}},
		"None":         {doc: `{priorities: {minimum: 1}, tenants: [{namespaces: ["*"], priorities: {maximum: 0}}]}`, want: [2]int32{1, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lowest, highest := modelInput(t, tc.doc).PrioritiesOf(tc.namespace)
			if diff := cmp.Diff(tc.want, [2]int32{lowest, highest}); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
