package monitor

import "github.com/fusioninfer/function-inferenceservice/internal/kube"

// The fields of monitoring.coreos.com/v1 (prometheus-operator v0.88.0) that are used here. They are declared
// here, because the Go module of its types depends on controller-runtime.

type podMonitor struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   kube.Metadata `json:"metadata"`
	Spec       spec          `json:"spec"`
}

type spec struct {
	Selector            selector   `json:"selector"`
	PodMetricsEndpoints []endpoint `json:"podMetricsEndpoints"`
	SampleLimit         int64      `json:"sampleLimit"`
	BodySizeLimit       string     `json:"bodySizeLimit"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// An endpoint without a path has the path /metrics.
type endpoint struct {
	Port            string       `json:"port,omitempty"`
	Interval        string       `json:"interval,omitempty"`
	Scheme          string       `json:"scheme,omitempty"`
	TLSConfig       *tlsConfig   `json:"tlsConfig,omitempty"`
	FollowRedirects bool         `json:"followRedirects"`
	Relabelings     []relabeling `json:"relabelings"`
	// MetricRelabelings change the series that a pod has.
	MetricRelabelings []relabeling `json:"metricRelabelings,omitempty"`
}

type tlsConfig struct {
	InsecureSkipVerify bool `json:"insecureSkipVerify"`
}

// A relabeling without an action replaces.
type relabeling struct {
	SourceLabels []string `json:"sourceLabels,omitempty"`
	Regex        string   `json:"regex,omitempty"`
	TargetLabel  string   `json:"targetLabel,omitempty"`
	Replacement  string   `json:"replacement,omitempty"`
	Action       string   `json:"action,omitempty"`
}
