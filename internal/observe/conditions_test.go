package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

func typesOf(conditions []Condition) []string {
	var all []string
	for _, c := range conditions {
		all = append(all, c.Type)
	}
	return all
}

// One that is no longer sent would stay as it was.
func TestConditionsAreAlwaysAllThere(t *testing.T) {
	for name, v := range map[string][]Condition{
		"First":   story3(t).judge().Conditions,
		"Ready":   running(story3(t)).judge().Conditions,
		"Router":  story3(t).routed(plan.Router{HasRoute: true}).judge().Conditions,
		"Refused": Refused(ConditionTypes(), field.ErrorList{field.Required(nil, "roles")}),
	} {
		if diff := cmp.Diff(ConditionTypes(), typesOf(v)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
		for _, c := range v {
			if c.Reason == "" || !slices.Contains([]Status{True, False, Unknown}, c.Status) {
				t.Errorf("%s: a condition needs a status and a reason: %+v", name, c)
			}
			if c.Status != True && c.Message == "" {
				t.Errorf("%s: a condition that is not True needs a message: %+v", name, c)
			}
		}
	}
	for _, reserved := range []string{"Ready", "Synced", "Healthy", "UpToDate", "Responsive"} {
		if slices.Contains(ConditionTypes(), reserved) {
			t.Errorf("%s is Crossplane's", reserved)
		}
	}
}

func TestRefused(t *testing.T) {
	errs := field.ErrorList{
		field.Required(field.NewPath("spec", "roles"), "at least one"),
		field.Invalid(field.NewPath("spec", "replicas"), -1, "must not be negative"),
	}
	for _, c := range Refused(ConditionTypes(), errs) {
		want := Condition{Type: c.Type, Status: Unknown, Reason: ReasonNotJudged, Message: "not judged while the spec is refused"}
		if c.Type == SpecValid {
			want = Condition{Type: SpecValid, Status: False, Reason: ReasonRefused, Message: "spec.roles: Required value: at least one; spec.replicas: Invalid value: -1: must not be negative"}
		}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
}

func TestJoin(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("LeaderWorkerSet qwen-engine-%d: not created yet", i)
	}
	cases := map[string]struct {
		reason string
		items  []string
		want   string
	}{
		"Few":     {reason: "Few items are all there.", items: []string{"a", "b"}, want: "a; b"},
		"Same":    {reason: "An item is said once.", items: []string{"a", "a", "b", "a"}, want: "a; b"},
		"Many":    {reason: "What does not fit is counted.", items: many, want: strings.Join(many[:21], "; ") + "; and 79 more"},
		"TooLong": {reason: "A single item is cut.", items: []string{strings.Repeat("x", 2000)}, want: strings.Repeat("x", maxList) + "..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, join(tc.items, maxList)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	if got, want := oneLine("a\n\tb  c"), "a b c"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if got := oneLine(strings.Repeat("é", 200)); got != strings.Repeat("é", 128)+"..." {
		t.Errorf("a message is cut between characters: %q", got)
	}
	if got := oneLine("a" + strings.Repeat("é", 200)); got != "a"+strings.Repeat("é", 127)+"..." {
		t.Errorf("a message is cut between characters: %q", got)
	}
}
