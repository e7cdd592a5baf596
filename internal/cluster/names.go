package cluster

import (
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// LabelCluster is on everything that a cluster composes.
const LabelCluster = "fusioninfer.io/cluster"

// Keys of composed resources. Crossplane identifies a composed resource by its key, and
// would leave the old object behind if the kind under a key changed. So cluster-scoped and
// namespaced Objects, which are two kinds, have different keys.
const (
	keyLedger = "ledger"
	keyUsage  = "usage"

	keyObject        = "object/"
	keyClusterObject = "clusterobject/"

	reachable  = "reachable"
	gateway    = "gateway"
	nodes      = "nodes/"
	namespaces = "namespace/"
)

// key of an Object, or of a collection of them.
func (c *cluster) key(what string) string {
	if c.builder.ClusterScoped() {
		return keyClusterObject + what
	}
	return keyObject + what
}

// nodesOf is the name of the requirement for the nodes of a pool.
func nodesOf(pool string) string { return nodes + pool }

// requests is the name of the requirement for the capacity requests of services.
const requests = "capacity-requests"

// tenants is the name of the requirement for the namespaces whose services may use a cluster.
const tenants = "tenants"

// ledgerName is the name of a cluster's ledger.
func ledgerName(cluster string) string { return "inferencecluster-" + cluster }

// usageName is the name of the ClusterUsage of a cluster.
func usageName(cluster string) string { return "inferencecluster-" + cluster }

// maxName is the longest name. A label takes 63 characters, and provider-kubernetes appends
// a '-' and 7 digits to the name of a collection.
const maxName = 55

// name returns the name of a composed Object or collection. It is unique by a hash of the
// cluster and the key, since different keys may look the same once cut, or with '-' for '/'.
func (c *cluster) name(key string) string {
	readable := "cluster-" + c.Name + "-" + strings.ReplaceAll(key[strings.IndexByte(key, '/')+1:], "/", "-")
	return naming.Shorten(readable, c.Name+"/"+key, maxName)
}
