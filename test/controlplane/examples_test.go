package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// An example is a directory of example/.
type example struct {
	name string
	xr   *unstructured.Unstructured
	// composed resources, as Crossplane would apply them. None where the service
	// is refused.
	composed []*unstructured.Unstructured
}

// namespace that the example has for itself.
func (e *example) namespace() string { return "example-" + e.name }

// claimed tells whether the example is an XR behind a claim.
func (e *example) claimed() bool { return e.xr.GetKind() == "XInferenceService" }

// ofCluster tells whether the example is a cluster of the fleet.
func (e *example) ofCluster() bool { return e.xr.GetKind() == "InferenceCluster" }

// examples reads all examples of one flavour. There have to be some, and what is
// composed as well: an example that is refused has no rendered.yaml, and says why in
// stderr.txt.
func examples(t *testing.T, claimed bool) []*example {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root(t), "example", "*", "xr.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*example
	for _, f := range dirs {
		dir := filepath.Dir(f)
		e := &example{name: filepath.Base(dir), xr: documents(t, f)[0]}
		if e.claimed() != claimed || e.ofCluster() {
			continue
		}
		all = append(all, e)
		rendered := filepath.Join(dir, "rendered.yaml")
		if _, err := os.Stat(rendered); err != nil {
			if _, err := os.Stat(filepath.Join(dir, "stderr.txt")); err != nil {
				t.Errorf("example/%s has neither rendered.yaml nor stderr.txt: run make golden", e.name)
			}
			continue
		}
		e.composed = documents(t, rendered)[1:]
		if len(e.composed) == 0 {
			t.Errorf("example/%s/rendered.yaml has nothing to apply", e.name)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no examples (claimed: %t)", claimed)
	}
	return all
}

// named returns an example of that name.
func named(t *testing.T, all []*example, name string) *example {
	t.Helper()
	i := slices.IndexFunc(all, func(e *example) bool { return e.name == name })
	if i < 0 {
		t.Fatalf("there is no example %s any more", name)
	}
	return all[i]
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func documents(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := cluster.Documents(b)
	if err != nil {
		t.Fatalf("cannot read %s: %v", file, err)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no document", file)
	}
	return all
}

// key of a composed resource.
func key(o *unstructured.Unstructured) string {
	if k := o.GetAnnotations()["crossplane.io/composition-resource-name"]; k != "" {
		return k
	}
	return strings.ToLower(o.GetKind()) + "/" + o.GetName()
}

// inNamespace moves an object to the namespace of its example, so that examples
// that are about the same service do not meet.
func (e *example) inNamespace(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	if o.GetNamespace() != "" {
		o.SetNamespace(e.namespace())
	}
	return o
}

// ownedBy gives an object the UID of its owner as it is in the cluster.
func ownedBy(o, owner *unstructured.Unstructured) error {
	refs := o.GetOwnerReferences()
	if len(refs) != 1 {
		return fmt.Errorf("%s has %d owners, want the XR", key(o), len(refs))
	}
	refs[0].Name, refs[0].UID = owner.GetName(), owner.GetUID()
	o.SetOwnerReferences(refs)
	return nil
}
