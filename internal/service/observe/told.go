package observe

import (
	"strconv"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// Where an Object has what the pods of its LeaderWorkerSet are made of, which no other kind has, and the generation that
// was granted for them. The others are paths of the LeaderWorkerSet itself, as its cluster has it.
var (
	podsOfManifest       = incoming.NewPath("spec", "forProvider", "manifest", "spec", "leaderWorkerTemplate")
	generationOfManifest = incoming.NewPath("spec", "forProvider", "manifest", "metadata", "annotations", naming.AnnotationGeneration)
	updatedOfWorkload    = incoming.NewPath("status", "updatedReplicas")
	generationOfWorkload = incoming.NewPath("metadata", "annotations", naming.AnnotationGeneration)
)

// readTold reads what an Object tells its cluster to run for a replica, and whether that runs. An annotation that is no
// number counts as absent. A LeaderWorkerSet beside the XR has no Object, and tells nothing.
func readTold(at *scheduling.ClusterState, replica key.ReplicaID, observed incoming.Object) {
	pods := podsOfManifest.In(observed).GetStructValue()
	if pods == nil {
		return // It runs beside the XR.
	}
	workload, _ := remote.Unwrap(observed)
	generation, _ := strconv.ParseInt(generationOfManifest.Text(observed), 10, 64)
	at.Told[replica] = scheduling.Told{
		Pods:       pods,
		Nodes:      int32(kube.Lookup(pods, "size").GetNumberValue()),
		Generation: generation,
		// Also while a partition holds the pods back, this counts those of the template
		// (pkg/controllers/leaderworkerset_controller.go of v0.9.0, updateConditions).
		Runs: at.Ready[replica] && !at.Updating[replica] && updatedOfWorkload.In(workload).GetNumberValue() > 0 &&
			generationOfWorkload.Text(workload) == generationOfManifest.Text(observed),
	}
}
