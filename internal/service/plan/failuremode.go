package plan

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// failureMode is what the gateway does with requests while no endpoint picker answers, if the user does not say
// it. They go to any pod of the pool, if every one can answer them as they are. They are refused if the
// endpoint picker writes the names of models into requests, as servedModels or InferenceModels with adapters
// say, or if only it knows which pods answer together.
func (r *Router) failureMode(role *v1alpha1.Role, spec *v1alpha1.InferenceServiceSpec, serving []*Role) v1alpha1.FailureMode {
	if len(role.ServedModels) > 0 || spec.AdapterCache != nil || role.EndpointPickerConfig != "" || slices.ContainsFunc(r.behindPool(serving), needsOthers) {
		return v1alpha1.FailClose
	}
	return v1alpha1.FailOpen
}

// needsOthers tells whether the pods of a role may need those of another one to answer a request. A prefill or
// decode pod of vLLM does all of the work if the request names no other pod. SGLang's does not.
func needsOthers(r *Role) bool {
	return r.Type != v1alpha1.ComponentTypeWorker && r.engine != launch.EngineVLLM
}
