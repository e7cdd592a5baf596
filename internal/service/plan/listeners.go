package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// protocols are those of listeners that the Gateway API names. A gateway may have others.
var protocols = []gateway.ProtocolType{
	gateway.HTTPProtocolType, gateway.HTTPSProtocolType, gateway.TLSProtocolType, gateway.TCPProtocolType, gateway.UDPProtocolType,
}

// warnOfListeners warns of listeners of the service's own Gateway that no gateway accepts, or that have none of the route's host names.
// The Gateway API allows both. HTTPS without tls may be right: some gateways find the certificate by an annotation.
func warnOfListeners(path *field.Path, spec *gateway.GatewaySpec, hostnames []string) []Warning {
	var all []Warning
	reached := len(hostnames) == 0
	for i := range spec.Listeners {
		l := &spec.Listeners[i]
		if upper := gateway.ProtocolType(strings.ToUpper(string(l.Protocol))); upper != l.Protocol && slices.Contains(protocols, upper) {
			all = append(all, warningAt(path.Child("listeners").Index(i).Child("protocol"), "no gateway has the protocol %q: write %s", text.Value(string(l.Protocol)), upper))
		}
		of := string(ptr.Deref(l.Hostname, ""))
		reached = reached || of == "" || slices.ContainsFunc(hostnames, func(h string) bool { return hostnameMatches(of, h) || hostnameMatches(h, of) })
	}
	if !reached {
		all = append(all, warningAt(path.Child("listeners"), "no listener has a host name of the route, %s, so no request arrives: use one host name for both", text.Value(firstPatterns(hostnames))))
	}
	return all
}
