package crossplane

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// definitions are directories of modules that have the schemas of what is
// composed. A module has the version that the go.mod in a directory of test/
// requires.
var definitions = []struct{ in, module, dir string }{
	{"tools/lws", "sigs.k8s.io/lws", "config/crd/bases"},
	{"tools/volcano", "volcano.sh/volcano", "config/crd/volcano/bases"},
	{"tools/crds", "sigs.k8s.io/gateway-api", "config/crd/standard"},
	{"tools/crds", "sigs.k8s.io/gateway-api-inference-extension", "config/crd/bases"},
	{"tools/crds", "istio.io/api", "kubernetes"},
	{"tools/provider-kubernetes", "github.com/crossplane-contrib/provider-kubernetes", "package/crds"},
}

// extensions are the files and directories with the schemas.
func extensions(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, d := range definitions {
		all = append(all, filepath.Join(module(t, d.in, d.module), filepath.FromSlash(d.dir)))
	}
	return append(all, write(t, filepath.Join(t.TempDir(), "llm-d.yaml"), llmd(t)...))
}

// module returns the directory of a module.
func module(t *testing.T, in, path string) string {
	t.Helper()
	out, err := output("go", "-C", filepath.Join(root, "test", filepath.FromSlash(in)), "mod", "download", "-json", path)
	if err != nil {
		t.Fatal(err)
	}
	m := struct{ Dir string }{}
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m.Dir
}

// llmd returns the definitions of the group llm-d.ai, of which no module can be
// had. They began as the same kinds of the Gateway API Inference Extension; the last
// release with them has the same fields in its own group.
func llmd(t *testing.T) []*object {
	t.Helper()
	const group = "llm-d.ai"
	var all []*object
	for _, o := range customResourceDefinitions(t, filepath.Join(module(t, "epp/v1.5.0", "sigs.k8s.io/gateway-api-inference-extension"), "config", "crd", "bases")) {
		plural, _, _ := strings.Cut(o.GetName(), ".")
		if !slices.Contains([]string{"inferenceobjectives", "inferencemodelrewrites"}, plural) {
			continue
		}
		o.SetName(plural + "." + group)
		set(t, o, group, "spec", "group")
		all = append(all, o)
	}
	if len(all) != 2 {
		t.Fatalf("the Gateway API Inference Extension has %d of the 2 definitions", len(all))
	}
	return all
}

// customResourceDefinitions reads those of a file or a directory.
func customResourceDefinitions(t *testing.T, path string) []*object {
	t.Helper()
	files := []string{path}
	if filepath.Ext(path) != ".yaml" {
		var err error
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	var all []*object
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range documents(t, b) {
			if o.GetKind() == "CustomResourceDefinition" {
				all = append(all, o)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no definitions in %s", path)
	}
	return all
}

// openAPI writes the schemas as an API server shows them, a file for each version
// of a group, and returns the directory.
func openAPI(t *testing.T) string {
	t.Helper()
	groups := map[string]map[string]any{}
	for _, path := range extensions(t) {
		for _, o := range customResourceDefinitions(t, path) {
			addSchemas(t, groups, o)
		}
	}
	dir := t.TempDir()
	for name, schemas := range groups {
		b, err := json.Marshal(map[string]any{
			"openapi": "3.0.0", "info": map[string]any{"title": name, "version": "v1"}, "paths": map[string]any{},
			"components": map[string]any{"schemas": schemas},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// addSchemas adds those of a definition to the ones of its group.
func addSchemas(t *testing.T, groups map[string]map[string]any, crd *object) {
	t.Helper()
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		m := v.(map[string]any)
		version := m["name"].(string)
		schema, ok, err := unstructured.NestedMap(m, "schema", "openAPIV3Schema")
		if !ok || err != nil {
			t.Fatalf("%s %s has no schema: %v", crd.GetName(), version, err)
		}
		schema["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": group, "version": version, "kind": kind}}
		name := group + "." + version
		if groups[name] == nil {
			groups[name] = map[string]any{}
		}
		groups[name][kind] = schema
	}
}
