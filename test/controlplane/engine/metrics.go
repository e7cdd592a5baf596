package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// meters are the metrics that endpoint pickers, autoscalers and dashboards read, by the engine's own names. Both engines
// have the same names for histograms of seconds.
type meters struct {
	// answered counts requests, and prompt, cached and generated count tokens. SGLang counts no cached ones.
	answered, prompt, queried, cached, generated prometheus.Counter
	firstToken, token, whole                     prometheus.Observer

	handler http.Handler
}

// secondsBuckets are for what takes from a millisecond to a minute.
var secondsBuckets = prometheus.ExponentialBuckets(0.001, 2, 17)

// newMeters makes the metrics of a server.
func newMeters(s *server) *meters {
	registry := prometheus.NewRegistry()
	labels := prometheus.Labels{"model_name": s.models[0]}
	if s.engine == vllm {
		labels["engine"] = "0"
	}
	prefixed := prometheus.WrapRegistererWithPrefix(s.engine.prefix(), registry)
	register := prometheus.WrapRegistererWith(labels, prefixed).MustRegister
	gauge := func(name string, value func() float64) {
		register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name}, func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return value()
		}))
	}
	counter := func(name string, constant prometheus.Labels) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, ConstLabels: constant})
		register(c)
		return c
	}
	histogram := func(name string) prometheus.Observer {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Buckets: secondsBuckets})
		register(h)
		return h
	}
	m := &meters{
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		prompt:  counter("prompt_tokens_total", nil), generated: counter("generation_tokens_total", nil),
		firstToken: histogram("time_to_first_token_seconds"), token: histogram("inter_token_latency_seconds"), whole: histogram("e2e_request_latency_seconds"),
	}
	running, waiting := func() float64 { return float64(s.running) }, func() float64 { return float64(s.waiting) }
	usage := func() float64 { return float64(s.running) / float64(s.maxRunning) }
	none := func() float64 { return 0 }
	if s.engine == sglang {
		gauge("num_running_reqs", running)
		gauge("num_queue_reqs", waiting)
		gauge("token_usage", usage)
		gauge("num_retracted_reqs", none)
		gauge("cache_hit_rate", none)
		m.answered = counter("num_requests_total", nil)
		return m
	}
	gauge("num_requests_running", running)
	gauge("num_requests_waiting", waiting)
	gauge("kv_cache_usage_perc", usage)
	gauge("gpu_cache_usage_perc", usage)
	m.answered = counter("request_success_total", prometheus.Labels{"finished_reason": "length"})
	counter("num_preemptions_total", nil)
	m.queried, m.cached = counter("prefix_cache_queries_total", nil), counter("prefix_cache_hits_total", nil)
	blocks := prometheus.Labels{"block_size": "16", "num_gpu_blocks": "1000"}
	prefixed.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "cache_config_info", ConstLabels: blocks}, func() float64 { return 1 }))
	prefixed.MustRegister(loraCollector{s})
	return m
}

// prefix of the names of an engine's metrics.
func (e engine) prefix() string {
	if e == sglang {
		return "sglang:"
	}
	return "vllm:"
}

// A loraCollector makes the metric whose labels name the adapters that answer requests now.
type loraCollector struct{ server *server }

var loraRequests = prometheus.NewDesc("lora_requests_info", "", []string{"max_lora", "running_lora_adapters", "waiting_lora_adapters"}, nil)

// Describe is that of prometheus.Collector.
func (loraCollector) Describe(all chan<- *prometheus.Desc) { all <- loraRequests }

// Collect is that of prometheus.Collector.
func (a loraCollector) Collect(all chan<- prometheus.Metric) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	var running []string
	for _, name := range slices.Sorted(maps.Keys(a.server.using)) {
		if name != "" && a.server.using[name] > 0 {
			running = append(running, name)
		}
	}
	all <- prometheus.MustNewConstMetric(loraRequests, prometheus.GaugeValue, float64(time.Now().Unix()), "1", strings.Join(running, ","), "")
}

// A stopwatch measures one request.
type stopwatch struct {
	meters      *meters
	begun, last time.Time
}

// start measures a request that came at a time and runs now. Half of its prompt is cached.
func (m *meters) start(came time.Time, promptTokens int) *stopwatch {
	m.prompt.Add(float64(promptTokens))
	if m.queried != nil {
		m.queried.Add(float64(promptTokens))
		m.cached.Add(float64(promptTokens) / 2)
	}
	return &stopwatch{meters: m, begun: came}
}

// next measures a token that has just been generated.
func (s *stopwatch) next() {
	now := time.Now()
	s.meters.generated.Inc()
	if s.last.IsZero() {
		s.meters.firstToken.Observe(now.Sub(s.begun).Seconds())
	} else {
		s.meters.token.Observe(now.Sub(s.last).Seconds())
	}
	s.last = now
}

// end measures an answer that is whole.
func (s *stopwatch) end() {
	s.meters.answered.Inc()
	s.meters.whole.Observe(time.Since(s.begun).Seconds())
}
