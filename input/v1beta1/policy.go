package v1beta1

import (
	"cmp"
	"path"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// A Policy says what the services of a tenant may use. A tenant is a namespace. What
// reaches other tenants is closed by default; what stays in the tenant's own namespace
// is open.
type Policy struct {
	// PodSecurity is the Pod Security Standard of the engines' pods. A service whose
	// templates break it is refused before anything is applied. Defaults to baseline.
	// +optional
	PodSecurity *PodSecurity `json:"podSecurity,omitempty"`

	// AllowedProviderConfigs are the provider-kubernetes configurations that
	// spec.placement.clusters[].providerConfigRef may name. None by default. A
	// configuration that an InferenceCluster uses is always refused.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedProviderConfigs []AllowedProviderConfig `json:"allowedProviderConfigs,omitempty"`

	// Routes says which gateways, host names and backends the routes of a service may
	// have.
	// +optional
	Routes *Routes `json:"routes,omitempty"`

	// AllowedQueues are the Volcano queues that a service may name, as names or
	// patterns with '*'. The platform's own scheduling.queue is always allowed. None by
	// default.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedQueues []string `json:"allowedQueues,omitempty"`

	// AllowedPriorityClassNames are the PriorityClasses that a service may name, in its
	// gang and in its templates, as names or patterns with '*'. None by default: pods
	// of a high priority evict those of other tenants.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedPriorityClassNames []string `json:"allowedPriorityClassNames,omitempty"`

	// Limits of one service, in each cluster that it runs in. None by default.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
}

// A Tenant has a policy of its own for some namespaces.
type Tenant struct {
	// Namespaces of the services, as names or patterns with '*'.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Namespaces []string `json:"namespaces"`

	// Each field that is set takes the place of the input's own; so do the fields of
	// podSecurity, routes and limits, each by itself.
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

// PodSecurity is a Pod Security Standard, as the labels
// pod-security.kubernetes.io/enforce and enforce-version have it.
type PodSecurity struct {
	// Enforce is the standard: privileged, baseline or restricted. Defaults to
	// baseline.
	// +optional
	// +kubebuilder:default=baseline
	Enforce PodSecurityLevel `json:"enforce,omitempty"`

	// EnforceVersion is the Kubernetes version of the standard, such as v1.34, or
	// latest: the newest that the function knows. Defaults to latest.
	// +optional
	// +kubebuilder:default=latest
	// +kubebuilder:validation:Pattern=`^(latest|v1\.(0|[1-9][0-9]{0,3}))$`
	EnforceVersion string `json:"enforceVersion,omitempty"`

	// AllowedCapabilities may be added by containers although the standard does not
	// allow them, such as IPC_LOCK for RDMA.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	AllowedCapabilities []corev1.Capability `json:"allowedCapabilities,omitempty"`
}

// An AllowedProviderConfig is a provider-kubernetes configuration that services may use.
type AllowedProviderConfig struct {
	// Kind of the configuration. Defaults to ClusterProviderConfig.
	// +optional
	// +kubebuilder:default=ClusterProviderConfig
	// +kubebuilder:validation:Enum=ClusterProviderConfig;ProviderConfig
	Kind string `json:"kind,omitempty"`

	// Name of the configuration.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// Namespaces in that cluster that a service may run in besides the one of its
	// tenant's name, as names or patterns with '*'. None by default.
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

// A RouteFilter is a filter of an HTTPRoute that sends requests elsewhere too.
// +kubebuilder:validation:Enum=RequestMirror;ExternalAuth;ExtensionRef
type RouteFilter string

// The filters that send requests elsewhere.
const (
	FilterRequestMirror RouteFilter = "RequestMirror"
	FilterExternalAuth  RouteFilter = "ExternalAuth"
	FilterExtensionRef  RouteFilter = "ExtensionRef"
)

// Routes says which gateways, host names and backends the routes of a service may have.
// A gateway is shared unless it is in the service's own namespace.
type Routes struct {
	// AllowedParentRefs are shared gateways that a route may name. Those of
	// gateway.parentRefs are always allowed, and so are gateways in the service's own
	// namespace. None by default.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AllowedParentRefs []AllowedParentRef `json:"allowedParentRefs,omitempty"`

	// OwnGateways says whether a router may have a Gateway of its own. Defaults to
	// Allow.
	// +optional
	// +kubebuilder:default=Allow
	OwnGateways Access `json:"ownGateways,omitempty"`

	// AllowedGatewayClassNames are the classes that such a Gateway may have, as names or
	// patterns with '*'. Any by default.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	AllowedGatewayClassNames []string `json:"allowedGatewayClassNames,omitempty"`

	// DefaultHostname of routes that name none and have a shared gateway, such as
	// {service}.{namespace}.llm.example.com. {service} and {namespace} are each a whole
	// label of the name, so that no two services have the same.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DefaultHostname string `json:"defaultHostname,omitempty"`

	// AllowedHostnames are patterns of the host names of routes and of the listeners of
	// Gateways, besides the default. {service} and {namespace} stand for the service's
	// own, and '*' as the first label for one or more labels. "*" allows any, and a route
	// without host names, which takes every request that no other route takes. Without
	// patterns and without a default, a shared gateway is refused, and names at gateways
	// of the service's own namespace are free.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	AllowedHostnames []string `json:"allowedHostnames,omitempty"`

	// AllowedFilters are filters that send requests elsewhere, and are refused by
	// default.
	// +optional
	// +kubebuilder:validation:MaxItems=3
	AllowedFilters []RouteFilter `json:"allowedFilters,omitempty"`

	// AllowedBackendNamespaces are namespaces of backends besides the service's own, as
	// names or patterns with '*'. The Gateway API asks for a ReferenceGrant there as
	// well. None by default.
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

	// Name of the gateway, as a name or a pattern with '*'. Defaults to any.
	// +optional
	// +kubebuilder:default="*"
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// SectionName is the listener that a route has to name. Any by default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SectionName string `json:"sectionName,omitempty"`
}

// Limits of one service.
type Limits struct {
	// Replicas of all roles in all groups, and of the router.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Nodes of all these replicas: each pod counts as one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes *int32 `json:"nodes,omitempty"`

	// Devices that all these pods request, such as GPUs: resources whose names have a '/',
	// of all kinds together. A service with this limit cannot claim devices (DRA),
	// because what a claim has cannot be counted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Devices *int32 `json:"devices,omitempty"`
}

// A NetworkPolicy lets the engines' pods be reached by some peers only, and reach some
// only.
type NetworkPolicy struct {
	// IngressFrom are the peers that may reach every port of the engines' pods: the
	// gateways, and what scrapes metrics. The endpoint picker, and the pods of the
	// service itself, are always among them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	IngressFrom []networkingv1.NetworkPolicyPeer `json:"ingressFrom"`

	// EgressTo are the peers that the engines' pods may reach, besides the pods of the
	// service itself, and port 53 for names. Any by default. Where it is set, it has to
	// have the API server, which the routing sidecar asks for the pods of the service, and
	// where models are loaded from.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	EgressTo []networkingv1.NetworkPolicyPeer `json:"egressTo,omitempty"`
}

// PolicyOf returns the policy for the services of a namespace, with its defaults: of each
// field the one of the first tenant that selects the namespace and sets it, else the
// input's own.
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

// override takes over the fields that are set, also those of PodSecurity, Routes and Limits
// one by one: what a tenant's policy does not mention stays as it was.
func (p *Policy) override(by *Policy) {
	merged := merge(p, by)
	merged.PodSecurity = merge(p.PodSecurity, by.PodSecurity)
	merged.Routes = merge(p.Routes, by.Routes)
	merged.Limits = merge(p.Limits, by.Limits)
	*p = *merged
}

// merge returns a struct with the fields of another one that are set, and its own where they
// are not. Either may be nil.
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

// MatchesAny tells whether a name is one of some, which may have a '*' for any text.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Matches(p, name) })
}

// Matches tells whether a name is another, which may have a '*' for any text.
func Matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
