package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/test/upgrade"
)

var keep = flag.String("keep", "", "keep the pods of the examples as those of this release")

// releases are kept here.
const releases = "test/upgrade"

// TestUpgrade renders what every release was able to render. The pods have to come
// out as they did, or CHANGELOG.md says why not.
func TestUpgrade(t *testing.T) {
	if *keep != "" {
		if err := upgrade.Keep(releases, *keep, "example", rendering(t)); err != nil {
			t.Fatal(err)
		}
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	versions, err := upgrade.Releases(releases)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if v == *keep {
			continue // Its section is still to be written.
		}
		t.Run(v, func(t *testing.T) { checkUpgrade(t, releases, v, string(changelog)) })
	}
}

func checkUpgrade(t *testing.T, dir, version, changelog string) {
	t.Helper()
	problems, err := upgrade.Check(dir, version, changelog, rendering(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("an upgrade from %s restarts pods, and CHANGELOG.md does not say so: %s", version, p)
	}
}

// TestUpgradeNotices keeps today's examples as a release, which is an upgrade that
// changes nothing, and then lets the release have had another image.
func TestUpgradeNotices(t *testing.T) {
	dir := t.TempDir()
	const version, changelog = "v0.0.1", "## Unreleased\n\n## v0.0.1\n"
	if err := upgrade.Keep(dir, version, "example", rendering(t)); err != nil {
		t.Fatal(err)
	}
	checkUpgrade(t, dir, version, changelog)

	pods := filepath.Join(dir, version, "quickstart", "pods.yaml")
	b, err := os.ReadFile(filepath.Clean(pods))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(string(b), "image: ", "image: older-")
	if err := os.WriteFile(pods, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	problems, err := upgrade.Check(dir, version, changelog, rendering(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) == 0 {
		t.Error("an upgrade that replaces every image restarts nothing")
	}
	for _, p := range problems {
		if !strings.HasPrefix(p, "quickstart: ") {
			t.Errorf("only the quickstart differs, and this is said: %s", p)
		}
	}
}

func rendering(t *testing.T) upgrade.RenderFn {
	t.Helper()
	return func(dir string) (string, error) {
		out, errs, code := runRender(t, dir, "yaml")
		if code != 0 {
			return "", errors.New(strings.TrimSpace(errs))
		}
		return out, nil
	}
}
