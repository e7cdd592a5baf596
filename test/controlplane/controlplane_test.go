/*
Package controlplane tests against a real API server and real controllers: what
is rendered is accepted as it is, without warnings, and applied a second time
it changes nothing.
*/
package controlplane

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestExamples creates every example on an API server, and applies what is
// composed of it. The two flavours exclude each other, so one follows the other.
func TestExamples(t *testing.T) {
	xrs, claimed := examples(t, false), examples(t, true)
	c := cluster.Test(t)
	if err := c.InstallDefinitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.StandbyLWS(t.Context()); err != nil {
		t.Fatal(err)
	}
	xr, claim := definitionsOf(t, "xr"), definitionsOf(t, "claim")

	t.Run("XR", func(t *testing.T) {
		define(t, c, xr)
		for _, e := range xrs {
			t.Run(e.name, func(t *testing.T) { applyExample(t, c, e) })
		}
		t.Run("Group", func(t *testing.T) { replicasAreForEver(t, c, named(t, xrs, "role-scaling")) })
		t.Run("Scale", func(t *testing.T) { scale(t, c, named(t, xrs, "role-scaling")) })
		t.Run("ScaleUngrouped", func(t *testing.T) { scaleUngrouped(t, c, named(t, xrs, "quickstart")) })
		t.Run("PickerStrategy", func(t *testing.T) { pickerStrategy(t, c, named(t, xrs, "quickstart")) })
		t.Run("UnknownFields", func(t *testing.T) { unknownFields(t, c, named(t, xrs, "quickstart")) })
		t.Run("Columns", func(t *testing.T) { columns(t, c, named(t, xrs, "quickstart")) })
	})
	for _, crd := range xr {
		remove(t, c, crd)
	}
	t.Run("Claim", func(t *testing.T) {
		define(t, c, claim)
		for _, e := range claimed {
			t.Run(e.name, func(t *testing.T) {
				applyExample(t, c, e)
				claimIsAccepted(t, c, e)
			})
		}
	})
}

// applyExample creates an example's XR, and applies what is composed of it as
// Crossplane does.
func applyExample(t *testing.T, c *cluster.Cluster, e *example) {
	t.Helper()
	if err := c.Namespace(t.Context(), e.namespace()); err != nil {
		t.Fatal(err)
	}
	xr, err := createXR(t, c, e)
	if e.name == "invalid" || e.name == "scaling-refused" {
		if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			t.Errorf("the API server has to refuse it: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range e.composed {
		o = e.inNamespace(o)
		// What is written over a version of its own is in fleet_test.go. Here that version is of the example.
		unstructured.RemoveNestedField(o.Object, "metadata", "resourceVersion")
		t.Run(key(o), func(t *testing.T) {
			if err := ownedBy(o, xr); err != nil {
				t.Fatal(err)
			}
			applyTwice(t, c, o)
			manifest, ok, err := unstructured.NestedMap(o.Object, "spec", "forProvider", "manifest")
			if err != nil || !ok {
				return
			}
			if policies, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies"); slices.Equal(policies, []string{"Observe"}) {
				return // The provider only reads it. Its controller makes it.
			}
			carried := e.inNamespace(&unstructured.Unstructured{Object: manifest})
			applyTwice(t, c, carried)
		})
	}
}

// createXR creates the XR of an example, without what an API server sets.
func createXR(t *testing.T, c *cluster.Cluster, e *example) (*unstructured.Unstructured, error) {
	t.Helper()
	o := e.xr.DeepCopy()
	for _, f := range []string{"uid", "generation", "creationTimestamp", "resourceVersion"} {
		unstructured.RemoveNestedField(o.Object, "metadata", f)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	if !e.claimed() {
		o.SetNamespace(e.namespace())
	} else {
		// Cluster-scoped, so examples of the same service would meet.
		o.SetName(e.name)
	}
	warnings := &cluster.Warnings{}
	w, err := c.WithWarnings(warnings)
	if err != nil {
		return nil, err
	}
	created, err := w.Create(t.Context(), o)
	if err == nil && len(*warnings) > 0 {
		t.Errorf("creation warns: %q", *warnings)
	}
	return created, err
}

// manager of fields is called as Crossplane's is.
const manager = "apiextensions.crossplane.io/composed/0123456789"

// applyTwice applies an object twice. The API server must accept it without warnings, store it
// unchanged, and not change it the second time.
func applyTwice(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured) {
	t.Helper()
	if bad := surprises(o.Object, ""); len(bad) > 0 {
		t.Errorf("it has nulls, or fields of the API server or of controllers: %q", bad)
	}
	warnings := &cluster.Warnings{}
	w, err := c.WithWarnings(warnings)
	if err != nil {
		t.Fatal(err)
	}
	first, err := w.Apply(t.Context(), o, manager)
	if err != nil {
		t.Fatalf("it is refused: %v", err)
	}
	if status, _, _ := unstructured.NestedMap(first.Object, "status"); len(status) > 0 {
		// A kind with a default for the status, such as Gateway's conditions and a claim's phase: it is
		// shown at once, and stored with the next write, whoever writes.
		if first, err = w.Apply(t.Context(), o, manager); err != nil {
			t.Fatalf("it is refused when applied again: %v", err)
		}
	}
	second, err := w.Apply(t.Context(), o, manager)
	if err != nil {
		t.Fatalf("it is refused when applied again: %v", err)
	}
	if len(*warnings) > 0 {
		t.Errorf("the API server warns: %q", *warnings)
	}
	if diff := cmp.Diff(first.Object, second.Object); diff != "" {
		t.Errorf("applied again, it changes: -first, +second:\n%s", diff)
	}
	if lost := differences(o.Object, first.Object, ""); len(lost) > 0 {
		t.Errorf("it is not stored as it was applied: %q", lost)
	}
	if owned := ownedFields(t, first); len(owned) == 0 {
		t.Error("nobody owns its fields")
	} else if bad := slices.DeleteFunc(owned, func(f string) bool { return !mustNotOwn(f) }); len(bad) > 0 {
		t.Errorf("Crossplane would own %q", bad)
	}
}

// surprises are the paths of a document whose value is null, or that belong to
// the API server or to a controller.
func surprises(v any, path string) []string {
	switch v := v.(type) {
	case nil:
		return []string{path + " is null"}
	case map[string]any:
		var all []string
		for k, e := range v {
			at := path + "." + k
			if at == ".status" || k == "creationTimestamp" && strings.HasSuffix(path, ".metadata") {
				all = append(all, at)
			}
			all = append(all, surprises(e, at)...)
		}
		slices.Sort(all)
		return all
	case []any:
		if len(v) == 0 {
			return []string{path + " is an empty list"}
		}
		var all []string
		for i, e := range v {
			all = append(all, surprises(e, fmt.Sprintf("%s[%d]", path, i))...)
		}
		return all
	}
	return nil
}

// differences are the paths whose value is not the one that was applied. What is
// added, such as defaults, is none.
func differences(want, got any, path string) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: %v became %v", path, want, got)}
		}
		var all []string
		for k, e := range w {
			all = append(all, differences(e, g[k], path+"."+k)...)
		}
		slices.Sort(all)
		return all
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []string{fmt.Sprintf("%s: %v became %v", path, want, got)}
		}
		var all []string
		for i, e := range w {
			all = append(all, differences(e, g[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return all
	}
	if want != got {
		return []string{fmt.Sprintf("%s: %v became %v", path, want, got)}
	}
	return nil
}

// ownedFields are the fields that Crossplane's manager owns.
func ownedFields(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	var all []string
	for _, m := range o.GetManagedFields() {
		if m.Manager != manager || m.FieldsV1 == nil {
			continue
		}
		if m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" {
			t.Errorf("Crossplane manages by %s %s", m.Operation, m.Subresource)
		}
		fields := map[string]any{}
		if err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields); err != nil {
			t.Fatal(err)
		}
		all = append(all, paths(fields, "")...)
	}
	slices.Sort(all)
	return all
}

func paths(fields map[string]any, at string) []string {
	var all []string
	for k, v := range fields {
		more, _ := v.(map[string]any)
		if k != "." {
			all = append(all, at+k)
		}
		all = append(all, paths(more, at+k+"/")...)
	}
	return all
}

func mustNotOwn(path string) bool {
	return strings.HasPrefix(path, "f:status") || strings.HasSuffix(path, "f:creationTimestamp") ||
		strings.HasPrefix(path, "f:metadata/f:managedFields") || strings.HasPrefix(path, "f:metadata/f:resourceVersion")
}
