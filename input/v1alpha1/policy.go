package v1alpha1

import (
	"cmp"
	"path"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// A Policy says what the services of a tenant may use. A tenant is whoever owns a
// namespace. By default, a service may not use anything that affects other tenants, and may
// use everything within its own namespace.
type Policy struct {
	// PodSecurity is the Pod Security Standard of the engines' pods. A service whose
	// templates violate it is refused before anything is applied. Defaults to baseline.
	// +optional
	PodSecurity *PodSecurity `json:"podSecurity,omitempty"`

	// AllowedProviderConfigs are the provider-kubernetes configurations that
	// spec.placement.clusters[].providerConfigRef may name. There are none by default. A
	// configuration that an InferenceCluster uses is always refused.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedProviderConfigs []AllowedProviderConfig `json:"allowedProviderConfigs,omitempty"`

	// Routes says which gateways, host names and backends the routes of a service may
	// have.
	// +optional
	Routes *Routes `json:"routes,omitempty"`

	// AllowedQueues are the Volcano queues that a service may name, as names or patterns
	// with '*'. The default queue of the Input is always allowed. There are none by
	// default.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedQueues []string `json:"allowedQueues,omitempty"`

	// AllowedPriorityClassNames are the PriorityClasses that a service may name, in its
	// gang and in its templates, as names or patterns with '*'. The default class of the
	// Input is always allowed in a gang. There are none by default, because pods of a high
	// priority evict those of other tenants.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedPriorityClassNames []string `json:"allowedPriorityClassNames,omitempty"`

	// AllowedTriggers are the types of KEDA's triggers that scaling.triggers of a role may have, as
	// names or patterns with '*'. There are none by default: the operator of KEDA reads the addresses
	// that a trigger names, from its own place in the network. A TriggerAuthentication of the tenant may
	// name a podIdentity, with which KEDA uses its own account at a cloud.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedTriggers []string `json:"allowedTriggers,omitempty"`

	// Limits of one copy of a service. There are none by default.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// ModelCaches says which claims spec.model.cache may make. Generic ephemeral volumes of templates
	// may have the same classes and sizes.
	// +optional
	ModelCaches *ModelCaches `json:"modelCaches,omitempty"`
}

// A Tenant is a policy for the services of some namespaces.
type Tenant struct {
	// Namespaces of the services, as names or patterns with '*'.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Namespaces []string `json:"namespaces"`

	// Each field that is set replaces that of the Input. In podSecurity, routes, limits and
	// modelCaches, each of their fields replaces that of the Input by itself.
	Policy `json:",inline"`
}

// A PodSecurityLevel is one of the Pod Security Standards.
// +kubebuilder:validation:Enum=privileged;baseline;restricted
type PodSecurityLevel string

// The Pod Security Standards.
const (
	PodSecurityPrivileged PodSecurityLevel = "privileged"
	PodSecurityBaseline   PodSecurityLevel = "baseline"
	PodSecurityRestricted PodSecurityLevel = "restricted"
)

// PodSecurity is a Pod Security Standard, as in the labels
// pod-security.kubernetes.io/enforce and enforce-version.
type PodSecurity struct {
	// Enforce is the standard: privileged, baseline or restricted. Defaults to
	// baseline.
	// +optional
	Enforce PodSecurityLevel `json:"enforce,omitempty"`

	// EnforceVersion is the Kubernetes version of the standard, such as v1.34, or latest
	// for the newest version that the function knows. Defaults to latest.
	// +optional
	// +kubebuilder:validation:Pattern=`^(latest|v1\.(0|[1-9][0-9]{0,3}))$`
	EnforceVersion string `json:"enforceVersion,omitempty"`

	// AllowedCapabilities are capabilities that containers may add although the standard
	// does not allow them, such as IPC_LOCK for RDMA.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	AllowedCapabilities []corev1.Capability `json:"allowedCapabilities,omitempty"`

	// AllowedAnnotations are annotations of istio.io and its subdomains that templates and a service's
	// own Gateway may have, such as proxy.istio.io/config. With some, such as
	// sidecar.istio.io/userVolume, Istio's sidecar injector adds to a pod what the standard
	// refuses. None by default. sidecar.istio.io/inject and those of networking.istio.io are
	// always allowed. The standard privileged allows all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	AllowedAnnotations []string `json:"allowedAnnotations,omitempty"`
}

// An AllowedProviderConfig is a provider-kubernetes configuration that services may use.
type AllowedProviderConfig struct {
	// Kind of the configuration. Defaults to ClusterProviderConfig.
	// +optional
	// +kubebuilder:validation:Enum=ClusterProviderConfig;ProviderConfig
	Kind string `json:"kind,omitempty"`

	// Name of the configuration.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// Namespaces in that cluster in which a service may run, as names or patterns with '*'.
	// A namespace with the name of the service's own is always allowed. There are no others
	// by default.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	Namespaces []string `json:"namespaces,omitempty"`
}

// An Access says whether something is allowed.
// +kubebuilder:validation:Enum=Allow;Deny
type Access string

// The values of Access.
const (
	Allow Access = "Allow"
	Deny  Access = "Deny"
)

// A RouteFilter is a filter of an HTTPRoute that sends requests to other backends as well.
// +kubebuilder:validation:Enum=RequestMirror;ExternalAuth;ExtensionRef
type RouteFilter string

// The filters that send requests to other backends.
const (
	FilterRequestMirror RouteFilter = "RequestMirror"
	FilterExternalAuth  RouteFilter = "ExternalAuth"
	FilterExtensionRef  RouteFilter = "ExtensionRef"
)

// Routes says which gateways, host names and backends the routes of a service may have.
// A gateway is shared unless it is in the service's own namespace.
type Routes struct {
	// AllowedParentRefs are shared gateways that a route may name. Those in
	// gateway.parentRefs and the gateways in the service's own namespace are always
	// allowed. There are no others by default.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedParentRefs []AllowedParentRef `json:"allowedParentRefs,omitempty"`

	// OwnGateways says whether a router may have a Gateway of its own. Defaults to
	// Allow.
	// +optional
	OwnGateways Access `json:"ownGateways,omitempty"`

	// AllowedGatewayClassNames are the classes that such a Gateway may have, as names or
	// patterns with '*'. By default it may have any class.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	AllowedGatewayClassNames []string `json:"allowedGatewayClassNames,omitempty"`

	// AllowedAddresses are the addresses that such a Gateway may ask for: IP addresses,
	// ranges such as 192.0.2.0/24, and patterns of names, with what allowedHostnames may
	// have. "*" allows any address. There are none by default, because a Gateway may get
	// the requests of others that go to an address which it asks for.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedAddresses []string `json:"allowedAddresses,omitempty"`

	// AllowedTLSOptions are the names of the options that listeners of such a Gateway may
	// have in tls.options, such as gateway.istio.io/tls-terminate-mode, with any value.
	// There are none by default: with some options, a gateway uses certificates of others.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	AllowedTLSOptions []string `json:"allowedTLSOptions,omitempty"`

	// DefaultHostname is the host name of routes that name none and have a shared gateway,
	// such as {service}.{namespace}.llm.example.com. {service} and {namespace} each have to
	// be a whole label of the name, so that no two services have the same host name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DefaultHostname string `json:"defaultHostname,omitempty"`

	// AllowedHostnames are patterns of the host names that routes and the listeners of
	// Gateways may have besides the default. {service} and {namespace} stand for the name
	// and the namespace of the service. '*' as the first label stands for one or more
	// labels. "*" allows any host name. It also allows a route without host names, which
	// gets every request that no other route matches. Without patterns and without a
	// default, a route may not use a shared gateway, and may have any host name at gateways
	// in the service's own namespace.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	AllowedHostnames []string `json:"allowedHostnames,omitempty"`

	// AllowedFilters are filters that routes may have although they send requests to other
	// backends. There are none by default. Only the experimental channel of the Gateway API
	// has ExternalAuth. Where a cluster lacks it, nothing of a service with it can be applied.
	// +optional
	// +kubebuilder:validation:MaxItems=3
	AllowedFilters []RouteFilter `json:"allowedFilters,omitempty"`

	// ExperimentalFields says whether routes may have retry, sessionPersistence and
	// useDefaultGateways, and Gateways defaultScope. Only the experimental channel of the
	// Gateway API has these fields, and lets ports alone tell the parentRefs to one gateway
	// apart. Allow them if all clusters have its definitions: where one lacks a field,
	// nothing of a service with it can be applied. Then the values of headers are those that
	// release 1.5 and later ones allow. Defaults to Deny.
	// +optional
	ExperimentalFields Access `json:"experimentalFields,omitempty"`

	// AllowedBackendNamespaces are namespaces in which routes may have backends, as names
	// or patterns with '*'. The service's own namespace is always allowed. There are no
	// others by default. The Gateway API requires a ReferenceGrant in these namespaces as
	// well.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedBackendNamespaces []string `json:"allowedBackendNamespaces,omitempty"`
}

// An AllowedParentRef is a shared gateway that routes may name.
type AllowedParentRef struct {
	// Namespace of the gateway, as a name or a pattern with '*'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name of the gateway, as a name or a pattern with '*'. Any name is allowed by default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// SectionName is the listener that a route has to name. Any listener is allowed by
	// default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SectionName string `json:"sectionName,omitempty"`
}

// Limits of one copy of a service. With the placement policy Replicate, each cluster has a copy, and each copy may
// have all that the limits allow. The parts of a service with Spread count together. To limit what a namespace
// reserves in a cluster of the fleet, set quotas of the InferenceCluster.
type Limits struct {
	// Replicas is the number of replicas of all roles in all groups, with those of the
	// router.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Nodes is the number of nodes of all these replicas. Each pod counts as one node.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes *int32 `json:"nodes,omitempty"`

	// Devices is the number of devices, such as GPUs, that all these pods request. It is
	// the sum over all resources with a '/' in their names. With this limit, a service
	// cannot use resource claims (DRA), because the devices of a claim cannot be counted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Devices *int32 `json:"devices,omitempty"`
}

// A NetworkPolicy restricts which peers may reach the engines' pods, and which peers the
// engines' pods may reach.
type NetworkPolicy struct {
	// IngressFrom are the peers that may reach every port of the engines' pods, such as the
	// gateways and what scrapes metrics. The endpoint picker, the pods of the service itself and
	// those of its own Gateway in the same namespace may always reach them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	IngressFrom []networkingv1.NetworkPolicyPeer `json:"ingressFrom"`

	// EgressTo are the peers that the engines' pods may reach. They may always reach the
	// pods of the service itself, and port 53 for DNS. By default they may reach any peer.
	// If this field is set, it has to include the sources of the models, the API server and the
	// collector of monitoring.tracing. The routing sidecar reads the pods of the service from the
	// API server.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	EgressTo []networkingv1.NetworkPolicyPeer `json:"egressTo,omitempty"`
}

// PolicyOf returns the policy of the services of a namespace, with its defaults. Each field
// is that of the first tenant that selects the namespace and sets the field, or else that
// of the Input.
func (in *Input) PolicyOf(namespace string) Policy {
	p := in.Policy
	for i := range slices.Backward(in.Tenants) {
		if t := &in.Tenants[i]; MatchesAny(t.Namespaces, namespace) {
			p.override(&t.Policy)
		}
	}
	p.setDefaults()
	return p
}

// override replaces the fields that the other policy sets, and in PodSecurity, Routes, Limits
// and ModelCaches each of their fields by itself. Fields that the other policy does not set keep
// their values.
func (p *Policy) override(by *Policy) {
	merged := merge(p, by)
	merged.PodSecurity = merge(p.PodSecurity, by.PodSecurity)
	merged.Routes = merge(p.Routes, by.Routes)
	merged.Limits = merge(p.Limits, by.Limits)
	merged.ModelCaches = merge(p.ModelCaches, by.ModelCaches)
	*p = *merged
}

// merge returns a copy of own with the fields that are set in by. Either may be nil.
func merge[T any](own, by *T) *T {
	if own == nil || by == nil {
		return cmp.Or(by, own)
	}
	merged := *own
	into, from := reflect.ValueOf(&merged).Elem(), reflect.ValueOf(by).Elem()
	for i := range from.NumField() {
		if f := from.Field(i); !f.IsZero() {
			into.Field(i).Set(f)
		}
	}
	return &merged
}

// MatchesAny tells whether a name matches any of the patterns, in which '*' stands for any
// text.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Matches(p, name) })
}

// Matches tells whether a name matches a pattern, in which '*' stands for any text.
func Matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
