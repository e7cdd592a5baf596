/*
Package key has the keys of composed resources.

A key identifies a composed resource for Crossplane. If the key changes, Crossplane deletes the
object and creates another one. A key contains the kind (leaderworkerset/decode/0,
cluster/east/leaderworkerset/decode/0): if an object of another kind had the same key, the old
object would stay behind. Names of clusters, roles and kinds have no '/', so different objects
have different keys.
*/
package key

import (
	"slices"
	"strconv"
	"strings"
)

// Kinds of the objects that services, ModelCaches and InferenceModels compose. Those of an InferenceCluster are in
// cluster.go.
const (
	LeaderWorkerSet       = "leaderworkerset"
	PodGroup              = "podgroup"
	Service               = "service"
	ConfigMap             = "configmap"
	NetworkPolicy         = "networkpolicy"
	Deployment            = "deployment"
	PodDisruptionBudget   = "poddisruptionbudget"
	ServiceAccount        = "serviceaccount"
	Role                  = "role"
	RoleBinding           = "rolebinding"
	InferencePool         = "inferencepool"
	InferenceObjective    = "inferenceobjective"
	InferenceModelRewrite = "inferencemodelrewrite"
	HTTPRoute             = "httproute"
	Gateway               = "gateway"
	DestinationRule       = "destinationrule"
	EndpointSlice         = "endpointslice"
	ServiceEntry          = "serviceentry"
	PersistentVolumeClaim = "persistentvolumeclaim"
	Job                   = "job"
	PodMonitor            = "podmonitor"
	InferenceRole         = "inferencerole"
	// HorizontalPodAutoscaler and ScaledObject scale an InferenceRole.
	HorizontalPodAutoscaler = "horizontalpodautoscaler"
	ScaledObject            = "scaledobject"
)

// Kinds of the Objects that only observe: see OnlyObserved.
const (
	// Workload observes Kueue's Workload of a replica.
	Workload = "workload"
	// Pod observes one pod of a replica, or of a loading Job.
	Pod = "pod"
	// LoaderPods is the collection that finds the pods of loading Jobs.
	LoaderPods = "loaderpods"
	// NamedClaim observes the PersistentVolumeClaim that the service names in cache.claimName.
	NamedClaim = "namedclaim"
)

// A Key identifies a composed resource: [cluster/{cluster}/]{kind}[/{name}].
type Key struct {
	// Cluster is the name in the service's placement. Empty for objects beside the XR.
	Cluster string
	// Kind in lower case.
	Kind string
	// Name distinguishes objects of one kind. It may have several parts, separated by '/'.
	// Empty where there is only one object of the kind.
	Name string
}

// inCluster is the prefix of the keys of objects in other clusters.
const inCluster = "cluster/"

// New returns the key of an object in a cluster, or beside the XR if cluster is empty.
func New(cluster, kind string, parts ...string) Key {
	return Key{Cluster: cluster, Kind: kind, Name: strings.Join(parts, "/")}
}

// Parse parses a key. It is the inverse of String.
func Parse(s string) Key {
	k := Key{}
	if rest, remote := strings.CutPrefix(s, inCluster); remote {
		k.Cluster, s, _ = strings.Cut(rest, "/")
	}
	k.Kind, k.Name, _ = strings.Cut(s, "/")
	return k
}

// String formats the key as Crossplane has it.
func (k Key) String() string {
	s := k.Kind
	if k.Name != "" {
		s += "/" + k.Name
	}
	if k.Cluster != "" {
		return inCluster + k.Cluster + "/" + s
	}
	return s
}

// OnlyObserved tells whether the key is that of an Object that only observes what others have made in another cluster,
// or of a collection of such Objects. That the Object exists says nothing of what the service has in the cluster.
func (k Key) OnlyObserved() bool {
	return k.Kind == Workload || k.Kind == Pod || k.Kind == LoaderPods || k.Kind == NamedClaim
}

// LoaderPod is the key of the Object that observes a pod of a loading Job in another cluster. It differs from the
// keys of the pods of replicas, which have more parts.
func LoaderPod(cluster, pod string) Key { return New(cluster, Pod, "loader", pod) }

// ReplicaID returns the replica of a LeaderWorkerSet's key, and whether the key is one.
func (k Key) ReplicaID() (ReplicaID, bool) {
	return ReplicaID(k.Name), k.Kind == LeaderWorkerSet
}

// CapacityRequest is the key of the object with the service's request for capacity.
var CapacityRequest = New("", ConfigMap, "capacity-request")

// ScaleTarget is the key of the InferenceRole of a role.
func ScaleTarget(role string) Key { return New("", InferenceRole, role) }

// Autoscaler is the key of the object of a kind that scales a role.
func Autoscaler(kind, role string) Key { return New("", kind, role) }

// AutoscalerKinds are the kinds of objects that scale a role.
func AutoscalerKinds() []string { return []string{HorizontalPodAutoscaler, ScaledObject} }

// FleetRoute is the key of the fleet route.
var FleetRoute = New("", HTTPRoute, "fleet")

// The first part of Key.Name for the fleet route's backends at IP addresses. The address family of an EndpointSlice
// is immutable, so each family has a slice of its own.
const (
	fleet     = "fleet"
	fleetIPv6 = "fleet6"
)

// FleetService is the key of the Service that stands for a cluster's entrypoint at an IP address.
func FleetService(cluster string) Key { return New("", Service, fleet, cluster) }

// A HostnameBackend is a way in which the fleet route leads to a DNS name: what fleet.hostnameBackends of the Input chooses.
// It is the first part of Key.Name of the objects that it needs, so that another way has other objects. The former ones stay
// while they may receive traffic.
type HostnameBackend string

// The ways to a DNS name.
const (
	// HostnameSlice is a Service with an EndpointSlice of the type FQDN.
	HostnameSlice HostnameBackend = "fleet-fqdn"
	// HostnameExternal is a Service of the type ExternalName.
	HostnameExternal HostnameBackend = "fleet-external-name"
	// HostnameEntry is a ServiceEntry of Istio.
	HostnameEntry HostnameBackend = "fleet-service-entry"
)

// HostnameBackends are all ways to a DNS name.
func HostnameBackends() []HostnameBackend {
	return []HostnameBackend{HostnameSlice, HostnameExternal, HostnameEntry}
}

// Backend is the key of the object that the fleet route references.
func (h HostnameBackend) Backend(cluster string) Key {
	if h == HostnameEntry {
		return New("", ServiceEntry, string(h), cluster)
	}
	return New("", Service, string(h), cluster)
}

// Slice is the key of the EndpointSlice with the DNS name.
func (h HostnameBackend) Slice(cluster string) Key { return New("", EndpointSlice, string(h), cluster) }

// FleetHostnameOf returns to which cluster the fleet route leads by the object of the key, and in which way, if the
// object is the one that has the DNS name. For HostnameSlice that is the EndpointSlice, and not the Service.
func (k Key) FleetHostnameOf() (cluster string, h HostnameBackend, is bool) {
	way, cluster, _ := strings.Cut(k.Name, "/")
	h = HostnameBackend(way)
	return cluster, h, k == h.Slice(cluster) && h == HostnameSlice || k == h.Backend(cluster) && (h == HostnameExternal || h == HostnameEntry)
}

// IsFleetBackend tells whether the object of the key is one that the fleet route references, or referenced before.
func (k Key) IsFleetBackend() bool {
	way, cluster, _ := strings.Cut(k.Name, "/")
	return k == FleetService(cluster) && way == fleet || slices.Contains(HostnameBackends(), HostnameBackend(way)) && k == HostnameBackend(way).Backend(cluster)
}

// FleetSlice is the key of the EndpointSlice with the address of a cluster's entrypoint.
func FleetSlice(cluster string, ipv6 bool) Key {
	if ipv6 {
		return New("", EndpointSlice, fleetIPv6, cluster)
	}
	return New("", EndpointSlice, fleet, cluster)
}

// FleetSliceOf returns the cluster and the address family of an EndpointSlice with an IP address, and whether the key is that of one: see
// FleetSlice.
func (k Key) FleetSliceOf() (cluster string, ipv6, is bool) {
	family, cluster, _ := strings.Cut(k.Name, "/")
	return cluster, family == fleetIPv6, k.Cluster == "" && k.Kind == EndpointSlice && (family == fleet || family == fleetIPv6)
}

// A ReplicaID identifies a replica in its service: {role}/{index}, or {group}/{role}/{index} in
// a service with spec.replicas. It is a string, because requests and ledgers have it as JSON.
type ReplicaID string

// ReplicaOf returns a replica of a service without spec.replicas.
func ReplicaOf(role string, index int32) ReplicaID {
	return ReplicaID(role + "/" + Number(index))
}

// ReplicaInGroup returns a replica of a service with spec.replicas.
func ReplicaInGroup(group int32, role string, index int32) ReplicaID {
	return ReplicaID(Number(group) + "/" + role + "/" + Number(index))
}

// Grouped tells whether the replica belongs to a service with spec.replicas.
func (r ReplicaID) Grouped() bool { return strings.Count(string(r), "/") == 2 }

// Parts returns the parts of the ID. The group is 0 in a service without spec.replicas. ok is
// false for text that is not an ID.
func (r ReplicaID) Parts() (group int32, role string, index int32, ok bool) {
	parts := strings.Split(string(r), "/")
	if len(parts) == 3 {
		if group, ok = parse(parts[0]); !ok {
			return 0, "", 0, false
		}
		parts = parts[1:]
	}
	if len(parts) != 2 || parts[0] == "" {
		return 0, "", 0, false
	}
	index, ok = parse(parts[1])
	return group, parts[0], index, ok
}

// A GroupID identifies a replica group in its service: {group}, or the ReplicaID of the replica that is
// a group by itself.
type GroupID string

// GroupOf returns the group with an index.
func GroupOf(index int32) GroupID { return GroupID(Number(index)) }

// Index returns the index of the group. ok is false for a replica that is a group by itself.
func (g GroupID) Index() (index int32, ok bool) { return parse(string(g)) }

// Number is an index as names and keys have it.
func Number(i int32) string { return strconv.FormatInt(int64(i), 10) }

func parse(s string) (int32, bool) {
	i, err := strconv.ParseInt(s, 10, 32)
	return int32(i), err == nil && i >= 0 && Number(int32(i)) == s
}
