package observe

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// modelRouting is what the InferenceModels of a service go by. It is nil while the service waits for its ModelCache to say
// which model that is: until then, an InferenceModel could get the name of that model.
func modelRouting(p *plan.Plan) *v1alpha1.ModelRoutingStatus {
	if p.Router == nil || !p.Router.KnowsModels() || p.Shared != nil && p.Shared.Used == nil {
		return nil
	}
	n := p.Router.Names
	return &v1alpha1.ModelRoutingStatus{ServedNames: n.Served, AdapterNames: n.Adapters, Complete: n.Complete, AdapterCacheOnly: n.CacheAlone}
}

// servedModels are the models of the router, each with the InferenceObjective that requests
// name for its priority. Where its name differs between clusters it is left out.
func servedModels(p *plan.Plan) []v1alpha1.ServedModelStatus {
	if p.Router == nil || len(p.Clusters) == 0 {
		return nil
	}
	first := &p.Clusters[0]
	differs := slices.ContainsFunc(p.Clusters, func(c plan.ClusterPlan) bool { return c.Base != first.Base })
	var all []v1alpha1.ServedModelStatus
	for _, m := range p.Router.Models {
		s := v1alpha1.ServedModelStatus{Name: m.Name}
		if m.Priority != nil && !differs {
			s.ObjectiveName = first.ModelName(m.Name)
		}
		all = append(all, s)
	}
	return all
}
