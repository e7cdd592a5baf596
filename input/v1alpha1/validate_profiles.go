package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Limits of the profiles. The markers of the types repeat them for the schema. Those of a role's
// fields are the limits of the same fields of an InferenceService, which a test compares.
const (
	maxProfiles     = 64
	maxProfileRoles = 4

	maxNodeCount      = 1024
	minStartupSeconds = 10
	maxStartupSeconds = 24 * 60 * 60
	maxDrainSeconds   = 1800
	maxContextLength  = 1_000_000_000
)

const componentTypeRouter = "router"

func validateProfiles(path *field.Path, profiles []Profile) field.ErrorList {
	profiles, errs := check.Capped(path, profiles, maxProfiles)
	names := map[string]bool{}
	for i := range profiles {
		at, p := path.Index(i), &profiles[i]
		errs = append(errs, check.Required(at.Child("name"), p.Name, "must be a name that no other profile has", check.Label)...)
		if p.Name != "" && names[p.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), text.Value(p.Name)))
		}
		names[p.Name] = true
		errs = append(errs, between(at.Child("maxContextLength"), p.MaxContextLength, 1, maxContextLength)...)
		errs = append(errs, validateProfileRoles(at.Child("roles"), p.Roles)...)
	}
	return errs
}

func validateProfileRoles(path *field.Path, roles []ProfileRole) field.ErrorList {
	if len(roles) == 0 {
		return field.ErrorList{field.Required(path, "must have at least one role")}
	}
	roles, errs := check.Capped(path, roles, maxProfileRoles)
	types := map[string]bool{}
	for i := range roles {
		at, r := path.Index(i), &roles[i]
		switch {
		case r.ComponentType == "":
			errs = append(errs, field.Required(at.Child("componentType"), "must be router, prefiller, decoder or worker"))
		case types[r.ComponentType]:
			errs = append(errs, field.Duplicate(at.Child("componentType"), text.Value(r.ComponentType)))
		}
		types[r.ComponentType] = true
		errs = append(errs, check.OneOf(at.Child("componentType"), r.ComponentType, "router", "prefiller", "decoder", "worker")...)
		errs = append(errs, validateProfileRole(at, r)...)
	}
	return errs
}

func validateProfileRole(at *field.Path, r *ProfileRole) field.ErrorList {
	errs := check.OneOf(at.Child("strategy"), r.Strategy, "prefix-cache", "kv-cache-utilization", "queue-size", "lora-affinity", "pd-disaggregation")
	if e := r.EndpointPicker; e != nil {
		path := at.Child("endpointPicker")
		errs = append(errs, check.OneOf(path.Child("failureMode"), e.FailureMode, "FailClose", "FailOpen")...)
		errs = append(errs, check.Resources(path.Child("resources"), e.Resources)...)
		errs = append(errs, check.Optional(path.Child("kvConnector"), e.KVConnector, check.Label)...)
	}
	if m := r.Multinode; m != nil {
		errs = append(errs, between(at.Child("multinode", "nodeCount"), m.NodeCount, 1, maxNodeCount)...)
		errs = append(errs, check.OneOf(at.Child("multinode", "launcher"), m.Launcher, "Ray", "VLLM", "VLLMDataParallel", "SGLang", "None")...)
	}
	if l := r.Lifecycle; l != nil {
		path := at.Child("lifecycle")
		errs = append(errs, between(path.Child("startupSeconds"), l.StartupSeconds, minStartupSeconds, maxStartupSeconds)...)
		errs = append(errs, between(path.Child("drainSeconds"), l.DrainSeconds, 0, maxDrainSeconds)...)
		errs = append(errs, between(path.Child("shutdownSeconds"), l.ShutdownSeconds, 1, maxDrainSeconds)...)
	}
	errs = append(errs, validateProfileTemplate(at.Child("template"), r.Template)...)
	errs = append(errs, validateProfileTemplate(at.Child("leaderTemplate"), r.LeaderTemplate)...)
	return append(errs, validateProfileFields(at, r)...)
}

func between(at *field.Path, n *int32, from, to int32) field.ErrorList {
	if n == nil {
		return nil
	}
	return check.Between(at, *n, from, to)
}

// validateProfileFields checks that a role has the fields of its type, and no others.
func validateProfileFields(at *field.Path, r *ProfileRole) field.ErrorList {
	router := r.ComponentType == componentTypeRouter
	var errs field.ErrorList
	for _, f := range []struct {
		name        string
		set, router bool
	}{
		{"strategy", r.Strategy != "", true},
		{"endpointPicker", r.EndpointPicker != nil, true},
		{"multinode", r.Multinode != nil, false},
		{"lifecycle", r.Lifecycle != nil, false},
		{"template", r.Template != nil, false},
		{"leaderTemplate", r.LeaderTemplate != nil, false},
	} {
		switch {
		case !f.set || f.router == router:
		case f.router:
			errs = append(errs, field.Forbidden(at.Child(f.name), "must be left out: only a router may have it"))
		default:
			errs = append(errs, field.Forbidden(at.Child(f.name), "must be left out: only a worker, prefiller or decoder may have it"))
		}
	}
	return errs
}

// A profileTemplate has the fields of a template that are read later. A fragment need not be a whole
// template, so only types are checked here.
type profileTemplate struct {
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec corev1.PodSpec `json:"spec"`
}

func validateProfileTemplate(at *field.Path, doc *kube.Document) field.ErrorList {
	if doc == nil {
		return nil
	}
	return append(kube.Decode(doc, at, &profileTemplate{}), kube.CheckDirectives(doc, at)...)
}
