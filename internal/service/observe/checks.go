package observe

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	appsv1 "k8s.io/api/apps/v1"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Kinds with checks of their own, as {kind}.{group}.
const (
	kindLeaderWorkerSet = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
	kindPodGroup        = "PodGroup.scheduling.volcano.sh"
	kindDeployment      = "Deployment.apps"
	kindRoute           = "HTTPRoute.gateway.networking.k8s.io"
	kindGateway         = "Gateway.gateway.networking.k8s.io"
	kindWorkload        = "Workload.kueue.x-k8s.io"
	kindPool            = "InferencePool.inference.networking.k8s.io"
	kindJob             = "Job.batch"
)

// Reasons why an object is not ready. Where a controller's condition says so, the message
// has the reason that the controller gives.
const (
	// ReasonNotCreated is about an object that does not exist.
	ReasonNotCreated = remote.NotCreated
	// ReasonApplyRefused is about an object of another cluster, which can be read there and does not get its newest spec.
	ReasonApplyRefused = "ApplyRefused"
	// ReasonGenerationNotObserved is about an object whose status is of an older generation.
	ReasonGenerationNotObserved = "GenerationNotObserved"
	// ReasonDeleting is about an object that is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonUpdating is about an object whose newest spec is not rolled out yet.
	ReasonUpdating = "Updating"
	// ReasonNotReported is about an object without a status from its controller.
	ReasonNotReported = "NotReported"
	// ReasonNotReady is about an object with too few ready pods.
	ReasonNotReady = "NotReady"
	// ReasonFailed is about an object whose controller gave up.
	ReasonFailed = "Failed"
	// ReasonNotScheduled is about a gang that Volcano has not scheduled yet.
	ReasonNotScheduled = "NotScheduled"
	// ReasonUnschedulable is about a gang that Volcano cannot schedule.
	ReasonUnschedulable = "Unschedulable"
	// ReasonWaitingForAdmission is about a replica that Kueue has not admitted.
	ReasonWaitingForAdmission = "WaitingForAdmission"
	// ReasonPreempted is about a replica that Kueue stopped for the sake of another workload.
	ReasonPreempted = "Preempted"
	// ReasonEvicted is about a replica that Kueue stopped for another reason.
	ReasonEvicted = "Evicted"
	// ReasonNotAccepted is about a route, pool, gateway or model that a controller
	// refuses.
	ReasonNotAccepted = "NotAccepted"
	// ReasonNotProgrammed is about a gateway that receives no traffic, or none on one of its listeners.
	ReasonNotProgrammed = "NotProgrammed"
	// ReasonNotResolved is about a route or pool that references an object that does not
	// exist.
	ReasonNotResolved = "RefsNotResolved"
	// ReasonPartiallyInvalid is about a route of which a gateway does not use all rules.
	ReasonPartiallyInvalid = "PartiallyInvalid"
	// ReasonRouteNotReported is about a route that a gateway which it names has not reported on.
	ReasonRouteNotReported = "RouteNotReported"
	// ReasonPoolNotReported is about a pool that no gateway has reported on.
	ReasonPoolNotReported = "PoolNotReported"
	// ReasonGatewayNotReported is about a gateway that no controller has reported on.
	ReasonGatewayNotReported = "GatewayNotReported"
)

// staysReady tells whether an object with this reason counts as ready. Some gateway
// controllers never report on an object, so waiting for a report could last forever.
func staysReady(reason string) bool { return classOf(reason) == notReportedClass }

// unreadable tells whether the reason means that the state of an object is not known.
func unreadable(reason string) bool { return classOf(reason) == unknownClass }

// A check tells whether an object fails one requirement, and why.
type check func(s *objectState) (reason, message string, failed bool)

// chains has the checks of each kind. The first that fails gives the reason, so the most
// specific comes first. An object of another kind is ready when it exists. An object that
// is being deleted is never ready.
var chains = map[string][]check{
	kindLeaderWorkerSet: {specOutdated, reported, generationObserved, groupsUpdated, groupsReady},
	kindDeployment:      {pickerScaledUp, pickerWaits, pickersOutdated, reported, generationObserved, notGivenUp, podsUpdated, podsAvailable},
	kindPodGroup:        {scheduled},
	kindRoute:           {fleetParents, parents(ReasonRouteNotReported)},
	kindPool:            {parents(ReasonPoolNotReported)},
	kindGateway:         {programmed},
	kindWorkload:        {admitted},
	kindJob:             {jobDone},

	"InferenceObjective.llm-d.ai":                         {modelAccepted},
	"InferenceModelRewrite.llm-d.ai":                      {modelAccepted},
	"InferenceObjective.inference.networking.x-k8s.io":    {modelAccepted},
	"InferenceModelRewrite.inference.networking.x-k8s.io": {modelAccepted},
}

func deleting(s *objectState) (string, string, bool) {
	return ReasonDeleting, "is being deleted", s.view.Metadata.DeletionTimestamp != ""
}

// specOutdated finds a LeaderWorkerSet whose pods this response changes. Its status still
// describes the spec before.
func specOutdated(s *objectState) (string, string, bool) {
	want, actual := specHash.Text(incoming.ObjectOf(s.desired.Resource)), specHash.Text(s.actual)
	released := behindPartition(s.actual) && s.view.Status.UpdatedReplicas == 0
	return ReasonUpdating, "is being updated", !s.refused && !s.heldBack() && (want != "" && actual != "" && want != actual || released)
}

// specHash is the label with the hash of an object's spec.
var specHash = remote.NewDesiredPath("metadata", "labels", naming.LabelSpecHash)

func reported(s *objectState) (string, string, bool) {
	return ReasonNotReported, "its controller has not reported on it yet", s.observedGeneration() == 0
}

func generationObserved(s *objectState) (string, string, bool) {
	observed, want := s.observedGeneration(), s.view.Metadata.Generation
	if observed >= want {
		return "", "", false
	}
	return ReasonGenerationNotObserved, fmt.Sprintf("its status is of generation %d, not %d", observed, want), true
}

// observedGeneration returns the generation that the status is about. Some controllers
// write it into the conditions only.
func (s *objectState) observedGeneration() int64 {
	g := s.view.Status.ObservedGeneration
	if g > 0 {
		return g
	}
	for _, c := range s.view.Status.Conditions {
		g = max(g, c.ObservedGeneration)
	}
	return g
}

func groupsUpdated(s *objectState) (string, string, bool) {
	c := find(s.view.Status.Conditions, string(lws.LeaderWorkerSetUpdateInProgress))
	return ReasonUpdating, "its pods are being updated", c.Status == composite.True
}

func groupsReady(s *objectState) (string, string, bool) {
	c := find(s.view.Status.Conditions, string(lws.LeaderWorkerSetAvailable))
	ready := c.Status == composite.True && s.view.Status.ReadyReplicas >= s.view.replicas()
	return ReasonNotReady, "not all of its pods are ready", !ready
}

// pickerScaledUp finds an endpoint picker that is scaled to zero while its service has
// pods. Users may mean that, for example to stop a service for a while, so it is not
// refused. It is not ready, though the Deployment reports that it is: with failureMode
// FailClose no request is answered, and with FailOpen no endpoint is picked.
func pickerScaledUp(s *objectState) (string, string, bool) {
	replicas, set := kube.Lookup(s.desired.Resource, "spec", "replicas").GetKind().(*structpb.Value_NumberValue)
	return ReasonScaledToZero, "has no replicas, so nothing picks pods for requests: set replicas of the router to 1 or more",
		set && replicas.NumberValue == 0 && s.cluster.Pods() > 0
}

// pickerWaits finds an endpoint picker whose new pods wait for their configuration. Its status is that of the former ones.
func pickerWaits(s *objectState) (string, string, bool) {
	return ReasonUpdating, "waits for its new configuration", !s.refused && s.cluster.PickerPaused
}

// pickersOutdated finds endpoint pickers that this response changes. The status of their Deployment still describes those before. A
// Deployment that a former version of the function has made has no hash, and gets one without a change.
func pickersOutdated(s *objectState) (string, string, bool) {
	want, actual := pickersHash.Text(incoming.ObjectOf(s.desired.Resource)), pickersHash.Text(s.actual)
	return ReasonUpdating, "is being updated", !s.refused && want != "" && actual != "" && want != actual
}

// notGivenUp finds a Deployment whose controller has given up making progress.
func notGivenUp(s *objectState) (string, string, bool) {
	if c := find(s.view.Status.Conditions, string(appsv1.DeploymentReplicaFailure)); c.Status == composite.True {
		return ReasonFailed, cause(c), true
	}
	c := find(s.view.Status.Conditions, string(appsv1.DeploymentProgressing))
	return ReasonFailed, cause(c), c.Status == composite.False && !s.hasLeader()
}

// hasLeader tells that one of several endpoint pickers is available. They elect a leader, and
// only the leader is ever ready (GAIE v1.5.0, cmd/epp/runner/health.go). So their Deployment
// never has all of its pods available, and its progress deadline always passes.
func (s *objectState) hasLeader() bool {
	return s.view.replicas() > 1 && s.view.Status.AvailableReplicas > 0
}

func podsUpdated(s *objectState) (string, string, bool) {
	n, want := s.view.Status.UpdatedReplicas, s.view.replicas()
	return ReasonUpdating, fmt.Sprintf("%d of %d pods are up to date", n, want), n < want
}

func podsAvailable(s *objectState) (string, string, bool) {
	n, want := s.view.Status.AvailableReplicas, s.view.replicas()
	c := find(s.view.Status.Conditions, string(appsv1.DeploymentAvailable))
	unavailable := n < want || c.Status != composite.True
	return ReasonNotReady, fmt.Sprintf("%d of %d pods are available", n, want), unavailable && !s.hasLeader()
}

// scheduled finds a gang that Volcano has not scheduled. Volcano leaves the condition
// Unschedulable True after it has scheduled the gang, so the younger of the conditions
// Scheduled and Unschedulable counts.
func scheduled(s *objectState) (string, string, bool) {
	switch volcano.PodGroupPhase(s.view.Status.Phase) {
	case volcano.PodGroupRunning, volcano.PodGroupCompleted:
		return "", "", false
	case "":
		return ReasonNotReported, "Volcano has not reported on it yet", true
	case volcano.PodGroupPending, volcano.PodGroupInqueue, volcano.PodGroupUnknown:
	}
	unschedulable := find(s.view.Status.Conditions, string(volcano.PodGroupUnschedulableType))
	placed := find(s.view.Status.Conditions, string(volcano.PodGroupScheduled))
	since := newest(time.Time{}, placed.LastTransitionTime)
	if unschedulable.Status == composite.True && (placed.Status != composite.True || newest(since, unschedulable.LastTransitionTime).After(since)) {
		return ReasonUnschedulable, cause(unschedulable), true
	}
	return ReasonNotScheduled, "is in phase " + text.OneLine(s.view.Status.Phase), true
}

func modelAccepted(s *objectState) (string, string, bool) {
	c := find(s.view.Status.Conditions, "Accepted")
	return ReasonNotAccepted, cause(c), s.current(c) && c.Status == composite.False
}

// current tells whether a condition is about the object's current generation. Some
// controllers leave the generation out; their conditions count.
func (s *objectState) current(c condition) bool {
	return c.ObservedGeneration == 0 || c.ObservedGeneration >= s.view.Metadata.Generation
}

// cause is the reason and the message that a controller gives.
func cause(c condition) string {
	if c.Message == "" {
		return text.OneLine(c.Reason)
	}
	return text.OneLine(c.Reason + ": " + c.Message)
}
