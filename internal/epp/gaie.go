package epp

import inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"

// gaie is the dialect of the Gateway API Inference Extension v1.5.0, the last release of
// its endpoint picker. The plugins are those that cmd/epp/runner registers, the fields
// those of apix/config/v1alpha1, and the injected plugins those that pkg/epp/config/loader
// adds.
var gaie = dialect{
	name:        inputv1alpha1.DialectGAIE,
	apiVersions: []string{APIVersionGAIE},
	fields: fields{
		"apiVersion":   nil,
		"kind":         nil,
		"featureGates": nil,
		"plugins":      {"name": nil, "type": nil, "parameters": nil},
		"schedulingProfiles": {
			"name":    nil,
			"plugins": {"pluginRef": nil, "weight": nil},
		},
		"saturationDetector": {"pluginRef": nil},
		"dataLayer": {
			"sources": {"pluginRef": nil, "extractors": {"pluginRef": nil}},
		},
		"flowControl": {
			"maxBytes":                  nil,
			"maxRequests":               nil,
			"defaultRequestTTL":         nil,
			"defaultPriorityBand":       priorityBand,
			"priorityBands":             priorityBand,
			"usageLimitPolicyPluginRef": nil,
		},
		"parser": {"pluginRef": nil},
	},
	features: []string{"dataLayer", "enableLegacyMetrics", "flowControl"},
	injected: []string{
		"fcfs-ordering-policy", "global-strict-fairness-policy",
		"openai-parser", "static-usage-limit-policy", "utilization-detector",
	},
	scorersNeedWeights: true,
	plugins: map[string]plugin{
		"single-profile-handler": {role: handler},

		"header-based-testing-filter":  {role: filter},
		"prefix-cache-affinity-filter": {role: filter},
		"slo-headroom-tier-filter":     {role: filter},

		"kv-cache-utilization-scorer":  {role: scorer},
		"latency-scorer":               {role: scorer},
		"lora-affinity-scorer":         {role: scorer},
		"predicted-latency-scorer":     {role: scorer},
		"prefix-cache-scorer":          {role: scorer, params: newParams[prefixCache]},
		"queue-scorer":                 {role: scorer},
		"running-requests-size-scorer": {role: scorer},
		"token-load-scorer":            {role: scorer, params: newParams[tokenLoad]},

		"max-score-picker":       {role: picker, params: newParams[pick]},
		"random-picker":          {role: picker, params: newParams[pick]},
		"weighted-random-picker": {role: picker, params: newParams[pick]},

		"approx-prefix-cache-producer": {role: other, params: newParams[prefixCache]},
		"inflight-load-producer":       {role: other},
		"latency-slo-admitter":         {role: other},
		"predicted-latency-producer":   {role: other},
		"request-attribute-reporter":   {role: other, needsParams: true},

		"openai-parser":      {role: parser},
		"passthrough-parser": {role: parser},
		"vllmgrpc-parser":    {role: parser},

		"concurrency-detector": {role: detector},
		"utilization-detector": {role: detector, params: newParams[utilization]},

		"core-metrics-extractor":       {role: extractor},
		"endpoint-notification-source": {role: source},
		"k8s-notification-source":      {role: source, needsParams: true},
		"metrics-data-source":          {role: source, params: newParams[metricsSource]},

		"global-strict-fairness-policy": {role: fairness},
		"round-robin-fairness-policy":   {role: fairness},
		"edf-ordering-policy":           {role: ordering},
		"fcfs-ordering-policy":          {role: ordering},
		"slo-deadline-ordering-policy":  {role: ordering},
		"static-usage-limit-policy":     {role: limits},

		"destination-endpoint-served-verifier": {role: other},
	},
}

var priorityBand = fields{
	"priority":          nil,
	"maxBytes":          nil,
	"maxRequests":       nil,
	"fairnessPolicyRef": nil,
	"orderingPolicyRef": nil,
}
