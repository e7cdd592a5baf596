package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindCluster is the kind of a cluster of the fleet.
const KindCluster = "InferenceCluster"

// Limits of an InferenceCluster. The markers below repeat them for the schema.
const (
	MaxPools     = 64
	MaxPoolNodes = 5000
	// MaxClusterName is the limit of a label's value, since asks are labelled with it.
	MaxClusterName = 63
	// MaxSelectorLabels is the limit of a pool's nodeSelector.
	MaxSelectorLabels = 16
	MaxTaints         = 2
	// DefaultGatewayPort is that of plain HTTP.
	DefaultGatewayPort = 80

	maxPort = 65535
)

// An InferenceCluster is a Kubernetes cluster that InferenceServices may run in. Its
// labels are what a placement's clusterSelector selects by. It says what the cluster
// has, and its status says who was granted how much of it: a service asks, the cluster
// grants, so that nothing is booked twice.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=inferenceclusters,scope=Cluster,shortName=icl,categories=fusioninfer
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 63",fieldPath=".metadata.name",message="the name becomes part of labels: lower case letters, digits and '-', at most 63 of them, with no '-' first or last"
// +kubebuilder:printcolumn:name="REACHABLE",type=string,JSONPath=`.status.conditions[?(@.type=='Reachable')].status`,description="Whether provider-kubernetes reaches the cluster."
// +kubebuilder:printcolumn:name="OPEN",type=string,JSONPath=`.status.conditions[?(@.type=='Open')].reason`,description="Grants, or why nothing new is granted."
// +kubebuilder:printcolumn:name="NODES",type=integer,JSONPath=`.status.nodes`,description="Nodes of all pools."
// +kubebuilder:printcolumn:name="FREE",type=string,JSONPath=`.status.free`,description="Free and allocatable devices."
// +kubebuilder:printcolumn:name="SERVICES",type=integer,JSONPath=`.status.services`,description="Services that were granted room."
type InferenceCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the cluster has.
	Spec InferenceClusterSpec `json:"spec"`

	// Status is what was observed of it, and who runs there. Crossplane and the
	// function write it.
	// +optional
	Status InferenceClusterStatus `json:"status,omitempty"`
}

// An InferenceClusterSpec says how to reach a cluster and what it has.
type InferenceClusterSpec struct {
	// ProviderConfigRef names the provider-kubernetes configuration with the
	// cluster's credentials. What this cluster itself makes is namespaced Objects with
	// a ClusterProviderConfig, and cluster-scoped ones, which claims use, with a
	// ProviderConfig.
	ProviderConfigRef ProviderConfigRef `json:"providerConfigRef"`

	// Pools of nodes. What is in none of them is not used.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	Pools []Pool `json:"pools"`

	// Taints keep services away. Drain moves what runs here elsewhere, as far as its
	// placement allows, and takes nothing new. Dead does the same and gives up on what is
	// here: it is forgotten without being deleted, so that nothing waits for a cluster
	// that will not answer.
	// +optional
	// +kubebuilder:validation:MaxItems=2
	// +listType=map
	// +listMapKey=effect
	Taints []Taint `json:"taints,omitempty"`

	// Gateway is how requests reach the cluster from outside.
	// +optional
	Gateway *ClusterGateway `json:"gateway,omitempty"`

	// AllowedNamespaces says whose services may use the cluster. All by default. For
	// others it is as if there were no such cluster; what runs here already leaves once
	// it runs elsewhere.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// A Pool is a set of nodes that are alike.
// +kubebuilder:validation:XValidation:rule="has(self.nodes) == has(self.allocatable)",message="give nodes and allocatable together, or neither to have them observed"
// +kubebuilder:validation:XValidation:rule="has(self.nodes) || (has(self.nodeSelector) && self.nodeSelector.size() > 0)",fieldPath=".nodeSelector",message="an observed pool needs a nodeSelector; else give nodes and allocatable"
type Pool struct {
	// Name of the pool, unique in the cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// NodeSelector are labels that the pool's nodes have. Pods with a nodeSelector
	// go only to pools that have all of its labels. Without nodes, these labels also
	// select the nodes that are observed.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Nodes is the number of nodes. Unset, nodes are observed in the cluster, and
	// count while they are Ready and not cordoned.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	Nodes *int32 `json:"nodes,omitempty"`

	// Allocatable resources of each node, such as nvidia.com/gpu: 8. What is not named
	// here is not counted.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
}

// A TaintEffect says what a taint does.
// +kubebuilder:validation:Enum=Drain;Dead
type TaintEffect string

// The effects of a taint.
const (
	// TaintDrain moves services elsewhere, make before break.
	TaintDrain TaintEffect = "Drain"
	// TaintDead gives up on the cluster and on what runs there.
	TaintDead TaintEffect = "Dead"
)

// A Taint keeps services away from a cluster.
type Taint struct {
	// Effect of the taint.
	Effect TaintEffect `json:"effect"`

	// Reason, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Reason string `json:"reason,omitempty"`
}

// A ClusterGateway is how requests reach a cluster from outside: an address, or a
// Gateway (Gateway API) in the cluster whose address is observed.
// +kubebuilder:validation:XValidation:rule="has(self.address) != has(self.name)",message="give either address, or name and namespace of a Gateway whose address is observed"
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(self.namespace)",message="name and namespace of a Gateway come together"
type ClusterGateway struct {
	// Address is an IP address.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address,omitempty"`

	// Name of a Gateway in the cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// Namespace of that Gateway.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// Port that the gateway listens on.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// An InferenceClusterStatus is what was observed of a cluster, and who runs there.
type InferenceClusterStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the cluster.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// UnreachableSince is when the cluster was first found to be out of reach, while it
	// is. Services go by it when they leave the cluster.
	// +optional
	UnreachableSince *metav1.Time `json:"unreachableSince,omitempty"`

	// Nodes of all pools.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`

	// Free is one line for people: free and allocatable devices.
	// +optional
	Free string `json:"free,omitempty"`

	// Services is the number of services that were granted room.
	// +optional
	Services int32 `json:"services"`

	// Pools has what is left in each pool.
	// +optional
	// +listType=map
	// +listMapKey=name
	Pools []PoolStatus `json:"pools,omitempty"`

	// Allocations are what was granted to whom, the oldest grant first.
	// +optional
	// +listType=atomic
	Allocations []Allocation `json:"allocations,omitempty"`

	// Waiting are the services that ask for more than they were granted, in the order
	// in which they are served: the first thousand.
	// +optional
	// +listType=atomic
	Waiting []WaitingAsk `json:"waiting,omitempty"`

	// Gateway is where requests reach the cluster.
	// +optional
	Gateway *GatewayStatus `json:"gateway,omitempty"`
}

// A PoolStatus is what is left in a pool.
type PoolStatus struct {
	// Name of the pool.
	Name string `json:"name"`

	// Nodes of the pool.
	Nodes int32 `json:"nodes"`

	// NodeSelector are the labels of the pool's nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Allocatable resources of all its nodes.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Free has the nodes by what is left on them, so that what fits can be told
	// exactly: 8 GPUs on one node are more than 4 on each of two.
	// +optional
	// +listType=atomic
	Free []FreeNodes `json:"free,omitempty"`
}

// FreeNodes are nodes on which the same is left.
type FreeNodes struct {
	// Nodes on which this is left.
	Nodes int32 `json:"nodes"`

	// Resources that are left on each.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// An Allocation is what a service was granted.
type Allocation struct {
	// UID of the service's composite resource.
	UID string `json:"uid"`

	// Namespace of the service.
	Namespace string `json:"namespace"`

	// Name of the service.
	Name string `json:"name"`

	// Replicas of the service that were granted, as its keys end: ROLE/N, or GROUP/ROLE/N.
	// +optional
	// +listType=atomic
	Replicas []string `json:"replicas,omitempty"`

	// Serial up to which the service's asks are answered: of what it asked for later,
	// nothing was granted yet.
	// +optional
	Serial int64 `json:"serial,omitempty"`

	// Pods of these replicas.
	// +optional
	Pods int32 `json:"pods,omitempty"`

	// Resources that these pods were granted.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`

	// Unfit tells that the pods have changed since they were granted, and do not fit as
	// they are now. The service is granted nothing more here.
	// +optional
	Unfit bool `json:"unfit,omitempty"`
}

// A WaitingAsk is what a service asked for and was not granted.
type WaitingAsk struct {
	// UID of the service's composite resource.
	UID string `json:"uid"`

	// Namespace of the service.
	Namespace string `json:"namespace"`

	// Name of the service.
	Name string `json:"name"`

	// Replicas that wait.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Message says what is missing.
	// +optional
	Message string `json:"message,omitempty"`
}

// A GatewayStatus is where requests reach a cluster.
type GatewayStatus struct {
	// Address is an IP address.
	Address string `json:"address"`

	// Port of the gateway.
	Port int32 `json:"port"`
}
