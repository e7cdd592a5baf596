package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A Profile is a serving profile: what roles are unless a service that names it says otherwise.
type Profile struct {
	// Name of the profile, as services write it in spec.profileName.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// MaxContextLength is the longest context, in tokens, for which the GPUs of the profile have
	// room. A service whose engines have a longer one gets a warning.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MaxContextLength *int32 `json:"maxContextLength,omitempty"`

	// Roles of the profile, at most one for each componentType. Each role of a service takes
	// the one of its componentType.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=componentType
	Roles []ProfileRole `json:"roles"`
}

// A ProfileRole is what roles of one type are unless a service says otherwise. The fields are those
// of a role of an InferenceService. Its name, its replicas, its route and its models are the
// service's alone, and so is what is recreated when a pod fails.
// +kubebuilder:validation:XValidation:rule="self.componentType == 'router' ? !has(self.multinode) && !has(self.template) && !has(self.leaderTemplate) && !has(self.lifecycle) : !has(self.strategy) && !has(self.endpointPicker)",message="a router may have strategy and endpointPicker only, and other types everything else"
type ProfileRole struct {
	// ComponentType of the roles: router, prefiller, decoder or worker.
	// +kubebuilder:validation:Enum=router;prefiller;decoder;worker
	ComponentType string `json:"componentType"`

	// Strategy says how a router picks a pod.
	// +optional
	// +kubebuilder:validation:Enum=prefix-cache;kv-cache-utilization;queue-size;lora-affinity;pd-disaggregation
	Strategy string `json:"strategy,omitempty"`

	// EndpointPicker configures the endpoint picker of a router.
	// +optional
	EndpointPicker *ProfileEndpointPicker `json:"endpointPicker,omitempty"`

	// Multinode runs each replica on several nodes. A service that sets nodeCount keeps the
	// launcher of the profile.
	// +optional
	Multinode *ProfileMultinode `json:"multinode,omitempty"`

	// Lifecycle says how long the pods may take to start and to stop.
	// +optional
	Lifecycle *ProfileLifecycle `json:"lifecycle,omitempty"`

	// Template of the pods (a PodTemplateSpec). What it lacks, such as the name of the model in
	// the engine's args, the service has to add.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Template *kube.Document `json:"template,omitempty"`

	// LeaderTemplate is the template of the leader pod of a replica on several nodes. Defaults
	// to template. What a service says in its own template holds for the leader, too, unless it
	// has a leaderTemplate.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	LeaderTemplate *kube.Document `json:"leaderTemplate,omitempty"`
}

// ProfileEndpointPicker configures the endpoint picker of a router.
type ProfileEndpointPicker struct {
	// FailureMode says what the gateway does while the endpoint picker does not answer:
	// FailClose or FailOpen.
	// +optional
	// +kubebuilder:validation:Enum=FailClose;FailOpen
	FailureMode string `json:"failureMode,omitempty"`

	// Resources of the endpoint picker's container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// KVConnector is the protocol over which decode pods fetch the KV cache from prefill pods.
	// It has to match the arguments of the engines.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	KVConnector string `json:"kvConnector,omitempty"`
}

// ProfileMultinode runs each replica of a role on several nodes.
type ProfileMultinode struct {
	// NodeCount is the number of nodes of one replica.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	NodeCount *int32 `json:"nodeCount,omitempty"`

	// Launcher starts the engine on several nodes: Ray, VLLM, VLLMDataParallel, SGLang or
	// None.
	// +optional
	// +kubebuilder:validation:Enum=Ray;VLLM;VLLMDataParallel;SGLang;None
	Launcher string `json:"launcher,omitempty"`
}

// ProfileLifecycle says how long the pods of a role may take to start and to stop.
type ProfileLifecycle struct {
	// StartupSeconds is how long the engine may take to load its model.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	StartupSeconds *int32 `json:"startupSeconds,omitempty"`

	// DrainSeconds is how long a pod that is deleted goes on as before.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1800
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`

	// ShutdownSeconds is how long the engine may take to end after that.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1800
	ShutdownSeconds *int32 `json:"shutdownSeconds,omitempty"`
}
