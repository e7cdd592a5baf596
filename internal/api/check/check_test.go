package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestShown(t *testing.T) {
	cases := map[string]struct {
		reason string
		v      string
		want   string
	}{
		"Short": {
			reason: "A short value is repeated whole.",
			v:      strings.Repeat("x", 80),
			want:   strings.Repeat("x", 80),
		},
		"Long": {
			reason: "A long one would hide what is wrong with it.",
			v:      strings.Repeat("x", 1<<20),
			want:   strings.Repeat("x", 80) + "...",
		},
		"CutCharacter": {
			reason: "An error is a protobuf string, so it has to stay valid UTF-8.",
			v:      "x" + strings.Repeat("é", 80),
			want:   "x" + strings.Repeat("é", 39) + "...",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Shown(tc.v)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A schema counts characters, so the function does.
func TestLength(t *testing.T) {
	path := field.NewPath("a")
	if errs := Length(path, strings.Repeat("é", 5), 5); len(errs) > 0 {
		t.Errorf("five characters: %v", errs.ToAggregate())
	}
	if errs := Length(path, strings.Repeat("é", 6), 5); len(errs) != 1 {
		t.Errorf("want one error about six characters, got %v", errs.ToAggregate())
	}
}

func TestNames(t *testing.T) {
	path := field.NewPath("a")
	cases := map[string]struct {
		reason string
		got    field.ErrorList
		want   string
	}{
		"Label":       {reason: "63 characters are a label.", got: Label(path, strings.Repeat("x", 63))},
		"LongLabel":   {reason: "64 are none.", got: Label(path, strings.Repeat("x", 64)), want: "a: Too long: may not be more than 63 characters"},
		"DottedLabel": {reason: "Dots are between labels.", got: Label(path, "a.b"), want: `a: Invalid value: "a.b": must be lower case letters, digits and '-', with a letter or digit first and last`},
		"Name":        {reason: "And in names.", got: Name(path, "a.b")},
		"LongName":    {reason: "A name has 253.", got: Name(path, strings.Repeat("x", 254)), want: "a: Too long: may not be more than 253 characters"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.got.ToAggregate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
