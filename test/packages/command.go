package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tool builds the Crossplane CLI from its module, and returns where it is.
func (p *project) tool(ctx context.Context) (string, error) {
	if err := command(ctx, p.root, nil, filepath.Join(p.root, "test", "tools", "build.sh"), "crossplane"); err != nil {
		return "", fmt.Errorf("cannot build the Crossplane CLI: %w", err)
	}
	return filepath.Join(p.root, ".cache", "bin", "crossplane"), nil
}

// compile builds the function as one static binary, the same from the same
// source wherever it lies.
func (p *project) compile(ctx context.Context, binary, arch string) error {
	env := []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch}
	return command(ctx, p.root, env, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -X github.com/fusioninfer/function-inferenceservice/internal/cli.version="+p.version, "-o", binary, ".")
}

// command runs a command and shows what it says only if it fails.
func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // The commands are go and the CLI.
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot run %s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
