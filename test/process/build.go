package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// The function is made of these files at the root, and of all that is below these directories.
var (
	files       = []string{"fn.go", "main.go", "go.mod", "go.sum"}
	directories = []string{"input", "internal"}
)

// Root is the root of the repository. It is the directory with fn.go, at or above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the root of the repository: %w", err)
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "fn.go"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("cannot find the root of the repository: %w", err)
		}
		dir = filepath.Dir(dir)
	}
}

// Build builds the function, unless it is built and up to date, and returns the path of its binary. Processes that build at the
// same time wait for each other.
func Build(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	if err := look(root); err != nil {
		return "", err
	}
	bin := filepath.Join(root, ".cache", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the directory of the binary: %w", err)
	}
	binary := filepath.Join(bin, "function-inferenceservice")
	unlock, err := lock(binary + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", binary, ".") //nolint:gosec // Fixed above.
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the function: %w\n%s", err, out)
	}
	return binary, nil
}

// look opens the function's sources. Go caches a test's result until a file or directory changes that the test opened. It
// does not know what go build opens, so without this it would cache the result although the function changed.
func look(root string) error {
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(root, f)); err != nil {
			return fmt.Errorf("cannot look at the sources: %w", err)
		}
	}
	for _, d := range directories {
		walk := func(_ string, _ fs.DirEntry, err error) error { return err }
		if err := filepath.WalkDir(filepath.Join(root, d), walk); err != nil {
			return fmt.Errorf("cannot look at the sources: %w", err)
		}
	}
	return nil
}
