package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// binaries are what is measured.
type binaries struct {
	function, floor, goTemplating string
}

// build builds the targets, all with the flags that the packages are built with.
func build(ctx context.Context, into string) (binaries, error) {
	b := binaries{
		function:     filepath.Join(into, "function"),
		floor:        filepath.Join(into, "floor"),
		goTemplating: filepath.Join(into, "function-go-templating"),
	}
	for _, c := range []struct{ dir, pkg, binary string }{
		{"../..", ".", b.function},
		{".", "./floor", b.floor},
		{"gotemplating", "github.com/crossplane-contrib/function-go-templating", b.goTemplating},
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", c.binary, c.pkg) //nolint:gosec // Fixed above.
		cmd.Dir = c.dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return b, fmt.Errorf("cannot build %s: %w\n%s", c.pkg, err, out)
		}
	}
	return b, nil
}
