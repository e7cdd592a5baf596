package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// dependency is the Configurations' constraint on the function between releases: any version. A
// release requires its own version or a later one.
const dependency = `version: ">=v0.1.0-0"`

// stage copies the YAML files of directories of package/, without what is below
// them: crossplane xpkg build takes everything that it finds.
func (p *project) stage(to string, dirs ...string) error {
	for _, dir := range dirs {
		from := filepath.Join(p.root, "package", dir)
		files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("cannot find YAML files in %s (%w)", from, err)
		}
		for _, f := range files {
			if err := p.copy(f, filepath.Join(to, dir, filepath.Base(f))); err != nil {
				return err
			}
		}
	}
	return nil
}

// stageExamples copies some examples.
func (p *project) stageExamples(to string) error {
	for _, name := range shown {
		if err := p.copy(filepath.Join(p.root, "example", name, "xr.yaml"), filepath.Join(to, name+".yaml")); err != nil {
			return err
		}
	}
	return nil
}

// copy copies a file, with the version of the release written into it.
func (p *project) copy(from, to string) error {
	b, err := os.ReadFile(filepath.Clean(from))
	if err != nil {
		return fmt.Errorf("cannot read a file of the package: %w", err)
	}
	if p.version != "" {
		b = bytes.ReplaceAll(b, []byte(dependency), fmt.Appendf(nil, `version: ">=%s"`, p.version))
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("cannot make a directory for %s: %w", filepath.Base(to), err)
	}
	if err := os.WriteFile(to, b, 0o644); err != nil { //nolint:gosec // It is a temporary directory.
		return fmt.Errorf("cannot write a file of the package: %w", err)
	}
	return nil
}
