package epp

import (
	"fmt"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// scorers of the strategies that pick one pod.
var scorers = map[v1alpha1.RoutingStrategy]string{
	v1alpha1.StrategyPrefixCache:        "prefix-cache-scorer",
	v1alpha1.StrategyKVCacheUtilization: "kv-cache-utilization-scorer",
	v1alpha1.StrategyQueueSize:          "queue-scorer",
	v1alpha1.StrategyLoRAAffinity:       "lora-affinity-scorer",
}

// Generate returns the configuration of a strategy. Workers tells that the
// service has pods that prefill and decode by themselves: with pd-disaggregation
// they are picked like decoders. Strategies that the dialect cannot do are an
// error.
func Generate(s v1alpha1.RoutingStrategy, d v1beta1.Dialect, workers bool) (string, error) {
	one, picksOne := scorers[s]
	switch {
	case d == v1beta1.DialectGAIE && s == v1alpha1.StrategyPrefixCache:
		return fmt.Sprintf(oneGAIE, one, prefixCacheGAIE), nil
	case d == v1beta1.DialectGAIE && picksOne:
		return fmt.Sprintf(oneGAIE, one, ""), nil
	case d == v1beta1.DialectLLMD && picksOne:
		return fmt.Sprintf(oneLLMD, one), nil
	case d == v1beta1.DialectLLMD && s == v1alpha1.StrategyPDDisaggregation && workers:
		return strings.Replace(disaggregatedLLMD, decodersOnly, decodersAndWorkers, 1), nil
	case d == v1beta1.DialectLLMD && s == v1alpha1.StrategyPDDisaggregation:
		return disaggregatedLLMD, nil
	}
	return "", fmt.Errorf("no endpoint picker of dialect %q knows the strategy %q", d, s)
}

// The forms of the design documents, which GAIE v1.2.1 and v1.5.0 both read. The
// picker comes before the scorer, so the scorer needs its weight: v1.2.1 gives
// none to scorers that come later.
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

// What stands behind prefix-cache-scorer is a producer of its own in LLMD. It
// takes its block size from the engine, and keeps 31250 entries for each pod, as
// the design documents want it.
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

// The pods are told apart by the label of the design documents, not by
// llm-d.ai/role: llm-d's own decode-filter also takes pods without a label.
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
      fusioninfer.io/component-type: prefiller
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
	decodersOnly = `    matchLabels:
      fusioninfer.io/component-type: decoder
`
	decodersAndWorkers = `    matchExpressions:
    - key: fusioninfer.io/component-type
      operator: In
      values:
      - decoder
      - worker
`
)
