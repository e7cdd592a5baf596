package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Metrics are what a process says of itself, by the name of the metric.
type Metrics map[string]*dto.MetricFamily

// Sum adds up a metric over all of its labels, or over those that the filter takes.
func (m Metrics) Sum(name string, filter ...func(labels map[string]string) bool) float64 {
	total := 0.0
	for _, s := range m[name].GetMetric() {
		labels := make(map[string]string, len(s.GetLabel()))
		for _, l := range s.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		taken := true
		for _, f := range filter {
			taken = taken && f(labels)
		}
		if taken {
			total += s.GetCounter().GetValue() + s.GetGauge().GetValue()
		}
	}
	return total
}

// CoreMetrics are those of Crossplane's core.
func (c *Cluster) CoreMetrics(ctx context.Context) (Metrics, error) {
	return scrape(ctx, "http://"+c.coreMetrics+"/metrics")
}

// functionMetricsPort is where a function serves its metrics.
const functionMetricsPort = "8080"

// FunctionMetrics are those of each process of Crossplane's functions.
func (c *Cluster) FunctionMetrics(ctx context.Context) ([]Metrics, error) {
	pods, err := c.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, crossplaneNamespace)
	if err != nil {
		return nil, err
	}
	var all []Metrics
	for _, p := range pods {
		if p.GetLabels()[functionPods] == "" {
			continue
		}
		ip, _, _ := unstructured.NestedString(p.Object, "status", "podIP")
		m, err := scrape(ctx, "http://"+net.JoinHostPort(ip, functionMetricsPort)+"/metrics")
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// ServerMetrics are those of the API server.
func (c *Kubernetes) ServerMetrics(ctx context.Context) (Metrics, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	b, err := d.RESTClient().Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("cannot read the API server's metrics: %w", err)
	}
	return parseMetrics(strings.NewReader(string(b)))
}

func scrape(ctx context.Context, url string) (Metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot read metrics: %w", err)
	}
	defer rsp.Body.Close() //nolint:errcheck // It was read.
	return parseMetrics(rsp.Body)
}

func parseMetrics(r io.Reader) (Metrics, error) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	m, err := p.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("cannot read metrics: %w", err)
	}
	return m, nil
}
