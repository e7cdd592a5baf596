package plan

import (
	"net/netip"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// addresses are those that the platform team allows for the Gateways of a service.
//
// A Gateway may get what goes to any address that it asks for. Envoy Gateway v1.9.0 makes IP addresses the externalIPs or
// the clusterIP of a Service (internal/infrastructure/kubernetes/proxy/resource_provider.go), and nodes then send it what
// pods of other tenants send there (CVE-2020-8554). Istio takes a Hostname for the Service of gateway pods that run, in
// any namespace (extractGatewayServices in pilot/pkg/config/kube), and these then serve the listeners, too.
type addresses []string

func addressesOf(r *inputv1alpha1.Routes, s naming.Identity) addresses {
	all, expand := make(addresses, 0, len(r.AllowedAddresses)), placeholders(s)
	for _, a := range r.AllowedAddresses {
		all = append(all, expand.Replace(a))
	}
	return all
}

// allow tells whether a Gateway may ask for an address. The type of the address does not matter, because each
// implementation has types of its own.
func (a addresses) allow(value string) bool {
	ip, err := netip.ParseAddr(value)
	for _, entry := range a {
		of, isRange := inputv1alpha1.AddressRange(entry)
		if isRange && err == nil && of.Contains(ip.Unmap()) || !isRange && hostnameMatches(entry, value) {
			return true
		}
	}
	return false
}
