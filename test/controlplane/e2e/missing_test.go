package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// The definitions that a cluster can lack, and the kinds that they define.
var lacking = []struct{ kind, crd string }{
	{"InferencePool", "inferencepools.inference.networking.k8s.io"},
	{"LeaderWorkerSet", "leaderworkersets.leaderworkerset.x-k8s.io"},
	{"PodGroup", "podgroups.scheduling.volcano.sh"},
}

// testMissingKinds proves that a service says which kinds the cluster lacks (those of
// Volcano, LeaderWorkerSet and the Gateway API Inference Extension), that everything
// else of it is there meanwhile, and that it heals when they come, with nobody's help.
func testMissingKinds(t *testing.T, c *cluster.Cluster) {
	n := settle(t, c, "missing")
	crds := map[string]*unstructured.Unstructured{}
	for _, l := range lacking {
		crds[l.kind] = takeDefinition(t, c, l.crd)
	}

	// A router, workers in a gang, and workers on their own.
	parts := []rolePart{{name: "worker", kind: "worker", replicas: 1, nodes: 2}}
	n.serve("gang", spec("queue-size", parts, ""))
	n.serve("alone", spec("queue-size", parts, "  schedulingStrategy: {gang: {mode: None}}\n"))

	n.lacks("gang", "InferencePool", "LeaderWorkerSet", "PodGroup")
	n.lacks("alone", "InferencePool", "LeaderWorkerSet")
	n.until("the endpoint picker of gang is available", func(ctx context.Context) error {
		o, err := c.Get(ctx, n.named(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "gang-epp"))
		if err == nil && conditionOf(o, "Available")["status"] != "True" {
			err = fmt.Errorf("its condition is %v", conditionOf(o, "Available"))
		}
		return err
	})

	// LeaderWorkerSet comes with the endpoints: what is in no gang needs nothing else.
	define(t, c, crds["InferencePool"], crds["LeaderWorkerSet"])
	n.ready("alone")
	n.lacks("gang", "PodGroup")

	define(t, c, crds["PodGroup"])
	n.ready("gang")
}

// lacks waits until a service names exactly these kinds as missing.
func (n *tenant) lacks(service string, kinds ...string) {
	n.Helper()
	n.until(fmt.Sprintf("%s lacks %v", service, kinds), func(ctx context.Context) error {
		o, err := n.c.Get(ctx, n.named(kindService, service))
		if err != nil {
			return err
		}
		available := conditionOf(o, "KindsAvailable")
		message, _ := available["message"].(string)
		wanted := map[string]bool{}
		for _, k := range kinds {
			wanted[k] = true
		}
		for _, l := range lacking {
			if strings.Contains(message, l.kind) != wanted[l.kind] {
				return fmt.Errorf("KindsAvailable is %v", available)
			}
		}
		if available["status"] != "False" || conditionOf(o, "Ready")["status"] == "True" {
			return fmt.Errorf("KindsAvailable is %v, Ready is %v", available, conditionOf(o, "Ready"))
		}
		return nil
	})
}

// takeDefinition deletes a definition with all its objects, and returns it as it can be
// created again. It is there again when the test ends, whatever comes of it.
func takeDefinition(t *testing.T, c *cluster.Cluster, name string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	o.SetName(name)
	crd, err := c.Get(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	crd.SetUID("")
	crd.SetResourceVersion("")
	crd.SetGeneration(0)
	crd.SetManagedFields(nil)
	crd.SetFinalizers(nil)
	crd.SetCreationTimestamp(metav1.Time{})
	unstructured.RemoveNestedField(crd.Object, "status")
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Define(context.WithoutCancel(t.Context()), crd); err != nil {
			t.Error(err)
		}
	})
	if err := c.Gone(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return crd
}

func define(t *testing.T, c *cluster.Cluster, crds ...*unstructured.Unstructured) {
	t.Helper()
	if err := c.Define(t.Context(), crds...); err != nil {
		t.Fatal(err)
	}
}
