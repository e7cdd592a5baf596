package epp

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What comes after the first document reached the ConfigMap unread.
func TestParseOneDocument(t *testing.T) {
	const doc = "apiVersion: a\nkind: b\n"
	cases := map[string]struct {
		reason, text string
		refused      bool
	}{
		"One":          {reason: "the usual", text: doc},
		"Start":        {reason: "a document may be announced", text: "# comment\n---\n" + doc},
		"End":          {reason: "an empty one after it is nothing", text: doc + "---\n"},
		"EndMarker":    {reason: "as is the end", text: doc + "...\n"},
		"Comment":      {reason: "and a comment", text: doc + "---\n# that was all\n"},
		"Dashes":       {reason: "a text may have dashes", text: doc + "note: |\n  ---\n  c: d\n"},
		"Two":          {reason: "nobody reads the second", text: doc + "---\n" + doc, refused: true},
		"TwoInOneLine": {reason: "also where it begins on the line", text: doc + "--- {a: b}\n", refused: true},
		"AfterEmpty":   {reason: "or after an empty one", text: doc + "---\n---\n" + doc, refused: true},
		"NotYAML":      {reason: "nobody reads that either", text: doc + "---\na: [\n", refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := Parse(tc.text, field.NewPath("config"))
			if refused := len(errs) > 0; refused != tc.refused {
				t.Errorf("%s: want refused %t, got %v", tc.reason, tc.refused, errs)
			}
		})
	}
	_, errs := Parse(doc+"---\n"+doc, field.NewPath("config"))
	const want = `config: Invalid value: "apiVersion: a\nkind: b\n---\napiVersion: a\nkind: b\n": must be one document: the endpoint picker reads the first, and nothing after the next line that starts with ---`
	if got := errs.ToAggregate().Error(); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}
