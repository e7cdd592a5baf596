// Package v1alpha1 has the inputs of the function, which a platform team sets in the
// Compositions: the Input for InferenceServices and ModelCaches, the ClusterInput for InferenceClusters, and
// the ModelInput for InferenceModels.
// +groupName=fn.fusioninfer.io
// +versionName=v1alpha1
package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Group of the inputs.
	Group = "fn.fusioninfer.io"
	// Version of the inputs.
	Version = "v1alpha1"
	// APIVersion of the inputs.
	APIVersion = Group + "/" + Version
	// KindInput is the kind of the input for InferenceServices and ModelCaches.
	KindInput = "Input"
	// KindClusterInput is the kind of the input for InferenceClusters.
	KindClusterInput = "ClusterInput"
	// KindModelInput is the kind of the input for InferenceModels.
	KindModelInput = "ModelInput"
)

// Input is what a platform team sets for all InferenceServices, or for all ModelCaches. All fields are
// optional.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Input struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// EndpointPicker configures the endpoint picker of every router.
	// +optional
	EndpointPicker EndpointPickerSettings `json:"endpointPicker,omitempty"`

	// Sidecar configures the routing sidecar of decode pods.
	// +optional
	Sidecar SidecarSettings `json:"sidecar,omitempty"`

	// Ray configures the Ray launcher.
	// +optional
	Ray RaySettings `json:"ray,omitempty"`

	// Gateway configures the gateways of routes.
	// +optional
	Gateway GatewaySettings `json:"gateway,omitempty"`

	// Defaults are the values of fields that services do not set.
	// +optional
	Defaults Defaults `json:"defaults,omitempty"`

	// Profiles are the serving profiles that services may name in spec.profileName. A change of a
	// profile changes the services that name it. Their pods get it by spec.rollout. What a
	// profile gives a service has to be what the tenant may use, as if the tenant had written it.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	Profiles []Profile `json:"profiles,omitempty"`

	// ModelLoader configures the Jobs that load the weights of spec.model into caches.
	// +optional
	ModelLoader ModelLoaderSettings `json:"modelLoader,omitempty"`

	// Fleet configures services that are placed in the clusters of the fleet.
	// +optional
	Fleet FleetSettings `json:"fleet,omitempty"`

	// Labels of every object, and of the pods of the endpoint picker. Labels that the
	// function sets itself take precedence. The engines' pods do not get them, because
	// changing them would restart every model.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of every object, in the same way.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// MissingKinds says what happens to objects of kinds that the control plane does not
	// have. With Fail, the function returns them all the same, and Crossplane fails in the
	// middle of applying them. With Skip, the function asks Crossplane for the definitions
	// of the kinds, leaves out the objects of missing kinds, and names these kinds in the
	// condition KindsAvailable. Defaults to Fail.
	// +optional
	MissingKinds MissingKinds `json:"missingKinds,omitempty"`

	// The policy of every tenant.
	Policy `json:",inline"`

	// Tenants are policies for the services of some namespaces. For each field of a policy,
	// the first tenant that selects the service's namespace and sets the field counts.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Tenants []Tenant `json:"tenants,omitempty"`

	// NetworkPolicy adds a NetworkPolicy for the engines' pods in every cluster. There is
	// none by default: a platform may have its own, and only the platform team knows where
	// its gateways are.
	// +optional
	NetworkPolicy *NetworkPolicy `json:"networkPolicy,omitempty"`

	// Monitoring says how services are observed.
	// +optional
	Monitoring MonitoringSettings `json:"monitoring,omitempty"`

	// Scaling says what measures and scales roles whose scaling has a target or triggers.
	// +optional
	Scaling ScalingSettings `json:"scaling,omitempty"`

	// PodObservationLimit is the largest number of pods for which the function reads all
	// pods of a service, to count the ready ones and to name a failing one. A larger service
	// is counted by its LeaderWorkerSets. To name a failing pod, the function reads as many
	// pods of replicas that are not ready, and at most 8 of them in each other cluster. With
	// 0 it never reads pods. Crossplane needs permission to list pods. Defaults to 64.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	PodObservationLimit *int32 `json:"podObservationLimit,omitempty"`
}

// MissingKinds says what happens to objects whose kind the control plane lacks.
// +kubebuilder:validation:Enum=Fail;Skip
type MissingKinds string

// The values of MissingKinds.
const (
	// MissingKindsFail returns the objects all the same.
	MissingKindsFail MissingKinds = "Fail"
	// MissingKindsSkip leaves the objects out.
	MissingKindsSkip MissingKinds = "Skip"
)

// A Dialect is a variant of the configuration of endpoint pickers.
// +kubebuilder:validation:Enum=GAIE;LLMD
type Dialect string

// The dialects.
const (
	// DialectGAIE is the one of the Gateway API Inference Extension's endpoint picker,
	// whose last release is v1.5.0.
	DialectGAIE Dialect = "GAIE"
	// DialectLLMD is the one of llm-d's endpoint picker, v0.9.0 and later.
	DialectLLMD Dialect = "LLMD"
)

// RevisionScreening says whether an endpoint picker can keep a request to one version.
// +kubebuilder:validation:Enum=Auto;Enabled;Disabled
type RevisionScreening string

// The values of RevisionScreening.
const (
	// RevisionScreeningAuto goes by the tag of the image.
	RevisionScreeningAuto RevisionScreening = "Auto"
	// RevisionScreeningEnabled says that the image has the plugin.
	RevisionScreeningEnabled RevisionScreening = "Enabled"
	// RevisionScreeningDisabled says that it does not.
	RevisionScreeningDisabled RevisionScreening = "Disabled"
)

// EndpointPickerSettings configure the endpoint picker of every router.
// +kubebuilder:validation:XValidation:rule="has(self.image) == has(self.dialect)",message="must have both image and dialect, or neither of them: each image reads only one dialect"
type EndpointPickerSettings struct {
	// Image of the endpoint picker. If it is not set, the image depends on the service:
	// registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0 for a plain strategy,
	// ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0 for prefill/decode and for models.
	// If it is set, an endpointPickerConfig may have plugins and parameters that only this
	// image knows. The condition NoWarnings then names them.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

	// Dialect of the configuration that this image reads.
	// +optional
	Dialect Dialect `json:"dialect,omitempty"`

	// Images replaces the default image of each dialect, for example by that of a mirror.
	// +optional
	Images DialectImages `json:"images,omitempty"`

	// RevisionScreening says whether the image of dialect LLMD has the plugin
	// disaggregatedset-rollout-screener. With it, prefill and decode of a request have one
	// version while a rollout is under way. Auto goes by the image's tag, which has to be
	// v0.10.0 or later. Enabled is for an image without such a tag, for example one that is
	// named by its digest. Disabled is for one that has such a tag and no plugin: with the
	// plugin in its configuration it does not start. The same goes for the flag --drain-timeout,
	// which several endpoint pickers get. Defaults to Auto.
	// +optional
	RevisionScreening RevisionScreening `json:"revisionScreening,omitempty"`

	// ImagePullPolicy of the endpoint picker. Defaults to IfNotPresent.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
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

	// Resources of the endpoint picker, if the router sets none.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// DialectImages has an image for each dialect.
type DialectImages struct {
	// GAIE is the image for plain strategies. Defaults to
	// registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	GAIE string `json:"gaie,omitempty"`

	// LLMD is the image for prefill/decode and for models. Defaults to
	// ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
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

// RaySettings configure the Ray launcher.
type RaySettings struct {
	// Port of the Ray head. Defaults to 6379. A role with launcher Ray is refused if it serves on this port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// GatewaySettings configure the gateways of routes.
type GatewaySettings struct {
	// ParentRefs are the parents (Gateway API ParentReference) of every HTTPRoute that
	// names none and has no Gateway of its own.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	ParentRefs []ParentRef `json:"parentRefs,omitempty"`

	// IstioDestinationRule adds a DestinationRule for each endpoint picker. Istio needs it
	// to speak TLS to the endpoint picker.
	// +optional
	IstioDestinationRule bool `json:"istioDestinationRule,omitempty"`
}

// FleetSettings configure services that are placed in the clusters of the fleet.
type FleetSettings struct {
	// ParentRefs are the gateways of this control plane through which clients reach each
	// service in all its clusters. Each service with a router has one HTTPRoute there, with
	// a weight for each cluster. There are none by default: a service then has only the URL
	// of each cluster.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	ParentRefs []ParentRef `json:"parentRefs,omitempty"`

	// Namespace in which the InferenceClusters have their cluster profiles: that of the ClusterInput.
	// Only the platform team should have write access to it. Defaults to crossplane-system.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// HostnameBackends says how the fleet route leads to clusters whose entrypoint is a DNS
	// name, such as that of an AWS load balancer. No gateway takes all ways. EndpointSlice is
	// for Envoy Gateway and Traefik, ServiceEntry for Istio and kgateway, ExternalName for NGINX
	// Gateway Fabric and Kong. By default, the fleet route leads to no DNS names.
	// +optional
	HostnameBackends HostnameBackends `json:"hostnameBackends,omitempty"`
}

// HostnameBackends are backends of a route that stand for DNS names.
// +kubebuilder:validation:Enum=EndpointSlice;ServiceEntry;ExternalName
type HostnameBackends string

// The backends that stand for DNS names.
const (
	// HostnameEndpointSlice is a Service with an EndpointSlice of the type FQDN.
	HostnameEndpointSlice HostnameBackends = "EndpointSlice"
	// HostnameServiceEntry is a ServiceEntry of Istio.
	HostnameServiceEntry HostnameBackends = "ServiceEntry"
	// HostnameExternalName is a Service of the type ExternalName.
	HostnameExternalName HostnameBackends = "ExternalName"
)

// A ParentRef names a gateway (Gateway API ParentReference).
type ParentRef struct {
	// Group of the parent. Defaults to gateway.networking.k8s.io.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Group string `json:"group,omitempty"`

	// Kind of the parent. Defaults to Gateway.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`
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

// Defaults are the values of fields that services do not set. The fields have the names
// that they have in the spec of an InferenceService.
type Defaults struct {
	// SchedulingStrategy has the defaults of spec.schedulingStrategy.
	// +optional
	SchedulingStrategy SchedulingStrategyDefaults `json:"schedulingStrategy,omitempty"`
}

// SchedulingStrategyDefaults are the defaults of spec.schedulingStrategy.
type SchedulingStrategyDefaults struct {
	// SchedulerName is the scheduler of pods that are in no gang. Pods of a gang always
	// have volcano.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// QueueName is the queue of gangs that name none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	QueueName string `json:"queueName,omitempty"`

	// Gang has the defaults of spec.schedulingStrategy.gang.
	// +optional
	Gang GangDefaults `json:"gang,omitempty"`
}

// GangDefaults are the defaults of spec.schedulingStrategy.gang.
type GangDefaults struct {
	// Mode of gangs that do not set it: AllOrNothing, MinimumFirst or None. Defaults to
	// AllOrNothing.
	// +optional
	// +kubebuilder:validation:Enum=AllOrNothing;MinimumFirst;None
	Mode string `json:"mode,omitempty"`

	// PriorityClassName of gangs that name none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	PriorityClassName string `json:"priorityClassName,omitempty"`
}
