package serve

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
)

// Results of calls.
const (
	// resultAccepted is an answer with desired objects.
	resultAccepted = "accepted"
	// resultRefused is a Fatal that the author of the spec or of the Input can mend.
	resultRefused = "refused"
	// resultError is a Fatal for an error of the function.
	resultError = "error"
	// resultCanceled is a call whose caller no longer waited.
	resultCanceled = "canceled"
)

// other is the value of a label for what is not known. A request may name any kind, and the values of a
// label must be few.
const other = "other"

// kinds are the values of the label kind: the kind in both flavours of the API.
var kinds = map[string]string{
	v1alpha1.KindInferenceService: v1alpha1.KindInferenceService, v1alpha1.KindClaimedService: v1alpha1.KindInferenceService,
	v1alpha1.KindInferenceModel: v1alpha1.KindInferenceModel, v1alpha1.KindClaimedModel: v1alpha1.KindInferenceModel,
	v1alpha1.KindModelCache: v1alpha1.KindModelCache, v1alpha1.KindClaimedCache: v1alpha1.KindModelCache,
	v1alpha1.KindInferenceCluster: v1alpha1.KindInferenceCluster,
	v1alpha1.KindInferenceRole:    v1alpha1.KindInferenceRole,
}

// reasons are the values of the label reason.
var reasons = []string{composite.ReasonInvalidSpec, composite.ReasonInvalidInput, composite.ReasonNameConflict, composite.ReasonTooLarge, other}

// nearlyTooLarge is a size of responses that the alert InferenceFunctionResponsesLarge goes by.
const nearlyTooLarge = 3 << 20

// Metrics are the function's own. No label has what a tenant has written, and each has few values. So there
// is nothing about single services: the function keeps nothing between calls, and could not tell
// which of them are gone.
type Metrics struct {
	calls, refusals, answers, decisions *prometheus.CounterVec
	duration, size                      *prometheus.HistogramVec
}

// NewMetrics returns metrics whose counters are zero. Prometheus sees no increase of a counter that starts
// with 1.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"kind"})
	}
	m := &Metrics{
		calls:     counter("fusioninfer_function_calls_total", "Calls of Crossplane by kind and result: accepted, refused, error or canceled.", "kind", "result"),
		refusals:  counter("fusioninfer_function_refusals_total", "Calls that were refused, by the reason of the condition Accepted.", "kind", "reason"),
		answers:   counter("fusioninfer_function_answers_total", "Accepted calls by whether everything was ready.", "kind", "ready"),
		decisions: counter("fusioninfer_function_decisions_total", "What was decided: placed, moved, released, accepted or refused. Each change counts once.", "decision"),
		duration: histogram("fusioninfer_function_call_duration_seconds", "How long a call took, with the time that it waited for memory.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}),
		size: histogram("fusioninfer_function_response_size_bytes", "Size of encoded responses. Crossplane takes at most 4 MiB.",
			append(prometheus.ExponentialBuckets(4<<10, 2, 10), nearlyTooLarge, 4<<20)),
	}
	for kind := range kinds {
		m.start(kinds[kind])
	}
	m.start(other)
	for _, d := range composite.Decisions() {
		m.decisions.WithLabelValues(d)
	}
	return m
}

// start makes the series of a kind.
func (m *Metrics) start(kind string) {
	for _, r := range []string{resultAccepted, resultRefused, resultError, resultCanceled} {
		m.calls.WithLabelValues(kind, r)
	}
	for _, r := range reasons {
		m.refusals.WithLabelValues(kind, r)
	}
	for _, r := range []string{"true", "false"} {
		m.answers.WithLabelValues(kind, r)
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.refusals, m.answers, m.decisions, m.duration, m.size}
}

// Describe describes all metrics.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(to)
	}
}

// Collect collects all metrics.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(to)
	}
}

// Answered counts what came of a call.
func (m *Metrics) Answered(ctx context.Context, c *composite.Call, err error) {
	kind, known := kinds[c.Kind()]
	if !known {
		kind = other
	}
	if rpc, is := ctx.Value(call{}).(*call); is {
		rpc.kind = kind
	}
	m.count(kind, c.Response, err)
	if err != nil {
		return
	}
	for _, d := range c.Decided() {
		m.decisions.WithLabelValues(d.What).Inc()
	}
}

// count counts a call by its response.
func (m *Metrics) count(kind string, rsp *fnv1.RunFunctionResponse, err error) {
	result, reason := resultOf(rsp, err)
	m.calls.WithLabelValues(kind, result).Inc()
	switch result {
	case resultRefused:
		m.refusals.WithLabelValues(kind, reason).Inc()
	case resultAccepted:
		ready := "true"
		if !isReady(rsp.GetDesired()) {
			ready = "false"
		}
		m.answers.WithLabelValues(kind, ready).Inc()
	}
}

// resultOf returns the result of a call, and the reason of a refusal.
func resultOf(rsp *fnv1.RunFunctionResponse, err error) (result, reason string) {
	if err != nil {
		return resultCanceled, ""
	}
	fatal := false
	for _, r := range rsp.GetResults() {
		fatal = fatal || r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL
	}
	if !fatal {
		return resultAccepted, ""
	}
	for _, c := range rsp.GetConditions() {
		if c.GetType() != composite.Accepted || c.GetStatus() != fnv1.Status_STATUS_CONDITION_FALSE {
			continue
		}
		for _, r := range reasons {
			if r == c.GetReason() {
				return resultRefused, r
			}
		}
		return resultRefused, other
	}
	return resultError, ""
}

// isReady tells whether Crossplane takes the composite resource for ready.
func isReady(desired *fnv1.State) bool {
	if desired.GetComposite().GetReady() == fnv1.Ready_READY_FALSE {
		return false
	}
	for _, r := range desired.GetResources() {
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			return false
		}
	}
	return true
}

// A call is what is known of the call of a context. gRPC knows the size of its response and how long it took, and the function
// its kind.
type call struct{ kind string }

// TagRPC notes a call of the function in its context, and not one of another service, such as reflection.
func (m *Metrics) TagRPC(ctx context.Context, of *stats.RPCTagInfo) context.Context {
	if of.FullMethodName != fnv1.FunctionRunnerService_RunFunction_FullMethodName {
		return ctx
	}
	return context.WithValue(ctx, call{}, &call{})
}

// HandleRPC measures the size of the response, and how long the call took. One without a kind failed before the function had its
// request: most of them waited at the gate until their callers had gone.
func (m *Metrics) HandleRPC(ctx context.Context, s stats.RPCStats) {
	c, is := ctx.Value(call{}).(*call)
	if !is {
		return
	}
	switch s := s.(type) {
	case *stats.OutPayload:
		if c.kind != "" {
			m.size.WithLabelValues(c.kind).Observe(float64(s.Length))
		}
	case *stats.End:
		if c.kind == "" && s.Error != nil {
			c.kind = other
			m.calls.WithLabelValues(other, failed(s.Error)).Inc()
		}
		if c.kind != "" {
			m.duration.WithLabelValues(c.kind).Observe(s.EndTime.Sub(s.BeginTime).Seconds())
		}
	}
}

// failed is the result of a call that failed before the function had its request.
func failed(err error) string {
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded:
		return resultCanceled
	default:
		return resultError
	}
}

// TagConn does nothing: there are no metrics of connections.
func (m *Metrics) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (m *Metrics) HandleConn(context.Context, stats.ConnStats) {}
