package epp

import (
	"strings"
	"testing"

	goyaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
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

// checkMeasured fails if a text that Parse accepts is larger than it was measured before. The
// measurer and the decoder are of different libraries.
func checkMeasured(t *testing.T, config string) {
	t.Helper()
	if _, errs := Parse(config, field.NewPath("config")); len(errs) > 0 || !strings.Contains(config, "*") {
		return
	}
	n := goyaml.Node{}
	if err := goyaml.Unmarshal([]byte(config), &n); err != nil {
		t.Fatal(err)
	}
	m := measurer{anchored: map[*goyaml.Node]*size{}}
	before := m.measure(&n)
	var doc any
	if err := yaml.Unmarshal([]byte(config), &doc); err != nil {
		t.Fatal(err)
	}
	after := sizeOf(doc)
	// The decoder writes numbers anew, of which each takes few bytes.
	if before.bytes += 40 * before.values; after.values > before.values || after.bytes > before.bytes || after.depth > before.depth {
		t.Errorf("measured %+v, decoded %+v", before, after)
	}
}

func sizeOf(v any) size {
	s := size{values: 1}
	switch t := v.(type) {
	case map[string]any:
		for name, inner := range t {
			s.add(sizeOf(inner))
			s.bytes += len(name)
		}
	case []any:
		for _, inner := range t {
			s.add(sizeOf(inner))
		}
	case string:
		s.bytes = len(t)
	}
	return s
}
