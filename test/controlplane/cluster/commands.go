package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubectl runs kubectl on the cluster, at the root of the repository, and returns
// what it writes.
func (c *Kubernetes) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.command(ctx, "kubectl", args...)
}

// Crossplane runs Crossplane's command line on the cluster, in the same way.
func (c *Cluster) Crossplane(ctx context.Context, args ...string) (string, error) {
	return c.command(ctx, "crossplane", args...)
}

// Shell runs a line as a person would type it at the root of the repository, where
// kubectl and crossplane are found.
func (c *Cluster) Shell(ctx context.Context, line string) (string, error) {
	bin, err := programs("kubectl", "crossplane")
	if err != nil {
		return "", err
	}
	return c.execute(ctx, "/bin/sh", "-c", "PATH="+bin+":$PATH; "+line)
}

func (c *Kubernetes) command(ctx context.Context, name string, args ...string) (string, error) {
	bin, err := programs(name)
	if err != nil {
		return "", err
	}
	return c.execute(ctx, filepath.Join(bin, name), args...)
}

func (c *Kubernetes) execute(ctx context.Context, name string, args ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // Tools that were built for this.
	errs, out := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, out, errs
	cmd.Env = append(environment(), "KUBECONFIG="+c.Kubeconfig)
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("cannot run %s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, errs)
	}
	return out.String(), nil
}
