package workload

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// noteScheduling writes the note of scheduling on a LeaderWorkerSet, from which it is read back. The pods do not have it, because
// they would restart with each change.
func noteScheduling(metadata *structpb.Struct, n scheduling.Note) {
	annotate(metadata, naming.AnnotationPodsHash, n.PodsHash)
	annotate(metadata, naming.AnnotationHomeEpoch, numberText(n.HomeEpoch))
}
