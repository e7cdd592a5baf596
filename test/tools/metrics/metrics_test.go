package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPython(t *testing.T) {
	const text = `
gauge = self._gauge_cls(
    name="vllm:num_requests_running",
    documentation="Number of requests, see vllm:num_requests_waiting.",
)
counter = self._counter_cls(name="vllm:prompt_tokens", labelnames=labelnames)
total = Counter("sglang:prompt_tokens_total", "x")
h = prometheus_client.Histogram(
    name="vllm:time_to_first_token_seconds")
op("vllm:unified_attention")
`
	want := map[string]string{"vllm:num_requests_running": "gauge", "vllm:prompt_tokens_total": "counter", "sglang:prompt_tokens_total": "counter", "vllm:time_to_first_token_seconds": "histogram"}
	if diff := cmp.Diff(want, python([]string{text})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestGolang(t *testing.T) {
	files := []string{`
const Subsystem = "llm_d_epp"
`, `
const (
	pool = "inference_pool"
)
var a = prometheus.NewCounterVec(
	prometheus.CounterOpts{
		Subsystem: metricsutil.Subsystem,
		Name:      "request_total",
	}, nil)
var b = prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: pool, Name: "ready_pods"}, nil)
var c = prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: unknown, Name: "x"}, nil)
`}
	want := map[string]string{"llm_d_epp_request_total": "counter", "inference_pool_ready_pods": "gauge"}
	if diff := cmp.Diff(want, golang(files)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
