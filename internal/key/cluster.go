package key

import (
	"strconv"
	"strings"
)

// Keys of what an InferenceCluster composes beside its Objects.
var (
	// Ledger is the key of the ConfigMap with the reservations.
	Ledger = New("", "ledger")
	// Usage is the key of the ClusterUsage.
	Usage = New("", "usage")
	// Profile is the key of the ConfigMap with what all services read of the cluster.
	Profile = New("", "profile")
	// Estimates is the key of the ConfigMap with an estimate of what is free in the cluster.
	Estimates = New("", "estimates")
)

// Answers is the key of the ConfigMap with a part of the cluster's answers to services.
func Answers(part int) Key { return New("", "answers", strconv.Itoa(part)) }

// Objects is the kind of the Objects that reach the cluster of an InferenceCluster. Namespaced
// and cluster-scoped Objects are two kinds, so their keys differ.
type Objects string

// The two kinds of Objects.
const (
	NamespacedObjects    Objects = "object"
	ClusterScopedObjects Objects = "clusterobject"
)

// What the Objects are about. It is the first part of their names.
const (
	reachable = "reachable"
	gateway   = "gateway"
	nodes     = "nodes"
	namespace = "namespace"
	mark      = "control-plane"
)

// Reachable is the key of the Object that shows whether the cluster can be read.
func (o Objects) Reachable() Key { return New("", string(o), reachable) }

// ControlPlane is the key of the Object that marks the cluster with its control plane.
func (o Objects) ControlPlane() Key { return New("", string(o), mark) }

// Gateway is the key of the Object that observes the Gateway of the cluster's entrypoint.
func (o Objects) Gateway() Key { return New("", string(o), gateway) }

// Nodes is the key of the collection of a pool's nodes.
func (o Objects) Nodes(pool string) Key { return New("", string(o), nodes, pool) }

// Namespace is the key of the Object that makes a namespace.
func (o Objects) Namespace(name string) Key { return New("", string(o), namespace, name) }

// NamespaceOf returns the name of the namespace that the Object of a key makes, and whether the
// key is of such an Object.
func (o Objects) NamespaceOf(k Key) (name string, is bool) {
	about, name, named := strings.Cut(k.Name, "/")
	return name, named && k.Cluster == "" && k.Kind == string(o) && about == namespace
}
