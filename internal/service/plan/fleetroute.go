package plan

import (
	"fmt"
	"slices"
	"strings"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// A FleetRoute is an HTTPRoute on the control plane's gateway. It distributes the requests of a
// service over the entrypoints of its clusters, by weight.
type FleetRoute struct {
	// Name of the HTTPRoute.
	Name string
	// Parents are the gateways of the route.
	Parents []inputv1alpha1.ParentRef
	// Hostnames, as in the service's own route.
	Hostnames []string
	// Matches of the service's own route, one list for each rule. A rule with an empty list
	// matches all requests.
	Matches [][]any
	// Backends in the order of the placement: the clusters in which the service runs, and those
	// that may still receive traffic.
	Backends []Backend
}

// A Backend is the entrypoint of one cluster. Its Service and EndpointSlice stay for a while
// after the route stops naming it, because gateways serve the old route until they have
// accepted the new one.
type Backend struct {
	// Cluster is the cluster's name in the service.
	Cluster string
	// Name of the Service whose endpoint is the entrypoint.
	Name string
	// SliceName is the name of the EndpointSlice.
	SliceName string
	// ServiceKey and SliceKey are the keys of the two in the composed resources.
	ServiceKey, SliceKey key.Key
	// Address and Port of the entrypoint. IPv6 tells the family of the address.
	Address string
	Port    int32
	IPv6    bool
	// Weight is the number of ready replicas, or 0 if the cluster must get no requests.
	Weight int32
	// Named tells whether the route names the backend.
	Named bool
}

// Local is the target of objects that stay in the control plane.
func (p *Plan) Local() scheduling.Target { return scheduling.Target{Namespace: p.Service.Namespace} }

// fleetRoute returns the fleet route, without backends. It is nil unless the service has a route
// of its own and the input names gateways for the fleet.
func (p *Plan) fleetRoute(in *inputv1alpha1.Input) *FleetRoute {
	r := p.Router
	if r == nil || !r.HasRoute || len(in.Fleet.ParentRefs) == 0 {
		return nil
	}
	return &FleetRoute{
		Name:      p.Service.Name + "-fleet",
		Parents:   in.Fleet.ParentRefs,
		Hostnames: r.Hostnames,
		Matches:   matchesOf(r),
	}
}

// warnOfFailover warns of a failover that clients do not follow: without a fleet route, each
// cluster has a URL of its own.
func (p *Plan) warnOfFailover(placement *v1alpha1.Placement) []Warning {
	if placement == nil || placement.Policy != v1alpha1.PlacementFailover || p.Router == nil || !p.Router.HasRoute || p.FleetRoute != nil {
		return nil
	}
	return []Warning{{
		Path:    "spec.placement.policy",
		Message: "Failover moves the service and not its URL, because the platform team sets no fleet.parentRefs in the Composition's input: clients have to follow status.url",
	}}
}

// matchesOf returns the matches of each rule of the service's own route. The route in each
// cluster still decides which backend gets a request.
func matchesOf(r *Router) [][]any {
	rules, _ := kube.AsMap(kube.WithoutNulls(r.Route))["rules"].([]any)
	all := make([][]any, 0, max(1, len(rules)))
	for _, rule := range rules {
		m, _ := rule.(map[string]any)
		matches, _ := m["matches"].([]any)
		all = append(all, matches)
	}
	if len(all) == 0 {
		all = append(all, nil)
	}
	return all
}

// backends returns the entrypoints of the clusters in which the service runs or that may still
// receive traffic. A cluster that the service leaves has weight 0.
func (p *Plan) backends() []Backend {
	var all []Backend
	inUse := map[string]bool{}
	for i := range p.Schedule.Assignments {
		a := &p.Schedule.Assignments[i]
		runs := len(a.Run) > 0
		if a.Entrypoint == nil || !runs && !a.MayReceiveTraffic {
			continue
		}
		cluster := a.Target.Cluster
		ipv6 := strings.Contains(a.Entrypoint.Address.Value, ":")
		b := Backend{
			Cluster:    cluster,
			Name:       naming.FleetBackend(p.Service.Name, cluster),
			ServiceKey: key.FleetService(cluster),
			SliceKey:   key.FleetSlice(cluster, ipv6),
			Address:    a.Entrypoint.Address.Value,
			Port:       a.Entrypoint.Port,
			IPv6:       ipv6,
			Named:      runs,
		}
		b.SliceName = b.Name
		if ipv6 {
			b.SliceName = b.Name + "-ipv6"
		}
		if a.Serves && a.Existing != nil && a.Existing.RouterWasReady {
			b.Weight = p.ready(a)
		}
		inUse[cluster] = a.MayReceiveTraffic
		all = append(all, b)
	}
	return p.nameBackends(all, inUse)
}

// maxBackends is the most backends that a rule of an HTTPRoute may have (Gateway API v1,
// HTTPRouteRule).
const maxBackends = 16

// nameBackends decides which backends the route names: those with a weight above 0. If none has
// one, the route names every cluster in which the service runs. It names at most 16.
//
// The others beyond that limit are removed from the result, unless they are in use: a gateway may
// still send requests to those until it has accepted the new route.
//
// Backends of weight 0 are left out because some gateways have sent them requests, against the
// Gateway API: hashicorp/consul#23216 and kgateway-dev/kgateway#13833.
func (p *Plan) nameBackends(all []Backend, inUse map[string]bool) []Backend {
	weighted := slices.ContainsFunc(all, func(b Backend) bool { return b.Weight > 0 })
	named := 0
	var kept []Backend
	var leftOut []string
	for _, b := range all {
		if b.Named = b.Named && (b.Weight > 0 || !weighted); b.Named {
			named++
		}
		if b.Named && named > maxBackends {
			leftOut = append(leftOut, b.Cluster)
			if !inUse[b.Cluster] {
				continue
			}
			b.Named, b.Weight = false, 0
		}
		kept = append(kept, b)
	}
	if len(leftOut) > 0 {
		p.Warnings = append(p.Warnings, Warning{
			Path:    "spec.placement",
			Message: fmt.Sprintf("an HTTPRoute has at most %d backends: no requests are sent to %s", maxBackends, strings.Join(leftOut, ", ")),
		})
	}
	return kept
}

// ready is the number of replicas that run in a cluster, were last seen ready and answer
// requests. Prefill replicas do not count.
func (p *Plan) ready(a *scheduling.Assignment) int32 {
	n := int32(0)
	for _, r := range p.Roles {
		if r.Type == v1alpha1.ComponentTypePrefiller {
			continue
		}
		for id, ready := range a.Existing.WasReady {
			if _, role, _, _ := id.Parts(); ready && role == r.Name && a.Run[id] {
				n++
			}
		}
	}
	return n
}
