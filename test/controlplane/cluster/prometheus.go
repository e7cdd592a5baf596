package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// prometheusProgram is a name of test/tools/build.sh.
const prometheusProgram = "prometheus"

var podMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}

// A prometheus scrapes the pods that PodMonitors select.
type prometheus struct {
	url, config, rules, data string
	process                  *process
}

// PrometheusURL is where Prometheus answers queries.
func (c *Cluster) PrometheusURL() string { return c.prometheus.url }

// installPrometheus starts Prometheus, and does what the Prometheus operator does: it keeps its configuration
// as the PodMonitors of all namespaces say. Prometheus also scrapes the function and kube-state-metrics, and has the
// rules of package/monitoring.
func (c *Cluster) installPrometheus(ctx context.Context) error {
	p, err := ports(1)
	if err != nil {
		return err
	}
	c.prometheus = &prometheus{
		url:    "http://" + address(p[0]),
		config: filepath.Join(c.dir, "prometheus.yaml"),
		rules:  filepath.Join(c.dir, "prometheus-rules.yaml"),
		data:   filepath.Join(c.dir, "prometheus"),
	}
	if err := c.writeRules(); err != nil {
		return err
	}
	if _, err := c.configurePrometheus(ctx); err != nil {
		return err
	}
	if err := c.StartPrometheus(ctx); err != nil {
		return err
	}
	c.begin(c.followPodMonitors)
	return nil
}

// StartPrometheus starts Prometheus, and waits until it answers.
func (c *Cluster) StartPrometheus(ctx context.Context) error {
	p := c.prometheus
	u, err := url.Parse(p.url)
	if err != nil {
		return err
	}
	if p.process, err = c.run(program{name: prometheusProgram, args: []string{
		"--config.file=" + p.config, "--storage.tsdb.path=" + p.data, "--web.listen-address=" + u.Host, "--web.enable-lifecycle",
	}}); err != nil {
		return err
	}
	return p.process.waitFor(ctx, "ready", func(ctx context.Context) error { return healthy(ctx, p.url+"/-/ready") })
}

// StopPrometheus ends Prometheus. It keeps what it has stored.
func (c *Cluster) StopPrometheus() { c.end(c.prometheus.process) }

// followPodMonitors has Prometheus read each new configuration. It goes on while Prometheus is stopped, which
// reads the newest one when it starts.
func (c *Cluster) followPodMonitors(ctx context.Context) error {
	for pending := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		changed, err := c.configurePrometheus(ctx)
		if err != nil {
			return err
		}
		if pending = pending || changed; pending && succeeds(ctx, http.MethodPost, c.prometheus.url+"/-/reload") == nil {
			pending = false
		}
	}
}

// configurePrometheus writes the configuration, and tells whether it is another one.
func (c *Cluster) configurePrometheus(ctx context.Context) (bool, error) {
	config := prometheusConfig{RuleFiles: []string{c.prometheus.rules}, ScrapeConfigs: []scrapeConfig{
		scrapeOfFunctions(c.Kubeconfig),
		{JobName: stateMetricsProgram, ScrapeInterval: ScrapeInterval.String(), StaticConfigs: []staticConfig{{Targets: []string{c.stateMetrics}}}},
	}}
	for _, k := range c.scraped() {
		monitors, err := k.List(ctx, podMonitorKind, "")
		if err != nil {
			return false, err
		}
		all, err := scrapes(monitors, k.name, k.Kubeconfig)
		if err != nil {
			return false, err
		}
		config.ScrapeConfigs = append(config.ScrapeConfigs, all...)
	}
	b, err := yaml.Marshal(config)
	if err != nil {
		return false, err
	}
	if before, err := os.ReadFile(c.prometheus.config); err == nil && bytes.Equal(before, b) {
		return false, nil
	}
	return true, os.WriteFile(c.prometheus.config, b, 0o600)
}

// scraped are the clusters whose PodMonitors Prometheus follows: this one, and the remote ones.
func (c *Cluster) scraped() []*Kubernetes {
	all := []*Kubernetes{c.Kubernetes}
	for _, r := range c.remotes {
		all = append(all, r.Kubernetes)
	}
	return all
}

// ScrapeInterval is how often Prometheus scrapes what belongs to no service. PodMonitors have intervals of their own.
const ScrapeInterval = 2 * time.Second

// scrapeOfFunctions is how Prometheus scrapes the pods of Crossplane's functions, whose manifests name no port for
// metrics.
func scrapeOfFunctions(kubeconfig string) scrapeConfig {
	const pod = "__meta_kubernetes_pod_"
	address := "$1:" + functionMetricsPort
	return scrapeConfig{
		JobName: "function", ScrapeInterval: ScrapeInterval.String(),
		KubernetesSDConfigs: []kubernetesSDConfig{{Role: "pod", KubeconfigFile: kubeconfig, Namespaces: sdNamespaces{Names: []string{crossplaneNamespace}}}},
		RelabelConfigs: []relabelConfig{
			{Action: "keep", SourceLabels: []string{pod + "labelpresent_" + notInLabel.ReplaceAllString(functionPods, "_")}, Regex: "true"},
			{SourceLabels: []string{pod + "ip"}, TargetLabel: "__address__", Replacement: &address},
			{SourceLabels: []string{pod + "name"}, TargetLabel: "pod"},
		},
	}
}

// writeRules writes the rules of package/monitoring as Prometheus reads them, which is what the Prometheus operator
// does with a PrometheusRule.
func (c *Cluster) writeRules() error {
	files, err := monitoringFiles()
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(files, "rules.yaml")) //nolint:gosec // A file of the repository.
	if err != nil {
		return err
	}
	var rule struct {
		Spec any `json:"spec"`
	}
	if err := yaml.Unmarshal(b, &rule); err != nil {
		return err
	}
	if b, err = yaml.Marshal(rule.Spec); err != nil {
		return err
	}
	return os.WriteFile(c.prometheus.rules, b, 0o600)
}

// EvaluatedRules is how many rules Prometheus has evaluated. One that it cannot evaluate, or has not yet, is an error.
func (c *Cluster) EvaluatedRules(ctx context.Context) (int, error) {
	api, err := c.prometheus.api()
	if err != nil {
		return 0, err
	}
	all, err := api.Rules(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			if alert, ok := r.(v1.AlertingRule); !ok || alert.Health != v1.RuleHealthGood {
				return n, fmt.Errorf("the health of an alert is not good: %+v", r)
			}
			n++
		}
	}
	return n, nil
}

// Query asks Prometheus for the only value of a query, as KEDA does.
func (c *Cluster) Query(ctx context.Context, query string) (float64, error) {
	api, err := c.prometheus.api()
	if err != nil {
		return 0, err
	}
	value, _, err := api.Query(ctx, query, time.Now())
	if err != nil {
		return 0, err
	}
	results, _ := value.(model.Vector)
	if len(results) != 1 {
		return 0, fmt.Errorf("%d results, want one: %v", len(results), value)
	}
	return float64(results[0].Value), nil
}

func (p *prometheus) api() (v1.API, error) {
	client, err := promapi.NewClient(promapi.Config{Address: p.url})
	if err != nil {
		return nil, err
	}
	return v1.NewAPI(client), nil
}
