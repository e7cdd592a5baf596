package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// prometheusProgram is a name of test/tools/build.sh.
const prometheusProgram = "prometheus"

var podMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}

// A prometheus scrapes the pods that PodMonitors select.
type prometheus struct {
	url, config, data string
	process           *process
}

// PrometheusURL is where Prometheus answers queries.
func (c *Cluster) PrometheusURL() string { return c.prometheus.url }

// installPrometheus starts Prometheus, and does what the Prometheus operator does: it keeps its configuration
// as the PodMonitors of all namespaces say.
func (c *Cluster) installPrometheus(ctx context.Context) error {
	p, err := ports(1)
	if err != nil {
		return err
	}
	c.prometheus = &prometheus{
		url:    "http://" + address(p[0]),
		config: filepath.Join(c.dir, "prometheus.yaml"),
		data:   filepath.Join(c.dir, "prometheus"),
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
	monitors, err := c.List(ctx, podMonitorKind, "")
	if err != nil {
		return false, err
	}
	config, err := scrapes(monitors, c.Kubeconfig)
	if err != nil {
		return false, err
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

// Query asks Prometheus for the only value of a query, as KEDA does.
func (c *Cluster) Query(ctx context.Context, query string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.prometheus.url+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return 0, err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer rsp.Body.Close() //nolint:errcheck // It was read.
	// A value is a time and a text.
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []struct{ Value [2]any } `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(rsp.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if n := len(answer.Data.Result); n != 1 {
		return 0, fmt.Errorf("%d results, want one: %s", n, answer.Error)
	}
	text, _ := answer.Data.Result[0].Value[1].(string)
	return strconv.ParseFloat(text, 64)
}
