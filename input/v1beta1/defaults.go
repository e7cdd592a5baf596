package v1beta1

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// Defaults of the input.
const (
	DefaultImageGAIE           = "registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0"
	DefaultImageLLMD           = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0"
	DefaultSidecarImage        = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0"
	DefaultKVConnector         = "nixlv2"
	DefaultRayPort             = 6379
	DefaultGangMode            = "TaskMember"
	DefaultPodObservationLimit = 64
	DefaultFleetNamespace      = "crossplane-system"
	DefaultPodSecurityVersion  = "latest"
)

// Default fills in what is not set. An input is not an object of the API server,
// so nobody else does.
func Default(in *Input) {
	epp := &in.EndpointPicker
	epp.Images.GAIE = cmp.Or(epp.Images.GAIE, DefaultImageGAIE)
	epp.Images.LLMD = cmp.Or(epp.Images.LLMD, DefaultImageLLMD)
	epp.ImagePullPolicy = cmp.Or(epp.ImagePullPolicy, corev1.PullIfNotPresent)
	in.Sidecar.Image = cmp.Or(in.Sidecar.Image, DefaultSidecarImage)
	in.Sidecar.KVConnector = cmp.Or(in.Sidecar.KVConnector, DefaultKVConnector)
	in.Sidecar.SSRFProtection = cmp.Or(in.Sidecar.SSRFProtection, Enabled)
	in.Ray.Port = orDefault(in.Ray.Port, DefaultRayPort)
	in.Scheduling.GangMode = cmp.Or(in.Scheduling.GangMode, DefaultGangMode)
	in.Fleet.Namespace = cmp.Or(in.Fleet.Namespace, DefaultFleetNamespace)
	in.PodObservationLimit = orDefault(in.PodObservationLimit, DefaultPodObservationLimit)
}

// setDefaults fills in what a policy does not set. It changes no policy of the input,
// which others share.
func (p *Policy) setDefaults() {
	security := PodSecurity{}
	if p.PodSecurity != nil {
		security = *p.PodSecurity
	}
	security.Enforce = cmp.Or(security.Enforce, PodSecurityBaseline)
	security.EnforceVersion = cmp.Or(security.EnforceVersion, DefaultPodSecurityVersion)
	routes := Routes{}
	if p.Routes != nil {
		routes = *p.Routes
	}
	routes.OwnGateways = cmp.Or(routes.OwnGateways, Allow)
	limits := Limits{}
	if p.Limits != nil {
		limits = *p.Limits
	}
	p.PodSecurity, p.Routes, p.Limits = &security, &routes, &limits
}

func orDefault(v *int32, otherwise int32) *int32 {
	if v != nil {
		return v
	}
	return &otherwise
}
