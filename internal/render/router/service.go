package router

import (
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	metav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// appProtocol of gRPC. The endpoint picker serves it with TLS and a certificate
// of its own making, of which the name says nothing: gateways are told about TLS
// by a DestinationRule or by their own default. It is what llm-d's charts set.
const appProtocol = "kubernetes.io/h2c"

// service is what gateways send each request's headers and body to.
func (r *rendering) service() *corev1.ServiceApplyConfiguration {
	spec := corev1.ServiceSpec().
		WithType(core.ServiceTypeClusterIP).
		WithSelector(r.ownLabels())
	spec.Ports = servicePorts
	return corev1.Service(r.d.EPPName(), r.d.Target.Namespace).
		WithSpec(spec)
}

var servicePorts = kube.ConstantList(
	*port("grpc-ext-proc", portExtProc).WithAppProtocol(appProtocol),
	*port("grpc-health", portHealth),
	*port("http-metrics", portMetrics))

func port(name string, number int32) *corev1.ServicePortApplyConfiguration {
	return corev1.ServicePort().WithName(name).WithPort(number).WithProtocol(core.ProtocolTCP).WithTargetPort(intstr.FromInt32(number))
}

// disruptionBudget lets endpoint pickers be evicted one by one, and only while
// there is a leader. Only the leader is ever ready, so a minimum of 1 would keep
// its node from being drained for ever. With a minimum of 0 each eviction, that
// of a follower too, uses up the one that the ready leader allows, until the next
// leader is ready.
func (r *rendering) disruptionBudget() *policyv1.PodDisruptionBudgetApplyConfiguration {
	return policyv1.PodDisruptionBudget(r.d.EPPName(), r.d.Target.Namespace).
		WithSpec(policyv1.PodDisruptionBudgetSpec().
			WithMinAvailable(intstr.FromInt32(0)).
			WithSelector(metav1.LabelSelector().WithMatchLabels(r.ownLabels())))
}
