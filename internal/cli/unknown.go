package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// unknown lists the fields that nobody reads, with file and path. The function
// itself reports values of the wrong type.
func (g *snapshot) unknown() []string {
	var all []string
	for _, u := range fieldsUnknown(g.xr, typeOf(g.xr)) {
		all = append(all, g.xrFile+": "+unknownField(u, typeOf(g.xr)))
	}
	all = append(all, g.unknownObserved...)
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
	return kube.UnknownFields(fields, of, math.MaxInt)
}

// dropNulls removes the nulls from the spec of an object that a user wrote, and lists them. Otherwise a field would seem to leave out what a
// serving profile has, and in an API server it would not.
func dropNulls(o object) []string {
	of := typeOf(o)
	if of == nil {
		return nil
	}
	spec, _ := of.FieldByName("Spec")
	var all []string
	for _, path := range kube.DropNulls(o.Object["spec"], spec.Type, "spec") {
		all = append(all, path+" is null: an API server removes it, as if it were not there")
	}
	return all
}

// dropped says what becomes of a field that the schema of an XRD does not have: kubectl asks for strict
// validation by default, and an API server without it prunes the field.
const dropped = "kubectl apply refuses it, other clients drop it"

// unknownField describes an unknown field, and which one it may be.
func unknownField(u kube.UnknownField, of reflect.Type) string {
	return "unknown field " + u.Path + text.DidYouMean("%s", cmp.Or(belongsAt(u, of), u.Near(), partOf(u))) + ": " + dropped
}

// anyName is what so many objects have that nobody knows which of them is meant.
const anyName = "name"

// belongsAt returns where an object of a type has a field of the same name, which is probably indented wrongly, or nothing. Users know the fields of pods and
// containers from Deployments, and labels in place of a selector from Services.
func belongsAt(u kube.UnknownField, of reflect.Type) string {
	if u.Name == anyName {
		return ""
	}
	spec, _ := of.FieldByName("Spec")
	var template string
	switch {
	case u.Path == u.Name && kube.HasField(spec.Type, u.Name):
		return "spec." + u.Name
	case slices.Contains(u.Known, "matchLabels") && u.NearName() == "":
		return u.Beside("matchLabels[" + u.Name + "]")
	case slices.Contains(u.Known, "roles") && kube.HasField(reflect.TypeFor[v1alpha1.Role](), u.Name):
		return u.Beside("roles[]." + u.Name)
	case slices.Contains(u.Known, "roles"):
		template = u.Beside("roles[].template")
	case slices.Contains(u.Known, "template"):
		template = u.Beside("template")
	default:
		return ""
	}
	if place := podspec.PlaceOf(u.Name); place != "" {
		return template + "." + place
	}
	switch u.Name {
	case "labels", "annotations":
		return template + ".metadata." + u.Name
	case "spec", "metadata":
		return template + "." + u.Name
	}
	return ""
}

// partOf returns the path of the one known field of which the name is the beginning or the end, such as profileName for profile, or nothing.
func partOf(u kube.UnknownField) string {
	if u.Name == anyName {
		return ""
	}
	var all []string
	for _, k := range u.Known {
		if name, known := strings.ToLower(u.Name), strings.ToLower(k); strings.HasPrefix(known, name) || strings.HasSuffix(known, name) {
			all = append(all, k)
		}
	}
	if len(all) != 1 {
		return ""
	}
	return u.Beside(all[0])
}

// unknownFields lists the unknown fields of services and clusters that a flag names, and
// duplicates. A mistake in one of them would change the plan silently.
func unknownFields(flag string, objects []object) []string {
	var all []string
	seen := map[identity]bool{}
	for _, o := range objects {
		if id := identityOf(o); readable(o) {
			if seen[id] {
				all = append(all, flag+": "+described(o)+": appears twice")
			}
			seen[id] = true
		}
		for _, m := range mistakes(o) {
			all = append(all, flag+": "+m)
		}
	}
	return all
}

// described names an object for people.
func described(o object) string { return o.GetKind() + " " + identityOf(o).nice() }

// readable tells whether an object is of a kind and a version that the package defines.
func readable(o object) bool { return o.GetAPIVersion() == v1alpha1.APIVersion && typeOf(o) != nil }

// mistakes lists the unknown fields of an object of a kind that the package defines, or why nobody reads it.
func mistakes(o object) []string {
	of := typeOf(o)
	switch {
	case o.GroupVersionKind().Group != v1alpha1.Group:
		return nil
	case of == nil:
		return []string{described(o) + ": unknown kind"}
	case !readable(o):
		return []string{fmt.Sprintf("%s: unknown version %s, so it counts as missing: write it as %s", described(o), o.GetAPIVersion(), v1alpha1.APIVersion)}
	}
	var all []string
	for _, u := range fieldsUnknown(o, of) {
		all = append(all, described(o)+": "+unknownField(u, of))
	}
	return all
}

// maxUnreadRoles is how many InferenceRoles an error names.
const maxUnreadRoles = 10

// unreadRoles refuses InferenceRoles with values that cannot be read, such as a number of replicas that is none. No API server
// has them. The function reads such a role as if nobody had set a number, so its file is mistaken.
func unreadRoles(all []fileObject) error {
	var lines []string
	for _, o := range all {
		if o.GetKind() != v1alpha1.KindInferenceRole || !readable(o.object) {
			continue
		}
		if errs := unreadRole(o.object); len(errs) > 0 {
			lines = append(lines, fmt.Sprintf("cannot use %s in %q: %s", described(o.object), o.file, text.Errors(errs)))
		}
	}
	if more := len(lines) - maxUnreadRoles; more > 0 {
		lines = append(lines[:maxUnreadRoles], fmt.Sprintf("and %d more InferenceRoles", more))
	}
	if len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// unreadRole returns what of the spec of an InferenceRole has the wrong type, and which numbers are out of range. The rest is the
// service's, and a file may leave it out.
func unreadRole(o object) field.ErrorList {
	role := v1alpha1.InferenceRole{}
	unread := kube.DecodeMap(map[string]any{"spec": o.Object["spec"]}, nil, &role)
	outside := slices.DeleteFunc(composite.WithoutConsequences(v1alpha1.ValidateRole(&role.Spec), unread), func(e *field.Error) bool {
		return !strings.HasSuffix(e.Field, ".replicas")
	})
	return append(unread, outside...)
}

// clustersWithoutStatus names the required clusters if none of them has a status with pools.
func (g *snapshot) clustersWithoutStatus() string {
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
