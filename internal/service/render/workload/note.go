package workload

import (
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// note writes a note on a LeaderWorkerSet, from which it is read. The pods do not have it, because
// they would restart with each change.
func note(metadata *structpb.Struct, n scheduling.Note) {
	if n.PodsHash != "" {
		kube.Child(metadata, "annotations").Fields[naming.AnnotationPodsHash] = structpb.NewStringValue(n.PodsHash)
	}
	if n.HomeEpoch != 0 {
		kube.Child(metadata, "annotations").Fields[naming.AnnotationHomeEpoch] = structpb.NewStringValue(strconv.FormatInt(n.HomeEpoch, 10))
	}
}
