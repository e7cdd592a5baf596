package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// fieldManager of what the tests themselves apply.
const fieldManager = "test"

// definitions are the custom resource definitions of everything that is composed,
// each at the version that the function is made for.
var definitions = []struct{ in, module, files string }{
	{"tools/lws", "sigs.k8s.io/lws", "config/crd/bases/*.yaml"},
	{"tools/volcano", "volcano.sh/volcano", "config/crd/volcano/bases/*.yaml"},
	// Without them Volcano's controllers never open a queue.
	{"tools/volcano", "volcano.sh/volcano", "config/crd/jobflow/bases/*.yaml"},
	{"tools/crds", "sigs.k8s.io/gateway-api", "config/crd/standard/*.yaml"},
	{"tools/crds", "sigs.k8s.io/gateway-api-inference-extension", "config/crd/bases/*.yaml"},
	{"tools/crds", "istio.io/api", "kubernetes/customresourcedefinitions.gen.yaml"},
	{"tools/crds", "github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"},
	{"tools/crds", "github.com/kedacore/keda/v2", "config/crd/bases/keda.sh_scaledobjects.yaml"},
	{"tools/crds", "github.com/envoyproxy/gateway", "charts/gateway-helm/charts/crds/crds/generated/gateway.envoyproxy.io_*trafficpolicies.yaml"},
	{providerIn, providerModule, "package/crds/*.yaml"},
	{coreIn, coreModule, "cluster/crds/protection.crossplane.io_clusterusages.yaml"},
}

// InstallDefinitions installs the definitions of everything that is composed, except for
// those of some modules.
func (c *Kubernetes) InstallDefinitions(ctx context.Context, except ...string) error {
	var all []*unstructured.Unstructured
	for _, d := range definitions {
		if slices.Contains(except, d.module) {
			continue
		}
		dir, err := module(d.in, d.module)
		if err != nil {
			return err
		}
		crds, err := readDefinitions(filepath.Join(dir, filepath.FromSlash(d.files)))
		if err != nil {
			return err
		}
		all = append(all, crds...)
	}
	llmd, err := llmdDefinitions()
	if err != nil {
		return err
	}
	return c.Define(ctx, append(all, llmd...)...)
}

// Define installs definitions, and waits until their kinds are served.
func (c *Kubernetes) Define(ctx context.Context, crds ...*unstructured.Unstructured) error {
	for _, crd := range crds {
		if _, err := c.Apply(ctx, crd, fieldManager); err != nil {
			return fmt.Errorf("cannot install %s: %w", crd.GetName(), err)
		}
	}
	for _, crd := range crds {
		if err := c.Until(ctx, crd.GetName()+" is established", func(ctx context.Context) (bool, error) {
			o, err := c.Get(ctx, crd)
			return err == nil && condition(o, "Established") == "True", err
		}); err != nil {
			return err
		}
	}
	c.mapper.Reset()
	return nil
}

// Until polls until a condition holds. It polls less and less often, so that many callers do not
// keep the API server busy. It waits at most a sixth longer than necessary.
func (c *Kubernetes) Until(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	err := func() error {
		for begun := time.Now(); ; {
			ok, err := done(ctx)
			if ok {
				return nil
			}
			// A deadline error does not say what is wrong.
			if err == nil || ctx.Err() == nil {
				last = err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(min(max(time.Since(begun)/6, 2*pollEvery), time.Second)):
			}
		}
	}()
	switch {
	case err == nil:
		return nil
	case last == nil:
		return fmt.Errorf("timed out waiting until %s: %w", what, err)
	}
	return fmt.Errorf("timed out waiting until %s: %w: %w", what, err, last)
}

// readDefinitions reads the definitions of files. There have to be some.
func readDefinitions(glob string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(glob)
	if err != nil {
		return nil, err
	}
	var crds []*unstructured.Unstructured
	for _, f := range files {
		b, err := os.ReadFile(f) //nolint:gosec // A file of a module.
		if err != nil {
			return nil, err
		}
		all, err := Documents(b)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", f, err)
		}
		for _, o := range all {
			if o.GetKind() == "CustomResourceDefinition" {
				// Some are written with an empty one.
				unstructured.RemoveNestedField(o.Object, "status")
				// Nobody here converts. What is applied is stored in its own version.
				unstructured.RemoveNestedField(o.Object, "spec", "conversion")
				crds = append(crds, o)
			}
		}
	}
	if len(crds) == 0 {
		return nil, fmt.Errorf("no definitions in %s", glob)
	}
	return crds, nil
}

// llmdDefinitions are those of InferenceObjective and InferenceModelRewrite in
// the group llm-d.ai. No module that can be built has them. They began as the
// same kinds of the Gateway API Inference Extension, whose last release with them
// has the same fields; the group, and the group of pools that a reference
// without one has, are what changed.
func llmdDefinitions() ([]*unstructured.Unstructured, error) {
	crds, err := modelDefinitions()
	if err != nil {
		return nil, err
	}
	const group = "llm-d.ai"
	for _, o := range crds {
		plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
		o.SetName(plural + "." + group)
		versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
		if err != nil {
			return nil, err
		}
		for _, v := range versions {
			at := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "poolRef", "properties", "group", "default"}
			if err := unstructured.SetNestedField(v.(map[string]any), group, at...); err != nil { //nolint:forcetypeassert // A version is a map.
				return nil, err
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"); err != nil {
			return nil, err
		}
		if err := unstructured.SetNestedField(o.Object, group, "spec", "group"); err != nil {
			return nil, err
		}
	}
	return crds, nil
}

// modelDefinitions are those of the same kinds in the Gateway API Inference Extension.
func modelDefinitions() ([]*unstructured.Unstructured, error) {
	dir, err := module("epp/v1.5.0", "sigs.k8s.io/gateway-api-inference-extension")
	if err != nil {
		return nil, err
	}
	all, err := readDefinitions(filepath.Join(dir, "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return nil, err
	}
	kinds := sets.New("inferenceobjectives", "inferencemodelrewrites")
	var crds []*unstructured.Unstructured
	for _, o := range all {
		if plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural"); kinds.Has(plural) {
			crds = append(crds, o)
		}
	}
	if len(crds) != kinds.Len() {
		return nil, fmt.Errorf("%s has %d of the definitions %v", dir, len(crds), sets.List(kinds))
	}
	return crds, nil
}

// DefineModels installs the definitions of InferenceObjectives and InferenceModelRewrites that the endpoint
// pickers here read. An endpoint picker looks for them when it starts.
func (c *Kubernetes) DefineModels(ctx context.Context) error {
	crds, err := modelDefinitions()
	if err != nil {
		return err
	}
	return c.Define(ctx, crds...)
}

// List lists all objects of a kind, in all namespaces, by their names.
func (c *Kubernetes) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	r, err := c.Resource(o)
	if err != nil {
		return nil, err
	}
	l, err := r.List(ctx, listOptions)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.Items, compareNames)
	return l.Items, nil
}

// condition returns the status of a condition.
func condition(o *unstructured.Unstructured, of string) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range all {
		if m, ok := c.(map[string]any); ok && m["type"] == of {
			status, _ := m["status"].(string)
			return status
		}
	}
	return ""
}
