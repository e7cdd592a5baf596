package plan

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// LabelContainerOfPod is the label of Prometheus with the name of a pod's container.
const LabelContainerOfPod = "__meta_kubernetes_pod_container_name"

// Metrics is where the metrics of an engine are. Their path is /metrics.
type Metrics struct {
	// Container of the engine.
	Container string
	// Port of the engine itself, which is behind the routing sidecar.
	Port int32
	// HTTPS tells that the engine serves TLS itself.
	HTTPS bool
}

// metrics decides where the leaders of the role are scraped. A target that never answers would hide those that
// no longer do.
func (p *rolePlanner) metrics() {
	leader := &p.role.Leader
	why, certain := p.withoutMetrics(leader)
	p.role.noMetrics, p.role.surelyNone = why, certain
	switch {
	case p.input.Monitoring.PodMonitors == nil, p.hidden(leader) != "":
		return
	case why != "":
		p.warn(leader.enginePath(p.leaderPath()).Child("args"), "the engine is not monitored: %s", why)
		return
	}
	p.role.Metrics = &Metrics{Container: leader.engine().Name, Port: p.role.EnginePort, HTTPS: p.role.TLS}
}

// FormerMetrics are where engines of former templates serve their metrics, if some do so elsewhere than those of the newest one.
type FormerMetrics struct {
	// Newest is the revision of the newest template. All other pods have former ones.
	Newest string
	// Metrics of the former templates, the oldest last.
	Metrics []Metrics
}

// maxFormerMetrics limits where only engines of former templates serve their metrics. A tenant may edit a template again and
// again while all pods are held. Beyond the limit, the oldest stay: replicas held longest have the oldest template.
const maxFormerMetrics = 4

// keepMetrics has the engines of pods that may have a former template monitored as before. Their container may have another name
// there, or TLS. Without their metrics, an autoscaler would count none of their requests, and remove what serves.
func (p *Plan) keepMetrics(running *RunningView) {
	for i := range p.Clusters {
		c := &p.Clusters[i]
		c.FormerMetrics = map[string]FormerMetrics{}
		for r := range c.Replicas() {
			role := r.Role
			if _, done := c.FormerMetrics[role.Name]; done || role.Metrics == nil {
				continue
			}
			if s := running.Replica(r.Key); !s.Exists || !mayRunFormer(r, s) {
				continue
			}
			before := slices.DeleteFunc(running.Metrics(c.MonitorKey(role)), func(m Metrics) bool { return m == *role.Metrics })
			c.FormerMetrics[role.Name] = FormerMetrics{running.Revision[role.Name], before[max(0, len(before)-maxFormerMetrics):]}
		}
	}
}

// withoutMetrics says why an engine serves no metrics of its own. SGLang has them only if it is told to, and vLLM
// unless it is told not to. It is certain if all flags of the engine are seen that may change it.
func (p *rolePlanner) withoutMetrics(t *PodTemplate) (why string, certain bool) {
	l := p.role.line
	switch {
	case p.engineOf(t) == launch.EngineSGLang && !t.mentions("enable-metrics"):
		return "SGLang serves metrics only with --enable-metrics", l != nil && !l.Open
	case l != nil && l.engine == launch.EngineVLLM && l.Has("--disable-log-stats"):
		return "vLLM serves no metrics with --disable-log-stats", true
	}
	return "", false
}

// firstTracing is the first release of vLLM in the tables whose image has OpenTelemetry
// (requirements/common.txt). Without it, vLLM does not start with --otlp-traces-endpoint.
var firstTracing = imageref.Version{0, 19, 0}

// traces tells whether an engine is told to send traces. Only the image that vLLM's project releases is known
// to be able to. With --disable-log-stats it would end at its first answer, whose times it lacks (do_tracing in
// v1/engine/output_processor.py).
func (p *rolePlanner) traces(t *PodTemplate) bool {
	v, known := vllmVersion(t.engine())
	return p.input.Monitoring.Tracing != nil && known && v.Compare(firstTracing) >= 0 && p.engineOf(t) == launch.EngineVLLM && !t.parsed.Listener().File && !t.says("disable-log-stats")
}

// sampler is the only one that endpoint pickers know (pkg/common/observability/tracing/telemetry.go of
// llm-d-router v0.10.0 and of GAIE v1.5.0). The libraries of the engines know it, too.
const sampler = "parentbased_traceidratio"

// tracing returns the variables of OpenTelemetry that say who sends traces, and how many.
func tracing(t *inputv1alpha1.Tracing, name string) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "OTEL_SERVICE_NAME", Value: name},
		{Name: "OTEL_TRACES_SAMPLER", Value: sampler},
		{Name: "OTEL_TRACES_SAMPLER_ARG", Value: strconv.FormatFloat(float64(ptr.Deref(t.SamplingPercent, 0))/100, 'f', -1, 64)},
	}
}

// pickerTracing returns the variables with which an endpoint picker sends traces. It writes them to its log
// unless it is told to export them. Nil sends none.
func pickerTracing(t *inputv1alpha1.Tracing, name string) []corev1.EnvVar {
	if t == nil {
		return nil
	}
	return append(tracing(t, name),
		corev1.EnvVar{Name: "OTEL_TRACES_EXPORTER", Value: "otlp"},
		corev1.EnvVar{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: t.Endpoint})
}

// firstSidecarTracing is the first release of llm-d's routing sidecar with the flag --tracing
// (pkg/sidecar/proxy/options.go of llm-d-router).
var firstSidecarTracing = imageref.Version{0, 9, 0}

// sidecarTracing returns the same for a routing sidecar. One without the flag would not start.
func sidecarTracing(image string, t *inputv1alpha1.Tracing, role string) []corev1.EnvVar {
	_, tag := imageref.Split(image)
	if v, known := imageref.ParseVersion(tag); !known || v.Compare(firstSidecarTracing) < 0 {
		return nil
	}
	return pickerTracing(t, role+"-sidecar")
}
