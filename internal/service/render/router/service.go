package router

import (
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	metav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// appProtocol says gRPC. The endpoint picker serves it with TLS and a self-signed certificate,
// which this value does not express. Gateways know about TLS by a DestinationRule or by
// default. llm-d's charts set the same value.
const appProtocol = "kubernetes.io/h2c"

// service is the Service to which gateways send the headers and the body of each request.
func (r *rendering) service() map[string]any {
	return map[string]any{
		"apiVersion": core.SchemeGroupVersion.String(),
		"kind":       "Service",
		"metadata":   r.meta(r.cluster.EPPName()),
		"spec": map[string]any{
			"type":     string(core.ServiceTypeClusterIP),
			"selector": r.ownLabels(),
			"ports":    servicePorts,
		},
	}
}

var servicePorts = kube.MustEncode([]any{
	port("grpc-ext-proc", portExtProc).WithAppProtocol(appProtocol),
	port("grpc-health", portHealth),
	port("http-metrics", plan.PickerMetricsPort),
})

func port(name string, number int32) *corev1.ServicePortApplyConfiguration {
	return corev1.ServicePort().WithName(name).WithPort(number).WithProtocol(core.ProtocolTCP).WithTargetPort(intstr.FromInt32(number))
}

// disruptionBudget lets endpoint pickers be evicted one by one, while there is a leader. Only
// the leader is ever ready, so a minimum of 1 would block the drain of its node for ever. With
// a minimum of 0, one eviction is allowed per ready leader, and none without one
// (pkg/registry/core/pod/storage/eviction.go of Kubernetes v1.36). So pickers that are not ready may be evicted at
// any time: they answer nobody, and those that crash would block the drain of their nodes for ever.
func (r *rendering) disruptionBudget() *policyv1.PodDisruptionBudgetApplyConfiguration {
	return policyv1.PodDisruptionBudget(r.cluster.EPPName(), r.cluster.Target.Namespace).
		WithSpec(policyv1.PodDisruptionBudgetSpec().
			WithMinAvailable(intstr.FromInt32(0)).
			WithUnhealthyPodEvictionPolicy(policy.AlwaysAllow).
			WithSelector(metav1.LabelSelector().WithMatchLabels(r.ownLabels())))
}
