package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

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
	Name    string
	Parents []inputv1alpha1.ParentRef
	// Hostnames, as in the service's own route.
	Hostnames []string
	// Matches of the service's own route, one list for each rule. A rule with an empty list
	// matches all requests.
	Matches [][]any
	// ClosedPaths are those that it does not pass on.
	ClosedPaths []string
	// Backends in the order of the placement: the clusters in which the service runs, or requests wait for
	// it, and those that may still receive traffic.
	Backends []Backend
	// Ends tells that the service has left the fleet, and answers elsewhere. The route goes, and the copies that it led to follow.
	Ends bool
	// HostnameBackend is the way in which the route leads to DNS names. Empty means that it does not.
	HostnameBackend key.HostnameBackend
}

// A Backend is the entrypoint of one cluster. Its Service and EndpointSlice stay for a while
// after the route stops naming it, because gateways serve the old route until they have
// accepted the new one.
type Backend struct {
	// Cluster is the cluster's name in the service.
	Cluster string
	// Name of the Service or ServiceEntry whose endpoint is the entrypoint.
	Name string
	// SliceName is the name of the EndpointSlice.
	SliceName string
	// Key and SliceKey are the keys of the two in the composed resources.
	Key, SliceKey key.Key
	// Address and Port of the entrypoint. IPv6 tells the family of an IP address.
	Address string
	Port    int32
	IPv6    bool
	// HostnameBackend is the way to the address if that is a DNS name. Not every way has an
	// EndpointSlice, and one has a ServiceEntry in place of the Service.
	HostnameBackend key.HostnameBackend
	// Weight is the number of ready replicas, or 0 if the cluster must get no requests. It is 1 where requests wait for
	// the first replica.
	Weight int32
	// Named tells whether the route names the backend.
	Named bool
}

// Local is the target of objects that stay in the control plane.
func (p *Plan) Local() scheduling.Target { return scheduling.Target{Namespace: p.Service.Namespace} }

// InFleet tells whether clusters of the fleet take part.
func (p *Plan) InFleet() bool { return p.inFleet }

// policy of the placement. It is empty for a service without one, or that names clusters alone.
func (p *Plan) policy() v1alpha1.PlacementPolicy {
	if p.spec.Placement == nil {
		return ""
	}
	return p.spec.Placement.Policy
}

// Stopped tells that nobody wants any replicas. A role with scaling may start some again.
func (p *Plan) Stopped() bool {
	return p.groups == 0 || !slices.ContainsFunc(p.Roles, func(r *Role) bool { return r.Replicas > 0 || r.scaling != nil })
}

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

		ClosedPaths:     r.ClosedPaths,
		HostnameBackend: hostnameBackends[in.Fleet.HostnameBackends],
	}
}

// endFleetRoute ends the route of a service that leaves the fleet, once what it led to is answered elsewhere. No fleet route leads
// there. So the copies stay until the route is gone, and another HTTPRoute with the same host names gets the requests at once.
func (p *Plan) endFleetRoute() {
	if scheduling.InFleet(p.spec.Placement) {
		return
	}
	p.FleetRoute.Ends = !slices.ContainsFunc(p.Schedule.Assignments, func(a scheduling.Assignment) bool {
		return a.MayReceiveTraffic && !a.Abandoned && !a.TakenOver
	})
	p.warn(field.NewPath("spec", "placement"), "the service leaves the fleet, and its fleet route goes once it answers elsewhere: clients that came by the fleet's gateways have to follow status.url")
}

// hostnameBackends are the ways to DNS names, by the setting of the Input.
var hostnameBackends = map[inputv1alpha1.HostnameBackends]key.HostnameBackend{
	inputv1alpha1.HostnameEndpointSlice: key.HostnameSlice,
	inputv1alpha1.HostnameServiceEntry:  key.HostnameEntry,
	inputv1alpha1.HostnameExternalName:  key.HostnameExternal,
}

// warnOfMoves warns of moves that clients do not follow: without a fleet route, each cluster has a URL of its own.
func (p *Plan) warnOfMoves() {
	placement := p.spec.Placement
	if placement == nil || placement.Policy == v1alpha1.PlacementReplicate || p.Router == nil || !p.Router.HasRoute || p.FleetRoute != nil {
		return
	}
	moves, follow := "Failover moves the service and not its URL", "status.url"
	if placement.Policy == v1alpha1.PlacementSpread {
		moves, follow = "Spread moves replicas from one cluster to another, each cluster has a URL of its own, and no URL leads to all of them", "the URLs in status.clusters"
	}
	p.warn(field.NewPath("spec", "placement", "policy"),
		"%s, because the platform team sets no fleet.parentRefs in the Composition's input: clients have to follow %s", moves, follow)
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

// backends returns the entrypoints of the clusters in which the service runs, or requests wait for it, and of those that
// may still receive traffic. A cluster that the service leaves has weight 0.
func (p *Plan) backends(running *RunningView) []Backend {
	var all []Backend
	inUse, restarting, refused := map[string]bool{}, map[string]int32{}, map[string]int32{}
	unpicked, unpickedRestarting := map[string]int32{}, map[string]int32{}
	var waiting [waitingPlaces]map[string]int32
	for place := range waiting {
		waiting[place] = map[string]int32{}
	}
	for i := range p.Schedule.Assignments {
		a := &p.Schedule.Assignments[i]
		p.warnOfHostname(a)
		var current Backend
		if a.Entrypoint != nil {
			current = backend(p.Service.Name, a.Target.Cluster, a.Entrypoint, p.FleetRoute.HostnameBackend)
		}
		if a.MayReceiveTraffic {
			all = append(all, p.formerBackends(a.Target.Cluster, current.Name)...)
		}
		place, waits := p.waitsIn(a)
		runs, receives := len(a.Run) > 0 || waits, a.MayReceiveTraffic && p.snapshot.MayReceiveTraffic[current.Name]
		if a.Entrypoint == nil || !runs && !receives {
			continue
		}
		current.Named = runs
		n, restarts := p.ready(a, p.pooled(a, running))
		current.Weight, restarting[current.Name], refused[current.Name] = weigh(a, n, restarts)
		unpicked[current.Name], unpickedRestarting[current.Name] = p.unpicked(a, n), p.unpicked(a, restarts)
		if waits && current.Weight == 0 {
			waiting[place][current.Name] = 1
		}
		inUse[current.Cluster] = receives
		all = append(all, current)
	}
	// Pods that are being replaced stop soon, nobody picks among those without a ready endpoint picker, and a gateway that refuses
	// the service may be about to accept it. They get requests only if no cluster has others. Without any pods, requests go where
	// they can wait for some.
	weighInstead(all, restarting)
	weighInstead(all, unpicked)
	weighInstead(all, unpickedRestarting)
	weighInstead(all, refused)
	for _, weights := range waiting {
		weighInstead(all, weights)
	}
	return p.nameBackends(all, inUse)
}

// weigh returns the weight of a cluster with so many replicas that are ready, and in its place those that are being replaced, or those whose
// requests are refused.
func weigh(a *scheduling.Assignment, ready, replaced int32) (weight, restarting, refused int32) {
	switch {
	case !a.Serves || !a.Existing.Answered():
		return 0, 0, 0
	case a.Existing.Refused():
		return 0, 0, max(ready, replaced)
	}
	return ready, replaced, 0
}

// unpicked returns the replicas of a cluster whose gateway sends requests to any of them, because no endpoint picker is ready there
// (FailOpen). Where requests may have to wait for a replica, they go to no gateway without one: it alone holds them back.
func (p *Plan) unpicked(a *scheduling.Assignment, replicas int32) int32 {
	at := a.Existing
	if !a.Serves || at == nil || at.Answered() || !at.Routed() || at.Refused() || p.Router.FailureMode != v1alpha1.FailOpen || p.Router.Waits() {
		return 0
	}
	return replicas
}

// weighInstead gives backends other weights if none has one.
func weighInstead(all []Backend, weights map[string]int32) {
	if slices.ContainsFunc(all, func(b Backend) bool { return b.Weight > 0 }) {
		return
	}
	for i := range all {
		all[i].Weight = weights[all[i].Name]
	}
}

// Places where requests can wait until a role of the service has started, the best ones first.
const (
	// waitsAtHome is where the service is to run, or waits for capacity, and the endpoint picker was ready.
	waitsAtHome = iota
	// waitsForNow is where the endpoint picker was ready, or the route leads by what it said. What was read of it since may be old.
	waitsForNow
	// waitsOutOfReach is a cluster that is left because it is out of reach.
	waitsOutOfReach
	// waitsUnready is where the service is to run, and the endpoint picker was not ready. Reads of different age may not agree
	// on whether it is, and the weight must not go back to 0 then.
	waitsUnready
	waitingPlaces
)

// waitsIn tells whether requests can wait in a cluster until a role of the service has started, and how good a place that is.
func (p *Plan) waitsIn(a *scheduling.Assignment) (place int, waits bool) {
	if !p.Router.Waits() || a.State == v1alpha1.StateNotPlaced || a.Abandoned || a.Existing == nil {
		return 0, false
	}
	ready, leaves := a.Existing.Answered(), a.State == v1alpha1.StateLeaving
	switch {
	case ready && !leaves:
		return waitsAtHome, true
	case !ready && !a.Weighted:
		return waitsUnready, !leaves
	case a.Reason == scheduling.ReasonUnreachable:
		return waitsOutOfReach, true
	}
	return waitsForNow, true
}

// backend returns the backend of a service's entrypoint in a cluster. h is the way to DNS names. Backends at IP addresses and at DNS names are
// different objects. So the route turns from one to the other at once, and the type of a
// Service, its IP and the family of an EndpointSlice never change.
func backend(service, cluster string, e *v1alpha1.EntrypointStatus, h key.HostnameBackend) Backend {
	b := Backend{Cluster: cluster, Address: e.Address.Value, Port: e.Port}
	if e.Address.Type == string(v1alpha1.AddressTypeHostname) {
		b.HostnameBackend = h
		b.Name = naming.FleetHostname(b.HostnameBackend, service, cluster)
		b.Key, b.SliceKey, b.SliceName = b.HostnameBackend.Backend(cluster), b.HostnameBackend.Slice(cluster), b.Name
		return b
	}
	b.Name, b.IPv6 = naming.FleetBackend(service, cluster), strings.Contains(b.Address, ":")
	b.Key, b.SliceKey, b.SliceName = key.FleetService(cluster), key.FleetSlice(cluster, b.IPv6), b.Name
	if b.IPv6 {
		b.SliceName += "-ipv6"
	}
	return b
}

// formerBackends returns the backends of a cluster from before its entrypoint had another type.
// They stay as they are while a gateway may still send requests to them.
func (p *Plan) formerBackends(cluster, current string) []Backend {
	var all []Backend
	add := func(b Backend) {
		if b.Name != current && p.snapshot.MayReceiveTraffic[b.Name] {
			all = append(all, b)
		}
	}
	if e := p.snapshot.Entrypoints[cluster]; e != nil {
		add(backend(p.Service.Name, cluster, e, p.FleetRoute.HostnameBackend))
	}
	for _, h := range key.HostnameBackends() {
		if e := p.snapshot.Hostnames[h][cluster]; e != nil {
			add(backend(p.Service.Name, cluster, e, h))
		}
	}
	return all
}

// warnOfHostname warns of a cluster whose entrypoint the fleet route cannot lead to.
func (p *Plan) warnOfHostname(a *scheduling.Assignment) {
	if a.UnusedHostname == "" {
		return
	}
	p.warn(field.NewPath("spec", "placement"), "the fleet route cannot lead to cluster %s, because its entrypoint is the DNS name %s, "+
		"and the platform team sets no fleet.hostnameBackends in the Composition's input: no service moves there from a cluster that receives traffic by that route",
		a.Target.Cluster, a.UnusedHostname)
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
		p.warn(field.NewPath("spec", "placement"), "an HTTPRoute has at most %d backends: no requests are sent to %s", maxBackends, strings.Join(leftOut, ", "))
	}
	return kept
}

// pooled returns the type of role whose pods get requests in a cluster. It is empty if those of all roles do. A pool goes on selecting what it
// was last told to select until others can answer (selectPods), unless the service has no such role any more.
func (p *Plan) pooled(a *scheduling.Assignment, running *RunningView) v1alpha1.ComponentType {
	former, exists := running.PoolType(key.New(a.Target.Cluster, key.InferencePool))
	if exists && (former == "" || slices.ContainsFunc(p.Roles, func(r *Role) bool { return r.Type == former })) {
		return former
	}
	return v1alpha1.ComponentType(p.Router.Selector[naming.LabelComponentType])
}

// ready is the number of replicas that run in a cluster, were last seen ready and answer requests. Those
// that restart are counted by themselves. Of the roles in the pool, prefill replicas count only if they get whole requests. Where decode
// answers no request without prefill, it counts only as far as there is some.
func (p *Plan) ready(a *scheduling.Assignment, pooled v1alpha1.ComponentType) (n, restarting int32) {
	needsPrefill := p.most(v1alpha1.ComponentTypePrefiller) >= 0 && needEachOther(p.Roles)
	if pooled == "" || pooled == v1alpha1.ComponentTypeDecoder {
		n, restarting = p.readyOf(a, v1alpha1.ComponentTypeDecoder)
		if needsPrefill {
			switch prefill, prefillRestarting := p.readyOf(a, v1alpha1.ComponentTypePrefiller); {
			case prefill == 0 && prefillRestarting == 0:
				n, restarting = 0, 0
			case prefill == 0:
				n, restarting = 0, n+restarting
			}
		}
	}
	for _, t := range []v1alpha1.ComponentType{v1alpha1.ComponentTypeWorker, v1alpha1.ComponentTypePrefiller} {
		whole := t == v1alpha1.ComponentTypeWorker || !p.Router.Disaggregated && !needsPrefill
		if pooled == t || pooled == "" && whole {
			ready, restarts := p.readyOf(a, t)
			n, restarting = n+ready, restarting+restarts
		}
	}
	return n, restarting
}

// readyOf counts the replicas of a type as ready does.
func (p *Plan) readyOf(a *scheduling.Assignment, t v1alpha1.ComponentType) (n, restarting int32) {
	if a.Existing == nil {
		return 0, 0
	}
	for id, ready := range a.Existing.WasReady {
		switch r := p.RoleOf(id); {
		case !ready || r == nil || r.Type != t || !a.Run[id]:
		case a.Existing.Restarting[id]:
			restarting++
		default:
			n++
		}
	}
	return n, restarting
}
