package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// checkPodLimits refuses templates whose pods would bypass the ledger or the gang.
//
// A pod with nodeName skips the scheduler. In the fleet it would use capacity that is reserved
// for others on that node. In a gang it would start without the other pods and without its
// queue. Elsewhere it is allowed: the kubelet refuses it if the node has too little left.
//
// Devices of resource claims (DRA) are refused in the fleet. They are in no node's allocatable,
// and the template does not say how many there are, so no ledger can count them. An extended
// resource counts under its name, even if a DeviceClass provides it. A pool that does not list
// the name has none of it.
func checkPodLimits(roles []*Role, gang gangPolicy, inFleet bool) field.ErrorList {
	var errs field.ErrorList
	for _, r := range roles {
		for _, t := range r.templates() {
			spec := t.path.Child("spec")
			switch {
			case t.Spec.NodeName == "":
			case inFleet:
				errs = append(errs, field.Forbidden(spec.Child("nodeName"), "must be left out in a cluster of the fleet, where pods run only on reserved capacity: select a pool with nodeSelector"))
			case gang.exists():
				errs = append(errs, field.Forbidden(spec.Child("nodeName"), "must be left out in a gang: the scheduler never sees such a pod, so it starts without the others. Select nodes with nodeSelector, or set schedulingStrategy.gang.mode: None"))
			}
			if inFleet {
				errs = append(errs, refuseDRA(spec, &t)...)
				errs = append(errs, checkFleetPods(spec, &t)...)
			}
		}
	}
	return errs
}

// maxGrace is the longest terminationGracePeriodSeconds in the fleet.
const maxGrace = 3600

// checkFleetPods refuses pods that could use capacity that is reserved for others. A cluster
// reserves capacity again once its request is gone, while the old pods may still be terminating.
// And the ledger selects pools by nodeSelector alone: a node affinity could put the pod into a
// pool without a reservation. A cluster reads no request with more tolerations, labels or text.
func checkFleetPods(spec *field.Path, t *locatedTemplate) field.ErrorList {
	var errs field.ErrorList
	if g := t.Spec.TerminationGracePeriodSeconds; g != nil && *g > maxGrace {
		errs = append(errs, field.Invalid(spec.Child("terminationGracePeriodSeconds"), *g, fmt.Sprintf("must be at most %d in a cluster of the fleet, which reserves the capacity for others once the replica is deleted", maxGrace)))
	}
	if n := len(t.Spec.Tolerations); n > reservation.MaxTolerations {
		errs = append(errs, field.TooMany(spec.Child("tolerations"), n, reservation.MaxTolerations))
	}
	if n := len(t.Spec.NodeSelector); n > reservation.MaxLabels {
		errs = append(errs, field.TooMany(spec.Child("nodeSelector"), n, reservation.MaxLabels))
	}
	if r := t.requirements(minResources(t.Spec)); len(r.Key()) > reservation.MaxPodRequirement {
		errs = append(errs, field.Invalid(spec, fmt.Sprintf("%d bytes of nodeSelector, tolerations and resources", len(r.Key())),
			fmt.Sprintf("must be at most %d in a cluster of the fleet, which counts its capacity by them", reservation.MaxPodRequirement)))
	}
	if a := t.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		errs = append(errs, field.Forbidden(spec.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"), "must be left out in a cluster of the fleet, where capacity is reserved per pool: select a pool with nodeSelector"))
	}
	return errs
}

// refuseDRA refuses claimed devices, of the pod and of each container.
func refuseDRA(spec *field.Path, t *locatedTemplate) field.ErrorList {
	const remedy = "must be left out in a cluster of the fleet, which cannot count the devices of a claim: request them as resources that its pools list, such as nvidia.com/gpu"
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
