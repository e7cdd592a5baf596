// Package epp runs the configuration loader of the endpoint picker v1.5.0 on
// every configuration that the function generates, and on every one that it
// refuses.
package epp

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/gateway-api-inference-extension/cmd/epp/runner"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/backend/metrics"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/server"
)

const (
	version  = "v1.5.0"
	testdata = "../../../internal/epp/testdata"
)

// load starts the endpoint picker with its own plugins. Without an API server, that always
// fails. load returns an error only if the configuration is the cause.
func load(t *testing.T, text string) error {
	t.Helper()
	opts := server.NewOptions()
	opts.PoolName, opts.PoolNamespace, opts.ConfigText = "pool", "default", text
	nowhere := &rest.Config{Host: "http://127.0.0.1:1"}
	_, _, err := runner.NewTestRunnerSetup(context.Background(), nowhere, opts, &metrics.FakePodMetricsClient{}, nil)
	switch {
	case err == nil:
		t.Fatal("the endpoint picker started without an API server: this test no longer sees where it stopped")
	case strings.HasPrefix(err.Error(), "failed to parse config"), strings.HasPrefix(err.Error(), "failed to load the configuration"):
		return err
	case !strings.HasPrefix(err.Error(), "failed to create controller manager"):
		t.Fatalf("the endpoint picker stopped in an unknown place: %v", err)
	}
	return nil
}

func TestAccepted(t *testing.T) {
	for _, pattern := range []string{"generated/gaie/*.yaml", "good/gaie/*.yaml", "good/gaie-v1.5.0/*.yaml"} {
		for _, f := range files(t, pattern) {
			t.Run(f.name, func(t *testing.T) {
				if err := load(t, f.text); err != nil {
					t.Errorf("the loader refuses what the function accepts: %v", err)
				}
			})
		}
	}
}

// TestRefused compares what the function refuses with what the loader refuses. The first line
// of each file says which releases refuse it; the others do load it, and the
// function is stricter on purpose.
func TestRefused(t *testing.T) {
	for _, f := range files(t, "bad/gaie/*.yaml") {
		t.Run(f.name, func(t *testing.T) {
			err := load(t, f.text)
			if refused := slices.Contains(f.refusedBy, version); refused != (err != nil) {
				t.Errorf("the file says refused: %t, the loader says: %v", refused, err)
			}
		})
	}
}

type file struct {
	name, text string
	refusedBy  []string
}

func files(t *testing.T, pattern string) []file {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testdata, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	var all []file
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		f := file{name: filepath.Base(p), text: string(b)}
		first, _, _ := strings.Cut(f.text, "\n")
		if by, ok := strings.CutPrefix(first, "# refused by:"); ok {
			f.refusedBy = strings.Fields(by)
		}
		all = append(all, f)
	}
	return all
}
