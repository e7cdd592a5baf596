package monitor

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

func rendered(t *testing.T, p *plan.Plan, c *plan.ClusterPlan) map[string]podMonitor {
	t.Helper()
	all, err := Render(p, c)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]podMonitor{}
	for _, o := range all {
		m := podMonitor{}
		if errs := kube.Decode(o.Resource, nil, &m); len(errs) > 0 {
			t.Fatal(errs)
		}
		got[o.Key.String()] = m
	}
	return got
}

// TestRender proves that each role that runs in a cluster has a PodMonitor for its leaders, and the router one
// for its endpoint picker. Every series tells the service by its own name and namespace, also where the pods are
// in another namespace.
func TestRender(t *testing.T) {
	decode := &plan.Role{Name: "decode", Metrics: &plan.Metrics{Container: "vllm", Port: 8200}}
	tls := &plan.Role{Name: "tls", Metrics: &plan.Metrics{Container: "main", Port: 8443, HTTPS: true}}
	silent := &plan.Role{Name: "silent"}
	p := &plan.Plan{
		Service:     naming.Identity{Name: "chat", Namespace: "team"},
		PodMonitors: &inputv1alpha1.PodMonitors{Labels: map[string]string{"release": "prometheus", naming.LabelService: "other"}, Interval: "15s"},
		Router:      &plan.Router{Name: "router", Tracing: []corev1.EnvVar{}},
	}
	c := &plan.ClusterPlan{Base: "chat-abc", Target: scheduling.Target{Namespace: "shared"}, Groups: []plan.Group{
		{Replicas: []plan.Replica{{Role: decode}, {Role: decode}, {Role: silent}}},
		{Index: 1, Replicas: []plan.Replica{{Role: decode}, {Role: tls}}},
	}}
	labels := func(role string) []relabeling {
		return []relabeling{{TargetLabel: "inferenceservice_namespace", Replacement: "team"}, {TargetLabel: "inferenceservice", Replacement: "chat"}, {TargetLabel: "role", Replacement: role}}
	}
	monitor := func(name string, pods map[string]string, e endpoint) podMonitor {
		e.Interval = "15s"
		return podMonitor{
			APIVersion: "monitoring.coreos.com/v1", Kind: "PodMonitor",
			Metadata: kube.Metadata{Name: name, Namespace: "shared", Labels: map[string]string{"release": "prometheus", "fusioninfer.io/service": "chat-abc"}},
			Spec:     spec{Selector: selector{MatchLabels: pods}, PodMetricsEndpoints: []endpoint{e}, SampleLimit: 50000, BodySizeLimit: "32MB"},
		}
	}
	leaders := func(role string) map[string]string {
		return map[string]string{"fusioninfer.io/service": "chat-abc", "fusioninfer.io/role-name": role, "leaderworkerset.sigs.k8s.io/worker-index": "0"}
	}
	address := func(container, port string) []relabeling {
		return []relabeling{
			{SourceLabels: []string{"__meta_kubernetes_pod_container_name"}, Regex: container, Action: "keep"},
			{SourceLabels: []string{"__meta_kubernetes_pod_ip"}, Regex: "([^:]+)", TargetLabel: "__address__", Replacement: "$1:" + port},
			{SourceLabels: []string{"__meta_kubernetes_pod_ip"}, Regex: "(.*:.*)", TargetLabel: "__address__", Replacement: "[$1]:" + port},
		}
	}
	own := []relabeling{{SourceLabels: []string{"__name__"}, Regex: "fusioninfer_.*", Action: "drop"}}
	want := map[string]podMonitor{
		"podmonitor/role/decode": monitor("chat-abc-decode-engines", leaders("decode"), endpoint{Relabelings: append(address("vllm", "8200"), labels("decode")...), MetricRelabelings: own}),
		"podmonitor/role/tls": monitor("chat-abc-tls-engines", leaders("tls"), endpoint{
			Scheme: "https", TLSConfig: &tlsConfig{InsecureSkipVerify: true}, Relabelings: append(address("main", "8443"), labels("tls")...), MetricRelabelings: own,
		}),
		"podmonitor/epp": monitor("chat-abc-epp", map[string]string{"fusioninfer.io/service": "chat-abc", "fusioninfer.io/component-type": "router"},
			endpoint{Port: "metrics", Relabelings: labels("router")}),
	}
	if diff := cmp.Diff(want, rendered(t, p, c)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.Router = nil
	if got := rendered(t, p, c); len(got) != 2 {
		t.Errorf("without a router there are %d PodMonitors, want 2", len(got))
	}
}

// TestRenderFormer proves that engines of former templates are read where they serve their metrics, beside those of the newest one.
func TestRenderFormer(t *testing.T) {
	role := &plan.Role{Name: "w", Metrics: &plan.Metrics{Container: "vllm", Port: 8000}}
	c := &plan.ClusterPlan{
		Groups:        []plan.Group{{Replicas: []plan.Replica{{Role: role}}}},
		FormerMetrics: map[string]plan.FormerMetrics{"w": {Newest: "abc", Metrics: []plan.Metrics{{Container: "engine", Port: 8000}, {Container: "vllm", Port: 8000, HTTPS: true}}}},
	}
	var got []string
	for _, e := range rendered(t, &plan.Plan{PodMonitors: &inputv1alpha1.PodMonitors{Interval: "15s"}}, c)["podmonitor/role/w"].Spec.PodMetricsEndpoints {
		got = append(got, e.Scheme+" "+e.Relabelings[0].Regex+" "+e.Relabelings[1].Replacement+" "+e.Interval)
		last := e.Relabelings[len(e.Relabelings)-1]
		got = append(got, last.Action+" "+last.SourceLabels[0]+" "+last.Regex)
	}
	const label = "__meta_kubernetes_pod_label_fusioninfer_io_spec_hash abc"
	if diff := cmp.Diff([]string{" vllm $1:8000 15s", "keep " + label, " engine $1:8000 15s", "drop " + label, "https vllm $1:8000 15s", "drop " + label}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRenderStopped proves that a role that stops without requests keeps its PodMonitor. Prometheus has the last
// values of pods for five minutes if it loses the PodMonitor, too, and KEDA would take them for requests.
func TestRenderStopped(t *testing.T) {
	metrics := &plan.Metrics{Container: "vllm", Port: 8000}
	p := &plan.Plan{
		PodMonitors: &inputv1alpha1.PodMonitors{},
		Roles: []*plan.Role{
			{Name: "stops", Metrics: metrics, Autoscaler: &plan.Autoscaler{Min: 0}},
			{Name: "stays", Metrics: metrics, Autoscaler: &plan.Autoscaler{Min: 1}},
			{Name: "silent", Autoscaler: &plan.Autoscaler{Min: 0}},
			{Name: "static", Metrics: metrics},
		},
	}
	got := slices.Sorted(maps.Keys(rendered(t, p, &plan.ClusterPlan{})))
	if diff := cmp.Diff([]string{"podmonitor/role/stops"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
