package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/epp"
)

// disaggregated tells whether prefill and decode pods are picked apart: the
// service has a router and both kinds of pods, and nobody chose another strategy.
// A configuration of the user's own counts too; it is then in charge of it.
func disaggregated(spec *v1alpha1.InferenceServiceSpec) bool {
	var prefiller, decoder, router bool
	for i := range spec.Roles {
		switch r := &spec.Roles[i]; r.ComponentType {
		case v1alpha1.ComponentTypePrefiller:
			prefiller = true
		case v1alpha1.ComponentTypeDecoder:
			decoder = true
		case v1alpha1.ComponentTypeRouter:
			router = router || r.Strategy == "" || r.Strategy == v1alpha1.StrategyPDDisaggregation
		case v1alpha1.ComponentTypeWorker:
		}
	}
	return prefiller && decoder && router
}

// planRouter plans the router of a service. Serving are the roles behind it; one
// that could not be planned is missing. Access says which gateways, names and backends
// its route may have.
func planRouter(i int, role v1alpha1.Role, spec *v1alpha1.InferenceServiceSpec, in *v1beta1.Input, serving []*Role, access *routeAccess) (*Router, []Warning, field.ErrorList) {
	r := &Router{
		Name:            role.Name,
		Disaggregated:   disaggregated(spec),
		Replicas:        1,
		FailureMode:     cmp.Or(role.FailureMode, v1alpha1.FailClose),
		Pod:             planEndpointPickerPod(role, in),
		DestinationRule: in.Gateway.IstioDestinationRule,
		Models:          planModels(role.Models),
	}
	if role.Replicas != nil {
		r.Replicas = *role.Replicas
	}
	path := rolePath(i)
	errs := r.planConfig(path, role, spec, in)
	warnings, more := r.planPool(path, serving)
	errs = append(errs, more...)
	w, more := r.planRoute(path, role, access)
	return r, append(warnings, w...), append(errs, more...)
}

// planConfig decides what the endpoint picker is told, in which dialect, and so
// which image reads it.
func (r *Router) planConfig(path *field.Path, role v1alpha1.Role, spec *v1alpha1.InferenceServiceSpec, in *v1beta1.Input) field.ErrorList {
	r.Strategy = role.Strategy
	if r.Strategy == "" {
		r.Strategy = v1alpha1.StrategyPrefixCache
		if r.Disaggregated {
			r.Strategy = v1alpha1.StrategyPDDisaggregation
		}
	}
	pinned := in.EndpointPicker.Dialect
	errs := r.refusePinned(path, role, pinned)
	r.Dialect = pinned
	if pinned == "" {
		r.Dialect = r.wantedDialect()
	}
	if role.EndpointPickerConfig != "" {
		r.Strategy = ""
		errs = append(errs, r.useConfig(path.Child("endpointPickerConfig"), role.EndpointPickerConfig, pinned)...)
	}
	r.Image = image(in, r.Dialect)
	if role.EndpointPickerConfig != "" || len(errs) > 0 {
		return errs
	}
	// A strategy that nobody knows was refused by the validation of the API.
	r.Config, _ = epp.Generate(r.Strategy, r.Dialect, hasType(spec, v1alpha1.ComponentTypeWorker))
	return nil
}

// wantedDialect is the one that can do what the service asks for.
func (r *Router) wantedDialect() v1beta1.Dialect {
	if r.Strategy == v1alpha1.StrategyPDDisaggregation || r.Disaggregated || len(r.Models) > 0 {
		return v1beta1.DialectLLMD
	}
	return v1beta1.DialectGAIE
}

// refusePinned refuses what the image that the platform team chose cannot do.
func (r *Router) refusePinned(path *field.Path, role v1alpha1.Role, pinned v1beta1.Dialect) field.ErrorList {
	if pinned != v1beta1.DialectGAIE {
		return nil
	}
	const ask = "needs an endpoint picker of dialect LLMD, and the platform team chose one of dialect GAIE (endpointPicker in the Composition's input)"
	var errs field.ErrorList
	if r.Disaggregated || r.Strategy == v1alpha1.StrategyPDDisaggregation {
		errs = append(errs, field.Invalid(path.Child("strategy"), cmp.Or(role.Strategy, v1alpha1.StrategyPDDisaggregation), ask+"; with another strategy every pod answers whole requests"))
	}
	if len(role.Models) > 0 {
		errs = append(errs, field.Forbidden(path.Child("models"), ask))
	}
	return errs
}

// useConfig takes a configuration of the user's own, unchanged. Its dialect is
// that of its apiVersion. The older one is read by both: there it depends on the
// image, or on what else the service asks for.
func (r *Router) useConfig(path *field.Path, text string, pinned v1beta1.Dialect) field.ErrorList {
	r.Config = text
	if len(text) > maxConfigBytes {
		// Refused by the validation of the API.
		return nil
	}
	c, errs := epp.Parse(text, path)
	if len(errs) > 0 {
		return errs
	}
	if c.APIVersion() == epp.APIVersionLLMD {
		if pinned == v1beta1.DialectGAIE {
			return field.ErrorList{field.Invalid(path.Child("apiVersion"), epp.APIVersionLLMD, "must be "+epp.APIVersionGAIE+": the platform team chose an endpoint picker of dialect GAIE (endpointPicker in the Composition's input)")}
		}
		r.Dialect = v1beta1.DialectLLMD
	}
	return c.Check(r.Dialect)
}

// maxConfigBytes is above what the API accepts in characters of any length.
const maxConfigBytes = 4 * v1alpha1.MaxConfig

func image(in *v1beta1.Input, d v1beta1.Dialect) string {
	switch {
	case in.EndpointPicker.Image != "":
		return in.EndpointPicker.Image
	case d == v1beta1.DialectLLMD:
		return cmp.Or(in.EndpointPicker.Images.LLMD, v1beta1.DefaultImageLLMD)
	}
	return cmp.Or(in.EndpointPicker.Images.GAIE, v1beta1.DefaultImageGAIE)
}

func hasType(spec *v1alpha1.InferenceServiceSpec, t v1alpha1.ComponentType) bool {
	for i := range spec.Roles {
		if spec.Roles[i].ComponentType == t {
			return true
		}
	}
	return false
}

// planEndpointPickerPod lets the service's own resources win over the platform
// team's. The defaults are small requests, so that the endpoint picker starts
// anywhere, and a limit for memory, which the prefix index can use up.
func planEndpointPickerPod(role v1alpha1.Role, in *v1beta1.Input) EndpointPickerPod {
	e := &in.EndpointPicker
	pod := EndpointPickerPod{
		ImagePullPolicy:  cmp.Or(e.ImagePullPolicy, corev1.PullIfNotPresent),
		ImagePullSecrets: e.ImagePullSecrets,
		Tolerations:      e.Tolerations,
		NodeSelector:     e.NodeSelector,
		Resources:        cmp.Or(role.Resources, e.Resources),
	}
	if pod.Resources == nil {
		pod.Resources = &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("250m"),
				corev1.ResourceMemory: resource.MustParse("512Mi"),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")},
		}
	}
	return pod
}

// The priorities of the criticalities. A request without an objective has 0.
var priorities = map[v1alpha1.Criticality]int32{
	v1alpha1.CriticalityCritical:  10,
	v1alpha1.CriticalityStandard:  0,
	v1alpha1.CriticalitySheddable: -10,
}

// planModels turns models into what the endpoint picker knows. The API's
// validation has refused duplicates, and models that nothing answers for.
func planModels(models []v1alpha1.Model) []Model {
	var planned []Model
	for _, m := range models {
		p := Model{Name: m.Name, Priority: m.Priority}
		if v, ok := priorities[m.Criticality]; ok && p.Priority == nil {
			p.Priority = &v
		}
		for _, t := range m.Targets {
			weight := int32(1)
			if t.Weight != nil {
				weight = *t.Weight
			}
			if weight > 0 {
				// The least weight of a rewrite is 1; one of 0 gets no requests.
				p.Targets = append(p.Targets, ModelTarget{Name: t.Name, Weight: weight})
			}
		}
		if len(m.Targets) == 0 {
			p.Targets = []ModelTarget{{Name: m.Name, Weight: 1}}
		}
		planned = append(planned, p)
	}
	return planned
}

// planPool decides which pods are behind the pool, and the port they answer on.
func (r *Router) planPool(path *field.Path, serving []*Role) ([]Warning, field.ErrorList) {
	behind := r.behindPool(serving)
	r.Selector = map[string]string{}
	if t, one := onlyType(behind); one && !r.Disaggregated {
		r.Selector[LabelComponentType] = string(t)
	}
	r.Port = defaultPort
	var errs field.ErrorList
	for i, role := range behind {
		switch {
		case i == 0:
			r.Port = role.Port
		case role.Port != r.Port:
			errs = append(errs, field.Invalid(role.portPath(), role.Port, fmt.Sprintf("must be %d, as in role %s: all pods behind one router answer on the same port", r.Port, behind[0].Name)))
		}
	}
	var warnings []Warning
	if len(r.Selector) == 0 && !r.Disaggregated {
		warnings = append(warnings, Warning{
			Path:    path.Child("strategy").String(),
			Message: "prefill and decode pods alike get whole requests: only pd-disaggregation tells them apart",
		})
	}
	if left := len(serving) - len(behind); left > 0 {
		warnings = append(warnings, Warning{
			Path:    path.Child("strategy").String(),
			Message: fmt.Sprintf("%s get no requests: without pd-disaggregation they go to the workers", notIn(serving, behind)),
		})
	}
	return warnings, errs
}

// behindPool are the roles that requests go to. Without disaggregation nobody
// brings prefill and decode together, so where there are workers requests go to
// them alone; where there are none every pod answers whole requests.
func (r *Router) behindPool(serving []*Role) []*Role {
	if r.Disaggregated {
		return serving
	}
	var workers []*Role
	for _, s := range serving {
		if s.Type == v1alpha1.ComponentTypeWorker {
			workers = append(workers, s)
		}
	}
	if len(workers) > 0 {
		return workers
	}
	return serving
}

// onlyType is the type that all roles have. A service without roles, which
// happens only beside an error, has the type of most services.
func onlyType(roles []*Role) (v1alpha1.ComponentType, bool) {
	if len(roles) == 0 {
		return v1alpha1.ComponentTypeWorker, true
	}
	for _, r := range roles {
		if r.Type != roles[0].Type {
			return "", false
		}
	}
	return roles[0].Type, true
}

func notIn(all, some []*Role) string {
	var names []string
	for _, r := range all {
		if !slices.Contains(some, r) {
			names = append(names, r.Name)
		}
	}
	return "roles " + strings.Join(names, ", ")
}

func (r *Role) portPath() *field.Path {
	if r.path == nil {
		return field.NewPath("spec", "roles").Key(r.Name)
	}
	return r.path.Child("template", "spec", "containers")
}
