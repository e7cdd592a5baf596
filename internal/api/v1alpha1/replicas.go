package v1alpha1

// Replicas are some replicas of a service.
type Replicas struct {
	// Group is the index of the group. A service without spec.replicas has only group 0. It is
	// absent where such a service is listed replica by replica: in the reservations of a
	// cluster, and in status.clusters if the policy Spread splits the service.
	// +optional
	Group *int32 `json:"group,omitempty"`

	// Role of the replicas. Absent for the replicas of all roles.
	// +optional
	Role string `json:"role,omitempty"`

	// Indexes of the replicas in their group and role. Absent for all of them.
	// +optional
	// +listType=atomic
	Indexes []int32 `json:"indexes,omitempty"`

	// Generation of the capacity request that the cluster answered with this reservation. If the
	// service has requested these replicas with a higher one since, what it requested before is
	// kept, and what it requests now is not reserved. Absent in the status of a service.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Nodes of each of these replicas, as they were reserved. Absent in the status of a
	// service.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`

	// Pool in which all pods of each of these replicas are reserved. They get the labels of its
	// nodes as their nodeSelector when they are created. Absent if they are reserved in several
	// pools, or in one without labels, and in the status of a service.
	// +optional
	Pool string `json:"pool,omitempty"`

	// PodsHash is a hash of the pods that were reserved for each of these replicas. A service starts
	// a replica only if it has these pods. It is absent in the status of a service.
	// +optional
	PodsHash string `json:"podsHash,omitempty"`
}
