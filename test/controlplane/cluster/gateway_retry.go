package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// hostSelections is how often Envoy chooses an endpoint for a retry, until it finds one that was not
// tried: once and, as Envoy Gateway sets it, five more times (internal/xds/translator/route.go).
const hostSelections = 6

// addPolicy adds what is done here of a BackendTrafficPolicy: the retries of connections for the
// Gateways that it targets. A policy without triggers has them too: Envoy Gateway's default is
// connect-failure with others, twice.
func (c *gatewayConfig) addPolicy(o *unstructured.Unstructured) {
	retry, ok, _ := unstructured.NestedMap(o.Object, "spec", "retry")
	if !ok {
		return
	}
	triggers, ok, _ := unstructured.NestedStringSlice(retry, "retryOn", "triggers")
	if ok && !slices.Contains(triggers, "connect-failure") {
		return
	}
	n, ok, _ := unstructured.NestedInt64(retry, "numRetries")
	if !ok {
		n = 2
	}
	targets, _, _ := unstructured.NestedSlice(o.Object, "spec", "targetRefs")
	for _, t := range objects(targets) {
		if g := c.gateways[o.GetNamespace()+"/"+text(t, "name", "")]; g != nil && text(t, "kind", "") == "Gateway" {
			g.retries = int(n)
		}
	}
}

// GatewayRetries is how often a Gateway tries another endpoint in place of one that cannot be
// connected.
func (c *Kubernetes) GatewayRetries(namespace, name string) int {
	if g := c.gateway.plane.config.Load().gateways[namespace+"/"+name]; g != nil {
		return g.retries
	}
	return 0
}

// addRetries adds the endpoints that are tried one after the other if those before cannot be
// connected. As in Envoy Gateway, all backends of a rule are one cluster of Envoy whose localities
// have the weights, unless a backend has filters (internal/ir/xds.go, NeedsClusterPerSetting).
func (f *forwarding) addRetries() {
	if slices.ContainsFunc(f.rule.BackendRefs, func(r gatewayv1.HTTPBackendRef) bool { return len(r.Filters) > 0 }) {
		return
	}
	for range f.retries {
		f.addRetry()
	}
}

// addRetry adds an endpoint of any backend, by weight.
func (f *forwarding) addRetry() {
	for range hostSelections {
		ref := f.plane.choose(f.rule.BackendRefs)
		if ref == nil || string(ptr.Deref(ref.Kind, "Service")) != services.name {
			return
		}
		b, err := f.plane.endpoints.service(string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(f.rule.namespace))), string(ref.Name), ptr.Deref(ref.Port, 0))
		if err != nil || len(b.addresses) == 0 {
			continue
		}
		if a := b.addresses[f.plane.random(int64(len(b.addresses)))]; !slices.Contains(f.dialing.addresses, a) {
			f.dialing.addresses = append(f.dialing.addresses, a)
			return
		}
	}
}
