package v1alpha1

import corev1 "k8s.io/api/core/v1"

// SidecarSettings configure the routing sidecar of decode pods.
type SidecarSettings struct {
	// Image of the sidecar. Defaults to
	// ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// KVConnector is the protocol over which decode pods fetch the KV cache. Defaults to
	// sglang for SGLang, and to nixlv2 for other engines.
	// +optional
	KVConnector string `json:"kvConnector,omitempty"`

	// SSRFProtection makes the sidecar send prefill requests to pods of the service only.
	// Without it, the sidecar sends them to the address in the header x-prefiller-host-port
	// of a request. A client can set this header where no endpoint picker does. With it,
	// the service account of the decode pods may list and watch the InferencePool and the
	// pods of its namespace. Disabled is for images before v0.10.0, which cannot read the
	// pool. Defaults to Enabled.
	// +optional
	SSRFProtection Switch `json:"ssrfProtection,omitempty"`

	// Resources of the sidecar.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}
