package router

import (
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	apply "sigs.k8s.io/gateway-api-inference-extension/client-go/applyconfiguration/api/v1"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// pool has the pods that answer requests: the leaders, since the other pods of a
// replica serve no HTTP. The endpoint picker's own pods have none of the labels.
func (r *rendering) pool() *apply.InferencePoolApplyConfiguration {
	pods := map[inference.LabelKey]inference.LabelValue{
		plan.LabelService: inference.LabelValue(r.d.Base),
		inference.LabelKey(lws.WorkerIndexLabelKey): "0",
	}
	for k, v := range r.r.Selector {
		pods[inference.LabelKey(k)] = inference.LabelValue(v)
	}
	return apply.InferencePool(r.d.PoolName(), r.d.Target.Namespace).
		WithSpec(apply.InferencePoolSpec().
			WithSelector(apply.LabelSelector().WithMatchLabels(pods)).
			WithTargetPorts(apply.Port().WithNumber(inference.PortNumber(r.r.Port))).
			WithEndpointPickerRef(apply.EndpointPickerRef().
				WithName(inference.ObjectName(r.d.EPPName())).
				WithPort(apply.Port().WithNumber(portExtProc)).
				WithFailureMode(inference.EndpointPickerFailureMode(r.r.FailureMode))))
}
