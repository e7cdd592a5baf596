package epp

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the generated configurations into testdata")

var dirs = map[inputv1alpha1.Dialect]string{inputv1alpha1.DialectGAIE: "gaie", inputv1alpha1.DialectLLMD: "llmd"}

// TestGenerate compares with testdata/generated. The tests in test/epp load the same files
// with the code of the endpoint pickers.
func TestGenerate(t *testing.T) {
	cases := map[string]struct {
		dialect  inputv1alpha1.Dialect
		strategy v1alpha1.RoutingStrategy
		workers  bool
	}{
		"gaie/prefix-cache":                   {inputv1alpha1.DialectGAIE, v1alpha1.StrategyPrefixCache, true},
		"gaie/kv-cache-utilization":           {inputv1alpha1.DialectGAIE, v1alpha1.StrategyKVCacheUtilization, true},
		"gaie/queue-size":                     {inputv1alpha1.DialectGAIE, v1alpha1.StrategyQueueSize, true},
		"gaie/lora-affinity":                  {inputv1alpha1.DialectGAIE, v1alpha1.StrategyLoRAAffinity, true},
		"llmd/prefix-cache":                   {inputv1alpha1.DialectLLMD, v1alpha1.StrategyPrefixCache, true},
		"llmd/kv-cache-utilization":           {inputv1alpha1.DialectLLMD, v1alpha1.StrategyKVCacheUtilization, true},
		"llmd/queue-size":                     {inputv1alpha1.DialectLLMD, v1alpha1.StrategyQueueSize, true},
		"llmd/lora-affinity":                  {inputv1alpha1.DialectLLMD, v1alpha1.StrategyLoRAAffinity, true},
		"llmd/pd-disaggregation":              {inputv1alpha1.DialectLLMD, v1alpha1.StrategyPDDisaggregation, false},
		"llmd/pd-disaggregation-with-workers": {inputv1alpha1.DialectLLMD, v1alpha1.StrategyPDDisaggregation, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Generate(tc.strategy, tc.dialect, tc.workers)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "generated", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(read(t, golden), got); diff != "" {
				t.Errorf("Generate(): -golden, +got (go test -update writes it):\n%s", diff)
			}
			if errs := checkText(got, tc.dialect); len(errs) > 0 {
				t.Errorf("the function refuses what it generates: %v", errs)
			}
		})
	}
	if n := len(glob(t, "testdata/generated/*/*.yaml")); n != len(cases) {
		t.Errorf("testdata/generated has %d files, want one for each of %d cases", n, len(cases))
	}
}

// TestHasScreener proves which images have the screener, and the flag --drain-timeout.
func TestHasScreener(t *testing.T) {
	cases := map[string]struct {
		image string
		want  bool
	}{
		"Default":   {image: inputv1alpha1.DefaultImageLLMD, want: true},
		"Mirror":    {image: "registry.example.com:5000/llm-d/picker:v0.10.0", want: true},
		"Digest":    {image: "ghcr.io/llm-d/picker:v0.11.2@sha256:0123", want: true},
		"Candidate": {image: "picker:v0.10.0-rc.1"},
		"Older":     {image: "picker:v0.9.0"},
		"NoDigits":  {image: "picker:latest"},
		"NoTag":     {image: "registry.example.com:5000/picker"},
		"Only":      {image: "picker@sha256:0123"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := HasScreener(tc.image); got != tc.want {
				t.Errorf("HasScreener(%q) = %t, want %t", tc.image, got, tc.want)
			}
		})
	}
}

// TestScreen proves that the screener is the first plugin of a configuration that is otherwise the same,
// and that both configurations for pd-disaggregation take it.
func TestScreen(t *testing.T) {
	for _, workers := range []bool{false, true} {
		before, err := Generate(v1alpha1.StrategyPDDisaggregation, inputv1alpha1.DialectLLMD, workers)
		if err != nil {
			t.Fatal(err)
		}
		var want, got map[string]any
		if err := errors.Join(yaml.Unmarshal([]byte(before), &want), yaml.Unmarshal([]byte(Screen(before, "chat", false)), &got)); err != nil {
			t.Fatal(err)
		}
		plugins, _ := want["plugins"].([]any)
		want["plugins"] = append([]any{map[string]any{
			"type": "disaggregatedset-rollout-screener",
			"parameters": map[string]any{
				"scope": map[string]any{"labelSelector": "fusioninfer.io/service=chat,fusioninfer.io/component-type in (decoder,worker),leaderworkerset.sigs.k8s.io/worker-index=0"},
				"revisionGating": map[string]any{
					"revisionLabelKey": "fusioninfer.io/spec-hash", "roleLabelKey": "fusioninfer.io/service", "mode": "max-role",
					"requireRoles": map[string]any{"values": []any{"chat"}},
				},
			},
		}}, plugins...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with workers %t: -want, +got:\n%s", workers, diff)
		}
	}
}

// TestScreenBoth proves that a revision needs both where decode answers nothing without prefill.
func TestScreenBoth(t *testing.T) {
	var got map[string]any
	if err := yaml.Unmarshal([]byte(Screen("plugins:\n", "chat", true)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"plugins": []any{map[string]any{
		"type": "disaggregatedset-rollout-screener",
		"parameters": map[string]any{
			"scope": map[string]any{"labelSelector": "fusioninfer.io/service=chat,fusioninfer.io/component-type in (decoder,prefiller),leaderworkerset.sigs.k8s.io/worker-index=0"},
			"revisionGating": map[string]any{
				"revisionLabelKey": "fusioninfer.io/spec-hash", "roleLabelKey": "fusioninfer.io/component-type", "mode": "max-role",
				"requireRoles": map[string]any{"values": []any{"decoder", "prefiller"}},
			},
		},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestWithQueue compares with files in testdata/good, which the tests in test/epp load with the endpoint picker.
func TestWithQueue(t *testing.T) {
	for golden, d := range map[string]inputv1alpha1.Dialect{"gaie-v1.5.0": inputv1alpha1.DialectGAIE, "llmd": inputv1alpha1.DialectLLMD} {
		t.Run(golden, func(t *testing.T) {
			config, err := Generate(v1alpha1.StrategyPrefixCache, d, true)
			if err != nil {
				t.Fatal(err)
			}
			got, golden := WithQueue(config, d, 20*time.Minute, 128<<20), filepath.Join("testdata", "good", golden, "with-queue.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(read(t, golden), got); diff != "" {
				t.Errorf("WithQueue(): -golden, +got (go test -update writes it):\n%s", diff)
			}
			for text, want := range map[string]bool{config: false, got: true} {
				if c, errs := Parse(text, nil); len(errs) > 0 || c.Queues() != want {
					t.Errorf("Queues() = %t, want %t: %v\n%s", !want, want, errs, text)
				}
			}
		})
	}
}

func TestQueues(t *testing.T) {
	for image, want := range map[string]bool{
		inputv1alpha1.DefaultImageGAIE: true, "mirror/epp:v1.6.1": true, "registry/epp:v1.2.1": false, "registry/epp:latest": false, "registry/epp": false,
	} {
		if got, since := Queues(image, inputv1alpha1.DialectGAIE); got != want || since != "v1.5.0" {
			t.Errorf("Queues(%q) = %t since %s, want %t", image, got, since, want)
		}
	}
	if got, since := Queues(inputv1alpha1.DefaultImageLLMD, inputv1alpha1.DialectLLMD); !got || since != "v0.10.0" {
		t.Errorf("Queues(%q) = %t since %s", inputv1alpha1.DefaultImageLLMD, got, since)
	}
}

func TestGenerateImpossible(t *testing.T) {
	for _, d := range []inputv1alpha1.Dialect{inputv1alpha1.DialectGAIE, ""} {
		if got, err := Generate(v1alpha1.StrategyPDDisaggregation, d, false); err == nil {
			t.Errorf("Generate(pd-disaggregation, %q) = %q, want an error", d, got)
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	for pattern, d := range map[string]inputv1alpha1.Dialect{
		"testdata/good/gaie/*.yaml":        inputv1alpha1.DialectGAIE,
		"testdata/good/gaie-v1.5.0/*.yaml": inputv1alpha1.DialectGAIE,
		"testdata/good/llmd/*.yaml":        inputv1alpha1.DialectLLMD,
	} {
		for _, path := range glob(t, pattern) {
			t.Run(path, func(t *testing.T) {
				if errs := checkText(read(t, path), d); len(errs) > 0 {
					t.Errorf("Check(): %v", errs.ToAggregate())
				}
			})
		}
	}
}

// TestCheckRefuses expects the errors that the second line of each file lists, by their
// paths.
func TestCheckRefuses(t *testing.T) {
	for d, dir := range dirs {
		for _, path := range glob(t, "testdata/bad/"+dir+"/*.yaml") {
			t.Run(path, func(t *testing.T) {
				text := read(t, path)
				_, after, ok := strings.Cut(text, "\n# errors at:")
				line, _, _ := strings.Cut(after, "\n")
				if !ok {
					t.Fatal("the file does not say where its errors are")
				}
				want := strings.Fields(line)
				slices.Sort(want)
				var got []string
				for _, e := range checkText(text, d) {
					t.Log(e)
					got = append(got, strings.TrimPrefix(strings.TrimPrefix(e.Field, "config"), "."))
				}
				for i := range got {
					if got[i] == "" {
						got[i] = "."
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("errors at: -want, +got:\n%s", diff)
				}
			})
		}
	}
}

func TestCheckSaysWhatIsRight(t *testing.T) {
	cases := map[string]struct {
		reason  string
		dialect inputv1alpha1.Dialect
		config  string
		want    string
	}{
		"YAML": {
			reason:  "A syntax error is reported with its line.",
			dialect: inputv1alpha1.DialectGAIE,
			config:  "kind: EndpointPickerConfig\nplugins:\n- type: [\n",
			want:    "must be YAML: line 3",
		},
		"PluginRef": {
			reason:  "A reference that names no plugin lists those that there are.",
			dialect: inputv1alpha1.DialectGAIE,
			config:  "apiVersion: " + APIVersionGAIE + "\nkind: EndpointPickerConfig\nplugins: [{type: queue-scorer}, {type: random-picker, name: pick}]\nschedulingProfiles: [{name: default, plugins: [{pluginRef: picker}]}]\n",
			want:    `config.schedulingProfiles[0].plugins[0].pluginRef: Invalid value: "picker": must be the name of a plugin: queue-scorer, pick`,
		},
		"OtherDialect": {
			reason:  "A plugin that only the other dialect has is named as such.",
			dialect: inputv1alpha1.DialectGAIE,
			config:  "apiVersion: " + APIVersionGAIE + "\nkind: EndpointPickerConfig\nplugins: [{type: decode-filter}]\nschedulingProfiles: [{name: default}]\n",
			want:    "is a plugin of dialect LLMD (apiVersion llm-d.ai/v1alpha1)",
		},
		"Parameter": {
			reason:  "A parameter that the plugin lacks lists those that it has.",
			dialect: inputv1alpha1.DialectLLMD,
			config:  "apiVersion: " + APIVersionLLMD + "\nkind: EndpointPickerConfig\nplugins: [{type: max-score-picker, parameters: {max: 1}}]\nschedulingProfiles: [{name: default}]\n",
			want:    "config.plugins[0].parameters.max: Forbidden: is not a parameter of this plugin: the parameters are maxNumOfEndpoints",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			errs := checkText(tc.config, tc.dialect)
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want) {
				t.Errorf("%s\nCheck() = %v, want %q", tc.reason, errs, tc.want)
			}
		})
	}
}

// TestDiscovery proves that an endpoint picker has the endpoints of its InferencePool, and no others.
func TestDiscovery(t *testing.T) {
	const (
		typeRefused = `config.plugins[0].type: Forbidden: file-discovery has no use here: endpoints are the pods of the service's InferencePool`
		refused     = `config.dataLayer.discovery: Forbidden: must be left out: endpoints are the pods of the service's InferencePool, which an endpoint picker with a discovery ignores`
		profiles    = "\nschedulingProfiles: [{name: default}]\n"
	)
	cases := map[string]struct {
		reason   string
		config   string
		ownImage bool
		want     []string
	}{
		"File": {
			reason: "A file says which endpoints there are, and it may be a key that somebody adds to the ConfigMap.",
			config: `plugins: [{type: file-discovery, parameters: {path: /config/endpoints.yaml, watchFile: true}}]` + profiles + `dataLayer: {discovery: {pluginRef: file-discovery}}`,
			want:   []string{typeRefused, refused},
		},
		"FileOfOwnImage": {
			reason:   "No image changes that.",
			config:   `plugins: [{type: file-discovery, name: find}]` + profiles + `dataLayer: {discovery: {pluginRef: find}}`,
			ownImage: true,
			want:     []string{typeRefused, refused},
		},
		"PluginOfOwnImage": {
			reason:   "Nor does a plugin of the image.",
			config:   `plugins: [{type: mine}]` + profiles + `dataLayer: {discovery: {pluginRef: mine}}`,
			ownImage: true,
			want:     []string{refused},
		},
		"Empty":  {reason: "The endpoint picker looks for a discovery without a name, too.", config: `plugins: [{type: queue-scorer}]` + profiles + `dataLayer: {discovery: {}}`, want: []string{refused}},
		"Unused": {reason: "So is the plugin where no reference names it.", config: `plugins: [{type: file-discovery, parameters: {path: /a}}]` + profiles, want: []string{typeRefused}},
		"Null":   {reason: "A null is as good as nothing.", config: `plugins: [{type: queue-scorer}]` + profiles + `dataLayer: {discovery: null}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range checkTextFor("apiVersion: "+APIVersionLLMD+"\nkind: EndpointPickerConfig\n"+tc.config, inputv1alpha1.DialectLLMD, tc.ownImage) {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCheckOwnImage shows what is only a warning, and what is still refused, if the
// platform team chose the image.
func TestCheckOwnImage(t *testing.T) {
	const (
		noPluginGAIE = "is not a plugin of the known release of dialect GAIE: the endpoint picker starts only if its image has this plugin"
		noPlugin     = "is not a plugin of the known release of dialect LLMD: the endpoint picker starts only if its image has this plugin"
		noParameter  = "is not a parameter of max-score-picker in the known release of dialect LLMD: the endpoint picker starts only if its image has this parameter"
		one          = "schedulingProfiles: [{name: default, plugins: [{pluginRef: mine, weight: 1}]}]\n"
	)
	cases := map[string]struct {
		reason   string
		dialect  inputv1alpha1.Dialect // LLMD if empty.
		config   string
		warnings []Warning
		errs     []string
	}{
		"Plugin": {
			reason:   "An image may have its own plugins, so an unknown type is a warning.",
			config:   "plugins: [{type: my-scorer, name: mine, parameters: {a: {b: 1}}}]\n" + one,
			warnings: []Warning{{"config.plugins[0].type", "my-scorer " + noPlugin}},
		},
		"Parameter": {
			reason:   "A known plugin may have more parameters in this image, so an unknown one is a warning.",
			config:   "plugins: [{type: max-score-picker, parameters: {maxNumOfEndpoints: 2, more: 1}}, {type: my-scorer, name: mine}]\n" + one,
			warnings: []Warning{{"config.plugins[0].parameters.more", noParameter}, {"config.plugins[1].type", "my-scorer " + noPlugin}},
		},
		"ParameterOfWrongType": {
			reason: "A known parameter keeps its type.",
			config: "plugins: [{type: max-score-picker, parameters: {maxNumOfEndpoints: many}}]\nschedulingProfiles: [{name: default}]\n",
			errs:   []string{"config.plugins[0].parameters.maxNumOfEndpoints"},
		},
		"Roles": {
			reason: "The role of an unknown plugin is not known, so a reference may name it for any role.",
			config: "featureGates: [flowControl]\nplugins: [{type: disagg-profile-handler, parameters: {deciders: {prefill: mine}}}, {type: mine}]\n" +
				"schedulingProfiles: [{name: decode}, {name: prefill}]\nrequestHandler: {parsers: [{pluginRef: mine}]}\nflowControl: {saturationDetector: {pluginRef: mine}, usageLimitPolicyPluginRef: mine}\n",
			warnings: []Warning{{"config.plugins[1].type", "mine " + noPlugin}},
		},
		"Handler": {
			reason:   "An unknown plugin may be the profile handler that several profiles need.",
			config:   "plugins: [{type: mine}]\nschedulingProfiles: [{name: a}, {name: b}]\n",
			warnings: []Warning{{"config.plugins[0].type", "mine " + noPlugin}},
		},
		"NoHandler": {
			reason: "Without an unknown plugin, the profile handler is missing.",
			config: "plugins: [{type: queue-scorer}]\nschedulingProfiles: [{name: a}, {name: b}]\n",
			errs:   []string{"config.plugins"},
		},
		"Sources": {
			reason: "A data source has to be known, because it decides what the endpoint picker connects to. There is no discovery at all.",
			config: "plugins: [{type: mine, name: src}, {type: mine}]\nschedulingProfiles: [{name: default}]\n" +
				"dataLayer: {sources: [{pluginRef: src, extractors: [{pluginRef: mine}]}], discovery: {pluginRef: mine}}\n",
			warnings: []Warning{{"config.plugins[0].type", "mine " + noPlugin}, {"config.plugins[1].type", "mine " + noPlugin}},
			errs:     []string{"config.dataLayer.sources[0].pluginRef", "config.dataLayer.discovery"},
		},
		"LegacyMetrics": {
			reason:  "No feature gate keeps data sources from the checks: the image decides what the gate does.",
			dialect: inputv1alpha1.DialectGAIE,
			config: "featureGates: [enableLegacyMetrics]\nplugins: [{type: mine, name: src}, {type: metrics-data-source}]\nschedulingProfiles: [{name: default}]\n" +
				"dataLayer: {sources: [{pluginRef: src}, {pluginRef: metrics-data-source}]}\n",
			warnings: []Warning{{"config.plugins[0].type", "mine " + noPluginGAIE}},
			errs:     []string{"config.dataLayer.sources[0].pluginRef"},
		},
		"Syncer": {
			reason: "Nor is an unknown plugin the cross-replica syncer, which connects to a store or to other replicas.",
			config: "plugins: [{type: mine}]\nschedulingProfiles: [{name: default}]\n" +
				"dataLayer: {crossReplicaSyncerPluginRef: mine}\n",
			warnings: []Warning{{"config.plugins[0].type", "mine " + noPlugin}},
			errs:     []string{"config.dataLayer.crossReplicaSyncerPluginRef"},
		},
		"NameOfASource": {
			reason:   "The endpoint picker uses the plugin metrics-data-source, even where the configuration has no data layer. So no unknown plugin has such a name.",
			config:   "plugins: [{type: mine, name: metrics-data-source}, {type: mine, name: file-discovery}]\nschedulingProfiles: [{name: default}]\n",
			warnings: []Warning{{"config.plugins[0].type", "mine " + noPlugin}, {"config.plugins[1].type", "mine " + noPlugin}},
			errs:     []string{"config.plugins[0].name", "config.plugins[1].name"},
		},
		"SourceOfTheOtherDialect": {
			reason:  "A data source that only the other dialect knows is one here, too, and nothing else. It is not known of the image that it is the same.",
			dialect: inputv1alpha1.DialectGAIE,
			config: "featureGates: [flowControl]\nplugins: [{type: models-data-source}, {type: file-discovery, name: find}]\nschedulingProfiles: [{name: default}]\n" +
				"dataLayer: {sources: [{pluginRef: models-data-source, extractors: [{pluginRef: models-data-source}]}]}\n" +
				"parser: {pluginRef: find}\nsaturationDetector: {pluginRef: models-data-source}\n",
			warnings: []Warning{{"config.plugins[0].type", "models-data-source " + noPluginGAIE}, {"config.plugins[1].type", "file-discovery " + noPluginGAIE}},
			errs: []string{
				"config.saturationDetector.pluginRef", "config.parser.pluginRef",
				"config.dataLayer.sources[0].pluginRef", "config.dataLayer.sources[0].extractors[0].pluginRef",
			},
		},
		"Experimental": {
			reason: "An experimental plugin needs a flag that is not set, in any image.",
			config: "plugins: [{type: multicluster-file-discovery}]\nschedulingProfiles: [{name: default}]\n",
			errs:   []string{"config.plugins[0].type"},
		},
		"Structure": {
			reason:   "Errors that do not depend on the image are still errors.",
			config:   "plugins: [{type: mine}, {type: mine}, {name: x}]\nschedulingProfiles: [{name: default, plugins: [{pluginRef: other}, {pluginRef: mine, weight: -1}]}]\nmore: 1\n",
			warnings: []Warning{{"config.plugins[0].type", "mine " + noPlugin}, {"config.plugins[1].type", "mine " + noPlugin}},
			errs: []string{
				"config.more", "config.plugins[1].name", "config.plugins[2].type",
				"config.schedulingProfiles[0].plugins[0].pluginRef", "config.schedulingProfiles[0].plugins[1].weight",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := tc.dialect
			if d == "" {
				d = inputv1alpha1.DialectLLMD
			}
			c, errs := Parse("apiVersion: "+dialects[d].apiVersions[0]+"\nkind: EndpointPickerConfig\n"+tc.config, field.NewPath("config"))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			warnings, errs := c.Check(d, true)
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s\nwarnings: -want, +got:\n%s", tc.reason, diff)
			}
			var at []string
			for _, e := range errs {
				at = append(at, e.Field)
			}
			if diff := cmp.Diff(tc.errs, at); diff != "" {
				t.Errorf("%s\nerrors at: -want, +got:\n%s\n%v", tc.reason, diff, errs)
			}
			// With the default image there are errors in place of the warnings.
			if warnings, errs := c.Check(d, false); len(warnings) > 0 || len(errs) < len(tc.errs)+min(1, len(tc.warnings)) {
				t.Errorf("with the default image: warnings %v, errors %v", warnings, errs)
			}
		})
	}
}

// TestCheckOwnImageKnows shows that configurations without unknown parts have no warnings.
func TestCheckOwnImageKnows(t *testing.T) {
	for d, dir := range map[inputv1alpha1.Dialect]string{inputv1alpha1.DialectGAIE: "gaie", inputv1alpha1.DialectLLMD: "llmd"} {
		for _, path := range append(glob(t, "testdata/good/"+dir+"/*.yaml"), glob(t, "testdata/generated/"+dir+"/*.yaml")...) {
			c, errs := Parse(read(t, path), field.NewPath("config"))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if warnings, errs := c.Check(d, true); len(warnings)+len(errs) > 0 {
				t.Errorf("%s: warnings %v, errors %v", path, warnings, errs)
			}
		}
	}
}

// TestCheckWarningsAreCapped shows that the number of warnings has a limit.
func TestCheckWarningsAreCapped(t *testing.T) {
	var config strings.Builder
	config.WriteString("apiVersion: " + APIVersionLLMD + "\nkind: EndpointPickerConfig\nschedulingProfiles: [{name: default}]\nplugins:\n")
	for i := range 40 {
		fmt.Fprintf(&config, "- type: mine-%d\n", i)
	}
	c, errs := Parse(config.String(), field.NewPath("config"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	warnings, errs := c.Check(inputv1alpha1.DialectLLMD, true)
	if len(errs) > 0 || len(warnings) != maxErrors+1 {
		t.Fatalf("%d warnings, want %d; errors %v", len(warnings), maxErrors+1, errs)
	}
	want := Warning{"config", "there are 40 warnings, of which the first 30 are listed"}
	if diff := cmp.Diff(want, warnings[maxErrors]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// FuzzCheck looks for input on which the checks panic or contradict themselves.
func FuzzCheck(f *testing.F) {
	for _, path := range append(glob(f, "testdata/bad/*/*.yaml"), glob(f, "testdata/good/*/*.yaml")...) {
		f.Add(read(f, path))
	}
	f.Add("k: &k x\na: &a {b: [x]}\nc: [*a, {<<: *a, *k : 1}]\nd: &a [x]\ne: *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		checkMeasured(t, text)
		for d := range dirs {
			first, second := checkText(text, d), checkText(text, d)
			if diff := cmp.Diff(first.ToAggregate(), second.ToAggregate(), cmp.Comparer(func(a, b error) bool {
				return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
			})); diff != "" {
				t.Errorf("Check returns different errors for the same configuration:\n%s", diff)
			}
			c, errs := Parse(text, field.NewPath("config"))
			if len(errs) > 0 {
				continue
			}
			if _, errs := c.Check(d, true); len(errs) > len(first) {
				t.Errorf("with an image of the platform team there are more errors: %v, without only %v", errs, first)
			}
		}
	})
}

// checkText parses and checks a configuration for the default image of a dialect.
func checkText(text string, d inputv1alpha1.Dialect) field.ErrorList {
	c, errs := Parse(text, field.NewPath("config"))
	if len(errs) > 0 {
		return errs
	}
	_, errs = c.Check(d, false)
	return errs
}

func read(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func glob(tb testing.TB, pattern string) []string {
	tb.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no files %s: %v", pattern, err)
	}
	return paths
}

// TestScreenCountsWorkers proves that worker pods, which answer requests like decode pods, make a
// revision one that gets requests. The plugin leaves out a revision without a ready pod of each role.
func TestScreenCountsWorkers(t *testing.T) {
	var got struct {
		Plugins []struct {
			Parameters struct {
				Scope          struct{ LabelSelector string }
				RevisionGating struct {
					RoleLabelKey string
					RequireRoles struct{ Values []string }
				}
			}
		}
	}
	// A name of digits alone stays a text.
	if err := yaml.Unmarshal([]byte(Screen("plugins:\n", "123", false)), &got); err != nil {
		t.Fatal(err)
	}
	p := got.Plugins[0].Parameters
	scope, err := labels.Parse(p.Scope.LabelSelector)
	if err != nil {
		t.Fatal(err)
	}
	for kind, counts := range map[string]bool{"decoder": true, "worker": true, "prefiller": false} {
		pod := labels.Set{"fusioninfer.io/service": "123", "fusioninfer.io/component-type": kind, "leaderworkerset.sigs.k8s.io/worker-index": "0"}
		if is := scope.Matches(pod) && slices.Equal(p.RevisionGating.RequireRoles.Values, []string{pod[p.RevisionGating.RoleLabelKey]}); is != counts {
			t.Errorf("a revision with only a %s pod gets requests: %t, want %t", kind, is, counts)
		}
	}
}
