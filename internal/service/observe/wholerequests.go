package observe

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// wholeRequestsEnd finds prefill or decode replicas that get whole requests, and would get no more: the endpoint picker begins to pick
// prefill and decode apart, and none of what it picks from then on serves.
func (r *ObservedState) wholeRequestsEnd() field.ErrorList {
	router := r.plan.Router
	if router == nil || !router.PicksApart {
		return nil
	}
	for i := range r.plan.Clusters {
		c := &r.plan.Clusters[i]
		// A version of the function before did not write that the configuration picks them apart.
		if hash := r.PickerConfig(c.ConfigKey()); c.Abandoned || r.picksApart(c) || r.toldApart(c) || hash == "" || hash == router.ConfigHash(c) {
			continue
		}
		if lost := r.lostIn(c, router.ScreensRevisions && router.ScreensBoth); lost != nil {
			return field.ErrorList{field.Forbidden(lost.Path(), "must go on getting the requests, because it serves: with "+string(v1alpha1.StrategyPDDisaggregation)+
				" they go to workers, or to decode with what it needs, and none of these serves. Add a role of workers, or "+r.stopFirst("replicas", lost.Name)+". "+
				"Where decode answers alone, strategy: "+string(v1alpha1.StrategyPrefixCache)+" in the router until it serves does as well")}
		}
	}
	return nil
}

// lostIn returns a role that may serve, and gets whole requests so far, if nothing serves that is picked from now on.
func (r *ObservedState) lostIn(c *plan.ClusterPlan, needsBoth bool) *plan.Role {
	former, _ := r.PoolType(c.Key(key.InferencePool))
	var lost *plan.Role
	serve := plan.Versions{}
	for replica := range c.Replicas() {
		state, t := r.Replica(replica.Key), replica.Role.Type
		if state.Serving {
			serve.Add(t, state.RunningRevision)
		}
		gets := former == "" || former == t
		picked := t == v1alpha1.ComponentTypeWorker || t == v1alpha1.ComponentTypeDecoder && !needsBoth
		if lost == nil && gets && !picked && state.MayServe() {
			lost = replica.Role
		}
	}
	if serve.Picked(needsBoth) {
		return nil
	}
	return lost
}

// wholeRequestsBegin finds prefill and decode that answer only together, and would get whole requests from now on: the strategy of the endpoint
// picker does not pick them apart any more. Each of them would refuse every request.
func (r *ObservedState) wholeRequestsBegin() field.ErrorList {
	router := r.plan.Router
	if router == nil || !router.SendsWhole() {
		return nil
	}
	for i := range r.plan.Clusters {
		c := &r.plan.Clusters[i]
		if c.Abandoned || !r.picksApart(c) || !r.toldApart(c) || r.selected(c).Whole() {
			continue
		}
		serve := plan.Versions{}
		for replica := range c.Replicas() {
			if state := r.Replica(replica.Key); state.MayServe() {
				serve.Add(replica.Role.Type, state.RunningRevision)
			}
		}
		if serve.Pairs() {
			return field.ErrorList{field.Forbidden(router.Path().Child("strategy"), "must be "+string(v1alpha1.StrategyPDDisaggregation)+
				" while prefill and decode serve: neither answers whole requests alone. Add a role of workers and wait until it serves, or "+r.stopFirst("the replicas of all roles", r.roleNames()...))}
		}
	}
	return nil
}
