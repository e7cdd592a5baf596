package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// An InferenceServiceStatus is the observed state of an InferenceService.
type InferenceServiceStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is
	// absent in a claim, whose generation differs from that of the XR behind it.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the service.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Profile is the serving profile that the service has. Absent if it names none.
	// +optional
	Profile *ProfileStatus `json:"profile,omitempty"`

	// Model says where the weights are that Jobs load into caches. Absent without a cache.
	// +optional
	Model *ModelStatus `json:"model,omitempty"`

	// AdapterCache says where InferenceModels load adapters. Absent without spec.adapterCache and its claims.
	// +optional
	AdapterCache *AdapterCacheStatus `json:"adapterCache,omitempty"`

	// Components is the state of each role, by the name of the role, summed over groups and
	// clusters. The replicas of a router are its endpoint pickers.
	// +optional
	Components map[string]ComponentStatus `json:"components,omitempty"`

	// Rollout says how far the newest template of the pods has come.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// Clusters says for each cluster that the placement names or selects whether the
	// service runs there, or why it does not. It also has the state of each role there.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ClusterStatus `json:"clusters,omitempty"`

	// ServedModels are the models that the router knows, in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	ServedModels []ServedModelStatus `json:"servedModels,omitempty"`

	// ModelRouting says what the InferenceModels of this service go by. Absent if the service has
	// no router, or if its endpoint picker does not go by the names of models. Absent, too, while
	// the service waits for its ModelCache to say which model it has.
	// +optional
	ModelRouting *ModelRoutingStatus `json:"modelRouting,omitempty"`

	// URL at which clients reach the service. It is that of the route, or that of the
	// Service if there is no router.
	// +optional
	URL string `json:"url,omitempty"`

	// Replicas is the number of groups that exist, for the scale subresource. A
	// service without spec.replicas has one.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Selector of the service's pods, for the scale subresource. With spec.replicas it
	// selects one leader of each group.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Summary is a line to read: the ready and desired replicas of each role except the
	// router. A question mark stands for those that cannot be read. Its format may change.
	// +optional
	Summary string `json:"summary,omitempty"`
}

// A ProfileStatus says which serving profile a service has.
type ProfileStatus struct {
	// Name of the profile.
	Name string `json:"name"`

	// Hash of what the profile gives the roles of this service. It changes when the platform team
	// changes that. The pods then get the change by spec.rollout.
	Hash string `json:"hash"`
}

// A RolloutStatus says how far the newest template of the pods has come.
type RolloutStatus struct {
	// UpdatedReplicas is the number of replicas that run the newest template or are being
	// restarted with it, of all roles except the router. Those that cannot be read do not count.
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// HeldReplicas is the number of replicas that keep a former template: because of
	// spec.rollout, or until it is their turn.
	// +optional
	HeldReplicas int32 `json:"heldReplicas,omitempty"`

	// ExtraReplicas is the number of replicas that a rollout runs beyond those that are
	// wanted, because of spec.rollout.maxSurge.
	// +optional
	ExtraReplicas int32 `json:"extraReplicas,omitempty"`

	// CompletedGeneration is the generation of the spec that is rolled out. It is absent while
	// the condition RolledOut is not True, and in a claim. Crossplane can give that condition a
	// newer generation than the function was called with, but not this field. Crossplane's own
	// writes make generations, too: wait for that of an edit or a later one.
	// +optional
	CompletedGeneration int64 `json:"completedGeneration,omitempty"`

	// Summary is a line to read: updated and desired replicas. A question mark stands for those
	// that cannot be read. Its format may change.
	Summary string `json:"summary"`
}

// A ServedModelStatus is what clients have to know about a model.
type ServedModelStatus struct {
	// Name of the model, as in the spec.
	Name string `json:"name"`

	// ObjectiveName is the name of the model's InferenceObjective. A request has the
	// model's priority if its header x-llm-d-inference-objective has this name. A model
	// without a priority has no objective. The name is also left out if it differs between
	// clusters, because the service is in namespaces of different names there.
	// +optional
	ObjectiveName string `json:"objectiveName,omitempty"`
}

// A ModelRoutingStatus has the names of models that the engines of a service answer by themselves.
type ModelRoutingStatus struct {
	// ServedNames are the names of the model that the engines serve.
	// +optional
	// +listType=atomic
	ServedNames []string `json:"servedNames,omitempty"`

	// AdapterNames are the names of the adapters that the engines load when they start.
	// +optional
	// +listType=atomic
	AdapterNames []string `json:"adapterNames,omitempty"`

	// Complete tells that the engines answer no other names, as far as their commands say.
	// +optional
	Complete bool `json:"complete,omitempty"`

	// AdapterCacheOnly tells that the engines answer no other names but those of adapters in
	// spec.adapterCache, as far as their commands say.
	// +optional
	AdapterCacheOnly bool `json:"adapterCacheOnly,omitempty"`
}

// A PlacementState is what was decided about one cluster. Later versions may have more
// states.
type PlacementState string

// The states of a placement in one cluster.
const (
	StatePlaced    PlacementState = "Placed"
	StatePending   PlacementState = "Pending"
	StateLeaving   PlacementState = "Leaving"
	StateNotPlaced PlacementState = "NotPlaced"
)

// A ClusterStatus is what was decided about one cluster, and what was observed there.
type ClusterStatus struct {
	// Name of the cluster in the placement. It is empty for what still runs in the cluster
	// of this object while the service moves to a fleet or back.
	Name string `json:"name"`

	// State is Placed, Pending (capacity is requested and not yet reserved), Leaving (the
	// service stays until it runs elsewhere) or NotPlaced.
	State PlacementState `json:"state"`

	// Reason for the state, in one word. Absent if everything runs as it should.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says what is missing, and how much of it.
	// +optional
	Message string `json:"message,omitempty"`

	// Weight is the cluster's share of the requests.
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// Assigned are the replicas that run there: whole groups, or, where the policy Spread
	// splits a service by its replicas, some of a role's.
	// +optional
	// +listType=atomic
	Assigned []Replicas `json:"assigned,omitempty"`

	// Components is the state of each role there, by the name of the role. If it is absent,
	// nothing of the service is in the cluster.
	// +optional
	Components map[string]ComponentStatus `json:"components,omitempty"`

	// URL of the service there.
	// +optional
	URL string `json:"url,omitempty"`
}

// A ComponentPhase is the state of a component in one word. Later versions may have more
// phases.
type ComponentPhase string

// The phases of a component.
const (
	// ComponentPhasePending means that nothing of it exists yet.
	ComponentPhasePending ComponentPhase = "Pending"
	// ComponentPhaseDeploying means that some of it is not ready yet.
	ComponentPhaseDeploying ComponentPhase = "Deploying"
	// ComponentPhaseRunning means that all of it is ready.
	ComponentPhaseRunning ComponentPhase = "Running"
	// ComponentPhaseFailed means that a container keeps failing.
	ComponentPhaseFailed ComponentPhase = "Failed"
	// ComponentPhaseUnknown means that its state cannot be read, or is that of an older
	// generation.
	ComponentPhaseUnknown ComponentPhase = "Unknown"
)

// A ScalingStatus says what the scale target of a role asks for, and whether the service follows it.
type ScalingStatus struct {
	// RequestedReplicas is the number that the InferenceRole asks for.
	RequestedReplicas int32 `json:"requestedReplicas"`

	// Reason why desiredReplicas is another number: Minimum, Maximum or Ratio. Absent if it is not.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// A ComponentStatus is the observed state of one role. A role with two replicas on four
// nodes each has 2 desired replicas and 8 pods. A replica is ready when its pods on all
// nodes are ready.
type ComponentStatus struct {
	// DesiredReplicas is the number of replicas that the role should have.
	DesiredReplicas int32 `json:"desiredReplicas"`

	// ReadyReplicas is the number of replicas that are ready on all their nodes. Those that cannot
	// be read do not count: the phase is then Unknown.
	ReadyReplicas int32 `json:"readyReplicas"`

	// Scaling says what the role's scale target asks for. Absent for a role without scaling.
	// +optional
	Scaling *ScalingStatus `json:"scaling,omitempty"`

	// UpdatedReplicas is the number of replicas that run the newest template, or are being
	// restarted with it. Those that cannot be read do not count. It is absent if it is 0, and for a router.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// NodesPerReplica is the number of nodes of a replica.
	NodesPerReplica int32 `json:"nodesPerReplica"`

	// TotalPods is desiredReplicas times nodesPerReplica.
	TotalPods int32 `json:"totalPods"`

	// ReadyPods is the number of pods that are ready.
	ReadyPods int32 `json:"readyPods"`

	// Phase is the state of the component in one word: Pending, Deploying, Running, Failed
	// or Unknown.
	Phase ComponentPhase `json:"phase"`

	// LastUpdateTime is the newest timestamp in the component's objects.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
}
