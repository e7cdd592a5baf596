package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// writeMetrics writes what endpoint pickers and dashboards read, by the engine's own names.
func (s *server) writeMetrics(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	usage := float64(s.running) / float64(s.maxRunning)
	if s.engine == sglang {
		labels := fmt.Sprintf("model_name=%q", s.models[0])
		metric(w, "sglang:num_running_reqs", "gauge", labels, s.running)
		metric(w, "sglang:num_queue_reqs", "gauge", labels, s.waiting)
		metric(w, "sglang:token_usage", "gauge", labels, usage)
		metric(w, "sglang:num_requests_total", "counter", labels, s.served)
		metric(w, "sglang:generation_tokens_total", "counter", labels, s.tokens)
		return
	}
	labels := fmt.Sprintf("engine=\"0\",model_name=%q", s.models[0])
	metric(w, "vllm:num_requests_running", "gauge", labels, s.running)
	metric(w, "vllm:num_requests_waiting", "gauge", labels, s.waiting)
	metric(w, "vllm:kv_cache_usage_perc", "gauge", labels, usage)
	metric(w, "vllm:gpu_cache_usage_perc", "gauge", labels, usage)
	metric(w, "vllm:request_success_total", "counter", labels+`,finished_reason="length"`, s.served)
	metric(w, "vllm:generation_tokens_total", "counter", labels, s.tokens)
	metric(w, "vllm:cache_config_info", "gauge", `block_size="16",num_gpu_blocks="1000"`, 1)
	var running []string
	for _, name := range slices.Sorted(maps.Keys(s.using)) {
		if name != "" && s.using[name] > 0 {
			running = append(running, name)
		}
	}
	metric(w, "vllm:lora_requests_info", "gauge",
		fmt.Sprintf("max_lora=\"1\",running_lora_adapters=%q,waiting_lora_adapters=\"\"", strings.Join(running, ",")), time.Now().Unix())
}

func metric[N int | int64 | float64](w http.ResponseWriter, name, kind, labels string, value N) {
	_, _ = fmt.Fprintf(w, "# TYPE %s %s\n%s{%s} %v\n", name, kind, name, labels, value)
}
