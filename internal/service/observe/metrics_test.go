package observe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/monitor"
)

// metricsIn reads a PodMonitor of a role that Crossplane observes.
func metricsIn(t *testing.T, c *plan.ClusterPlan, role *plan.Role, observed *structpb.Struct) []plan.Metrics {
	t.Helper()
	k := c.MonitorKey(role)
	state := Read(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{k.String(): {Resource: observed}}}}), &plan.Plan{})
	return state.Metrics(k)
}

// TestMetricsAreReadBack proves that it is read of a PodMonitor, or of its Object's manifest, where engines serve metrics.
func TestMetricsAreReadBack(t *testing.T) {
	role := &plan.Role{Name: "w", Metrics: &plan.Metrics{Container: "vllm", Port: 8000}}
	former := []plan.Metrics{{Container: "engine", Port: 8000, HTTPS: true}, {Container: "vllm", Port: 8200}}
	c := &plan.ClusterPlan{Groups: []plan.Group{{Replicas: []plan.Replica{{Role: role}}}}, FormerMetrics: map[string]plan.FormerMetrics{"w": {Newest: "abc", Metrics: former}}}
	all, err := monitor.Render(&plan.Plan{PodMonitors: &inputv1alpha1.PodMonitors{}}, c)
	if err != nil || len(all) != 1 {
		t.Fatal(len(all), err)
	}
	want := append([]plan.Metrics{*role.Metrics}, former...)
	if diff := cmp.Diff(want, metricsIn(t, c, role, all[0].Resource)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	there := structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"manifest": structpb.NewStructValue(all[0].Resource)}})
	object := &structpb.Struct{Fields: map[string]*structpb.Value{
		"apiVersion": structpb.NewStringValue("kubernetes.m.crossplane.io/v1alpha1"), "kind": structpb.NewStringValue("Object"),
		"spec": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"forProvider": there}}),
	}}
	if diff := cmp.Diff(want, metricsIn(t, c, role, object)); diff != "" {
		t.Errorf("there: -want, +got:\n%s", diff)
	}
}

// TestMetricsOfOthers proves that what somebody else has written into a PodMonitor is not made where engines serve metrics.
func TestMetricsOfOthers(t *testing.T) {
	const container, address = `{"sourceLabels": ["__meta_kubernetes_pod_container_name"], "action": "keep", "regex": "vllm"}`, `{"targetLabel": "__address__", "replacement": "$1:8000"}`
	cases := map[string]struct {
		reason, endpoints string
		want              []plan.Metrics
	}{
		"Twice":     {"The list may have it twice.", `[{"relabelings": [` + container + `, ` + address + `]}, {"relabelings": [` + container + `, ` + address + `]}]`, []plan.Metrics{{Container: "vllm", Port: 8000}}},
		"AnyName":   {"The regular expression is no name of a container.", `[{"relabelings": [` + strings.Replace(container, "vllm", ".*", 1) + `, ` + address + `]}]`, nil},
		"Elsewhere": {"The address has no port.", `[{"relabelings": [` + container + `, ` + strings.Replace(address, "$1:8000", "example.com", 1) + `]}]`, nil},
		"PortRange": {"There is no such port.", `[{"relabelings": [` + container + `, ` + strings.Replace(address, "8000", "65536", 1) + `]}]`, nil},
		"NoPort":    {"It is the endpoint picker's.", `[{"port": "metrics", "relabelings": []}]`, nil},
		"Garbled":   {"It has no endpoints.", `"x"`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON([]byte(`{"kind": "PodMonitor", "spec": {"podMetricsEndpoints": ` + tc.endpoints + `}}`)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, metricsIn(t, &plan.ClusterPlan{}, &plan.Role{Name: "w"}, s)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
