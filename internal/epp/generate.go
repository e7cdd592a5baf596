package epp

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// scorers are the plugins of the strategies that pick one pod.
var scorers = map[v1alpha1.RoutingStrategy]string{
	v1alpha1.StrategyPrefixCache:        "prefix-cache-scorer",
	v1alpha1.StrategyKVCacheUtilization: "kv-cache-utilization-scorer",
	v1alpha1.StrategyQueueSize:          "queue-scorer",
	v1alpha1.StrategyLoRAAffinity:       "lora-affinity-scorer",
}

// Generate returns the configuration of a strategy. Workers tells that the service has
// roles of componentType worker. With pd-disaggregation, their pods are picked like those
// of decoders. Generate returns an error for a strategy that the dialect does not support.
func Generate(s v1alpha1.RoutingStrategy, d inputv1alpha1.Dialect, workers bool) (string, error) {
	one, picksOne := scorers[s]
	switch {
	case d == inputv1alpha1.DialectGAIE && s == v1alpha1.StrategyPrefixCache:
		return fmt.Sprintf(oneGAIE, one, prefixCacheGAIE), nil
	case d == inputv1alpha1.DialectGAIE && picksOne:
		return fmt.Sprintf(oneGAIE, one, ""), nil
	case d == inputv1alpha1.DialectLLMD && picksOne:
		return fmt.Sprintf(oneLLMD, one), nil
	case d == inputv1alpha1.DialectLLMD && s == v1alpha1.StrategyPDDisaggregation && workers:
		return strings.Replace(disaggregatedLLMD, decodersOnly, decodersAndWorkers, 1), nil
	case d == inputv1alpha1.DialectLLMD && s == v1alpha1.StrategyPDDisaggregation:
		return disaggregatedLLMD, nil
	}
	return "", fmt.Errorf("no endpoint picker of dialect %q knows the strategy %q", d, s)
}

// firstWithScreener is the first release of llm-d's endpoint picker with the plugin that Screen adds, and with the flag --drain-timeout
// (pkg/epp/server/options.go). Without the flag it goes on for 30 seconds after SIGTERM.
var firstWithScreener = version.MustParseSemantic("v0.10.0")

// HasScreener tells by the tag of an image whether its endpoint picker is of that release or of a later one: whether it has
// the plugin, and the flag, too.
func HasScreener(image string) bool {
	_, tag := imageref.Split(image)
	v, err := version.ParseSemantic(tag)
	return err == nil && v.AtLeast(firstWithScreener)
}

// Screen adds to a generated configuration for pd-disaggregation that prefill and decode of a request
// have one revision: engines refuse to exchange their caches with another version. Service is the
// value of the label naming.LabelService. The plugin needs the flag --allow-experimental-plugins.
//
// A revision needs a decode or worker pod that is ready. It needs no prefill pod, because the others
// do both where there is none. The plugin wants every role that it is told, so all pods that count
// have one: their service. With both, a revision needs a prefill and a decode pod.
func Screen(config, service string, both bool) string {
	added := fmt.Sprintf(screener, service, "worker", naming.LabelService, fmt.Sprintf("        - %q\n", service))
	if both {
		added = fmt.Sprintf(screener, service, "prefiller", naming.LabelComponentType, "        - decoder\n        - prefiller\n")
	}
	return strings.Replace(config, "plugins:\n", "plugins:\n"+added, 1)
}

// queueing are the first releases of which it is known that a request is admitted before its pod is looked
// for (HandleRequest in pkg/epp/requestcontrol/director.go). A pool without pods counts as saturated there
// (Saturation of the utilization-detector), so flow control keeps the request in its queue.
var queueing = map[inputv1alpha1.Dialect]*version.Version{
	inputv1alpha1.DialectGAIE: version.MustParseSemantic("v1.5.0"),
	inputv1alpha1.DialectLLMD: version.MustParseSemantic("v0.10.0"),
}

// Queues tells whether the endpoint picker of an image can keep requests while there are no pods, and since
// which release any can. The image's tag tells that.
func Queues(image string, d inputv1alpha1.Dialect) (can bool, since string) {
	first := queueing[d]
	_, tag := imageref.Split(image)
	v, err := version.ParseSemantic(tag)
	return err == nil && v.AtLeast(first), "v" + first.String()
}

// WithQueue adds to a generated configuration that requests wait while there are no pods, for a time at most. What
// is beyond some bytes, or beyond maxQueued requests, is refused. By default there is only a limit of 1 GB.
//
// Flow control also keeps requests while pods are saturated, and while their metrics are old. The scorers and
// the engines' own queues take care of load, and one that is busy may be slow to tell its metrics. So only a
// pod whose metrics were never read, or whose cache is full, counts as saturated.
func WithQueue(config string, d inputv1alpha1.Dialect, most time.Duration, bytes int64) string {
	tail := `saturationDetector:
  pluginRef: utilization-detector
flowControl:
  defaultRequestTTL: %s
  maxBytes: "%d"
  maxRequests: "%d"
`
	if d == inputv1alpha1.DialectLLMD {
		tail = `flowControl:
  defaultRequestTTL: %s
  maxBytes: "%d"
  maxRequests: "%d"
  saturationDetector:
    pluginRef: utilization-detector
`
	}
	config = strings.Replace(config, "plugins:\n", queueHead, 1)
	return config + fmt.Sprintf(tail, most, bytes, maxQueued)
}

// maxQueued is the most requests that wait. Each has a stream of the gateway.
const maxQueued = 5000

const queueHead = `featureGates:
- flowControl
plugins:
- type: utilization-detector
  parameters:
    queueDepthThreshold: 1000000
    kvCacheUtilThreshold: 1.0
    metricsStalenessThreshold: 24h
`

// QueueSize is the metric of an endpoint picker with the number of requests that wait in it.
func QueueSize(d inputv1alpha1.Dialect) string {
	if d == inputv1alpha1.DialectLLMD {
		return "llm_d_epp_flow_control_queue_size"
	}
	return "inference_extension_flow_control_queue_size"
}

// The configurations of the design documents, which GAIE v1.2.1 and v1.5.0 both read. The
// picker comes before the scorer. The scorer therefore needs a weight, because v1.2.1 sets
// no default weight for scorers after the picker.
const (
	oneGAIE = `apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: %[1]s
%[2]s- type: max-score-picker
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: max-score-picker
  - pluginRef: %[1]s
    weight: 100
`
	prefixCacheGAIE = `  parameters:
    blockSize: 5
    maxPrefixBlocksToMatch: 256
    lruCapacityPerServer: 31250
`
)

// In LLMD, prefix-cache-scorer reads from a separate producer plugin, which the endpoint
// picker adds. The producer takes the block size from the engine and keeps 31250 entries
// for each pod, as the design documents require.
const oneLLMD = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: %[1]s
- type: max-score-picker
- type: single-profile-handler
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: %[1]s
    weight: 1
  - pluginRef: max-score-picker
`

// The filters select pods by the label of the design documents, and not by llm-d.ai/role,
// because llm-d's decode-filter also accepts pods without that label.
const (
	disaggregatedLLMD = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: approx-prefix-cache-producer
- type: prefix-cache-scorer
- type: queue-scorer
- type: label-selector-filter
  name: prefill-pods
  parameters:
    matchLabels:
      ` + naming.LabelComponentType + `: prefiller
- type: label-selector-filter
  name: decode-pods
  parameters:
` + decodersOnly + `- type: max-score-picker
- type: always-disagg-pd-decider
- type: disagg-profile-handler
  parameters:
    deciders:
      prefill: always-disagg-pd-decider
schedulingProfiles:
- name: prefill
  plugins:
  - pluginRef: prefill-pods
  - pluginRef: prefix-cache-scorer
    weight: 2
  - pluginRef: queue-scorer
    weight: 1
  - pluginRef: max-score-picker
- name: decode
  plugins:
  - pluginRef: decode-pods
  - pluginRef: prefix-cache-scorer
    weight: 2
  - pluginRef: queue-scorer
    weight: 1
  - pluginRef: max-score-picker
`
	screener = `- type: disaggregatedset-rollout-screener
  parameters:
    scope:
      labelSelector: ` + naming.LabelService + `=%s,` + naming.LabelComponentType + ` in (decoder,%s),` + lws.WorkerIndexLabelKey + `=0
    revisionGating:
      revisionLabelKey: ` + naming.LabelSpecHash + `
      roleLabelKey: %s
      mode: max-role
      requireRoles:
        values:
%s`
	decodersOnly = `    matchLabels:
      ` + naming.LabelComponentType + `: decoder
`
	decodersAndWorkers = `    matchExpressions:
    - key: ` + naming.LabelComponentType + `
      operator: In
      values:
      - decoder
      - worker
`
)
