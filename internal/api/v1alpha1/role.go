package v1alpha1

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

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

// EngineTypes returns the types of the roles that have engines, in the order of their names. An implementation of Gateway API may copy the
// labels of a service's own Gateway to the gateway's pods. So what selects engines by the service's label names these types, too.
func EngineTypes() []string {
	return []string{string(ComponentTypeDecoder), string(ComponentTypePrefiller), string(ComponentTypeWorker)}
}

// Known tells whether a type is one of the API. A role of another one has an error, and may be meant as any type.
func (t ComponentType) Known() bool { return slices.Contains(componentTypes, t) }

// A Role is one part of the service.
// +kubebuilder:validation:XValidation:rule="self.componentType != 'router' || (!has(self.multinode) && !has(self.template) && !has(self.leaderTemplate) && !has(self.lifecycle) && !has(self.recoveryPolicy) && !has(self.restartGracePeriodSeconds) && !has(self.scaling))",message="a router must not have template, leaderTemplate, multinode, lifecycle, recoveryPolicy, restartGracePeriodSeconds or scaling"
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(self.replicas)",fieldPath=".replicas",message="must be left out with scaling: the InferenceRole of this role has the number"
// +kubebuilder:validation:XValidation:rule="self.componentType == 'router' || (!has(self.strategy) && !has(self.httproute) && !has(self.gateway) && !has(self.endpointPickerConfig) && !has(self.endpointPicker) && !has(self.servedModels))",message="only a router may have strategy, httproute, gateway, endpointPickerConfig, endpointPicker or servedModels"
// +kubebuilder:validation:XValidation:rule="self.componentType == 'router' || !has(self.restartGracePeriodSeconds) || (has(self.recoveryPolicy) && self.recoveryPolicy == 'InferGroupRestart')",fieldPath=".restartGracePeriodSeconds",message="must be left out: only recoveryPolicy InferGroupRestart waits"
// +kubebuilder:validation:XValidation:rule="self.componentType == oldSelf.componentType",fieldPath=".componentType",message="cannot be changed: add a role with another name"
type Role struct {
	// Name of the role, unique in the service: lower case letters, digits and '-'. It
	// becomes part of the names of the role's objects, such as {service}-{role}-{replica},
	// which have at most 50 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=46
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// ComponentType says what the role does. A worker answers requests from the prompt to
	// the last token. A prefiller and a decoder share that work. A router picks the pod for
	// each request.
	ComponentType ComponentType `json:"componentType"`

	// Strategy says how the router picks a pod. Defaults to pd-disaggregation if the
	// service has both a prefiller and a decoder, or else to prefix-cache.
	// +optional
	Strategy RoutingStrategy `json:"strategy,omitempty"`

	// HTTPRoute is the spec of the router's HTTPRoute (Gateway API): parentRefs, hostnames
	// and, if needed, rules. A rule without a backend sends requests to the service's
	// InferencePool. So does a backend with the name {service}-pool, whatever its kind.
	// Other backends are kept.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	HTTPRoute *kube.Document `json:"httproute,omitempty"`

	// Gateway is the spec of a Gateway (Gateway API) for this router alone. It is the
	// parent of the HTTPRoute if httproute names none.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Gateway *kube.Document `json:"gateway,omitempty"`

	// EndpointPickerConfig is the whole configuration of the endpoint picker, as YAML. It
	// replaces the configuration that the function generates for a strategy. The function
	// checks it before using it.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	EndpointPickerConfig string `json:"endpointPickerConfig,omitempty"`

	// EndpointPicker configures the endpoint picker of the router.
	// +optional
	EndpointPicker *EndpointPicker `json:"endpointPicker,omitempty"`

	// ServedModels are the models that clients may request, each with its priority and its
	// targets. A target is a LoRA adapter, or a model as the engine names it.
	// +optional
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=name
	ServedModels []ServedModel `json:"servedModels,omitempty"`

	// Replicas is the number of instances of the role, each with its own LeaderWorkerSet.
	// For a router it is the number of endpoint pickers. Defaults to 1. 0 runs none. With
	// scaling it must be left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	Replicas *int32 `json:"replicas,omitempty"`

	// Scaling lets autoscalers and kubectl scale set the number of replicas, in place of replicas.
	// See docs/scaling.md.
	// +optional
	Scaling *RoleScaling `json:"scaling,omitempty"`

	// Multinode runs each replica on several nodes, as one leader pod and its worker pods.
	// +optional
	Multinode *Multinode `json:"multinode,omitempty"`

	// Lifecycle says how long the pods may take to start and to stop.
	// +optional
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`

	// RecoveryPolicy says what is recreated when a pod fails or is evicted. RoleRestart recreates
	// the whole replica, leader and workers. RoleRestartAfterStart does so only once no
	// pod of the replica is pending, for images that take long to pull. Until then a container
	// restarts alone. InferGroupRestart recreates the whole replica, and then all other
	// replicas of its group, if it served before. Without spec.replicas the group is the whole
	// service. It needs a service whose pods are all read, so it has no effect in other
	// clusters. None restarts the pod alone. Defaults to RoleRestart.
	// +optional
	RecoveryPolicy RecoveryPolicy `json:"recoveryPolicy,omitempty"`

	// RestartGracePeriodSeconds is how long a failed replica of this role may take to serve
	// again before the rest of its group is recreated, too. It counts from when the replica's
	// leader pod was recreated. Only InferGroupRestart has it. Defaults to 0, which waits for
	// nothing.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	RestartGracePeriodSeconds *int32 `json:"restartGracePeriodSeconds,omitempty"`

	// Template of the pods (a PodTemplateSpec). It may have every field that the cluster's
	// version of LeaderWorkerSet knows. A misspelt one is refused. The engine is the container that has the serving port or
	// is named after a known engine. Other containers are not changed. It may be left out if
	// spec.profileName names a profile with a template for the componentType.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Template *kube.Document `json:"template,omitempty"`

	// LeaderTemplate is the template of the leader pod of a multi-node replica, for an
	// engine whose leader differs from its workers. Defaults to template.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	LeaderTemplate *kube.Document `json:"leaderTemplate,omitempty"`
}

// A Launcher starts an engine on several nodes.
// +kubebuilder:validation:Enum=Ray;VLLM;VLLMDataParallel;SGLang;None
type Launcher string

// The launchers.
const (
	// LauncherRay starts a Ray cluster and the engine in it. The image needs Ray.
	LauncherRay Launcher = "Ray"
	// LauncherVLLM uses vLLM's own multi-node mode, without Ray.
	LauncherVLLM Launcher = "VLLM"
	// LauncherVLLMDataParallel runs data-parallel ranks of vLLM on every node.
	LauncherVLLMDataParallel Launcher = "VLLMDataParallel"
	// LauncherSGLang uses SGLang's multi-node mode.
	LauncherSGLang Launcher = "SGLang"
	// LauncherNone leaves the commands as the user wrote them.
	LauncherNone Launcher = "None"
)

// OfVLLM tells whether the launcher is one of vLLM's own modes.
func (l Launcher) OfVLLM() bool { return l == LauncherVLLM || l == LauncherVLLMDataParallel }

// Multinode runs each replica of a role on several nodes.
type Multinode struct {
	// NodeCount is the number of nodes, and therefore of pods, of one replica. 1 means the
	// same as no multinode.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	NodeCount *int32 `json:"nodeCount"`

	// Launcher says how the leader and the workers of a replica find each other. Ray starts
	// a Ray cluster: the image needs Ray, which newer vLLM images lack. VLLM uses vLLM's
	// own multi-node mode: vllm serve has to know --nnodes, which older releases lack.
	// VLLMDataParallel runs data-parallel ranks of vLLM on every node, as wide expert
	// parallelism has them: the template says --data-parallel-size-local. SGLang uses SGLang's own. With None, the template's commands tell leader from worker
	// by the environment variables that LeaderWorkerSet sets: LWS_LEADER_ADDRESS,
	// LWS_GROUP_SIZE and LWS_WORKER_INDEX. Defaults to Ray.
	// +optional
	Launcher Launcher `json:"launcher,omitempty"`
}
