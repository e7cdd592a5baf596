package plan

import (
	"fmt"
	"slices"
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
// An engine counts if Prometheus has read its metrics within the time that fresh says. A query gives nothing if there is no such
// engine of the role. Then nothing scales.
type query func(selector string, fresh time.Duration) string

// queries of the targets. Each reads the metrics of vLLM and of SGLang: a role has both while a rollout replaces one by the other.
// test/tools/metrics has the tables of their metrics.
var queries = map[string]query{
	"waitingRequests":              totalOf(waitingMetrics),
	"runningRequests":              totalOf(runningMetrics),
	"kvCacheUtilizationPercent":    percentOf(usageMetrics),
	"tokensPerSecond":              rateOf(tokensMetrics, runningMetrics),
	"timeToFirstTokenMilliseconds": timeOf(firstTokenMetrics, runningMetrics, waitingMetrics),
}

var (
	// waitingMetrics are the gauges with the requests that wait in an engine. In a decode engine of SGLang a request waits for
	// memory first, and is in the queue of the scheduler once it has its KV cache (disaggregation/decode.py of v0.5.18). What
	// waits for the other engine does not count: more replicas of this one would not help. Requests in the
	// transfer queue of decode wait for prefill. Those in the bootstrap queue of prefill (until v0.5.9 its prealloc
	// queue) wait for memory of decode. In the inflight queue of prefill its work is done.
	waitingMetrics = []string{"vllm:num_requests_waiting", "sglang:num_queue_reqs", "sglang:num_decode_prealloc_queue_reqs"}
	// runningMetrics are the gauges with the requests that an engine works on. An engine has its own once it answers.
	runningMetrics = []string{"vllm:num_requests_running", "sglang:num_running_reqs"}
	// usageMetrics are the gauges with the part of the KV cache that is in use, from 0 to 1.
	usageMetrics = []string{"vllm:kv_cache_usage_perc", "sglang:token_usage"}
	// tokensMetrics are the counters of the tokens that an engine has generated.
	tokensMetrics = []string{"vllm:generation_tokens_total", "sglang:generation_tokens_total"}
	// firstTokenMetrics are the histograms of the seconds until the first token.
	firstTokenMetrics = []string{"vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"}
)

// measured tells whether targets can measure the engine of a role.
func (r *Role) measured() bool {
	return r.engine == launch.EngineVLLM || r.engine == launch.EngineSGLang
}

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
// for five minutes. Some three intervals are what it takes to note that a pod is gone. What Prometheus writes elsewhere may be some
// seconds late.
func freshness(in *inputv1alpha1.Input) time.Duration {
	return max(time.Minute, scrapes*scrapeInterval(in)).Truncate(time.Second)
}

// scrapeInterval is how often Prometheus reads metrics: by default once in a minute.
func scrapeInterval(in *inputv1alpha1.Input) time.Duration {
	every := time.Minute
	if m := in.Monitoring.PodMonitors; m != nil && m.Interval != "" {
		every, _ = time.ParseDuration(m.Interval) // Validation refuses what is none.
	}
	return every
}

// series is the selector of the series of any of the metrics. One that an engine lacks adds nothing.
func series(selector string, metrics ...string) string {
	return `{__name__=~"` + strings.Join(metrics, "|") + `",` + strings.TrimPrefix(selector, "{")
}

// freshOnly are the series of gauges that Prometheus has read lately. The gauges say which engines Prometheus knows to be gone:
// a function over a range does not.
func freshOnly(series string, fresh time.Duration) string { return freshAt(series, fresh, "") }

// freshAt are the same at an offset.
func freshAt(series string, fresh time.Duration, offset string) string {
	return fmt.Sprintf("%[1]s%[3]s and last_over_time(%[1]s[%[2]ds]%[3]s)", series, int(fresh.Seconds()), offset)
}

// readBefore lets a query have a result only if Prometheus has read some series for two intervals. Once it is back after an outage, it reads
// engine after engine within an interval (scrape/target.go of v3.12.0, offset). The HorizontalPodAutoscaler would stop those that are
// missing there: after five minutes without metrics it knows no former number by which it would wait
// (stabilizeRecommendationWithBehaviors in pkg/controller/podautoscaler/horizontal.go of Kubernetes v1.36).
func readBefore(series string, fresh time.Duration) string {
	return fmt.Sprintf(" and count(last_over_time(%[1]s[%[2]ds] offset %[2]ds))", series, int(fresh.Seconds())/scrapes*(scrapes-1))
}

// totalOf leaves out what SGLang repeats for each priority, with --enable-priority-scheduling: the total has an empty one
// (_log_gauge_queue_count in observability/metrics_collector.py of v0.5.18). The gauges of vLLM have no priority.
func totalOf(metrics []string) query {
	return func(s string, fresh time.Duration) string {
		return "sum(" + freshOnly(series(strings.TrimSuffix(s, "}")+`,priority=""}`, metrics...), fresh) + ")"
	}
}

// percentOf is about gauges from 0 to 1. An engine may have several, one for each data-parallel rank.
func percentOf(metrics []string) query {
	return func(s string, fresh time.Duration) string {
		return "100 * sum(avg without (" + ranks + ") (" + freshOnly(series(s, metrics...), fresh) + "))"
	}
}

// covered is how long Prometheus has to have read the role before the mean of the window counts. The range around that time has a
// sample at any interval up to maxInterval.
const (
	covered   = 5 * time.Minute
	atCovered = "[2m] offset 5m"
)

// rateOf is about counters. What was counted in the window was counted, whether the engine is still there or not. There is no
// result until Prometheus has read the role for all of the window, as after an outage of its own. What is missing there would
// count as nothing: a rate goes only half an interval beyond its samples (extrapolatedRate in promql/functions.go of v3.12.0).
func rateOf(counters, gauges []string) query {
	return func(s string, _ time.Duration) string {
		return sumOfRates(series(s, counters...), window) + " and count(last_over_time(" + series(s, gauges...) + atCovered + "))"
	}
}

func sumOfRates(series, in string) string { return "sum(rate(" + series + in + "))" }

// onlySGLang is a label that only the metrics of SGLang have. Histograms of different engines have different buckets, so they have no sum.
const onlySGLang = "engine_type"

// timeOf is about histograms of seconds. While a role has both engines, the longer time counts. Without requests its quantile is NaN, which
// no comparison lets pass. Then 0 counts, if the engines have metrics at all and no request waits. One that waits for its first token is no
// cause to stop engines. The number of engines makes it a sum. They are counted by a gauge, whose labels are known: those of the histogram
// may be any, by --tokenizer-metrics-allowed-custom-labels of SGLang.
//
// No more engines count than at the start of the window. Its requests had only those, and each engine that starts would make the
// HorizontalPodAutoscaler ask for more. If there was none, all count. So they do if Prometheus had just begun to read them.
func timeOf(histograms, gauges, waiting []string) query {
	each := func(suffix string) []string {
		all := slices.Clone(histograms)
		for i := range all {
			all[i] += suffix
		}
		return all
	}
	return func(s string, fresh time.Duration) string {
		engines := func(offset string) string {
			return "count(group without (" + ranks + ") (" + freshAt(series(s, gauges...), fresh, offset) + "))"
		}
		return "(max((1000 * histogram_quantile(0.95, sum by (le, " + onlySGLang + ") (rate(" + series(s, each("_bucket")...) + window + ")))) >= 0)" +
			" or 0 * " + sumOfRates(series(s, each("_count")...), window) + " unless sum(" + series(s, waiting...) + ") > 0)" +
			" * ((" + engines(before) + " and count(last_over_time(" + series(s, gauges...) + longBefore + "))) < " + engines("") + " or " + engines("") + ")"
	}
}
