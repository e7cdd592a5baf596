package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func TestValidateMonitoring(t *testing.T) {
	tracing := func(endpoint string) MonitoringSettings {
		return MonitoringSettings{Tracing: &Tracing{Endpoint: endpoint}}
	}
	cases := map[string]struct {
		reason string
		in     MonitoringSettings
		want   []string
	}{
		"None":      {"Nothing is monitored by default.", MonitoringSettings{}, nil},
		"Defaults":  {"An empty object is enough.", MonitoringSettings{PodMonitors: &PodMonitors{}}, nil},
		"Good":      {"All fields.", MonitoringSettings{PodMonitors: &PodMonitors{Labels: map[string]string{"release": "x"}, Interval: "30s"}, Tracing: &Tracing{Endpoint: "http://[::1]:4317", SamplingPercent: ptr.To[int32](0)}}, nil},
		"Interval":  {"Prometheus needs a unit.", MonitoringSettings{PodMonitors: &PodMonitors{Interval: "30"}}, []string{"input.monitoring.podMonitors.interval"}},
		"Labels":    {"An API server refuses such a label.", MonitoringSettings{PodMonitors: &PodMonitors{Labels: map[string]string{"a b": "x"}}}, []string{"input.monitoring.podMonitors.labels[a b]"}},
		"NoScheme":  {"Engines and endpoint pickers read URLs.", tracing("collector:4317"), []string{"input.monitoring.tracing.endpoint"}},
		"NoPort":    {"OTLP has no default port in all of them.", tracing("http://collector"), []string{"input.monitoring.tracing.endpoint"}},
		"TLS":       {"One of the endpoint pickers knows no TLS.", tracing("https://collector:4317"), []string{"input.monitoring.tracing.endpoint"}},
		"Sampling":  {"It is a percentage.", MonitoringSettings{Tracing: &Tracing{Endpoint: "http://c:4317", SamplingPercent: ptr.To[int32](101)}}, []string{"input.monitoring.tracing.samplingPercent"}},
		"Multiline": {"It becomes one word of a command line.", tracing("http://c:4317\n--x"), []string{"input.monitoring.tracing.endpoint"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range validateMonitoring(field.NewPath("input", "monitoring"), &tc.in) {
				got = append(got, e.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDefaultMonitoring(t *testing.T) {
	in := &Input{Monitoring: MonitoringSettings{Tracing: &Tracing{Endpoint: "http://c:4317"}}}
	Default(in)
	if got := ptr.Deref(in.Monitoring.Tracing.SamplingPercent, -1); got != 10 {
		t.Errorf("samplingPercent is %d, want 10", got)
	}
}

// TestTracingPassword hides what may be a password, because tenants read the error.
func TestTracingPassword(t *testing.T) {
	in := MonitoringSettings{Tracing: &Tracing{Endpoint: "http://user:s3cret@collector:4317"}}
	got := validateMonitoring(field.NewPath("input"), &in).ToAggregate().Error()
	if !strings.Contains(got, "(hidden)") || strings.Contains(got, "s3cret") {
		t.Errorf("got %s", got)
	}
}
