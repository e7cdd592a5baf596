// Package fleet renders what a service that runs in other clusters keeps beside the XR:
// its ask for room, and the one way to all of its clusters.
package fleet

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apply "k8s.io/client-go/applyconfigurations/core/v1"
	applydiscovery "k8s.io/client-go/applyconfigurations/discovery/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// Render returns the objects beside the XR.
func Render(p *plan.Plan) ([]kube.Object, error) {
	if p.Fleet == nil {
		return nil, nil
	}
	var all []kube.Object
	add := func(key string, obj any) error {
		s, err := kube.Encode(obj)
		if err != nil {
			return fmt.Errorf("cannot render %q: %w", key, err)
		}
		all = append(all, kube.Object{Key: key, Resource: s})
		return nil
	}
	ask, err := askOf(p)
	if err != nil {
		return nil, err
	}
	if err := add(plan.AskKey, ask); err != nil {
		return nil, err
	}
	if p.Hub == nil {
		return all, nil
	}
	if err := add(plan.HubKey, route(p)); err != nil {
		return nil, err
	}
	for i := range p.Hub.Backends {
		b := &p.Hub.Backends[i]
		if err := add(b.ServiceKey, service(p, b)); err != nil {
			return nil, err
		}
		if err := add(b.SliceKey, slice(p, b)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func labels(p *plan.Plan) map[string]string {
	return map[string]string{plan.LabelService: p.Service.Name}
}

// askOf is the service's ask, in an object that every cluster that is asked finds by a
// label of its own. It is a ConfigMap, because a package of Crossplane brings no kinds
// without a controller.
func askOf(p *plan.Plan) (*apply.ConfigMapApplyConfiguration, error) {
	text, err := fleet.EncodeAsk(p.Fleet.Ask)
	if err != nil {
		return nil, err
	}
	l := labels(p)
	for _, name := range slices.Sorted(maps.Keys(p.Fleet.Ask.Clusters)) {
		l[fleet.AskLabel(name)] = fleet.AskLabelValue
	}
	return apply.ConfigMap(p.Service.AskName(), p.Service.Namespace).WithLabels(l).WithData(map[string]string{fleet.AskKey: text}), nil
}

// route sends each request to one of the clusters. It stays when the last of them has
// gone, so that clients are told that there is none, instead of being sent elsewhere.
func route(p *plan.Plan) map[string]any {
	backends := make([]any, 0, len(p.Hub.Backends))
	for _, b := range p.Hub.Backends {
		backends = append(backends, map[string]any{
			"group": "", "kind": "Service", "name": b.Name, "port": int64(b.Port), "weight": int64(b.Weight),
		})
	}
	rules := make([]any, 0, len(p.Hub.Matches))
	for _, matches := range p.Hub.Matches {
		rule := map[string]any{"timeouts": map[string]any{"request": "0s"}}
		if len(matches) > 0 {
			rule["matches"] = matches
		}
		if len(backends) > 0 {
			rule["backendRefs"] = backends
		}
		rules = append(rules, rule)
	}
	spec := map[string]any{"parentRefs": p.Hub.Parents, "rules": rules}
	if len(p.Hub.Hostnames) > 0 {
		spec["hostnames"] = p.Hub.Hostnames
	}
	return map[string]any{
		"apiVersion": gatewayv1.GroupVersion.String(),
		"kind":       "HTTPRoute",
		"metadata":   map[string]any{"name": p.Hub.Name, "namespace": p.Service.Namespace, "labels": labels(p)},
		"spec":       spec,
	}
}

// service and slice are how the Gateway API leads to an address outside of the cluster:
// a Service without a selector, and its endpoints.
func service(p *plan.Plan, b *plan.Backend) *apply.ServiceApplyConfiguration {
	return apply.Service(b.Name, p.Service.Namespace).
		WithLabels(labels(p)).
		WithSpec(apply.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithPorts(apply.ServicePort().WithName("http").WithPort(b.Port).WithProtocol(corev1.ProtocolTCP)))
}

func slice(p *plan.Plan, b *plan.Backend) *applydiscovery.EndpointSliceApplyConfiguration {
	l := labels(p)
	l[discoveryv1.LabelServiceName] = b.Name
	l[discoveryv1.LabelManagedBy] = "fusioninfer.io"
	family := discoveryv1.AddressTypeIPv4
	if b.IPv6 {
		family = discoveryv1.AddressTypeIPv6
	}
	return applydiscovery.EndpointSlice(b.SliceName, p.Service.Namespace).
		WithLabels(l).
		WithAddressType(family).
		WithPorts(applydiscovery.EndpointPort().WithName("http").WithPort(b.Port).WithProtocol(corev1.ProtocolTCP)).
		WithEndpoints(applydiscovery.Endpoint().
			WithAddresses(b.Address).
			WithConditions(applydiscovery.EndpointConditions().WithReady(true)))
}
