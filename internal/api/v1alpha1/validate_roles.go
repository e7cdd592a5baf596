package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

func validateRoles(path *field.Path, roles []Role) field.ErrorList {
	if len(roles) == 0 {
		return field.ErrorList{field.Required(path, "must have at least one role: a worker, or a prefiller and a decoder")}
	}
	roles, errs := check.Capped(path, roles, MaxRoles)
	names := unique{}
	for i := range roles {
		p := path.Index(i)
		errs = append(errs, validateRole(p, &roles[i])...)
		errs = append(errs, names.check(p.Child("name"), roles[i].Name)...)
	}
	return append(errs, validateCombination(path, roles)...)
}

// validateCombination checks the roles against each other.
func validateCombination(path *field.Path, roles []Role) field.ErrorList {
	var errs field.ErrorList
	router := -1
	for i, r := range roles {
		switch {
		case r.ComponentType != ComponentTypeRouter:
			continue
		case router >= 0:
			errs = append(errs, field.Invalid(path.Index(i).Child("componentType"), r.ComponentType, fmt.Sprintf("must be another type: a service may have one router, which is %s", path.Index(router))))
		default:
			router = i
		}
		if r.Strategy == StrategyPDDisaggregation && !(has(roles, ComponentTypePrefiller) && has(roles, ComponentTypeDecoder)) {
			errs = append(errs, field.Invalid(path.Index(i).Child("strategy"), r.Strategy, "needs a role of componentType prefiller and one of componentType decoder"))
		}
	}
	if router >= 0 && !has(roles, ComponentTypeWorker, ComponentTypePrefiller, ComponentTypeDecoder) {
		errs = append(errs, field.Required(path, "must have at least one role of componentType worker, prefiller or decoder: a router alone has nothing to route to"))
	}
	return errs
}

// has tells whether any role has one of the types. A role whose type is missing or unknown
// counts as any type: it has an error of its own, and causes no second one.
func has(roles []Role, types ...ComponentType) bool {
	for _, r := range roles {
		if !r.ComponentType.Known() {
			return true
		}
		for _, t := range types {
			if r.ComponentType == t {
				return true
			}
		}
	}
	return false
}

func validateRole(path *field.Path, r *Role) field.ErrorList {
	errs := validateRoleName(path.Child("name"), r)
	if r.ComponentType == "" {
		errs = append(errs, field.Required(path.Child("componentType"), fmt.Sprintf("must be one of %q", componentTypes)))
	}
	errs = append(errs, check.OneOf(path.Child("componentType"), r.ComponentType, componentTypes...)...)
	if r.Replicas != nil {
		errs = append(errs, check.Between(path.Child("replicas"), *r.Replicas, 0, MaxReplicas)...)
	}
	errs = append(errs, validateRoleScaling(path, r)...)
	errs = append(errs, validateMultinode(path.Child("multinode"), r.Multinode)...)
	errs = append(errs, validateLifecycle(path.Child("lifecycle"), r.Lifecycle)...)
	errs = append(errs, validateRecovery(path, r)...)
	errs = append(errs, validateRouter(path, r)...)
	return append(errs, validateType(path, r)...)
}

func validateRoleName(path *field.Path, r *Role) field.ErrorList {
	switch name := r.Name; {
	case name == "":
		return field.ErrorList{field.Required(path, "must be set, and differ from other roles' names")}
	case len(name) > MaxRoleName && r.ComponentType != ComponentTypeRouter:
		return nil // validateNames says how long it may be beside the service's name.
	case len(name) > MaxRoleName:
		return check.Length(path, name, MaxRoleName)
	default:
		return check.Label(path, name)
	}
}

func validateMultinode(path *field.Path, m *Multinode) field.ErrorList {
	if m == nil {
		return nil
	}
	var errs field.ErrorList
	if n := m.NodeCount; n != nil {
		errs = check.Between(path.Child("nodeCount"), *n, 1, MaxNodes)
	} else {
		errs = append(errs, field.Required(path.Child("nodeCount"), fmt.Sprintf("must be the number of nodes of a replica, 1 to %d", MaxNodes)))
	}
	return append(errs, check.OneOf(path.Child("launcher"), m.Launcher, LauncherRay, LauncherVLLM, LauncherVLLMDataParallel, LauncherSGLang, LauncherNone)...)
}

// validateRouter checks the fields of a router, in a role of any type.
func validateRouter(path *field.Path, r *Role) field.ErrorList {
	errs := check.OneOf(path.Child("strategy"), r.Strategy, StrategyPrefixCache, StrategyKVCacheUtilization, StrategyQueueSize, StrategyLoRAAffinity, StrategyPDDisaggregation)
	errs = append(errs, check.Length(path.Child("endpointPickerConfig"), r.EndpointPickerConfig, MaxConfig)...)
	errs = append(errs, validateEndpointPicker(path.Child("endpointPicker"), r.EndpointPicker)...)
	return append(errs, validateServedModels(path.Child("servedModels"), r.ServedModels)...)
}

func validateEndpointPicker(path *field.Path, e *EndpointPicker) field.ErrorList {
	if e == nil {
		return nil
	}
	errs := check.OneOf(path.Child("failureMode"), e.FailureMode, FailClose, FailOpen)
	errs = append(errs, check.Resources(path.Child("resources"), e.Resources)...)
	errs = append(errs, check.Optional(path.Child("kvConnector"), e.KVConnector, check.Label)...)
	return errs
}

// validateType checks that a role has the fields of its type, and no others.
func validateType(path *field.Path, r *Role) field.ErrorList {
	switch r.ComponentType {
	case ComponentTypeRouter:
		return refuse(path, "a worker, prefiller or decoder", r.servingFields())
	case ComponentTypeWorker, ComponentTypePrefiller, ComponentTypeDecoder:
		errs := refuse(path, "a router", r.routerFields())
		if r.Template == nil {
			errs = append(errs, field.Required(path.Child("template"), "must be the template of the pods of a "+string(r.ComponentType)+", unless spec.profileName names a profile that has one"))
		}
		return errs
	}
	return nil
}

// A given is a field that may be set, with its value as an error shows it.
type given struct {
	name  string
	value any
	set   bool
}

func (r *Role) servingFields() []given {
	return []given{
		{"multinode", object, r.Multinode != nil},
		{"template", object, r.Template != nil},
		{"leaderTemplate", object, r.LeaderTemplate != nil},
		{"lifecycle", object, r.Lifecycle != nil},
		{"scaling", object, r.Scaling != nil},
		{"recoveryPolicy", r.RecoveryPolicy, r.RecoveryPolicy != ""},
		{"restartGracePeriodSeconds", ptr.Deref(r.RestartGracePeriodSeconds, 0), r.RestartGracePeriodSeconds != nil},
	}
}

func (r *Role) routerFields() []given {
	return []given{
		{"strategy", r.Strategy, r.Strategy != ""},
		{"httproute", object, r.HTTPRoute != nil},
		{"gateway", object, r.Gateway != nil},
		{"endpointPickerConfig", text.Value(r.EndpointPickerConfig), r.EndpointPickerConfig != ""},
		{"endpointPicker", object, r.EndpointPicker != nil},
		{"servedModels", "[...]", len(r.ServedModels) > 0},
	}
}

// object is what an error shows in place of an object.
const object = "{...}"

func refuse(path *field.Path, of string, fields []given) field.ErrorList {
	var errs field.ErrorList
	for _, f := range fields {
		if f.set {
			errs = append(errs, field.Invalid(path.Child(f.name), f.value, "must be left out: only "+of+" may have it"))
		}
	}
	return errs
}

func validateServedModels(path *field.Path, models []ServedModel) field.ErrorList {
	models, errs := check.Capped(path, models, MaxModels)
	names := unique{}
	for i, m := range models {
		p := path.Index(i)
		errs = append(errs, validateModelName(p.Child("name"), m.Name, names)...)
		errs = append(errs, validatePriority(p, m.Priority, m.Criticality)...)
		errs = append(errs, validateTargets(p.Child("targets"), m.Targets)...)
	}
	return errs
}

func validateTargets(path *field.Path, targets []ModelTarget) field.ErrorList {
	targets, errs := check.Capped(path, targets, MaxTargets)
	names := unique{}
	served := len(targets) == 0
	for i, t := range targets {
		p := path.Index(i)
		errs = append(errs, validateModelName(p.Child("name"), t.Name, names)...)
		if t.Weight != nil {
			errs = append(errs, check.Between(p.Child("weight"), *t.Weight, 0, MaxWeight)...)
		}
		served = served || t.Weight == nil || *t.Weight != 0
	}
	if !served {
		errs = append(errs, field.Invalid(path, "every weight is 0", "must have at least one target with a weight above 0: otherwise nothing answers requests for the model"))
	}
	return errs
}

func validateModelName(path *field.Path, name string, names unique) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "must be the name of the model")}
	}
	return append(check.Length(path, name, MaxName), names.check(path, name)...)
}
