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

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
)

// Metadata that Crossplane sets and reads.
const (
	crossplanePrefix = "crossplane.io/"
	labelComposite   = "crossplane.io/composite"
)

// claimed reports whether an XR is the cluster-scoped one behind a claim.
func claimed(xr object) bool { return v1alpha1.Claimed(xr.GetKind()) }

// isService reports whether an XR is an InferenceService, or the XR behind the claim of one.
func isService(xr object) bool {
	return xr.GetKind() == v1alpha1.KindInferenceService || xr.GetKind() == v1alpha1.KindClaimedService
}

// kinds are those of the XRs.
var kinds = []string{
	v1alpha1.KindInferenceService, v1alpha1.KindClaimedService, v1alpha1.KindInferenceCluster,
	v1alpha1.KindInferenceModel, v1alpha1.KindClaimedModel, v1alpha1.KindModelCache, v1alpha1.KindClaimedCache,
}

// ofCache reports whether an object is a ModelCache, or the XR behind a claim of one.
func ofCache(xr object) bool {
	return xr.GetKind() == v1alpha1.KindModelCache || xr.GetKind() == v1alpha1.KindClaimedCache
}

// ofModel reports whether an object is an InferenceModel, or the XR behind a claim of one.
func ofModel(xr object) bool {
	return xr.GetKind() == v1alpha1.KindInferenceModel || xr.GetKind() == v1alpha1.KindClaimedModel
}

// ofCluster reports whether an object is an InferenceCluster.
func ofCluster(xr object) bool { return xr.GetKind() == v1alpha1.KindInferenceCluster }

// xr reads the composite resource, and adds the metadata and the condition that it would
// have in a control plane.
func (f *files) xr(path string) (object, error) {
	xr, err := f.one(path)
	if err != nil {
		return object{}, err
	}
	if xr.GetAPIVersion() != v1alpha1.APIVersion || !slices.Contains(kinds, xr.GetKind()) {
		return object{}, fmt.Errorf("cannot read %q: it is of kind %s in %s, not %s or %s in %s",
			path, xr.GetKind(), xr.GetAPIVersion(), strings.Join(kinds[:len(kinds)-1], ", "), kinds[len(kinds)-1], v1alpha1.APIVersion)
	}
	if xr.GetName() == "" {
		return object{}, fmt.Errorf("cannot read %q: it has no metadata.name", path)
	}
	inDefault(xr)
	if err := noClaim(xr); err != nil {
		return object{}, fmt.Errorf("cannot read %q: %w", path, err)
	}
	return asXR(xr), nil
}

// namespacedKinds are the kinds of the package whose objects are in a namespace.
var namespacedKinds = []string{v1alpha1.KindInferenceService, v1alpha1.KindInferenceRole, v1alpha1.KindInferenceModel, v1alpha1.KindModelCache}

// inDefault puts an object of the package into the default namespace if it has to be in one and names none, as kubectl
// apply does.
func inDefault(o object) {
	if slices.Contains(namespacedKinds, o.GetKind()) && o.GetAPIVersion() == v1alpha1.APIVersion && o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
}

// withoutNamespace takes an object of the package out of its namespace if its kind is cluster-scoped, as an API server does.
func withoutNamespace(o object) {
	if readable(o) && !slices.Contains(namespacedKinds, o.GetKind()) && o.GetNamespace() != "" {
		o.SetNamespace("")
	}
}

// asXR adds the metadata and the condition that an XR has in a control plane.
func asXR(xr object) object {
	if xr.GetUID() == "" {
		xr.SetUID(defaultUID(xr))
	}
	xr.SetResourceVersion("999")
	setCondition(&xr, condition{Type: "Responsive", Status: "True", Reason: "WatchCircuitClosed", ObservedGeneration: xr.GetGeneration()})
	if xr.GetLabels()[labelComposite] == "" {
		xr.SetLabels(with(xr.GetLabels(), labelComposite, xr.GetName()))
	}
	return xr
}

// defaultUID returns the UID that Crossplane's own render gives an XR without one. Observed
// resources with owner references then fit both commands.
func defaultUID(xr object) types.UID {
	of := xr.GroupVersionKind().String() + "\x00" + xr.GetNamespace() + "\x00" + xr.GetName()
	return types.UID(uuid.NewSHA1(uuid.Nil, []byte(of)).String())
}

// inputKind returns the kind of the function's input for an XR.
func inputKind(xr object) string {
	switch {
	case ofCluster(xr):
		return inputv1alpha1.KindClusterInput
	case ofModel(xr):
		return inputv1alpha1.KindModelInput
	}
	return inputv1alpha1.KindInput
}

// input reads the function's input from a file.
func (f *files) input(path string, xr object) (*object, error) {
	in, err := f.one(path)
	if err != nil {
		return nil, err
	}
	if !isInput(in, xr) {
		return nil, fmt.Errorf("cannot read %q: it is of kind %s in %s, not %s in %s",
			path, in.GetKind(), in.GetAPIVersion(), inputKind(xr), inputv1alpha1.APIVersion)
	}
	return &in, nil
}

func isInput(o, xr object) bool {
	return o.GetAPIVersion() == inputv1alpha1.APIVersion && o.GetKind() == inputKind(xr)
}

// settingsFlag returns the flag for an Input of the function, or for a Composition of a kind of the package. It is empty for other
// objects.
func settingsFlag(o object) string {
	group := o.GroupVersionKind().Group
	of, _, _ := unstructured.NestedString(o.Object, "spec", "compositeTypeRef", "apiVersion")
	switch {
	case group == inputv1alpha1.Group:
		return "--input"
	case group == "apiextensions.crossplane.io" && o.GetKind() == "Composition" && of == v1alpha1.APIVersion:
		return "--composition"
	}
	return ""
}

// composition reads the function's input from the one step of a Composition that has it. If the Composition is for the XRs behind
// claims, and the XR is a claim, it becomes what Crossplane makes of it.
func (f *files) composition(path string, xr *object) (*object, error) {
	c, kind, err := f.compositionOf(path)
	if err != nil {
		return nil, err
	}
	if v1alpha1.Claimed(kind) && kind == "X"+xr.GetKind() {
		*xr = behindClaim(*xr, kind)
	}
	if kind != xr.GetKind() {
		return nil, fmt.Errorf("cannot use %q: it composes %q, and the XR is of kind %q", path, kind, xr.GetKind())
	}
	return compositionInput(path, c, *xr)
}

// compositionOf reads a Composition, and the kind of XR that it composes.
func (f *files) compositionOf(path string) (c object, kind string, err error) {
	if c, err = f.one(path); err != nil {
		return object{}, "", err
	}
	if c.GetAPIVersion() != "apiextensions.crossplane.io/v1" || c.GetKind() != "Composition" {
		return object{}, "", fmt.Errorf("cannot read %q: it is of kind %s in %s, not Composition in apiextensions.crossplane.io/v1",
			path, c.GetKind(), c.GetAPIVersion())
	}
	kind, _, _ = unstructured.NestedString(c.Object, "spec", "compositeTypeRef", "kind")
	return c, kind, nil
}

// compositionInput returns the function's input from the one step of a Composition that has it.
func compositionInput(path string, c, xr object) (*object, error) {
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
		if in, _, _ := unstructured.NestedMap(step, "input"); isInput(object{Object: in}, xr) {
			found = append(found, object{Object: in})
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("cannot read %q: %d of its steps (%s) have an input of kind %s in %s, and exactly one must",
			path, len(found), strings.Join(names, ", "), inputKind(xr), inputv1alpha1.APIVersion)
	}
	return &found[0], nil
}

// groupOfRender is the API group of what "crossplane composition render" writes besides the
// objects: results, and the context.
const groupOfRender = "render.crossplane.io"

// observed reads the composed resources, by their keys, and the status of the XR if its own
// file has none. So the output of render can be observed as it is. It also returns the unknown fields.
func (f *files) observed(paths []string, xr *object) (all map[string]object, unknown []string, err error) {
	objects, err := f.all(paths)
	if err != nil {
		return nil, nil, err
	}
	all = map[string]object{}
	status, given := xr.Object["status"].(map[string]any)
	given = given && len(status) > 1 // Every XR that was read has a condition.
	for _, o := range objects {
		switch {
		case o.GroupVersionKind().Group == groupOfRender:
			continue
		case isXR(o.object, *xr):
			if seen, ok := o.Object["status"]; ok && !given {
				xr.Object["status"] = seen
			}
			continue
		}
		for _, m := range mistakes(o.object) {
			unknown = append(unknown, o.file+": "+m)
		}
		if err := adopt(&o.object, *xr); err != nil {
			return nil, nil, fmt.Errorf("cannot use %s %s in %q: %w", o.GetKind(), o.GetName(), o.file, err)
		}
		key := o.GetAnnotations()[composite.AnnotationResourceName]
		if _, exists := all[key]; exists {
			return nil, nil, fmt.Errorf("cannot use %s %s in %q: another observed resource has the key %q, too. Pass one state of the service only", o.GetKind(), o.GetName(), o.file, key)
		}
		all[key] = o.object
	}
	return all, unknown, nil
}

// isXR reports whether an object is the XR. As for the XR, its namespace may be left out.
func isXR(o, xr object) bool {
	return o.GroupVersionKind() == xr.GroupVersionKind() && o.GetName() == xr.GetName() &&
		(o.GetNamespace() == xr.GetNamespace() || o.GetNamespace() == "")
}

// adopt checks that the XR may have composed an observed object. An object without a
// namespace gets the XR's.
func adopt(o *object, xr object) error {
	key := o.GetAnnotations()[composite.AnnotationResourceName]
	if key == "" {
		return fmt.Errorf("it has no annotation %s, so nobody knows which composed resource it is. Pass what %s %s has not composed with --required", composite.AnnotationResourceName, xr.GetKind(), xr.GetName())
	}
	if o.GetName() == "" {
		if o.GetGenerateName() == "" {
			return errors.New("it has no metadata.name")
		}
		o.SetName(generatedName(*o, xr, key)) // The output of render leaves it to the API server.
	}
	if o.GetResourceVersion() == "" {
		o.SetResourceVersion("1") // Whatever exists has one.
	}
	if c := metav1.GetControllerOf(o); c != nil && c.UID != xr.GetUID() {
		return fmt.Errorf("its controller is %s %s with uid %q, and the XR has uid %q. Write that uid into the metadata of the XR, if it is the same one", c.Kind, c.Name, c.UID, xr.GetUID())
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

// all reads the objects of some files and directories. It refuses InferenceRoles that no API server would have.
func (f *files) all(paths []string) ([]fileObject, error) {
	var all []fileObject
	for _, path := range paths {
		objects, err := f.objects(path)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, unreadRoles(all)
}

// required reads the other objects of the cluster. It refuses settings of the function, which gets them in another way.
func (f *files) required(paths []string) ([]object, error) {
	read, err := f.all(paths)
	if err != nil {
		return nil, err
	}
	for _, o := range read {
		if flag := settingsFlag(o.object); flag != "" {
			return nil, fmt.Errorf("cannot use the %s in %q of --required: pass it with %s", o.GetKind(), o.file, flag)
		}
	}
	return inCluster(read), nil
}

// inCluster returns objects as a cluster has them: one of the package without a namespace gets the default.
func inCluster(read []fileObject) []object {
	all := make([]object, 0, len(read))
	for _, o := range read {
		inDefault(o.object)
		all = append(all, o.object)
	}
	return all
}

// sorted returns the values of a map in the order of their keys.
func sorted(m map[string]object) []object {
	all := make([]object, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[k])
	}
	return all
}
