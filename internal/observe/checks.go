package observe

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	appsv1 "k8s.io/api/apps/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// The kinds that are judged by more than their existence.
const (
	kindLeaderWorkerSet = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
	kindPodGroup        = "PodGroup.scheduling.volcano.sh"
	kindDeployment      = "Deployment.apps"
	kindService         = "Service."
	kindRoute           = "HTTPRoute.gateway.networking.k8s.io"
	kindGateway         = "Gateway.gateway.networking.k8s.io"
	kindPool            = "InferencePool.inference.networking.k8s.io"
)

// Why an object is not ready. An object that is kept away by a controller's own
// condition carries the controller's reason in its message.
const (
	// ReasonNotCreated is about an object that does not exist.
	ReasonNotCreated = placement.NotThereYet
	// ReasonCannotBeRead is about an object in a cluster that does not answer, or
	// does not take it.
	ReasonCannotBeRead = placement.NotSynced
	// ReasonStale is about an object whose status is of an older generation.
	ReasonStale = "GenerationNotObserved"
	// ReasonDeleting is about an object that is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonUpdating is about an object that has not taken up its newest spec.
	ReasonUpdating = "Updating"
	// ReasonNotReported is about an object that its controller has to speak about,
	// and has not.
	ReasonNotReported = "NotReported"
	// ReasonNotReady is about an object of which too little is ready.
	ReasonNotReady = "NotReady"
	// ReasonFailed is about an object whose controller gave up.
	ReasonFailed = "Failed"
	// ReasonNotScheduled is about a gang that waits for room.
	ReasonNotScheduled = "NotScheduled"
	// ReasonUnschedulable is about a gang for which there is no room.
	ReasonUnschedulable = "Unschedulable"
	// ReasonNotAccepted is about a route, pool, gateway or model that a controller
	// refuses.
	ReasonNotAccepted = "NotAccepted"
	// ReasonNotProgrammed is about a gateway that takes no traffic.
	ReasonNotProgrammed = "NotProgrammed"
	// ReasonNotResolved is about a route or pool that names what does not exist.
	ReasonNotResolved = "RefsNotResolved"
	// ReasonRouteNotReported is about a route that no gateway has spoken about.
	ReasonRouteNotReported = "RouteNotReported"
	// ReasonPoolNotReported is the same about a pool.
	ReasonPoolNotReported = "PoolNotReported"
	// ReasonGatewayNotReported is about a gateway that no controller has spoken
	// about.
	ReasonGatewayNotReported = "GatewayNotReported"
)

// silent reasons do not keep the service from being ready: nobody may ever write
// what they wait for.
func silent(reason string) bool {
	switch reason {
	case ReasonRouteNotReported, ReasonPoolNotReported, ReasonGatewayNotReported:
		return true
	}
	return false
}

// unknown reasons say that an object exists, but not how it is.
func unknown(reason string) bool { return reason == ReasonCannotBeRead || reason == ReasonStale }

// A check is one thing that can be missing.
type check func(s *subject) (reason, message string, failed bool)

// chains has the checks of each kind, the most telling one first. Kinds that are
// not listed are ready when they exist. What is being deleted never is.
var chains = map[string][]check{
	kindLeaderWorkerSet: {specOutdated, reported, generationObserved, groupsUpdated, groupsReady},
	kindDeployment:      {pickerWanted, reported, generationObserved, notGivenUp, podsUpdated, podsAvailable},
	kindPodGroup:        {scheduled},
	kindRoute:           {parents(ReasonRouteNotReported, "no gateway has reported on it")},
	kindPool:            {parents(ReasonPoolNotReported, "no gateway has reported on it")},
	kindGateway:         {programmed},

	"InferenceObjective.llm-d.ai":                         {modelAccepted},
	"InferenceModelRewrite.llm-d.ai":                      {modelAccepted},
	"InferenceObjective.inference.networking.x-k8s.io":    {modelAccepted},
	"InferenceModelRewrite.inference.networking.x-k8s.io": {modelAccepted},
}

func deleting(s *subject) (string, string, bool) {
	return ReasonDeleting, "is being deleted", s.seen.Metadata.DeletionTimestamp != ""
}

// specOutdated is about a LeaderWorkerSet of which a newer spec is being applied
// with this very answer: what its status says is about the one before.
func specOutdated(s *subject) (string, string, bool) {
	want, is := specHash(s.desired.Resource), specHash(s.actual)
	return ReasonUpdating, "is being updated", want != "" && is != "" && want != is
}

func specHash(s *structpb.Struct) string {
	return kube.Lookup(s, "metadata", "labels", plan.LabelSpecHash).GetStringValue()
}

func reported(s *subject) (string, string, bool) {
	return ReasonNotReported, "its controller has not reported on it yet", s.observedGeneration() == 0
}

func generationObserved(s *subject) (string, string, bool) {
	is, want := s.observedGeneration(), s.seen.Metadata.Generation
	if is >= want {
		return "", "", false
	}
	return ReasonStale, fmt.Sprintf("its status is of generation %d, not %d", is, want), true
}

// observedGeneration is the status's own, or that of its conditions where a
// controller keeps it there only.
func (s *subject) observedGeneration() int64 {
	g := s.seen.Status.ObservedGeneration
	if g > 0 {
		return g
	}
	for _, c := range s.seen.Status.Conditions {
		g = max(g, c.ObservedGeneration)
	}
	return g
}

func groupsUpdated(s *subject) (string, string, bool) {
	c := find(s.seen.Status.Conditions, string(lws.LeaderWorkerSetUpdateInProgress))
	return ReasonUpdating, "its pods are being updated", c.Status == True
}

func groupsReady(s *subject) (string, string, bool) {
	c := find(s.seen.Status.Conditions, string(lws.LeaderWorkerSetAvailable))
	ready := c.Status == True && s.seen.Status.ReadyReplicas >= s.seen.replicas()
	return ReasonNotReady, "not all of its pods are ready", !ready
}

// pickerWanted finds a router that is scaled to zero while its service has pods. It may
// be meant, as by somebody who stops a service for a while, so it is not refused. But
// with failureMode FailClose nothing answers, and with FailOpen nobody picks: that is no
// router that is ready, whatever its Deployment says of its no pods.
func pickerWanted(s *subject) (string, string, bool) {
	replicas, said := kube.Lookup(s.desired.Resource, "spec", "replicas").GetKind().(*structpb.Value_NumberValue)
	return ReasonScaledToZero, "has no replicas, so nothing picks pods for requests: set replicas of the router to 1 or more",
		said && replicas.NumberValue == 0 && s.at.Pods() > 0
}

// notGivenUp finds a Deployment that cannot make progress by itself.
func notGivenUp(s *subject) (string, string, bool) {
	if c := find(s.seen.Status.Conditions, string(appsv1.DeploymentReplicaFailure)); c.Status == True {
		return ReasonFailed, said(c), true
	}
	c := find(s.seen.Status.Conditions, string(appsv1.DeploymentProgressing))
	return ReasonFailed, said(c), c.Status == False
}

func podsUpdated(s *subject) (string, string, bool) {
	n, want := s.seen.Status.UpdatedReplicas, s.seen.replicas()
	return ReasonUpdating, fmt.Sprintf("%d of %d pods are up to date", n, want), n < want
}

func podsAvailable(s *subject) (string, string, bool) {
	n, want := s.seen.Status.AvailableReplicas, s.seen.replicas()
	c := find(s.seen.Status.Conditions, string(appsv1.DeploymentAvailable))
	return ReasonNotReady, fmt.Sprintf("%d of %d pods are available", n, want), n < want || c.Status != True
}

// scheduled passes a gang that once had room. Volcano keeps its condition
// Unschedulable True after that, so the younger of the two conditions speaks.
func scheduled(s *subject) (string, string, bool) {
	switch volcano.PodGroupPhase(s.seen.Status.Phase) {
	case volcano.PodGroupRunning, volcano.PodGroupCompleted:
		return "", "", false
	case "":
		return ReasonNotReported, "Volcano has not reported on it yet", true
	case volcano.PodGroupPending, volcano.PodGroupInqueue, volcano.PodGroupUnknown:
	}
	no := find(s.seen.Status.Conditions, string(volcano.PodGroupUnschedulableType))
	yes := find(s.seen.Status.Conditions, string(volcano.PodGroupScheduled))
	since := newest(time.Time{}, yes.LastTransitionTime)
	if no.Status == True && (yes.Status != True || newest(since, no.LastTransitionTime).After(since)) {
		return ReasonUnschedulable, said(no), true
	}
	return ReasonNotScheduled, "is in phase " + oneLine(s.seen.Status.Phase), true
}

// parents passes what one gateway takes and none refuses.
func parents(notReported, message string) check {
	return func(s *subject) (string, string, bool) {
		if s.kind == kindPool && !s.routed {
			// Without a route no gateway ever looks at it.
			return "", "", false
		}
		taken := false
		for _, p := range s.seen.Status.Parents {
			for _, t := range []struct{ name, reason string }{
				{string(gateway.RouteConditionAccepted), ReasonNotAccepted},
				{string(gateway.RouteConditionResolvedRefs), ReasonNotResolved},
			} {
				c := find(p.Conditions, t.name)
				if !s.current(c) {
					continue
				}
				if c.Status == False {
					return t.reason, said(c), true
				}
				taken = taken || t.reason == ReasonNotAccepted && c.Status == True
			}
		}
		return notReported, message, !taken
	}
}

func programmed(s *subject) (string, string, bool) {
	c := find(s.seen.Status.Conditions, string(gateway.GatewayConditionAccepted))
	if s.current(c) && c.Status == False {
		return ReasonNotAccepted, said(c), true
	}
	c = find(s.seen.Status.Conditions, string(gateway.GatewayConditionProgrammed))
	switch {
	case s.current(c) && c.Status == False:
		return ReasonNotProgrammed, said(c), true
	case s.current(c) && c.Status == True:
		return "", "", false
	}
	return ReasonGatewayNotReported, "no gateway controller has reported on it", true
}

func modelAccepted(s *subject) (string, string, bool) {
	c := find(s.seen.Status.Conditions, "Accepted")
	return ReasonNotAccepted, said(c), s.current(c) && c.Status == False
}

// current tells a condition about this generation from one about an older. Some
// controllers leave the generation out.
func (s *subject) current(c condition) bool {
	return c.ObservedGeneration == 0 || c.ObservedGeneration >= s.seen.Metadata.Generation
}

// said is what a controller gave as the cause.
func said(c condition) string {
	if c.Message == "" {
		return oneLine(c.Reason)
	}
	return oneLine(c.Reason + ": " + c.Message)
}
