package crossplane

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	{"tools/crds", "github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"},
	{"tools/crds", "github.com/kedacore/keda/v2", "config/crd/bases/keda.sh_scaledobjects.yaml"},
	{"tools/provider-kubernetes", "github.com/crossplane-contrib/provider-kubernetes", "package/crds"},
	{"tools/crossplane", "github.com/crossplane/crossplane/v2", "cluster/crds/protection.crossplane.io_clusterusages.yaml"},
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

// installed are the definitions of everything that is composed as a cluster has them
// that serves them.
func installed(t *testing.T) []*object {
	t.Helper()
	var all []*object
	for _, path := range extensions(t) {
		for _, o := range customResourceDefinitions(t, path) {
			set(t, o, map[string]any{"conditions": []any{
				map[string]any{"type": "NamesAccepted", "status": "True"},
				map[string]any{"type": "Established", "status": "True"},
			}}, "status")
			all = append(all, o)
		}
	}
	return all
}
