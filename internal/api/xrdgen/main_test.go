package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestFresh fails if a generated file is not up to date. Then run make generate.
func TestFresh(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Errorf("%s is missing, run make generate: %v", name, err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is stale, run make generate: -generated +found:\n%s", name, diff)
		}
	}
}

// TestNoDefaults shows that the schemas have no defaults. Nobody could tell a stored default
// from a value that a user has set, so a later version could not change the default.
func TestNoDefaults(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package/xr/definition.yaml", "package/claim/definition.yaml"} {
		doc := map[string]any{}
		if err := yaml.Unmarshal(files[name], &doc); err != nil {
			t.Fatal(err)
		}
		versions, _, _ := unstructured.NestedSlice(doc, "spec", "versions")
		if len(versions) != 1 {
			t.Fatalf("%s has %d versions, want one", name, len(versions))
		}
		schema, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema")
		if found := defaults("", schema); len(schema) == 0 || len(found) > 0 {
			t.Errorf("%s has defaults: %v", name, found)
		}
	}
}

// defaults returns the paths of the fields of a schema that have a default.
func defaults(path string, schema map[string]any) []string {
	var found []string
	if _, ok := schema["default"]; ok {
		found = append(found, path)
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		found = append(found, defaults(path+"."+name, properties[name].(map[string]any))...)
	}
	for _, of := range []string{"items", "additionalProperties"} {
		if s, ok := schema[of].(map[string]any); ok {
			found = append(found, defaults(path+"[]", s)...)
		}
	}
	return found
}
