package main

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

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/fusioninfer/function-inferenceservice/internal/cli"
)

var update = flag.Bool("update", false, "write the goldens of the examples anew")

// TestExamples renders every directory of example/ and compares with the files
// beside it: rendered.yaml is standard output, stderr.txt standard error and
// summary.txt, where there is one, the summary. An example without a
// rendered.yaml is one that is refused.
func TestExamples(t *testing.T) {
	for _, name := range examples(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("example", name)
			out, errs, code := runRender(t, dir, "yaml")
			again, _, _ := runRender(t, dir, "yaml")
			if diff := cmp.Diff(out, again); diff != "" {
				t.Errorf("two renders of the same files differ: -first, +second:\n%s", diff)
			}
			golden(t, filepath.Join(dir, "rendered.yaml"), out)
			golden(t, filepath.Join(dir, "stderr.txt"), errs)
			if exists(t, filepath.Join(dir, "summary.txt")) {
				summary, _, _ := runRender(t, dir, "summary")
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
	readme, err := os.ReadFile("example/README.md")
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
		if b, err := os.ReadFile(filepath.Join("example", name, "xr.yaml")); err != nil || !bytes.HasPrefix(b, []byte("# ")) {
			t.Errorf("example/%s/xr.yaml: has to start with a comment that says what to look at (%v)", name, err)
		}
	}
}

func examples(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("example")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		t.Fatal("example/ has no examples")
	}
	return names
}

// runRender runs the command that people run, on the files that an example has.
func runRender(t *testing.T, dir, format string) (out, errs string, code int) {
	t.Helper()
	r := cli.Render{XR: filepath.Join(dir, "xr.yaml"), Format: format}
	if f := filepath.Join(dir, "input.yaml"); exists(t, f) {
		r.Input = f
	}
	if f := filepath.Join(dir, "observed.yaml"); exists(t, f) {
		r.Observed = []string{f}
	}
	if f := filepath.Join(dir, "required.yaml"); exists(t, f) {
		r.Required = []string{f}
	}
	o, e := &bytes.Buffer{}, &bytes.Buffer{}
	err := r.Run(t.Context(), &Function{log: logging.NewNopLogger()}, cli.Streams{Out: o, Err: e})
	code = cli.Exit(e, err)
	return o.String(), e.String(), code
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
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
