package text

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"a", "gang", "model", "name", "replicas", "roles", "terminationGracePeriodSeconds"}
	cases := map[string]struct{ reason, name, want string }{
		"Swapped":   {"Two characters that are swapped are two differences.", "rolse", "roles"},
		"Missing":   {"A character is missing.", "replcas", "replicas"},
		"Case":      {"Upper and lower case do not count.", "Roles", "roles"},
		"Long":      {"A long name may have more mistakes.", "terminationGracePeriodSecs", "terminationGracePeriodSeconds"},
		"Short":     {"A short name resembles many.", "mode", "model"},
		"Different": {"Nothing resembles it.", "placement", ""},
		"OneLetter": {"It has no letter in common with another one of one letter.", "b", ""},
		"Nothing":   {"An empty name is no mistake in writing.", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Nearest(tc.name, known); got != tc.want {
				t.Errorf("%s\nNearest(%q): want %q, got %q", tc.reason, tc.name, tc.want, got)
			}
		})
	}
}

func TestDidYouMean(t *testing.T) {
	if got := DidYouMean("%q", Nearest("rolse", []string{"roles"})); got != ` (did you mean "roles"?)` {
		t.Errorf("got %q", got)
	}
	if got := DidYouMean("%q", ""); got != "" {
		t.Errorf("got %q, although nothing is near", got)
	}
}
