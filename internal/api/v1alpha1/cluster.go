package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindInferenceCluster is the kind of a cluster of the fleet.
const KindInferenceCluster = "InferenceCluster"

// Limits of an InferenceCluster. The markers below repeat them for the schema.
const (
	MaxPools     = 64
	MaxPoolNodes = 5000
	// MaxClusterName is the limit of the value of a label, because capacity requests carry
	// the name as a label.
	MaxClusterName = 63
	// MaxSelectorLabels is the limit of a pool's nodeSelector.
	MaxSelectorLabels = 16
	// MaxAllocatable is the limit of a pool's allocatable. Nodes have some ten resources.
	MaxAllocatable = 64
	// MaxTaints is the limit of a pool's taints.
	MaxTaints = 16
	// MaxStopMessage is the limit of stopMessage.
	MaxStopMessage = 253
	// MaxClusterUID is the limit of clusterUID. The UIDs of Kubernetes have 36 characters.
	MaxClusterUID = 63
	// DefaultEntrypointPort is that of plain HTTP.
	DefaultEntrypointPort = 80
)

// An InferenceCluster is a Kubernetes cluster that InferenceServices may run in. A
// placement's clusterSelector selects it by its labels. The spec says which nodes the
// cluster has. The status says how much of their capacity is reserved for which service. A
// service requests capacity and the cluster reserves it, so that nothing is reserved twice.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=inferenceclusters,scope=Cluster,shortName=icl,categories=fusioninfer
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 63",fieldPath=".metadata.name",message="the name must consist of at most 63 lower case letters, digits and '-', and start and end with a letter or digit: it becomes part of labels"
// +kubebuilder:printcolumn:name="REACHABLE",type=string,JSONPath=`.status.conditions[?(@.type=='Reachable')].status`,description="Whether provider-kubernetes reaches the cluster."
// +kubebuilder:printcolumn:name="SCHEDULABLE",type=string,JSONPath=`.status.conditions[?(@.type=='Schedulable')].reason`,description="Schedulable, or why the cluster reserves nothing new."
// +kubebuilder:printcolumn:name="NODES",type=integer,JSONPath=`.status.nodeCount`,description="Nodes of all pools."
// +kubebuilder:printcolumn:name="DEVICES",type=integer,JSONPath=`.status.deviceCount`,description="Devices of all nodes, such as GPUs."
// +kubebuilder:printcolumn:name="FREE",type=integer,JSONPath=`.status.freeDeviceCount`,description="Devices that are not reserved."
// +kubebuilder:printcolumn:name="SERVICES",type=integer,JSONPath=`.status.serviceCount`,description="Services with reserved capacity."
// +kubebuilder:printcolumn:name="PENDING",type=integer,JSONPath=`.status.pendingCount`,description="Services that request more than is reserved for them."
// +kubebuilder:printcolumn:name="SUMMARY",type=string,JSONPath=`.status.summary`,description="Free devices and all devices of each kind.",priority=1
// +kubebuilder:printcolumn:name="EXCLUSIVE",type=string,JSONPath=`.status.conditions[?(@.type=='Exclusive')].reason`,description="Who else uses the cluster, if anybody.",priority=1
type InferenceCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how to reach the cluster, and which nodes it has.
	Spec InferenceClusterSpec `json:"spec"`

	// Status is the observed state of the cluster, with its reservations. Crossplane and
	// the function write it.
	// +optional
	Status InferenceClusterStatus `json:"status,omitempty"`
}

// An InferenceClusterSpec says how to reach a cluster and which nodes it has.
// +kubebuilder:validation:XValidation:rule="has(self.pools) != (has(self.admission) && self.admission == 'Kueue')",fieldPath=".pools",message="must be set, unless admission is Kueue: then the quotas of the cluster's ClusterQueues count instead"
// +kubebuilder:validation:XValidation:rule="!has(self.kueue) || (has(self.admission) && self.admission == 'Kueue')",fieldPath=".kueue",message="must be left out unless admission is Kueue"
// +kubebuilder:validation:XValidation:rule="!has(self.volcano) || !(has(self.admission) && self.admission == 'Kueue')",fieldPath=".volcano",message="must be left out if admission is Kueue, because gangs are refused then"
// +kubebuilder:validation:XValidation:rule="!has(self.quotas) || !(has(self.admission) && self.admission == 'Kueue')",fieldPath=".quotas",message="must be left out if admission is Kueue: then those of the cluster's ClusterQueues count instead"
// +kubebuilder:validation:XValidation:rule="(has(self.admission) ? self.admission : 'Ledger') == (has(oldSelf.admission) ? oldSelf.admission : 'Ledger')",fieldPath=".admission",message="cannot be changed: drain this cluster, delete it and create it again"
// +kubebuilder:validation:XValidation:rule="(has(self.kueue) && has(self.kueue.localQueueName) ? self.kueue.localQueueName : 'default') == (has(oldSelf.kueue) && has(oldSelf.kueue.localQueueName) ? oldSelf.kueue.localQueueName : 'default')",fieldPath=".kueue",message="localQueueName cannot be changed: drain this cluster, delete it and create it again"
type InferenceClusterSpec struct {
	// ProviderConfigRef names the provider-kubernetes configuration with the cluster's
	// credentials. It cannot change, because reservations in one cluster would then count in
	// another. For another cluster, create another InferenceCluster.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && (has(self.apiGroup) ? self.apiGroup : 'kubernetes.m.crossplane.io') == (has(oldSelf.apiGroup) ? oldSelf.apiGroup : 'kubernetes.m.crossplane.io')",message="cannot be changed: for another cluster, create another InferenceCluster"
	ProviderConfigRef ClusterScopedConfigRef `json:"providerConfigRef"`

	// ClusterUID is the UID of the namespace kube-system in the cluster. While another
	// cluster answers, nothing new is reserved. Without it, the cluster that answers first is
	// taken for the right one. After the cluster was recreated, set it to the new UID.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ClusterUID string `json:"clusterUID,omitempty"`

	// Sharing says who else may use the cluster. Exclusive means nobody: if another
	// InferenceCluster or another control plane uses it too, nothing new is reserved.
	// ByPool means that others have other nodes of it. Nobody checks that, and nodes in pools
	// of two InferenceClusters are reserved twice. Defaults to Exclusive.
	// +optional
	Sharing Sharing `json:"sharing,omitempty"`

	// Pools of nodes. Nodes that are in no pool are not used. They must be left out if
	// admission is Kueue, and set otherwise.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	Pools []Pool `json:"pools,omitempty"`

	// Admission says what decides when a service may start in the cluster. With Ledger the
	// capacity of the pools is reserved for services. With Kueue no capacity is counted, and
	// Kueue in the cluster admits each replica: it has the quotas, priorities and preemption.
	// It cannot change, because Kueue does not let running replicas change their queue.
	// Defaults to Ledger.
	// +optional
	Admission Admission `json:"admission,omitempty"`

	// Kueue says which queue Kueue admits services from, if admission is Kueue.
	// +optional
	Kueue *Kueue `json:"kueue,omitempty"`

	// Volcano says which queue of Volcano gangs are in here.
	// +optional
	Volcano *Volcano `json:"volcano,omitempty"`

	// Quotas limit how much of the cluster the services of a namespace may reserve, and say who
	// is served first. For each namespace, the first entry that matches it counts. Without one,
	// it has no quota and the priority 0. They must be left out if admission is Kueue.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	Quotas []Quota `json:"quotas,omitempty"`

	// StopPolicy says what the cluster still accepts. None accepts everything that fits.
	// Hold reserves nothing new, and what runs in the cluster stays. Drain also moves
	// services elsewhere, as far as their placements allow. Abandon also gives up what runs
	// in the cluster: services forget it without deleting it, so that nothing waits for a
	// cluster that will not answer. Defaults to None.
	// +optional
	StopPolicy StopPolicy `json:"stopPolicy,omitempty"`

	// StopMessage says why the cluster is stopped. Conditions repeat it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StopMessage string `json:"stopMessage,omitempty"`

	// Entrypoint is how requests reach the cluster from outside.
	// +optional
	Entrypoint *Entrypoint `json:"entrypoint,omitempty"`

	// AllowedNamespaces says which namespaces' services may use the cluster. For other
	// services the cluster does not exist. What they already run in it leaves once it runs
	// elsewhere. Defaults to all namespaces. A later version of the API may have a stricter
	// default: to allow all namespaces for good, set from to All.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// Sharing says who else may use a cluster.
// +kubebuilder:validation:Enum=Exclusive;ByPool
type Sharing string

// The values of Sharing.
const (
	// SharingExclusive means nobody.
	SharingExclusive Sharing = "Exclusive"
	// SharingByPool means others with other nodes.
	SharingByPool Sharing = "ByPool"
)

// A Pool is a set of nodes that are alike.
// +kubebuilder:validation:XValidation:rule="has(self.nodeCount) == has(self.allocatable)",message="must have both nodeCount and allocatable, or neither of them to have the nodes observed"
// +kubebuilder:validation:XValidation:rule="has(self.nodeCount) || (has(self.nodeSelector) && self.nodeSelector.size() > 0)",fieldPath=".nodeSelector",message="must have the labels of the nodes to observe, unless nodeCount and allocatable are set"
// +kubebuilder:validation:XValidation:rule="!has(self.taints) || has(self.nodeCount)",fieldPath=".taints",message="must be left out without nodeCount: those of observed nodes are read"
type Pool struct {
	// Name of the pool, unique in the cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// NodeSelector is the labels of the pool's nodes. Pods with a nodeSelector fit only
	// pools that have all of its labels. Without nodeCount, these labels also select the
	// nodes that are observed. Pods for which capacity is reserved in the pool get these labels
	// as their nodeSelector, so all of its nodes must have them.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// NodeCount is the number of nodes. If it is not set, the nodes are observed in the
	// cluster. They count while they are Ready and not cordoned, and for pods that tolerate
	// their taints.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	NodeCount *int32 `json:"nodeCount,omitempty"`

	// Allocatable resources of each node, such as nvidia.com/gpu: 8. CPU, memory, ephemeral storage
	// and pods that are not listed are not counted. Of any other resource that is not listed, the
	// nodes have none.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('/|^(cpu|memory|ephemeral-storage|pods)$|^(hugepages|attachable-volumes)-') && !name.startsWith('requests.') && !name.startsWith('limits.'))",message="must be a resource that nodes have: cpu, memory, ephemeral-storage, pods, hugepages-{size}, or a device with its domain, such as nvidia.com/gpu"
	Allocatable map[corev1.ResourceName]resource.Quantity `json:"allocatable,omitempty"`

	// Taints of each node, if nodeCount is set. The nodes count only for pods that tolerate all of
	// them. Pods that request a device tolerate a taint with its name and the effect NoSchedule.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Taints []Taint `json:"taints,omitempty"`
}

// A Taint keeps pods from a node that do not tolerate it.
type Taint struct {
	// Key of the taint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// Value of the taint.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`

	// Effect of the taint. PreferNoSchedule keeps no pod from a node, so it is left out.
	// +kubebuilder:validation:Enum=NoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`
}

// NodeTaints returns taints as a node has them.
func NodeTaints(all []Taint) []corev1.Taint {
	taints := make([]corev1.Taint, 0, len(all))
	for _, t := range all {
		taints = append(taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	return taints
}

// A StopPolicy says what a cluster still accepts.
// +kubebuilder:validation:Enum=None;Hold;Drain;Abandon
type StopPolicy string

// The stop policies, from the mildest to the strictest.
const (
	// StopNone accepts everything that fits.
	StopNone StopPolicy = "None"
	// StopHold reserves nothing new. What runs in the cluster stays.
	StopHold StopPolicy = "Hold"
	// StopDrain reserves nothing new. Services leave once they run elsewhere.
	StopDrain StopPolicy = "Drain"
	// StopAbandon gives up the cluster and what runs in it.
	StopAbandon StopPolicy = "Abandon"
)

// An Entrypoint is how requests reach a cluster from outside: an address, or a Gateway
// (Gateway API) in the cluster whose address is observed.
// +kubebuilder:validation:XValidation:rule="has(self.address) != has(self.gatewayRef)",message="must have either address, or the gatewayRef of a Gateway whose address is observed"
type Entrypoint struct {
	// GatewayRef names a Gateway in the cluster, whose address is observed.
	// +optional
	GatewayRef *GatewayReference `json:"gatewayRef,omitempty"`

	// Address at which the cluster is reached.
	// +optional
	Address *EntrypointAddress `json:"address,omitempty"`

	// Port at which the cluster is reached. Defaults to 80.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// A GatewayReference names a Gateway (Gateway API).
type GatewayReference struct {
	// Name of the Gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// Namespace of the Gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`
}

// An AddressType says what an address is.
// +kubebuilder:validation:Enum=IPAddress;Hostname
type AddressType string

// The types of addresses, as the Gateway API has them.
const (
	// AddressTypeIP is an IP address.
	AddressTypeIP AddressType = "IPAddress"
	// AddressTypeHostname is a DNS name.
	AddressTypeHostname AddressType = "Hostname"
)

// An EntrypointAddress is an address at which a cluster is reached.
type EntrypointAddress struct {
	// Type of the address. Defaults to IPAddress. The fleet route leads to a Hostname only if
	// fleet.hostnameBackends of the Input says how.
	// +optional
	Type AddressType `json:"type,omitempty"`

	// Value is the address: an IP address or a DNS name that other machines reach.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Value string `json:"value"`
}
