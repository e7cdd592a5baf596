/*
Package crossplane compares what the function's own render shows with what
Crossplane makes of the same files. Crossplane's core and its CLI are built from
their modules and run as they are; the function is served on loopback. No
cluster, no container.
*/
package crossplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/test/process"
)

// root is the root of the repository.
var root = filepath.Join("..", "..")

// programs are what the tests run.
var programs struct {
	// cli and core are Crossplane's.
	cli, core string
	// function is the one that is tested, and address where it is served.
	function, address string
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "crossplane")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // Nothing is lost.
	if root, err = filepath.Abs(root); err != nil {
		return 0, err
	}
	// The CLI keeps a configuration and a cache at home. Go's own caches stay where
	// they are: a build without them takes minutes.
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		value, err := output("go", "env", name)
		if err != nil {
			return 0, err
		}
		if err := os.Setenv(name, strings.TrimSpace(string(value))); err != nil {
			return 0, err
		}
	}
	if err := os.Setenv("HOME", dir); err != nil {
		return 0, err
	}
	if err := build(); err != nil {
		return 0, err
	}
	log := &bytes.Buffer{}
	served, err := process.Start(context.Background(), log, programs.function, "--metrics-address=")
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, log)
	}
	defer served.Stop()
	programs.address = served.Address
	return m.Run(), nil
}

// build builds Crossplane, unless it was built before, and the function.
func build() error {
	bin := filepath.Join(root, ".cache", "bin")
	programs.cli, programs.core = filepath.Join(bin, "crossplane"), filepath.Join(bin, "crossplane-core")
	if _, err := output(filepath.Join(root, "test", "tools", "build.sh"), "crossplane", "crossplane-core"); err != nil {
		return err
	}
	var err error
	programs.function, err = process.Build(context.Background())
	return err
}

// output runs a command and returns what it writes.
func output(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...) //nolint:noctx // A build takes as long as it takes.
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot run %s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, errs)
	}
	return out, nil
}
