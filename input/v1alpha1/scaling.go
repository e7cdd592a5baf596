package v1alpha1

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A ScalingProvider measures the targets of roles.
// +kubebuilder:validation:Enum=KEDA;HPA
type ScalingProvider string

// The values of ScalingProvider.
const (
	// ScalingProviderKEDA makes ScaledObjects, whose metrics KEDA reads.
	ScalingProviderKEDA ScalingProvider = "KEDA"
	// ScalingProviderHPA makes HorizontalPodAutoscalers, whose metrics an adapter has to serve.
	ScalingProviderHPA ScalingProvider = "HPA"
)

// A ScalingSource has the metrics of the targets of roles.
// +kubebuilder:validation:Enum=Prometheus;EndpointPicker
type ScalingSource string

// The values of ScalingSource.
const (
	// ScalingSourcePrometheus has the metrics of all engines.
	ScalingSourcePrometheus ScalingSource = "Prometheus"
	// ScalingSourceEndpointPicker is the endpoint picker of each service.
	ScalingSourceEndpointPicker ScalingSource = "EndpointPicker"
)

// ScalingSettings say what measures and scales roles.
type ScalingSettings struct {
	// Provider of scaling.target of roles. KEDA makes a ScaledObject that reads metrics of the source. HPA
	// makes a HorizontalPodAutoscaler with an external metric, which an adapter such as
	// prometheus-adapter has to serve: see docs/scaling.md. Defaults to KEDA.
	// +optional
	Provider ScalingProvider `json:"provider,omitempty"`

	// Source of the metrics that KEDA reads for scaling.target of roles. EndpointPicker needs no
	// Prometheus: KEDA reads the metrics of each service's endpoint picker. These are means of all
	// pods behind it. So they scale only a role that gets all requests of a service, in the cluster of
	// the InferenceService, to 1 replica or more. Defaults to Prometheus.
	// +optional
	Source ScalingSource `json:"source,omitempty"`

	// Prometheus is what KEDA queries for scaling.target of roles.
	// +optional
	Prometheus PrometheusSettings `json:"prometheus,omitempty"`

	// PollingSeconds is how often KEDA looks whether a trigger is active, for roles with minReplicas 0.
	// How many replicas run above 0, the HorizontalPodAutoscaler decides at its own pace. By default it
	// is that of KEDA, 30.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	PollingSeconds *int32 `json:"pollingSeconds,omitempty"`

	// CooldownSeconds is how long no trigger may be active before KEDA scales a role with minReplicas 0
	// to 0. By default it is that of KEDA, 300.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`
}

// PrometheusSettings say where Prometheus is.
type PrometheusSettings struct {
	// ServerAddress is the URL of a server with the HTTP API of Prometheus, without /api/v1, such as
	// http://prometheus.monitoring:9090. Everybody who may read ScaledObjects sees it, so it has no
	// credentials. It has to have the metrics of all clusters in which services run.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9._~/-]*)?$`
	ServerAddress string `json:"serverAddress,omitempty"`
}

// Limits of ScalingSettings. The markers of the types repeat them for the schema.
const (
	maxPolling  = 3600
	maxCooldown = 86400
)

// serverAddress is the pattern of the schema.
var serverAddress = regexp.MustCompile(`^https?://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9._~/-]*)?$`)

// harmlessAddress matches what has no place for a password: a scheme if there is one, a host, and a port that is a number.
var harmlessAddress = regexp.MustCompile(`^([a-z][a-z0-9+.-]*://)?([A-Za-z0-9.-]+|\[[A-Fa-f0-9:.]+\])(:[0-9]{1,5})?/?$`)

func validateScaling(at *field.Path, s *ScalingSettings) field.ErrorList {
	errs := check.OneOf(at.Child("provider"), s.Provider, ScalingProviderKEDA, ScalingProviderHPA)
	errs = append(errs, check.OneOf(at.Child("source"), s.Source, ScalingSourcePrometheus, ScalingSourceEndpointPicker)...)
	if s.Provider == ScalingProviderHPA && s.Source == ScalingSourceEndpointPicker {
		errs = append(errs, field.Forbidden(at.Child("source"), "must be left out with the provider HPA, whose adapter reads the metrics"))
	}
	if a, to := s.Prometheus.ServerAddress, at.Child("prometheus", "serverAddress"); a != "" {
		errs = append(errs, check.Length(to, a, maxEndpoint)...)
		if !serverAddress.MatchString(a) {
			shown := "(hidden)" // Tenants read the error, and the address may have a password.
			if harmlessAddress.MatchString(a) {
				shown = text.Value(a)
			}
			errs = append(errs, field.Invalid(to, shown, "must be http:// or https://, a host, a port and a path if there is one, such as http://prometheus.monitoring:9090"))
		}
	}
	if n := s.PollingSeconds; n != nil {
		errs = append(errs, check.Between(at.Child("pollingSeconds"), *n, 1, maxPolling)...)
	}
	if n := s.CooldownSeconds; n != nil {
		errs = append(errs, check.Between(at.Child("cooldownSeconds"), *n, 0, maxCooldown)...)
	}
	return errs
}
