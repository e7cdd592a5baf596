package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// Metadata that Crossplane sets and reads.
const (
	labelComposite         = "crossplane.io/composite"
	labelClaimName         = "crossplane.io/claim-name"
	labelClaimNamespace    = "crossplane.io/claim-namespace"
	annotationResourceName = "crossplane.io/composition-resource-name"
)

// legacy tells the cluster-scoped XR behind a claim from a namespaced one.
func legacy(xr object) bool { return xr.GetKind() == v1alpha1.ClusterKind }

// ofCluster tells an InferenceCluster from an InferenceService.
func ofCluster(xr object) bool { return xr.GetKind() == v1alpha1.KindCluster }

// xr reads the composite resource and gives it what it would have in a cluster.
func (f *files) xr(path string) (object, error) {
	xr, err := f.one(path)
	if err != nil {
		return object{}, err
	}
	gv := v1alpha1.Group + "/" + v1alpha1.Version
	if xr.GetAPIVersion() != gv || (xr.GetKind() != v1alpha1.Kind && !legacy(xr) && !ofCluster(xr)) {
		return object{}, fmt.Errorf("cannot read %q: it is of kind %s in %s, not %s, %s or %s in %s",
			path, xr.GetKind(), xr.GetAPIVersion(), v1alpha1.Kind, v1alpha1.ClusterKind, v1alpha1.KindCluster, gv)
	}
	if xr.GetName() == "" {
		return object{}, fmt.Errorf("cannot read %q: it has no metadata.name", path)
	}
	if xr.GetNamespace() == "" && !legacy(xr) && !ofCluster(xr) {
		xr.SetNamespace(metav1.NamespaceDefault)
	}
	if xr.GetUID() == "" {
		xr.SetUID(defaultUID(xr))
	}
	xr.SetResourceVersion("999")
	setCondition(&xr, condition{Type: "Responsive", Status: "True", Reason: "WatchCircuitClosed", ObservedGeneration: xr.GetGeneration()})
	return withLabel(xr), nil
}

// defaultUID is the one that Crossplane's own render makes up, so that the same
// owner references fit both.
func defaultUID(xr object) types.UID {
	of := xr.GroupVersionKind().String() + "\x00" + xr.GetNamespace() + "\x00" + xr.GetName()
	return types.UID(uuid.NewSHA1(uuid.Nil, []byte(of)).String())
}

func withLabel(xr object) object {
	labels := maps.Clone(xr.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	if labels[labelComposite] == "" {
		labels[labelComposite] = xr.GetName()
	}
	xr.SetLabels(labels)
	return xr
}

// input reads the function's Input from a file of its own.
func (f *files) input(path string) (*object, error) {
	in, err := f.one(path)
	if err != nil {
		return nil, err
	}
	if !isInput(in) {
		return nil, fmt.Errorf("cannot read %q: it is of kind %s in %s, not %s in %s/%s",
			path, in.GetKind(), in.GetAPIVersion(), v1beta1.Kind, v1beta1.Group, v1beta1.Version)
	}
	return &in, nil
}

func isInput(o object) bool {
	return o.GetAPIVersion() == v1beta1.Group+"/"+v1beta1.Version && o.GetKind() == v1beta1.Kind
}

// composition takes the Input out of the one step that has it.
func (f *files) composition(path string, xr object) (*object, error) {
	c, err := f.one(path)
	if err != nil {
		return nil, err
	}
	if c.GetAPIVersion() != "apiextensions.crossplane.io/v1" || c.GetKind() != "Composition" {
		return nil, fmt.Errorf("cannot read %q: it is of kind %s in %s, not Composition in apiextensions.crossplane.io/v1",
			path, c.GetKind(), c.GetAPIVersion())
	}
	if kind, _, _ := unstructured.NestedString(c.Object, "spec", "compositeTypeRef", "kind"); kind != xr.GetKind() {
		return nil, fmt.Errorf("cannot use %q: it composes %q, and the XR is of kind %q", path, kind, xr.GetKind())
	}
	steps, _, err := unstructured.NestedSlice(c.Object, "spec", "pipeline")
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	var found []object
	var names []string
	for _, s := range steps {
		step, _ := s.(map[string]any)
		name, _, _ := unstructured.NestedString(step, "step")
		names = append(names, name)
		if in, _, _ := unstructured.NestedMap(step, "input"); isInput(object{Object: in}) {
			found = append(found, object{Object: in})
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("cannot read %q: %d of its steps (%s) have an input of kind %s of %s/%s, and one should",
			path, len(found), strings.Join(names, ", "), v1beta1.Kind, v1beta1.Group, v1beta1.Version)
	}
	return &found[0], nil
}

// observed reads the composed resources as they are, by their keys.
func (f *files) observed(paths []string, xr object) (map[string]object, error) {
	all := map[string]object{}
	for _, path := range paths {
		objects, err := f.objects(path)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if err := adopt(&o, xr); err != nil {
				return nil, fmt.Errorf("cannot use %s %s in %q: %w", o.GetKind(), o.GetName(), path, err)
			}
			key := o.GetAnnotations()[annotationResourceName]
			if _, twice := all[key]; twice {
				return nil, fmt.Errorf("cannot use %s %s in %q: another observed resource is %q as well", o.GetKind(), o.GetName(), path, key)
			}
			all[key] = o
		}
	}
	return all, nil
}

// adopt checks that an observed object could be the XR's.
func adopt(o *object, xr object) error {
	if o.GetAnnotations()[annotationResourceName] == "" {
		return fmt.Errorf("it has no annotation %s", annotationResourceName)
	}
	if o.GetName() == "" {
		return errors.New("it has no metadata.name")
	}
	if c := metav1.GetControllerOf(o); c != nil && c.UID != xr.GetUID() {
		return fmt.Errorf("its controller is %s %s with uid %q, and the XR has uid %q", c.Kind, c.Name, c.UID, xr.GetUID())
	}
	if xr.GetNamespace() == "" {
		return nil
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(xr.GetNamespace())
	}
	if o.GetNamespace() != xr.GetNamespace() {
		return fmt.Errorf("it is in namespace %q, and the XR in %q", o.GetNamespace(), xr.GetNamespace())
	}
	return nil
}

// required reads what else the cluster has.
func (f *files) required(paths []string) ([]object, error) {
	var all []object
	for _, path := range paths {
		objects, err := f.objects(path)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// sorted returns the values of a map in the order of their keys.
func sorted(m map[string]object) []object {
	all := make([]object, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[k])
	}
	return all
}
