package router

import "github.com/fusioninfer/function-inferenceservice/internal/key"

// models returns an InferenceObjective for each model with a priority, and an
// InferenceModelRewrite for each model.
func (r *rendering) models() []object {
	var all []object
	for i := range r.router.Models {
		m := &r.router.Models[i]
		name, pool := r.cluster.ModelName(m.Name), r.cluster.PoolName()
		meta := r.meta(name)
		if m.Priority != nil {
			all = append(all, object{r.cluster.Key(key.InferenceObjective, name), m.Objective(meta, pool)})
		}
		all = append(all, object{r.cluster.Key(key.InferenceModelRewrite, name), m.Rewrite(meta, pool)})
	}
	return all
}
