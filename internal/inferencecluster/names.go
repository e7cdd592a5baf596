package inferencecluster

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// LabelCluster is on everything that a cluster composes.
const LabelCluster = "fusioninfer.io/cluster"

// Keys. A key is a composed resource's identity for Crossplane. Objects of the two
// scopes are of two kinds, so that their keys differ: changing the kind under a key
// would leave the old object behind.
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
	if c.carrier.ClusterScoped() {
		return keyClusterObject + what
	}
	return keyObject + what
}

// nodesOf is the name of the requirement for the nodes of a pool.
func nodesOf(pool string) string { return nodes + pool }

// asks is the name of the requirement for what services ask for.
const asks = "asks"

// tenants is the name of the requirement for the namespaces whose services may use a cluster.
const tenants = "tenants"

// ledgerName is the name of a cluster's ledger.
func ledgerName(cluster string) string { return "inferencecluster-" + cluster }

// usageName is the name of the ClusterUsage of a cluster.
func usageName(cluster string) string { return "inferencecluster-" + cluster }

const (
	// maxName leaves room below the 63 characters of a label for what
	// provider-kubernetes appends to the name of a collection: '-' and 7 digits.
	maxName = 55
	// hashLength is the number of hex digits that keep names apart.
	hashLength = 16
)

// name of a composed Object or collection. It follows from the cluster and the key, of
// which there are no two: a hash tells apart what is cut, and what a '-' would make
// equal.
func (c *cluster) name(key string) string {
	readable := "cluster-" + c.Name + "-" + strings.ReplaceAll(key[strings.IndexByte(key, '/')+1:], "/", "-")
	if room := maxName - hashLength - 1; len(readable) > room {
		readable = readable[:room]
	}
	h := sha256.Sum256([]byte(c.Name + "/" + key))
	return strings.TrimRight(readable, "-") + "-" + hex.EncodeToString(h[:])[:hashLength]
}
