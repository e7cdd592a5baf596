package observe

import (
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// The pin of a LeaderWorkerSet, as the function wrote it into the Object last. The remote object may
// not exist yet, or be out of reach.
var (
	poolOfManifest         = incoming.NewPath("spec", "forProvider", "manifest", "metadata", "labels", naming.LabelPool)
	nodeSelectorOfManifest = incoming.NewPath("spec", "forProvider", "manifest", "metadata", "annotations", naming.AnnotationPoolNodeSelector)
)

// readPin reads to which pool a replica is pinned.
func readPin(at *scheduling.ClusterState, replica key.ReplicaID, observed incoming.Object) {
	if pin := capacity.ParsePin(poolOfManifest.Text(observed), nodeSelectorOfManifest.Text(observed)); pin != nil {
		at.Pins[replica] = pin
	}
}
