package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// startNote is the annotation by which a service knows that nobody has scaled its role.
const startNote = "fusioninfer.io/start-replicas"

// TestScaleTarget proves on an API server what plan.ScaleRoles relies on: the number of an InferenceRole is lost
// if its only owner leaves it out, stays as it is while that owner repeats it, and belongs to whoever has
// written another one by the scale subresource. Then the service leaves it out, and it stays. A number that was
// read before is refused.
func TestScaleTarget(t *testing.T) {
	for _, flavour := range []string{"xr", "claim"} {
		t.Run(flavour, func(t *testing.T) {
			c := cluster.Test(t)
			define(t, c, definitionsIn(t, flavour, "role-definition.yaml"))
			if err := c.Namespace(t.Context(), "team"); err != nil {
				t.Fatal(err)
			}
			e := named(t, examples(t, false), "scaling")
			for _, o := range e.composed {
				if o.GetKind() == "InferenceRole" && o.GetName() == "chat-decode" {
					scaleTarget(t, c, o)
					return
				}
			}
			t.Fatal("example/scaling has no InferenceRole chat-decode")
		})
	}
}

func scaleTarget(t *testing.T, c *cluster.Cluster, started *unstructured.Unstructured) {
	t.Helper()
	o := started.DeepCopy()
	o.SetOwnerReferences(nil)
	o.SetNamespace("team")
	r, err := c.Resource(o)
	if err != nil {
		t.Fatal(err)
	}
	alone := o.DeepCopy()
	unstructured.RemoveNestedField(alone.Object, "spec", "replicas")
	unstructured.RemoveNestedField(alone.Object, "metadata", "annotations", startNote)

	apply(t, r, o)
	if got := replicasOfScale(t, r, o.GetName()); got != 2 {
		t.Errorf("it starts with %d replicas, want 2", got)
	}
	before := apply(t, r, o).GetResourceVersion()
	if after := apply(t, r, o).GetResourceVersion(); before != after {
		t.Errorf("repeating the number changes the object, from version %s to %s", before, after)
	}
	if n, there, _ := unstructured.NestedInt64(apply(t, r, alone).Object, "spec", "replicas"); there {
		t.Errorf("the only owner leaves out the number, and it is still %d", n)
	}
	stale := o.DeepCopy()
	stale.SetResourceVersion(apply(t, r, o).GetResourceVersion())
	if now := apply(t, r, stale).GetResourceVersion(); now != stale.GetResourceVersion() {
		t.Errorf("repeating the number with its version changes the object, from version %s to %s", stale.GetResourceVersion(), now)
	}

	setScale(t, r, o.GetName(), 5)
	_, err = r.Apply(t.Context(), o.GetName(), stale, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if !apierrors.IsConflict(err) {
		t.Errorf("the number of the start is applied after somebody has scaled: want a conflict, got %v", err)
	}
	got := apply(t, r, alone)
	n, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas")
	if diff := cmp.Diff([]any{int64(5), ""}, []any{n, got.GetAnnotations()[startNote]}); diff != "" {
		t.Errorf("the number of somebody else, and the note, once the service leaves out both: -want +got:\n%s", diff)
	}
	setScale(t, r, o.GetName(), 2)
	apply(t, r, alone)
	if got := replicasOfScale(t, r, o.GetName()); got != 2 {
		t.Errorf("scaled back to the number of the start, it has %d replicas, want 2", got)
	}
}

// apply applies an object as Crossplane does.
func apply(t *testing.T, r dynamic.ResourceInterface, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	got, err := r.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// setScale sets the number of replicas as kubectl scale and autoscalers do.
func setScale(t *testing.T, r dynamic.ResourceInterface, name string, n int64) {
	t.Helper()
	s, err := r.Get(t.Context(), name, metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(s.Object, n, "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Update(t.Context(), s, metav1.UpdateOptions{FieldManager: "kubectl"}, "scale"); err != nil {
		t.Fatal(err)
	}
}
