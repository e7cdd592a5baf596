package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func TestValidateScaling(t *testing.T) {
	address := func(a string) ScalingSettings {
		return ScalingSettings{Prometheus: PrometheusSettings{ServerAddress: a}}
	}
	const at = "input.scaling.prometheus.serverAddress"
	cases := map[string]struct {
		reason string
		in     ScalingSettings
		want   []string
	}{
		"None":        {"Nothing is required.", ScalingSettings{}, nil},
		"Good":        {"All fields.", ScalingSettings{Provider: ScalingProviderKEDA, Prometheus: PrometheusSettings{ServerAddress: "https://[::1]:9090/select/0/prometheus"}, PollingSeconds: ptr.To[int32](1), CooldownSeconds: ptr.To[int32](0)}, nil},
		"Provider":    {"There are two.", ScalingSettings{Provider: "VPA"}, []string{"input.scaling.provider"}},
		"Source":      {"There are two.", ScalingSettings{Source: "Grafana"}, []string{"input.scaling.source"}},
		"HPASource":   {"An adapter has its own.", ScalingSettings{Provider: ScalingProviderHPA, Source: ScalingSourceEndpointPicker}, []string{"input.scaling.source"}},
		"Numbers":     {"Both are bounded.", ScalingSettings{PollingSeconds: ptr.To[int32](0), CooldownSeconds: ptr.To[int32](86401)}, []string{"input.scaling.pollingSeconds", "input.scaling.cooldownSeconds"}},
		"NoScheme":    {"KEDA reads a URL.", address("prometheus:9090"), []string{at}},
		"Credentials": {"Everybody who may read ScaledObjects would see them.", address("http://admin:secret@prometheus:9090"), []string{at}},
		"Query":       {"KEDA adds one.", address("http://prometheus:9090?x=y"), []string{at}},
		"Multiline":   {"It is one line.", address("http://prometheus:9090\n"), []string{at}},
		"Long":        {"It is bounded.", address("http://" + strings.Repeat("a", 600)), []string{at}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range validateScaling(field.NewPath("input", "scaling"), &tc.in) {
				got = append(got, e.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHiddenAddress shows that an error repeats the address of Prometheus, unless it may have a password.
func TestHiddenAddress(t *testing.T) {
	const right = ": must be http:// or https://, a host, a port and a path if there is one, such as http://prometheus.monitoring:9090"
	cases := map[string]struct {
		reason, address, want string
	}{
		"NoScheme":       {"Nothing in it is secret.", "prometheus:9090", `"prometheus:9090"`},
		"NoSchemeOrPort": {"Nor is a host.", "prometheus.monitoring", `"prometheus.monitoring"`},
		"OtherScheme":    {"Nor is a scheme.", "grpc://prometheus:9090", `"grpc://prometheus:9090"`},
		"Long":           {"The value does not hide the problem.", "prometheus" + strings.Repeat("a", 600), `"prometheus` + strings.Repeat("a", 70) + `..."`},
		"Path":           {"A path may have a token.", "prometheus:9090/api/secret", `"(hidden)"`},
		"Userinfo":       {"A password stands before an @.", "http://admin:secret@prometheus:9090", `"(hidden)"`},
		"UserinfoOnly":   {"A user may be a token.", "admin:secret@prometheus", `"(hidden)"`},
		"EncodedAt":      {"Somebody may encode the @.", "http://admin:secret%40prometheus:9090", `"(hidden)"`},
		"NoPort":         {"What stands before a colon may be a user.", "admin:secret", `"(hidden)"`},
		"Query":          {"A query may have a token.", "prometheus:9090?token=secret", `"(hidden)"`},
		"Fragment":       {"So may a fragment.", "prometheus:9090#secret", `"(hidden)"`},
		"Unreadable":     {"Of what is no address, nobody knows.", "prometheus 9090 admin secret", `"(hidden)"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := ScalingSettings{Prometheus: PrometheusSettings{ServerAddress: tc.address}}
			errs := validateScaling(field.NewPath("input", "scaling"), &s)
			want := "input.scaling.prometheus.serverAddress: Invalid value: " + tc.want + right
			if diff := cmp.Diff(want, errs[len(errs)-1].Error()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDefaultScaling(t *testing.T) {
	in := &Input{}
	Default(in)
	if in.Scaling.Provider != ScalingProviderKEDA {
		t.Errorf("the provider is %q, want KEDA", in.Scaling.Provider)
	}
}
