package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseFailure proves that only what the function may have written is read as a failure. Whoever may
// write annotations can make up nothing else.
func TestParseFailure(t *testing.T) {
	const text = "pod chat-w-0-0: container engine: Error (exit code 1)"
	cases := map[string]struct {
		note string
		want Failure
	}{
		"Written":      {note: "0a1b " + text, want: Failure{"0a1b", text}},
		"Both":         {note: "0a1b-both " + text, want: Failure{"0a1b-both", text}},
		"OtherSuffix":  {note: "0a1b-one " + text},
		"None":         {},
		"NoRevision":   {note: text},
		"OtherReason":  {note: "0a1b pod chat-w-0-0: container engine: call +1 555 (exit code 1)"},
		"MoreText":     {note: "0a1b " + text + ", see https://example.com"},
		"MoreLines":    {note: "0a1b " + text + "\n"},
		"LongReason":   {note: "0a1b pod p: container c: " + strings.Repeat("a", 65) + " (exit code 1)"},
		"LongName":     {note: "0a1b pod " + strings.Repeat("a", 254) + ": container c: Error (exit code 1)"},
		"LongExitCode": {note: "0a1b pod p: container c: Error (exit code 12345678901)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ParseFailure(tc.note)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if want := tc.want.Note(); want != "" && want != tc.note {
				t.Errorf("Note() = %q, want %q", want, tc.note)
			}
		})
	}
}
