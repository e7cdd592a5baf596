package example

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// maxRounds is how often an output is observed until nothing may change any more.
const maxRounds = 8

// TestRoundTrip renders each example, and then renders it again with its own output as what is
// observed, until nothing changes.
func TestRoundTrip(t *testing.T) {
	names := examples(t)
	fn := function.Start(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range []string{"xr.yaml", "input.yaml", "required.yaml", "observed.yaml"} {
				if b, err := os.ReadFile(filepath.Join(name, f)); err == nil {
					write(t, filepath.Join(dir, f), string(b))
				}
			}
			before, _, code := fn.Render(t, dir, "yaml")
			if code != 0 {
				return // It is an example of what is refused.
			}
			for range maxRounds {
				write(t, filepath.Join(dir, "observed.yaml"), before)
				after, errs, code := fn.Render(t, dir, "yaml")
				if code != 0 {
					t.Fatalf("the output is not taken as observed: %s", errs)
				}
				if after == before {
					return
				}
				before = after
			}
			after, _, _ := fn.Render(t, dir, "yaml")
			t.Errorf("not settled after %d rounds: -last, +next:\n%s", maxRounds, cmp.Diff(before, after))
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
