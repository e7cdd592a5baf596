package v1alpha1_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A validation is a service, with the errors of an API server and those of the function.
type validation struct {
	reason string
	doc    string
	// schema has the paths of the errors of an API server. It is empty where only the
	// function finds the error.
	schema []string
	// want has the errors of the function.
	want []string
}

// testValidate validates services with the function and with the schema of each flavour.
func testValidate(t *testing.T, cases map[string]validation) {
	t.Helper()
	schemas, err := serviceSchemas()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(t, tc.doc)); diff != "" {
				t.Errorf("%s\nfunction: -want +got:\n%s", tc.reason, diff)
			}
			for f, s := range schemas {
				if diff := cmp.Diff(tc.schema, paths(s.Validate([]byte(tc.doc)))); diff != "" {
					t.Errorf("%s\nschema of the %s: -want +got:\n%s", tc.reason, f, diff)
				}
			}
		})
	}
}

// serviceSchemas returns the schema of each flavour of an InferenceService. It loads them
// once, because compiling their CEL rules takes long.
var serviceSchemas = sync.OnceValues(func() (map[schematest.Flavour]*schematest.Schema, error) {
	all := map[schematest.Flavour]*schematest.Schema{}
	for _, f := range schematest.Services() {
		s, err := schematest.New(f)
		if err != nil {
			return nil, err
		}
		all[f] = s
	}
	return all, nil
})

func TestValidate(t *testing.T) {
	testValidate(t, map[string]validation{
		"Minimal": {
			reason: "One worker with a template is a whole service.",
			doc:    roles(worker),
		},
		"PrefilledStatus": {
			reason: "The status is not validated: it is output.",
			doc:    `{metadata: {name: svc, namespace: default}, spec: {roles: [` + worker + `]}, status: {replicas: 3, url: x}}`,
		},
		"NegativeGroups": {
			reason: "The replicas of a service are not negative.",
			doc:    service(`{replicas: -1, roles: [` + worker + `]}`),
			schema: []string{`spec.replicas`},
			want:   []string{`spec.replicas: Invalid value: -1: must be from 0 to 500`},
		},
		"AllAtOnce": {
			reason: "All problems are reported at once, in the order of the spec.",
			doc:    service(`{replicas: 501, roles: [{name: w, componentType: worker, replicas: -1}, {name: r, componentType: router, strategy: pd-disaggregation}], schedulingStrategy: {gang: {minRoleReplicas: {x: 1}}}}`),
			schema: []string{
				`spec.replicas`,
				`spec.roles`,
				`spec.roles[0].replicas`,
				`spec.schedulingStrategy.gang.minRoleReplicas`,
			},
			want: []string{
				`spec.roles[0].replicas: Invalid value: -1: must be from 0 to 2000`,
				`spec.roles[0].template: Required value: must be the template of the pods of a worker, unless spec.profileName names a profile that has one`,
				`spec.roles[1].strategy: Invalid value: "pd-disaggregation": needs a role of componentType prefiller and one of componentType decoder`,
				`spec.replicas: Invalid value: 501: must be from 0 to 500`,
				`spec.schedulingStrategy.gang.minRoleReplicas[x]: Invalid value: 1: must be for a role of this service: one of ["w"]`,
			},
		},
	})
}

// TestValidateSeeds shows that the function accepts all examples of the design documents.
func TestValidateSeeds(t *testing.T) {
	for name, doc := range seeds(t) {
		xr, errs := decode(t, doc)
		xr.Namespace = "default"
		v1alpha1.Default(&xr.Spec)
		if errs = append(errs, v1alpha1.Validate(xr, v1alpha1.ClaimReference{})...); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs.ToAggregate())
		}
	}
}

// TestValidateIsQuick shows that huge numbers and lists cost a few errors: validation loops
// over neither.
func TestValidateIsQuick(t *testing.T) {
	xr := &v1alpha1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "svc", Namespace: "default"}}
	xr.Spec.Replicas = ptr.To[int32](2000000000)
	for range 20000 {
		xr.Spec.Roles = append(xr.Spec.Roles, v1alpha1.Role{
			Name:          "w",
			ComponentType: v1alpha1.ComponentTypeWorker,
			Replicas:      ptr.To[int32](2000000000),
			Multinode:     &v1alpha1.Multinode{NodeCount: ptr.To[int32](2000000000)},
		})
	}
	errs := v1alpha1.Validate(xr, v1alpha1.ClaimReference{})
	if len(errs) < 3 || len(errs) > 5*v1alpha1.MaxRoles {
		t.Errorf("want a readable number of errors, got %d", len(errs))
	}
}
