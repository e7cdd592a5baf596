package observe

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// pickedApart finds prefill or decode replicas that serve by themselves, and would get no more requests: the endpoint picker
// begins to pick prefill and decode apart, and none of what it picks from then on serves.
func (r *ObservedState) pickedApart() field.ErrorList {
	if r.plan.Router == nil || !r.plan.Router.Disaggregated {
		return nil
	}
	for i := range r.plan.Clusters {
		c := &r.plan.Clusters[i]
		former, _ := r.PoolType(c.Key(key.InferencePool))
		if former != v1alpha1.ComponentTypePrefiller && former != v1alpha1.ComponentTypeDecoder {
			continue
		}
		if lost := r.lostIn(c, former); lost != nil {
			return field.ErrorList{field.Forbidden(lost.Path(), "must go on getting the requests, because it serves: with "+string(v1alpha1.StrategyPDDisaggregation)+
				" they go to workers, or to decode with what it needs, and none of these serves. Add a role of workers first, or set replicas to 0. "+
				"Where decode answers alone, strategy: "+string(v1alpha1.StrategyPrefixCache)+" in the router until it serves does as well")}
		}
	}
	return nil
}

// lostIn returns a role of a type whose replicas serve with a former template, if nothing serves that the endpoint picker picks.
func (r *ObservedState) lostIn(c *plan.ClusterPlan, former v1alpha1.ComponentType) *plan.Role {
	var lost *plan.Role
	serve := plan.Answering{}
	for replica := range c.Replicas() {
		state := r.Replica(replica.Key)
		if !state.Serving {
			continue
		}
		serve.Add(replica.Role.Type, state)
		if lost == nil && replica.Role.Type == former && !replica.Updated {
			lost = replica.Role
		}
	}
	if serve.Picked(r.plan.Router) {
		return nil
	}
	return lost
}
