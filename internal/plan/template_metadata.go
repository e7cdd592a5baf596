package plan

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// ownedByLWS starts the keys that LeaderWorkerSet sets on its pods, and reads again:
// a worker with the label worker-index: "0" is a leader to it.
const ownedByLWS = "leaderworkerset.sigs.k8s.io/"

// freeOfLWS are the annotations of LeaderWorkerSet that it reads on a pod and does
// not set by itself.
var freeOfLWS = []string{ownedByLWS + "exclusive-topology", ownedByLWS + "subgroup-exclusive-topology"}

// ownLabels are what the function sets on pods, whatever their template says.
var ownLabels = []string{LabelService, LabelComponentType, LabelRoleName, LabelReplicaIndex, LabelGroupIndex, LabelSpecHash}

// checkMetadata refuses metadata that a template cannot have, and warns of what has
// no effect. The definition of a LeaderWorkerSet has five of metadata's fields in its
// templates; server-side apply fails as a whole on any other.
func checkMetadata(doc *kube.Document, path *field.Path) ([]Warning, field.ErrorList) {
	var warnings []Warning
	var errs field.ErrorList
	metadata := kube.Lookup(doc, "metadata").GetStructValue().GetFields()
	path = path.Child("metadata")
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		at, value := path.Child(check.Shown(name)), metadata[name]
		switch {
		case empty(value):
		case name == "labels":
			w, more := checkOwnLabels(value.GetStructValue(), at)
			warnings, errs = append(warnings, w...), append(errs, more...)
		case name == "annotations":
			errs = append(errs, checkOwnAnnotations(value.GetStructValue(), at)...)
		case name == "name", name == "namespace":
			warnings = append(warnings, Warning{Path: at.String(), Message: "has no effect: pods have the name of their replica and the namespace of their service"})
		case name == "finalizers":
			errs = append(errs, field.Invalid(at, "[...]", "must be left out: a pod with a finalizer stays until somebody takes it away, and its replica cannot restart"))
		default:
			errs = append(errs, field.Forbidden(at, "must be left out: a template has labels and annotations only"))
		}
	}
	return warnings, errs
}

// empty tells what is as good as absent.
func empty(v *structpb.Value) bool {
	switch t := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return t.StringValue == ""
	case *structpb.Value_ListValue:
		return len(t.ListValue.GetValues()) == 0
	case *structpb.Value_StructValue:
		return len(t.StructValue.GetFields()) == 0
	case *structpb.Value_NumberValue, *structpb.Value_BoolValue:
		return false
	}
	return true
}

func checkOwnLabels(labels *structpb.Struct, path *field.Path) ([]Warning, field.ErrorList) {
	var warnings []Warning
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(labels.GetFields())) {
		at := path.Key(check.Shown(k))
		switch {
		case strings.HasPrefix(k, ownedByLWS):
			errs = append(errs, field.Invalid(at, check.Shown(labels.GetFields()[k].GetStringValue()), "must be left out: LeaderWorkerSet sets it, and tells its pods apart by it"))
		case slices.Contains(ownLabels, k):
			warnings = append(warnings, Warning{Path: at.String(), Message: "has no effect: this label is set by the service on its pods"})
		}
	}
	return warnings, errs
}

func checkOwnAnnotations(annotations *structpb.Struct, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(annotations.GetFields())) {
		if strings.HasPrefix(k, ownedByLWS) && !slices.Contains(freeOfLWS, k) {
			errs = append(errs, field.Invalid(path.Key(check.Shown(k)), check.Shown(annotations.GetFields()[k].GetStringValue()), "must be left out: LeaderWorkerSet sets it, and makes its pods by it"))
		}
	}
	return errs
}
