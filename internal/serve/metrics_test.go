package serve

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
)

// An answering function answers all calls in the same way.
type answering struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	rsp *fnv1.RunFunctionResponse
	err error
}

func (a *answering) RunFunction(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return a.rsp, a.err
}

func ofKind(kind string) *fnv1.RunFunctionRequest {
	xr := &structpb.Struct{Fields: map[string]*structpb.Value{"kind": structpb.NewStringValue(kind)}}
	return &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}}}
}

// series returns all counters that are not zero, and the number of observations of all histograms, as name{values}.
func series(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			var values []string
			for _, l := range s.GetLabel() {
				values = append(values, l.GetValue())
			}
			n := s.GetCounter().GetValue()
			if h := s.GetHistogram(); h != nil {
				n = float64(h.GetSampleCount())
			}
			if n > 0 {
				all[strings.TrimPrefix(f.GetName(), "fusioninfer_function_")+"{"+strings.Join(values, ",")+"}"] = n
			}
		}
	}
	return all
}

func refused(reason string) *fnv1.RunFunctionResponse {
	return &fnv1.RunFunctionResponse{
		Results:    []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL}},
		Conditions: []*fnv1.Condition{{Type: composite.Accepted, Status: fnv1.Status_STATUS_CONDITION_FALSE, Reason: reason}},
	}
}

func TestMeasure(t *testing.T) {
	desired := func(ready ...fnv1.Ready) *fnv1.RunFunctionResponse {
		d := &fnv1.State{Resources: map[string]*fnv1.Resource{}}
		for i, r := range ready {
			d.Resources[string(rune('a'+i))] = &fnv1.Resource{Ready: r}
		}
		return &fnv1.RunFunctionResponse{Desired: d, Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_WARNING}}}
	}
	deferred := desired(fnv1.Ready_READY_TRUE)
	deferred.Desired.Composite = &fnv1.Resource{Ready: fnv1.Ready_READY_FALSE}
	broken := &fnv1.RunFunctionResponse{
		Results:    []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL}},
		Conditions: []*fnv1.Condition{{Type: composite.Accepted, Status: fnv1.Status_STATUS_CONDITION_UNKNOWN, Reason: composite.ReasonNotEvaluated}},
	}
	const took = "call_duration_seconds"
	cases := map[string]struct {
		reason string
		kind   string
		fn     *answering
		want   map[string]float64
	}{
		"Ready":    {"Everything is ready.", "InferenceService", &answering{rsp: desired(fnv1.Ready_READY_TRUE, fnv1.Ready_READY_TRUE)}, map[string]float64{"calls_total{InferenceService,accepted}": 1, "answers_total{InferenceService,true}": 1, took + "{InferenceService}": 1}},
		"Claim":    {"The flavour with claims counts as the same kind.", "XInferenceService", &answering{rsp: desired()}, map[string]float64{"calls_total{InferenceService,accepted}": 1, "answers_total{InferenceService,true}": 1, took + "{InferenceService}": 1}},
		"NotReady": {"One object is not ready.", "InferenceCluster", &answering{rsp: desired(fnv1.Ready_READY_TRUE, fnv1.Ready_READY_FALSE)}, map[string]float64{"calls_total{InferenceCluster,accepted}": 1, "answers_total{InferenceCluster,false}": 1, took + "{InferenceCluster}": 1}},
		"Deferred": {"A wanted object is left out.", "ModelCache", &answering{rsp: deferred}, map[string]float64{"calls_total{ModelCache,accepted}": 1, "answers_total{ModelCache,false}": 1, took + "{ModelCache}": 1}},
		"Refused":  {"The spec is refused.", "InferenceModel", &answering{rsp: refused(composite.ReasonInvalidSpec)}, map[string]float64{"calls_total{InferenceModel,refused}": 1, "refusals_total{InferenceModel,InvalidSpec}": 1, took + "{InferenceModel}": 1}},
		"Other":    {"A reason that is not known is no label.", "InferenceModel", &answering{rsp: refused("Tenant")}, map[string]float64{"calls_total{InferenceModel,refused}": 1, "refusals_total{InferenceModel,other}": 1, took + "{InferenceModel}": 1}},
		"Error":    {"The function failed.", "InferenceModel", &answering{rsp: broken}, map[string]float64{"calls_total{InferenceModel,error}": 1, took + "{InferenceModel}": 1}},
		"Canceled": {"The caller has gone.", "InferenceModel", &answering{err: context.Canceled}, map[string]float64{"calls_total{InferenceModel,canceled}": 1, took + "{InferenceModel}": 1}},
		"Unknown":  {"A kind that is not known is no label.", "Tenant", &answering{rsp: desired()}, map[string]float64{"calls_total{other,accepted}": 1, "answers_total{other,true}": 1, took + "{other}": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := NewMetrics()
			if _, err := m.Measure(tc.fn).RunFunction(t.Context(), ofKind(tc.kind)); err != tc.fn.err { //nolint:errorlint // It is passed on as it is.
				t.Errorf("got the error %v", err)
			}
			if diff := cmp.Diff(tc.want, series(t, m)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestResponseSize proves that the size of a response is counted for the kind of its request.
func TestResponseSize(t *testing.T) {
	m := NewMetrics()
	ctx := m.TagRPC(t.Context(), &stats.RPCTagInfo{})
	if _, err := m.Measure(&answering{err: context.Canceled}).RunFunction(ctx, ofKind("InferenceService")); err == nil {
		t.Fatal("want an error")
	}
	m.HandleRPC(ctx, &stats.OutPayload{Length: 5000})
	m.HandleRPC(m.TagRPC(t.Context(), &stats.RPCTagInfo{}), &stats.OutPayload{Length: 5000}) // A call of another service, such as reflection.
	if got := series(t, m)["response_size_bytes{InferenceService}"]; got != 1 {
		t.Errorf("%v sizes are counted, want 1", got)
	}
}

// TestDecided proves that each decision has a counter from the start.
func TestDecided(t *testing.T) {
	m := NewMetrics()
	for _, d := range composite.Decisions() {
		m.Decided([]composite.Decision{{What: d, From: "east", To: "west"}})
	}
	got := series(t, m)
	for _, d := range composite.Decisions() {
		if got["decisions_total{"+d+"}"] != 1 {
			t.Errorf("%s is not counted once: %v", d, got)
		}
	}
}

// TestMetricNames holds the names and types to the conventions of Prometheus.
func TestMetricNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics()
	registry.MustRegister(m)
	m.size.WithLabelValues(other)
	m.duration.WithLabelValues(other)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		units := []string{"_total"}
		if f.GetMetric()[0].GetHistogram() != nil {
			units = []string{"_seconds", "_bytes"}
		}
		if !strings.HasPrefix(f.GetName(), "fusioninfer_function_") || !slices.ContainsFunc(units, func(u string) bool { return strings.HasSuffix(f.GetName(), u) }) {
			t.Errorf("%s has to end with one of %v", f.GetName(), units)
		}
	}
}
