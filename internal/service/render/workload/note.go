package workload

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// note writes a note on a LeaderWorkerSet, from which it is read. The pods do not have it, because
// they would restart with each change.
func note(metadata *structpb.Struct, n scheduling.Note) {
	annotate(metadata, naming.AnnotationPodsHash, n.PodsHash)
	annotate(metadata, naming.AnnotationHomeEpoch, numberText(n.HomeEpoch))
}
