package schematest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every example of the design documents is accepted as it is.
func TestSeeds(t *testing.T) {
	files, err := filepath.Glob("../testdata/seeds/*.yaml")
	if err != nil || len(files) != 10 {
		t.Fatalf("want the 10 examples of the design documents, got %d (%v)", len(files), err)
	}
	for _, f := range Services() {
		s := mustNew(t, f)
		for _, file := range files {
			t.Run(string(f)+"/"+filepath.Base(file), func(t *testing.T) {
				doc, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if errs := s.Validate(doc); len(errs) > 0 {
					t.Errorf("refused: %v", errs.ToAggregate())
				}
			})
		}
	}
}

func TestUnknownFields(t *testing.T) {
	doc := []byte(`{metadata: {name: s}, spec: {roles: [{name: a, componentType: worker, replica: 2, template: {spec: {youngerThanUs: true}}}]}}`)
	for _, f := range Services() {
		errs := mustNew(t, f).Validate(doc)
		if len(errs) != 1 || errs[0].Field != "spec.roles[0].replica" {
			t.Errorf("%s: want one error about spec.roles[0].replica, got %v", f, errs.ToAggregate())
		}
	}
}

func TestDefault(t *testing.T) {
	doc := []byte(`{metadata: {name: s}, spec: {roles: [{name: a, componentType: worker, multinode: {nodeCount: 2}, template: {}}]}}`)
	want := map[string]any{
		"metadata": map[string]any{"name": "s"},
		"spec": map[string]any{
			"roles": []any{map[string]any{
				"name":          "a",
				"componentType": "worker",
				"replicas":      int64(1),
				"multinode":     map[string]any{"nodeCount": int64(2), "launcher": "Ray"},
				"template":      map[string]any{},
			}},
		},
	}
	for _, f := range Services() {
		got, err := mustNew(t, f).Default(doc)
		if err != nil {
			t.Fatal(err)
		}
		if f != XR {
			// Crossplane's own default.
			delete(got["spec"].(map[string]any), "compositeDeletePolicy")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", f, diff)
		}
	}
}

// Setting or unsetting spec.replicas would rename everything.
func TestTransition(t *testing.T) {
	const roles = `roles: [{name: a, componentType: worker, template: {}}]`
	ungrouped := []byte(`{metadata: {name: s}, spec: {` + roles + `}}`)
	one := []byte(`{metadata: {name: s}, spec: {replicas: 1, ` + roles + `}}`)
	three := []byte(`{metadata: {name: s}, spec: {replicas: 3, ` + roles + `}}`)
	cases := map[string]struct {
		reason   string
		old, new []byte
		want     []string
	}{
		"Same":   {reason: "A change of something else is fine.", old: ungrouped, new: ungrouped},
		"Scaled": {reason: "The scale subresource changes replicas.", old: one, new: three},
		"Set":    {reason: "Setting it renames everything.", old: ungrouped, new: one, want: []string{"spec.replicas"}},
		"Unset":  {reason: "Unsetting it does, too.", old: three, new: ungrouped, want: []string{"spec.replicas"}},
	}
	for _, f := range Services() {
		s := mustNew(t, f)
		for name, tc := range cases {
			t.Run(string(f)+"/"+name, func(t *testing.T) {
				var got []string
				for _, err := range s.ValidateUpdate(tc.new, tc.old) {
					got = append(got, err.Field)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// What kubectl shows: our columns and Crossplane's, none twice.
func TestColumns(t *testing.T) {
	want := map[Flavour][]string{
		XR:        {"ROLES", "PLACED", "URL", "SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"},
		Claim:     {"ROLES", "PLACED", "URL", "SYNCED", "READY", "CONNECTION-SECRET", "AGE"},
		ClaimedXR: {"ROLES", "PLACED", "URL", "SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"},
	}
	for f, columns := range want {
		v := mustNew(t, f).CRD.Spec.Versions[0]
		var got []string
		for _, c := range v.AdditionalPrinterColumns {
			got = append(got, c.Name)
		}
		if diff := cmp.Diff(columns, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", f, diff)
		}
		if v.Subresources.Scale == nil || v.Subresources.Scale.SpecReplicasPath != ".spec.replicas" {
			t.Errorf("%s: want a scale subresource on spec.replicas, got %v", f, v.Subresources.Scale)
		}
	}
}

// The kinds of one API group may not share a name, or one of them is not served.
func TestNamesDiffer(t *testing.T) {
	seen := map[string]Flavour{}
	for _, f := range []Flavour{Claim, ClaimedXR} {
		n := mustNew(t, f).CRD.Spec.Names
		for _, name := range append([]string{n.Kind, n.ListKind, n.Plural, n.Singular}, n.ShortNames...) {
			if other, ok := seen[name]; ok {
				t.Errorf("%s and %s are both called %s", f, other, name)
			}
			seen[name] = f
		}
	}
}

func mustNew(t *testing.T, f Flavour) *Schema {
	t.Helper()
	s, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
