package plan

import (
	"slices"
	"strings"
	"testing"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

func TestHostnameMatches(t *testing.T) {
	cases := map[string]struct {
		reason        string
		pattern, name string
		want          bool
	}{
		"Same":              {"A name is its own pattern.", "a.example.com", "a.example.com", true},
		"Other":             {"And nobody else's.", "a.example.com", "b.example.com", false},
		"Below":             {"What is below a name is another name.", "a.example.com", "x.a.example.com", false},
		"Wildcard":          {"'*' is a label.", "*.example.com", "a.example.com", true},
		"Labels":            {"Or more, as in the Gateway API.", "*.example.com", "a.b.example.com", true},
		"Apex":              {"And not none.", "*.example.com", "example.com", false},
		"HalfALabel":        {"A label ends at a dot.", "*.example.com", "badexample.com", false},
		"Empty":             {"A label has text.", "*.example.com", ".example.com", false},
		"SameWildcard":      {"A wildcard has what it has.", "*.example.com", "*.example.com", true},
		"NarrowerWildcard":  {"Every name below is below.", "*.example.com", "*.a.example.com", true},
		"WiderWildcard":     {"Some names are not.", "*.a.example.com", "*.example.com", false},
		"WildcardOfAName":   {"One name is not all.", "a.example.com", "*.example.com", false},
		"WildcardBelowName": {"Nor those below it.", "a.example.com", "*.a.example.com", false},
		"WildcardHalfLabel": {"A label ends at a dot.", "*.example.com", "*.badexample.com", false},
		"Any":               {"Everything is anything.", "*", "a", true},
		"AnyWildcard":       {"So is a wildcard.", "*", "*.a", true},
		"AnyAny":            {"So is a route without names.", "*", anyName, true},
		"WildcardNoNames":   {"A route without names takes those of others.", "*.example.com", anyName, false},
		"NameNoNames":       {"In either case.", "example.com", anyName, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hostnameMatches(tc.pattern, tc.name); got != tc.want {
				t.Errorf("%s hostnameMatches(%q, %q) = %v", tc.reason, tc.pattern, tc.name, got)
			}
		})
	}
}

// FuzzHostnameMatches compares with sets of names: of few labels and a certain length,
// so that they can be listed. Names are made of the letters that the fuzzer gives, so that
// they meet often.
func FuzzHostnameMatches(f *testing.F) {
	for _, s := range [][2]string{{"*.a", "b.a"}, {"*.a.b", "*.b"}, {"a", "*.a"}, {"*", "*"}, {"*.b", "*.a.b"}, {"a.b", "a.b"}, {"*.a", "*"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		pattern, name = small(pattern), small(name)
		if got, want := hostnameMatches(pattern, name), subset(names(name), names(pattern)); got != want {
			t.Errorf("hostnameMatches(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	})
}

// small makes a host name of at most three labels, which are a or b, with or without
// '*' in front, or '*'.
func small(of string) string {
	if of == anyName {
		return of
	}
	rest, wild := strings.CutPrefix(of, "*.")
	var labels []string
	for _, c := range []byte(rest) {
		if len(labels) < 3 && c != '.' {
			labels = append(labels, string('a'+rune(c%2)))
		}
	}
	if len(labels) == 0 {
		labels = []string{"a"}
	}
	if wild {
		labels = append([]string{"*"}, labels...)
	}
	return strings.Join(labels, ".")
}

// names are those with at most five labels that a host name has.
func names(host string) map[string]bool {
	all, found := []string{"a", "b", "c"}, map[string]bool{}
	for level := all; len(level) > 0 && strings.Count(level[0], ".") < 4; {
		var next []string
		for _, n := range level {
			next = append(next, "a."+n, "b."+n, "c."+n)
		}
		all, level = append(all, next...), next
	}
	want := strings.Split(host, ".")
	for _, n := range all {
		labels := strings.Split(n, ".")
		switch {
		case host == anyName, slices.Equal(labels, want):
			found[n] = true
		case want[0] == "*" && len(labels) >= len(want) && slices.Equal(labels[len(labels)-len(want)+1:], want[1:]):
			found[n] = true
		}
	}
	return found
}

func subset(some, of map[string]bool) bool {
	for n := range some {
		if !of[n] {
			return false
		}
	}
	return true
}

func TestHostnamesOf(t *testing.T) {
	s := naming.Identity{Name: "qwen", Namespace: "team-a"}
	h := hostnamesOf(&inputv1alpha1.Routes{
		DefaultHostname:  "{service}.{namespace}.llm.example.com",
		AllowedHostnames: []string{"*.{namespace}.example.com", "{service}.example.org"},
	}, s)
	for name, want := range map[string]bool{
		"qwen.team-a.llm.example.com":  true,
		"other.team-a.llm.example.com": false,
		"x.team-a.example.com":         true,
		"x.team-b.example.com":         false,
		"qwen.example.org":             true,
		"llama.example.org":            false,
		anyName:                        false,
	} {
		if got := h.allow(name); got != want {
			t.Errorf("allow(%q) = %v", name, got)
		}
	}
	if !h.restricted() || hostnamesOf(&inputv1alpha1.Routes{}, s).restricted() {
		t.Error("names are restricted exactly where there is a pattern")
	}
}
