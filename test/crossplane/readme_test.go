package crossplane

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReadme runs the two commands of the README that preview a service with Crossplane's
// CLI, as they stand there. What they show is the golden of the example that they name.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(b), "\n## Preview with Crossplane's CLI\n")
	section, _, _ = strings.Cut(section, "\n## ")
	commands := shellBlocks(section)
	if !found || len(commands) < 2 {
		t.Fatalf("README.md shows %q, want a command that serves and one that renders", commands)
	}
	serve(t, commands[0])

	// The CLI runs Crossplane's engine with Docker, which tests have to do without.
	bin := t.TempDir()
	wrapper := "#!/bin/sh\nexec '" + programs.cli + "' \"$@\" --crossplane-binary='" + programs.core + "' --timeout=5m\n"
	if err := os.WriteFile(filepath.Join(bin, "crossplane"), []byte(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := shell(t.Context(), commands[1])
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands[1], err, errs)
	}
	_, xr, _ := strings.Cut(commands[1], "example/")
	name, _, _ := strings.Cut(xr, "/")
	want, err := os.ReadFile(filepath.Join(root, "example", filepath.Base(name), "rendered.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(out)); diff != "" {
		t.Errorf("%s: -example/%s/rendered.yaml, +got:\n%s", commands[1], name, diff)
	}
}

// shellBlocks are the blocks of a document that a reader types.
func shellBlocks(doc string) []string {
	var all []string
	for {
		_, after, found := strings.Cut(doc, "```sh\n")
		if !found {
			return all
		}
		block, rest, _ := strings.Cut(after, "```")
		all, doc = append(all, strings.TrimSpace(block)), rest
	}
}

// shell is a command at the root of the repository. What it starts ends with it.
func shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command)
	cmd.Dir = root
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// serve runs the command that serves the function until the test ends, and waits until
// the address that example/functions.yaml names takes connections.
func serve(t *testing.T, command string) {
	t.Helper()
	function := one(t, filepath.Join(root, "example", "functions.yaml"))
	address := function.GetAnnotations()["render.crossplane.io/runtime-development-target"]
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); err == nil {
		_ = conn.Close() // It was only to see whether somebody listens.
		t.Fatalf("something else listens at %s: end it", address)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	log := &bytes.Buffer{}
	cmd := shell(ctx, command)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close() // The function listens.
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ends: %v\n%s", command, err, log)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
