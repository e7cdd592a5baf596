package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestWake proves that a role stops with a target only where a request waits until it runs again, and starts it.
func TestWake(t *testing.T) {
	const (
		scaling = `scaling: {minReplicas: 0, maxReplicas: 4, target: {waitingRequests: 3}}`
		router  = `{name: router, componentType: router}`
		worker  = `{name: w, componentType: worker, ` + scaling + `, lifecycle: {startupSeconds: 600}, template: ` + vllmPod + `}`
		at      = `spec.roles[1].scaling.minReplicas: Invalid value: 0: must be 1 or more with target `
		gates   = `plugins: [{type: queue-scorer}]\nschedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]\n`
		config  = `apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n` + gates
	)
	cases := map[string]struct {
		reason, roles, input, placement string
		ttl                             time.Duration
		refused                         string
	}{
		"Wakes": {reason: "A request waits as long as the engine may take to start.", roles: router + ", " + worker, ttl: 10 * time.Minute},
		"LLMD":  {reason: "So it does in the other endpoint picker.", roles: router + ", " + worker, input: `, endpointPicker: {dialect: LLMD}`, ttl: 10 * time.Minute},
		"OwnConfig": {
			reason: "A configuration of the user's says for how long.",
			roles:  `{name: router, componentType: router, endpointPickerConfig: "` + config + `featureGates: [flowControl]"}, ` + worker,
		},
		"NoQueue": {
			reason: "A request would be refused at once.", roles: `{name: router, componentType: router, endpointPickerConfig: "` + config + `"}, ` + worker,
			refused: at + "and an endpointPickerConfig without flowControl in its featureGates: no request would wait until the role has started",
		},
		"NoRouter": {
			reason: "There is nothing to wait in.", roles: worker,
			refused: strings.Replace(at, "[1]", "[0]", 1) + "and without a router: no request could wait until the role has started",
		},
		"Older": {
			reason: "This endpoint picker looks for pods first.", roles: router + ", " + worker, input: `, endpointPicker: {dialect: GAIE, image: "registry/epp:v1.2.1"}`,
			refused: at + "with the endpoint picker registry/epp:v1.2.1: requests are known to wait in v1.5.0 and later",
		},
		"NoStats": {
			reason: "A picker that reads no metrics sends no request to the engine.", roles: router + ", " + strings.Replace(worker, "--model=m", "--model=m, --disable-log-stats", 1),
			refused: at + "and an engine whose metrics the endpoint picker cannot read, so that requests wait for ever: vLLM serves no metrics with --disable-log-stats",
		},
		"SGLangNoMetrics": {
			reason: "SGLang has none without a flag.", roles: router + ", " + strings.Replace(strings.Replace(worker, vllmPod, sglangPod, 1), ", --enable-metrics", "", 1),
			refused: at + "and an engine whose metrics the endpoint picker cannot read, so that requests wait for ever: SGLang serves metrics only with --enable-metrics",
		},
		"Beside": {
			reason: "The other role answers all requests.", roles: router + ", " + worker + `, {name: always, componentType: worker, template: ` + vllmPod + `}`,
			refused: at + "beside the role always, which answers all requests while this one is stopped, so that nothing starts it: give both roles a target and minReplicas 0, or none",
		},
		"BesideStopped": {
			reason: "The other role answers nothing.", roles: router + ", " + worker + `, {name: stopped, componentType: worker, replicas: 0, template: ` + vllmPod + `}`,
			ttl: 10 * time.Minute,
		},
		"BesideUnknown": {
			reason: "Both stop together.", roles: router + ", " + worker + `, {name: other, componentType: worker, ` + scaling + `, template: {spec: {containers: [{name: engine, image: triton}]}}}`,
			refused: "[" + at + "beside the role other, whose engine is neither vLLM nor SGLang: nothing would tell whether it answers requests, " +
				"spec.roles[2].scaling.target: Forbidden: must be left out, because the engine is neither vLLM nor SGLang: use metrics or triggers, which name the metric]",
		},
		"BesidePair": {
			reason: "The pool has the pods of all roles.", roles: router + ", " + worker + `, {name: p, componentType: prefiller, replicas: 1, template: ` + vllmPod + `}, {name: d, componentType: decoder, replicas: 1, template: ` + vllmPod + `}`,
			refused: at + "beside the role d, which answers all requests while this one is stopped, so that nothing starts it: give both roles a target and minReplicas 0, or none",
		},
		"NoPicker": {
			reason: "There is nothing to wait in.", roles: `{name: router, componentType: router, replicas: 0}, ` + worker,
			refused: at + "and no endpoint picker: no request could wait until the role has started",
		},
		"Spread": {
			reason: "The replica may start where no request waits.", roles: router + ", " + worker, placement: `, placement: {policy: Spread, clusterSelector: {}}`,
			refused: at + "with the policy Spread: a request waits in the endpoint picker of one cluster, and the first replica may start in another. Use the policy Failover",
		},
		"Pair": {
			reason: "A request would not wait for the second one of them.", roles: router + `, {name: p, componentType: prefiller, ` + scaling + `, template: ` + vllmPod + `}, {name: d, componentType: decoder, replicas: 1, template: ` + vllmPod + `}`,
			refused: at + "for prefill and decode: a request waits until there is any pod, and these need each other",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, `{roles: [`+tc.roles+`]`+tc.placement+`}`, `{`+prometheus+tc.input+`}`)
			if refused(t, tc.reason, tc.refused, err) {
				return
			}
			if p.Router.QueueTTL != tc.ttl {
				t.Errorf("%s A request waits for %s, want %s", tc.reason, p.Router.QueueTTL, tc.ttl)
			}
			queue := map[bool]string{true: "llm_d_epp_flow_control_queue_size", false: "inference_extension_flow_control_queue_size"}[name == "LLMD"]
			want := []v1alpha1.ScalingTrigger{
				{Type: "prometheus", Name: "target", MetricType: "AverageValue", Metadata: map[string]string{
					"serverAddress": "http://p:9090", "ignoreNullValues": "false", "threshold": "3", "activationThreshold": "1000000000",
					"query": fresh(waitingInEngine, "[180s]", readPicker),
				}},
				{Type: "prometheus", Name: "requests", MetricType: "AverageValue", Metadata: map[string]string{
					"serverAddress": "http://p:9090", "ignoreNullValues": "false", "threshold": "1000000000", "activationThreshold": "0",
					"query": `(sum(` + queue + `{inferenceservice_namespace="ns",inferenceservice="svc",role="router"}) or 0 * sum(up{inferenceservice_namespace="ns",inferenceservice="svc",role="router"} == 1))` +
						busy("w", "120s") + map[bool]string{true: busy("stopped", "120s")}[name == "BesideStopped"],
				}},
			}
			if diff := cmp.Diff(want, p.Roles[0].Autoscaler.Triggers); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWakeUnknown proves that a role may stop whose engine is not known to have no metrics.
func TestWakeUnknown(t *testing.T) {
	for name, command := range map[string]string{
		"Script":    "[/start.sh, --host=0.0.0.0]",
		"File":      "[python3, -m, sglang.launch_server, --host=0.0.0.0, --config=/c.yaml]",
		"Variables": "[python3, -m, sglang.launch_server, --host=0.0.0.0, $(MODEL), $(MORE)]",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := build(t, `{roles: [{name: router, componentType: router}, {name: w, componentType: worker, scaling: {minReplicas: 0, maxReplicas: 4, target: {waitingRequests: 3}},
				template: {spec: {containers: [{name: main, image: lmsysorg/sglang:v0.5.18, command: `+command+`}]}}}]}`, `{`+prometheus+`}`)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// busy is the part of the query about the engines of a role.
func busy(role, minutes string) string {
	of := `inferenceservice_namespace="ns",inferenceservice="svc",role="` + role + `"}`
	waiting := `{__name__=~"vllm:num_requests_waiting|sglang:num_queue_reqs|sglang:num_decode_prealloc_queue_reqs",` + of
	running, generated := `{__name__=~"vllm:num_requests_running|sglang:num_running_reqs",`+of, `{__name__=~"vllm:generation_tokens_total|sglang:generation_tokens_total",`+of
	return ` + (sum(` + waiting + `) or vector(0)) + (sum(` + running + `) or vector(0)) + (sum(rate(` + generated + `[` + minutes + `])) or vector(0))` +
		` + (count(` + running + ` unless ` + running + ` offset ` + minutes + `) or vector(0))`
}

// TestWakeTogether proves that each of several roles runs while requests are answered by any of them, and for
// as long as KEDA may take to read the metrics of one that has started.
func TestWakeTogether(t *testing.T) {
	role := func(name string) string {
		return `{name: ` + name + `, componentType: worker, scaling: {minReplicas: 0, maxReplicas: 4, target: {waitingRequests: 3}}, template: ` + vllmPod + `}`
	}
	p, err := build(t, `{roles: [{name: router, componentType: router}, `+role("a")+`, `+role("b")+`]}`, `{`+strings.Replace(prometheus, "scaling: {", "scaling: {pollingSeconds: 300, ", 1)+`}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Roles {
		query := r.Autoscaler.Triggers[1].Metadata["query"]
		if _, engines, _ := strings.Cut(query, `role="router"} == 1))`); engines != busy("a", "600s")+busy("b", "600s") {
			t.Errorf("the role %s runs while %s", r.Name, query)
		}
	}
}

// TestWakeTokens proves that a role runs until its target has a result, which takes longer for tokens.
func TestWakeTokens(t *testing.T) {
	const young = ` unless ` + readEngine + ` offset `
	for target, want := range map[string]string{"waitingRequests": "120s", "tokensPerSecond": "420s"} {
		p, err := build(t, `{roles: [{name: router, componentType: router}, {name: w, componentType: worker, scaling: {minReplicas: 0, maxReplicas: 4, target: {`+target+`: 3}}, template: `+vllmPod+`}]}`, `{`+prometheus+`}`)
		if err != nil {
			t.Fatal(err)
		}
		if query := p.Roles[0].Autoscaler.Triggers[1].Metadata["query"]; !strings.Contains(query, young+want+")") {
			t.Errorf("%s: an engine has not started for %s: %s", target, want, query)
		}
	}
}

// TestSeldomRead warns of a target whose metrics are read so seldom that its query may have no result.
func TestSeldomRead(t *testing.T) {
	const worker = `{name: w, componentType: worker, scaling: {maxReplicas: 4, target: {tokensPerSecond: 3}}, template: ` + vllmPod + `}`
	for interval, want := range map[string]bool{"121s": true, "3m": true, "2m": false, "30s": false} {
		p, err := build(t, `{roles: [`+worker+`]}`, `{scaling: {prometheus: {serverAddress: "http://p:9090"}}, monitoring: {podMonitors: {interval: `+interval+`}}}`)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(p.Warnings, func(w Warning) bool { return strings.HasPrefix(w.Message, "its metrics are read every "+interval) })
		if got != want {
			t.Errorf("every %s: warned is %t, want %t: %v", interval, got, want, p.Warnings)
		}
	}
}

// TestRecently plans a role that may stop, with other intervals of KEDA and Prometheus.
func TestRecently(t *testing.T) {
	for name, c := range map[string]struct {
		in   inputv1alpha1.Input
		want string
	}{
		"Defaults":       {want: "120s"},
		"Often":          {in: inputv1alpha1.Input{Scaling: inputv1alpha1.ScalingSettings{PollingSeconds: ptr.To[int32](5)}}, want: "120s"},
		"KEDA is seldom": {in: inputv1alpha1.Input{Scaling: inputv1alpha1.ScalingSettings{PollingSeconds: ptr.To[int32](90)}}, want: "180s"},
		"Prometheus is, too": {in: inputv1alpha1.Input{
			Scaling:    inputv1alpha1.ScalingSettings{PollingSeconds: ptr.To[int32](90)},
			Monitoring: inputv1alpha1.MonitoringSettings{PodMonitors: &inputv1alpha1.PodMonitors{Interval: "2m"}},
		}, want: "240s"},
	} {
		if got := recently(&c.in, 0); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestQueueBytes proves that what waits in an endpoint picker fits into its memory.
func TestQueueBytes(t *testing.T) {
	const worker = `{name: w, componentType: worker, scaling: {minReplicas: 0, maxReplicas: 4, target: {waitingRequests: 3}}, template: ` + vllmPod + `}`
	for resources, want := range map[string]string{"": "134217728", "limits: {memory: 1Gi}": "33554432", "requests: {cpu: 1}": "134217728"} {
		p, err := build(t, `{roles: [{name: router, componentType: router}, `+worker+`]}`, `{`+prometheus+`, endpointPicker: {resources: {`+resources+`}}}`)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(p.Router.Config, `maxBytes: "`+want+`"`) {
			t.Errorf("with the resources {%s}, want %s bytes:\n%s", resources, want, p.Router.Config)
		}
	}
}
