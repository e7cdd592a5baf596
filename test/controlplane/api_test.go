package controlplane

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

func define(t *testing.T, c *cluster.Cluster, crds []*unstructured.Unstructured) {
	t.Helper()
	if err := c.Define(t.Context(), crds...); err != nil {
		t.Fatal(err)
	}
}

// remove removes a definition and everything of its kind.
func remove(t *testing.T, c *cluster.Cluster, crd *unstructured.Unstructured) {
	t.Helper()
	if err := c.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	if err := c.Gone(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
}

// services returns the InferenceServices of an example's namespace, and the name of
// the example's own.
func services(t *testing.T, c *cluster.Cluster, e *example) (dynamic.ResourceInterface, string) {
	t.Helper()
	o := e.xr.DeepCopy()
	o.SetNamespace(e.namespace())
	r, err := c.Resource(o)
	if err != nil {
		t.Fatal(err)
	}
	return r, o.GetName()
}

// replicasAreForEver checks the rule that spec.replicas is neither set nor unset
// later, because it would rename everything.
func replicasAreForEver(t *testing.T, c *cluster.Cluster, grouped *example) {
	t.Helper()
	r, name := services(t, c, grouped)
	_, err := r.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":null}}`), metav1.PatchOptions{})
	refused(t, "unsetting spec.replicas", err, "spec.replicas")

	if _, err := r.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("changing spec.replicas is what it is there for: %v", err)
	}
}

// unknownFields checks why the function refuses unknown fields in templates and routes: the API server does not apply an object
// with one. Its error is not Invalid, so Crossplane applies nothing else either.
func unknownFields(t *testing.T, c *cluster.Cluster, e *example) {
	t.Helper()
	for kind, at := range map[string][]string{
		"LeaderWorkerSet": {"spec", "leaderWorkerTemplate", "workerTemplate", "spec", "nodeSelectors"},
		"HTTPRoute":       {"spec", "hostname"},
	} {
		i := slices.IndexFunc(e.composed, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
		if i < 0 {
			t.Errorf("%s has no %s", e.name, kind)
			continue
		}
		o := e.inNamespace(e.composed[i].DeepCopy())
		if err := unstructured.SetNestedField(o.Object, "x", at...); err != nil {
			t.Fatal(err)
		}
		r, err := c.Resource(o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
		if err == nil || apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "field not declared in schema") {
			t.Errorf("%s with an unknown field: got %v", kind, err)
		}
	}
}

// scale checks the scale subresource, which is how autoscalers change the number of
// groups.
func scale(t *testing.T, c *cluster.Cluster, grouped *example) {
	t.Helper()
	r, name := services(t, c, grouped)
	if got := replicasOfScale(t, r, name); got != 3 {
		t.Errorf("scale says %d replicas, want the 3 of the spec", got)
	}
	s, err := r.Get(t.Context(), name, metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(s.Object, int64(5), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Update(t.Context(), s, metav1.UpdateOptions{}, "scale"); err != nil {
		t.Fatalf("cannot scale: %v", err)
	}
	if got := replicasOfScale(t, r, name); got != 5 {
		t.Errorf("scale says %d replicas after an update to 5", got)
	}
	o, err := r.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); got != 5 {
		t.Errorf("spec.replicas is %d after scaling to 5", got)
	}
	// Of what is observed, an autoscaler reads the number and the selector.
	if err := unstructured.SetNestedField(o.Object, int64(4), "status", "replicas"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.UpdateStatus(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("cannot update the status: %v", err)
	}
	if s, err = r.Get(t.Context(), name, metav1.GetOptions{}, "scale"); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedInt64(s.Object, "status", "replicas"); got != 4 {
		t.Errorf("scale says that %d replicas were observed, want the 4 of the status", got)
	}
}

// scaleUngrouped checks that a service without spec.replicas is not given them
// behind its back.
func scaleUngrouped(t *testing.T, c *cluster.Cluster, ungrouped *example) {
	t.Helper()
	r, name := services(t, c, ungrouped)
	_, err := r.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{}, "scale")
	refused(t, "scaling a service without spec.replicas", err, "spec.replicas")
	_, err = r.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{})
	refused(t, "setting spec.replicas", err, "spec.replicas")
}

// pickerStrategy checks that an endpoint picker may become several, and one again. Their Deployments
// have other strategies, and the API server refuses the limits of one with the type of the other.
func pickerStrategy(t *testing.T, c *cluster.Cluster, e *example) {
	t.Helper()
	i := slices.IndexFunc(e.composed, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	one := e.inNamespace(e.composed[i])
	several := one.DeepCopy()
	several.Object["spec"].(map[string]any)["strategy"] = map[string]any{"type": "Recreate"}
	for _, o := range []*unstructured.Unstructured{several, one} {
		got, err := c.Apply(t.Context(), o, manager)
		if err != nil {
			t.Fatalf("another strategy is refused: %v", err)
		}
		want, _, _ := unstructured.NestedMap(o.Object, "spec", "strategy")
		strategy, _, _ := unstructured.NestedMap(got.Object, "spec", "strategy")
		if diff := cmp.Diff(want, strategy); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func replicasOfScale(t *testing.T, r dynamic.ResourceInterface, name string) int64 {
	t.Helper()
	s, err := r.Get(t.Context(), name, metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := unstructured.NestedInt64(s.Object, "spec", "replicas")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// columns checks what kubectl get shows.
func columns(t *testing.T, c *cluster.Cluster, e *example) {
	t.Helper()
	table, err := c.Table(t.Context(), "/apis/fusioninfer.io/v1alpha1/namespaces/"+e.namespace()+"/inferenceservices")
	if err != nil {
		t.Fatal(err)
	}
	shown := struct {
		ColumnDefinitions []struct {
			Name     string
			Priority int
		}
		Rows []struct{ Cells []any }
	}{}
	if err := json.Unmarshal(table, &shown); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range shown.ColumnDefinitions {
		names = append(names, strings.ToLower(d.Name))
	}
	for _, want := range []string{"name", "accepted", "summary", "placed", "ready", "url", "age"} {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+want+" ") {
			t.Errorf("kubectl get shows %q, and not %s", names, want)
		}
	}
	if len(shown.Rows) != 1 {
		t.Errorf("kubectl get shows %d services, want 1", len(shown.Rows))
	}
}

// claimIsAccepted creates the claim of which the example's XR would come.
func claimIsAccepted(t *testing.T, c *cluster.Cluster, e *example) {
	t.Helper()
	claim := &unstructured.Unstructured{Object: map[string]any{}}
	claim.SetAPIVersion(e.xr.GetAPIVersion())
	claim.SetKind("InferenceService")
	claim.SetNamespace(e.namespace())
	claim.SetName(e.xr.GetLabels()["crossplane.io/claim-name"])
	spec, _, err := unstructured.NestedMap(e.xr.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	delete(spec, "claimRef")
	claim.Object["spec"] = spec
	got, err := c.Create(t.Context(), claim)
	if err != nil {
		t.Fatalf("the claim is refused: %v", err)
	}
	r, err := c.Resource(got)
	if err != nil {
		t.Fatal(err)
	}
	_, before, err := unstructured.NestedFieldNoCopy(spec, "replicas")
	if err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"spec":{"replicas":1}}`)
	if before {
		patch = []byte(`{"spec":{"replicas":null}}`)
	}
	_, err = r.Patch(t.Context(), got.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	refused(t, "setting or unsetting spec.replicas of a claim", err, "spec.replicas")
}

// refused checks that an API server refuses a change, and for the field that is
// meant.
func refused(t *testing.T, what string, err error, field string) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Errorf("%s has to be refused: %v", what, err)
		return
	}
	var s apierrors.APIStatus
	if !errors.As(err, &s) || s.Status().Details == nil {
		t.Fatalf("%s: not an answer of an API server: %v", what, err)
	}
	var fields []string
	for _, cause := range s.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	if diff := cmp.Diff([]string{field}, fields); diff != "" {
		t.Errorf("%s: -want, +got:\n%s\n%v", what, diff, err)
	}
}
