package v1alpha1

import corev1 "k8s.io/api/core/v1"

// A RoutingStrategy says how the router picks a pod.
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

// An EndpointPicker configures the endpoint picker of one router. Fields that are not set
// have the values that the platform team has set in the Input.
type EndpointPicker struct {
	// FailureMode says what the gateway does while the endpoint picker does not
	// answer: FailClose refuses requests, FailOpen sends them to any pod.
	// Defaults to FailOpen where any pod can answer any request alone. It defaults to FailClose with
	// servedModels, adapterCache or endpointPickerConfig, and for prefill and decode of another
	// engine than vLLM.
	// +optional
	FailureMode FailureMode `json:"failureMode,omitempty"`

	// Resources of the endpoint picker's container: cpu, memory and ephemeral-storage.
	// Defaults to those in the Input, or else to small requests.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// KVConnector is the protocol over which decode pods fetch the KV cache from prefill
	// pods. Its values are those of the routing sidecar: nixlv2, shared-storage, sglang,
	// mooncake or, from v0.10.0 on, offloading. It has to match the arguments of the engines. Defaults to
	// sidecar.kvConnector in the Input, which fits the engine by default. It is an argument of the sidecar, so a change of it
	// restarts the prefill and decode pods.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	KVConnector string `json:"kvConnector,omitempty"`
}

// A FailureMode says what happens while the endpoint picker does not answer.
// +kubebuilder:validation:Enum=FailClose;FailOpen
type FailureMode string

// The failure modes, as in an InferencePool.
const (
	FailClose FailureMode = "FailClose"
	FailOpen  FailureMode = "FailOpen"
)
