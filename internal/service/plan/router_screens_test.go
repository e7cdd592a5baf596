package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestPlanRouterScreens proves that the platform team's word about its image counts more than the tag, and
// that a warning tells of requests to two versions exactly where they are possible.
func TestPlanRouterScreens(t *testing.T) {
	const versioned, digest = "own/picker:v0.11.0", "own/picker@sha256:0123"
	const prefill, decode, worker = v1alpha1.ComponentTypePrefiller, v1alpha1.ComponentTypeDecoder, v1alpha1.ComponentTypeWorker
	pairs := []v1alpha1.ComponentType{prefill, decode}
	const atStrategy, atConfig = "spec.roles[0].strategy", "spec.roles[0].endpointPickerConfig"
	const start = "during a rollout a request may get prefill and decode pods of two versions, which may refuse each other: "
	const byTag = start + `the tag of the image "own/picker@sha256:0123" does not say that it has the plugin disaggregatedset-rollout-screener. ` +
		"Use a tag from v0.10.0 on, or set endpointPicker.revisionScreening to Enabled in the Composition's input if the image has it"
	const disabled = start + "endpointPicker.revisionScreening is Disabled in the Composition's input. " +
		"Set it to Enabled once the image has the plugin disaggregatedset-rollout-screener"
	const own = start + "a configuration of your own cannot keep a request to one version. Leave it out: the strategy pd-disaggregation does"
	cases := map[string]struct {
		router    v1alpha1.Role
		types     []v1alpha1.ComponentType
		image     string
		screening inputv1alpha1.RevisionScreening
		want      bool
		warnings  []Warning
	}{
		"Default":        {types: pairs, want: true},
		"Versioned":      {types: pairs, image: versioned, screening: inputv1alpha1.RevisionScreeningAuto, want: true},
		"Digest":         {types: pairs, image: digest, screening: inputv1alpha1.RevisionScreeningAuto, warnings: []Warning{{Path: atStrategy, Message: byTag}}},
		"DigestWithIt":   {types: pairs, image: digest, screening: inputv1alpha1.RevisionScreeningEnabled, want: true},
		"VersionWithout": {types: pairs, image: versioned, screening: inputv1alpha1.RevisionScreeningDisabled, warnings: []Warning{{Path: atStrategy, Message: disabled}}},
		"OwnConfig": {
			types: pairs, router: v1alpha1.Role{EndpointPickerConfig: testConfig(t, "good/llmd/disaggregation")},
			warnings: []Warning{{Path: atConfig, Message: own}},
		},
		"OwnConfigForWholeRequests": {types: pairs, router: v1alpha1.Role{EndpointPickerConfig: testConfig(t, "good/llmd/queue")}},
		"OtherStrategy":             {types: append(pairs, worker), image: digest, router: v1alpha1.Role{Strategy: v1alpha1.StrategyQueueSize}, warnings: []Warning{{Path: atStrategy, Message: "roles prefiller, decoder receive no requests: without pd-disaggregation only workers do"}}},
		"Workers":                   {types: []v1alpha1.ComponentType{worker}, image: digest, router: v1alpha1.Role{ServedModels: []v1alpha1.ServedModel{{Name: "m"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := &inputv1alpha1.Input{EndpointPicker: inputv1alpha1.EndpointPickerSettings{
				Images: inputv1alpha1.DialectImages{LLMD: tc.image}, RevisionScreening: tc.screening,
			}}
			r, warnings, errs := behind(tc.router, in, tc.types...)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if r.ScreensRevisions != tc.want {
				t.Errorf("%s: screens revisions: %t, want %t", r.Image, r.ScreensRevisions, tc.want)
			}
			if diff := cmp.Diff(tc.warnings, warnings, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("warnings: -want +got:\n%s", diff)
			}
		})
	}
}

// TestPlanRouterEndsAtOnce proves which endpoint pickers are told to end as soon as they have answered.
func TestPlanRouterEndsAtOnce(t *testing.T) {
	const prefill, decode, worker = v1alpha1.ComponentTypePrefiller, v1alpha1.ComponentTypeDecoder, v1alpha1.ComponentTypeWorker
	cases := map[string]struct {
		reason   string
		replicas int32
		types    []v1alpha1.ComponentType
		image    string
		says     inputv1alpha1.RevisionScreening
		want     bool
	}{
		"Several": {"The next ones wait for them.", 2, []v1alpha1.ComponentType{prefill, decode}, "", "", true},
		"Single":  {"The next one is ready before it ends.", 1, []v1alpha1.ComponentType{prefill, decode}, "", "", false},
		"Older":   {"It would not start with the flag.", 2, []v1alpha1.ComponentType{prefill, decode}, "picker:v0.9.0", "", false},
		"GAIE":    {"It has no such flag.", 2, []v1alpha1.ComponentType{worker}, "", "", false},
		"Own":     {"Its tag says nothing of the release that it is made from.", 2, []v1alpha1.ComponentType{prefill, decode}, "own/picker:v1.4.0", inputv1alpha1.RevisionScreeningDisabled, false},
		"Digest":  {"The platform team says that it is of that release.", 2, []v1alpha1.ComponentType{prefill, decode}, "own/picker@sha256:0123", inputv1alpha1.RevisionScreeningEnabled, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := &inputv1alpha1.Input{EndpointPicker: inputv1alpha1.EndpointPickerSettings{Images: inputv1alpha1.DialectImages{LLMD: tc.image}, RevisionScreening: tc.says}}
			r, _, errs := behind(v1alpha1.Role{Replicas: &tc.replicas}, in, tc.types...)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if r.EndsAtOnce != tc.want {
				t.Errorf("%s It ends at once: %t", tc.reason, r.EndsAtOnce)
			}
		})
	}
}
