package plan

import (
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
)

// A World is what planning knows besides the spec. It matters to a service that is
// placed in clusters of the fleet.
type World struct {
	// Now is compared with when a cluster went out of reach, and with nothing else.
	Now time.Time
	// Created is when the service was created. The oldest is served first.
	Created string
	// Answered tells that Crossplane has answered which clusters there are. Until
	// then nothing is known, which is not the same as that there are none.
	Answered bool
	// Clusters of the fleet, by their names.
	Clusters map[string]*v1alpha1.InferenceCluster
	// NamespaceLabels are the labels of the tenant's namespace, and NamespaceAnswered tells
	// that Crossplane has said which there are. They are asked for only where a cluster
	// goes by them.
	NamespaceLabels   map[string]string
	NamespaceAnswered bool
	// Ask is what the service asked for the last time, if it did.
	Ask *fleet.Ask
	// Places has what exists of the service, by the name of the cluster in the
	// service, which is empty beside the XR.
	Places map[string]*Place
	// Routed are the backends that the route over all clusters sends requests to, by
	// their names, once its gateway has taken it up. Led are those to which the gateway may
	// send some.
	Routed, Led map[string]bool
	// Entrances are the gateways to which the route over all clusters leads so far, by the
	// names of the clusters in the service, for when a cluster itself cannot be read.
	Entrances map[string]*v1alpha1.GatewayStatus
}

// A Place is what exists of a service in one cluster.
type Place struct {
	// Present replicas, of which an object exists, and those that are ready.
	Present, Ready map[string]bool
	// RouterReady tells that the endpoint picker runs.
	RouterReady bool
	// Config and Namespace are those that the objects there were made with. Both are
	// empty beside the XR.
	Config    v1alpha1.ProviderConfigRef
	Namespace string
	// Served and RouterServed are as Ready and RouterReady were when the cluster was read
	// last: that it cannot be read now does not mean that it serves nobody.
	Served       map[string]bool
	RouterServed bool
	// Orphaned tells that deleting the Objects leaves alone what they stand for.
	Orphaned bool
}

// HeldForRoom waits until a cluster has room, and grants it.
const HeldForRoom = "WaitingForRoom"

// HeldForCluster waits until there is a cluster that may be asked.
const HeldForCluster = "NoCluster"

// Keys of what stays beside the XR although the service runs in other clusters.
const (
	// AskKey is the key of the object that carries the service's ask.
	AskKey = "configmap/ask"
	// HubKey is the key of the route over all clusters.
	HubKey = "httproute/fleet"
	// SlicePrefix, or SlicePrefix6, and a cluster's name in the service are the key of the
	// slice with the address of its gateway. The family of a slice cannot be changed, so
	// that each has a slice of its own.
	SlicePrefix  = "endpointslice/fleet/"
	SlicePrefix6 = "endpointslice/fleet6/"
)
