package upgrade_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/test/function"
	"github.com/fusioninfer/function-inferenceservice/test/upgrade"
)

var keep = flag.String("keep", "", "keep the pods of the examples as those of this release")

const (
	// releases are kept here.
	releases  = "."
	examples  = "../../example"
	changelog = "../../CHANGELOG.md"
)

// TestUpgrade renders the examples that each release could render. The pods must be the same,
// unless CHANGELOG.md says why not.
func TestUpgrade(t *testing.T) {
	render := rendering(t)
	if *keep != "" {
		if err := upgrade.Keep(releases, *keep, examples, render); err != nil {
			t.Fatal(err)
		}
	}
	changes, err := os.ReadFile(changelog)
	if err != nil {
		t.Fatal(err)
	}
	versions, err := upgrade.Releases(releases)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if v == *keep {
			continue // CHANGELOG.md has no section of this release yet.
		}
		t.Run(v, func(t *testing.T) { checkUpgrade(t, releases, v, string(changes), render) })
	}
}

func checkUpgrade(t *testing.T, dir, version, changes string, render upgrade.RenderFn) {
	t.Helper()
	problems, err := upgrade.Check(dir, version, changes, render)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("an upgrade from %s restarts pods, and CHANGELOG.md does not say so: %s", version, p)
	}
}

// TestUpgradeNotices stores today's examples as a release. An upgrade from it changes nothing,
// until the stored release has another image.
func TestUpgradeNotices(t *testing.T) {
	dir, render := t.TempDir(), rendering(t)
	const version, changes = "v0.0.1", "## Unreleased\n\n## v0.0.1\n"
	if err := upgrade.Keep(dir, version, examples, render); err != nil {
		t.Fatal(err)
	}
	checkUpgrade(t, dir, version, changes, render)

	pods := filepath.Join(dir, version, "quickstart", "pods.yaml")
	b, err := os.ReadFile(filepath.Clean(pods))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(string(b), "image: ", "image: older-")
	if err := os.WriteFile(pods, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	problems, err := upgrade.Check(dir, version, changes, render)
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) == 0 {
		t.Error("want a problem, because the upgrade replaces every image")
	}
	for _, p := range problems {
		if !strings.HasPrefix(p, "quickstart: ") {
			t.Errorf("want a problem of the quickstart only, got %s", p)
		}
	}
}

func rendering(t *testing.T) upgrade.RenderFn {
	t.Helper()
	fn := function.Start(t)
	return func(dir string) (string, error) {
		out, errs, code := fn.Render(t, dir, "yaml")
		if code != 0 {
			return "", errors.New(strings.TrimSpace(errs))
		}
		return out, nil
	}
}
