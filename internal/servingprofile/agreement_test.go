package servingprofile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
)

// TestFragmentsAgree shows that the fields of a profile's roles are those of a service's roles, with the
// same types, limits and values. Otherwise a profile could say what no service can.
func TestFragmentsAgree(t *testing.T) {
	of := func(f schematest.Flavour) extv1.JSONSchemaProps {
		s, err := schematest.New(f)
		if err != nil {
			t.Fatal(err)
		}
		return *s.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	role := of(schematest.XR).Properties["spec"].Properties["roles"].Items.Schema
	fragment := of(schematest.Input).Properties["profiles"].Items.Schema.Properties["roles"].Items.Schema
	if len(fragment.Properties) < 7 {
		t.Errorf("want at least 7 fields of a fragment, got %d", len(fragment.Properties))
	}
	agree(t, "roles[]", *fragment, *role)
}

func agree(t *testing.T, path string, fragment, role extv1.JSONSchemaProps) {
	t.Helper()
	for name, f := range fragment.Properties {
		at := path + "." + name
		r, ok := role.Properties[name]
		if !ok {
			t.Errorf("%s is not a field of a service", at)
			continue
		}
		agree(t, at, f, r)
		if diff := cmp.Diff(limits(r), limits(f)); diff != "" {
			t.Errorf("%s: -service, +profile:\n%s", at, diff)
		}
	}
}

// limits are what a schema says of a value, apart from its fields and its description.
func limits(s extv1.JSONSchemaProps) extv1.JSONSchemaProps {
	s.Properties, s.Description, s.Required, s.XValidations = nil, "", nil, nil
	return s
}
