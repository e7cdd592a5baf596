package v1alpha1

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// The defaults of the inputs.
const (
	DefaultImageGAIE           = "registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0"
	DefaultImageLLMD           = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0"
	DefaultSidecarImage        = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0"
	DefaultKVConnector         = "nixlv2"
	DefaultRayPort             = 6379
	DefaultGangMode            = "AllOrNothing"
	DefaultPodObservationLimit = 64
	DefaultNamespace           = "crossplane-system"
	DefaultPodSecurityVersion  = "latest"
)

// Default sets the defaults of an Input. No API server sets them, because an Input is part
// of a Composition.
func Default(in *Input) {
	epp := &in.EndpointPicker
	epp.Images.GAIE = cmp.Or(epp.Images.GAIE, DefaultImageGAIE)
	epp.Images.LLMD = cmp.Or(epp.Images.LLMD, DefaultImageLLMD)
	epp.RevisionScreening = cmp.Or(epp.RevisionScreening, RevisionScreeningAuto)
	epp.ImagePullPolicy = cmp.Or(epp.ImagePullPolicy, corev1.PullIfNotPresent)
	in.Sidecar.Image = cmp.Or(in.Sidecar.Image, DefaultSidecarImage)
	in.Sidecar.SSRFProtection = cmp.Or(in.Sidecar.SSRFProtection, Enabled)
	in.ModelLoader.setDefaults()
	in.Ray.Port = orDefault(in.Ray.Port, DefaultRayPort)
	in.Fleet.Namespace = cmp.Or(in.Fleet.Namespace, DefaultNamespace)
	gang := &in.Defaults.SchedulingStrategy.Gang
	gang.Mode = cmp.Or(gang.Mode, DefaultGangMode)
	if t := in.Monitoring.Tracing; t != nil {
		t.SamplingPercent = orDefault(t.SamplingPercent, defaultSamplingPercent)
	}
	in.Scaling.Provider = cmp.Or(in.Scaling.Provider, ScalingProviderKEDA)
	in.Scaling.Source = cmp.Or(in.Scaling.Source, ScalingSourcePrometheus)
	in.MissingKinds = cmp.Or(in.MissingKinds, MissingKindsFail)
	in.PodObservationLimit = orDefault(in.PodObservationLimit, DefaultPodObservationLimit)
}

// setDefaults sets the defaults of a policy. It copies what it changes, because the
// policies of other namespaces may share it.
func (p *Policy) setDefaults() {
	routes := Routes{}
	if p.Routes != nil {
		routes = *p.Routes
	}
	routes.OwnGateways = cmp.Or(routes.OwnGateways, Allow)
	routes.ExperimentalFields = cmp.Or(routes.ExperimentalFields, Deny)
	limits := Limits{}
	if p.Limits != nil {
		limits = *p.Limits
	}
	caches := ModelCaches{}
	if p.ModelCaches != nil {
		caches = *p.ModelCaches
	}
	p.PodSecurity, p.Routes, p.Limits, p.ModelCaches = p.PodSecurity.defaulted(), &routes, &limits, &caches
}

// defaulted returns a copy with the defaults.
func (s *PodSecurity) defaulted() *PodSecurity {
	all := PodSecurity{}
	if s != nil {
		all = *s
	}
	all.Enforce = cmp.Or(all.Enforce, PodSecurityBaseline)
	all.EnforceVersion = cmp.Or(all.EnforceVersion, DefaultPodSecurityVersion)
	return &all
}

func orDefault(v *int32, otherwise int32) *int32 {
	if v != nil {
		return v
	}
	return &otherwise
}
