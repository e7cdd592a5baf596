package v1alpha1

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// MonitoringSettings say how services are observed.
type MonitoringSettings struct {
	// PodMonitors adds PodMonitors (monitoring.coreos.com/v1) for the leaders of each role and for
	// the endpoint pickers, in each cluster where they run. An empty object adds them with the
	// defaults. The cluster needs the CRD of the Prometheus operator. There are none by default.
	// +optional
	PodMonitors *PodMonitors `json:"podMonitors,omitempty"`

	// Tracing makes endpoint pickers, routing sidecars and engines send traces by OTLP. A change of
	// it changes pods: they get it by spec.rollout. There is none by default.
	// +optional
	Tracing *Tracing `json:"tracing,omitempty"`
}

// PodMonitors tell Prometheus what to scrape.
type PodMonitors struct {
	// Labels of the PodMonitors, by which a Prometheus selects them, such as release: prometheus.
	// They take precedence over labels of the Input.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Interval between two scrapes, such as 30s. By default Prometheus has its own. Dashboards, alerts and targets look at
	// rates over 5 minutes, so beyond 2 minutes they may have no result. Targets count an engine for three intervals after
	// it was read, and for at least a minute.
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,4}(ms|s|m)$`
	Interval string `json:"interval,omitempty"`
}

// Tracing says where traces go.
type Tracing struct {
	// Endpoint is the URL of a collector that takes OTLP over gRPC, such as
	// http://otel-collector.observability:4317. Every cluster of a service needs one at this
	// address. The default endpoint picker of plain strategies knows no TLS, so it has to be http.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^http://[A-Za-z0-9.\[\]:-]+:[0-9]{1,5}$`
	Endpoint string `json:"endpoint"`

	// SamplingPercent is how many of 100 requests are traced, unless their clients decide that
	// with a header traceparent. Defaults to 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SamplingPercent *int32 `json:"samplingPercent,omitempty"`
}

const (
	maxEndpoint            = 512
	defaultSamplingPercent = 10
)

// The patterns of the schema.
var (
	interval = regexp.MustCompile(`^[1-9][0-9]{0,4}(ms|s|m)$`)
	endpoint = regexp.MustCompile(`^http://[A-Za-z0-9.\[\]:-]+:[0-9]{1,5}$`)
)

func validateMonitoring(at *field.Path, m *MonitoringSettings) field.ErrorList {
	var errs field.ErrorList
	if p := m.PodMonitors; p != nil {
		errs = append(errs, check.Labels(at.Child("podMonitors", "labels"), p.Labels)...)
		if p.Interval != "" && !interval.MatchString(p.Interval) {
			errs = append(errs, field.Invalid(at.Child("podMonitors", "interval"), text.Value(p.Interval), "must be a number with ms, s or m, such as 30s"))
		}
	}
	if t := m.Tracing; t != nil {
		to := at.Child("tracing", "endpoint")
		errs = append(errs, check.Length(to, t.Endpoint, maxEndpoint)...)
		if !endpoint.MatchString(t.Endpoint) {
			shown := text.Value(t.Endpoint)
			if strings.Contains(t.Endpoint, "@") {
				shown = "(hidden)" // Tenants read the error, and it may have a password.
			}
			errs = append(errs, field.Invalid(to, shown, "must be http://, a host and a port, such as http://otel-collector.observability:4317"))
		}
		if n := t.SamplingPercent; n != nil {
			errs = append(errs, check.Between(at.Child("tracing", "samplingPercent"), *n, 0, 100)...)
		}
	}
	return errs
}
