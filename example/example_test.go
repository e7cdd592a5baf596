// Package example compares every example with what the function makes of it.
package example

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/test/function"
)

var update = flag.Bool("update", false, "write the goldens of the examples anew")

// TestExamples renders every directory beside it and compares with the files
// beside it: rendered.yaml is standard output, stderr.txt standard error and
// summary.txt, where there is one, the summary. An example without a
// rendered.yaml is one that is refused.
func TestExamples(t *testing.T) {
	names := examples(t)
	// Warnings name the files as one sees them at the root of the repository.
	t.Chdir("..")
	fn := function.Start(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("example", name)
			out, errs, code := fn.Render(t, dir, "yaml")
			again, _, _ := fn.Render(t, dir, "yaml")
			if diff := cmp.Diff(out, again); diff != "" {
				t.Errorf("two renders of the same files differ: -first, +second:\n%s", diff)
			}
			golden(t, filepath.Join(dir, "rendered.yaml"), out)
			golden(t, filepath.Join(dir, "stderr.txt"), errs)
			if function.Exists(t, filepath.Join(dir, "summary.txt")) {
				summary, _, _ := fn.Render(t, dir, "summary")
				golden(t, filepath.Join(dir, "summary.txt"), summary)
			}
			if refused := out == ""; refused != (code == 1) {
				t.Errorf("exit code %d with %d bytes of documents: it is 1 exactly where there are none", code, len(out))
			}
			keys := resourceName.FindAllString(out, -1)
			if !slices.IsSorted(keys) {
				t.Errorf("composed resources are not sorted by their keys:\n%s", strings.Join(keys, "\n"))
			}
		})
	}
}

var resourceName = regexp.MustCompile(`(?m)^    crossplane.io/composition-resource-name: .*$`)

// TestExamplesAreListed keeps the table of the examples complete, and every
// example explained.
func TestExamplesAreListed(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^\| \[([^]]+)\]\(([^)/]+)\)`).FindAllStringSubmatch(string(readme), -1) {
		if m[1] != m[2] {
			t.Errorf("example/README.md: %s links to %s", m[1], m[2])
		}
		listed = append(listed, m[1])
	}
	slices.Sort(listed)
	if diff := cmp.Diff(examples(t), listed); diff != "" {
		t.Errorf("example/README.md: -directories, +listed:\n%s", diff)
	}
	for _, name := range examples(t) {
		if b, err := os.ReadFile(filepath.Join(name, "xr.yaml")); err != nil || !bytes.HasPrefix(b, []byte("# ")) {
			t.Errorf("example/%s/xr.yaml: has to start with a comment that says what to look at (%v)", name, err)
		}
	}
}

func examples(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && function.Exists(t, filepath.Join(e.Name(), "xr.yaml")) {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		t.Fatal("example/ has no examples")
	}
	return names
}

// golden compares with a file, or writes it. Nothing is written down as no file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		writeGolden(t, path, got)
		return
	}
	want, err := os.ReadFile(filepath.Clean(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want, +got (if it is right, run make golden):\n%s", path, diff)
	}
}

func writeGolden(t *testing.T, path, text string) {
	t.Helper()
	if text == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
