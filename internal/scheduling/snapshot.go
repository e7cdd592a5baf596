package scheduling

import (
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// A Snapshot is what planning knows besides the spec, about a service that is placed in
// clusters of the fleet.
type Snapshot struct {
	// Now is the time of the call. It decides when a cluster is left, when a start has failed, and when a
	// request has waited too long.
	Now time.Time
	// Created is when the service was created. The oldest is served first.
	Created string
	// Resolved tells that Crossplane has answered which clusters exist. Before that, nothing is
	// known, which is not the same as no clusters.
	Resolved bool
	// Clusters of the fleet as their profiles and answers have them, by their names. Unanswered
	// are those whose answers were not read.
	Clusters   map[string]*v1alpha1.InferenceCluster
	Unanswered map[string]bool
	// Configs are the provider configurations that the fleet uses. ConfigsResolved tells that
	// Crossplane has answered which these are. They are required only if the placement names some.
	Configs         []string
	ConfigsResolved bool
	// NamespaceLabels are the labels of the tenant's namespace. NamespaceResolved tells that
	// Crossplane has answered which these are. They are required only if a cluster allows
	// namespaces by labels.
	NamespaceLabels   map[string]string
	NamespaceResolved bool
	// Request is the last capacity request of the service, if any. Labelled are the clusters that
	// find it by its labels. RequestVersion is the resourceVersion of its ConfigMap.
	Request        *reservation.CapacityRequest
	Labelled       []string
	RequestVersion string
	// UnplacedSince is since when the service waits for capacity, and nothing about that has
	// changed. It is the last transition of its condition Placed, because Crossplane notes that
	// time and the function has no clock to write. Zero if the service does not wait.
	UnplacedSince time.Time
	// Silent are the clusters, by their names in the service, of which the last status says that they are not
	// reconciled. Only their InferenceClusters say so, and UnplacedSince changes with it.
	Silent map[string]bool
	// KnowsModels tells that the last status has the names of models that the endpoint picker goes by.
	KnowsModels bool
	// States has what exists of the service, by the names of the clusters in the service. The
	// name is empty beside the XR.
	States map[string]*ClusterState
	// ReceivesTraffic are the names of the backends to which the fleet route sends requests,
	// once its gateway has accepted it. MayReceiveTraffic are those to which the gateway may
	// send some. Weighted are those to which the route as it was read gives a weight, whether or not
	// a gateway has accepted it.
	ReceivesTraffic, MayReceiveTraffic, Weighted map[string]bool
	// Entrypoints are those to which the fleet route sends requests so far, by the names of the
	// clusters in the service. They are used while a cluster cannot be read.
	Entrypoints map[string]*v1alpha1.EntrypointStatus
	// Hostnames are such entrypoints at DNS names, by the way in which the route leads there.
	Hostnames map[key.HostnameBackend]map[string]*v1alpha1.EntrypointStatus
}

// A ClusterState is what exists of a service in one cluster.
type ClusterState struct {
	// Present are the replicas of which an object exists. Ready are those of them that are
	// ready.
	Present, Ready map[key.ReplicaID]bool
	// Updating are the replicas whose pods may soon be replaced, or are being replaced. They may
	// still be ready.
	Updating map[key.ReplicaID]bool
	// Restarting are the replicas that were given other pods, and that were not seen ready with them. Unlike
	// Updating, replicas that are held back are none.
	Restarting map[key.ReplicaID]bool
	// Created is when the objects of the replicas were created.
	Created map[key.ReplicaID]time.Time
	// Told is what the Objects of present replicas tell the cluster to run.
	Told map[key.ReplicaID]Told
	// Pins of the pods of present replicas to pools, as their objects have them.
	Pins Pins
	// Notes of present replicas, as their objects have them.
	Notes Notes
	// RouterReady tells that the endpoint picker runs.
	RouterReady bool
	// HasRoute and HasPool tell that the cluster had the service's HTTPRoute and its InferencePool when
	// it was last read. Without them its gateway knows nothing of the service.
	HasRoute, HasPool bool
	// RouteRefused and PoolRefused tell that every gateway that reported on the route or on the pool refuses it.
	RouteRefused, PoolRefused bool
	// ProviderConfig and Namespace are those that the objects there were created with. Both are
	// empty beside the XR.
	ProviderConfig v1alpha1.ProviderConfigRef
	Namespace      string
	// UIDs of the LeaderWorkerSets in their cluster, by replica.
	UIDs map[key.ReplicaID]string
	// PriorityClasses of Kueue that the LeaderWorkerSets name, by replica. Those that name none have an empty one.
	PriorityClasses map[key.ReplicaID]string
	// LocalQueue is the queue of Kueue that what runs there was created with.
	LocalQueue string
	// GangQueue is the queue of Volcano that the PodGroups there name.
	GangQueue string
	// WasReady and RouterWasReady have Ready and RouterReady from when the cluster was last
	// read. A cluster that cannot be read now may still serve.
	WasReady       map[key.ReplicaID]bool
	RouterWasReady bool
	// Orphaned tells that deleting the Objects keeps the remote objects.
	Orphaned bool
}

// NewClusterState returns the state of a cluster in which nothing has been seen so far.
func NewClusterState() *ClusterState {
	return &ClusterState{
		Present: map[key.ReplicaID]bool{}, Ready: map[key.ReplicaID]bool{}, WasReady: map[key.ReplicaID]bool{}, Updating: map[key.ReplicaID]bool{}, Restarting: map[key.ReplicaID]bool{},
		Created: map[key.ReplicaID]time.Time{}, Told: map[key.ReplicaID]Told{}, Pins: Pins{}, Notes: Notes{}, UIDs: map[key.ReplicaID]string{}, PriorityClasses: map[key.ReplicaID]string{}, Orphaned: true,
	}
}

// Routed tells whether requests that reach the cluster's gateway get to the endpoint picker.
func (s *ClusterState) Routed() bool { return s.HasRoute && s.HasPool }

// Answered tells whether requests that reached the cluster's gateway got to an endpoint picker that was ready, when it was last
// read. Nothing is answered in a cluster of which nothing is known.
func (s *ClusterState) Answered() bool { return s != nil && s.RouterWasReady && s.Routed() }

// Refused tells that the gateways there refuse the service, so requests get no answer. They report on a pool only if a route
// leads to it.
func (s *ClusterState) Refused() bool { return s.HasRoute && (s.RouteRefused || s.PoolRefused) }

// A Told is what the Object of a replica tells its cluster to run.
type Told struct {
	// Pods is what its pods are made of, as the LeaderWorkerSet's spec has it. It is rendered again as
	// it is while the replica is held.
	Pods  *kube.Document
	Nodes int32
	// Generation of the capacity request that was granted for these pods. 0 if it is not known.
	Generation int64
	// Runs tells that these pods are ready, and that those from before are gone.
	Runs bool
}
