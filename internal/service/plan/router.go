package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/epp"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// hasPairs tells whether a service has prefill and decode roles. Their pods get what a router with
// pd-disaggregation needs, whether there is one or not. So a change of the router changes no pods.
func hasPairs(spec *v1alpha1.InferenceServiceSpec) bool {
	return hasType(spec, v1alpha1.ComponentTypePrefiller) && hasType(spec, v1alpha1.ComponentTypeDecoder)
}

// disaggregates tells whether a router picks prefill and decode pods separately: its strategy is
// pd-disaggregation or none, and the service has both kinds of roles. With a configuration of the
// user's, that configuration must do so.
func disaggregates(router *v1alpha1.Role, spec *v1alpha1.InferenceServiceSpec) bool {
	return hasPairs(spec) && (router.Strategy == "" || router.Strategy == v1alpha1.StrategyPDDisaggregation)
}

// planRouter plans the router of a service. serving has the roles that were planned. access says
// which gateways, host names and backends the route may use.
func planRouter(i int, role v1alpha1.Role, spec *v1alpha1.InferenceServiceSpec, in *inputv1alpha1.Input, serving []*Role, access *routeAccess, knowsModels bool) (*Router, []Warning, field.ErrorList) {
	picker := ptr.Deref(role.EndpointPicker, v1alpha1.EndpointPicker{})
	path := rolePath(i)
	r := &Router{
		path:            path,
		Name:            role.Name,
		Disaggregated:   disaggregates(&role, spec),
		Replicas:        ptr.Deref(role.Replicas, 0),
		Pod:             planEndpointPickerPod(picker, in),
		DestinationRule: in.Gateway.IstioDestinationRule,
		Models:          planModels(role.ServedModels),
		Tracing:         pickerTracing(in.Monitoring.Tracing, role.Name),
	}
	warnings, errs := r.planConfig(path, role, spec, in, knowsModels)
	w, more := r.planPool(path, serving)
	warnings, errs = append(warnings, w...), append(errs, more...)
	r.Names = modelNames(r.behindPool(serving))
	r.ScreensBoth = needEachOther(serving) && !hasType(spec, v1alpha1.ComponentTypeWorker)
	r.FailureMode = cmp.Or(picker.FailureMode, r.failureMode(&role, spec, serving))
	warnings = append(warnings, r.warnOfAdapters(spec)...)
	warnings = append(warnings, r.warnOfTargets(path.Child("servedModels"), role.ServedModels)...)
	warnings = append(warnings, planConnector(path, picker.KVConnector, serving)...)
	warnings = append(warnings, r.warnOfReplicas(path)...)
	w, more = r.planRoute(path, role, access)
	return r, append(warnings, w...), append(errs, more...)
}

// planConfig decides the configuration of the endpoint picker, its dialect, and the image for
// that dialect.
func (r *Router) planConfig(path *field.Path, role v1alpha1.Role, spec *v1alpha1.InferenceServiceSpec, in *inputv1alpha1.Input, knowsModels bool) ([]Warning, field.ErrorList) {
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
		if r.Dialect != modelroute.Dialect && knowsModels && role.EndpointPickerConfig == "" {
			r.Dialect, r.KeepsDialect = modelroute.Dialect, true
		}
	}
	var warnings []Warning
	if role.EndpointPickerConfig != "" {
		r.Strategy = ""
		w, more := r.useConfig(path.Child("endpointPickerConfig"), role.EndpointPickerConfig, pinned, in.EndpointPicker.Image != "")
		warnings, errs = slices.Concat(w, warnOfStrategy(path, &role, spec)), append(errs, more...)
	}
	r.Image = image(in, r.Dialect)
	r.EndsAtOnce = r.Replicas > 1 && r.Dialect == inputv1alpha1.DialectLLMD && hasScreener(in, r.Image)
	if role.EndpointPickerConfig != "" || len(errs) > 0 {
		return warnings, errs
	}
	r.PicksApart = r.Strategy == v1alpha1.StrategyPDDisaggregation
	// Validation of the API refuses unknown strategies.
	r.Config, _ = epp.Generate(r.Strategy, r.Dialect, hasType(spec, v1alpha1.ComponentTypeWorker))
	if r.QueueTTL = wakeTime(spec); r.QueueTTL > 0 {
		r.Config = epp.WithQueue(r.Config, r.Dialect, r.QueueTTL, queueBytes(r.Pod.Resources))
	}
	r.ScreensRevisions = r.Disaggregated && hasScreener(in, r.Image)
	return r.warnOfVersions(path, in), nil
}

// hasScreener tells whether the endpoint picker of an image can keep a request to one revision, and knows the flag --drain-timeout: it is
// of v0.10.0 or later, by its tag or by what the platform team says of the image.
func hasScreener(in *inputv1alpha1.Input, image string) bool {
	switch in.EndpointPicker.RevisionScreening {
	case inputv1alpha1.RevisionScreeningEnabled:
		return true
	case inputv1alpha1.RevisionScreeningDisabled:
		return false
	case inputv1alpha1.RevisionScreeningAuto:
	}
	return epp.HasScreener(image)
}

// wantedDialect is the dialect with the features that the service uses. One that knows the names of models goes on all the same: the
// InferenceModels of others may name the service, and it does not read them.
func (r *Router) wantedDialect() inputv1alpha1.Dialect {
	if r.Strategy == v1alpha1.StrategyPDDisaggregation || len(r.Models) > 0 {
		return inputv1alpha1.DialectLLMD
	}
	return inputv1alpha1.DialectGAIE
}

// refusePinned refuses features that the dialect of the platform team's choice does not have.
func (r *Router) refusePinned(path *field.Path, role v1alpha1.Role, pinned inputv1alpha1.Dialect) field.ErrorList {
	if pinned != inputv1alpha1.DialectGAIE {
		return nil
	}
	const needsLLMD = "needs an endpoint picker of dialect LLMD, but the platform team chose dialect GAIE (endpointPicker in the Composition's input)"
	var errs field.ErrorList
	if r.Strategy == v1alpha1.StrategyPDDisaggregation {
		errs = append(errs, field.Invalid(path.Child("strategy"), cmp.Or(role.Strategy, v1alpha1.StrategyPDDisaggregation), needsLLMD+"; with another strategy every pod answers whole requests"))
	}
	if len(role.ServedModels) > 0 {
		errs = append(errs, field.Forbidden(path.Child("servedModels"), needsLLMD))
	}
	return errs
}

// useConfig uses the user's configuration unchanged. The newer apiVersion sets the dialect LLMD.
// Both dialects read the older one, so there the image or the service's features decide. ownImage
// tells that the platform team chose the image, which may have plugins that no release has.
func (r *Router) useConfig(path *field.Path, text string, pinned inputv1alpha1.Dialect, ownImage bool) ([]Warning, field.ErrorList) {
	r.Config = text
	if len(text) > maxConfigBytes {
		// Validation of the API refuses it.
		return nil, nil
	}
	c, errs := epp.Parse(text, path)
	if len(errs) > 0 {
		return nil, errs
	}
	if c.APIVersion() == epp.APIVersionLLMD {
		if pinned == inputv1alpha1.DialectGAIE {
			return nil, field.ErrorList{field.Invalid(path.Child("apiVersion"), epp.APIVersionLLMD, "must be "+epp.APIVersionGAIE+": the platform team chose an endpoint picker of dialect GAIE (endpointPicker in the Composition's input)")}
		}
		r.Dialect = inputv1alpha1.DialectLLMD
	}
	r.Queues, r.PicksApart = c.Queues(), c.Disaggregates()
	doubts, errs := c.Check(r.Dialect, ownImage)
	warnings := make([]Warning, 0, len(doubts))
	for _, d := range doubts {
		warnings = append(warnings, Warning(d))
	}
	if r.Disaggregated && c.Disaggregates() {
		warnings = append(warnings, warningAt(path, "%sa configuration of your own cannot keep a request to one version. Leave it out: the strategy %s does", twoVersions, v1alpha1.StrategyPDDisaggregation))
	}
	return warnings, errs
}

// maxConfigBytes is the API's limit, which is in characters, at 4 bytes each.
const maxConfigBytes = 4 * v1alpha1.MaxConfig

func image(in *inputv1alpha1.Input, d inputv1alpha1.Dialect) string {
	switch {
	case in.EndpointPicker.Image != "":
		return in.EndpointPicker.Image
	case d == inputv1alpha1.DialectLLMD:
		return cmp.Or(in.EndpointPicker.Images.LLMD, inputv1alpha1.DefaultImageLLMD)
	}
	return cmp.Or(in.EndpointPicker.Images.GAIE, inputv1alpha1.DefaultImageGAIE)
}

func hasType(spec *v1alpha1.InferenceServiceSpec, t v1alpha1.ComponentType) bool {
	return slices.ContainsFunc(spec.Roles, func(r v1alpha1.Role) bool { return r.ComponentType == t })
}

// defaultPickerMemory is the endpoint picker's limit of memory where nobody sets its resources.
var defaultPickerMemory = resource.MustParse("4Gi")

// planEndpointPickerPod decides the settings of the endpoint picker's pods. The service's resources
// override the platform team's. By default requests are small, so that the pod fits on any node,
// and memory is limited, because the prefix index can grow.
func planEndpointPickerPod(picker v1alpha1.EndpointPicker, in *inputv1alpha1.Input) EndpointPickerPod {
	e := &in.EndpointPicker
	pod := EndpointPickerPod{
		ImagePullPolicy:  cmp.Or(e.ImagePullPolicy, corev1.PullIfNotPresent),
		ImagePullSecrets: e.ImagePullSecrets,
		Tolerations:      e.Tolerations,
		NodeSelector:     e.NodeSelector,
		Resources:        cmp.Or(picker.Resources, e.Resources),
	}
	if pod.Resources == nil {
		pod.Resources = &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("250m"),
				corev1.ResourceMemory: resource.MustParse("512Mi"),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: defaultPickerMemory},
		}
	}
	return pod
}

// planModels converts models for the endpoint picker. Validation of the API refuses duplicates.
func planModels(models []v1alpha1.ServedModel) []modelroute.Model {
	var planned []modelroute.Model
	for _, m := range models {
		planned = append(planned, modelroute.Of(m))
	}
	return planned
}

// planPool decides which pods the pool selects, and their port.
func (r *Router) planPool(path *field.Path, serving []*Role) ([]Warning, field.ErrorList) {
	behind := r.behindPool(serving)
	r.Selector = map[string]string{}
	if t, one := onlyType(behind); one && !r.Disaggregated {
		r.Selector[naming.LabelComponentType] = string(t)
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
		refused := ""
		if needEachOther(serving) {
			refused = ". SGLang's refuse all of them"
		}
		warnings = append(warnings, warningAt(path.Child("strategy"), "prefill and decode pods both receive whole requests: only pd-disaggregation separates prefill from decode%s", refused))
	}
	if len(serving) > len(behind) {
		warnings = append(warnings, warningAt(path.Child("strategy"), "%s receive no requests: without pd-disaggregation only workers do", notIn(serving, behind)))
	}
	return warnings, errs
}

// behindPool returns the roles that receive requests. With disaggregation these are all. Without
// it, only workers receive requests. If there are none, prefill and decode pods each answer whole
// requests.
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

// onlyType returns the type that all roles have, if it is one. A service has no roles only if they
// have errors. Then it returns the usual type.
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
