package cli

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// unknown lists what was written down and would be lost, with file and path.
// Values of the wrong type are the function's to judge.
func (g *given) unknown() []string {
	var all []string
	of := reflect.TypeFor[v1alpha1.InferenceServiceSpec]()
	if ofCluster(g.xr) {
		of = reflect.TypeFor[v1alpha1.InferenceClusterSpec]()
	}
	for _, path := range kube.UnknownFields(specOf(g.xr), of, "spec") {
		all = append(all, fmt.Sprintf("%s: unknown field %s: an API server drops it", g.xrFile, path))
	}
	return append(all, g.unknownRequired()...)
}

// unknownRequired lists the same of the services and clusters that are required, and those that
// are there twice. A mistake in one of them would change the plan in silence.
func (g *given) unknownRequired() []string {
	var all []string
	seen := map[string]bool{}
	for _, o := range g.cluster[1+len(g.observed):] {
		if o.GroupVersionKind().Group != v1alpha1.Group {
			continue
		}
		name := o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
		of := reflect.TypeFor[v1alpha1.InferenceService]()
		switch o.GetKind() {
		case v1alpha1.KindCluster:
			of = reflect.TypeFor[v1alpha1.InferenceCluster]()
		case v1alpha1.Kind, v1alpha1.ClusterKind:
		default:
			all = append(all, "--required: "+name+": there is no such kind")
			continue
		}
		if seen[name] {
			all = append(all, "--required: "+name+": is there twice")
		}
		seen[name] = true
		fields := maps.Clone(o.Object)
		fields["spec"] = specOf(o)
		// A status may be of another version, and says nothing that a person wrote.
		delete(fields, "status")
		for _, path := range kube.UnknownFields(fields, of, "") {
			all = append(all, fmt.Sprintf("--required: %s: unknown field %s: an API server drops it", name, path))
		}
	}
	return all
}

// silent are the clusters among what is required, if none of them has said what room it has.
func (g *given) silent() string {
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

// specOf is what a person may have written below spec: all but Crossplane's own fields.
func specOf(xr object) map[string]any {
	spec, _ := xr.Object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	for _, f := range machinery(xr) {
		delete(spec, f)
	}
	return spec
}

// machinery are Crossplane's own fields in the spec of an XR.
func machinery(xr object) []string {
	if !legacy(xr) {
		return []string{"crossplane"}
	}
	return []string{
		"claimRef", "compositionRef", "compositionRevisionRef", "compositionRevisionSelector", "compositionSelector",
		"compositionUpdatePolicy", "environmentConfigRefs", "publishConnectionDetailsTo", "resourceRefs", "writeConnectionSecretToRef",
	}
}
