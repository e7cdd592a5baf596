// Package network renders the NetworkPolicy of the engines' pods.
package network

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/networking/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// portDNS is the port of DNS servers.
const portDNS = 53

// Render returns the NetworkPolicy of a service in one cluster. It selects pods by labels that
// the function sets on every pod of a service, over those of a template. So a tenant can
// neither take a pod out of the policy nor make a pod of another service a peer. It does not select endpoint pickers, to
// which gateways of any namespace connect, so what they reach is not limited either.
func Render(p *plan.Plan, cluster *plan.ClusterPlan) (kube.Object, error) {
	engines := applymeta.LabelSelector().
		WithMatchLabels(map[string]string{naming.LabelService: cluster.Base}).
		WithMatchExpressions(applymeta.LabelSelectorRequirement().
			WithKey(naming.LabelComponentType).
			WithOperator(metav1.LabelSelectorOpIn).
			WithValues(v1alpha1.EngineTypes()...))
	from := []*apply.NetworkPolicyPeerApplyConfiguration{ownPods(cluster)}
	if p.Router != nil && p.Router.HasGateway {
		from = append(from, ownGateway(cluster))
	}
	spec := apply.NetworkPolicySpec().
		WithPodSelector(engines).
		WithPolicyTypes(networkingv1.PolicyTypeIngress).
		WithIngress(apply.NetworkPolicyIngressRule().WithFrom(from...).WithFrom(peers(p.Network.IngressFrom)...))
	if to := p.Network.EgressTo; len(to) > 0 {
		spec.WithPolicyTypes(networkingv1.PolicyTypeEgress).
			WithEgress(
				apply.NetworkPolicyEgressRule().WithTo(ownPods(cluster)).WithTo(peers(to)...),
				apply.NetworkPolicyEgressRule().WithPorts(dns(corev1.ProtocolUDP), dns(corev1.ProtocolTCP)))
	}
	return kube.Render(cluster.Key(key.NetworkPolicy), apply.NetworkPolicy(cluster.NetworkPolicyName(), cluster.Target.Namespace).
		WithLabels(map[string]string{naming.LabelService: cluster.Base}).
		WithSpec(spec))
}

// ownPods selects all pods of the service: the engines, and the endpoint picker, which reads
// their metrics.
func ownPods(cluster *plan.ClusterPlan) *apply.NetworkPolicyPeerApplyConfiguration {
	return apply.NetworkPolicyPeer().WithPodSelector(applymeta.LabelSelector().WithMatchLabels(map[string]string{naming.LabelService: cluster.Base}))
}

// ownGateway selects the pods of the service's own Gateway, where an implementation runs them in the namespace of the Gateway. Gateway API
// has them labelled with its name (GEP-1762). A template cannot have this label.
func ownGateway(cluster *plan.ClusterPlan) *apply.NetworkPolicyPeerApplyConfiguration {
	return apply.NetworkPolicyPeer().WithPodSelector(applymeta.LabelSelector().WithMatchLabels(map[string]string{gateway.GatewayNameLabelKey: cluster.GatewayName()}))
}

func dns(protocol corev1.Protocol) *apply.NetworkPolicyPortApplyConfiguration {
	return apply.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(portDNS))
}

func peers(of []networkingv1.NetworkPolicyPeer) []*apply.NetworkPolicyPeerApplyConfiguration {
	all := make([]*apply.NetworkPolicyPeerApplyConfiguration, 0, len(of))
	for i := range of {
		p := apply.NetworkPolicyPeer()
		if s := of[i].PodSelector; s != nil {
			p.WithPodSelector(selector(s))
		}
		if s := of[i].NamespaceSelector; s != nil {
			p.WithNamespaceSelector(selector(s))
		}
		if b := of[i].IPBlock; b != nil {
			p.WithIPBlock(apply.IPBlock().WithCIDR(b.CIDR).WithExcept(b.Except...))
		}
		all = append(all, p)
	}
	return all
}

// selector converts a label selector. An empty one stays, since it selects everything.
func selector(s *metav1.LabelSelector) *applymeta.LabelSelectorApplyConfiguration {
	a := applymeta.LabelSelector()
	if len(s.MatchLabels) > 0 {
		a.WithMatchLabels(s.MatchLabels)
	}
	for _, e := range s.MatchExpressions {
		a.WithMatchExpressions(applymeta.LabelSelectorRequirement().WithKey(e.Key).WithOperator(e.Operator).WithValues(e.Values...))
	}
	return a
}
