package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKnownCommand has an error for the name of a command that does not exist.
func TestKnownCommand(t *testing.T) {
	commands := []string{"serve", "render", "plan"}
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"None":     {"Crossplane starts the function without a command.", nil, ""},
		"Flag":     {"Or with flags only.", []string{"--insecure"}, ""},
		"Known":    {"What follows a command is up to it.", []string{"render", "xr.yaml"}, ""},
		"Misspelt": {"The nearest command is named.", []string{"rendr", "xr.yaml"}, "unknown command rendr. Did you mean render? There are: serve, render, plan"},
		"Unknown":  {"Nothing resembles it.", []string{"simulate"}, "unknown command simulate. There are: serve, render, plan"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := KnownCommand(tc.args, commands); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
