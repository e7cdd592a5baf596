package plan

import (
	"slices"
	"strconv"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
)

// An Autoscaler sets the number of replicas on the scale target of a role.
type Autoscaler struct {
	// Kind of its key: that of a HorizontalPodAutoscaler or of a ScaledObject.
	Kind string
	// Min and Max are the limits of the role.
	Min, Max int32
	// Floor is how many replicas it does not remove for now, although Min may be lower: those that have a former template
	// (keepHeld), and one while requests cannot wait yet (holdAwake).
	Floor int32
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
func (p *Plan) planAutoscalers(in *inputv1alpha1.Input, policy *tenantPolicy) field.ErrorList {
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
		p.warnOfPodMetrics(metrics, s.Triggers, at)
		if s.Target != nil {
			errs = append(errs, p.planTarget(a, r, in, at.Child("target"))...)
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

// warnOfPodMetrics warns of metrics about pods, which the HorizontalPodAutoscaler looks for beside itself
// (pkg/controller/podautoscaler/replica_calculator.go of Kubernetes). A placement runs them elsewhere, unless one of its
// clusters is the control plane's own, which cannot be known here. A mean counts the replicas by the scale target.
func (p *Plan) warnOfPodMetrics(metrics []autoscalingv2.MetricSpec, triggers []v1alpha1.ScalingTrigger, at *field.Path) {
	if p.spec.Placement == nil {
		return
	}
	warn := func(at *field.Path, use string) {
		p.warn(at, "counts pods of this namespace in the control plane's cluster, and none of those that spec.placement runs in other clusters: use %s", use)
	}
	const mean = string(autoscalingv2.AverageValueMetricType)
	for i, m := range metrics {
		metric := at.Child("metrics").Index(i)
		switch {
		case m.Resource != nil || m.ContainerResource != nil || m.Pods != nil:
			warn(metric.Child("type"), "External or Object, with an averageValue")
		case m.External != nil && m.External.Target.Type == autoscalingv2.ValueMetricType:
			warn(metric.Child("external", "target", "type"), mean)
		case m.Object != nil && m.Object.Target.Type == autoscalingv2.ValueMetricType:
			warn(metric.Child("object", "target", "type"), mean)
		}
	}
	for i, t := range triggers {
		if t.MetricType == autoscalingv2.ValueMetricType {
			warn(at.Child("triggers").Index(i).Child("metricType"), mean)
		}
	}
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
		errs = append(errs, p.checkName(at.Index(i).Child("type"), t.Type, "", p.AllowedTriggers, "allowedTriggers")...)
	}
	return errs
}

// planTarget plans what measures the target of a role: a query of KEDA, the endpoint picker, or an external metric.
func (p *Plan) planTarget(a *Autoscaler, r *Role, in *inputv1alpha1.Input, at *field.Path) field.ErrorList {
	set := r.scaling.Target.Set()
	if len(set) != 1 {
		return nil // Validation says so.
	}
	target := set[0]
	var errs field.ErrorList
	if !r.measured() {
		errs = append(errs, field.Forbidden(at, "must be left out, because the engine is neither vLLM nor SGLang: use metrics or triggers, which name the metric"))
	}
	// Only with KEDA: see validateScaling. Then another policy does not suffice, and checkPickerTarget says what does.
	picker := in.Scaling.Source == inputv1alpha1.ScalingSourceEndpointPicker
	if !picker && replicates(p.spec.Placement) {
		errs = append(errs, field.Forbidden(at, "must be left out where spec.placement runs all replicas in each of several clusters, because metrics do not tell these apart: use the policy Spread or Failover, or metrics or triggers"))
	}
	if picker {
		return append(errs, p.planPickerTarget(a, r, target, at)...)
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
	read := series(of, runningMetrics...)
	if r.scaling.Min() == 0 && p.Router != nil {
		read = "up" + p.seriesOf(p.Router.Name)
	}
	return queries[target](of, fresh) + readBefore(read, fresh)
}

// replicates tells whether all replicas may run in each of several clusters.
func replicates(to *v1alpha1.Placement) bool {
	return to != nil && to.Policy == v1alpha1.PlacementReplicate && several(to)
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
		p.warn(at, "its metrics are read every %s, so the query over 5 minutes may have no result, and then nothing scales the role: at most 2m suffices%s",
			m.Interval, setBy("monitoring.podMonitors.interval"))
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
	p.warn(at, "%s", why)
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

// LaterAutoscalers are the roles whose autoscaler is rendered once their scale target is there.
func (p *Plan) LaterAutoscalers() []*Role {
	return slices.DeleteFunc(p.ScaledRoles(), func(r *Role) bool { return r.Autoscaler == nil || p.Scales[r.Name].Autoscales })
}

// Least is the number of replicas below which the autoscaler does not go now.
func (a *Autoscaler) Least() int32 { return max(a.Min, a.Floor) }
