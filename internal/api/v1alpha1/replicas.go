package v1alpha1

// Replicas are some replicas of a service.
type Replicas struct {
	// Group is the index of the group. Absent in a service without spec.replicas.
	// +optional
	Group *int32 `json:"group,omitempty"`

	// Role of the replicas. Absent for the replicas of all roles.
	// +optional
	Role string `json:"role,omitempty"`

	// Indexes of the replicas in their group and role. Absent for all of them.
	// +optional
	// +listType=atomic
	Indexes []int32 `json:"indexes,omitempty"`
}
