package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
)

// TestNulls shows which nulls of a role reach the function, where they leave out what a serving profile has. An API server
// removes those of fields that the schema knows. docs/operations.md says so.
func TestNulls(t *testing.T) {
	cases := map[string]struct {
		reason     string
		role, want string
	}{
		"Template":  {reason: "The schema does not know what is in a template.", role: `{template: {spec: {tolerations: null}}}`, want: `{template: {spec: {tolerations: null}}}`},
		"HTTPRoute": {reason: "Nor what is in a route.", role: `{httproute: {rules: null}}`, want: `{httproute: {rules: null}}`},
		"Field":     {reason: "No field of the API can be null.", role: `{lifecycle: {drainSeconds: null, startupSeconds: 30}}`, want: `{lifecycle: {startupSeconds: 30}}`},
		"Object":    {reason: "Neither can an object.", role: `{multinode: null, leaderTemplate: null}`, want: `{}`},
	}
	for _, flavour := range schematest.Services() {
		s, err := schematest.New(flavour)
		if err != nil {
			t.Fatal(err)
		}
		for name, tc := range cases {
			t.Run(string(flavour)+"/"+name, func(t *testing.T) {
				got, err := s.Default([]byte(`{spec: {roles: [` + tc.role + `]}}`))
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]any{}
				if err := yaml.Unmarshal([]byte(`{spec: {roles: [`+tc.want+`]}}`), &want); err != nil {
					t.Fatal(err)
				}
				roles := func(o map[string]any) string {
					b, err := yaml.Marshal(o["spec"].(map[string]any)["roles"])
					if err != nil {
						t.Fatal(err)
					}
					return string(b)
				}
				if diff := cmp.Diff(roles(want), roles(got)); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}
