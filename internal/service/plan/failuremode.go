package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// failureMode is what the gateway does with requests while no endpoint picker answers, if the user does not say
// it. They go to any pod of the pool, if every one can answer them as they are. They are refused if the
// endpoint picker writes the names of models into requests, as servedModels or InferenceModels with adapters
// say, or if only it knows which pods answer together.
func (r *Router) failureMode(role *v1alpha1.Role, spec *v1alpha1.InferenceServiceSpec, serving []*Role) v1alpha1.FailureMode {
	if len(role.ServedModels) > 0 || spec.AdapterCache != nil || role.EndpointPickerConfig != "" || slices.ContainsFunc(r.behindPool(serving), mayNeedOthers) {
		return v1alpha1.FailClose
	}
	return v1alpha1.FailOpen
}

// mayNeedOthers tells whether the pods of a role may need those of another one to answer a request. A prefill or
// decode pod of vLLM does all of the work if the request names no other pod. SGLang's does not.
func mayNeedOthers(r *Role) bool {
	return r.Type != v1alpha1.ComponentTypeWorker && r.engine != launch.EngineVLLM
}

// warnOfReplicas warns of endpoint pickers that elect a leader. The leader alone is Ready, so a rolling update
// would wait for ever, and their Deployment has the strategy Recreate.
func (r *Router) warnOfReplicas(path *field.Path) []Warning {
	if r.Replicas < 2 || r.FailureMode != v1alpha1.FailClose {
		return nil
	}
	return []Warning{warningAt(path.Child("replicas"), "all endpoint pickers end before the next ones start, and with failureMode FailClose requests are refused until the answers in progress have ended, for two minutes at most, and a new one is Ready: "+
		"set at most 1, or set endpointPicker.failureMode to FailOpen if any pod can answer any request alone")}
}
