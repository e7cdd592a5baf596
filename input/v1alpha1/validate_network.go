package v1alpha1

import (
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// validateNetworkPolicy refuses what an API server would refuse later, for every service.
func validateNetworkPolicy(at *field.Path, n *NetworkPolicy) field.ErrorList {
	from := at.Child("ingressFrom")
	errs := validatePeers(from, n.IngressFrom)
	if len(n.IngressFrom) == 0 {
		errs = append(errs, field.Required(from, "must list at least the pods or namespaces of the gateways: nothing else may reach the engines"))
	}
	if n.EgressTo != nil && len(n.EgressTo) == 0 {
		errs = append(errs, field.Required(at.Child("egressTo"), "must list at least the API server, or be left out to let the engines reach anything"))
	}
	return append(errs, validatePeers(at.Child("egressTo"), n.EgressTo)...)
}

func validatePeers(at *field.Path, peers []networkingv1.NetworkPolicyPeer) field.ErrorList {
	some, errs := check.Capped(at, peers, maxNetworkPeers)
	for i := range some {
		errs = append(errs, validatePeer(at.Index(i), &some[i])...)
	}
	return errs
}

func validatePeer(at *field.Path, p *networkingv1.NetworkPolicyPeer) field.ErrorList {
	selects := p.PodSelector != nil || p.NamespaceSelector != nil
	if selects == (p.IPBlock != nil) {
		return field.ErrorList{field.Invalid(at, "", "must have either ipBlock, or at least one of podSelector and namespaceSelector")}
	}
	var errs field.ErrorList
	if p.PodSelector != nil {
		errs = append(errs, metav1.ValidateLabelSelector(p.PodSelector, metav1.LabelSelectorValidationOptions{}, at.Child("podSelector"))...)
	}
	if p.NamespaceSelector != nil {
		errs = append(errs, metav1.ValidateLabelSelector(p.NamespaceSelector, metav1.LabelSelectorValidationOptions{}, at.Child("namespaceSelector"))...)
	}
	if b := p.IPBlock; b != nil {
		errs = append(errs, validation.IsValidCIDR(at.Child("ipBlock", "cidr"), b.CIDR)...)
		except, more := check.Capped(at.Child("ipBlock", "except"), b.Except, maxPatterns)
		errs = append(errs, more...)
		for i, c := range except {
			errs = append(errs, validateExcept(at.Child("ipBlock", "except").Index(i), c, b.CIDR)...)
		}
	}
	return errs
}

// validateExcept refuses a range that is not part of the block.
func validateExcept(at *field.Path, except, of string) field.ErrorList {
	if errs := validation.IsValidCIDR(at, except); len(errs) > 0 {
		return errs
	}
	inner, err := netip.ParsePrefix(except)
	outer, otherwise := netip.ParsePrefix(of)
	if err != nil || otherwise != nil || outer.Contains(inner.Addr()) && inner.Bits() > outer.Bits() {
		return nil
	}
	return field.ErrorList{field.Invalid(at, text.Value(except), "must be a range inside "+text.Value(of))}
}
