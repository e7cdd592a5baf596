package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An InferenceClusterStatus is the observed state of a cluster, with its reservations.
type InferenceClusterStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the cluster.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ClusterUID is the UID of the namespace kube-system in the cluster that the
	// reservations are for. It stays while the cluster is unreachable.
	// +optional
	ClusterUID string `json:"clusterUID,omitempty"`

	// Summary is a line to read: the free devices and all devices.
	// +optional
	Summary string `json:"summary,omitempty"`

	// UnreachableSince is when the cluster was first found to be unreachable. It is absent
	// while the cluster is reachable. Services count their failoverAfterSeconds from this
	// time.
	// +optional
	UnreachableSince *metav1.Time `json:"unreachableSince,omitempty"`

	// LastOutage is when the cluster was unreachable before. It is absent if it never was. For ten
	// minutes from its end, the cluster counts as one that is unreachable since its start. So
	// nothing fails over while the fleet comes back one cluster after the other. An outage that ends
	// within these ten minutes replaces it only if it took longer.
	// +optional
	LastOutage *Outage `json:"lastOutage,omitempty"`

	// NodeCount is the number of nodes of all pools.
	// +optional
	NodeCount int32 `json:"nodeCount,omitempty"`

	// DeviceCount is the number of devices of all nodes: of GPUs, for example. Summary has
	// them by kind.
	// +optional
	DeviceCount int64 `json:"deviceCount"`

	// FreeDeviceCount is the number of devices that are not reserved.
	// +optional
	FreeDeviceCount int64 `json:"freeDeviceCount"`

	// ServiceCount is the number of services with reserved capacity.
	// +optional
	ServiceCount int32 `json:"serviceCount"`

	// PendingCount is the number of services that request more than is reserved for them.
	// +optional
	PendingCount int32 `json:"pendingCount"`

	// Pools is the free capacity of each pool.
	// +optional
	// +listType=map
	// +listMapKey=name
	Pools []PoolStatus `json:"pools,omitempty"`

	// Reservations are the capacity that is reserved for each service, the oldest first.
	// +optional
	// +listType=atomic
	Reservations []Reservation `json:"reservations,omitempty"`

	// Pending are a thousand services at most that request more than is reserved for them, in the
	// order in which they are served. If there are more, the namespaces take turns.
	// +optional
	// +listType=atomic
	Pending []PendingRequest `json:"pending,omitempty"`

	// Entrypoint is where requests reach the cluster.
	// +optional
	Entrypoint *EntrypointStatus `json:"entrypoint,omitempty"`
}

// An Outage is a time in which a cluster was unreachable.
type Outage struct {
	// Since is when the cluster was first found to be unreachable.
	Since metav1.Time `json:"since"`
	// Until is when it was read again.
	Until metav1.Time `json:"until"`
}

// A PoolStatus is the free capacity of a pool.
type PoolStatus struct {
	// Name of the pool.
	Name string `json:"name"`

	// NodeCount is the number of nodes of the pool.
	NodeCount int32 `json:"nodeCount"`

	// NodeSelector is the labels of the pool's nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Capacity is the sum of the allocatable resources of all its nodes.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// Free counts the nodes by their free resources, which shows exactly what fits: 8 GPUs
	// on one node are more than 4 on each of two.
	// +optional
	// +listType=atomic
	Free []FreeNodes `json:"free,omitempty"`
}

// FreeNodes are nodes with the same free resources and the same taints.
type FreeNodes struct {
	// NodeCount is the number of these nodes.
	NodeCount int32 `json:"nodeCount"`

	// Resources that are free on each of them.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`

	// Taints of each of them. They are free only for pods that tolerate all of these.
	// +optional
	// +listType=atomic
	Taints []Taint `json:"taints,omitempty"`
}

// A Reservation is the capacity that is reserved for a service.
type Reservation struct {
	// UID of the service's composite resource.
	UID string `json:"uid"`

	// Namespace of the service.
	Namespace string `json:"namespace"`

	// Name of the service.
	Name string `json:"name"`

	// Replicas of the service that are reserved.
	// +optional
	// +listType=atomic
	Replicas []Replicas `json:"replicas,omitempty"`

	// Pods is the number of pods of these replicas.
	// +optional
	Pods int32 `json:"pods,omitempty"`

	// Resources that are reserved for these pods.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// A PendingRequest is what a service requests and the cluster has not reserved.
type PendingRequest struct {
	// UID of the service's composite resource.
	UID string `json:"uid"`

	// Namespace of the service.
	Namespace string `json:"namespace"`

	// Name of the service.
	Name string `json:"name"`

	// ReplicaCount is the number of replicas that are pending.
	// +optional
	ReplicaCount int32 `json:"replicaCount,omitempty"`

	// Generation is the highest one that the service requested of this cluster. The cluster has
	// read that request, and does not grant all of it now.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Message says what is missing.
	// +optional
	Message string `json:"message,omitempty"`
}

// An EntrypointStatus is where requests reach a cluster.
type EntrypointStatus struct {
	// Address at which the cluster is reached.
	Address EntrypointAddressStatus `json:"address"`

	// Port at which the cluster is reached.
	Port int32 `json:"port"`
}

// An EntrypointAddressStatus is an address at which a cluster is reached.
type EntrypointAddressStatus struct {
	// Type of the address, such as IPAddress or Hostname.
	Type string `json:"type"`

	// Value is the address.
	Value string `json:"value"`
}

// IPEntrypoint returns the entrypoint at an IP address.
func IPEntrypoint(ip string, port int32) *EntrypointStatus {
	return &EntrypointStatus{Address: EntrypointAddressStatus{Type: string(AddressTypeIP), Value: ip}, Port: port}
}

// HostnameEntrypoint returns the entrypoint at a DNS name.
func HostnameEntrypoint(name string, port int32) *EntrypointStatus {
	return &EntrypointStatus{Address: EntrypointAddressStatus{Type: string(AddressTypeHostname), Value: name}, Port: port}
}
