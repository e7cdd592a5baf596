package schematest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestSeeds shows that the schemas accept all examples of the design documents unchanged.
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

// TestDefault shows that an API server stores a service without defaults. The function has
// the defaults.
func TestDefault(t *testing.T) {
	doc := []byte(`{metadata: {name: s}, spec: {roles: [{name: a, componentType: worker, multinode: {nodeCount: 2}, template: {}}]}}`)
	want := map[string]any{
		"metadata": map[string]any{"name": "s"},
		"spec": map[string]any{
			"roles": []any{map[string]any{
				"name":          "a",
				"componentType": "worker",
				"multinode":     map[string]any{"nodeCount": int64(2)},
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

// TestTransition shows that admission refuses changes that would rename or move what runs.
func TestTransition(t *testing.T) {
	const roles = `roles: [{name: a, componentType: worker, template: {}}]`
	ungrouped := []byte(`{metadata: {name: s}, spec: {` + roles + `}}`)
	one := []byte(`{metadata: {name: s}, spec: {replicas: 1, ` + roles + `}}`)
	three := []byte(`{metadata: {name: s}, spec: {replicas: 3, ` + roles + `}}`)
	in := func(clusters ...string) []byte {
		return []byte(`{metadata: {name: s}, spec: {` + roles + `, placement: {clusters: [` + strings.Join(clusters, ", ") + `]}}}`)
	}
	cases := map[string]struct {
		reason   string
		old, new []byte
		want     []string
	}{
		"Type":               {reason: "The type of a role cannot change: its objects are others.", old: ungrouped, new: []byte(`{metadata: {name: s}, spec: {roles: [{name: a, componentType: decoder, template: {}}]}}`), want: []string{"spec.roles[0].componentType"}},
		"TypeOfAnother":      {reason: "A role is identified by its name, not by its index in the list.", old: ungrouped, new: []byte(`{metadata: {name: s}, spec: {roles: [{name: b, componentType: decoder, template: {}}, {name: a, componentType: worker, template: {}}]}}`)},
		"Cluster":            {reason: "A cluster cannot change its namespace or what it refers to.", old: in(`{name: c, providerConfigRef: {name: a}}`, `{name: f, inferenceClusterRef: {name: a}}`), new: in(`{name: c, namespace: x, providerConfigRef: {name: b}}`, `{name: f, inferenceClusterRef: {name: b}}`), want: []string{"spec.placement.clusters[0].providerConfigRef", "spec.placement.clusters[0].namespace", "spec.placement.clusters[1].inferenceClusterRef"}},
		"ClusterKind":        {reason: "The kind of its configuration cannot change.", old: in(`{name: c, providerConfigRef: {name: a}}`), new: in(`{name: c, providerConfigRef: {name: a, kind: ProviderConfig}}`), want: []string{"spec.placement.clusters[0].providerConfigRef"}},
		"ClusterDefaultKind": {reason: "Setting the kind to its default is accepted.", old: in(`{name: c, providerConfigRef: {name: a}}`), new: in(`{name: c, weight: 2, providerConfigRef: {name: a, kind: ClusterProviderConfig}}`)},
		"ClusterRenamed":     {reason: "A cluster is identified by its name.", old: in(`{name: c, providerConfigRef: {name: a}}`), new: in(`{name: d, providerConfigRef: {name: b}}`)},
		"IntoTheFleet":       {reason: "A change to an InferenceCluster is accepted: the function checks that it is the same cluster.", old: in(`{name: c, namespace: x, providerConfigRef: {name: a}}`), new: in(`{name: c, inferenceClusterRef: {name: a}}`)},

		"Same":   {reason: "A change that does not touch spec.replicas is accepted.", old: ungrouped, new: ungrouped},
		"Scaled": {reason: "A change of the number is accepted: the scale subresource makes it.", old: one, new: three},
		"Set":    {reason: "Setting it is refused.", old: ungrouped, new: one, want: []string{"spec.replicas"}},
		"Unset":  {reason: "Unsetting it is refused.", old: three, new: ungrouped, want: []string{"spec.replicas"}},
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

// TestColumns shows that kubectl prints the columns of the API and Crossplane's, each once.
func TestColumns(t *testing.T) {
	want := map[Flavour][]string{
		XR:        {"ACCEPTED", "SUMMARY", "UPDATED", "PLACED", "URL", "SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"},
		Claim:     {"ACCEPTED", "SUMMARY", "UPDATED", "PLACED", "URL", "SYNCED", "READY", "CONNECTION-SECRET", "AGE"},
		ClaimedXR: {"ACCEPTED", "SUMMARY", "UPDATED", "PLACED", "URL", "SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"},
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

// TestNamesDiffer shows that claim and XR share no name. Kubernetes does not serve a kind that
// shares a name with another one of its API group.
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

// Crossplane adds fields to spec and status of what it makes of an XRD. One of ours with the
// same name would be replaced without a word, in one flavour or in all of them.
func TestNothingIsShadowed(t *testing.T) {
	ours, theirs := map[string][]string{}, map[string]map[string]bool{"spec": {}, "status": {}}
	for _, f := range append(Services(), Cluster) {
		xrd, err := definition(f)
		if err != nil {
			t.Fatal(err)
		}
		v := &xrd.Spec.Versions[0]
		schema := extv1.JSONSchemaProps{}
		if err := json.Unmarshal(v.Schema.OpenAPIV3Schema.Raw, &schema); err != nil {
			t.Fatal(err)
		}
		v.Schema.OpenAPIV3Schema.Raw = []byte(`{"type":"object","properties":{"spec":{"type":"object"},"status":{"type":"object"}}}`)
		crd, err := defined(f, xrd)
		if err != nil {
			t.Fatal(err)
		}
		for part := range theirs {
			ours[part] = append(ours[part], slices.Collect(maps.Keys(schema.Properties[part].Properties))...)
			for name := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part].Properties {
				theirs[part][name] = true
			}
		}
	}
	for part, names := range ours {
		if len(names) == 0 || len(theirs[part]) == 0 {
			t.Errorf("%s has %d fields of ours and %d of Crossplane's", part, len(names), len(theirs[part]))
		}
		for _, name := range names {
			if theirs[part][name] {
				t.Errorf("%s.%s is also a field of Crossplane's", part, name)
			}
		}
	}
	// A sample, by which the test is known to look.
	for _, known := range []string{"spec.crossplane", "spec.claimRef", "spec.compositionRef", "spec.resourceRefs", "status.conditions"} {
		part, name, _ := strings.Cut(known, ".")
		if !theirs[part][name] {
			t.Errorf("%s is not found among the fields of Crossplane's", known)
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
