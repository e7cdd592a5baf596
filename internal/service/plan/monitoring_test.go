package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// planned plans a role of one container on a platform that monitors and traces.
func planned(t *testing.T, kind v1alpha1.ComponentType, container string, change func(*inputv1alpha1.Input)) (*Role, []Warning) {
	t.Helper()
	in := &inputv1alpha1.Input{Monitoring: inputv1alpha1.MonitoringSettings{
		PodMonitors: &inputv1alpha1.PodMonitors{},
		Tracing:     &inputv1alpha1.Tracing{Endpoint: "http://c:4317", SamplingPercent: ptr.To[int32](5)},
	}}
	if change != nil {
		change(in)
	}
	inputv1alpha1.Default(in)
	role := v1alpha1.Role{Name: "d", ComponentType: kind, Template: document(t, "spec: {containers: [{"+container+"}]}")}
	got, warnings, errs := planRole(1, role, loads{}, in, true)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return got, warnings
}

// TestMetrics proves that Prometheus scrapes engines where they serve metrics, and nothing else.
func TestMetrics(t *testing.T) {
	cases := map[string]struct {
		reason    string
		kind      v1alpha1.ComponentType
		container string
		off       bool
		want      *Metrics
		warned    string
	}{
		"Off":        {reason: "The platform team wants none.", kind: v1alpha1.ComponentTypeWorker, container: `name: vllm, image: vllm/vllm-openai:v0.19.0`, off: true},
		"Worker":     {reason: "At its port, though the template declares none.", kind: v1alpha1.ComponentTypeWorker, container: `name: main, image: vllm/vllm-openai:v0.19.0, args: [--port=9000]`, want: &Metrics{Container: "main", Port: 9000}},
		"Decode":     {reason: "At the engine, not at the routing sidecar.", kind: decoder, container: `name: vllm, image: vllm/vllm-openai:v0.19.0`, want: &Metrics{Container: "vllm", Port: 8200}},
		"TLS":        {reason: "The engine serves TLS.", kind: v1alpha1.ComponentTypeWorker, container: `name: vllm, image: vllm/vllm-openai:v0.19.0, args: [--ssl-certfile=/c]`, want: &Metrics{Container: "vllm", Port: 8000, HTTPS: true}},
		"Localhost":  {reason: "Nobody outside of the pod reaches it.", kind: v1alpha1.ComponentTypeWorker, container: `name: vllm, image: vllm/vllm-openai:v0.19.0, args: [--host=127.0.0.1]`},
		"SGLang":     {reason: "SGLang has none without the flag.", kind: v1alpha1.ComponentTypeWorker, container: `name: main, image: lmsysorg/sglang:v0.5.18, command: [python3, -m, sglang.launch_server, --host=0.0.0.0]`, warned: "SGLang serves metrics only with --enable-metrics"},
		"SGLangOn":   {reason: "With the flag it has.", kind: v1alpha1.ComponentTypeWorker, container: `name: main, image: lmsysorg/sglang:v0.5.18, command: [python3, -m, sglang.launch_server, --host=0.0.0.0, --enable-metrics]`, want: &Metrics{Container: "main", Port: 8000}},
		"NoStats":    {reason: "vLLM has none with the flag.", kind: v1alpha1.ComponentTypeWorker, container: `name: vllm, image: vllm/vllm-openai:v0.19.0, args: [--disable_log_stats]`, warned: "vLLM serves no metrics with --disable-log-stats"},
		"Script":     {reason: "Nor in a script.", kind: v1alpha1.ComponentTypeWorker, container: `name: vllm, image: vllm/vllm-openai:v0.19.0, command: [sh, -c, exec vllm serve m --disable-log-stats]`, warned: "vLLM serves no metrics with --disable-log-stats"},
		"NoRequests": {reason: "It logs less, and has metrics.", kind: v1alpha1.ComponentTypeWorker, container: `name: vllm, image: vllm/vllm-openai:v0.10.0, args: [--disable-log-requests]`, want: &Metrics{Container: "vllm", Port: 8000}},
		"NoStatsOff": {reason: "Nobody wants any.", kind: v1alpha1.ComponentTypeWorker, container: `name: vllm, image: vllm/vllm-openai:v0.19.0, args: [--disable-log-stats]`, off: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, warnings := planned(t, tc.kind, tc.container, func(in *inputv1alpha1.Input) {
				if tc.off {
					in.Monitoring.PodMonitors = nil
				}
			})
			if diff := cmp.Diff(tc.want, got.Metrics); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			warned := ""
			for _, w := range warnings {
				if why, ok := strings.CutPrefix(w.Message, "the engine is not monitored: "); ok {
					warned = why
				}
			}
			if diff := cmp.Diff(tc.warned, warned); diff != "" {
				t.Errorf("%s\nwarning: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTracing proves that only those engines and sidecars are told to send traces that are known to be able to.
func TestTracing(t *testing.T) {
	env := []corev1.EnvVar{{Name: "OTEL_SERVICE_NAME", Value: "d"}, {Name: "OTEL_TRACES_SAMPLER", Value: "parentbased_traceidratio"}, {Name: "OTEL_TRACES_SAMPLER_ARG", Value: "0.05"}}
	const flag = "--otlp-traces-endpoint"
	cases := map[string]struct {
		reason    string
		container string
		change    func(*inputv1alpha1.Input)
		flag      bool
		env       []corev1.EnvVar
		sidecar   int
	}{
		"Known":      {reason: "Engine and sidecar send traces.", container: `name: vllm, image: vllm/vllm-openai:v0.19.0`, flag: true, env: env, sidecar: 5},
		"OwnName":    {reason: "What the template says stays.", container: `name: vllm, image: vllm/vllm-openai:v0.19.0, env: [{name: OTEL_SERVICE_NAME, value: mine}]`, flag: true, env: env[1:], sidecar: 5},
		"Old":        {reason: "Its image has no OpenTelemetry.", container: `name: vllm, image: vllm/vllm-openai:v0.12.0`, sidecar: 5},
		"Unknown":    {reason: "Nobody knows what the image has.", container: `name: vllm, image: example.com/vllm:v0.19.0, command: [vllm, serve, m]`, sidecar: 5},
		"Digest":     {reason: "Nobody knows which release it is.", container: `name: vllm, image: vllm/vllm-openai:latest`, sidecar: 5},
		"OldSidecar": {reason: "It does not know the flag.", container: `name: vllm, image: vllm/vllm-openai:v0.12.0`, change: func(in *inputv1alpha1.Input) { in.Sidecar.Image = "example.com/sidecar:v0.8.0" }},
		"NoStats":    {reason: "It would end at its first answer.", container: `name: vllm, image: vllm/vllm-openai:v0.19.0, args: [--disable-log-stats]`, sidecar: 5},
		"Off":        {reason: "There is no collector.", container: `name: vllm, image: vllm/vllm-openai:v0.19.0`, change: func(in *inputv1alpha1.Input) { in.Monitoring.Tracing = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _ := planned(t, decoder, tc.container, tc.change)
			words := append(got.Leader.words(), append(got.Leader.Command, got.Leader.Args...)...)
			if has := strings.Contains(strings.Join(words, " "), flag+" http://c:4317"); has != tc.flag {
				t.Errorf("%s The command is %q", tc.reason, words)
			}
			var otel []corev1.EnvVar
			for _, e := range got.Leader.Env {
				if strings.HasPrefix(e.Name, "OTEL_") {
					otel = append(otel, e)
				}
			}
			if diff := cmp.Diff(tc.env, otel); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if n := len(got.Sidecar.Tracing); n != tc.sidecar {
				t.Errorf("%s The sidecar has %d variables, want %d", tc.reason, n, tc.sidecar)
			}
		})
	}
}

// TestFormerMetrics proves that engines of pods that may have a former template are monitored as before, and that only those of the
// newest one are otherwise.
func TestFormerMetrics(t *testing.T) {
	newest, one, two := Metrics{Container: "new", Port: 8000}, Metrics{Container: "one", Port: 8000}, Metrics{Container: "new", Port: 8000, HTTPS: true}
	serves := rollout.State{Exists: true, Revision: "new", Serving: true}
	held := rollout.State{Exists: true, Revision: "old", Serving: true}
	cases := map[string]struct {
		reason  string
		state   rollout.State
		held    bool
		silent  bool
		before  []Metrics
		want    []Metrics
		another bool
	}{
		"Serves":    {reason: "Its pods are of the newest template.", state: serves, before: []Metrics{newest, one}},
		"Held":      {reason: "Its pods are of a former template.", state: held, held: true, before: []Metrics{one}, want: []Metrics{one}},
		"Again":     {reason: "The newest one comes from the role.", state: held, held: true, before: []Metrics{newest, one, two}, want: []Metrics{one, two}},
		"BeingMade": {reason: "Its pods are being replaced.", state: rollout.State{Exists: true, Revision: "new"}, before: []Metrics{newest, one}, want: []Metrics{one}},
		"Most":      {reason: "The replicas have the oldest one.", state: held, held: true, before: []Metrics{one, two, {Port: 1}, {Port: 2}, {Port: 3}}, want: []Metrics{two, {Port: 1}, {Port: 2}, {Port: 3}}},
		"Absent":    {reason: "It starts with the newest template.", before: []Metrics{one}},
		"Silent":    {reason: "The newest engines have no metrics, so nothing scales the role.", state: held, held: true, silent: true, before: []Metrics{one}},
		"Another":   {reason: "The replica is of another role.", state: held, held: true, another: true, before: []Metrics{one}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role, of := &Role{Name: "w", Metrics: &newest}, &Role{Name: "other"}
			if !tc.another {
				of = role
			}
			if tc.silent {
				role.Metrics = nil
			}
			r := Replica{Role: of, Held: tc.held, Updated: tc.state.Exists && !tc.held}
			p := &Plan{Roles: []*Role{role}, Clusters: []ClusterPlan{{Groups: []Group{{Replicas: []Replica{r}}}}}}
			p.keepMetrics(&RunningView{
				Revision: map[string]string{"w": "new"},
				Replica:  func(key.Key) rollout.State { return tc.state },
				Metrics:  func(key.Key) []Metrics { return slices.Clone(tc.before) },
			})
			former := p.Clusters[0].FormerMetrics["w"]
			if len(former.Metrics) > 0 && former.Newest != "new" {
				t.Errorf("the newest revision is %q", former.Newest)
			}
			if diff := cmp.Diff(tc.want, former.Metrics); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
