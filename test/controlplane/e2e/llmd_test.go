package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// The endpoint picker of llm-d cannot be built from modules, so it does not run here.
// In its place there is an own strict schema of what it is given: its configuration,
// its arguments and the services that its probes name. It was written from the
// source of the release that is rendered, llm-d-router v0.10.0 (commit
// 71f4f0999f95b96c49a9d0c4afbd18dfdb943c26), and not from internal/epp, which it
// is to judge. Each rule names its source there, file#line.
//
// It is stricter than the release: what is never rendered is refused, for nothing
// here says what it may hold.

// llmdImage is that of the release.
const llmdImage = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0"

// A llmdConfig has the fields that are rendered. The release decodes strictly
// (pkg/epp/config/loader/configloader.go#L235-L242) into
// apix/config/v1alpha1/endpointpickerconfig_types.go#L33-L51.
type llmdConfig struct {
	APIVersion         string        `json:"apiVersion"`
	Kind               string        `json:"kind"`
	Plugins            []llmdPlugin  `json:"plugins"`
	SchedulingProfiles []llmdProfile `json:"schedulingProfiles"`
}

// A llmdPlugin is endpointpickerconfig_types.go#L112-L128.
type llmdPlugin struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	Parameters json.RawMessage `json:"parameters"`
}

// A llmdProfile is endpointpickerconfig_types.go#L144-L154 and L167-L179.
type llmdProfile struct {
	Name    string `json:"name"`
	Plugins []struct {
		PluginRef string   `json:"pluginRef"`
		Weight    *float64 `json:"weight"`
	} `json:"plugins"`
}

// A llmdType is a type of plugin that is rendered.
type llmdType struct {
	// is what the plugin can be used as.
	is string
	// parameters that are rendered, if any. The release decodes them strictly:
	// pkg/epp/framework/interface/plugin/registry.go#L41-L48.
	parameters func() any
}

// llmdTypes are registered in cmd/epp/runner/runner.go at the lines that are named. The
// screener alone is registered as experimental.
var llmdTypes = map[string]llmdType{
	llmdScreener:                   {is: "screener", parameters: func() any { return &llmdScreening{} }},      // L569
	"label-selector-filter":        {is: "filter", parameters: func() any { return &metav1.LabelSelector{} }}, // L573; pkg/epp/framework/plugins/scheduling/filter/bylabel/selector.go#L34-L40
	"prefix-cache-scorer":          {is: "scorer"},                                                            // L611
	"max-score-picker":             {is: "picker"},                                                            // L612
	"single-profile-handler":       {is: "handler"},                                                           // L615
	"disagg-profile-handler":       {is: "handler", parameters: func() any { return &llmdDisagg{} }},          // L620
	"always-disagg-pd-decider":     {is: "decider"},                                                           // L621; .../profilehandler/disagg/always_disagg_pd_decider.go#L17
	"kv-cache-utilization-scorer":  {is: "scorer"},                                                            // L624
	"queue-scorer":                 {is: "scorer"},                                                            // L625
	"lora-affinity-scorer":         {is: "scorer"},                                                            // L627
	"approx-prefix-cache-producer": {is: "producer"},                                                          // L664
}

// A llmdDisagg has the parameters of the handler that are rendered:
// pkg/epp/framework/plugins/scheduling/profilehandler/disagg/disagg_profile_handler.go#L79-L89.
type llmdDisagg struct {
	Deciders struct {
		Prefill string `json:"prefill"`
	} `json:"deciders"`
}

// llmdScreener is experimental, so it is refused without a flag (L1095).
const llmdScreener = "disaggregatedset-rollout-screener"

// A llmdScreening has the parameters of the screener that are rendered:
// pkg/epp/framework/plugins/requestcontrol/screener/disaggregatedsetrollout/config.go#L55-L59.
type llmdScreening struct {
	Scope struct {
		LabelSelector string `json:"labelSelector"`
	} `json:"scope"`
	RevisionGating struct {
		RevisionLabelKey string `json:"revisionLabelKey"`
		RoleLabelKey     string `json:"roleLabelKey"`
		Mode             string `json:"mode"`
		RequireRoles     struct {
			Values []string `json:"values"`
		} `json:"requireRoles"`
	} `json:"revisionGating"`
}

// llmdSchema tells every rule that a configuration breaks.
func llmdSchema(text string) error {
	c := &llmdConfig{}
	if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
		return err
	}
	var errs []error
	rule := func(source string, holds bool, format string, args ...any) {
		if !holds {
			errs = append(errs, fmt.Errorf(format+" ("+source+")", args...))
		}
	}
	rule("apix/config/v1alpha1/zz_generated.register.go#L15-L18", c.APIVersion == "llm-d.ai/v1alpha1", "apiVersion is %q", c.APIVersion)
	rule("apix/config/v1alpha1/endpointpickerconfig_types.go#L33", c.Kind == "EndpointPickerConfig", "kind is %q", c.Kind)

	types := map[string]string{}
	handler, deciders := "", llmdDisagg{}
	for _, p := range c.Plugins {
		known, ok := llmdTypes[p.Type]
		rule("pkg/epp/config/loader/validation.go#L43-L46", ok, "plugin type %q is not one that is rendered", p.Type)
		name := p.Name
		if name == "" {
			name = p.Type // pkg/epp/config/loader/defaults.go#L108-L113
		}
		rule("pkg/epp/config/loader/validation.go#L38-L40", types[name] == "", "two plugins are called %q", name)
		types[name] = p.Type
		if known.is == "handler" {
			rule("pkg/epp/config/loader/configloader.go#L382-L391", handler == "", "%q is a second profile handler", name)
			handler = p.Type
		}
		if known.parameters == nil {
			rule("none are rendered", len(p.Parameters) == 0, "plugin %q has parameters: %s", name, p.Parameters)
			continue
		}
		into := known.parameters()
		d := json.NewDecoder(bytes.NewReader(p.Parameters))
		d.DisallowUnknownFields()
		err := d.Decode(into)
		rule("pkg/epp/config/loader/configloader.go#L257", err == nil, "parameters of plugin %q: %v", name, err)
		switch into := into.(type) {
		case *metav1.LabelSelector:
			_, err := metav1.LabelSelectorAsSelector(into)
			rule("pkg/epp/framework/plugins/scheduling/filter/bylabel/selector.go#L68-L71", err == nil, "parameters of plugin %q: %v", name, err)
			rule("without any it selects all", len(into.MatchLabels)+len(into.MatchExpressions) > 0, "plugin %q selects nothing", name)
		case *llmdDisagg:
			deciders = *into
		case *llmdScreening:
			const at = "pkg/epp/framework/plugins/requestcontrol/screener/disaggregatedsetrollout/config.go"
			_, err := labels.Parse(into.Scope.LabelSelector)
			rule(at+"#L176-L181", err == nil && into.Scope.LabelSelector != "", "plugin %q observes %q: %v", name, into.Scope.LabelSelector, err)
			g := into.RevisionGating
			rule(at+"#L214-L219", g.RevisionLabelKey != "" && g.RoleLabelKey != "", "plugin %q would look for labels of DisaggregatedSets", name)
			rule(at+"#L220-L241", slices.Contains([]string{"sum", "max-role"}, g.Mode) && len(g.RequireRoles.Values) > 0, "plugin %q screens nothing: %+v", name, g)
		}
	}
	rule("pkg/epp/config/loader/configloader.go#L393-L395", handler != "", "there is no profile handler")

	profiles := map[string]bool{}
	for _, p := range c.SchedulingProfiles {
		rule("pkg/epp/config/loader/validation.go#L116-L118", p.Name != "", "a profile has no name")
		rule("pkg/epp/config/loader/validation.go#L119-L121", !profiles[p.Name], "two profiles are called %q", p.Name)
		profiles[p.Name] = true
		pickers, scorers := 0, 0
		for _, ref := range p.Plugins {
			known, ok := llmdTypes[types[ref.PluginRef]]
			rule("pkg/epp/config/loader/validation.go#L125-L132", ok, "profile %q refers to %q, which is no plugin", p.Name, ref.PluginRef)
			switch known.is {
			case "picker":
				pickers++
			case "scorer":
				scorers++
				rule("pkg/epp/config/loader/configloader.go#L366-L373", ref.Weight != nil && *ref.Weight > 0, "profile %q gives %q no weight", p.Name, ref.PluginRef)
			case "filter":
			default:
				rule("pkg/epp/scheduling/scheduler_profile.go#L84-L102", !ok, "profile %q has no use for a %s such as %q", p.Name, known.is, ref.PluginRef)
			}
			rule("apix/config/v1alpha1/endpointpickerconfig_types.go#L176-L178", ref.Weight == nil || known.is == "scorer", "profile %q weighs %q, which is no scorer", p.Name, ref.PluginRef)
		}
		rule("pkg/epp/scheduling/scheduler_profile.go#L95-L98", pickers == 1, "profile %q has %d pickers", p.Name, pickers)
		rule("a profile that scores nothing picks at random", scorers > 0, "profile %q has no scorer", p.Name)
	}
	const disagg = "pkg/epp/framework/plugins/scheduling/profilehandler/disagg/disagg_profile_handler.go"
	switch handler {
	case "single-profile-handler":
		rule("pkg/epp/config/loader/configloader.go#L397-L399", len(profiles) == 1, "%s has %d profiles", handler, len(profiles))
	case "disagg-profile-handler":
		decider := deciders.Deciders.Prefill
		rule(disagg+"#L161-L170", llmdTypes[types[decider]].is == "decider", "the decider of prefill is %q, which is no plugin that decides", decider)
		rule(disagg+"#L34-L35, L244-L249", len(profiles) == 2 && profiles["decode"] && profiles["prefill"], "%s has the profiles %v, not decode and prefill", handler, profiles)
	}
	return errors.Join(errs...)
}

// llmdFlags are those that are rendered, with their lines in pkg/epp/server/options.go.
var llmdFlags = []string{
	"allow-experimental-plugins", // L239
	"ha-enable-leader-election",  // L165
	"drain-timeout",              // L167
	"pool-group",                 // L173
	"pool-namespace",             // L175
	"pool-name",                  // L177
	"tracing",                    // L211
	"metrics-endpoint-auth",      // L231
	"config-file",                // L237
}

// llmdPod tells which arguments and probes of a container the release does not
// understand, or needs for its configuration.
func llmdPod(c *corev1.Container, config string) error {
	var errs []error
	given := map[string]string{}
	for _, a := range c.Args {
		// Flags of pflag, which takes one dash for several flags of one letter.
		name, value, ok := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if !strings.HasPrefix(a, "--") || !ok || value == "" || !slices.Contains(llmdFlags, name) {
			errs = append(errs, fmt.Errorf("argument %q is not one that is rendered (pkg/epp/server/options.go#L163-L241)", a))
		}
		given[name] = value
	}
	for _, needed := range []string{"pool-name", "pool-namespace", "config-file"} {
		if given[needed] == "" {
			errs = append(errs, fmt.Errorf("there is no argument --%s (pkg/epp/server/options.go#L175-L177, L237)", needed))
		}
	}
	if strings.Contains(config, llmdScreener) && given["allow-experimental-plugins"] != "true" {
		errs = append(errs, errors.New("there is no argument --allow-experimental-plugins (cmd/epp/runner/runner.go#L1095)"))
	}
	for what, p := range map[string]*corev1.Probe{"liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if p == nil || p.GRPC == nil || p.GRPC.Service == nil {
			errs = append(errs, fmt.Errorf("the %s probe names no service", what))
			continue
		}
		// One that leads is asked for each on its own; without others any name will do.
		if given["ha-enable-leader-election"] == "true" && *p.GRPC.Service != what {
			errs = append(errs, fmt.Errorf("the %s probe names %q (cmd/epp/runner/health.go#L81-L103)", what, *p.GRPC.Service))
		}
	}
	return errors.Join(errs...)
}

// ofLLMD holds against the schema what runs for a service in the cluster, if that is
// llm-d's endpoint picker, and tells whether it is.
func ofLLMD(t *testing.T, c *cluster.Cluster, namespace, service string) bool {
	t.Helper()
	d := &appsv1.Deployment{}
	if !typed(t, c, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, namespace, service+"-epp", d) || d.Spec.Template.Spec.Containers[0].Image != llmdImage {
		return false
	}
	config := &corev1.ConfigMap{}
	if !typed(t, c, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, namespace, service+"-epp-config", config) {
		t.Error("its endpoint picker has no configuration")
		return true
	}
	if err := llmdSchema(config.Data["config.yaml"]); err != nil {
		t.Errorf("llm-d's endpoint picker would not start, or not do what is wanted, with its configuration:\n%v\n%s", err, config.Data["config.yaml"])
	}
	if err := llmdPod(&d.Spec.Template.Spec.Containers[0], config.Data["config.yaml"]); err != nil {
		t.Errorf("llm-d's endpoint picker would not start as it is rendered:\n%v", err)
	}
	return true
}

// screened is the configuration of the quickstart, which has prefill and decode.
func screened(t *testing.T) string {
	t.Helper()
	for _, doc := range strings.Split(read(t, "example", "quickstart", "rendered.yaml"), "\n---\n") {
		config := &corev1.ConfigMap{}
		if err := yaml.Unmarshal([]byte(doc), config); err == nil && config.Kind == "ConfigMap" && config.Data["config.yaml"] != "" {
			return config.Data["config.yaml"]
		}
	}
	t.Fatal("the quickstart has no configuration of an endpoint picker")
	return ""
}

// TestLLMDSchema proves that the schema takes what is generated for every strategy, and
// refuses what breaks a rule.
func TestLLMDSchema(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	files := func(pattern string) []string {
		all, err := filepath.Glob(filepath.Join(root, "internal", "epp", "testdata", filepath.FromSlash(pattern)))
		if err != nil || len(all) == 0 {
			t.Fatalf("there is no %s: %v", pattern, err)
		}
		return all
	}
	for _, f := range files("generated/llmd/*.yaml") {
		if err := llmdSchema(read(t, "internal", "epp", "testdata", "generated", "llmd", filepath.Base(f))); err != nil {
			t.Errorf("%s is refused:\n%v", filepath.Base(f), err)
		}
	}
	for _, f := range files("bad/llmd/*.yaml") {
		if err := llmdSchema(read(t, "internal", "epp", "testdata", "bad", "llmd", filepath.Base(f))); err == nil {
			t.Errorf("%s is not refused", filepath.Base(f))
		}
	}
	good := screened(t)
	if err := llmdSchema(good); err != nil {
		t.Errorf("what the quickstart has is refused:\n%v", err)
	}
	for name, tc := range map[string]struct{ old, by, want string }{
		"UnknownField":     {"plugins:\n- type: disagg", "feature: a\nplugins:\n- type: disagg", `unknown field "feature"`},
		"OtherVersion":     {"llm-d.ai/v1alpha1", "llm-d.ai/v1", "register.go#L15-L18"},
		"OtherKind":        {"EndpointPickerConfig", "Config", "endpointpickerconfig_types.go#L33"},
		"UnknownType":      {"type: queue-scorer", "type: queues", "validation.go#L43-L46"},
		"SameName":         {"name: decode-pods", "name: prefill-pods", "validation.go#L38-L40"},
		"SecondHandler":    {"- type: max-score-picker", "- type: max-score-picker\n- type: single-profile-handler", "configloader.go#L382-L391"},
		"NoHandler":        {"type: disagg-profile-handler", "type: label-selector-filter", "configloader.go#L393-L395"},
		"UnknownParameter": {"matchLabels:", "labels:", "configloader.go#L257"},
		"NoSelector":       {"component-type: prefiller", "component-type: a b", "selector.go#L68-L71"},
		"NoName":           {"- name: prefill\n", "- name: \"\"\n", "validation.go#L116-L118"},
		"SameProfile":      {"- name: decode\n", "- name: prefill\n", "validation.go#L119-L121"},
		"Dangling":         {"pluginRef: queue-scorer", "pluginRef: queue", "validation.go#L125-L132"},
		"NoWeight":         {"weight: 2", "weight: 0", "configloader.go#L366-L373"},
		"SecondPicker":     {"  - pluginRef: decode-pods", "  - pluginRef: decode-pods\n  - pluginRef: max-score-picker", "scheduler_profile.go#L95-L98"},
		"WeighedFilter":    {"pluginRef: decode-pods", "pluginRef: decode-pods\n    weight: 1", "endpointpickerconfig_types.go#L176-L178"},
		"NoScope":          {"labelSelector: fusioninfer.io/service=deepseek-r1", "labelSelector: =a", "config.go#L176-L181"},
		"OtherMode":        {"mode: max-role", "mode: most", "config.go#L220-L241"},
		"NoRevision":       {"revisionLabelKey: fusioninfer.io/spec-hash", "revisionLabelKey: ''", "config.go#L214-L219"},
		"NoDecider":        {"prefill: always-disagg-pd-decider", "prefill: max-score-picker", "disagg_profile_handler.go#L161-L170"},
		"OtherProfile":     {"- name: decode\n", "- name: decoding\n", "disagg_profile_handler.go#L34-L35"},
		"SingleOfTwo":      {"type: disagg-profile-handler\n  parameters:\n    deciders:\n      prefill: always-disagg-pd-decider", "type: single-profile-handler", "configloader.go#L397-L399"},
	} {
		wrong := strings.Replace(good, tc.old, tc.by, 1)
		if wrong == good {
			t.Errorf("%s: there is no %q to replace", name, tc.old)
		}
		if err := llmdSchema(wrong); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}
