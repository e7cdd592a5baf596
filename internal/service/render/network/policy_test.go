package network

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

func rendered(t *testing.T, n inputv1alpha1.NetworkPolicy) *networkingv1.NetworkPolicy {
	t.Helper()
	return renderedWith(t, n, nil)
}

func renderedWith(t *testing.T, n inputv1alpha1.NetworkPolicy, router *plan.Router) *networkingv1.NetworkPolicy {
	t.Helper()
	o, err := Render(&plan.Plan{Network: &n, Router: router}, &plan.ClusterPlan{Base: "svc", Target: scheduling.Target{Namespace: "team"}})
	if err != nil {
		t.Fatal(err)
	}
	if o.Key != key.New("", key.NetworkPolicy) {
		t.Errorf("the key is %q", o.Key)
	}
	data, err := o.Resource.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	p := &networkingv1.NetworkPolicy{}
	if err := yaml.UnmarshalStrict(data, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func selects(t *testing.T, s *metav1.LabelSelector, pod map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(pod))
}

var (
	gateways = networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "gateway-system"}},
		PodSelector:       &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"gateway"}}}},
	}
	everybody = networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}}
	internet  = networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8", "169.254.0.0/16"}}}
)

// TestNetworkPolicy proves that only the engines, the endpoint picker and the platform team's
// peers may connect to the engines.
func TestNetworkPolicy(t *testing.T) {
	p := rendered(t, inputv1alpha1.NetworkPolicy{IngressFrom: []networkingv1.NetworkPolicyPeer{gateways, everybody}})
	pod := func(service, component string) map[string]string {
		return map[string]string{naming.LabelService: service, naming.LabelComponentType: component, "app": "x"}
	}
	for _, tc := range []struct {
		reason         string
		pod            map[string]string
		selected, peer bool
	}{
		{"Engines may connect to each other", pod("svc", "worker"), true, true},
		{"So may prefill engines", pod("svc", "prefiller"), true, true},
		{"So may decode engines", pod("svc", "decoder"), true, true},
		{"The endpoint picker may connect, and is not selected, since gateways of any namespace connect to it", pod("svc", "router"), false, true},
		{"Pods of its own Gateway may have its label, and are not engines", map[string]string{naming.LabelService: "svc"}, false, true},
		{"Another service may not", pod("other", "worker"), false, false},
		{"Other pods may not", map[string]string{"app": "x"}, false, false},
	} {
		if got := selects(t, &p.Spec.PodSelector, tc.pod); got != tc.selected {
			t.Errorf("%s: %v is selected: %t", tc.reason, tc.pod, got)
		}
		if got := selects(t, p.Spec.Ingress[0].From[0].PodSelector, tc.pod); got != tc.peer {
			t.Errorf("%s: %v is a peer: %t", tc.reason, tc.pod, got)
		}
	}
	if diff := cmp.Diff([]networkingv1.NetworkPolicyPeer{gateways, everybody}, p.Spec.Ingress[0].From[1:]); diff != "" {
		t.Errorf("peers of the platform team: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, p.Spec.PolicyTypes); diff != "" || len(p.Spec.Egress) > 0 || len(p.Spec.Ingress[0].Ports) > 0 {
		t.Errorf("want all ports and no egress rules: -want, +got:\n%s", diff)
	}
	if p.Name != "svc-engines" || p.Namespace != "team" || p.Labels[naming.LabelService] != "svc" {
		t.Errorf("the policy is %s/%s with the labels %v", p.Namespace, p.Name, p.Labels)
	}
}

// TestOwnGateway proves that the pods of the service's own Gateway may connect to its engines.
func TestOwnGateway(t *testing.T) {
	p := renderedWith(t, inputv1alpha1.NetworkPolicy{IngressFrom: []networkingv1.NetworkPolicyPeer{gateways}}, &plan.Router{HasGateway: true})
	want := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gateway.networking.k8s.io/gateway-name": "svc-gateway"}}}
	if diff := cmp.Diff([]networkingv1.NetworkPolicyPeer{want, gateways}, p.Spec.Ingress[0].From[1:]); diff != "" {
		t.Errorf("peers beside the service's own pods: -want, +got:\n%s", diff)
	}
}

// TestNetworkPolicyEgress proves that the engines may connect to each other, DNS and the
// platform team's peers only.
func TestNetworkPolicyEgress(t *testing.T) {
	p := rendered(t, inputv1alpha1.NetworkPolicy{IngressFrom: []networkingv1.NetworkPolicyPeer{gateways}, EgressTo: []networkingv1.NetworkPolicyPeer{internet}})
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}, p.Spec.PolicyTypes); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	own := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{naming.LabelService: "svc"}}}
	if diff := cmp.Diff([]networkingv1.NetworkPolicyPeer{own, internet}, p.Spec.Egress[0].To); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if dns := p.Spec.Egress[1]; len(p.Spec.Egress) != 2 || len(dns.To) > 0 || len(dns.Ports) != 2 || dns.Ports[0].Port.IntVal != 53 || dns.Ports[1].Port.IntVal != 53 {
		t.Errorf("want a rule for DNS at port 53: %v", p.Spec.Egress)
	}
}
