package epp

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the generated configurations into testdata")

var dirs = map[v1beta1.Dialect]string{v1beta1.DialectGAIE: "gaie", v1beta1.DialectLLMD: "llmd"}

// TestGenerate compares with testdata/generated, which the loaders of the real
// endpoint pickers read in test/epp.
func TestGenerate(t *testing.T) {
	cases := map[string]struct {
		dialect  v1beta1.Dialect
		strategy v1alpha1.RoutingStrategy
		workers  bool
	}{
		"gaie/prefix-cache":                   {v1beta1.DialectGAIE, v1alpha1.StrategyPrefixCache, true},
		"gaie/kv-cache-utilization":           {v1beta1.DialectGAIE, v1alpha1.StrategyKVCacheUtilization, true},
		"gaie/queue-size":                     {v1beta1.DialectGAIE, v1alpha1.StrategyQueueSize, true},
		"gaie/lora-affinity":                  {v1beta1.DialectGAIE, v1alpha1.StrategyLoRAAffinity, true},
		"llmd/prefix-cache":                   {v1beta1.DialectLLMD, v1alpha1.StrategyPrefixCache, true},
		"llmd/kv-cache-utilization":           {v1beta1.DialectLLMD, v1alpha1.StrategyKVCacheUtilization, true},
		"llmd/queue-size":                     {v1beta1.DialectLLMD, v1alpha1.StrategyQueueSize, true},
		"llmd/lora-affinity":                  {v1beta1.DialectLLMD, v1alpha1.StrategyLoRAAffinity, true},
		"llmd/pd-disaggregation":              {v1beta1.DialectLLMD, v1alpha1.StrategyPDDisaggregation, false},
		"llmd/pd-disaggregation-with-workers": {v1beta1.DialectLLMD, v1alpha1.StrategyPDDisaggregation, true},
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
			if errs := verdict(got, tc.dialect); len(errs) > 0 {
				t.Errorf("the function refuses what it generates: %v", errs)
			}
		})
	}
	if n := len(glob(t, "testdata/generated/*/*.yaml")); n != len(cases) {
		t.Errorf("testdata/generated has %d files, want one for each of %d cases", n, len(cases))
	}
}

func TestGenerateImpossible(t *testing.T) {
	for _, d := range []v1beta1.Dialect{v1beta1.DialectGAIE, ""} {
		if got, err := Generate(v1alpha1.StrategyPDDisaggregation, d, false); err == nil {
			t.Errorf("Generate(pd-disaggregation, %q) = %q, want an error", d, got)
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	for pattern, d := range map[string]v1beta1.Dialect{
		"testdata/good/gaie/*.yaml":        v1beta1.DialectGAIE,
		"testdata/good/gaie-v1.5.0/*.yaml": v1beta1.DialectGAIE,
		"testdata/good/llmd/*.yaml":        v1beta1.DialectLLMD,
	} {
		for _, path := range glob(t, pattern) {
			t.Run(path, func(t *testing.T) {
				if errs := verdict(read(t, path), d); len(errs) > 0 {
					t.Errorf("Check(): %v", errs.ToAggregate())
				}
			})
		}
	}
}

// TestCheckRefuses reads what is wanted from the second line of each file: where
// the errors are, all of them.
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
				for _, e := range verdict(text, d) {
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
		dialect v1beta1.Dialect
		config  string
		want    string
	}{
		"YAML": {
			reason:  "A syntax error is reported with its line.",
			dialect: v1beta1.DialectGAIE,
			config:  "kind: EndpointPickerConfig\nplugins:\n- type: [\n",
			want:    "must be YAML: line 3",
		},
		"PluginRef": {
			reason:  "A reference that names no plugin lists those that there are.",
			dialect: v1beta1.DialectGAIE,
			config:  "apiVersion: " + APIVersionGAIE + "\nkind: EndpointPickerConfig\nplugins: [{type: queue-scorer}, {type: random-picker, name: pick}]\nschedulingProfiles: [{name: default, plugins: [{pluginRef: picker}]}]\n",
			want:    `config.schedulingProfiles[0].plugins[0].pluginRef: Invalid value: "picker": must be the name of a plugin: queue-scorer, pick`,
		},
		"OtherDialect": {
			reason:  "A plugin that only the other dialect has is named as such.",
			dialect: v1beta1.DialectGAIE,
			config:  "apiVersion: " + APIVersionGAIE + "\nkind: EndpointPickerConfig\nplugins: [{type: decode-filter}]\nschedulingProfiles: [{name: default}]\n",
			want:    "is a plugin of dialect LLMD (apiVersion llm-d.ai/v1alpha1)",
		},
		"Parameter": {
			reason:  "A parameter that the plugin lacks lists those that it has.",
			dialect: v1beta1.DialectLLMD,
			config:  "apiVersion: " + APIVersionLLMD + "\nkind: EndpointPickerConfig\nplugins: [{type: max-score-picker, parameters: {max: 1}}]\nschedulingProfiles: [{name: default}]\n",
			want:    "config.plugins[0].parameters.max: Forbidden: is no parameter here: there are maxNumOfEndpoints",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			errs := verdict(tc.config, tc.dialect)
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want) {
				t.Errorf("%s\nCheck() = %v, want %q", tc.reason, errs, tc.want)
			}
		})
	}
}

// FuzzCheck looks for input that the checks do not survive.
func FuzzCheck(f *testing.F) {
	for _, path := range append(glob(f, "testdata/bad/*/*.yaml"), glob(f, "testdata/good/*/*.yaml")...) {
		f.Add(read(f, path))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for d := range dirs {
			first, second := verdict(text, d), verdict(text, d)
			if diff := cmp.Diff(first.ToAggregate(), second.ToAggregate(), cmp.Comparer(func(a, b error) bool {
				return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
			})); diff != "" {
				t.Errorf("the same configuration is judged differently twice:\n%s", diff)
			}
		}
	})
}

func verdict(text string, d v1beta1.Dialect) field.ErrorList {
	c, errs := Parse(text, field.NewPath("config"))
	if len(errs) > 0 {
		return errs
	}
	return c.Check(d)
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
