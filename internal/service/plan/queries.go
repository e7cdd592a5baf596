package plan

import (
	"fmt"
	"strings"
	"time"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// A query makes the query of a target, for the series with a selector. Each gives a sum over the replicas, of
// which AverageValue is the mean. A Value would do for percents and times, too, but with it the
// HorizontalPodAutoscaler counts ready pods in its own namespace, and does nothing without any
// (pkg/controller/podautoscaler/replica_calculator.go of Kubernetes v1.36). Pods may run in other clusters.
//
// A query gives nothing if Prometheus has no series of the role, or reads none of them any more. Then nothing scales. Engines
// that it has read within the time of fresh count.
type query func(selector, fresh string) string

// queries of the engines that are known. test/tools/metrics has the tables of their metrics.
var queries = map[launch.Engine]map[string]query{
	launch.EngineVLLM: {
		"waitingRequests":              sumOf(waitingMetrics[launch.EngineVLLM]...),
		"runningRequests":              sumOf(runningMetric[launch.EngineVLLM]),
		"kvCacheUtilizationPercent":    percentOf("vllm:kv_cache_usage_perc"),
		"tokensPerSecond":              rateOf(tokensMetric[launch.EngineVLLM], runningMetric[launch.EngineVLLM]),
		"timeToFirstTokenMilliseconds": timeOf("vllm:time_to_first_token_seconds", runningMetric[launch.EngineVLLM]),
	},
	launch.EngineSGLang: {
		"waitingRequests":              totalOf(waitingMetrics[launch.EngineSGLang]...),
		"runningRequests":              totalOf(runningMetric[launch.EngineSGLang]),
		"kvCacheUtilizationPercent":    percentOf("sglang:token_usage"),
		"tokensPerSecond":              rateOf(tokensMetric[launch.EngineSGLang], runningMetric[launch.EngineSGLang]),
		"timeToFirstTokenMilliseconds": timeOf("sglang:time_to_first_token_seconds", runningMetric[launch.EngineSGLang]),
	},
}

var (
	// waitingMetrics are the gauges with the requests that wait in an engine. In a decode engine of SGLang a request waits for
	// memory first, and is in the queue of the scheduler once it has its KV cache (disaggregation/decode.py of v0.5.18). What
	// waits for the other engine does not count: more replicas of this one would not help. Requests in the
	// transfer queue of decode wait for prefill. Those in the bootstrap queue of prefill (until v0.5.9 its prealloc
	// queue) wait for memory of decode. In the inflight queue of prefill its work is done.
	waitingMetrics = map[launch.Engine][]string{
		launch.EngineVLLM:   {"vllm:num_requests_waiting"},
		launch.EngineSGLang: {"sglang:num_queue_reqs", "sglang:num_decode_prealloc_queue_reqs"},
	}
	// runningMetric is the gauge with the requests that an engine works on. An engine has it once it answers.
	runningMetric = map[launch.Engine]string{launch.EngineVLLM: "vllm:num_requests_running", launch.EngineSGLang: "sglang:num_running_reqs"}
	// tokensMetric is the counter of the tokens that an engine has generated.
	tokensMetric = map[launch.Engine]string{launch.EngineVLLM: "vllm:generation_tokens_total", launch.EngineSGLang: "sglang:generation_tokens_total"}
)

// window is the time of which rates are the mean. before is its start.
const window, before, longBefore = "[5m]", " offset 5m", "[2m] offset 7m"

// ranks are the labels by which gauges of one engine differ: that of vLLM (v1/metrics/loggers.py of v0.28.0), and those of
// SGLang (observability/metrics_collector.py of v0.5.18). All others tell engines apart. One may be a label of a Prometheus, such as
// cluster: two clusters may have pods of the same name.
const ranks = "engine, dp_rank, tp_rank, pp_rank, moe_ep_rank, priority"

// scrapes is for how many intervals an engine counts that Prometheus no longer reads.
const scrapes = 3

// freshness is how long an engine counts after Prometheus has read it. When an engine leaves a cluster, its PodMonitor goes with
// it. Then Prometheus does not note that the engine is gone (scrapePool.stop in scrape.go of v3.12.0), and has its last values
// for five minutes. Some three intervals are what it takes to note that a pod is gone. By default Prometheus reads once in a
// minute. What it writes elsewhere may be some seconds late.
func freshness(in *inputv1alpha1.Input) string {
	every := time.Minute
	if m := in.Monitoring.PodMonitors; m != nil && m.Interval != "" {
		every, _ = time.ParseDuration(m.Interval) // Validation refuses what is none.
	}
	return fmt.Sprintf("[%ds]", int(max(time.Minute, scrapes*every).Seconds()))
}

// series is the selector of the series of any of the metrics. One that an engine lacks adds nothing.
func series(selector string, metrics ...string) string {
	if len(metrics) == 1 {
		return metrics[0] + selector
	}
	return `{__name__=~"` + strings.Join(metrics, "|") + `",` + strings.TrimPrefix(selector, "{")
}

// freshOnly are the series of gauges that Prometheus has read lately. The gauges say which engines Prometheus knows to be gone:
// a function over a range does not.
func freshOnly(series, fresh string) string { return freshAt(series, fresh, "") }

// freshAt are the same at an offset.
func freshAt(series, fresh, offset string) string {
	return series + offset + " and last_over_time(" + series + fresh + offset + ")"
}

func sumOf(metrics ...string) query {
	return func(s, fresh string) string { return "sum(" + freshOnly(series(s, metrics...), fresh) + ")" }
}

// readBefore lets a query have a result only if Prometheus has read some series for two intervals. Once it is back after an outage, it reads
// engine after engine within an interval (scrape/target.go of v3.12.0, offset). The HorizontalPodAutoscaler would stop those that are
// missing there: after five minutes without metrics it knows no former number by which it would wait
// (stabilizeRecommendationWithBehaviors in pkg/controller/podautoscaler/horizontal.go of Kubernetes v1.36).
func readBefore(series, fresh string) string {
	d, _ := time.ParseDuration(strings.Trim(fresh, "[]")) // freshness makes it.
	return fmt.Sprintf(" and count(last_over_time(%[1]s[%[2]ds] offset %[2]ds))", series, int(d.Seconds())/scrapes*(scrapes-1))
}

// totalOf leaves out what SGLang repeats for each priority, with --enable-priority-scheduling: the total has an empty one
// (_log_gauge_queue_count in observability/metrics_collector.py of v0.5.18).
func totalOf(metrics ...string) query {
	return func(s, fresh string) string {
		return sumOf(metrics...)(strings.TrimSuffix(s, "}")+`,priority=""}`, fresh)
	}
}

// percentOf is about a gauge from 0 to 1. An engine may have several, one for each data-parallel rank.
func percentOf(metric string) query {
	return func(s, fresh string) string {
		return "100 * sum(avg without (" + ranks + ") (" + freshOnly(metric+s, fresh) + "))"
	}
}

// covered is how long Prometheus has to have read the role before the mean of the window counts. The range around that time has a
// sample at any interval up to maxInterval.
const (
	covered   = 5 * time.Minute
	atCovered = "[2m] offset 5m"
)

// rateOf is about a counter. What was counted in the window was counted, whether the engine is still there or not. There is no
// result until Prometheus has read the role for all of the window, as after an outage of its own. What is missing there would
// count as nothing: a rate goes only half an interval beyond its samples (extrapolatedRate in promql/functions.go of v3.12.0).
func rateOf(metric, gauge string) query {
	return func(s, _ string) string {
		return sumOfRates(metric+s, window) + " and count(last_over_time(" + gauge + s + atCovered + "))"
	}
}

func sumOfRates(series, in string) string { return "sum(rate(" + series + in + "))" }

// timeOf is about a histogram of seconds. Without requests its quantile is NaN, which no comparison lets pass.
// Then 0 counts, if the engines have metrics at all. The number of engines makes it a sum. They are counted by a gauge, whose
// labels are known: those of the histogram may be any, by --tokenizer-metrics-allowed-custom-labels of SGLang.
//
// No more engines count than at the start of the window. Its requests had only those, and each engine that starts would make the
// HorizontalPodAutoscaler ask for more. If there was none, all count. So they do if Prometheus had just begun to read them.
func timeOf(metric, gauge string) query {
	return func(s, fresh string) string {
		engines := func(offset string) string {
			return "count(group without (" + ranks + ") (" + freshAt(gauge+s, fresh, offset) + "))"
		}
		return "((1000 * histogram_quantile(0.95, sum by (le) (rate(" + metric + "_bucket" + s + window + "))) >= 0)" +
			" or 0 * " + sumOfRates(metric+"_count"+s, window) + ")" +
			" * ((" + engines(before) + " and count(last_over_time(" + gauge + s + longBefore + "))) < " + engines("") + " or " + engines("") + ")"
	}
}
