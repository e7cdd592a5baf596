package epp

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// TestParseAliases shows which aliases are refused, and with which words.
func TestParseAliases(t *testing.T) {
	aliases := func(n int) string { return "[" + strings.Repeat("*a,", n-1) + "*a]" }
	deep := func(n int) string { return strings.Repeat("[", n) + "x" + strings.Repeat("]", n) }
	cases := map[string]struct{ reason, config, want string }{
		"Few":      {reason: "Aliases are YAML.", config: "a: &a {b: [1, 2]}\nc: *a\nd: {<<: *a}\n"},
		"Many":     {reason: "A text may have as many aliases as a list may have elements.", config: "a: &a x\nb: " + aliases(1000) + "\n"},
		"Redone":   {reason: "An anchor may be set again, and an alias means the last one.", config: "a: &a x\nb: [*a]\nc: &a [x]\nd: *a\n"},
		"NoAlias":  {reason: "A star in a text is no alias.", config: "a: '*a'\n"},
		"FullSize": {reason: "Values up to the limit are accepted.", config: "a: &a " + strings.Repeat("x", maxExpanded/1000) + "\nb: " + aliases(990) + "\n"},
		"Cycle": {
			reason: "A value cannot be within itself.", config: "a: &a [x, *a]\n",
			want: `config: Invalid value: "*a": must not be an alias within the value that it stands for`,
		},
		"Values": {
			reason: "Aliases count as what they stand for.", config: "a: &a [" + strings.Repeat("x,", 99) + "x]\nb: " + aliases(500) + "\n",
			want: `config: Invalid value: "more than 50000 values": must have at most 50000 values in all, with its aliases written out`,
		},
		"Bytes": {
			reason: "So do their bytes.", config: "a: &a " + strings.Repeat("x", 10_000) + "\nb: " + aliases(200) + "\n",
			want: `config: Invalid value: "more than 1048576 bytes": must have at most 1048576 bytes of keys and values in all, with its aliases written out`,
		},
		"Depth": {
			reason: "So do their levels.", config: "a: &a " + deep(40) + "\nb: " + strings.Repeat("[", 30) + "*a" + strings.Repeat("]", 30) + "\n",
			want: `config: Invalid value: "...": must be nested at most 64 deep, with its aliases written out`,
		},
		"NoAnchor": {
			reason: "An alias has an anchor.", config: "a: *b\n",
			want: `config: Invalid value: "a: *b\n": must be YAML: unknown anchor 'b' referenced`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := Parse(tc.config, field.NewPath("config"))
			got := ""
			if len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q\n got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// checkMeasured fails if a text that Parse accepts is larger than the limits. It decodes the text
// with the decoder that Parse uses, and measures what comes out.
func checkMeasured(t *testing.T, config string) {
	t.Helper()
	if _, errs := Parse(config, field.NewPath("config")); len(errs) > 0 {
		return
	}
	var doc any
	if err := yaml.Unmarshal([]byte(config), &doc); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	// A character takes at most 6 bytes in JSON. A value that is not text takes few.
	if most := 6*max(maxExpanded, len(config)) + 40*kube.MaxValues; len(b) > most {
		t.Errorf("a configuration of %d bytes has %d bytes when written out", len(config), len(b))
	}
}
