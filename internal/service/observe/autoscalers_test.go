package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestAutoscalers shows what the condition Scaled says of an autoscaler that does not scale its role. Nothing else depends on it.
func TestAutoscalers(t *testing.T) {
	const hpa, keda = "HorizontalPodAutoscaler", "ScaledObject"
	type conditions = []any
	says := func(kind, status, reason string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": "pod qwen-7 has none"}
	}
	const asRequested = "True AsRequested"
	cases := map[string]struct {
		reason      string
		kind        string
		conditions  conditions
		annotations map[string]any
		limit       string
		want        string
	}{
		"HPAScales":     {reason: "It works.", kind: hpa, conditions: conditions{says("AbleToScale", "True", "ReadyForNewScale"), says("ScalingActive", "True", "ValidMetricFound")}, want: asRequested},
		"HPANew":        {reason: "Its controller has not looked at it yet.", kind: hpa, want: asRequested},
		"HPAStopped":    {reason: "A role without replicas is not scaled on purpose.", kind: hpa, conditions: conditions{says("ScalingActive", "False", "ScalingDisabled")}, want: asRequested},
		"HPALimited":    {reason: "A limit is no failure.", kind: hpa, conditions: conditions{says("ScalingLimited", "True", "TooManyReplicas")}, want: asRequested},
		"HPANoMetric":   {reason: "Its message names another pod each time, so only the reason is repeated.", kind: hpa, conditions: conditions{says("AbleToScale", "True", "SucceededGetScale"), says("ScalingActive", "False", "FailedGetPodsMetric")}, want: "False AutoscalerInactive: HorizontalPodAutoscaler qwen-engine: FailedGetPodsMetric: kubectl describe has its message"},
		"HPAForbidden":  {reason: "It may not write the scale.", kind: hpa, conditions: conditions{says("ScalingActive", "True", "ValidMetricFound"), says("AbleToScale", "False", "FailedUpdateScale")}, want: "False AutoscalerInactive: HorizontalPodAutoscaler qwen-engine: FailedUpdateScale: kubectl describe has its message"},
		"KEDAScales":    {reason: "It works.", kind: keda, conditions: conditions{says("Ready", "True", "ScaledObjectReady"), says("Active", "False", "ScalerNotActive"), says("Paused", "False", "ScaledObjectUnpaused")}, want: asRequested},
		"KEDANew":       {reason: "KEDA begins with Unknown.", kind: keda, conditions: conditions{says("Ready", "Unknown", ""), says("Paused", "Unknown", "")}, want: asRequested},
		"KEDATriggers":  {reason: "Prometheus does not answer.", kind: keda, conditions: conditions{says("Ready", "False", "TriggerError")}, want: "False AutoscalerInactive: ScaledObject qwen-engine: TriggerError: pod qwen-7 has none"},
		"KEDAPaused":    {reason: "Somebody has paused it.", kind: keda, conditions: conditions{says("Ready", "True", "ScaledObjectReady"), says("Paused", "True", "ScaledObjectPaused")}, annotations: map[string]any{"autoscaling.keda.sh/paused": "true"}, want: "False AutoscalerInactive: ScaledObject qwen-engine: ScaledObjectPaused: pod qwen-7 has none"},
		"KEDAPausedAt":  {reason: "Or at a number.", kind: keda, conditions: conditions{says("Paused", "True", "ScaledObjectPaused")}, annotations: map[string]any{"autoscaling.keda.sh/paused-replicas": "2"}, want: "False AutoscalerInactive: ScaledObject qwen-engine: ScaledObjectPaused: pod qwen-7 has none"},
		"KEDAPausedOut": {reason: "It adds no replicas.", kind: keda, conditions: conditions{says("Paused", "True", "ScaledObjectPaused")}, annotations: map[string]any{"autoscaling.keda.sh/paused-scale-out": "true"}, want: "False AutoscalerInactive: ScaledObject qwen-engine: ScaledObjectPaused: pod qwen-7 has none"},
		"KEDAStarting":  {reason: "The service itself pauses only scaling in, while replicas start.", kind: keda, conditions: conditions{says("Paused", "True", "ScaledObjectPaused")}, annotations: map[string]any{"autoscaling.keda.sh/paused-scale-in": "true", "autoscaling.keda.sh/paused": "false"}, want: asRequested},
		"Limited":       {reason: "What the service does to the number comes first.", kind: keda, conditions: conditions{says("Ready", "False", "TriggerError")}, limit: "Minimum", want: "False Minimum: role engine: its InferenceRole asks for 2, and minReplicas makes it 2; ScaledObject qwen-engine: TriggerError: pod qwen-7 has none"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api, k := "autoscaling/v2", "horizontalpodautoscaler/engine"
			if tc.kind == keda {
				api, k = "keda.sh/v1alpha1", "scaledobject/engine"
			}
			s := running(newScene(t))
			s.plan.Scales = map[string]*plan.Scale{"engine": {Requested: 2, Replicas: 2, Reason: tc.limit}}
			o := map[string]any{"apiVersion": api, "kind": tc.kind, "metadata": map[string]any{"name": "qwen-engine", "annotations": tc.annotations}}
			s.want(scheduling.Target{}, k, o)
			o["status"] = map[string]any{"conditions": tc.conditions}
			s.see(k, o)
			v := s.evaluate()
			if diff := cmp.Diff(tc.want, conditionLine(v, Scaled)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if !v.Stable {
				t.Errorf("%s: the service is not stable", tc.reason)
			}
			for k, ready := range v.Ready {
				if !ready {
					t.Errorf("%s: %s is not ready", tc.reason, k)
				}
			}
		})
	}
}
