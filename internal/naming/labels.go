package naming

// Labels that the function puts on what it renders.
const (
	LabelService       = "fusioninfer.io/service"
	LabelComponentType = "fusioninfer.io/component-type"
	LabelRoleName      = "fusioninfer.io/role-name"
	LabelReplicaIndex  = "fusioninfer.io/replica-index"
	LabelGroupIndex    = "fusioninfer.io/group-index"
	LabelSpecHash      = "fusioninfer.io/spec-hash"
	LabelPool          = "fusioninfer.io/pool"
	// LabelApp has the name of an endpoint picker. It is on its pods.
	LabelApp = "app"
	// LabelModelLoader is on the pods that load weights, with the name with which those of their Jobs
	// start. They are none of the service's pods, and have no other label of them.
	LabelModelLoader = "fusioninfer.io/model-loader"
	// LabelModelCache has the name of the ModelCache. It is on what that composes.
	LabelModelCache = "fusioninfer.io/model-cache"
	// LabelUsesModelCache has the name of the ModelCache that a service names. It is on the capacity
	// request of the service, by which a ModelCache finds out where it is needed.
	LabelUsesModelCache = "fusioninfer.io/uses-model-cache"
)

// Labels by which InferenceModels find the pools of their services, and by which people find what an
// InferenceModel composes.
const (
	// LabelInferencePool has the name of the service. It is on an Object for an InferencePool.
	LabelInferencePool = "fusioninfer.io/inference-pool"
	// LabelModel has the name of the InferenceModel.
	LabelModel = "fusioninfer.io/model"
)

// AnnotationLoadedAdapters is on an InferenceModelRewrite. It has the UID of a claim, and the directories of the
// adapters that are loaded into it.
const AnnotationLoadedAdapters = "fusioninfer.io/loaded-adapters"

// AnnotationLoadingJobs is on a collection that finds the pods of loading Jobs. It has a hash of which Jobs have
// pods, and how many pods of each have failed. The provider looks for pods as soon as an annotation changes,
// and otherwise every 10 minutes.
const AnnotationLoadingJobs = "fusioninfer.io/loading-jobs"

// AnnotationPoolNodeSelector has the labels of the nodes of the pool to which a LeaderWorkerSet is
// pinned. They stay what they were when it was created.
const AnnotationPoolNodeSelector = "fusioninfer.io/pool-node-selector"

// Annotations of a LeaderWorkerSet that the service notes for itself: a hash of the pods that are
// reserved for it, and the epoch of its group's home.
const (
	AnnotationPodsHash  = "fusioninfer.io/pods-hash"
	AnnotationHomeEpoch = "fusioninfer.io/home-epoch"
)

// AnnotationConfigHash has the hash of the endpoint picker's configuration. It is on the ConfigMap, the Deployment, and the pods.
const AnnotationConfigHash = "fusioninfer.io/config-hash"

// AnnotationPickersHash has the hash of the spec of the endpoint pickers' Deployment. It is on the Deployment only: on the
// pods it would restart them whenever their number changes.
const AnnotationPickersHash = "fusioninfer.io/pickers-hash"

// AnnotationPicksApart is on the ConfigMap of the endpoint picker. It tells that its configuration picks prefill and decode pods
// separately.
const AnnotationPicksApart = "fusioninfer.io/picks-apart"

// AnnotationExtra marks a LeaderWorkerSet beyond the number that is wanted, which a rollout runs.
const AnnotationExtra = "fusioninfer.io/extra"

// Annotations of a LeaderWorkerSet about failures in its group: how many it knows of, for which of
// them its pods were last recreated, and the leader pod with which it served last. The second one is
// on the pods, too.
const (
	AnnotationGroupFailures = "fusioninfer.io/group-failures"
	AnnotationRestartedFor  = "fusioninfer.io/restarted-for-failure"
	AnnotationLeader        = "fusioninfer.io/leader-pod"
)

// AnnotationRunningSpecHash is on a LeaderWorkerSet whose template waits behind a partition. It has the spec hash of the
// template that its pods are made from.
const AnnotationRunningSpecHash = "fusioninfer.io/running-spec-hash"

// AnnotationFormerSpecHash is on a LeaderWorkerSet that was given another template, until its controller reports pods of it. It
// has the spec hash of the template that they were made from before. Until then, nobody knows which of the two they have.
const AnnotationFormerSpecHash = "fusioninfer.io/former-spec-hash"

// AnnotationRunningPodGroup is on a LeaderWorkerSet whose template waits behind a partition. It has the name of the PodGroup
// that its pods name.
const AnnotationRunningPodGroup = "fusioninfer.io/running-pod-group"

// AnnotationStartReplicas is on an InferenceRole that nobody has scaled yet. It has the number of replicas that
// the service has written there.
const AnnotationStartReplicas = "fusioninfer.io/start-replicas"

// AnnotationLastFailure is on a LeaderWorkerSet. It says why its pods crashed last, with the hash of what
// they were made from, until it serves again.
const AnnotationLastFailure = "fusioninfer.io/last-failure"

// AnnotationGeneration has the generation of the capacity request that was granted for the pods of a
// LeaderWorkerSet.
const AnnotationGeneration = "fusioninfer.io/capacity-generation"

// Labels of Kueue (v0.15.0, pkg/controller/constants/constants.go). The WorkloadPriorityClass
// that one of them names is cluster-scoped.
const (
	LabelKueueQueue         = "kueue.x-k8s.io/queue-name"
	LabelKueuePriorityClass = "kueue.x-k8s.io/priority-class"
)
