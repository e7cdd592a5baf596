package observe

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// routesRemoved finds HTTPRoutes that would be deleted although the service serves and keeps its router. Clients would get no
// answer any more. Mostly the platform team has taken away the gateways by which they come.
func (r *ObservedState) routesRemoved() field.ErrorList {
	router := r.plan.Router
	if router == nil {
		return nil
	}
	served := ""
	for c, replica := range r.plan.Replicas() {
		if !r.mayServe(replica.Key) {
			continue
		}
		served = clusterName(c.Target.Cluster)
		if !router.HasRoute && !c.Leaving && r.Observed(c.Key(key.HTTPRoute)) {
			return field.ErrorList{field.Required(field.NewPath("spec", "roles").Key(router.Name).Child("httproute", "parentRefs"),
				"must go on naming a gateway while replicas serve in "+served+", or gateway.parentRefs of the Composition's input must: clients come by the HTTPRoute. To remove that, set replicas to 0 first")}
		}
	}
	if served != "" && r.plan.InFleet() && r.plan.FleetRoute == nil && r.Observed(key.FleetRoute) {
		return field.ErrorList{field.Required(field.NewPath("input", "fleet", "parentRefs"),
			"must go on naming a gateway while replicas serve in "+served+": clients come by the fleet route. To remove that, set replicas to 0 first")}
	}
	return nil
}
