package network

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

func rendered(t *testing.T, n v1beta1.NetworkPolicy) *networkingv1.NetworkPolicy {
	t.Helper()
	o, err := Render(&plan.Plan{Network: &n}, &plan.Deployment{Base: "svc", Target: plan.Target{Namespace: "team"}})
	if err != nil {
		t.Fatal(err)
	}
	if o.Key != "networkpolicy" {
		t.Errorf("its key is %q", o.Key)
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

// TestNetworkPolicy proves that the engines are reached by each other, the endpoint picker, and
// the platform team's peers only.
func TestNetworkPolicy(t *testing.T) {
	p := rendered(t, v1beta1.NetworkPolicy{IngressFrom: []networkingv1.NetworkPolicyPeer{gateways, everybody}})
	pod := func(service, component string) map[string]string {
		return map[string]string{plan.LabelService: service, plan.LabelComponentType: component, "app": "x"}
	}
	for _, tc := range []struct {
		reason         string
		pod            map[string]string
		selected, peer bool
	}{
		{"Engines are reached by each other.", pod("svc", "worker"), true, true},
		{"Of each type.", pod("svc", "prefiller"), true, true},
		{"And of each other.", pod("svc", "decoder"), true, true},
		{"By the endpoint picker, which gateways of any namespace have to reach.", pod("svc", "router"), false, true},
		{"Not by another service.", pod("other", "worker"), false, false},
		{"Nor by anybody else.", map[string]string{"app": "x"}, false, false},
	} {
		if got := selects(t, &p.Spec.PodSelector, tc.pod); got != tc.selected {
			t.Errorf("%s: %v is selected: %t", tc.reason, tc.pod, got)
		}
		if got := selects(t, p.Spec.Ingress[0].From[0].PodSelector, tc.pod); got != tc.peer {
			t.Errorf("%s: %v is a peer: %t", tc.reason, tc.pod, got)
		}
	}
	if diff := cmp.Diff([]networkingv1.NetworkPolicyPeer{gateways, everybody}, p.Spec.Ingress[0].From[1:]); diff != "" {
		t.Errorf("the platform's peers are as it says: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, p.Spec.PolicyTypes); diff != "" || len(p.Spec.Egress) > 0 || len(p.Spec.Ingress[0].Ports) > 0 {
		t.Errorf("all ports, and nothing of what they may reach: -want, +got:\n%s", diff)
	}
	if p.Name != "svc-engines" || p.Namespace != "team" || p.Labels[plan.LabelService] != "svc" {
		t.Errorf("it is %s/%s with the labels %v", p.Namespace, p.Name, p.Labels)
	}
}

// TestNetworkPolicyEgress proves that the engines reach each other, names, and the platform
// team's peers only.
func TestNetworkPolicyEgress(t *testing.T) {
	p := rendered(t, v1beta1.NetworkPolicy{IngressFrom: []networkingv1.NetworkPolicyPeer{gateways}, EgressTo: []networkingv1.NetworkPolicyPeer{internet}})
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}, p.Spec.PolicyTypes); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	own := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{plan.LabelService: "svc"}}}
	if diff := cmp.Diff([]networkingv1.NetworkPolicyPeer{own, internet}, p.Spec.Egress[0].To); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if dns := p.Spec.Egress[1]; len(p.Spec.Egress) != 2 || len(dns.To) > 0 || len(dns.Ports) != 2 || dns.Ports[0].Port.IntVal != 53 || dns.Ports[1].Port.IntVal != 53 {
		t.Errorf("names are asked for at port 53: %v", p.Spec.Egress)
	}
}
