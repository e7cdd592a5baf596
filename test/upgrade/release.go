package upgrade

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// pods is the file of a case with what came out.
const pods = "pods.yaml"

// outputs are the files of an example that render does not read.
var outputs = []string{"rendered.yaml"}

var release = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// A RenderFn renders the files in a directory, as the examples are.
type RenderFn func(dir string) (documents string, err error)

// Releases are the versions that are kept in a directory.
func Releases(dir string) ([]string, error) { return directories(dir, release.MatchString) }

// Keep stores the pods that a release renders from the examples. It refuses to change a stored
// release.
func Keep(dir, version, examples string, render RenderFn) error {
	if !release.MatchString(version) {
		return fmt.Errorf("%q is not a version: it has to be like v0.1.0", version)
	}
	if err := os.Mkdir(filepath.Join(dir, version), 0o755); err != nil {
		return fmt.Errorf("cannot keep %s: %w", version, err)
	}
	cases, err := directories(examples, nil)
	if err != nil {
		return err
	}
	for _, c := range cases {
		if err := keep(filepath.Join(dir, version, c), filepath.Join(examples, c), render); err != nil {
			return fmt.Errorf("cannot keep example %s: %w", c, err)
		}
	}
	return nil
}

// keep keeps one example. One that is refused, or has no pods, has nothing to keep.
func keep(to, example string, render RenderFn) error {
	documents, err := render(example)
	if err != nil {
		return nil //nolint:nilerr // That it is refused is what the example shows.
	}
	ws, err := Workloads(documents)
	if err != nil || len(ws) == 0 {
		return err
	}
	out, err := encode(ws)
	if err != nil {
		return err
	}
	files := map[string][]byte{pods: out}
	inputs, err := filepath.Glob(filepath.Join(example, "*.yaml"))
	if err != nil {
		return fmt.Errorf("cannot list the example: %w", err)
	}
	for _, f := range inputs {
		if slices.Contains(outputs, filepath.Base(f)) {
			continue
		}
		if files[filepath.Base(f)], err = os.ReadFile(filepath.Clean(f)); err != nil {
			return fmt.Errorf("cannot read the example: %w", err)
		}
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return fmt.Errorf("cannot make its directory: %w", err)
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(to, name), b, 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
	}
	return nil
}

// Check renders the stored examples of a release again. It returns the pods that an upgrade from
// the release would replace although the changelog does not say so.
func Check(dir, version, changelog string, render RenderFn) ([]string, error) {
	kept := filepath.Join(dir, version)
	cases, err := directories(kept, nil)
	if err != nil {
		return nil, err
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("cannot check an upgrade from %s: nothing is kept of it", version)
	}
	excuses, found := named(changelog, version)
	if !found {
		return nil, fmt.Errorf("cannot check an upgrade from %s: CHANGELOG.md has no section of it", version)
	}
	var problems []string
	for _, c := range cases {
		changes, err := check(filepath.Join(kept, c), render, excused(excuses, c))
		if err != nil {
			return nil, fmt.Errorf("cannot check case %s of %s: %w", c, version, err)
		}
		for _, change := range changes {
			problems = append(problems, c+": "+change)
		}
	}
	return problems, nil
}

func check(dir string, render RenderFn, excused bool) ([]string, error) {
	b, err := os.ReadFile(filepath.Clean(filepath.Join(dir, pods)))
	if err != nil {
		return nil, fmt.Errorf("cannot read what is kept: %w", err)
	}
	var released []Workload
	if err := yaml.UnmarshalStrict(b, &released); err != nil {
		return nil, fmt.Errorf("cannot decode what is kept: %w", err)
	}
	documents, err := render(dir)
	if err != nil {
		return []string{fmt.Sprintf("it is refused now, and was not: %v", err)}, nil
	}
	now, err := Workloads(documents)
	if err != nil {
		return nil, err
	}
	return compare(released, now, excused)
}

// directories returns the sorted names of the directories in a directory. One that does not
// exist has none.
func directories(dir string, wanted func(string) bool) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list %s: %w", dir, err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && (wanted == nil || wanted(e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
