package observe

import (
	"cmp"
	"strconv"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// The note on a LeaderWorkerSet as the function wrote it last: in the manifest of its Object, or
// beside the XR in its own metadata.
var (
	podsHash            = incoming.NewPath("metadata", "annotations", naming.AnnotationPodsHash)
	homeEpoch           = incoming.NewPath("metadata", "annotations", naming.AnnotationHomeEpoch)
	podsHashOfManifest  = incoming.NewPath("spec", "forProvider", "manifest", "metadata", "annotations", naming.AnnotationPodsHash)
	homeEpochOfManifest = incoming.NewPath("spec", "forProvider", "manifest", "metadata", "annotations", naming.AnnotationHomeEpoch)
)

// readNote reads what is noted on the object of a replica.
func readNote(at *scheduling.ClusterState, replica key.ReplicaID, observed incoming.Object) {
	n := scheduling.Note{PodsHash: cmp.Or(podsHashOfManifest.Text(observed), podsHash.Text(observed))}
	epoch := cmp.Or(homeEpochOfManifest.Text(observed), homeEpoch.Text(observed))
	n.HomeEpoch, _ = strconv.ParseInt(epoch, 10, 64) // 0 where it is no number.
	if n == (scheduling.Note{}) {
		return
	}
	if at.Notes == nil {
		at.Notes = scheduling.Notes{}
	}
	at.Notes[replica] = n
}
