package serve

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
)

// callOf is a call about a composite resource of a kind, with a response.
func callOf(kind string, rsp *fnv1.RunFunctionResponse) *composite.Call {
	xr := &structpb.Struct{Fields: map[string]*structpb.Value{"kind": structpb.NewStringValue(kind)}}
	c := composite.NewCall(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}}}, time.Time{})
	c.Response = rsp
	return c
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
	cases := map[string]struct {
		reason string
		kind   string
		rsp    *fnv1.RunFunctionResponse
		err    error
		want   map[string]float64
	}{
		"Ready":    {"Everything is ready.", "InferenceService", desired(fnv1.Ready_READY_TRUE, fnv1.Ready_READY_TRUE), nil, map[string]float64{"calls_total{InferenceService,accepted}": 1, "answers_total{InferenceService,true}": 1}},
		"Claim":    {"The flavour with claims counts as the same kind.", "XInferenceService", desired(), nil, map[string]float64{"calls_total{InferenceService,accepted}": 1, "answers_total{InferenceService,true}": 1}},
		"NotReady": {"One object is not ready.", "InferenceCluster", desired(fnv1.Ready_READY_TRUE, fnv1.Ready_READY_FALSE), nil, map[string]float64{"calls_total{InferenceCluster,accepted}": 1, "answers_total{InferenceCluster,false}": 1}},
		"Deferred": {"A wanted object is left out.", "ModelCache", deferred, nil, map[string]float64{"calls_total{ModelCache,accepted}": 1, "answers_total{ModelCache,false}": 1}},
		"Refused":  {"The spec is refused.", "InferenceModel", refused(composite.ReasonInvalidSpec), nil, map[string]float64{"calls_total{InferenceModel,refused}": 1, "refusals_total{InferenceModel,InvalidSpec}": 1}},
		"Other":    {"A reason that is not known is no label.", "InferenceModel", refused("Tenant"), nil, map[string]float64{"calls_total{InferenceModel,refused}": 1, "refusals_total{InferenceModel,other}": 1}},
		"Error":    {"The function failed.", "InferenceModel", broken, nil, map[string]float64{"calls_total{InferenceModel,error}": 1}},
		"Canceled": {"The caller has gone.", "InferenceModel", nil, context.Canceled, map[string]float64{"calls_total{InferenceModel,canceled}": 1}},
		"Unknown":  {"A kind that is not known is no label.", "Tenant", desired(), nil, map[string]float64{"calls_total{other,accepted}": 1, "answers_total{other,true}": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := NewMetrics()
			m.Answered(t.Context(), callOf(tc.kind, tc.rsp), tc.err)
			if diff := cmp.Diff(tc.want, series(t, m)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestKinds proves that each kind that the packages define has a name of its own in metrics.
func TestKinds(t *testing.T) {
	files, err := filepath.Glob("../../package/*/*definition.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d definitions: %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var xrd struct {
			Spec struct {
				Names struct {
					Kind string `json:"kind"`
				} `json:"names"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(b, &xrd); err != nil {
			t.Fatal(err)
		}
		if kind := xrd.Spec.Names.Kind; kinds[kind] == "" {
			t.Errorf("%s: calls for the kind %q count as %s", file, kind, other)
		}
	}
}

// TestResponseSize proves that the size of a response is counted for the kind of its request.
func TestResponseSize(t *testing.T) {
	m := NewMetrics()
	ctx := m.TagRPC(t.Context(), ofFunction)
	m.Answered(ctx, callOf("InferenceService", nil), nil)
	m.HandleRPC(ctx, &stats.OutPayload{Length: 5000})
	m.HandleRPC(m.TagRPC(t.Context(), &stats.RPCTagInfo{}), &stats.OutPayload{Length: 5000}) // A call of another service, such as reflection.
	if got := series(t, m)["response_size_bytes{InferenceService}"]; got != 1 {
		t.Errorf("%v sizes are counted, want 1", got)
	}
}

// ofFunction is a call of the function.
var ofFunction = &stats.RPCTagInfo{FullMethodName: fnv1.FunctionRunnerService_RunFunction_FullMethodName}

// TestOtherCalls proves that calls of other services, such as reflection, are not measured.
func TestOtherCalls(t *testing.T) {
	m := NewMetrics()
	m.HandleRPC(m.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"}), &stats.End{Error: context.Canceled})
	if diff := cmp.Diff(map[string]float64{}, series(t, m)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestDuration proves which calls are timed. What waits for memory until its caller has gone was never decoded.
func TestDuration(t *testing.T) {
	cases := map[string]struct {
		reason string
		kind   string
		err    error
		want   map[string]float64
	}{
		"Answered": {"It is timed for its kind.", "ModelCache", nil, map[string]float64{"calls_total{ModelCache,accepted}": 1, "answers_total{ModelCache,true}": 1, "call_duration_seconds{ModelCache}": 1}},
		"Waited":   {"Its kind is not known.", "", status.FromContextError(context.DeadlineExceeded).Err(), map[string]float64{"calls_total{other,canceled}": 1, "call_duration_seconds{other}": 1}},
		"TooLarge": {"gRPC takes no request of its size.", "", status.Error(codes.ResourceExhausted, "too large"), map[string]float64{"calls_total{other,error}": 1, "call_duration_seconds{other}": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := NewMetrics()
			ctx := m.TagRPC(t.Context(), ofFunction)
			if tc.kind != "" {
				m.Answered(ctx, callOf(tc.kind, &fnv1.RunFunctionResponse{}), nil)
			}
			m.HandleRPC(ctx, &stats.End{Error: tc.err})
			if diff := cmp.Diff(tc.want, series(t, m)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSizeOfAlert proves that an alert goes by a bucket that there is, and that responses which nearly are too large are above it.
func TestSizeOfAlert(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join("..", "..", "package", "monitoring", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(rules), `fusioninfer_function_response_size_bytes_bucket{le="`)
	bound, _, _ := strings.Cut(after, `"`)
	cases := map[string]struct {
		reason string
		size   int
		// below are the responses in that bucket.
		below string
	}{
		"Usual": {reason: "There is room for more.", size: 2 << 20, below: "1"},
		"Large": {reason: "There is little room.", size: composite.MaxResponse, below: "0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, registry := NewMetrics(), prometheus.NewRegistry()
			registry.MustRegister(m)
			ctx := m.TagRPC(t.Context(), ofFunction)
			m.Answered(ctx, callOf("InferenceService", nil), nil)
			m.HandleRPC(ctx, &stats.OutPayload{Length: tc.size})
			w := httptest.NewRecorder()
			promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			want := `fusioninfer_function_response_size_bytes_bucket{kind="InferenceService",le="` + bound + `"} ` + tc.below + "\n"
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s Want %s", tc.reason, want)
			}
		})
	}
}

// TestDecided proves that each decision has a counter from the start, and that a call counts its own.
func TestDecided(t *testing.T) {
	m := NewMetrics()
	for _, d := range composite.Decisions() {
		if n := testCounter(t, m, d); n != 0 {
			t.Errorf("%s starts with %v", d, n)
		}
	}
	c := callOf("InferenceService", &fnv1.RunFunctionResponse{})
	c.Refuse(composite.Refusal(composite.ReasonInvalidSpec, field.ErrorList{field.Required(field.NewPath("spec"), "")}))
	m.Answered(t.Context(), c, nil)
	if n := testCounter(t, m, composite.DecisionRefused); n != 1 {
		t.Errorf("a refusal counts %v times", n)
	}
	m.Answered(t.Context(), c, context.Canceled)
	if n := testCounter(t, m, composite.DecisionRefused); n != 1 {
		t.Error("a call whose caller has gone decides something")
	}
}

// testCounter returns the counter of a decision, which has to exist.
func testCounter(t *testing.T, m *Metrics, decision string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			if f.GetName() == "fusioninfer_function_decisions_total" && s.GetLabel()[0].GetValue() == decision {
				return s.GetCounter().GetValue()
			}
		}
	}
	t.Errorf("there is no counter for %s", decision)
	return 0
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
