package require

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// defined are the groups whose kinds have definitions, including Crossplane's own.
// test/crossplane compares their names with the definitions.
var defined = []string{
	"fusioninfer.io", "gateway.networking.k8s.io", "inference.networking.k8s.io", "keda.sh", "kubernetes.crossplane.io", "kubernetes.m.crossplane.io",
	"leaderworkerset.x-k8s.io", "llm-d.ai", "monitoring.coreos.com", "networking.istio.io", "protection.crossplane.io", "scheduling.volcano.sh",
}

// TestBuiltIn proves that Kubernetes has each kind that the examples compose, or that the kind
// has a definition. A kind of Kubernetes that is required by its definition would be missing
// for ever.
func TestBuiltIn(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "example", "*", "rendered.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[bool]int{}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Clean(f))
		if err != nil {
			t.Fatal(err)
		}
		// The first document is the XR.
		for _, doc := range strings.Split(string(b), "\n---\n")[1:] {
			m := map[string]any{}
			if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
				t.Fatal(err)
			}
			s, err := structpb.NewStruct(map[string]any{"apiVersion": m["apiVersion"], "kind": m["kind"]})
			if err != nil {
				t.Fatal(err)
			}
			kind := incoming.KindOf(kube.Object{Resource: s})
			group, _, _ := strings.Cut(kind.APIVersion, "/")
			seen[builtIn(kind)]++
			if builtIn(kind) == slices.Contains(defined, group) {
				t.Errorf("%s: %s of %s counts as a built-in kind: %t", f, kind.Name, kind.APIVersion, builtIn(kind))
			}
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("%d examples have %d objects of Kubernetes' own kinds and %d of others, want some of each", len(files), seen[true], seen[false])
	}
}
