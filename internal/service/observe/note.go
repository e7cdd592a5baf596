package observe

import (
	"strconv"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// The note on a LeaderWorkerSet as the function wrote it last.
var (
	podsHash  = remote.NewDesiredPath("metadata", "annotations", naming.AnnotationPodsHash)
	homeEpoch = remote.NewDesiredPath("metadata", "annotations", naming.AnnotationHomeEpoch)
)

// readNote reads what is noted on the object of a replica.
func readNote(at *scheduling.ClusterState, replica key.ReplicaID, observed incoming.Object) {
	n := scheduling.Note{PodsHash: podsHash.Text(observed)}
	n.HomeEpoch, _ = strconv.ParseInt(homeEpoch.Text(observed), 10, 64) // 0 where it is no number.
	if n != (scheduling.Note{}) {
		at.Notes[replica] = n
	}
}
