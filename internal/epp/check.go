package epp

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

const (
	singleProfileHandler = "single-profile-handler"
	maxScorePicker       = "max-score-picker"
	flowControlFeature   = "flowControl"
	legacyMetricsFeature = "enableLegacyMetrics"
)

// Check says everything for which an endpoint picker of the dialect would refuse
// the configuration, and a few things that it would accept and then not do well:
// a negative weight, no profile, a stage without its profile.
func (c *Config) Check(name v1beta1.Dialect) field.ErrorList {
	d, ok := dialects[name]
	if !ok {
		return field.ErrorList{field.InternalError(c.path, fmt.Errorf("unknown dialect %q", name))}
	}
	var conf config
	errs := unknown(c.path, c.doc, d.fields)
	if more := kube.DecodeMap(c.doc, c.path, &conf); len(more) > 0 {
		// What follows would complain about what could not be read.
		return capped(append(errs, more...), c.path)
	}
	v := newVerifier(d, c.path, &conf)
	v.errs = errs
	v.header()
	v.features()
	v.pluginSpecs()
	v.handlers()
	v.profiles()
	v.references()
	return capped(v.errs, c.path)
}

// maxErrors is how many problems are worth reading at once.
const maxErrors = 30

func capped(errs field.ErrorList, path *field.Path) field.ErrorList {
	if len(errs) <= maxErrors {
		return errs
	}
	return append(errs[:maxErrors:maxErrors], field.Invalid(path, "...", fmt.Sprintf("has %d problems, of which the first %d are listed", len(errs), maxErrors)))
}

// A verifier looks at a configuration through a dialect.
type verifier struct {
	d    *dialect
	path *field.Path
	conf *config
	// roles of the plugins, by name. Other is also what is not known.
	roles map[string]role
	// names of the plugins, in their order.
	names []string
	// known are the types of plugins, for people.
	known string
	errs  field.ErrorList
}

func newVerifier(d *dialect, path *field.Path, conf *config) *verifier {
	v := &verifier{d: d, path: path, conf: conf, roles: map[string]role{}}
	v.known = list(v.types())
	for i := range conf.Plugins {
		p := &conf.Plugins[i]
		if p.Name == "" {
			p.Name = p.Type
		}
		if _, twice := v.roles[p.Name]; twice {
			continue
		}
		v.names = append(v.names, p.Name)
		v.roles[p.Name] = v.roleOf(p.Type)
	}
	return v
}

func (v *verifier) roleOf(pluginType string) role {
	if p, ok := v.d.plugins[pluginType]; ok {
		return p.role
	}
	return other
}

func (v *verifier) fail(e *field.Error) { v.errs = append(v.errs, e) }

func (v *verifier) header() {
	switch at := v.path.Child("apiVersion"); {
	case v.conf.APIVersion == "":
		v.fail(field.Required(at, "must be "+strings.Join(v.d.apiVersions, " or ")))
	case !slices.Contains(v.d.apiVersions, v.conf.APIVersion):
		v.fail(field.NotSupported(at, check.Shown(v.conf.APIVersion), v.d.apiVersions))
	}
	switch at := v.path.Child("kind"); v.conf.Kind {
	case Kind:
	case "":
		v.fail(field.Required(at, "must be "+Kind))
	default:
		v.fail(field.NotSupported(at, check.Shown(v.conf.Kind), []string{Kind}))
	}
}

func (v *verifier) features() {
	for i, f := range v.conf.FeatureGates {
		at := v.path.Child("featureGates").Index(i)
		name, value, set := v.feature(f)
		if !slices.Contains(v.d.features, name) {
			v.fail(field.NotSupported(at, check.Shown(f), v.d.features))
			continue
		}
		if _, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(value))); set && err != nil {
			v.fail(field.Invalid(at, check.Shown(f), "must be "+name+", "+name+"=true or "+name+"=false"))
		}
	}
}

func (v *verifier) feature(f string) (name, value string, set bool) {
	if !v.d.featureValues {
		return f, "", false
	}
	return strings.Cut(f, "=")
}

// enabled tells whether a feature that is off by default was turned on.
func (v *verifier) enabled(feature string) bool {
	on := false
	for _, f := range v.conf.FeatureGates {
		if name, value, set := v.feature(f); name == feature {
			b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(value)))
			on = !set || err == nil && b
		}
	}
	return on
}

func (v *verifier) pluginSpecs() {
	seen := map[string]int{}
	for i, p := range v.conf.Plugins {
		at := v.path.Child("plugins").Index(i)
		if first, twice := seen[p.Name]; twice && p.Name != "" {
			v.fail(field.Duplicate(at.Child("name"), check.Shown(p.Name)+fmt.Sprintf(", which is plugins[%d]; give one of them another name", first)))
		} else {
			seen[p.Name] = i
		}
		known, ok := v.d.plugins[p.Type]
		switch {
		case p.Type == "":
			v.fail(field.Required(at.Child("type"), "must be the type of a plugin"))
		case !ok:
			v.fail(v.unknownType(at.Child("type"), p.Type))
		case known.experimental:
			v.fail(field.Forbidden(at.Child("type"), p.Type+" is experimental: the endpoint picker loads it only with the flag --allow-experimental-plugins, which is not set"))
		default:
			v.parameters(at.Child("parameters"), p.Parameters, known)
		}
	}
}

func (v *verifier) unknownType(at *field.Path, got string) *field.Error {
	for _, o := range []*dialect{&gaie, &llmd} {
		if p, ok := o.plugins[got]; ok && !p.experimental {
			return field.Invalid(at, got, fmt.Sprintf("is a plugin of dialect %s (apiVersion %s), and this configuration is for dialect %s; there are %s", o.name, o.apiVersions[0], v.d.name, v.known))
		}
	}
	return field.Invalid(at, check.Shown(got), fmt.Sprintf("is no plugin of dialect %s; there are %s", v.d.name, v.known))
}

// types that may be used, without those that only tests need.
func (v *verifier) types() []string {
	var types []string
	for t, p := range v.d.plugins {
		if !p.experimental && t != "header-based-testing-filter" && t != "destination-endpoint-served-verifier" {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return types
}

func (v *verifier) parameters(at *field.Path, given any, known plugin) {
	if given == nil {
		if known.needsParams {
			v.fail(field.Required(at, "this plugin does not start without parameters"))
		}
		return
	}
	if known.params == nil {
		return
	}
	doc, ok := given.(map[string]any)
	if !ok {
		v.fail(field.Invalid(at, check.Shown(fmt.Sprint(given)), "must be an object"))
		return
	}
	into := known.params()
	if v.d.strict {
		v.errs = append(v.errs, unknownParams(at, doc, reflect.TypeOf(into).Elem())...)
	}
	errs := kube.DecodeMap(doc, at, into)
	if c, ok := into.(checker); ok && len(errs) == 0 {
		errs = c.check(at)
	}
	v.errs = append(v.errs, errs...)
}

// unknownParams returns an error for each parameter that the plugin does not
// read. Their names are compared as encoding/json does.
func unknownParams(at *field.Path, given any, t reflect.Type) field.ErrorList {
	var errs field.ErrorList
	switch g := given.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return nil
		}
		known := jsonFields(t)
		names := slices.Sorted(maps.Keys(known))
		for _, name := range slices.Sorted(maps.Keys(g)) {
			i := slices.IndexFunc(names, func(k string) bool { return strings.EqualFold(k, name) })
			if i < 0 {
				errs = append(errs, field.Forbidden(at.Child(name), "is no parameter here: there are "+list(names)))
				continue
			}
			errs = append(errs, unknownParams(at.Child(name), g[name], known[names[i]])...)
		}
	case []any:
		for i, e := range g {
			if t.Kind() == reflect.Slice {
				errs = append(errs, unknownParams(at.Index(i), e, t.Elem())...)
			}
		}
	}
	return errs
}

func jsonFields(t reflect.Type) map[string]reflect.Type {
	m := make(map[string]reflect.Type, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		m[name] = t.Field(i).Type
		if m[name].Kind() == reflect.Pointer {
			m[name] = m[name].Elem()
		}
	}
	return m
}

// handlers checks the plugin that says which profiles are run. There is one, and
// it has to fit the profiles.
func (v *verifier) handlers() {
	profiles := len(v.conf.SchedulingProfiles)
	first := -1
	for i, p := range v.conf.Plugins {
		if v.roleOf(p.Type) != handler {
			continue
		}
		if first >= 0 {
			v.fail(field.Invalid(v.path.Child("plugins").Index(i).Child("type"), p.Type, fmt.Sprintf("must not be a second profile handler: plugins[%d] is one", first)))
			continue
		}
		first = i
	}
	switch {
	case first < 0 && profiles > 1:
		v.fail(field.Required(v.path.Child("plugins"), fmt.Sprintf("%d profiles need a profile handler, which says when each is run: %s", profiles, list(v.typesOf(handler)))))
	case first < 0:
	case v.conf.Plugins[first].Type == singleProfileHandler && profiles > 1:
		v.fail(field.Invalid(v.path.Child("schedulingProfiles"), fmt.Sprintf("%d profiles", profiles), "must be one profile: that is what single-profile-handler runs"))
	default:
		v.stages(v.path.Child("plugins").Index(first).Child("parameters"), v.conf.Plugins[first])
	}
}

func (v *verifier) typesOf(r role) []string {
	return slices.DeleteFunc(v.types(), func(t string) bool { return v.d.plugins[t].role != r })
}

func (v *verifier) profiles() {
	seen := map[string]bool{}
	for i, p := range v.conf.SchedulingProfiles {
		at := v.path.Child("schedulingProfiles").Index(i)
		switch {
		case p.Name == "":
			v.fail(field.Required(at.Child("name"), "each profile has a name of its own"))
		case seen[p.Name]:
			v.fail(field.Duplicate(at.Child("name"), check.Shown(p.Name)))
		}
		seen[p.Name] = true
		v.profile(at, p)
	}
	if len(v.conf.SchedulingProfiles) == 0 {
		// What endpoint pickers make up instead depends on the order of a map.
		v.fail(field.Required(v.path.Child("schedulingProfiles"), "must have at least one profile, with a scorer and a picker"))
	}
}

func (v *verifier) profile(at *field.Path, p profile) {
	picked := -1
	for i, ref := range p.Plugins {
		here := at.Child("plugins").Index(i)
		v.refer(here.Child("pluginRef"), ref.PluginRef, "")
		if ref.Weight != nil && *ref.Weight < 0 {
			v.fail(field.Invalid(here.Child("weight"), *ref.Weight, "must be 0 or more"))
		}
		kind := v.found(ref.PluginRef)
		if kind == scorer && picked >= 0 && ref.Weight == nil && v.d.scorersNeedWeights {
			v.fail(field.Required(here.Child("weight"), fmt.Sprintf("the scorer %s comes after the picker, where it has no weight of its own: give it one, or put the picker last", ref.PluginRef)))
		}
		if kind != picker {
			continue
		}
		if picked >= 0 {
			v.fail(field.Invalid(here.Child("pluginRef"), ref.PluginRef, fmt.Sprintf("must not be a second picker: plugins[%d] of this profile is one", picked)))
			continue
		}
		picked = i
	}
}

// found is the role of a name that may be referred to.
func (v *verifier) found(name string) role {
	if r, ok := v.roles[name]; ok {
		return r
	}
	if v.isInjected(name) {
		return v.roleOf(name)
	}
	return ""
}

// isInjected tells whether the endpoint picker adds a plugin of that name.
func (v *verifier) isInjected(name string) bool {
	switch name {
	case maxScorePicker:
		return !v.has(picker)
	case singleProfileHandler:
		return !v.has(handler) && len(v.conf.SchedulingProfiles) <= 1
	}
	return slices.Contains(v.d.injected, name)
}

func (v *verifier) has(r role) bool {
	for _, name := range v.names {
		if v.roles[name] == r {
			return true
		}
	}
	return false
}

// refer checks a reference to a plugin, which has to have a role if one is given.
func (v *verifier) refer(at *field.Path, name string, want role) {
	got := v.found(name)
	switch {
	case name == "":
		v.fail(field.Required(at, "must be the name of a plugin: "+list(v.names)))
	case got == "":
		v.fail(field.Invalid(at, check.Shown(name), "must be the name of a plugin: "+list(v.names)))
	case want != "" && got != want:
		v.fail(field.Invalid(at, check.Shown(name), fmt.Sprintf("must be the name of a plugin that is a %s, and this is a %s", want, got)))
	}
}

// references checks what the other parts of the configuration refer to.
func (v *verifier) references() {
	v.saturation()
	v.parsers()
	v.dataLayer()
	if f := v.conf.FlowControl; f != nil && v.enabled(flowControlFeature) {
		at := v.path.Child("flowControl")
		v.optional(at.Child("usageLimitPolicyPluginRef"), f.UsageLimitPolicyPluginRef, limits)
		v.band(at.Child("defaultPriorityBand"), f.DefaultPriorityBand)
		v.band(at.Child("defaultNegativePriorityBand"), f.DefaultNegativePriorityBand)
		for i := range f.PriorityBands {
			v.band(at.Child("priorityBands").Index(i), &f.PriorityBands[i])
		}
	}
}

func (v *verifier) optional(at *field.Path, name string, want role) {
	if name != "" {
		v.refer(at, name, want)
	}
}

func (v *verifier) band(at *field.Path, b *band) {
	if b == nil {
		return
	}
	v.optional(at.Child("fairnessPolicyRef"), b.FairnessPolicyRef, fairness)
	v.optional(at.Child("orderingPolicyRef"), b.OrderingPolicyRef, ordering)
}

func (v *verifier) saturation() {
	switch f := v.conf.FlowControl; {
	case f != nil && f.SaturationDetector != nil:
		v.optional(v.path.Child("flowControl", "saturationDetector", "pluginRef"), f.SaturationDetector.PluginRef, detector)
	case v.conf.SaturationDetector != nil:
		v.optional(v.path.Child("saturationDetector", "pluginRef"), v.conf.SaturationDetector.PluginRef, detector)
	}
}

func (v *verifier) parsers() {
	if h := v.conf.RequestHandler; h != nil && len(h.Parsers) > 0 {
		for i, p := range h.Parsers {
			v.parser(v.path.Child("requestHandler", "parsers").Index(i).Child("pluginRef"), p.PluginRef)
		}
		return
	}
	if v.conf.Parser != nil {
		v.parser(v.path.Child("parser", "pluginRef"), v.conf.Parser.PluginRef)
	}
}

// parser accepts the type of a parser too: LLMD makes one of it.
func (v *verifier) parser(at *field.Path, name string) {
	if v.d.name == v1beta1.DialectLLMD && v.found(name) == "" && v.roleOf(name) == parser {
		return
	}
	v.refer(at, name, parser)
}

func (v *verifier) dataLayer() {
	l := v.conf.DataLayer
	if l == nil || v.enabled(legacyMetricsFeature) {
		return
	}
	at := v.path.Child("dataLayer")
	for i, s := range l.Sources {
		here := at.Child("sources").Index(i)
		v.refer(here.Child("pluginRef"), s.PluginRef, source)
		for j, e := range s.Extractors {
			v.refer(here.Child("extractors").Index(j).Child("pluginRef"), e.PluginRef, extractor)
		}
	}
	if l.Discovery != nil {
		v.refer(at.Child("discovery", "pluginRef"), l.Discovery.PluginRef, discovery)
	}
	v.optional(at.Child("crossReplicaSyncerPluginRef"), l.CrossReplicaSyncerPluginRef, "")
}
