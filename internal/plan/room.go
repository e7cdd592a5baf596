package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// checkRoom refuses templates whose pods would run past those who count what they take.
//
// A pod that names its node never meets a scheduler. In the fleet it would take what
// others were granted on that node; and in a gang it would start without the others, and
// outside of the queue. Without a gang, and outside of the fleet, it is a pod like any
// other of Kubernetes: the kubelet still refuses it where the node has too little left.
//
// Devices that are claimed (DRA) are in no node's allocatable, and how many there are is
// not in the template, so that no ledger can have them. What a pod requests by name is
// counted under that name, also where a DeviceClass stands behind it: a pool that does not
// name it has none of it.
func checkRoom(roles []*Role, gang gangPolicy, inFleet bool) field.ErrorList {
	var errs field.ErrorList
	for _, r := range roles {
		for _, t := range r.templates() {
			spec := t.at.Child("spec")
			switch {
			case t.Spec.NodeName == "":
			case inFleet:
				errs = append(errs, field.Forbidden(spec.Child("nodeName"), "must be left out in a cluster of the fleet, where room is granted and not taken: choose a pool by nodeSelector"))
			case gang.mode != v1alpha1.GangNone:
				errs = append(errs, field.Forbidden(spec.Child("nodeName"), "must be left out in a gang: such a pod never meets the scheduler, and starts without the others. Choose nodes by nodeSelector, or set schedulingStrategy.gang.mode: None"))
			}
			if inFleet {
				errs = append(errs, refuseDRA(spec, &t)...)
				errs = append(errs, checkLeaving(spec, &t)...)
			}
		}
	}
	return errs
}

// maxGrace is how long a pod may go on after it was told to end, in seconds.
const maxGrace = 3600

// checkLeaving refuses pods that would be on nodes which were granted to others. Room is
// granted again once a replica is not asked for any more, while its pods may still end.
// And the ledger chooses pools by nodeSelector: it would grant one pool, and the affinity
// take another.
func checkLeaving(spec *field.Path, t *locatedTemplate) field.ErrorList {
	var errs field.ErrorList
	if g := t.Spec.TerminationGracePeriodSeconds; g != nil && *g > maxGrace {
		errs = append(errs, field.Invalid(spec.Child("terminationGracePeriodSeconds"), *g, fmt.Sprintf("must be at most %d in a cluster of the fleet, which grants the room of a replica to others once it goes", maxGrace)))
	}
	if a := t.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		errs = append(errs, field.Forbidden(spec.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"), "must be left out in a cluster of the fleet, where room is granted by pool: choose a pool by nodeSelector"))
	}
	return errs
}

func refuseDRA(spec *field.Path, t *locatedTemplate) field.ErrorList {
	const remedy = "must be left out in a cluster of the fleet, which cannot count the devices of a claim: request them as resources that its pools name, such as nvidia.com/gpu"
	var errs field.ErrorList
	if len(t.Spec.ResourceClaims) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("resourceClaims"), remedy))
	}
	for i := range t.Spec.InitContainers {
		if len(t.Spec.InitContainers[i].Resources.Claims) > 0 {
			errs = append(errs, field.Forbidden(spec.Child("initContainers").Index(i).Child("resources", "claims"), remedy))
		}
	}
	for i := range t.Spec.Containers {
		if len(t.Spec.Containers[i].Resources.Claims) > 0 {
			errs = append(errs, field.Forbidden(spec.Child("containers").Index(i).Child("resources", "claims"), remedy))
		}
	}
	return errs
}
