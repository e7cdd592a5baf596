package router

import (
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	apply "sigs.k8s.io/gateway-api-inference-extension/client-go/applyconfiguration/api/v1"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// pool selects the pods that answer requests. These are the leaders, since the other pods of a
// replica serve no HTTP. The endpoint picker's pods do not have these labels.
func (r *rendering) pool() *apply.InferencePoolApplyConfiguration {
	pods := map[inference.LabelKey]inference.LabelValue{
		naming.LabelService:                         inference.LabelValue(r.cluster.Base),
		inference.LabelKey(lws.WorkerIndexLabelKey): "0",
	}
	for k, v := range r.cluster.PoolSelector {
		pods[inference.LabelKey(k)] = inference.LabelValue(v)
	}
	return apply.InferencePool(r.cluster.PoolName(), r.cluster.Target.Namespace).
		WithSpec(apply.InferencePoolSpec().
			WithSelector(apply.LabelSelector().WithMatchLabels(pods)).
			WithTargetPorts(apply.Port().WithNumber(inference.PortNumber(r.router.Port))).
			WithEndpointPickerRef(apply.EndpointPickerRef().
				WithName(inference.ObjectName(r.cluster.EPPName())).
				WithPort(apply.Port().WithNumber(portExtProc)).
				WithFailureMode(inference.EndpointPickerFailureMode(r.router.FailureMode))))
}
