package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

var workloadKind = schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"}

// queues are what a platform team makes in a cluster whose admission is Kueue's: a quota of 16
// GPUs, and a queue in the namespace of the tenant.
const queues = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: inference}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources: [{name: nvidia.com/gpu, nominalQuota: 16}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: interactive}
value: 1000
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: default, namespace: %s}
spec: {clusterQueue: inference}
`

// TestKueue proves on a real cluster with the real Kueue what docs/placement.md says of admission:
// Kueue admits services by its quota and by their priorities, and each service says why it waits.
func TestKueue(t *testing.T) {
	h := &controlPlane{cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 6, GPUs: 8, Clusters: 1, Kueue: true, CoreArgs: cluster.RecommendedCoreArgs})}
	h.installWith(t, "allowedPriorityClassNames: [interactive]\n")
	ns, r := namespace(t, h.Cluster), h.Remote("cluster-1")
	h.queues(t, r, ns)
	h.joins(t, "kueue", member{name: "kueue", remote: "cluster-1", kueue: true})

	batch := kueueService(ns, "batch", engine("worker", "worker", 2, 1))
	apply(t, h.Cluster, batch)
	h.lands(t, batch, map[string]string{"kueue": "Placed [0]"}, map[string]int{"cluster-1": 2})
	for _, p := range list(t, r, podKind, ns) {
		if got := p.GetLabels()["kueue.x-k8s.io/queue-name"]; got != "default" {
			t.Errorf("pod %s is in queue %q", p.GetName(), got)
		}
	}

	late := kueueService(ns, "late", engine("worker", "worker", 1, 1))
	apply(t, h.Cluster, late)
	h.waits(t, late, "WaitingForAdmission", "late-worker-0: couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed")

	role := engine("worker", "worker", 1, 2)
	role["template"].(map[string]any)["metadata"] = map[string]any{"labels": map[string]any{"kueue.x-k8s.io/priority-class": "interactive"}}
	urgent := kueueService(ns, "urgent", role)
	urgent.Object["spec"].(map[string]any)["schedulingStrategy"] = map[string]any{"gang": map[string]any{"mode": "None"}}
	apply(t, h.Cluster, urgent)
	h.lands(t, urgent, map[string]string{"kueue": "Placed [0]"}, map[string]int{"cluster-1": 2})
	h.waits(t, batch, "Preempted", "Preempted to accommodate a workload")
	h.waits(t, late, "WaitingForAdmission", "insufficient")

	// What was preempted is the oldest.
	h.remove(t, urgent)
	h.lands(t, batch, map[string]string{"kueue": "Placed [0]"}, map[string]int{"cluster-1": 2})
	h.waits(t, late, "WaitingForAdmission", "insufficient")
	h.remove(t, batch)
	h.lands(t, late, map[string]string{"kueue": "Placed [0]"}, map[string]int{"cluster-1": 1})
	h.remove(t, late)
	until(t, r, "Kueue has no Workload any more", func(ctx context.Context) (bool, error) {
		left, err := r.List(ctx, workloadKind, ns)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there are %d", len(left))
		}
		return err == nil, err
	})
}

// kueueService is a service that runs wherever Kueue admits it.
func kueueService(namespace, name string, roles ...map[string]any) *unstructured.Unstructured {
	return placedService(namespace, name, "Replicate", "kueue", roles...)
}

// queues makes the quota of a cluster, and the queue of a tenant there.
func (h *controlPlane) queues(t *testing.T, r *cluster.Remote, namespace string) {
	t.Helper()
	if err := r.Namespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	objects, err := cluster.Documents(fmt.Appendf(nil, queues, namespace))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if _, err := r.Apply(t.Context(), o, "platform"); err != nil {
			t.Fatal(err)
		}
	}
}

// waits expects a service to say after a while why it waits: in its status, and in its condition Placed. It
// is not ready, and none of its pods may be scheduled.
func (h *controlPlane) waits(t *testing.T, xr *unstructured.Unstructured, reason, message string) {
	t.Helper()
	until(t, h, xr.GetName()+" waits: "+reason, func(ctx context.Context) (bool, error) {
		s, err := h.Get(ctx, xr)
		if err != nil {
			return false, err
		}
		if got := placement(s)["kueue"]; !strings.HasPrefix(got, "Pending "+reason+": ") || !strings.Contains(got, message) {
			return false, fmt.Errorf("it says of its cluster %q", got)
		}
		if status, why, text := condition(s, "Placed"); status != "False" || why != reason || !strings.Contains(text, message) {
			return false, fmt.Errorf("Placed is %s (%s: %s)", status, why, text)
		}
		if status, _, _ := condition(s, "Ready"); status != "False" {
			return false, fmt.Errorf("Ready is %s", status)
		}
		pods, err := enginesOf(ctx, h.Remote("cluster-1"), xr)
		if err != nil {
			return false, err
		}
		for _, p := range pods {
			if gates, _, _ := unstructured.NestedSlice(p.Object, "spec", "schedulingGates"); len(gates) == 0 {
				return false, fmt.Errorf("pod %s has no scheduling gate", p.GetName())
			}
		}
		return true, nil
	})
}
