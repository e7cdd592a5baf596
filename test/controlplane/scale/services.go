package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// namespace of all services.
const namespace = "scale"

var kind = schema.GroupVersionKind{Group: "fusioninfer.io", Version: "v1alpha1", Kind: "InferenceService"}

// createAll creates services with prefill, decode and a router with a gateway of its
// own, and waits until all are ready.
func createAll(ctx context.Context, c *cluster.Cluster, n int) error {
	if err := c.Namespace(ctx, namespace); err != nil {
		return err
	}
	for i := range n {
		o, err := example("quickstart", "service-"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		// On one node each, so that pods are not what is measured.
		if err := eachRole(o, func(role map[string]any) {
			delete(role, "multinode")
			if role["componentType"] != "router" {
				role["replicas"] = int64(1)
			}
		}); err != nil {
			return err
		}
		if _, err := c.Create(ctx, o); err != nil {
			return err
		}
	}
	return ready(ctx, c, n)
}

// createLarge creates one service of many replicas, and waits until it is ready.
func createLarge(ctx context.Context, c *cluster.Cluster, replicas int) error {
	o, err := example("workers-single-node", "large")
	if err != nil {
		return err
	}
	if err := eachRole(o, func(role map[string]any) { role["replicas"] = int64(replicas) }); err != nil {
		return err
	}
	if _, err := c.Create(ctx, o); err != nil {
		return err
	}
	return ready(ctx, c, 0, "large")
}

func example(name, service string) (*unstructured.Unstructured, error) {
	root, err := cluster.Root()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(root, "example", name, "xr.yaml")) //nolint:gosec // A file of the repository.
	if err != nil {
		return nil, err
	}
	all, err := cluster.Documents(b)
	if err != nil {
		return nil, err
	}
	all[0].SetName(service)
	all[0].SetNamespace(namespace)
	return all[0], nil
}

func eachRole(o *unstructured.Unstructured, change func(role map[string]any)) error {
	roles, _, err := unstructured.NestedSlice(o.Object, "spec", "roles")
	if err != nil {
		return err
	}
	for _, r := range roles {
		change(r.(map[string]any)) //nolint:forcetypeassert // A role is an object.
	}
	return unstructured.SetNestedSlice(o.Object, roles, "spec", "roles")
}

// patience is how long it may take. Seldom looking keeps the looking cheap.
const (
	patience  = 20 * time.Minute
	lookEvery = time.Second
)

// ready waits until n services, or those of the names, are ready.
func ready(ctx context.Context, c *cluster.Cluster, n int, names ...string) error {
	want, found := max(n, len(names)), 0
	err := wait.PollUntilContextTimeout(ctx, lookEvery, patience, true, func(ctx context.Context) (bool, error) {
		all, err := c.List(ctx, kind, namespace)
		if err != nil {
			return false, err
		}
		found = 0
		for i := range all {
			if (len(names) == 0 || slices.Contains(names, all[i].GetName())) && isReady(&all[i]) {
				found++
			}
		}
		return found >= want, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d services are ready: %w", found, want, err)
	}
	return nil
}

func isReady(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Ready" && condition["status"] == "True"
	})
}

// composed counts what the services refer to.
func composed(ctx context.Context, c *cluster.Cluster) (int, error) {
	all, err := c.List(ctx, kind, namespace)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range all {
		refs, _, _ := unstructured.NestedSlice(all[i].Object, "spec", "crossplane", "resourceRefs")
		n += len(refs)
	}
	return n, nil
}
