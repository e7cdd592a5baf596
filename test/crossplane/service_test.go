package crossplane

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// An object is one document of a file.
type object = unstructured.Unstructured

const (
	labelComposite      = "crossplane.io/composite"
	labelClaimName      = "crossplane.io/claim-name"
	labelClaimNamespace = "crossplane.io/claim-namespace"
	annotationKey       = "crossplane.io/composition-resource-name"
)

// A flavour is one of the two forms of the API. Its name is that of the directory
// below package/.
type flavour string

const (
	// namespaced XRs, which users create themselves.
	namespaced flavour = "xr"
	// claimed XRs are those that Crossplane makes of claims.
	claimed flavour = "claim"
	// clusters are InferenceClusters, which are the same in both directories.
	clusters flavour = "cluster"
	// models are InferenceModels that owners create themselves.
	models flavour = "model"
	// caches are ModelCaches that users create themselves.
	caches flavour = "cache"
)

var flavours = []flavour{namespaced, claimed}

// kinds of the XRs.
var kinds = map[flavour]string{namespaced: "InferenceService", claimed: "XInferenceService", clusters: "InferenceCluster", models: "InferenceModel", caches: "ModelCache"}

// scaleTargets is the file with the XRD of InferenceRoles. Both packages have the same one.
func scaleTargets() string {
	return filepath.Join(root, "package", string(namespaced), "role-definition.yaml")
}

// definition is the file with the XRD.
func (f flavour) definition() string {
	if f == clusters || f == models || f == caches {
		return filepath.Join(root, "package", string(namespaced), string(f)+"-definition.yaml")
	}
	return filepath.Join(root, "package", string(f), "definition.yaml")
}

// composition is the file with the Composition that comes with the XRD.
func (f flavour) composition() string {
	if f == clusters || f == models || f == caches {
		return filepath.Join(root, "package", string(namespaced), string(f)+"-composition.yaml")
	}
	return filepath.Join(root, "package", string(f), "composition.yaml")
}

// A service is everything that a call of the function is told.
type service struct {
	flavour  flavour
	xr       *object
	input    *object
	observed []*object
	required []*object
}

// An example is a directory of example/.
type example struct {
	service

	name string
	// rendered.yaml and stderr.txt. An example that is refused has no rendered.yaml.
	rendered, stderr string
}

// examples reads all of them. There have to be some of either flavour, some that
// are refused, and some that have been reconciled before.
func examples(t *testing.T) []*example {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "example", "*", "xr.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*example
	found := map[string]int{}
	for _, f := range files {
		e := readExample(t, filepath.Dir(f))
		all = append(all, e)
		found[string(e.flavour)]++
		if e.rendered == "" {
			found["refused"]++
		}
		if len(e.observed) > 0 {
			found["observed"]++
		}
		if len(e.required) > 0 {
			found["required"]++
		}
		if e.input != nil {
			found["input"]++
		}
	}
	for _, of := range []string{string(namespaced), string(claimed), string(clusters), string(models), string(caches), "refused", "observed", "required", "input"} {
		if found[of] == 0 {
			t.Fatalf("of %d examples none is for: %s", len(all), of)
		}
	}
	return all
}

// flavours that the example can be rendered in. Only services are rendered in both.
func (e *example) flavours() []flavour {
	if e.flavour == clusters || e.flavour == models || e.flavour == caches {
		return []flavour{e.flavour}
	}
	return flavours
}

func readExample(t *testing.T, dir string) *example {
	t.Helper()
	e := &example{name: filepath.Base(dir)}
	e.xr = one(t, filepath.Join(dir, "xr.yaml"))
	switch e.xr.GetKind() {
	case kinds[namespaced]:
		e.flavour = namespaced
		if e.xr.GetNamespace() == "" {
			// As an API server does. Crossplane's render takes a file as it is.
			e.xr.SetNamespace(metav1.NamespaceDefault)
		}
	case kinds[claimed]:
		e.flavour = claimed
	case kinds[clusters]:
		e.flavour = clusters
	case kinds[models]:
		e.flavour = models
	case kinds[caches]:
		e.flavour = caches
	default:
		t.Fatalf("example/%s is of kind %q", e.name, e.xr.GetKind())
	}
	if b := optional(t, filepath.Join(dir, "input.yaml")); len(b) > 0 {
		e.input = documents(t, b)[0]
	}
	e.observed = documents(t, optional(t, filepath.Join(dir, "observed.yaml")))
	e.required = documents(t, optional(t, filepath.Join(dir, "required.yaml")))
	e.rendered = string(optional(t, filepath.Join(dir, "rendered.yaml")))
	e.stderr = string(optional(t, filepath.Join(dir, "stderr.txt")))
	if e.rendered == "" && e.stderr == "" {
		t.Fatalf("example/%s has neither rendered.yaml nor stderr.txt: run make golden", e.name)
	}
	return e
}

func optional(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return b
}

func one(t *testing.T, file string) *object {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := documents(t, b)
	if len(all) != 1 {
		t.Fatalf("%s has %d documents, want one", file, len(all))
	}
	return all[0]
}

// documents reads the objects of a stream of YAML.
func documents(t *testing.T, b []byte) []*object {
	t.Helper()
	var all []*object
	for r := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(b))); ; {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		j, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			t.Fatal(err)
		}
		if string(j) == "null" {
			continue
		}
		o := &object{}
		if err := o.UnmarshalJSON(j); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
}

// write writes objects as YAML documents, of which JSON is one form.
func write(t *testing.T, file string, all ...*object) string {
	t.Helper()
	b := &bytes.Buffer{}
	for _, o := range all {
		j, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(append(j, '\n'))
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// as returns the same service in a flavour: the XR that Crossplane would make of a
// claim of that name, or the one that a user would create in the claim's place.
func (s *service) as(t *testing.T, f flavour) *service {
	t.Helper()
	if f == s.flavour {
		return s
	}
	to := &service{flavour: f, xr: s.xr.DeepCopy(), input: s.input}
	for _, o := range s.required {
		to.required = append(to.required, cacheAs(o, f))
	}
	to.xr.SetKind(kinds[f])
	labels := maps.Clone(s.xr.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	if f == claimed {
		to.xr.SetName(s.xr.GetName() + "-x7k2p")
		to.xr.SetNamespace("")
		labels[labelComposite], labels[labelClaimName], labels[labelClaimNamespace] = to.xr.GetName(), s.xr.GetName(), s.xr.GetNamespace()
		set(t, to.xr, map[string]any{
			"apiVersion": s.xr.GetAPIVersion(), "kind": kinds[namespaced],
			"name": s.xr.GetName(), "namespace": s.xr.GetNamespace(),
		}, "spec", "claimRef")
	} else {
		to.xr.SetName(labels[labelClaimName])
		to.xr.SetNamespace(labels[labelClaimNamespace])
		for _, l := range []string{labelComposite, labelClaimName, labelClaimNamespace} {
			delete(labels, l)
		}
		unstructured.RemoveNestedField(to.xr.Object, "spec", "claimRef")
	}
	to.xr.SetLabels(labels)
	for _, o := range s.observed {
		to.observed = append(to.observed, to.own(t, o))
	}
	to.nameObjects(t)
	return to
}

// cacheAs returns a ModelCache in a flavour, and any other object as it is.
func cacheAs(o *object, f flavour) *object {
	if o.GetKind() != kinds[caches] || f != claimed {
		return o
	}
	x := o.DeepCopy()
	x.SetKind("X" + kinds[caches])
	x.SetName(o.GetName() + "-x7k2p")
	x.SetNamespace("")
	x.SetLabels(map[string]string{labelClaimName: o.GetName(), labelClaimNamespace: o.GetNamespace()})
	return x
}

// nameObjects gives the Objects of provider-kubernetes their names in another flavour,
// which are those that the function would have given them.
func (s *service) nameObjects(t *testing.T) {
	t.Helper()
	if !slices.ContainsFunc(s.observed, isObject) {
		return
	}
	names := map[string]string{}
	name := func(first service) {
		for _, o := range documents(t, []byte(first.files(t).ours(t).Documents)) {
			names[o.GetAnnotations()[annotationKey]] = o.GetName()
		}
	}
	first := *s
	first.observed = s.capacityRequests()
	name(first)
	// What is in a drained cluster was made before that, when the cluster was the home.
	for _, cluster := range s.clusters() {
		before := first
		before.observed, before.required = atHome(t, first.observed, cluster), notStopped(s.required)
		name(before)
	}
	for _, o := range s.observed {
		if name := names[o.GetAnnotations()[annotationKey]]; name != "" && isObject(o) {
			o.SetName(name)
		}
	}
}

// clusters returns the names of the clusters in which something of the service is.
func (s *service) clusters() []string {
	var all []string
	for _, o := range s.observed {
		if path := strings.Split(o.GetAnnotations()[annotationKey], "/"); path[0] == "cluster" && !slices.Contains(all, path[1]) {
			all = append(all, path[1])
		}
	}
	return all
}

// capacityRequests returns the service's observed capacity requests. Without one, no capacity is
// reserved.
func (s *service) capacityRequests() []*object {
	return slices.DeleteFunc(slices.Clone(s.observed), func(o *object) bool { return o.GetAnnotations()[annotationKey] != "configmap/capacity-request" })
}

// atHome are capacity requests as they were when a cluster was the home of all that has one.
func atHome(t *testing.T, all []*object, cluster string) []*object {
	t.Helper()
	before := make([]*object, 0, len(all))
	for _, o := range all {
		o = o.DeepCopy()
		text, _, _ := unstructured.NestedString(o.Object, "data", "request")
		request := map[string]any{}
		if err := json.Unmarshal([]byte(text), &request); err != nil {
			t.Fatal(err)
		}
		homes, _ := request["homes"].(map[string]any)
		for _, home := range homes {
			home.(map[string]any)["cluster"] = cluster
		}
		b, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		set(t, o, string(b), "data", "request")
		before = append(before, o)
	}
	return before
}

// notStopped are clusters as they were before they had a stopPolicy.
func notStopped(all []*object) []*object {
	before := make([]*object, 0, len(all))
	for _, o := range all {
		o = o.DeepCopy()
		unstructured.RemoveNestedField(o.Object, "spec", "stopPolicy")
		before = append(before, o)
	}
	return before
}

// isObject tells what carries an object to another cluster.
func isObject(o *object) bool { return o.GetKind() == "Object" }

// own makes an observed object of another flavour the service's.
func (s *service) own(t *testing.T, o *object) *object {
	t.Helper()
	o = o.DeepCopy()
	refs := o.GetOwnerReferences()
	i := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == s.xr.GetUID() })
	if i < 0 {
		t.Fatalf("observed %s %s does not belong to the XR", o.GetKind(), o.GetName())
	}
	refs[i].Kind, refs[i].Name = s.xr.GetKind(), s.xr.GetName()
	o.SetOwnerReferences(refs)
	labels := o.GetLabels()
	labels[labelComposite] = s.xr.GetName()
	for _, l := range []string{labelClaimName, labelClaimNamespace} {
		delete(labels, l)
		if v := s.xr.GetLabels()[l]; v != "" {
			labels[l] = v
		}
	}
	o.SetLabels(labels)
	if isObject(o) {
		s.scope(t, o)
	}
	return o
}

// scope makes an Object of provider-kubernetes one of the service's scope. There is
// a kind for either, and one kind of configuration for those of the cluster.
func (s *service) scope(t *testing.T, o *object) {
	t.Helper()
	o.SetNamespace(s.xr.GetNamespace())
	config := []string{"spec", "providerConfigRef", "kind"}
	if s.flavour == claimed {
		o.SetAPIVersion("kubernetes.crossplane.io/v1alpha2")
		unstructured.RemoveNestedField(o.Object, config...)
		return
	}
	o.SetAPIVersion("kubernetes.m.crossplane.io/v1alpha1")
	set(t, o, "ClusterProviderConfig", config...)
}

// next is the same service when Crossplane has applied what was rendered and
// calls the function again.
func (s *service) next(t *testing.T, rendered string) *service {
	t.Helper()
	to := *s
	all := documents(t, []byte(rendered))
	to.xr = s.xr.DeepCopy()
	if len(all) < 2 {
		t.Fatal("nothing was composed")
	}
	// An XR without a UID was given one for the owner references.
	to.xr.SetUID(all[1].GetOwnerReferences()[0].UID)
	to.xr.Object["status"] = withoutReady(t, all[0])
	to.observed = all[1:]
	for _, o := range to.observed {
		if o.GetResourceVersion() == "" {
			o.SetResourceVersion("1") // An API server gives each object one.
		}
	}
	return &to
}

// withoutReady is the status of an XR without its last condition, which Crossplane itself adds. Crossplane
// writes no status that is the same as before, and its render then shows the XR as it was given.
func withoutReady(t *testing.T, xr *object) any {
	t.Helper()
	xr = xr.DeepCopy()
	conditions, _, err := unstructured.NestedSlice(xr.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	last := len(conditions) - 1
	if last < 0 || conditions[last].(map[string]any)["type"] != "Ready" {
		t.Fatalf("the last condition is not Ready: %v", conditions)
	}
	set(t, xr, conditions[:last], "status", "conditions")
	return xr.Object["status"]
}

// claim is what a user would have created.
func (s *service) claim(t *testing.T) *object {
	t.Helper()
	o := s.as(t, namespaced).xr.DeepCopy()
	o.SetUID("")
	unstructured.RemoveNestedField(o.Object, "status")
	return o
}

func set(t *testing.T, o *object, v any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, v, path...); err != nil {
		t.Fatal(err)
	}
}
