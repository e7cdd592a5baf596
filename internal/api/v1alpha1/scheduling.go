package v1alpha1

// A SchedulingStrategy says how the pods are scheduled.
type SchedulingStrategy struct {
	// SchedulerName is the name of the pods' scheduler. Pods that start as a gang need
	// volcano, and any other name is refused for them.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// QueueName is the Volcano queue of the gang. The queue has to exist. The field has no
	// effect without a gang. Defaults to the queue that the platform team has set, or else
	// to Volcano's own default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	QueueName string `json:"queueName,omitempty"`

	// Gang says which pods start together or not at all. By default these are all replicas
	// of a service that has both a prefiller and a decoder, or a role on several nodes.
	// +optional
	Gang *Gang `json:"gang,omitempty"`
}

// A GangMode says how much of a gang has to fit before any of it starts.
// +kubebuilder:validation:Enum=AllOrNothing;MinimumFirst;None
type GangMode string

// The modes of a gang.
const (
	// GangAllOrNothing starts the service whole or not at all. Every replica is a
	// task in the PodGroup's minTaskMember.
	GangAllOrNothing GangMode = "AllOrNothing"
	// GangMinimumFirst starts the service with its minimum, and lets it grow as
	// nodes become free. Every replica is a subgroup of the PodGroup's
	// subGroupPolicy (Volcano 1.14 and later).
	GangMinimumFirst GangMode = "MinimumFirst"
	// GangNone makes no PodGroup.
	GangNone GangMode = "None"
)

// A Gang is a set of pods that start together or not at all.
type Gang struct {
	// Mode says how much of the gang has to fit before any of it starts.
	// AllOrNothing: all replicas (the PodGroup's minTaskMember). MinimumFirst: the
	// minimum of every role; further replicas follow one by one, each of them whole
	// (the PodGroup's subGroupPolicy, which needs Volcano 1.14 or later). While a rollout
	// raises nodeCount, a replica may start with as many nodes as before. None: there
	// is no gang. Defaults to what the platform team has set, else AllOrNothing.
	// +optional
	Mode GangMode `json:"mode,omitempty"`

	// MinRoleReplicas is the number of replicas of each role that have to start together.
	// If it is set, a role that it does not name has no minimum. A number above the role's
	// replicas means all of them. With mode AllOrNothing, Volcano still waits for every
	// replica that is listed. To start with fewer replicas, use mode MinimumFirst.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(n, self[n] >= 0 && self[n] <= 2000)",message="each minimum must be from 0 to 2000"
	MinRoleReplicas map[string]int32 `json:"minRoleReplicas,omitempty"`

	// NetworkTopology keeps the pods of the gang close to each other in the network. It
	// needs Volcano's HyperNodes, and the plugin network-topology-aware of Volcano's
	// scheduler.
	// +optional
	NetworkTopology *NetworkTopology `json:"networkTopology,omitempty"`

	// PriorityClassName is the priority of the gang in its queue.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// A TopologyMode says how strict a NetworkTopology is.
// +kubebuilder:validation:Enum=hard;soft
type TopologyMode string

// The modes of a NetworkTopology.
const (
	// TopologyHard leaves the gang pending rather than spreading it further.
	TopologyHard TopologyMode = "hard"
	// TopologySoft keeps the pods of the gang close to each other where that is possible.
	TopologySoft TopologyMode = "soft"
)

// A NetworkTopology is Volcano's NetworkTopologySpec.
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode == 'hard' ? has(self.highestTierAllowed) != has(self.highestTierName) : !has(self.highestTierAllowed) && !has(self.highestTierName)",message="mode hard must have either highestTierAllowed or highestTierName, and mode soft neither of them"
type NetworkTopology struct {
	// Mode is hard (the gang never spreads beyond the highest tier) or soft (its pods are
	// as close to each other as possible). Defaults to hard.
	// +optional
	Mode TopologyMode `json:"mode,omitempty"`

	// HighestTierAllowed is the highest tier of HyperNodes that the gang may spread over.
	// It is for mode hard only.
	// +optional
	// +kubebuilder:validation:Minimum=0
	HighestTierAllowed *int32 `json:"highestTierAllowed,omitempty"`

	// HighestTierName is the name of that tier, in place of its number.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	HighestTierName string `json:"highestTierName,omitempty"`
}
