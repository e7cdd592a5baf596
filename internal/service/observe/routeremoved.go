package observe

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// routesRemoved finds HTTPRoutes that would be deleted although the service keeps its router, and is not stopped. Clients would get
// no answer any more. Mostly the platform team has taken away the gateways by which they come. Whether replicas serve at the moment
// does not count: a crash, or a role that sleeps, must not delete the route of an edit that was refused before.
func (r *ObservedState) routesRemoved() field.ErrorList {
	router := r.plan.Router
	if router == nil || r.plan.Stopped() {
		return nil
	}
	remedy := ". To remove that, remove the router, or " + r.stopFirst("the replicas of all roles", r.roleNames()...)
	if router.HasRoute {
		if r.plan.InFleet() && r.plan.FleetRoute == nil && r.stays(key.FleetRoute) {
			return field.ErrorList{field.Required(field.NewPath("input", "fleet", "parentRefs"),
				"must go on naming a gateway: clients come by the fleet route"+remedy)}
		}
		if in := r.lostHostnames(); len(in) > 0 {
			return field.ErrorList{field.Required(field.NewPath("input", "fleet", "hostnameBackends"),
				"must go on being set: clients come by the fleet route to these clusters, whose entrypoints are DNS names: "+text.Names(in, maxNames)+remedy)}
		}
		return nil
	}
	for i := range r.plan.Clusters {
		if c := &r.plan.Clusters[i]; !c.Abandoned && r.stays(c.Key(key.HTTPRoute)) {
			return field.ErrorList{field.Required(router.Path().Child("httproute", "parentRefs"),
				"must go on naming a gateway, unless the router has a gateway of its own or gateway.parentRefs of the Composition's input names one: clients come to "+
					text.Cluster(c.Target.Cluster)+" by the HTTPRoute"+remedy)}
		}
	}
	return nil
}

// lostHostnames returns the clusters to which the fleet route leads by a DNS name, although the platform team sets no way to such names
// any more. Then the route would lead nowhere.
func (r *ObservedState) lostHostnames() []string {
	if route := r.plan.FleetRoute; route == nil || route.Ends || route.HostnameBackend != "" {
		return nil
	}
	led := map[string]bool{}
	for _, k := range r.req.ObservedKeys() {
		if cluster, _, is := k.FleetHostnameOf(); is && r.stays(k) {
			led[cluster] = true
		}
	}
	var all []string
	for i := range r.plan.Schedule.Assignments {
		if a := &r.plan.Schedule.Assignments[i]; led[a.Target.Cluster] && a.Entrypoint == nil && a.MayReceiveTraffic && len(a.Run) > 0 {
			all = append(all, a.Name)
		}
	}
	return all
}

// stays tells whether an object exists, and is not being deleted.
func (r *ObservedState) stays(k key.Key) bool {
	o := r.req.Observed(k)
	return o.Exists() && o.DeletionTimestamp() == ""
}
