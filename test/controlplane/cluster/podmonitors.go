package cluster

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The fields of PodMonitors (monitoring.coreos.com/v1) that are known here. A PodMonitor with another one is
// an error, because it would not do what it says.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              podMonitorSpec `json:"spec"`
}

type podMonitorSpec struct {
	Selector      podSelector          `json:"selector"`
	Endpoints     []podMetricsEndpoint `json:"podMetricsEndpoints"`
	SampleLimit   int64                `json:"sampleLimit"`
	BodySizeLimit string               `json:"bodySizeLimit"`
}

type podSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type podMetricsEndpoint struct {
	Port            string       `json:"port"`
	Interval        string       `json:"interval"`
	FollowRedirects *bool        `json:"followRedirects"`
	Relabelings     []relabeling `json:"relabelings"`

	MetricRelabelings []relabeling `json:"metricRelabelings"`
}

type relabeling struct {
	SourceLabels []string `json:"sourceLabels"`
	Regex        string   `json:"regex"`
	TargetLabel  string   `json:"targetLabel"`
	Replacement  *string  `json:"replacement"`
	Action       string   `json:"action"`
}

// The fields of Prometheus's configuration that are used here.
type prometheusConfig struct {
	RuleFiles     []string       `json:"rule_files,omitempty"`
	ScrapeConfigs []scrapeConfig `json:"scrape_configs"`
}

type scrapeConfig struct {
	JobName             string               `json:"job_name"`
	ScrapeInterval      string               `json:"scrape_interval,omitempty"`
	SampleLimit         int64                `json:"sample_limit,omitempty"`
	BodySizeLimit       string               `json:"body_size_limit,omitempty"`
	FollowRedirects     *bool                `json:"follow_redirects,omitempty"`
	KubernetesSDConfigs []kubernetesSDConfig `json:"kubernetes_sd_configs,omitempty"`
	StaticConfigs       []staticConfig       `json:"static_configs,omitempty"`
	RelabelConfigs      []relabelConfig      `json:"relabel_configs,omitempty"`

	MetricRelabelConfigs []relabelConfig `json:"metric_relabel_configs,omitempty"`
}

type staticConfig struct {
	Targets []string `json:"targets"`
}

type kubernetesSDConfig struct {
	Role           string       `json:"role"`
	KubeconfigFile string       `json:"kubeconfig_file"`
	Namespaces     sdNamespaces `json:"namespaces"`
}

type sdNamespaces struct {
	Names []string `json:"names"`
}

type relabelConfig struct {
	SourceLabels []string `json:"source_labels,omitempty"`
	Regex        string   `json:"regex,omitempty"`
	TargetLabel  string   `json:"target_label,omitempty"`
	Replacement  *string  `json:"replacement,omitempty"`
	Action       string   `json:"action,omitempty"`
}

// scrapes returns how Prometheus scrapes what PodMonitors of a cluster select, as the Prometheus operator writes it
// (pkg/prometheus/promcfg.go of v0.88.0).
func scrapes(monitors []unstructured.Unstructured, cluster, kubeconfig string) ([]scrapeConfig, error) {
	var all []scrapeConfig
	for i := range monitors {
		m := podMonitor{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(monitors[i].Object, &m, true); err != nil {
			return nil, fmt.Errorf("cannot read PodMonitor %s: %w", monitors[i].GetName(), err)
		}
		for j, e := range m.Spec.Endpoints {
			all = append(all, scrapeConfig{
				JobName:             fmt.Sprintf("%s/podMonitor/%s/%s/%d", cluster, m.Namespace, m.Name, j),
				ScrapeInterval:      e.Interval,
				SampleLimit:         m.Spec.SampleLimit,
				BodySizeLimit:       m.Spec.BodySizeLimit,
				FollowRedirects:     e.FollowRedirects,
				KubernetesSDConfigs: []kubernetesSDConfig{{Role: "pod", KubeconfigFile: kubeconfig, Namespaces: sdNamespaces{Names: []string{m.Namespace}}}},
				RelabelConfigs:      relabelConfigs(&m, e),

				MetricRelabelConfigs: asConfigs(e.MetricRelabelings),
			})
		}
	}
	return all, nil
}

// relabelConfigs of an endpoint: the pods and the port that it selects, the labels that each target has, and
// what the PodMonitor says itself.
func relabelConfigs(m *podMonitor, e podMetricsEndpoint) []relabelConfig {
	const pod = "__meta_kubernetes_pod_"
	all := []relabelConfig{{Action: "drop", SourceLabels: []string{pod + "phase"}, Regex: "(Failed|Succeeded)"}}
	for _, name := range slices.Sorted(maps.Keys(m.Spec.Selector.MatchLabels)) {
		label := notInLabel.ReplaceAllString(name, "_")
		all = append(all, relabelConfig{
			Action: "keep", SourceLabels: []string{pod + "label_" + label, pod + "labelpresent_" + label},
			Regex: "(" + regexp.QuoteMeta(m.Spec.Selector.MatchLabels[name]) + ");true",
		})
	}
	if e.Port != "" {
		all = append(all, relabelConfig{Action: "keep", SourceLabels: []string{pod + "container_port_name"}, Regex: regexp.QuoteMeta(e.Port)})
	}
	job := m.Namespace + "/" + m.Name
	all = append(all,
		relabelConfig{SourceLabels: []string{"__meta_kubernetes_namespace"}, TargetLabel: "namespace"},
		relabelConfig{SourceLabels: []string{pod + "container_name"}, TargetLabel: "container"},
		relabelConfig{SourceLabels: []string{pod + "name"}, TargetLabel: "pod"},
		relabelConfig{TargetLabel: "job", Replacement: &job},
	)
	return append(all, asConfigs(e.Relabelings)...)
}

func asConfigs(relabelings []relabeling) []relabelConfig {
	all := make([]relabelConfig, len(relabelings))
	for i, r := range relabelings {
		all[i] = relabelConfig{SourceLabels: r.SourceLabels, Regex: r.Regex, TargetLabel: r.TargetLabel, Replacement: r.Replacement, Action: strings.ToLower(r.Action)}
	}
	return all
}

// notInLabel is what no name of a label of Prometheus has.
var notInLabel = regexp.MustCompile(`[^a-zA-Z0-9_]`)
