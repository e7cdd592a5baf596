package epp

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// The default profiles of a handler that disaggregates.
const (
	decodeProfile  = "decode"
	prefillProfile = "prefill"
	encodeProfile  = "encode"
)

// checkStages checks a handler that runs several profiles. Each of these profiles has to
// exist, and the plugins that decide about them have to be deciders. An endpoint picker
// starts without the profiles, but then answers no request.
func (v *verifier) checkStages(at *field.Path, p pluginSpec) {
	doc, _ := p.Parameters.(map[string]any)
	switch p.Type {
	case "disagg-profile-handler":
		var d disagg
		if len(decodeParameters(doc, at, &d)) == 0 {
			v.checkDisaggregation(at, &d)
		}
	case "pd-profile-handler":
		var d pdProfile
		if len(decodeParameters(doc, at, &d)) == 0 {
			v.checkReference(at.Child("deciderPluginName"), cmp.Or(d.DeciderPluginName, "prefix-based-pd-decider"), decider)
			v.checkStage(at.Child("decodeProfile"), cmp.Or(d.DecodeProfile, decodeProfile))
			v.checkStage(at.Child("prefillProfile"), cmp.Or(d.PrefillProfile, prefillProfile))
		}
	}
}

func (v *verifier) checkDisaggregation(at *field.Path, d *disagg) {
	if d.nested() && d.flat() {
		v.fail(field.Invalid(at, "{...}", "must have either profiles and deciders or the deprecated fields, not both"))
		return
	}
	prefillFirst := false
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(d.StageOrder)) {
	case "", "decodefirst", "decode":
	case "prefillfirst", "prefill":
		prefillFirst = true
	default:
		v.fail(field.NotSupported(at.Child("stageOrder"), text.Value(d.StageOrder), []string{"decode-first", "prefill-first"}))
	}
	profiles, deciders := d.stages()
	if prefillFirst && deciders.Prefill != "" {
		v.fail(field.Invalid(at.Child("deciders", "prefill"), text.Value(deciders.Prefill), "must be left out where stageOrder is prefill-first: prefill has run before anything is decided"))
	}
	v.checkOptionalReference(at.Child("deciders", "prefill"), deciders.Prefill, decider)
	v.checkOptionalReference(at.Child("deciders", "encode"), deciders.Encode, decider)
	v.checkStage(at.Child("profiles", "decode"), cmp.Or(profiles.Decode, decodeProfile))
	if prefillFirst || deciders.Prefill != "" {
		v.checkStage(at.Child("profiles", "prefill"), cmp.Or(profiles.Prefill, prefillProfile))
	}
	if deciders.Encode != "" {
		v.checkStage(at.Child("profiles", "encode"), cmp.Or(profiles.Encode, encodeProfile))
	}
}

func (d *disagg) nested() bool { return d.Profiles != nil || d.Deciders != nil }

func (d *disagg) flat() bool {
	return cmp.Or(d.DecodeProfile, d.PrefillProfile, d.EncodeProfile, d.PrefillDeciderPluginName, d.EncodeDeciderPluginName, d.DeciderPluginName) != ""
}

// stages returns the profiles and the deciders, from the nested or the flat fields.
func (d *disagg) stages() (profiles disaggProfiles, deciders disaggDeciders) {
	if d.flat() {
		return disaggProfiles{Decode: d.DecodeProfile, Prefill: d.PrefillProfile, Encode: d.EncodeProfile},
			disaggDeciders{Prefill: cmp.Or(d.PrefillDeciderPluginName, d.DeciderPluginName), Encode: d.EncodeDeciderPluginName}
	}
	if d.Profiles != nil {
		profiles = *d.Profiles
	}
	if d.Deciders != nil {
		deciders = *d.Deciders
	}
	return profiles, deciders
}

func (v *verifier) checkStage(at *field.Path, name string) {
	var names []string
	for _, p := range v.conf.SchedulingProfiles {
		if p.Name == name {
			return
		}
		names = append(names, p.Name)
	}
	v.fail(field.Invalid(at, text.Value(name), "must be the name of a scheduling profile: "+listNames(names)))
}
