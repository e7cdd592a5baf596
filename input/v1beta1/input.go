// Package v1beta1 is the input of the function: what a platform team sets in
// the Composition, for every service.
// +groupName=inferenceservice.fn.crossplane.io
// +versionName=v1beta1
package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Group of the input.
	Group = "inferenceservice.fn.crossplane.io"
	// Version of the input.
	Version = "v1beta1"
	// Kind of the input.
	Kind = "Input"
)

// Input is what a platform team sets for every InferenceService. All of it is
// optional.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Input struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// EndpointPicker sets up the endpoint picker of every router.
	// +optional
	EndpointPicker EndpointPicker `json:"endpointPicker,omitempty"`

	// Sidecar sets up the routing sidecar of decode pods.
	// +optional
	Sidecar Sidecar `json:"sidecar,omitempty"`

	// Ray sets up the Ray launcher.
	// +optional
	Ray Ray `json:"ray,omitempty"`

	// Gateway sets up how routes meet gateways.
	// +optional
	Gateway Gateway `json:"gateway,omitempty"`

	// Scheduling has the defaults of spec.schedulingStrategy.
	// +optional
	Scheduling Scheduling `json:"scheduling,omitempty"`

	// Fleet sets up the clusters of the fleet, and services that are placed in them.
	// +optional
	Fleet Fleet `json:"fleet,omitempty"`

	// Labels on every object, and on the pods of the endpoint picker. Labels that the
	// function itself sets win. They are not put on the engines' pods: changing
	// them would restart every model.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations on every object, in the same way.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// RequireKinds makes the function ask Crossplane for the definitions of the
	// kinds that it composes, and leave out (and name in a condition) what the
	// cluster lacks, instead of failing in the middle of an apply.
	// +optional
	RequireKinds bool `json:"requireKinds,omitempty"`

	// What the services of every tenant may use.
	Policy `json:",inline"`

	// Tenants have policies of their own. Of each field, the first tenant that selects
	// the service's namespace and sets the field wins.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Tenants []Tenant `json:"tenants,omitempty"`

	// NetworkPolicy renders a NetworkPolicy for the engines' pods, wherever they run. None
	// by default: a platform may have its own, and only it knows where its gateways are.
	// +optional
	NetworkPolicy *NetworkPolicy `json:"networkPolicy,omitempty"`

	// PodObservationLimit is the number of pods up to which the function reads
	// the pods of a service themselves, to count ready ones and to name a failing
	// one. Above it, and on other clusters, LeaderWorkerSets are counted. 0 never
	// reads pods. Crossplane needs to be allowed to list pods. Defaults to 64.
	// +optional
	// +kubebuilder:default=64
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	PodObservationLimit *int32 `json:"podObservationLimit,omitempty"`
}

// A Dialect is the language of an endpoint picker's configuration.
// +kubebuilder:validation:Enum=GAIE;LLMD
type Dialect string

// The dialects.
const (
	// DialectGAIE is that of the Gateway API Inference Extension's own endpoint
	// picker, up to its last release, v1.5.0.
	DialectGAIE Dialect = "GAIE"
	// DialectLLMD is that of llm-d's endpoint picker, v0.9.0 and later.
	DialectLLMD Dialect = "LLMD"
)

// An EndpointPicker sets up the endpoint picker of every router.
// +kubebuilder:validation:XValidation:rule="has(self.image) == has(self.dialect)",message="image and dialect go together: each image reads one dialect only"
type EndpointPicker struct {
	// Image of the endpoint picker. Unset, it is the one that fits what the
	// service asks for: registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0
	// for a plain strategy, ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0 for
	// prefill/decode and for models.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// Dialect of the configuration that this image reads.
	// +optional
	Dialect Dialect `json:"dialect,omitempty"`

	// Images replaces the default image of each dialect, for a mirror of them.
	// +optional
	Images DialectImages `json:"images,omitempty"`

	// ImagePullPolicy of the endpoint picker. Defaults to IfNotPresent.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +kubebuilder:default="IfNotPresent"
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets of the endpoint picker's pods.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Tolerations of the endpoint picker's pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// NodeSelector of the endpoint picker's pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Resources of the endpoint picker, where the router has none of its own.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// DialectImages has an image for each dialect.
type DialectImages struct {
	// GAIE is the image for plain strategies.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:default="registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0"
	GAIE string `json:"gaie,omitempty"`

	// LLMD is the image for prefill/decode and for models.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:default="ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0"
	LLMD string `json:"llmd,omitempty"`
}

// A Switch turns something on or off.
// +kubebuilder:validation:Enum=Enabled;Disabled
type Switch string

// The values of Switch.
const (
	Enabled  Switch = "Enabled"
	Disabled Switch = "Disabled"
)

// A Sidecar sets up the routing sidecar of decode pods.
type Sidecar struct {
	// Image of the sidecar. Defaults to
	// ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:default="ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0"
	Image string `json:"image,omitempty"`

	// KVConnector is how the engines hand over the KV cache. Defaults to nixlv2.
	// +optional
	// +kubebuilder:default="nixlv2"
	KVConnector string `json:"kvConnector,omitempty"`

	// SSRFProtection makes the sidecar send prefill requests to pods of the service only.
	// Otherwise it sends them wherever the header x-prefiller-host-port of a request says,
	// which a client can write where no endpoint picker does. The service account of the
	// decode pods may then list and watch the InferencePool, and the pods of its
	// namespace. Disabled is for images before v0.10.0, which cannot read the pool. Defaults
	// to Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	SSRFProtection Switch `json:"ssrfProtection,omitempty"`

	// Resources of the sidecar.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// Ray sets up the Ray launcher.
type Ray struct {
	// Port of the Ray head. Defaults to 6379.
	// +optional
	// +kubebuilder:default=6379
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// A Gateway sets up how routes meet gateways.
type Gateway struct {
	// ParentRefs of every HTTPRoute that names no parent and has no Gateway of its
	// own (Gateway API ParentReference).
	// +optional
	ParentRefs []ParentRef `json:"parentRefs,omitempty"`

	// IstioDestinationRule renders a DestinationRule for each endpoint picker,
	// which Istio needs to speak TLS with it.
	// +optional
	IstioDestinationRule bool `json:"istioDestinationRule,omitempty"`
}

// A Fleet sets up the clusters of the fleet, and services that are placed in them.
type Fleet struct {
	// Namespace of the ledgers of the clusters, and of the Objects that observe them.
	// Nobody but the platform team should be able to write there. Defaults to
	// crossplane-system.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:default="crossplane-system"
	Namespace string `json:"namespace,omitempty"`

	// ParentRefs are the gateways of this control plane at which each service is
	// reached wherever it runs: one HTTPRoute for each service that has a router, with a
	// weight for each of its clusters. None by default: each cluster then has its own
	// URL and no more.
	// +optional
	ParentRefs []ParentRef `json:"parentRefs,omitempty"`

	// Namespaces says what the namespaces carry that an InferenceCluster makes for
	// services. Besides, they have the Pod Security labels of the policy for their
	// tenant.
	// +optional
	Namespaces NamespaceMeta `json:"namespaces,omitempty"`
}

// NamespaceMeta is the metadata of namespaces that are made for services.
type NamespaceMeta struct {
	// Labels of the namespaces.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the namespaces.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A ParentRef names a gateway (Gateway API ParentReference).
type ParentRef struct {
	// Group of the parent. Defaults to gateway.networking.k8s.io.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Group string `json:"group,omitempty"`

	// Kind of the parent. Defaults to Gateway.
	// +optional
	Kind string `json:"kind,omitempty"`

	// Namespace of the parent. Defaults to the route's own.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// Name of the parent.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// SectionName is the listener of the parent.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	SectionName string `json:"sectionName,omitempty"`

	// Port is the port of the parent.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// Scheduling has the defaults of spec.schedulingStrategy.
type Scheduling struct {
	// SchedulerName of pods that are in no gang. A gang is always volcano's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// GangMode of services that set none: TaskMember, SubGroup or None. Defaults to
	// TaskMember.
	// +optional
	// +kubebuilder:validation:Enum=TaskMember;SubGroup;None
	// +kubebuilder:default="TaskMember"
	GangMode string `json:"gangMode,omitempty"`

	// Queue of gangs that name none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Queue string `json:"queue,omitempty"`
}
