package reservation

import (
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// A CapacityRequest is the capacity that a service requests of clusters. The service writes
// it, and each cluster that it names reads it.
type CapacityRequest struct {
	// UID of the service's composite resource.
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Created is when the service was created. The oldest is served first.
	Created string `json:"created,omitempty"`
	// Generation is raised whenever something is requested that was not requested before. It
	// never falls.
	Generation int64 `json:"generation,omitempty"`
	// PodRequirements of the pods, by the names that ReplicaRequest.Pods uses.
	PodRequirements map[string]capacity.PodRequirements `json:"podRequirements,omitempty"`
	// Clusters of which capacity is requested, by the names of their InferenceClusters.
	Clusters map[string]ClusterRequest `json:"clusters,omitempty"`
	// Left are replicas that may have started, by the clusters. The request before said that they run, and
	// this one does not. A cluster that has not read that request reads it here. If that request is lost,
	// they are all that the cluster has granted.
	Left map[string][]key.ReplicaID `json:"left,omitempty"`
	// Homes of the replica groups, by their names.
	Homes map[key.GroupID]Home `json:"homes,omitempty"`

	// NotAllowed says why the cluster reserves nothing new for this service. The cluster that
	// reads the request sets it.
	NotAllowed string `json:"-"`
}

// A Home is the cluster that a replica group belongs to. The service records it in its request,
// so that it is read back and never worked out anew from what happens to be ready.
type Home struct {
	// Cluster is the name in the service's placement.
	Cluster string `json:"cluster"`
	// Epoch is raised whenever the group gets another home.
	Epoch int64 `json:"epoch"`
	// Started tells that the group could answer in this home at least once, or has no start time-out there.
	Started bool `json:"started,omitempty"`
	// FailedIn is the home before, if the group could not answer there in time, and has not since.
	FailedIn string `json:"failedIn,omitempty"`
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
	Name     key.GroupID      `json:"name"`
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
	// Generation of the request that first requested the replica as it is, which has been
	// requested ever since.
	Generation int64 `json:"generation,omitempty"`
	// Pool that the pods of the running replica are pinned to. Empty if they are not.
	Pool string `json:"pool,omitempty"`
	// Held tells that the service keeps the pods of the replica as they were, until the cluster
	// has granted what the replica requests now. It is a note of the service for itself.
	Held bool `json:"held,omitempty"`
	// Replacing tells that pods from before may still run, which the replica requested otherwise.
	// Until they are gone, its grant covers them too.
	Replacing bool `json:"replacing,omitempty"`
	// Runs is the newest generation that all pods of a replica were of, while it is Replacing. It is 0
	// if that is not known.
	Runs int64 `json:"runs,omitempty"`
}

// A ServiceID identifies the service of a request or of grants. The UID alone is not enough:
// whoever writes a request can write any UID, but only in a namespace of their own.
type ServiceID struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// ServiceID returns the ServiceID of the service that has the request.
func (req *CapacityRequest) ServiceID() ServiceID { return ServiceID{req.Namespace, req.Name, req.UID} }

// Only returns what a request says to one cluster. Homes are notes of the service for itself.
func (req *CapacityRequest) Only(cluster string) *CapacityRequest {
	only := *req
	only.Clusters, only.Left, only.Homes = nil, nil, nil
	if cr, named := req.Clusters[cluster]; named {
		only.Clusters = map[string]ClusterRequest{cluster: cr}
	}
	if left, named := req.Left[cluster]; named {
		only.Left = map[string][]key.ReplicaID{cluster: left}
	}
	return &only
}

// PodSets returns the pods of some replicas, of which each kind has its requirements by name.
func PodSets(requirements map[string]capacity.PodRequirements, replicas []ReplicaRequest) []capacity.PodSet {
	pods := map[string]int64{}
	for _, r := range replicas {
		for name, n := range r.Pods {
			pods[name] += n
		}
	}
	all := make([]capacity.PodSet, 0, len(pods))
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		of := requirements[name]
		all = append(all, capacity.PodSet{Requirements: &of, Count: pods[name]})
	}
	return all
}

// Replicas returns the replicas of all groups.
func Replicas(groups []ReplicaGroup) []ReplicaRequest {
	var replicas []ReplicaRequest
	for _, group := range groups {
		replicas = append(replicas, group.Replicas...)
	}
	return replicas
}

// ReplicasByName returns the replicas of all groups, by their names.
func ReplicasByName(groups []ReplicaGroup) map[key.ReplicaID]ReplicaRequest {
	all := map[key.ReplicaID]ReplicaRequest{}
	for _, r := range Replicas(groups) {
		all[r.Name] = r
	}
	return all
}

// Merged merges all groups into one that is granted as a whole or not at all. If none of the
// replicas is required, all of them become so: a part of the service would take room that it
// cannot use.
func Merged(groups []ReplicaGroup) ReplicaGroup {
	whole := ReplicaGroup{Replicas: Replicas(groups)}
	if !slices.ContainsFunc(whole.Replicas, func(r ReplicaRequest) bool { return r.Required }) {
		for i := range whole.Replicas {
			whole.Replicas[i].Required = true
		}
	}
	return whole
}

// ToStart returns those of a group's replicas that have to be granted together so that it can
// start: the required ones, or the first one if none is required. It can also be asked about
// the missing replicas of a group.
func ToStart(replicas []ReplicaRequest) []ReplicaRequest {
	first, _ := toStart(replicas, func(r ReplicaRequest) bool { return r.Required })
	return first
}

// toStart returns those that a group needs first, and the others.
func toStart[T any](all []T, required func(T) bool) (first, others []T) {
	for _, each := range all {
		if required(each) {
			first = append(first, each)
		} else {
			others = append(others, each)
		}
	}
	if len(first) == 0 {
		n := min(1, len(others))
		return others[:n:n], others[n:]
	}
	return first, others
}
