package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// names reads which models the engines of a role answer. A command whose flags are not all known may name
// further adapters.
func (p *rolePlanner) names() {
	t := &p.role.Leader
	p.role.model = t.parsed.Model()
	p.role.engine = p.engineOf(t)
	open := p.role.line != nil && p.role.line.Open
	e := t.engine()
	p.role.names = t.expanded.Names(p.role.engine)
	known := p.role.names.Complete && !open && len(e.EnvFrom) == 0
	p.role.names.Complete = known && !slices.ContainsFunc(e.Env, addsNames)
	p.role.names.CacheAlone = known && p.adapters != nil && !slices.ContainsFunc(e.Env, func(v corev1.EnvVar) bool {
		return addsNames(v) && v.Name != loraUpdating && !slices.Contains(adapterVariables(), v)
	})
}

// addsNames tells whether a variable makes vLLM answer names that its command does not have
// (vllm/envs.py of vLLM v0.11.0).
func addsNames(v corev1.EnvVar) bool {
	return slices.Contains([]string{loraUpdating, "VLLM_SKIP_MODEL_NAME_VALIDATION"}, v.Name) || strings.HasPrefix(v.Name, "VLLM_LORA_RESOLVER_")
}

// maxModelNames is the most names that the status of a service has of each kind.
const maxModelNames = 256

// modelNames are the names that the engines behind a router answer: those of any role. They are
// complete if those of all roles are.
func modelNames(behind []*Role) launch.Names {
	all := launch.Names{Complete: len(behind) > 0, CacheAlone: len(behind) > 0}
	for _, r := range behind {
		all.Served = append(all.Served, r.names.Served...)
		all.Adapters = append(all.Adapters, r.names.Adapters...)
		all.Complete = all.Complete && r.names.Complete
		all.CacheAlone = all.CacheAlone && r.names.CacheAlone
	}
	for _, list := range []*[]string{&all.Served, &all.Adapters} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
		if len(*list) > maxModelNames {
			*list, all.Complete = (*list)[:maxModelNames], false
			all.CacheAlone = false
		}
	}
	return all
}

// KnowsModels tells whether the endpoint picker goes by the names of models: whether it reads
// InferenceObjectives and InferenceModelRewrites.
func (r *Router) KnowsModels() bool { return r.Dialect == modelroute.Dialect }

// warnOfAdapters warns of adapters that no request gets to by the name of an InferenceModel. That spec.adapterCache does not
// choose the endpoint picker is for services that have one already: another image would restart it.
func (r *Router) warnOfAdapters(spec *v1alpha1.InferenceServiceSpec) []Warning {
	if spec.AdapterCache == nil || r.KnowsModels() {
		return nil
	}
	return []Warning{warningAt(field.NewPath("spec", "adapterCache"), "no request gets to an adapter by the name of its InferenceModel, because the router does not go by the names of models: %s", modelroute.Routers)}
}

// warnOfTargets warns of targets of models that no engine answers. Which adapters are in spec.adapterCache is not
// known here.
func (r *Router) warnOfTargets(path *field.Path, models []v1alpha1.ServedModel) []Warning {
	if !r.Names.Complete && !r.Names.CacheAlone {
		return nil
	}
	var warnings []Warning
	known := modelroute.Known(r.Names.Served, r.Names.Adapters)
	for i := range r.Models {
		for _, t := range known.Unknown(&r.Models[i]) {
			at := path.Index(i).Child("name")
			if j := slices.IndexFunc(models[i].Targets, func(m v1alpha1.ModelTarget) bool { return m.Name == t }); j >= 0 {
				at = path.Index(i).Child("targets").Index(j).Child("name")
			}
			message := fmt.Sprintf("no engine answers requests for %s: %s", text.Value(t), modelroute.Remedy)
			if !r.Names.Complete {
				message = fmt.Sprintf("engines answer requests for %s only if spec.adapterCache has a directory of that name: take the name out here and let an InferenceModel have it, with an adapter, or %s", text.Value(t), modelroute.Remedy)
			}
			warnings = append(warnings, warningAt(at, "%s", message))
		}
	}
	return warnings
}
