package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
)

// An Autoscaler sets the number of replicas on the scale target of a role.
type Autoscaler struct {
	// Kind of its key: that of a HorizontalPodAutoscaler or of a ScaledObject.
	Kind string
	// Min and Max are the limits of the role.
	Min, Max int32
	// Holds tells that the ScaledObject keeps one replica, although Min is 0, because requests cannot wait yet
	// (holdAwake).
	Holds bool
	// Starting tells that it removes no replicas, because some start (pauseScaleIn).
	Starting bool
	// Behavior of the HorizontalPodAutoscaler. Nil leaves it to Kubernetes.
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
	// Metrics of a HorizontalPodAutoscaler, as the user wrote them.
	Metrics []*kube.Document
	// External is the metric of a HorizontalPodAutoscaler that measures the target. Otherwise nil.
	External *ExternalMetric
	// Triggers of a ScaledObject.
	Triggers []v1alpha1.ScalingTrigger
	// Formula of a ScaledObject, by which its triggers are one metric. Nil leaves each as it is.
	Formula *Formula
	// PollingSeconds and CooldownSeconds of a ScaledObject. Nil leaves them to KEDA.
	PollingSeconds, CooldownSeconds *int32
}

// A Formula makes one metric of triggers, by their names. Its value is a sum over the replicas.
type Formula struct {
	Text string
	// PerReplica is the value for each replica. Above Activation, KEDA takes the role for active.
	PerReplica, Activation string
}

// An ExternalMetric is one that an adapter serves. Its value is a sum over the replicas.
type ExternalMetric struct {
	Name string
	// Labels select the series of the role.
	Labels map[string]string
	// PerReplica is the value for each replica.
	PerReplica int32
}

// planAutoscalers plans the autoscalers of the roles.
func (p *Plan) planAutoscalers(spec *v1alpha1.InferenceServiceSpec, in *inputv1alpha1.Input, policy *tenantPolicy) field.ErrorList {
	var errs field.ErrorList
	for _, r := range p.Roles {
		if !r.scaling.Autoscales() {
			continue
		}
		s, at := r.scaling, r.path.Child("scaling")
		a := &Autoscaler{Kind: key.HorizontalPodAutoscaler, Min: s.Min(), Max: s.Max(), Behavior: s.Behavior, Metrics: s.Metrics}
		metrics, more := p.readMetrics(s.Metrics, at.Child("metrics"))
		errs = append(errs, more...)
		errs = append(errs, podspec.ValidateAutoscaler(metrics, s.Behavior, at)...)
		if s.Target != nil {
			errs = append(errs, p.planTarget(a, r, spec, in, at.Child("target"))...)
		}
		if s.Triggers != nil {
			errs = append(errs, policy.checkTriggers(at.Child("triggers"), s.Triggers)...)
			a.Triggers = s.Triggers
		}
		if a.Triggers != nil {
			a.Kind, a.PollingSeconds, a.CooldownSeconds = key.ScaledObject, in.Scaling.PollingSeconds, in.Scaling.CooldownSeconds
		}
		r.Autoscaler = a
	}
	return errs
}

// readMetrics reads the metrics of a HorizontalPodAutoscaler, to validate them. A valid one stands for one that
// cannot be read, so that the others keep their indexes.
func (p *Plan) readMetrics(docs []*kube.Document, at *field.Path) ([]autoscalingv2.MetricSpec, field.ErrorList) {
	var all []autoscalingv2.MetricSpec
	var errs field.ErrorList
	for i, doc := range docs[:min(len(docs), maxMetrics)] {
		m := autoscalingv2.MetricSpec{}
		unknown, more := kube.DecodeKnown(doc, at.Index(i), &m)
		doubts, misspelt := judgeUnknown(unknown, podspec.UnknownField)
		p.Warnings = append(p.Warnings, doubts...)
		errs = append(errs, misspelt...)
		if errs = append(errs, more...); len(more) > 0 {
			m = readable
		}
		all = append(all, m)
	}
	return all, errs
}

// readable is a valid metric.
var readable = autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
	Metric: autoscalingv2.MetricIdentifier{Name: "x"},
	Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(1, resource.DecimalSI)},
}}

// maxMetrics is how many metrics validation lets pass.
const maxMetrics = 16

// checkTriggers refuses triggers that are not allowed. KEDA's operator reads what they name from its own
// place in the network.
func (p *tenantPolicy) checkTriggers(at *field.Path, triggers []v1alpha1.ScalingTrigger) field.ErrorList {
	var errs field.ErrorList
	for i, t := range triggers {
		if t.Type != "" && !inputv1alpha1.MatchesAny(p.AllowedTriggers, t.Type) {
			errs = append(errs, p.notAllowed(at.Index(i).Child("type"), t.Type, "", p.AllowedTriggers, "allowedTriggers"))
		}
	}
	return errs
}

// planTarget plans what measures the target of a role: a query of KEDA, the endpoint picker, or an external metric.
func (p *Plan) planTarget(a *Autoscaler, r *Role, spec *v1alpha1.InferenceServiceSpec, in *inputv1alpha1.Input, at *field.Path) field.ErrorList {
	set := r.scaling.Target.Set()
	if len(set) != 1 {
		return nil // Validation says so.
	}
	target := set[0]
	var errs field.ErrorList
	if _, known := queries[r.engine]; !known {
		errs = append(errs, field.Forbidden(at, "must be left out, because the engine is neither vLLM nor SGLang: use metrics or triggers, which name the metric"))
	}
	// Only with KEDA: see validateScaling. Then another policy does not suffice, and checkPickerTarget says what does.
	picker := in.Scaling.Source == inputv1alpha1.ScalingSourceEndpointPicker
	if !picker && replicates(spec.Placement) {
		errs = append(errs, field.Forbidden(at, "must be left out where spec.placement runs all replicas in each of several clusters, because metrics do not tell these apart: use the policy Spread or Failover, or metrics or triggers"))
	}
	if picker {
		return append(errs, p.planPickerTarget(a, r, target, spec, at)...)
	}
	if in.Scaling.Provider == inputv1alpha1.ScalingProviderKEDA && in.Scaling.Prometheus.ServerAddress == "" {
		errs = append(errs, field.Forbidden(at, "must be left out until the platform team says where Prometheus is"+setBy("scaling.prometheus.serverAddress")))
	}
	if r.scaling.Min() == 0 {
		errs = append(errs, p.checkWake(r, in)...)
	}
	if len(errs) > 0 {
		return errs
	}
	p.warnOfMetrics(r, in, at)
	p.warnOfInterval(in, at)
	if in.Scaling.Provider == inputv1alpha1.ScalingProviderHPA {
		a.External = &ExternalMetric{Name: externalMetrics[target.Name], Labels: p.SeriesLabels(r.Name), PerReplica: *target.Value}
		return nil
	}
	a.Triggers = []v1alpha1.ScalingTrigger{{
		Type: "prometheus", Name: "target", MetricType: autoscalingv2.AverageValueMetricType,
		Metadata: map[string]string{
			"serverAddress": in.Scaling.Prometheus.ServerAddress,
			"query":         p.targetQuery(r, target.Name, in),
			"threshold":     strconv.Itoa(int(*target.Value)),
			// By default KEDA takes a result without series for 0, and would scale down to the minimum
			// whenever Prometheus has lost the engines (pkg/scalers/prometheus_scaler.go of v2.21.0).
			"ignoreNullValues": "false",
			// It says how many replicas, and not whether any. While a trigger is above this, KEDA writes the time into
			// the status at each poll (scale_scaledobjects.go), and Crossplane reconciles the service for each write.
			"activationThreshold": never,
		},
	}}
	if r.scaling.Min() == 0 {
		p.addWake(a, in, target.Name)
	}
	return nil
}

// targetQuery returns the query of a target. A role that may stop has no series of its own for long. Its endpoint picker is read all the
// time, or nothing would start the role (addWake).
func (p *Plan) targetQuery(r *Role, target string, in *inputv1alpha1.Input) string {
	of, fresh := p.seriesOf(r.Name), freshness(in)
	read := runningMetric[r.engine] + of
	if r.scaling.Min() == 0 && p.Router != nil {
		read = "up" + p.seriesOf(p.Router.Name)
	}
	return queries[r.engine][target](of, fresh) + readBefore(read, fresh)
}

// replicates tells whether all replicas may run in each of several clusters.
func replicates(to *v1alpha1.Placement) bool {
	return to != nil && to.Policy == v1alpha1.PlacementReplicate && (to.ClusterSelector != nil || len(to.Clusters) > 1)
}

// maxInterval is how seldom Prometheus may read a metric so that each window has two samples.
const maxInterval = 2 * time.Minute

// warnOfInterval warns of a target whose metrics are read too seldom.
func (p *Plan) warnOfInterval(in *inputv1alpha1.Input, at *field.Path) {
	m := in.Monitoring.PodMonitors
	if m == nil {
		return
	}
	if interval, _ := time.ParseDuration(m.Interval); interval > maxInterval { // Validation refuses what is none.
		p.Warnings = append(p.Warnings, Warning{Path: at.String(), Message: fmt.Sprintf(
			"its metrics are read every %s, so the query over 5 minutes may have no result, and then nothing scales the role: at most 2m suffices", m.Interval) + setBy("monitoring.podMonitors.interval")})
	}
}

// warnOfMetrics warns of a target that nothing measures.
func (p *Plan) warnOfMetrics(r *Role, in *inputv1alpha1.Input, at *field.Path) {
	if r.Metrics != nil {
		return
	}
	why := "the engine is not monitored, so nothing scales the role"
	if in.Monitoring.PodMonitors == nil {
		why = "nothing scales the role unless Prometheus has the metrics of its engines with the labels of PodMonitors, which the platform team has not turned on" + setBy("monitoring.podMonitors")
	}
	p.Warnings = append(p.Warnings, Warning{Path: at.String(), Message: why})
}

// Labels that each series of an engine has, by the PodMonitors. The namespace of a service differs from that
// of its pods where several tenants share one, so the label namespace, which Prometheus sets itself, does not
// tell the service.
const (
	LabelSeriesNamespace = "inferenceservice_namespace"
	LabelSeriesService   = "inferenceservice"
	LabelSeriesRole      = "role"
)

// SeriesLabels are the labels of the series of a role.
func (p *Plan) SeriesLabels(role string) map[string]string {
	return map[string]string{LabelSeriesNamespace: p.Service.Namespace, LabelSeriesService: p.Service.Name, LabelSeriesRole: role}
}

// seriesOf is the selector of the series of a role in a query. Strings of PromQL are quoted as those of Go
// (util/strutil/quote.go of Prometheus).
func (p *Plan) seriesOf(role string) string {
	return "{" + LabelSeriesNamespace + "=" + strconv.Quote(p.Service.Namespace) + "," +
		LabelSeriesService + "=" + strconv.Quote(p.Service.Name) + "," + LabelSeriesRole + "=" + strconv.Quote(role) + "}"
}

// externalMetrics are the names of the external metrics that measure targets, by their fields. An adapter has
// to serve them, such as prometheus-adapter with package/monitoring/prometheus-adapter.yaml.
var externalMetrics = map[string]string{
	"waitingRequests":              "fusioninfer_waiting_requests",
	"runningRequests":              "fusioninfer_running_requests",
	"kvCacheUtilizationPercent":    "fusioninfer_kv_cache_utilization_percent",
	"tokensPerSecond":              "fusioninfer_tokens_per_second",
	"timeToFirstTokenMilliseconds": "fusioninfer_time_to_first_token_milliseconds",
}

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

// LaterAutoscalers are the roles whose autoscaler is rendered once their scale target is there.
func (p *Plan) LaterAutoscalers() []*Role {
	return slices.DeleteFunc(p.ScaledRoles(), func(r *Role) bool { return r.Autoscaler == nil || p.Scales[r.Name].Autoscales })
}
