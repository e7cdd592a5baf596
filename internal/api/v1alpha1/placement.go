package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// A PlacementPolicy says how a service is distributed over the clusters of its placement.
// +kubebuilder:validation:Enum=Replicate;Spread;Failover
type PlacementPolicy string

// The policies of a placement.
const (
	// PlacementReplicate runs the whole service in each cluster.
	PlacementReplicate PlacementPolicy = "Replicate"
	// PlacementSpread splits the service's groups, or the replicas of a service
	// without prefill and decode, over the clusters.
	PlacementSpread PlacementPolicy = "Spread"
	// PlacementFailover runs the whole service in the first cluster that is healthy and has
	// enough free capacity, and in the next one when that fails.
	PlacementFailover PlacementPolicy = "Failover"
)

// A Placement says where the service runs.
// +kubebuilder:validation:XValidation:rule="has(self.clusters) != has(self.clusterSelector)",message="must have either clusters or clusterSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.policy) || self.policy == 'Replicate' || has(self.clusterSelector) || (has(self.clusters) && self.clusters.all(c, has(c.inferenceClusterRef)))",fieldPath=".policy",message="must be Replicate, unless each cluster has an inferenceClusterRef: the other policies need clusters of the fleet"
type Placement struct {
	// Clusters that the service may run in, in order of preference.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	Clusters []PlacementCluster `json:"clusters,omitempty"`

	// ClusterSelector selects InferenceClusters by their labels. Each service prefers
	// them in an order of its own, so that services with the same selector spread over them.
	// An empty selector selects every InferenceCluster that allows the namespace.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Policy says how the service is distributed over these clusters. Replicate runs the
	// whole service in each of them. Spread splits its groups over them, by weight and free
	// capacity, or the replicas of a service without prefill and decode. Failover runs the
	// whole service in the first cluster that is healthy and has enough free capacity.
	// Defaults to Replicate.
	// +optional
	Policy PlacementPolicy `json:"policy,omitempty"`

	// FailoverAfterSeconds is how long a cluster may be unreachable before its replicas are
	// started elsewhere. Defaults to 300.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	FailoverAfterSeconds *int32 `json:"failoverAfterSeconds,omitempty"`

	// StartTimeoutSeconds is how long a replica group may take until it can answer requests in a
	// cluster for the first time. It counts from the creation of the group's first object there,
	// so waiting for nodes, images and weights counts. A group can answer once the endpoint picker
	// is ready, and a worker or a prefill and a decode replica. With a fleet route, the HTTPRoute
	// and the InferencePool count too. Then it is started in the next cluster that has room, under
	// the policies Spread and Failover. Without room elsewhere it stays, and so does a group that
	// is added to others which serve. The time doubles with each cluster. 0 means that nothing
	// moves for this reason. Defaults to 3600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	StartTimeoutSeconds *int32 `json:"startTimeoutSeconds,omitempty"`
}

// A PlacementCluster is a Kubernetes cluster that provider-kubernetes reaches.
// +kubebuilder:validation:XValidation:rule="has(self.inferenceClusterRef) != has(self.providerConfigRef)",message="must have either inferenceClusterRef or providerConfigRef"
// +kubebuilder:validation:XValidation:rule="!has(self.inferenceClusterRef) || !has(self.__namespace__)",fieldPath=".namespace",message="namespace must be left out in a cluster of the fleet, where the service runs in a namespace with its tenant's name"
// +kubebuilder:validation:XValidation:rule="!has(self.inferenceClusterRef) || !has(oldSelf.inferenceClusterRef) || self.inferenceClusterRef.name == oldSelf.inferenceClusterRef.name",fieldPath=".inferenceClusterRef",message="cannot be changed in this entry: add an entry with another name"
// +kubebuilder:validation:XValidation:rule="!has(self.providerConfigRef) || !has(oldSelf.providerConfigRef) || (self.providerConfigRef.name == oldSelf.providerConfigRef.name && (has(self.providerConfigRef.kind) && self.providerConfigRef.kind == 'ProviderConfig') == (has(oldSelf.providerConfigRef.kind) && oldSelf.providerConfigRef.kind == 'ProviderConfig'))",fieldPath=".providerConfigRef",message="cannot be changed in this entry: add an entry with another name"
// +kubebuilder:validation:XValidation:rule="!has(self.providerConfigRef) || !has(oldSelf.providerConfigRef) || (has(self.__namespace__) == has(oldSelf.__namespace__) && (!has(self.__namespace__) || self.__namespace__ == oldSelf.__namespace__))",fieldPath=".namespace",message="cannot be changed, added or removed in this entry: add an entry with another name"
type PlacementCluster struct {
	// Name of the cluster in this service. It tells the objects in different clusters
	// apart, so a new name moves everything that runs there. The cluster behind a name
	// cannot change, except that it may join the fleet or leave it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// InferenceClusterRef names a cluster of the fleet. Its capacity is counted, and
	// the service starts there once the cluster has reserved capacity for it.
	// +optional
	InferenceClusterRef *InferenceClusterRef `json:"inferenceClusterRef,omitempty"`

	// ProviderConfigRef names the provider-kubernetes configuration with the
	// credentials of a cluster that is not in the fleet. Its capacity is not counted.
	// +optional
	ProviderConfigRef *ProviderConfigRef `json:"providerConfigRef,omitempty"`

	// Weight is the cluster's share of the groups or replicas under the policy Spread,
	// relative to the other clusters. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	// Namespace of the service in that cluster. The namespace has to exist. Defaults to the
	// namespace of this object. It is for providerConfigRef only. In a cluster of the
	// fleet, the namespace has the name of this object's namespace, and the
	// InferenceCluster creates it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// LongFor returns the entry that the name of an InferenceCluster stands for.
func (PlacementCluster) LongFor(written string) string {
	if len(check.Label(nil, written)) > 0 {
		written = "us-east"
	}
	return fmt.Sprintf("{name: %[1]s, inferenceClusterRef: {name: %[1]s}}", written)
}

// FleetName returns the name of the InferenceCluster, or an empty string for a cluster that
// is not in the fleet.
func (c *PlacementCluster) FleetName() string {
	if c.InferenceClusterRef == nil {
		return ""
	}
	return c.InferenceClusterRef.Name
}

// An InferenceClusterRef names an InferenceCluster.
type InferenceClusterRef struct {
	// Name of the InferenceCluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
}

// Kinds of a ProviderConfigRef.
const (
	KindClusterProviderConfig = "ClusterProviderConfig"
	KindProviderConfig        = "ProviderConfig"
)

// A ProviderConfigRef names a configuration of provider-kubernetes for one service.
type ProviderConfigRef struct {
	// Kind is ClusterProviderConfig, or ProviderConfig for one in the namespace of this
	// object. The Objects of a claim are cluster-scoped and can refer to a ProviderConfig
	// only, so they are rendered without a kind. Defaults to ClusterProviderConfig.
	// +optional
	// +kubebuilder:validation:Enum=ClusterProviderConfig;ProviderConfig
	Kind string `json:"kind,omitempty"`

	// Name of the configuration.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// Groups of the two APIs of provider-kubernetes.
const (
	GroupNamespacedObjects    = "kubernetes.m.crossplane.io"
	GroupClusterScopedObjects = "kubernetes.crossplane.io"
)

// A ClusterScopedConfigRef names a configuration of provider-kubernetes that is cluster-scoped,
// and so serves all namespaces.
type ClusterScopedConfigRef struct {
	// APIGroup of the configuration. In kubernetes.m.crossplane.io it is a
	// ClusterProviderConfig, and the function makes namespaced Objects with it, as for
	// namespaced services. In kubernetes.crossplane.io it is a ProviderConfig, which is
	// cluster-scoped there, and so are the Objects, as for claims. Defaults to
	// kubernetes.m.crossplane.io.
	// +optional
	// +kubebuilder:validation:Enum=kubernetes.m.crossplane.io;kubernetes.crossplane.io
	APIGroup string `json:"apiGroup,omitempty"`

	// Name of the configuration.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// Ref is the configuration as Objects refer to it.
func (r ClusterScopedConfigRef) Ref() ProviderConfigRef {
	if r.APIGroup == GroupClusterScopedObjects {
		return ProviderConfigRef{Kind: KindProviderConfig, Name: r.Name}
	}
	return ProviderConfigRef{Kind: KindClusterProviderConfig, Name: r.Name}
}
