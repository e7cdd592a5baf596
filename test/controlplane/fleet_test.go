package controlplane

import (
	"encoding/base64"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestFleet creates the clusters of the examples on an API server, and applies what is
// composed of them.
func TestFleet(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), "example", "cluster-*", "xr.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples of clusters: %v", err)
	}
	c := cluster.Test(t)
	if err := c.InstallDefinitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	define(t, c, definitionsIn(t, "xr", "cluster-definition.yaml"))
	if err := c.Namespace(t.Context(), "crossplane-system"); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(filepath.Base(filepath.Dir(f)), func(t *testing.T) { applyCluster(t, c, f) })
	}
	t.Run("Refused", func(t *testing.T) {
		xr := documents(t, files[0])[0]
		if err := unstructured.SetNestedSlice(xr.Object, []any{map[string]any{"name": "p"}}, "spec", "pools"); err != nil {
			t.Fatal(err)
		}
		_, err := c.Create(t.Context(), xr)
		refused(t, "an observed pool without a nodeSelector", err, "spec.pools[0].nodeSelector")
	})
	t.Run("Ledger", func(t *testing.T) {
		ledgerIsLocked(t, c, filepath.Join(filepath.Dir(files[0]), "..", "cluster-reservations", "rendered.yaml"))
	})
}

func applyCluster(t *testing.T, c *cluster.Cluster, file string) {
	t.Helper()
	xr := documents(t, file)[0]
	for _, f := range []string{"uid", "generation"} {
		unstructured.RemoveNestedField(xr.Object, "metadata", f)
	}
	created, err := c.Create(t.Context(), xr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Delete(t.Context(), created); err != nil {
			t.Error(err)
		}
	}()
	rendered := documents(t, filepath.Join(filepath.Dir(file), "rendered.yaml"))
	for _, o := range rendered[1:] {
		// Another test is about the version.
		unstructured.RemoveNestedField(o.Object, "metadata", "resourceVersion")
		t.Run(key(o), func(t *testing.T) {
			if err := ownedBy(o, created); err != nil {
				t.Fatal(err)
			}
			applyTwice(t, c, o)
			if err := c.Delete(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	status := rendered[0]
	unstructured.RemoveNestedField(status.Object, "spec")
	kept, err := c.ApplyStatus(t.Context(), status, manager)
	if err != nil {
		t.Fatalf("the status is refused: %v", err)
	}
	if lost := differences(status.Object["status"], kept.Object["status"], ""); len(lost) > 0 {
		t.Errorf("the status is not stored as it was applied: %q", lost)
	}
}

// ledgerIsLocked checks that no capacity is reserved twice. An API server accepts a ledger
// only over the version from which it was computed, although Crossplane forces conflicts.
// It must not return Invalid, which Crossplane ignores: it would then write a status with
// reservations that are in no ledger.
func ledgerIsLocked(t *testing.T, c *cluster.Cluster, rendered string) {
	t.Helper()
	all := documents(t, rendered)
	l := all[slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return key(o) == "ledger" })]
	if l.GetResourceVersion() == "" {
		t.Fatal("the ledger has no version")
	}
	l.SetOwnerReferences(nil)
	over := func(version, reservations string) *unstructured.Unstructured {
		o := l.DeepCopy()
		o.SetResourceVersion(version)
		if err := unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString([]byte(reservations)), "binaryData", "ledger"); err != nil {
			t.Fatal(err)
		}
		return o
	}
	first, err := c.Apply(t.Context(), over("", "[]"), manager)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Apply(t.Context(), over(first.GetResourceVersion(), `[{"uid":"a"}]`), manager)
	if err != nil {
		t.Fatalf("a ledger over the version that was read: %v", err)
	}
	if second.GetResourceVersion() == first.GetResourceVersion() {
		t.Error("the version has not changed")
	}
	for what, o := range map[string]*unstructured.Unstructured{
		"other reservations": over(first.GetResourceVersion(), `[{"uid":"b"}]`),
		"the same":           over(first.GetResourceVersion(), `[{"uid":"a"}]`),
	} {
		_, err := c.Apply(t.Context(), o, manager)
		if !apierrors.IsConflict(err) {
			t.Errorf("%s over an old version has to be a conflict: %v", what, err)
			continue
		}
		t.Logf("%s over an old version: %v", what, err)
	}
	again, err := c.Apply(t.Context(), over(second.GetResourceVersion(), `[{"uid":"a"}]`), manager)
	if err != nil || again.GetResourceVersion() != second.GetResourceVersion() {
		t.Errorf("the same over the newest version changes nothing: %v", err)
	}
	owned := ownedFields(t, second)
	if slices.ContainsFunc(owned, func(f string) bool { return strings.Contains(f, "resourceVersion") }) {
		t.Errorf("the version is nobody's: %q", owned)
	}
	if err := c.Delete(t.Context(), l); err != nil {
		t.Error(err)
	}
	// The version is of no meaning where there is nothing: a ledger that somebody deletes
	// is made again. That is the one hole, and docs/placement.md says so.
	if _, err = c.Apply(t.Context(), over(second.GetResourceVersion(), "[]"), manager); apierrors.IsInvalid(err) {
		t.Errorf("a ledger that was deleted is invalid: %v", err)
	}
}
