package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// A service is an InferenceService that a test reconciles the way Crossplane does:
// it calls the function with what is observed, deletes what is not desired any
// more, and applies the rest.
type service struct {
	c        *cluster.Cluster
	function string
	dir      string
	// xr as it was read last.
	xr *unstructured.Unstructured
	// composed resources that were applied last, by key.
	composed map[string]*unstructured.Unstructured
}

// newService creates the service of an example, in the example's namespace.
func newService(t *testing.T, c *cluster.Cluster, e *example) *service {
	t.Helper()
	function, err := cluster.Function()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Namespace(t.Context(), e.namespace()); err != nil {
		t.Fatal(err)
	}
	xr, err := createXR(t, c, e)
	if err != nil {
		t.Fatal(err)
	}
	return &service{c: c, function: function, dir: t.TempDir(), xr: xr, composed: map[string]*unstructured.Unstructured{}}
}

// reconcile calls the function once and does what it wants.
func (s *service) reconcile(ctx context.Context) error {
	var err error
	if s.xr, err = s.c.Get(ctx, s.xr); err != nil {
		return err
	}
	observed, err := s.observe(ctx)
	if err != nil {
		return err
	}
	desired, err := s.call(ctx, observed)
	if err != nil {
		return err
	}
	status, composed := desired[0], map[string]*unstructured.Unstructured{}
	for _, o := range desired[1:] {
		composed[key(o)] = o
	}
	for k, o := range s.composed {
		if composed[k] == nil {
			if err := s.c.Delete(ctx, o); err != nil {
				return err
			}
		}
	}
	s.composed = composed
	for _, k := range slices.Sorted(maps.Keys(composed)) {
		if _, err := s.c.Apply(ctx, composed[k], manager); err != nil {
			return fmt.Errorf("cannot apply %s: %w", k, err)
		}
	}
	return s.report(ctx, status)
}

// report writes the status of the XR.
func (s *service) report(ctx context.Context, status *unstructured.Unstructured) error {
	o := &unstructured.Unstructured{Object: map[string]any{"status": status.Object["status"]}}
	o.SetGroupVersionKind(s.xr.GroupVersionKind())
	o.SetNamespace(s.xr.GetNamespace())
	o.SetName(s.xr.GetName())
	xr, err := s.c.ApplyStatus(ctx, o, "apiextensions.crossplane.io/composite")
	if err != nil {
		return fmt.Errorf("the status is refused: %w", err)
	}
	s.xr = xr
	return nil
}

// observe reads what was composed.
func (s *service) observe(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, k := range slices.Sorted(maps.Keys(s.composed)) {
		o, err := s.c.Get(ctx, s.composed[k])
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// call runs the function on what is observed, and on all pods, of which it chooses.
func (s *service) call(ctx context.Context, observed []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	pods, err := s.pods(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"render", filepath.Join(s.dir, "xr.json")}
	if err := write(args[1], s.xr); err != nil {
		return nil, err
	}
	for flag, all := range map[string][]*unstructured.Unstructured{"observed": observed, "required": pods} {
		if len(all) == 0 {
			continue
		}
		file := filepath.Join(s.dir, flag+".json")
		if err := write(file, all...); err != nil {
			return nil, err
		}
		args = append(args, "--"+flag+"="+file)
	}
	cmd := exec.CommandContext(ctx, s.function, args...)
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the function fails: %w: %s", err, errs)
	}
	return cluster.Documents(out)
}

func (s *service) pods(ctx context.Context) ([]*unstructured.Unstructured, error) {
	l, err := s.c.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, s.xr.GetNamespace())
	if err != nil {
		return nil, err
	}
	all := make([]*unstructured.Unstructured, 0, len(l))
	for i := range l {
		all = append(all, &l[i])
	}
	return all, nil
}

// write writes objects as YAML documents, of which JSON is one form.
func write(file string, all ...*unstructured.Unstructured) error {
	b := &bytes.Buffer{}
	for _, o := range all {
		j, err := json.Marshal(o)
		if err != nil {
			return err
		}
		b.WriteString("---\n")
		b.Write(append(j, '\n'))
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}

// reconcileUntil reconciles until the service is as it is wanted.
func (s *service) reconcileUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := s.c.Until(t.Context(), what, func(ctx context.Context) (bool, error) {
		if err := s.reconcile(ctx); err != nil {
			return false, err
		}
		return done(), nil
	}); err != nil {
		status, _ := json.MarshalIndent(s.xr.Object["status"], "", " ")
		t.Fatalf("%v\n%s", err, status)
	}
}

// running tells whether every component runs, with all of its pods.
func (s *service) running() bool {
	components, _, _ := unstructured.NestedMap(s.xr.Object, "status", "components")
	for _, c := range components {
		m := c.(map[string]any)
		if m["phase"] != "Running" || m["readyPods"] != m["totalPods"] || m["readyReplicas"] != m["desiredReplicas"] {
			return false
		}
	}
	return len(components) > 0
}

func (s *service) condition(of string) string {
	all, _, _ := unstructured.NestedSlice(s.xr.Object, "status", "conditions")
	for _, c := range all {
		if m, ok := c.(map[string]any); ok && m["type"] == of {
			return fmt.Sprint(m["status"])
		}
	}
	return ""
}
