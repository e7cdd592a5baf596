package cli

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// unknown lists the fields that nobody reads, with file and path. The function
// itself reports values of the wrong type.
func (g *given) unknown() []string {
	var all []string
	for _, u := range fieldsUnknown(g.xr, typeOf(g.xr)) {
		all = append(all, g.xrFile+": "+unknownField(u))
	}
	return append(all, unknownFields("--required", g.cluster[1+len(g.observed):])...)
}

// typeOf returns the type of a kind that the package defines, or nil.
func typeOf(o object) reflect.Type {
	switch {
	case isService(o):
		return reflect.TypeFor[v1alpha1.InferenceService]()
	case ofCluster(o):
		return reflect.TypeFor[v1alpha1.InferenceCluster]()
	case ofModel(o):
		return reflect.TypeFor[v1alpha1.InferenceModel]()
	case ofCache(o):
		return reflect.TypeFor[v1alpha1.ModelCache]()
	case o.GetKind() == v1alpha1.KindInferenceRole:
		return reflect.TypeFor[v1alpha1.InferenceRole]()
	}
	return nil
}

// fieldsUnknown returns the unknown fields of an object that a user wrote. Crossplane has fields of its own in the
// spec. Nobody writes a status by hand, and it may come from another version.
func fieldsUnknown(o object, of reflect.Type) []kube.UnknownField {
	fields := maps.Clone(o.Object)
	if _, has := fields["spec"]; has {
		fields["spec"] = specOf(o)
	}
	delete(fields, "status")
	return kube.UnknownFields(fields, of, "")
}

// dropped says what becomes of a field that the schema of an XRD does not have: kubectl asks for strict
// validation by default, and an API server without it prunes the field.
const dropped = "kubectl apply refuses it, other clients drop it"

// unknownField describes an unknown field, and which one it may be.
func unknownField(u kube.UnknownField) string {
	return "unknown field " + u.Path + text.DidYouMean("%s", u.Near()) + ": " + dropped
}

// unknownFields lists the unknown fields of services and clusters that a flag names, and
// duplicates. A mistake in one of them would change the plan silently.
func unknownFields(flag string, objects []object) []string {
	var all []string
	seen := map[string]bool{}
	for _, o := range objects {
		if o.GroupVersionKind().Group != v1alpha1.Group {
			continue
		}
		name := o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
		of := typeOf(o)
		switch {
		case of == nil:
			all = append(all, flag+": "+name+": unknown kind")
			continue
		case o.GetAPIVersion() != v1alpha1.APIVersion:
			all = append(all, fmt.Sprintf("%s: %s: unknown version %s, so it counts as missing: write it as %s", flag, name, o.GetAPIVersion(), v1alpha1.APIVersion))
			continue
		}
		if seen[name] {
			all = append(all, flag+": "+name+": appears twice")
		}
		seen[name] = true
		for _, u := range fieldsUnknown(o, of) {
			all = append(all, fmt.Sprintf("%s: %s: %s", flag, name, unknownField(u)))
		}
	}
	return all
}

// clustersWithoutStatus names the required clusters if none of them has a status with pools.
func (g *given) clustersWithoutStatus() string {
	var names []string
	for _, o := range g.cluster[1+len(g.observed):] {
		if !ofCluster(o) {
			continue
		}
		if _, found, _ := unstructured.NestedSlice(o.Object, "status", "pools"); found {
			return ""
		}
		names = append(names, o.GetName())
	}
	return strings.Join(names, ", ")
}

// specOf returns the spec without Crossplane's own fields.
func specOf(xr object) map[string]any {
	spec, _ := xr.Object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	for _, f := range crossplaneFields(xr) {
		delete(spec, f)
	}
	return spec
}

// serviceSpec returns the spec of a service with its defaults, without what cannot be read: the function reports that.
// It is empty for other kinds.
func serviceSpec(o object) *v1alpha1.InferenceServiceSpec {
	spec := &v1alpha1.InferenceServiceSpec{}
	if isService(o) {
		_ = kube.DecodeMap(specOf(o), nil, spec)
		v1alpha1.Default(spec)
	}
	return spec
}

// crossplaneFields are Crossplane's own fields in the spec of an XR.
func crossplaneFields(xr object) []string {
	if !claimed(xr) {
		return []string{"crossplane"}
	}
	return []string{
		"claimRef", "compositionRef", "compositionRevisionRef", "compositionRevisionSelector", "compositionSelector",
		"compositionUpdatePolicy", "environmentConfigRefs", "publishConnectionDetailsTo", "resourceRefs", "writeConnectionSecretToRef",
	}
}
