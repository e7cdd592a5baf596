// Package fleet renders what a service in other clusters has in the control plane: its
// capacity request, and the fleet route to all of its clusters.
package fleet

import (
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apply "k8s.io/client-go/applyconfigurations/core/v1"
	applydiscovery "k8s.io/client-go/applyconfigurations/discovery/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// Render returns the objects in the control plane.
func Render(p *plan.Plan) ([]kube.Object, error) {
	if p.Schedule == nil {
		return nil, nil
	}
	request, err := requestOf(p)
	if err != nil {
		return nil, err
	}
	var all []kube.Object
	add := func(k key.Key, obj any) {
		o, unrendered := kube.Render(k, obj)
		all, err = append(all, o), errors.Join(err, unrendered)
	}
	add(key.CapacityRequest, request)
	if p.FleetRoute == nil {
		return all, err
	}
	if !p.FleetRoute.Ends {
		add(key.FleetRoute, route(p))
	}
	for i := range p.FleetRoute.Backends {
		addBackend(p, &p.FleetRoute.Backends[i], add)
	}
	return all, err
}

func labels(p *plan.Plan) map[string]string {
	return map[string]string{p.Service.Label(): p.Service.Name}
}

// requestOf is the service's capacity request. Each cluster finds it by a label of its own, which
// stays until the cluster has read that nothing is requested of it any more. A request that a
// cluster does not find is missing, and keeps its grants as long as the service has workloads
// there.
//
// The resourceVersion lets the API server refuse it if the request has changed since it was read.
// So each request follows the one before, and none forgets what that one said of pods that run.
//
// It is a ConfigMap, because a Crossplane package cannot add a kind without a controller.
func requestOf(p *plan.Plan) (*apply.ConfigMapApplyConfiguration, error) {
	text, err := reservation.EncodeRequest(p.Schedule.Request)
	if err != nil {
		return nil, err
	}
	l := labels(p)
	for _, name := range append(slices.Sorted(maps.Keys(p.Schedule.Request.Clusters)), p.Schedule.Withdrawn...) {
		l[reservation.RequestLabel(name)] = reservation.RequestLabelValue
	}
	if p.Shared != nil {
		l[naming.LabelUsesModelCache] = p.Shared.Name
	}
	m := apply.ConfigMap(p.Service.RequestName(), p.Service.Namespace).WithLabels(l).WithData(map[string]string{reservation.RequestKey: text})
	if v := p.Schedule.RequestVersion; v != "" {
		m = m.WithResourceVersion(v)
	}
	return m, nil
}

// route sends each request to one of the clusters. It stays when no cluster is left, so that
// clients get an error instead of another route's answer.
func route(p *plan.Plan) map[string]any {
	backends := make([]any, 0, len(p.FleetRoute.Backends))
	for _, b := range p.FleetRoute.Backends {
		if b.Named {
			group, kind, name := "", "Service", b.Name
			if b.HostnameBackend == key.HostnameEntry {
				group, kind, name = plan.GroupIstio, plan.KindHostname, naming.FleetHost(b.Name, p.Service.Namespace)
			}
			backends = append(backends, map[string]any{
				"group": group, "kind": kind, "name": name, "port": int64(b.Port), "weight": int64(b.Weight),
			})
		}
	}
	rules := make([]any, 0, len(p.FleetRoute.Matches))
	for _, matches := range p.FleetRoute.Matches {
		rule := map[string]any{"timeouts": map[string]any{"request": "0s"}}
		if len(matches) > 0 {
			rule["matches"] = matches
		}
		if len(backends) > 0 {
			rule["backendRefs"] = backends
		}
		rules = append(rules, rule)
	}
	if closed := plan.ClosedRule(p.FleetRoute.ClosedPaths); closed != nil {
		rules = append(rules, closed)
	}
	spec := map[string]any{"parentRefs": p.FleetRoute.Parents, "rules": rules}
	if len(p.FleetRoute.Hostnames) > 0 {
		spec["hostnames"] = p.FleetRoute.Hostnames
	}
	return map[string]any{
		"apiVersion": gatewayv1.GroupVersion.String(),
		"kind":       "HTTPRoute",
		"metadata":   map[string]any{"name": p.FleetRoute.Name, "namespace": p.Service.Namespace, "labels": labels(p)},
		"spec":       spec,
	}
}

// addBackend adds the objects of a backend. Through them the Gateway API sends requests to an address outside of the cluster.
func addBackend(p *plan.Plan, b *plan.Backend, add func(key.Key, any)) {
	switch b.HostnameBackend {
	case key.HostnameExternal:
		add(b.Key, externalName(p, b))
	case key.HostnameEntry:
		add(b.Key, serviceEntry(p, b))
	default:
		add(b.Key, service(p, b))
		add(b.SliceKey, slice(p, b))
	}
}

// service and slice render a Service without a selector, and its EndpointSlice.
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
	switch {
	case b.HostnameBackend == key.HostnameSlice:
		// Kubernetes deprecates this type because it gives it no meaning. Gateways do.
		family = discoveryv1.AddressTypeFQDN
	case b.IPv6:
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

// externalName renders a Service that stands for a DNS name.
func externalName(p *plan.Plan, b *plan.Backend) *apply.ServiceApplyConfiguration {
	return apply.Service(b.Name, p.Service.Namespace).
		WithLabels(labels(p)).
		WithSpec(apply.ServiceSpec().
			WithType(corev1.ServiceTypeExternalName).
			WithExternalName(b.Address).
			WithPorts(apply.ServicePort().WithName("http").WithPort(b.Port).WithProtocol(corev1.ProtocolTCP)))
}

// serviceEntry renders Istio's way to a DNS name. Its host is a name of its own, because several
// services lead to one entrypoint, each with an entry in its own namespace.
func serviceEntry(p *plan.Plan, b *plan.Backend) map[string]any {
	return map[string]any{
		"apiVersion": plan.GroupIstio + "/v1",
		"kind":       "ServiceEntry",
		"metadata":   map[string]any{"name": b.Name, "namespace": p.Service.Namespace, "labels": labels(p)},
		"spec": map[string]any{
			"hosts":      []any{naming.FleetHost(b.Name, p.Service.Namespace)},
			"location":   "MESH_EXTERNAL",
			"resolution": "DNS",
			"ports":      []any{map[string]any{"name": "http", "number": int64(b.Port), "protocol": "HTTP"}},
			"endpoints":  []any{map[string]any{"address": b.Address}},
		},
	}
}
