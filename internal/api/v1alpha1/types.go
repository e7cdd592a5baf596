// Package v1alpha1 is the API of the project: the InferenceService, its defaults
// and its validation. The XRDs, the API reference and the schema tests are
// generated from the types here; nothing is written twice.
//
// +groupName=fusioninfer.io
package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

const (
	// Group of the API.
	Group = "fusioninfer.io"
	// Version of the API.
	Version = "v1alpha1"
	// Kind of a namespaced XR, and of a claim.
	Kind = "InferenceService"
	// ClusterKind is the kind of the cluster-scoped XR behind a claim.
	ClusterKind = "XInferenceService"
)

// Limits of the API. They keep an answer below the 4 MiB that Crossplane
// accepts and a mistyped number from costing more than an error message. The
// markers below repeat them for the schema; a test compares the two.
const (
	MaxRoles    = 32
	MaxReplicas = 2000
	MaxGroups   = 500
	MaxNodes    = 1024
	MaxClusters = 32
	MaxModels   = 128
	MaxTargets  = 16
	MaxWeight   = 1000000

	// MaxRoleName leaves room for the shortest service name and a replica's index
	// in MaxWorkloadName.
	MaxRoleName = 46
	// MaxName is the limit of a DNS subdomain, and of other names here.
	MaxName = 253
	// MaxConfig is the limit of an endpointPickerConfig, in characters.
	MaxConfig = 262144
	// MaxWorkloadName is the longest LeaderWorkerSet name whose pods come up on
	// several nodes: its worker StatefulSet is called {name}-{group}, and
	// StatefulSets end at 52. At size 1 it would be 52; one limit for both lets a
	// role grow to several nodes without a new name.
	MaxWorkloadName = 50
)

// An InferenceService serves one large language model, by one kind of worker or
// by prefill and decode workers apart, each replica on one node or on several.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=inferenceservices,shortName=isvc,categories=fusioninfer
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata.name",message="the name becomes part of DNS names: lower case letters, digits and '-', with a letter first and no '-' last"
// +kubebuilder:printcolumn:name="ROLES",type=string,JSONPath=`.status.roles`,description="Ready and desired replicas of each role."
// +kubebuilder:printcolumn:name="PLACED",type=string,JSONPath=`.status.conditions[?(@.type=='Placed')].status`,description="Whether all of the service has a place in a cluster."
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`,description="Where clients reach the service."
type InferenceService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the service should be.
	Spec InferenceServiceSpec `json:"spec"`

	// Status is what was observed of it. Crossplane and the function write it.
	// +optional
	Status InferenceServiceStatus `json:"status,omitempty"`
}

// An InferenceServiceSpec says what an InferenceService should be.
// +kubebuilder:validation:XValidation:rule="has(self.replicas) == has(oldSelf.replicas)",fieldPath=".replicas",message="replicas cannot be set or unset on an existing service: that would rename, and so restart, everything it runs"
// +kubebuilder:validation:XValidation:rule="self.roles.filter(r, r.componentType == 'router').size() <= 1",fieldPath=".roles",message="a service has at most one role of componentType router"
// +kubebuilder:validation:XValidation:rule="self.roles.exists(r, r.componentType != 'router')",fieldPath=".roles",message="a service needs at least one role of componentType worker, prefiller or decoder"
// +kubebuilder:validation:XValidation:rule="!self.roles.exists(r, has(r.strategy) && r.strategy == 'pd-disaggregation') || (self.roles.exists(r, r.componentType == 'prefiller') && self.roles.exists(r, r.componentType == 'decoder'))",fieldPath=".roles",message="strategy pd-disaggregation needs a role of componentType prefiller and one of componentType decoder"
// +kubebuilder:validation:XValidation:rule="!has(self.schedulingStrategy) || !has(self.schedulingStrategy.gang) || !has(self.schedulingStrategy.gang.minRoleReplicas) || self.schedulingStrategy.gang.minRoleReplicas.all(n, self.roles.exists(r, r.name == n && r.componentType != 'router'))",fieldPath=".schedulingStrategy.gang.minRoleReplicas",message="minRoleReplicas names a role that is not in roles, or a router"
// +kubebuilder:validation:XValidation:rule="!has(self.schedulingStrategy) || !has(self.schedulingStrategy.schedulerName) || self.schedulingStrategy.schedulerName == 'volcano' || !has(self.schedulingStrategy.gang) || !has(self.schedulingStrategy.gang.mode) || self.schedulingStrategy.gang.mode == 'None' || !(self.roles.exists(r, has(r.multinode) && r.multinode.nodeCount > 1) || (self.roles.exists(r, r.componentType == 'prefiller') && self.roles.exists(r, r.componentType == 'decoder')))",fieldPath=".schedulingStrategy.schedulerName",message="a gang needs schedulerName volcano; for another scheduler set gang.mode to None"
type InferenceServiceSpec struct {
	// Roles are the parts of the service. Each has a name of its own and a
	// componentType that says what it does.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	Roles []Role `json:"roles"`

	// Replicas is the number of whole groups of the roles, each group with its
	// own gang. Unset, the service is one group and its objects are named
	// {service}-{role}-{replica}; set, they are named
	// {service}-{group}-{role}-{replica}. It cannot be set or unset later. The
	// scale subresource acts on it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=500
	Replicas *int32 `json:"replicas,omitempty"`

	// SchedulingStrategy says which scheduler places the pods, and which of
	// them it has to place together.
	// +optional
	SchedulingStrategy *SchedulingStrategy `json:"schedulingStrategy,omitempty"`

	// Placement names the clusters that the service runs in. Absent, it runs
	// beside this object, in the same cluster and namespace.
	// +optional
	Placement *Placement `json:"placement,omitempty"`
}

// A SchedulingStrategy says how the pods are scheduled.
type SchedulingStrategy struct {
	// SchedulerName is the scheduler of the pods. Where pods start as a gang it
	// is volcano, and nothing else is accepted.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// Gang says which pods start together or not at all. By default every
	// replica of a service that has both prefill and decode, or a role on
	// several nodes.
	// +optional
	Gang *Gang `json:"gang,omitempty"`
}

// A GangMode says how a gang is put to the scheduler.
// +kubebuilder:validation:Enum=TaskMember;SubGroup;None
type GangMode string

// The modes of a gang.
const (
	// GangTaskMember names every replica as a task in the PodGroup's
	// minTaskMember. The service starts whole or not at all.
	GangTaskMember GangMode = "TaskMember"
	// GangSubGroup makes every replica a subgroup (Volcano 1.14 and later). The
	// service starts with its minimum, and grows as nodes become free.
	GangSubGroup GangMode = "SubGroup"
	// GangNone makes no PodGroup.
	GangNone GangMode = "None"
)

// A Gang is a set of pods that start together or not at all.
type Gang struct {
	// Mode says how the gang is put to the scheduler. TaskMember: every replica
	// is a task of the PodGroup, and all of them have to fit. SubGroup (Volcano
	// 1.14 and later): the minimum of every role has to fit, further replicas
	// follow one by one, each of them whole. None: there is no gang. Defaults to
	// what the platform team has set, else TaskMember.
	// +optional
	Mode GangMode `json:"mode,omitempty"`

	// MinRoleReplicas is the number of replicas of each role that have to start
	// together. Once it is given, a role that is not in it has no minimum; a
	// number above the role's replicas counts as all of them. With mode
	// TaskMember Volcano still asks for every task that is listed; to start
	// with less than everything use mode SubGroup.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(n, self[n] >= 0 && self[n] <= 2000)",message="each minimum is from 0 to 2000"
	MinRoleReplicas map[string]int32 `json:"minRoleReplicas,omitempty"`

	// NetworkTopology keeps the pods of the gang near to each other on the
	// network. It needs Volcano's HyperNodes, and its scheduler's plugin
	// network-topology-aware.
	// +optional
	NetworkTopology *NetworkTopology `json:"networkTopology,omitempty"`

	// Queue is Volcano's queue for the gang. It has to exist. Defaults to
	// Volcano's own default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Queue string `json:"queue,omitempty"`

	// PriorityClassName is the priority of the gang in its queue.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// A TopologyMode says how strict a NetworkTopology is.
// +kubebuilder:validation:Enum=hard;soft
type TopologyMode string

// The modes of a NetworkTopology.
const (
	// TopologyHard leaves the gang pending rather than spread it further.
	TopologyHard TopologyMode = "hard"
	// TopologySoft keeps the gang near where that is possible.
	TopologySoft TopologyMode = "soft"
)

// A NetworkTopology is Volcano's NetworkTopologySpec.
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode == 'hard' ? has(self.highestTierAllowed) != has(self.highestTierName) : !has(self.highestTierAllowed) && !has(self.highestTierName)",message="mode hard needs either highestTierAllowed or highestTierName, mode soft takes neither"
type NetworkTopology struct {
	// Mode is hard (never spread further than the highest tier) or soft (as
	// near as possible).
	// +optional
	// +kubebuilder:default=hard
	Mode TopologyMode `json:"mode,omitempty"`

	// HighestTierAllowed is the highest tier of HyperNodes that the gang may
	// spread over. For mode hard.
	// +optional
	// +kubebuilder:validation:Minimum=0
	HighestTierAllowed *int32 `json:"highestTierAllowed,omitempty"`

	// HighestTierName is the same, by the tier's name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	HighestTierName string `json:"highestTierName,omitempty"`
}

// A ComponentType says what a role does.
// +kubebuilder:validation:Enum=router;prefiller;decoder;worker
type ComponentType string

// The component types.
const (
	// ComponentTypeRouter picks the pod that answers a request.
	ComponentTypeRouter ComponentType = "router"
	// ComponentTypePrefiller reads prompts and fills the KV cache.
	ComponentTypePrefiller ComponentType = "prefiller"
	// ComponentTypeDecoder generates tokens from that cache.
	ComponentTypeDecoder ComponentType = "decoder"
	// ComponentTypeWorker does both.
	ComponentTypeWorker ComponentType = "worker"
)

var componentTypes = []ComponentType{ComponentTypeWorker, ComponentTypePrefiller, ComponentTypeDecoder, ComponentTypeRouter}

// A Role is one part of the service.
// +kubebuilder:validation:XValidation:rule="self.componentType == 'router' ? !has(self.multinode) && !has(self.template) && !has(self.leaderTemplate) : has(self.template)",message="template is required for worker, prefiller and decoder; template, leaderTemplate and multinode are not for a router"
// +kubebuilder:validation:XValidation:rule="self.componentType == 'router' || (!has(self.strategy) && !has(self.httproute) && !has(self.gateway) && !has(self.endpointPickerConfig) && !has(self.failureMode) && !has(self.resources) && !has(self.models))",message="strategy, httproute, gateway, endpointPickerConfig, failureMode, resources and models are for a router only"
type Role struct {
	// Name of the role, unique in the service: lower case letters, digits and
	// '-'. It becomes part of the names of what the role runs; service, role and
	// replica index, with '-' between them, together have at most 50 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=46
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// ComponentType says what the role does: worker answers requests from
	// prompt to last token, prefiller and decoder share that work, router picks
	// the pod for each request.
	ComponentType ComponentType `json:"componentType"`

	// Strategy of the router. Defaults to pd-disaggregation where the service
	// has both prefiller and decoder, else to prefix-cache.
	// +optional
	Strategy RoutingStrategy `json:"strategy,omitempty"`

	// HTTPRoute is the spec of the router's HTTPRoute (Gateway API): parentRefs,
	// hostnames, and rules if it needs some. A rule without a backend goes to the
	// service's InferencePool; one that names {service}-pool does, whatever its
	// kind; other backends are kept.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	HTTPRoute *kube.Document `json:"httproute,omitempty"`

	// Gateway is the spec of a Gateway (Gateway API) for this router alone. The
	// HTTPRoute uses it as parent where it names none.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Gateway *kube.Document `json:"gateway,omitempty"`

	// EndpointPickerConfig is the whole configuration of the endpoint picker, as
	// YAML. It takes the place of strategy. It is checked before it is used.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	EndpointPickerConfig string `json:"endpointPickerConfig,omitempty"`

	// FailureMode says what the gateway does while the endpoint picker does not
	// answer: FailClose refuses requests, FailOpen sends them to any pod.
	// Defaults to FailClose.
	// +optional
	FailureMode FailureMode `json:"failureMode,omitempty"`

	// Resources of the router's endpoint picker container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// Models that the service answers to, with their priority and the LoRA
	// adapters or model names that stand behind each.
	// +optional
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=name
	Models []Model `json:"models,omitempty"`

	// Replicas is the number of instances of the role, each with its own
	// LeaderWorkerSet. Of a router it is the number of endpoint pickers.
	// Defaults to 1; 0 runs none.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	Replicas *int32 `json:"replicas,omitempty"`

	// Multinode spreads each replica over several nodes, with one leader and
	// its workers.
	// +optional
	Multinode *Multinode `json:"multinode,omitempty"`

	// Template of the pods (a PodTemplateSpec). Every field of the cluster's own
	// version is kept. The container that has the serving port, or is named
	// after a known engine, is the engine; other containers are left alone.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Template *kube.Document `json:"template,omitempty"`

	// LeaderTemplate is a different template for the leader of a multi-node
	// replica, for the rare engine that needs one. Defaults to template.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	LeaderTemplate *kube.Document `json:"leaderTemplate,omitempty"`
}

// A RoutingStrategy says by what the router picks a pod.
// +kubebuilder:validation:Enum=prefix-cache;kv-cache-utilization;queue-size;lora-affinity;pd-disaggregation
type RoutingStrategy string

// The routing strategies.
const (
	// StrategyPrefixCache prefers the pod with the longest cached prefix.
	StrategyPrefixCache RoutingStrategy = "prefix-cache"
	// StrategyKVCacheUtilization prefers the pod with the most free KV cache.
	StrategyKVCacheUtilization RoutingStrategy = "kv-cache-utilization"
	// StrategyQueueSize prefers the pod with the shortest queue.
	StrategyQueueSize RoutingStrategy = "queue-size"
	// StrategyLoRAAffinity prefers a pod that has the adapter loaded.
	StrategyLoRAAffinity RoutingStrategy = "lora-affinity"
	// StrategyPDDisaggregation picks a prefill pod and a decode pod.
	StrategyPDDisaggregation RoutingStrategy = "pd-disaggregation"
)

// A FailureMode says what happens while the endpoint picker does not answer.
// +kubebuilder:validation:Enum=FailClose;FailOpen
type FailureMode string

// The failure modes, as the InferencePool has them.
const (
	FailClose FailureMode = "FailClose"
	FailOpen  FailureMode = "FailOpen"
)

// A Launcher starts an engine on several nodes.
// +kubebuilder:validation:Enum=Ray;VLLM;SGLang;None
type Launcher string

// The launchers.
const (
	// LauncherRay starts a Ray cluster and the engine in it. The image needs Ray.
	LauncherRay Launcher = "Ray"
	// LauncherVLLM uses vLLM's own multi-node mode, without Ray.
	LauncherVLLM Launcher = "VLLM"
	// LauncherSGLang uses SGLang's multi-node mode.
	LauncherSGLang Launcher = "SGLang"
	// LauncherNone leaves the commands to the user.
	LauncherNone Launcher = "None"
)

// Multinode spreads each replica of a role over several nodes.
type Multinode struct {
	// NodeCount is the number of nodes, and so of pods, of one replica. 1 is the
	// same as no multinode at all.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	NodeCount int32 `json:"nodeCount"`

	// Launcher says how leader and workers find each other. Ray (the image needs
	// it; newer vLLM images have none), VLLM (its own multi-node mode, which older
	// releases lack: vllm serve has to know --nnodes), SGLang, or None: the template's own
	// commands tell leader from worker by the environment that LeaderWorkerSet
	// sets (LWS_LEADER_ADDRESS, LWS_GROUP_SIZE, LWS_WORKER_INDEX).
	// +optional
	// +kubebuilder:default=Ray
	Launcher Launcher `json:"launcher,omitempty"`
}

// A Criticality is a named priority.
// +kubebuilder:validation:Enum=Critical;Standard;Sheddable
type Criticality string

// The criticalities.
const (
	// CriticalityCritical is shed last. Priority 10.
	CriticalityCritical Criticality = "Critical"
	// CriticalityStandard is most traffic. Priority 0.
	CriticalityStandard Criticality = "Standard"
	// CriticalitySheddable is shed first. Priority -10.
	CriticalitySheddable Criticality = "Sheddable"
)

// A Model is a name that clients ask for.
// +kubebuilder:validation:XValidation:rule="!has(self.priority) || !has(self.criticality)",message="give either priority or criticality"
// +kubebuilder:validation:XValidation:rule="!has(self.targets) || self.targets.size() == 0 || self.targets.exists(t, !has(t.weight) || t.weight > 0)",message="at least one target needs a weight above 0"
type Model struct {
	// Name of the model, as clients write it in their requests.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Priority of the model's requests; where there is not room for all of them,
	// lower ones are refused first. A request takes it only with the header
	// x-llm-d-inference-objective set to the objective's name.
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Criticality is the priority by name: Critical is 10, Standard 0, Sheddable
	// -10.
	// +optional
	Criticality Criticality `json:"criticality,omitempty"`

	// Targets that answer for the model, by weight: adapters or model names as
	// the engine knows them. None means the name itself.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Targets []Target `json:"targets,omitempty"`
}

// A Target is a model or a LoRA adapter as the engine knows it.
type Target struct {
	// Name of the adapter or model.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Weight is the target's share of the model's requests, relative to the
	// other targets. 0 gets none. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`
}

// A PlacementPolicy says how a service is put into the clusters of its placement.
// +kubebuilder:validation:Enum=Replicate;Spread;Failover
type PlacementPolicy string

// The policies of a placement.
const (
	// PlacementReplicate runs the whole service in each cluster.
	PlacementReplicate PlacementPolicy = "Replicate"
	// PlacementSpread splits the service's groups, or the replicas of a service
	// without prefill and decode, over the clusters.
	PlacementSpread PlacementPolicy = "Spread"
	// PlacementFailover runs the whole service in the first cluster that is healthy
	// and has room, and in the next one when that fails.
	PlacementFailover PlacementPolicy = "Failover"
)

// A Placement says where the service runs.
// +kubebuilder:validation:XValidation:rule="has(self.clusters) != has(self.clusterSelector)",message="give either clusters or clusterSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.policy) || self.policy == 'Replicate' || has(self.clusterSelector) || (has(self.clusters) && self.clusters.all(c, has(c.inferenceCluster)))",fieldPath=".policy",message="Spread and Failover need clusters of the fleet: give each an inferenceCluster"
type Placement struct {
	// Clusters that the service may run in, in the order of preference.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	Clusters []Cluster `json:"clusters,omitempty"`

	// ClusterSelector selects InferenceClusters by their labels, in the order of their
	// names.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Policy says how the service is put into these clusters: Replicate (the whole
	// service in each), Spread (its groups, or the replicas of a service without prefill
	// and decode, are split over them by weight and room), or Failover (the whole service
	// in the first that is healthy and has room). Defaults to Replicate.
	// +optional
	// +kubebuilder:default=Replicate
	Policy PlacementPolicy `json:"policy,omitempty"`

	// FailoverAfter is how long a cluster may be out of reach before what runs there is
	// started elsewhere. Defaults to 5m.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(s|m|h))+$`
	FailoverAfter string `json:"failoverAfter,omitempty"`
}

// A Cluster is a Kubernetes cluster that provider-kubernetes reaches.
// +kubebuilder:validation:XValidation:rule="has(self.inferenceCluster) != has(self.providerConfigRef)",message="give either inferenceCluster or providerConfigRef"
type Cluster struct {
	// Name of the cluster in this service. It keeps apart what runs in
	// different clusters, so changing it moves everything.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// InferenceCluster names a cluster of the fleet. Its room is counted, and the
	// service starts there once it was granted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	InferenceCluster string `json:"inferenceCluster,omitempty"`

	// ProviderConfigRef names the provider-kubernetes configuration with the
	// credentials of a cluster that is not in the fleet. Its room is not counted.
	// +optional
	ProviderConfigRef *ProviderConfigRef `json:"providerConfigRef,omitempty"`

	// Weight is the cluster's share of the groups or replicas under the policy Spread,
	// relative to the other clusters. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	// Namespace in that cluster. Defaults to the namespace of this object. In a
	// cluster of the fleet that one is made; another one has to exist.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// Kinds of a ProviderConfigRef.
const (
	KindClusterProviderConfig = "ClusterProviderConfig"
	KindProviderConfig        = "ProviderConfig"
)

// A ProviderConfigRef names a configuration of provider-kubernetes.
type ProviderConfigRef struct {
	// Kind is ClusterProviderConfig, or ProviderConfig in the namespace of this
	// object. A claim's Objects are cluster-scoped and know ProviderConfig only;
	// for them kind is left out of what is rendered.
	// +optional
	// +kubebuilder:default=ClusterProviderConfig
	// +kubebuilder:validation:Enum=ClusterProviderConfig;ProviderConfig
	Kind string `json:"kind,omitempty"`

	// Name of the configuration.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// An InferenceServiceStatus is what was observed of an InferenceService.
type InferenceServiceStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the service.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Components has the state of each role but the router, by the role's name,
	// summed over groups and clusters.
	// +optional
	Components map[string]ComponentStatus `json:"components,omitempty"`

	// Clusters has the same for each cluster of the placement.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ClusterStatus `json:"clusters,omitempty"`

	// Placement has, for each cluster that the placement names or selects, whether the
	// service runs there, or why it does not.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	Placement []PlacementStatus `json:"placement,omitempty"`

	// URL where clients reach the service: the route's, or the Service's where
	// there is no router.
	// +optional
	URL string `json:"url,omitempty"`

	// Replicas is the number of groups that exist, for the scale subresource. A
	// service without spec.replicas has one.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Selector of the service's pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Roles is one line for people: ready and desired replicas of each role.
	// +optional
	Roles string `json:"roles,omitempty"`
}

// A PlacementStatus is what was decided about one cluster.
type PlacementStatus struct {
	// Cluster is the name of the cluster in the placement.
	Cluster string `json:"cluster"`

	// State is Placed, Waiting (asked for, and not granted so far), Leaving (kept
	// until it runs elsewhere) or NotPlaced.
	State PlacementState `json:"state"`

	// Reason why it is not Placed, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says what is missing, with the number.
	// +optional
	Message string `json:"message,omitempty"`

	// Units of the service that are there: the indices of groups, or roles and
	// replicas of a service that is spread by its replicas.
	// +optional
	// +listType=set
	Units []string `json:"units,omitempty"`

	// Weight is the cluster's share of the requests.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// A PlacementState is what was decided about one cluster.
// +kubebuilder:validation:Enum=Placed;Waiting;Leaving;NotPlaced
type PlacementState string

// The states of a placement in one cluster.
const (
	StatePlaced    PlacementState = "Placed"
	StateWaiting   PlacementState = "Waiting"
	StateLeaving   PlacementState = "Leaving"
	StateNotPlaced PlacementState = "NotPlaced"
)

// A ClusterStatus is what was observed in one cluster.
type ClusterStatus struct {
	// Name of the cluster in the placement.
	Name string `json:"name"`

	// Components has the state of each role there, by the role's name.
	// +optional
	Components map[string]ComponentStatus `json:"components,omitempty"`

	// URL of the service there.
	// +optional
	URL string `json:"url,omitempty"`
}

// A ComponentPhase sums a component up in one word.
// +kubebuilder:validation:Enum=Pending;Deploying;Running;Failed;Unknown
type ComponentPhase string

// The phases of a component.
const (
	// ComponentPhasePending means that nothing of it exists yet.
	ComponentPhasePending ComponentPhase = "Pending"
	// ComponentPhaseDeploying means that some of it is not ready yet.
	ComponentPhaseDeploying ComponentPhase = "Deploying"
	// ComponentPhaseRunning means that all of it is ready.
	ComponentPhaseRunning ComponentPhase = "Running"
	// ComponentPhaseFailed means that a container keeps failing.
	ComponentPhaseFailed ComponentPhase = "Failed"
	// ComponentPhaseUnknown means that its state cannot be read, or is of an
	// older generation.
	ComponentPhaseUnknown ComponentPhase = "Unknown"
)

// A ComponentStatus is what was observed of one role. With two replicas on four
// nodes each it desires 2 replicas and 8 pods; a replica is ready when all its
// nodes are.
type ComponentStatus struct {
	// DesiredReplicas is the number of replicas that were asked for.
	DesiredReplicas int32 `json:"desiredReplicas"`

	// ReadyReplicas is the number of replicas that are ready with all their
	// nodes.
	ReadyReplicas int32 `json:"readyReplicas"`

	// NodesPerReplica is the number of nodes of a replica.
	NodesPerReplica int32 `json:"nodesPerReplica"`

	// TotalPods is desiredReplicas times nodesPerReplica.
	TotalPods int32 `json:"totalPods"`

	// ReadyPods is the number of pods that are ready.
	ReadyPods int32 `json:"readyPods"`

	// Phase sums the component up: Pending, Deploying, Running, Failed or
	// Unknown.
	Phase ComponentPhase `json:"phase"`

	// LastUpdateTime is the newest timestamp that the component's objects carry.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
}
