package cluster

import (
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// LabelCluster is on everything that a cluster composes.
const LabelCluster = "fusioninfer.io/cluster"

// keys makes the keys of the cluster's Objects.
func (c *parsed) keys() key.Objects {
	if c.builder.ClusterScoped {
		return key.ClusterScopedObjects
	}
	return key.NamespacedObjects
}

// nodesOf is the name of the requirement for the nodes of a pool.
func nodesOf(pool string) string { return "nodes/" + pool }

// requests is the name of the requirement for the capacity requests of services.
const requests = "capacity-requests"

// tenants is the name of the requirement for the namespaces whose services may use a cluster.
const tenants = "tenants"

// ledgerName is the name of a cluster's ledger, and of its ClusterUsage.
func ledgerName(cluster string) string { return "inferencecluster-" + cluster }

// name returns the name of a composed Object or collection. It ends with a hash of the cluster
// and the key. Without it, two keys could get one name when they are cut, or when '-' replaces
// '/'.
func (c *parsed) name(k key.Key) string {
	readable := "cluster-" + c.Name + "-" + strings.ReplaceAll(k.Name, "/", "-")
	return naming.Shorten(readable, c.Name+"/"+k.String(), remote.MaxCollectionName)
}
