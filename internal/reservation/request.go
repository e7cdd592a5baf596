package reservation

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// A CapacityRequest is the capacity that a service requests of clusters. The service writes
// it, and each cluster that it names reads it.
type CapacityRequest struct {
	// UID of the service's composite resource.
	UID string `json:"uid"`
	// Namespace and Name of the service.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Created is when the service was created. The oldest is served first.
	Created string `json:"created,omitempty"`
	// Generation is raised whenever something is requested that was not requested before. It
	// never falls. Requests of earlier versions have none, which is 0.
	Generation int64 `json:"generation,omitempty"`
	// PodRequirements of the pods, by the names that ReplicaRequest.Pods uses.
	PodRequirements map[string]capacity.PodRequirements `json:"podRequirements,omitempty"`
	// Clusters of which capacity is requested, by the names of their InferenceClusters.
	Clusters map[string]ClusterRequest `json:"clusters,omitempty"`
	// Homes of the replica groups, by their names.
	Homes map[key.GroupID]Home `json:"homes,omitempty"`

	// NotAllowed says why the cluster reserves nothing new for this service. The cluster that
	// reads the request sets it.
	NotAllowed string `json:"-"`
}

// A ClusterRequest is the capacity that a service requests of one cluster.
type ClusterRequest struct {
	// Name of the cluster in the service's placement.
	Name string `json:"name,omitempty"`
	// Namespace that the service uses in the cluster.
	Namespace string `json:"namespace"`
	// ProviderConfigKind and ProviderConfig name the provider configuration that reaches the
	// cluster. They are used when the InferenceCluster cannot be read.
	ProviderConfigKind string `json:"providerConfigKind,omitempty"`
	ProviderConfig     string `json:"providerConfig,omitempty"`
	// Groups that are to run in the cluster.
	Groups []ReplicaGroup `json:"groups,omitempty"`
	// AllOrNothing tells that all groups have to fit at once. A part of them would reserve
	// capacity that it cannot use.
	AllOrNothing bool `json:"allOrNothing,omitempty"`
	// Running are the replicas that the service claims to run, with or without a reservation.
	// Untrusted: without a reservation they are counted only if they fit.
	Running []key.ReplicaID `json:"running,omitempty"`
}

// A ReplicaGroup is a set of replicas that is never split over clusters: a group with its
// prefill and decode replicas, or a single replica.
type ReplicaGroup struct {
	// Name of the group in its service.
	Name key.GroupID `json:"name"`
	// Replicas of the group.
	Replicas []ReplicaRequest `json:"replicas"`
}

// A ReplicaRequest is the capacity that one replica requests.
type ReplicaRequest struct {
	// Name of the replica in its service. Its key ends with it.
	Name key.ReplicaID `json:"name"`
	// Pods is the number of pods, by the names of their requirements.
	Pods map[string]int64 `json:"pods"`
	// Required replicas have to fit together for the group to start.
	Required bool `json:"required,omitempty"`
	// Generation of the request that added the replica, which has been requested ever since.
	Generation int64 `json:"generation,omitempty"`
}

// A ServiceID identifies the service of a request or a reservation. The UID alone is not
// enough: whoever writes a request can write any UID, but only in a namespace of their own.
type ServiceID struct{ Namespace, Name, UID string }

// ServiceID returns the ServiceID of the service that has the request.
func (req *CapacityRequest) ServiceID() ServiceID { return ServiceID{req.Namespace, req.Name, req.UID} }

// PodSets returns the pods of some replicas.
func (req *CapacityRequest) PodSets(replicas []ReplicaRequest) []capacity.PodSet {
	pods := map[string]int64{}
	for _, r := range replicas {
		for name, n := range r.Pods {
			pods[name] += n
		}
	}
	all := make([]capacity.PodSet, 0, len(pods))
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		requirements := req.PodRequirements[name]
		all = append(all, capacity.PodSet{Requirements: &requirements, Count: pods[name]})
	}
	return all
}

// CompareAge compares requests by age, the oldest first. A request without a time belongs to a
// service that is planned offline and does not exist yet. It comes last.
func CompareAge(a, b *CapacityRequest) int {
	if (a.Created == "") != (b.Created == "") {
		return cmp.Compare(b.Created, a.Created)
	}
	return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
