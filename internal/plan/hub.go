package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A Hub is the one way to a service that runs in several clusters: a route on the
// control plane's gateway, weighted over the gateways of the clusters.
type Hub struct {
	// Name of the HTTPRoute.
	Name string
	// Parents are the gateways of the route.
	Parents []v1beta1.ParentRef
	// Hostnames of the route: those of the service's own.
	Hostnames []string
	// Matches of the rules of the service's own route, a list for each. A rule without any takes
	// all requests.
	Matches [][]any
	// Backends in the order of the placement.
	Backends []Backend
}

// A Backend is the gateway of one cluster.
type Backend struct {
	// Cluster is its name in the service.
	Cluster string
	// Name of the Service that leads there.
	Name string
	// SliceName is that of its EndpointSlice.
	SliceName string
	// ServiceKey and SliceKey of these two.
	ServiceKey, SliceKey string
	// Address and Port of the gateway, and whether the address is of IPv6.
	Address string
	Port    int32
	IPv6    bool
	// Weight is the cluster's share of the requests: its ready replicas, or 0.
	Weight int32
}

// Local tells the objects of a service that stay beside the XR although it runs in
// other clusters.
func (p *Plan) Local() Target { return Target{Namespace: p.Service.Namespace} }

// hub is the one way to the service, if the platform team has a gateway for it and the
// service a route that it can lead to.
func (f *fleetPlanner) hub(in *v1beta1.Input) *Hub {
	r := f.p.Router
	if r == nil || !r.HasRoute || len(in.Fleet.ParentRefs) == 0 {
		return nil
	}
	return &Hub{
		Name:      f.p.Service.Name + "-fleet",
		Parents:   in.Fleet.ParentRefs,
		Hostnames: r.Hostnames,
		Matches:   matchesOf(r),
	}
}

// matchesOf are the matches of the rules of the service's own route. Where they lead to is
// decided in the clusters.
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

// backends are the gateways of the clusters in which something runs. A cluster that is
// on its way out stays as long as it has something, and gets no requests any more.
func (f *fleetPlanner) backends() []Backend {
	var all []Backend
	for i, d := range f.p.Fleet.Decisions {
		m := f.members[i]
		at, g := f.world.Places[m.target.Cluster], f.gateway(m)
		if g == nil || len(d.Run) == 0 {
			continue
		}
		b := Backend{
			Cluster:    m.target.Cluster,
			Name:       hubName(f.p.Service, m.target.Cluster),
			ServiceKey: "service/fleet/" + m.target.Cluster,
			SliceKey:   SlicePrefix + m.target.Cluster,
			Address:    g.Address,
			Port:       g.Port,
			IPv6:       strings.Contains(g.Address, ":"),
		}
		b.SliceName = b.Name
		if b.IPv6 {
			b.SliceName, b.SliceKey = b.Name+"-ipv6", SlicePrefix6+m.target.Cluster
		}
		if d.Serving && at != nil && at.RouterServed {
			b.Weight = f.ready(at)
		}
		all = append(all, b)
	}
	return all
}

// maxBackends is what a rule of an HTTPRoute can have (Gateway API v1, HTTPRouteRule).
const maxBackends = 16

// mostImportant are the backends that a route has room for, in their order: first those
// that get requests.
func (f *fleetPlanner) mostImportant(all []Backend) []Backend {
	over := len(all) - maxBackends
	if over <= 0 {
		return all
	}
	var left []string
	for _, drop := range []func(Backend) bool{
		func(b Backend) bool { return b.Weight == 0 },
		func(Backend) bool { return true },
	} {
		for i := len(all) - 1; i >= 0 && over > 0; i-- {
			if drop(all[i]) {
				left = append(left, all[i].Cluster)
				all = slices.Delete(all, i, i+1)
				over--
			}
		}
	}
	f.p.Warnings = append(f.p.Warnings, Warning{
		Path:    "spec.placement",
		Message: fmt.Sprintf("a route leads to %d clusters at most, and none to %s", maxBackends, strings.Join(left, ", ")),
	})
	return all
}

// gateway is where requests reach a cluster, or nil. While the cluster does not say, it
// is where they did.
func (f *fleetPlanner) gateway(m member) *v1alpha1.GatewayStatus {
	if c := f.world.Clusters[m.fleet]; c != nil && c.Status.Gateway != nil && c.Status.Gateway.Address != "" {
		return c.Status.Gateway
	}
	return f.world.Entrances[m.target.Cluster]
}

// ready is the number of replicas that answer requests, as far as is known.
func (f *fleetPlanner) ready(at *Place) int32 {
	n := int32(0)
	for name, served := range at.Served {
		if served && f.serving[name] {
			n++
		}
	}
	return n
}

// hubName is the name of what leads to a cluster's gateway. Service and cluster could
// be joined in more than one way, so it always carries a hash.
func hubName(s Service, cluster string) string {
	return Shorten(s.Name+"-at-"+cluster, s.Name+"/"+cluster, maxLabel)
}

// AskName is the name of the object that carries the service's ask.
func (s Service) AskName() string { return s.Name + "-ask" }

// hasRun tells whether anything runs, or is to run, according to a decision.
func hasRun(d *fleet.Decision) bool {
	return len(d.Run) > 0 || len(d.Units) > 0 && len(d.Wait) == 0
}
