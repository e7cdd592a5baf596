package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
)

// TestValidateModels shows what the platform team can get wrong about loading Jobs and their claims.
func TestValidateModels(t *testing.T) {
	cases := map[string]struct {
		reason, doc string
		want        []string
	}{
		"Valid": {reason: "All of it may be set.", doc: `
modelLoader: {env: [{name: HF_ENDPOINT, value: "https://hub.example.com"}], imagePullSecrets: [{name: pull}], resources: {limits: {memory: 8Gi}}, runAsUser: 2000}
modelCaches: {storageClassName: nfs, allowedStorageClassNames: ["fast-*"], defaultSize: 2Ti, maxSize: 2Ti}
`},
		"Variable": {
			reason: "A variable has one value, and a name that a shell takes.", doc: `modelLoader: {env: [{name: A}, {name: A}, {name: "1"}]}`,
			want: []string{
				`modelLoader.env[1].name: Duplicate value: "A"`,
				`modelLoader.env[2].name: Invalid value: "1": must consist of letters, digits and '_', and not start with a digit`,
			},
		},
		"Root": {reason: "No Job runs as root.", doc: `modelLoader: {runAsUser: 0}`, want: []string{`modelLoader.runAsUser: Invalid value: 0: must be from 1 to 2147483647`}},
		"Size": {reason: "A limit of nothing allows nothing.", doc: `modelCaches: {maxSize: "0"}`, want: []string{`modelCaches.maxSize: Invalid value: "0": must be more than 0`}},
		"DefaultSize": {
			reason: "A default that is not allowed would refuse every service.", doc: `modelCaches: {defaultSize: 2Ti, maxSize: 1Ti}`,
			want: []string{`modelCaches.defaultSize: Invalid value: "2Ti": must be at most maxSize, 1Ti`},
		},
		"BytesAtMost":   {reason: "Nor does one of a few bytes.", doc: `modelCaches: {maxSize: 500}`, want: []string{`modelCaches.maxSize: Invalid value: "500": must be at least 1Mi, and a number alone stands for bytes: did you mean 500Mi or 500Gi?`}},
		"NoDefaultSize": {reason: "A claim has a size.", doc: `modelCaches: {defaultSize: "0"}`, want: []string{`modelCaches.defaultSize: Invalid value: "0": must be more than 0`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, errs := decode(t, []byte(tc.doc))
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			inputv1alpha1.Default(in)
			var got []string
			for _, err := range inputv1alpha1.Validate(in, (*field.Path)(nil)) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
