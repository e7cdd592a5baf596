// Package epp runs the configuration loader of the endpoint picker v1.2.1, which
// the design documents name, on every configuration that the function generates,
// and on every one that it refuses.
package epp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/config/loader"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/plugins"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/scheduling/framework/plugins/multi/prefix"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/scheduling/framework/plugins/picker"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/scheduling/framework/plugins/profile"
	"sigs.k8s.io/gateway-api-inference-extension/pkg/epp/scheduling/framework/plugins/scorer"
)

const (
	version  = "v1.2.1"
	testdata = "../../../internal/epp/testdata"
)

// TestMain registers the plugins. The release has no exported function that
// does, so this is its list, from cmd/epp/runner/runner.go, without the two that
// it has for tests.
func TestMain(m *testing.M) {
	plugins.Register(prefix.PrefixCachePluginType, prefix.PrefixCachePluginFactory)
	plugins.Register(picker.MaxScorePickerType, picker.MaxScorePickerFactory)
	plugins.Register(picker.RandomPickerType, picker.RandomPickerFactory)
	plugins.Register(picker.WeightedRandomPickerType, picker.WeightedRandomPickerFactory)
	plugins.Register(profile.SingleProfileHandlerType, profile.SingleProfileHandlerFactory)
	plugins.Register(scorer.KvCacheUtilizationScorerType, scorer.KvCacheUtilizationScorerFactory)
	plugins.Register(scorer.QueueScorerType, scorer.QueueScorerFactory)
	plugins.Register(scorer.LoraAffinityScorerType, scorer.LoraAffinityScorerFactory)
	loader.RegisterFeatureGate("dataLayer")
	loader.RegisterFeatureGate("flowControl")
	os.Exit(m.Run())
}

// load does what the endpoint picker does when it starts. A panic of it counts
// as a refusal.
func load(t *testing.T, text string) (err error) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	raw, _, err := loader.LoadConfigPhaseOne([]byte(text), logr.Discard())
	if err != nil {
		return err
	}
	_, err = loader.LoadConfigPhaseTwo(raw, plugins.NewEppHandle(context.Background(), nil), logr.Discard())
	return err
}

func TestAccepted(t *testing.T) {
	for _, pattern := range []string{"generated/gaie/*.yaml", "good/gaie/*.yaml"} {
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
