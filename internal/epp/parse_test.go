package epp

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestParseOneDocument shows that a second document is refused: it would reach the
// ConfigMap unchecked.
func TestParseOneDocument(t *testing.T) {
	const doc = "apiVersion: a\nkind: b\n"
	cases := map[string]struct {
		reason, text string
		refused      bool
	}{
		"One":          {reason: "One document is accepted.", text: doc},
		"Start":        {reason: "A line --- may start the document.", text: "# comment\n---\n" + doc},
		"End":          {reason: "An empty second document does not count.", text: doc + "---\n"},
		"EndMarker":    {reason: "The end marker of a document is accepted.", text: doc + "...\n"},
		"Comment":      {reason: "A second document with only a comment does not count.", text: doc + "---\n# that was all\n"},
		"Dashes":       {reason: "A line --- in a block of text starts no document.", text: doc + "note: |\n  ---\n  c: d\n"},
		"Two":          {reason: "A second document is refused, because it is not read.", text: doc + "---\n" + doc, refused: true},
		"TwoInOneLine": {reason: "A document may begin on the line of its marker.", text: doc + "--- {a: b}\n", refused: true},
		"AfterEmpty":   {reason: "A third document is refused, although the second is empty.", text: doc + "---\n---\n" + doc, refused: true},
		"NotYAML":      {reason: "Text after the first document that is not YAML is refused.", text: doc + "---\na: [\n", refused: true},
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

// TestConfigQueues proves that flow control is on where the endpoint picker has it on.
func TestConfigQueues(t *testing.T) {
	cases := map[string]struct {
		reason, gates string
		want          bool
	}{
		"None":   {reason: "It is off by default.", gates: "[]"},
		"Listed": {reason: "A gate that is listed is on.", gates: "[dataLayer, flowControl]", want: true},
		"Value":  {reason: "It may have a value.", gates: "[flowControl=true]", want: true},
		"Off":    {reason: "A value may turn it off.", gates: "[flowControl=false]"},
		"Case":   {reason: "Case and blanks of a value do not matter.", gates: `["flowControl= tRUE "]`, want: true},
		"Last":   {reason: "Of two entries the last one counts.", gates: "[flowControl, flowControl=false]"},
		"LastOn": {reason: "Also where that turns it on.", gates: "[flowControl=false, flowControl]", want: true},
		"NoText": {reason: "What is no text is no gate.", gates: "[1, [flowControl]]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, errs := Parse("featureGates: "+tc.gates, field.NewPath("config"))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := c.Queues(); got != tc.want {
				t.Errorf("%s Queues() = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
