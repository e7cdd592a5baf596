package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// TestPickerTarget plans targets that endpoint pickers measure.
func TestPickerTarget(t *testing.T) {
	const (
		router    = `{name: router, componentType: router}`
		because   = "must be left out, because KEDA reads the metrics of endpoint pickers (scaling.source in the Composition's input), "
		unreached = "and does not reach those of other clusters: use metrics or triggers. With a placement, a target needs scaling.source Prometheus"
		unread    = "spec.roles[0].scaling.target: the endpoint picker cannot read the metrics of the engine, so nothing scales the role: "
		waiting   = "spec.roles[0].scaling.target.waitingRequests: Forbidden: " + because
	)
	worker := func(scaling string) string {
		return `{name: w, componentType: worker, scaling: {` + scaling + `}, template: ` + vllmPod + `}`
	}
	trigger := func(location, value string) *Autoscaler {
		reads := func(name, location string) v1alpha1.ScalingTrigger {
			return v1alpha1.ScalingTrigger{Type: "metrics-api", Name: name, Metadata: map[string]string{
				"url": "http://svc-epp.ns.svc:9090/metrics", "format": "prometheus", "valueLocation": location,
			}}
		}
		return &Autoscaler{
			Kind: key.ScaledObject, Min: 1, Max: 4,
			Triggers: []v1alpha1.ScalingTrigger{reads("target", location), reads("ready", `inference_pool_ready_pods{name="svc-pool"}`)},
			Formula:  &Formula{Text: "ready == 0 ? nil : target * ready", PerReplica: value, Activation: "1000000000"},
		}
	}
	for name, tc := range map[string]struct {
		reason, spec, refused string
		want                  *Autoscaler
		warned                string
	}{
		"Queue":   {reason: "The mean of all pods is that of the role.", spec: `{roles: [` + worker(`maxReplicas: 4, target: {waitingRequests: 3}`) + `, ` + router + `]}`, want: trigger(`inference_pool_average_queue_size{name="svc-pool"}`, "3")},
		"Running": {reason: "So is this.", spec: `{roles: [` + worker(`maxReplicas: 4, target: {runningRequests: 30}`) + `, ` + router + `]}`, want: trigger(`inference_pool_average_running_requests{name="svc-pool"}`, "30")},
		"Cache":   {reason: "The gauge is from 0 to 1.", spec: `{roles: [` + worker(`maxReplicas: 4, target: {kvCacheUtilizationPercent: 75}`) + `, ` + router + `]}`, want: trigger(`inference_pool_average_kv_cache_utilization{name="svc-pool"}`, "0.75")},
		"NoStats": {
			reason: "The endpoint picker reads the metrics of the engine.", spec: `{roles: [` + strings.Replace(worker(`maxReplicas: 4, target: {waitingRequests: 3}`), "--model=m", "--model=m, --disable-log-stats", 1) + `, ` + router + `]}`,
			want: trigger(`inference_pool_average_queue_size{name="svc-pool"}`, "3"), warned: unread + "vLLM serves no metrics with --disable-log-stats",
		},
		"SGLangNoMetrics": {
			reason: "SGLang has none without a flag.", spec: `{roles: [` + strings.Replace(strings.Replace(worker(`maxReplicas: 4, target: {waitingRequests: 3}`), vllmPod, sglangPod, 1), ", --enable-metrics", "", 1) + `, ` + router + `]}`,
			want: trigger(`inference_pool_average_queue_size{name="svc-pool"}`, "3"), warned: unread + "SGLang serves metrics only with --enable-metrics",
		},
		"SGLangUnseen": {
			reason: "A file may have the flag, and nobody sees it.", spec: `{roles: [` + strings.Replace(strings.Replace(worker(`maxReplicas: 4, target: {waitingRequests: 3}`), vllmPod, sglangPod, 1), "--enable-metrics", "--config=/c.yaml", 1) + `, ` + router + `]}`,
			want: trigger(`inference_pool_average_queue_size{name="svc-pool"}`, "3"), warned: unread + "SGLang serves metrics only with --enable-metrics",
		},
		"Tokens": {
			reason: "The endpoint picker does not know them.", spec: `{roles: [` + worker(`maxReplicas: 4, target: {tokensPerSecond: 100}`) + `, ` + router + `]}`,
			refused: "spec.roles[0].scaling.target.tokensPerSecond: Forbidden: " + because + "which have only kvCacheUtilizationPercent, runningRequests, waitingRequests",
		},
		"NoRouter": {reason: "There is no endpoint picker.", spec: `{roles: [` + worker(`maxReplicas: 4, target: {waitingRequests: 3}`) + `]}`, refused: waiting + "and the service has none: add a router"},
		"TwoRoles": {
			reason: "The mean is that of both.", spec: `{roles: [` + worker(`maxReplicas: 4, target: {waitingRequests: 3}`) + `, ` + router + `, {name: other, componentType: worker, template: ` + vllmPod + `}]}`,
			refused: waiting + "which are means of all pods behind them: the role has to be the only one that gets requests",
		},
		"FromZero": {
			reason: "Without pods there is no mean.", spec: `{roles: [` + worker(`minReplicas: 0, maxReplicas: 4, target: {waitingRequests: 3}`) + `, ` + router + `]}`,
			refused: "spec.roles[0].scaling.minReplicas: Invalid value: 0: must be 1 or more, because KEDA reads the metrics of endpoint pickers (scaling.source in the Composition's input), which do not say whether any request waits",
		},
		"Placement": {
			reason: "KEDA reaches Services of its own cluster.", spec: `{roles: [` + worker(`maxReplicas: 4, target: {waitingRequests: 3}`) + `, ` + router + `], placement: {policy: Failover, clusterSelector: {}}}`,
			refused: waiting + unreached,
		},
		"PlacementAlone": {
			reason:  "What else the endpoint picker lacks does not matter then, because no other target and no router would help.",
			spec:    `{roles: [` + worker(`minReplicas: 0, maxReplicas: 4, target: {tokensPerSecond: 100}`) + `], placement: {policy: Spread, clusters: [{name: east, inferenceClusterRef: {name: east}}]}}`,
			refused: "spec.roles[0].scaling.target.tokensPerSecond: Forbidden: " + because + unreached,
		},
		"Replicated": {
			reason:  "Another policy alone does not help, and without a placement the service would not be in the fleet.",
			spec:    `{roles: [` + worker(`maxReplicas: 4, target: {waitingRequests: 3}`) + `, ` + router + `], placement: {policy: Replicate, clusterSelector: {}}}`,
			refused: waiting + unreached + ", and the policy Spread or Failover",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, tc.spec, `{scaling: {source: EndpointPicker}}`)
			if refused(t, tc.reason, tc.refused, err) {
				return
			}
			if diff := cmp.Diff(tc.want, p.Roles[0].Autoscaler); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			var warned []string
			for _, w := range p.Warnings {
				if strings.Contains(w.Path, "scaling") {
					warned = append(warned, w.Path+": "+w.Message)
				}
			}
			if diff := cmp.Diff(tc.warned, strings.Join(warned, "; ")); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
