package plan

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// ownedByLWS is the prefix of the labels and annotations that LeaderWorkerSet sets on its pods and
// reads again. It takes a worker with the label worker-index "0" for a leader.
const ownedByLWS = "leaderworkerset.sigs.k8s.io/"

// userLWSAnnotations are the annotations of LeaderWorkerSet that users may set on pods.
var userLWSAnnotations = []string{ownedByLWS + "exclusive-topology", ownedByLWS + "subgroup-exclusive-topology"}

// ownedByKueue is the prefix of Kueue's labels and annotations. Kueue takes pods for members of
// the group and of the queue that these name. So a tenant could enter a queue that is not its
// own, or the group of another service.
const ownedByKueue = "kueue.x-k8s.io/"

// userKueueLabels and userKueueAnnotations are those that users may set on pods. The policy of
// the tenant limits the priority class. The annotations only request a topology.
var (
	userKueueLabels      = []string{naming.LabelKueuePriorityClass}
	userKueueAnnotations = []string{
		ownedByKueue + "podset-required-topology", ownedByKueue + "podset-preferred-topology", ownedByKueue + "podset-unconstrained-topology",
		ownedByKueue + "podset-group-name", ownedByKueue + "podset-slice-required-topology", ownedByKueue + "podset-slice-size",
	}
)

const messageKueue = "must be left out: the queue is that of the InferenceCluster, and Kueue identifies its pods by its own labels and annotations"

// ownLabels are the labels that the function sets on pods. They override the template's.
var ownLabels = []string{naming.LabelService, naming.LabelComponentType, naming.LabelRoleName, naming.LabelReplicaIndex, naming.LabelGroupIndex, naming.LabelSpecHash}

// checkMetadata refuses metadata that a template must not have, and warns of metadata without
// effect. The CRD of LeaderWorkerSet has five fields of metadata in its templates. Server-side
// apply fails on any other.
func checkMetadata(doc *kube.Document, path *field.Path) ([]Warning, field.ErrorList) {
	var warnings []Warning
	var errs field.ErrorList
	metadata := kube.Lookup(doc, "metadata").GetStructValue().GetFields()
	path = path.Child("metadata")
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		at, value := path.Child(text.Value(name)), metadata[name]
		switch {
		case empty(value):
		case name == "labels":
			w, more := checkOwnLabels(value.GetStructValue(), at)
			warnings, errs = append(warnings, w...), append(errs, more...)
		case name == "annotations":
			errs = append(errs, checkOwnAnnotations(value.GetStructValue(), at)...)
		case name == "name", name == "namespace":
			warnings = append(warnings, warningAt(at, "has no effect: pods are named after their replica and run in the namespace of their service"))
		case name == "finalizers":
			errs = append(errs, field.Invalid(at, "[...]", "must be left out: a pod with a finalizer stays until somebody removes it, so its replica cannot restart"))
		default:
			errs = append(errs, field.Forbidden(at, "must be left out: a template has labels and annotations only"))
		}
	}
	return warnings, errs
}

// empty tells whether a value is null or has no content.
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
		at := path.Key(text.Value(k))
		switch {
		case strings.HasPrefix(k, ownedByLWS):
			errs = append(errs, field.Invalid(at, text.Value(labels.GetFields()[k].GetStringValue()), "must be left out: LeaderWorkerSet sets it and identifies its pods by it"))
		case strings.HasPrefix(k, ownedByKueue) && !slices.Contains(userKueueLabels, k):
			errs = append(errs, field.Invalid(at, text.Value(labels.GetFields()[k].GetStringValue()), messageKueue))
		case k == gateway.GatewayNameLabelKey:
			errs = append(errs, field.Invalid(at, text.Value(labels.GetFields()[k].GetStringValue()), "must be left out: it identifies the pods of a Gateway, so this pod would get the requests of one"))
		case slices.Contains(ownLabels, k):
			warnings = append(warnings, warningAt(at, "has no effect: the function sets this label on the service's pods"))
		case strings.HasPrefix(k, check.OwnPrefix):
			errs = append(errs, field.Invalid(at, text.Value(labels.GetFields()[k].GetStringValue()), "must be left out: the function identifies what it makes by labels of "+check.OwnPrefix))
		}
	}
	return warnings, errs
}

func checkOwnAnnotations(annotations *structpb.Struct, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(annotations.GetFields())) {
		at, value := path.Key(text.Value(k)), text.Value(annotations.GetFields()[k].GetStringValue())
		switch {
		case strings.HasPrefix(k, ownedByLWS) && !slices.Contains(userLWSAnnotations, k):
			errs = append(errs, field.Invalid(at, value, "must be left out: LeaderWorkerSet sets it and creates its pods from it"))
		case strings.HasPrefix(k, ownedByKueue) && !slices.Contains(userKueueAnnotations, k):
			errs = append(errs, field.Invalid(at, value, messageKueue))
		}
	}
	return errs
}
