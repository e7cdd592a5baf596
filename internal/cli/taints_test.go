package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pools returns a cluster with one observed pool, and what is free on its nodes.
func pools(free ...any) object {
	return object{Object: map[string]any{
		"kind": "InferenceCluster", "metadata": map[string]any{"name": "east"},
		"spec":   map[string]any{"pools": []any{map[string]any{"name": "p"}}},
		"status": map[string]any{"pools": []any{map[string]any{"name": "p", "nodeCount": int64(3), "capacity": map[string]any{"nvidia.com/gpu": "24"}, "free": free}}},
	}}
}

func freeNodes(nodes int64, taints ...string) any {
	n := map[string]any{"nodeCount": nodes, "resources": map[string]any{"nvidia.com/gpu": "8"}}
	var all []any
	for _, t := range taints {
		all = append(all, map[string]any{"key": "dedicated", "value": t, "effect": "NoSchedule"})
	}
	if len(all) > 0 {
		n["taints"] = all
	}
	return n
}

// TestCountTaints proves that the nodes of an observed pool are typed in with the taints that all of them have.
func TestCountTaints(t *testing.T) {
	taint := map[string]any{"key": "dedicated", "value": "a", "effect": "NoSchedule"}
	const mixed = "east: the nodes of pool p have different taints, and only those that all of them have count here"
	cases := map[string]struct {
		reason   string
		free     []any
		want     any
		warnings []string
	}{
		"None":   {reason: "No node has a taint.", free: []any{freeNodes(3)}},
		"Full":   {reason: "An old status has no nodes that are free."},
		"All":    {reason: "All have the same ones.", free: []any{freeNodes(2, "a"), freeNodes(1, "a")}, want: []any{taint}},
		"Some":   {reason: "A pool that is typed in has one kind of nodes.", free: []any{freeNodes(2), freeNodes(1, "a")}, warnings: []string{mixed}},
		"Common": {reason: "What one node has is left out.", free: []any{freeNodes(2, "a"), freeNodes(1, "a", "b")}, want: []any{taint}, warnings: []string{mixed}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := pools(tc.free...)
			o.Object["apiVersion"] = "fusioninfer.io/v1alpha1"
			warnings := countNodes([]object{o})
			pool := o.Object["spec"].(map[string]any)["pools"].([]any)[0].(map[string]any)
			if diff := cmp.Diff([]any{int64(3), tc.want}, []any{pool["nodeCount"], pool["taints"]}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s\nwarnings: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCountDevices warns of a pool whose nodes are not alike: a pool that is typed in has one kind of nodes.
func TestCountDevices(t *testing.T) {
	const differ = "east: the nodes of pool p have different numbers of devices, and each counts with their average, so what fits here may differ. Write nodeCount and allocatable into the file"
	cases := map[string]struct {
		reason   string
		capacity map[string]any
		free     []any
		warnings []string
	}{
		"Same":    {reason: "Each has eight.", capacity: map[string]any{"nvidia.com/gpu": "24", "cpu": "100", "memory": "10Gi"}, free: []any{freeNodes(3)}},
		"Lacking": {reason: "A GPU of one node has failed.", capacity: map[string]any{"nvidia.com/gpu": "23"}, warnings: []string{differ}},
		"Large":   {reason: "On one node more is free than the average.", capacity: map[string]any{"nvidia.com/gpu": "18"}, free: []any{freeNodes(1)}, warnings: []string{differ}},
		"None":    {reason: "No node has devices.", capacity: map[string]any{"cpu": "100"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := pools(tc.free...)
			o.SetAPIVersion("fusioninfer.io/v1alpha1")
			o.Object["status"].(map[string]any)["pools"].([]any)[0].(map[string]any)["capacity"] = tc.capacity
			if diff := cmp.Diff(tc.warnings, countNodes([]object{o})); diff != "" {
				t.Errorf("%s\nwarnings: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCountResources shows that observed nodes may have resources that nobody may type in. No pod can request them.
func TestCountResources(t *testing.T) {
	o := pools()
	o.SetAPIVersion("fusioninfer.io/v1alpha1")
	o.Object["status"].(map[string]any)["pools"].([]any)[0].(map[string]any)["capacity"] = map[string]any{"nvidia.com/gpu": "24", "gpu": "24", "pods": "330"}
	if warnings := countNodes([]object{o}); len(warnings) > 0 {
		t.Errorf("want no warnings, got %v", warnings)
	}
	want := map[string]any{"nvidia.com/gpu": "8", "pods": "110"}
	if diff := cmp.Diff(want, o.Object["spec"].(map[string]any)["pools"].([]any)[0].(map[string]any)["allocatable"]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestTaintsOfSummary shows what is free by the taints of the nodes.
func TestTaintsOfSummary(t *testing.T) {
	b := &strings.Builder{}
	writeCluster(b, pools(freeNodes(2), freeNodes(1, "a", "b")))
	want := "\n  POOL\tNODES\tFREE, NODE BY NODE\n  p\t3\t2 x (8 nvidia.com/gpu) + 1 x (8 nvidia.com/gpu) with dedicated=a:NoSchedule, dedicated=b:NoSchedule\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
