package epp

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// ownEndpoints is why there is no discovery. llm-d-router's file-discovery would have gateways send requests to the
// addresses of a file, which may be a key that somebody adds to the mounted ConfigMap.
const ownEndpoints = "endpoints are the pods of the service's InferencePool"

const (
	singleProfileHandler = "single-profile-handler"
	maxScorePicker       = "max-score-picker"
)

// checkProfileHandler checks the plugin that decides which profiles run. There is at most
// one, and it has to fit the profiles.
func (v *verifier) checkProfileHandler() {
	profiles := len(v.conf.SchedulingProfiles)
	first := -1
	for i, p := range v.conf.Plugins {
		if v.roleOfType(p.Type) != handler {
			continue
		}
		if first >= 0 {
			v.fail(field.Invalid(v.path.Child("plugins").Index(i).Child("type"), p.Type, fmt.Sprintf("must not be a second profile handler: plugins[%d] is one", first)))
			continue
		}
		first = i
	}
	switch {
	case first < 0 && profiles > 1 && !v.has[unknown]:
		v.fail(field.Required(v.path.Child("plugins"), fmt.Sprintf("%d profiles need a profile handler, which says when each of them runs: %s", profiles, listTypes(v.usableTypesOf(handler)))))
	case first < 0:
	case v.conf.Plugins[first].Type == singleProfileHandler && profiles > 1:
		v.fail(field.Invalid(v.path.Child("schedulingProfiles"), fmt.Sprintf("%d profiles", profiles), "must be one profile: that is what single-profile-handler runs"))
	default:
		v.checkStages(v.path.Child("plugins").Index(first).Child("parameters"), v.conf.Plugins[first])
	}
}

func (v *verifier) checkProfiles() {
	seen := map[string]bool{}
	for i, p := range v.conf.SchedulingProfiles {
		at := v.path.Child("schedulingProfiles").Index(i)
		switch {
		case p.Name == "":
			v.fail(field.Required(at.Child("name"), "each profile has a name of its own"))
		case seen[p.Name]:
			v.fail(field.Duplicate(at.Child("name"), text.Value(p.Name)))
		}
		seen[p.Name] = true
		v.checkProfile(at, p)
	}
	if len(v.conf.SchedulingProfiles) == 0 {
		// Without profiles, endpoint pickers add a default profile whose content depends on
		// the order of a map.
		v.fail(field.Required(v.path.Child("schedulingProfiles"), "must have at least one profile, with a scorer and a picker"))
	}
}

func (v *verifier) checkProfile(at *field.Path, p profile) {
	picked := -1
	for i, ref := range p.Plugins {
		here := at.Child("plugins").Index(i)
		v.checkReference(here.Child("pluginRef"), ref.PluginRef, "")
		if ref.Weight != nil && *ref.Weight < 0 {
			v.fail(field.Invalid(here.Child("weight"), *ref.Weight, "must be 0 or more"))
		}
		kind := v.roleOfName(ref.PluginRef)
		if kind == scorer && picked >= 0 && ref.Weight == nil && v.d.scorersNeedWeights {
			v.failWith(func() *field.Error {
				return field.Required(here.Child("weight"), fmt.Sprintf("the scorer %s comes after the picker, where it has no weight of its own: give it one, or put the picker last", text.Value(ref.PluginRef)))
			})
		}
		if kind != picker {
			continue
		}
		if picked >= 0 {
			v.failWith(func() *field.Error {
				return field.Invalid(here.Child("pluginRef"), text.Value(ref.PluginRef), fmt.Sprintf("must not be a second picker: plugins[%d] of this profile is one", picked))
			})
			continue
		}
		picked = i
	}
}

// roleOfName returns the role of the plugin with this name, or an empty string if there is
// none.
func (v *verifier) roleOfName(name string) role {
	if r, ok := v.roles[name]; ok {
		return r
	}
	if v.isInjected(name) {
		return v.roleOfType(name)
	}
	return ""
}

// isInjected tells whether the endpoint picker adds a plugin with this name.
func (v *verifier) isInjected(name string) bool {
	switch name {
	case maxScorePicker:
		return !v.has[picker]
	case singleProfileHandler:
		return !v.has[handler] && len(v.conf.SchedulingProfiles) <= 1
	}
	return slices.Contains(v.d.injected, name)
}

// checkReference checks that a plugin with this name exists and, if want is not empty, has
// this role. An unknown plugin may have any role.
func (v *verifier) checkReference(at *field.Path, name string, want role) {
	got := v.roleOfName(name)
	switch {
	case name == "":
		v.failWith(func() *field.Error {
			return field.Required(at, "must be the name of a plugin: "+listNames(v.names))
		})
	case got == "":
		v.failWith(func() *field.Error {
			return field.Invalid(at, text.Value(name), "must be the name of a plugin: "+listNames(v.names))
		})
	case want != "" && got != want && got != unknown:
		v.failWith(func() *field.Error {
			return field.Invalid(at, text.Value(name), fmt.Sprintf("must be the name of a plugin that is a %s, and this is a %s", want, got))
		})
	}
}

// checkConnection checks a reference that decides what the endpoint picker connects to. Its
// plugin has to be known, whatever the image.
func (v *verifier) checkConnection(at *field.Path, name string, want role) {
	if name == "" || !v.unlisted[name] {
		v.checkReference(at, name, want)
		return
	}
	v.failWith(func() *field.Error {
		return field.Forbidden(at, fmt.Sprintf("must be the name of a known %s, whatever the image: it decides what the endpoint picker connects to", cmp.Or(want, "plugin")))
	})
}

// checkReferences checks the references in the other parts of the configuration.
func (v *verifier) checkReferences() {
	v.checkSaturationDetector()
	v.checkParsers()
	v.checkDataLayer()
	if f := v.conf.FlowControl; f != nil && enabled(v.conf.FeatureGates, flowControlFeature) {
		at := v.path.Child("flowControl")
		v.checkOptionalReference(at.Child("usageLimitPolicyPluginRef"), f.UsageLimitPolicyPluginRef, limits)
		v.checkPriorityBand(at.Child("defaultPriorityBand"), f.DefaultPriorityBand)
		v.checkPriorityBand(at.Child("defaultNegativePriorityBand"), f.DefaultNegativePriorityBand)
		for i := range f.PriorityBands {
			v.checkPriorityBand(at.Child("priorityBands").Index(i), &f.PriorityBands[i])
		}
	}
}

func (v *verifier) checkOptionalReference(at *field.Path, name string, want role) {
	if name != "" {
		v.checkReference(at, name, want)
	}
}

func (v *verifier) checkPriorityBand(at *field.Path, b *band) {
	if b == nil {
		return
	}
	v.checkOptionalReference(at.Child("fairnessPolicyRef"), b.FairnessPolicyRef, fairness)
	v.checkOptionalReference(at.Child("orderingPolicyRef"), b.OrderingPolicyRef, ordering)
}

func (v *verifier) checkSaturationDetector() {
	switch f := v.conf.FlowControl; {
	case f != nil && f.SaturationDetector != nil:
		v.checkOptionalReference(v.path.Child("flowControl", "saturationDetector", "pluginRef"), f.SaturationDetector.PluginRef, detector)
	case v.conf.SaturationDetector != nil:
		v.checkOptionalReference(v.path.Child("saturationDetector", "pluginRef"), v.conf.SaturationDetector.PluginRef, detector)
	}
}

func (v *verifier) checkParsers() {
	if h := v.conf.RequestHandler; h != nil && len(h.Parsers) > 0 {
		for i, p := range h.Parsers {
			v.checkParser(v.path.Child("requestHandler", "parsers").Index(i).Child("pluginRef"), p.PluginRef)
		}
		return
	}
	if v.conf.Parser != nil {
		v.checkParser(v.path.Child("parser", "pluginRef"), v.conf.Parser.PluginRef)
	}
}

// checkParser also accepts the type of a parser in LLMD, which creates a parser of that
// type.
func (v *verifier) checkParser(at *field.Path, name string) {
	if v.d.name == inputv1alpha1.DialectLLMD && v.roleOfName(name) == "" && v.roleOfType(name) == parser {
		return
	}
	v.checkReference(at, name, parser)
}

// checkDataLayer does not ask for feature gates. With enableLegacyMetrics, the known release of
// dialect GAIE does not read the data layer, and an image of the platform team may do so.
func (v *verifier) checkDataLayer() {
	l := v.conf.DataLayer
	if l == nil {
		return
	}
	at := v.path.Child("dataLayer")
	for i, s := range l.Sources {
		here := at.Child("sources").Index(i)
		v.checkConnection(here.Child("pluginRef"), s.PluginRef, source)
		for j, e := range s.Extractors {
			v.checkReference(here.Child("extractors").Index(j).Child("pluginRef"), e.PluginRef, extractor)
		}
	}
	if l.Discovery != nil {
		v.fail(field.Forbidden(at.Child("discovery"), "must be left out: "+ownEndpoints+", which an endpoint picker with a discovery ignores"))
	}
	if name := l.CrossReplicaSyncerPluginRef; name != "" {
		v.checkConnection(at.Child("crossReplicaSyncerPluginRef"), name, "")
	}
}
