package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// bystanders are the other services of the fleet. There are about as many as a busy machine adds to the calls. With many more, one of
	// them would always be looked at by time, and nothing would ever be quiet.
	bystanders = 16
	// quietFor is how long nothing is called until a change counts as settled.
	quietFor = 25 * time.Second
	// mostCalls is the most calls for one more replica. make bench-fleet counts 15 with 1,000 services. Objects of real clusters
	// report more often, which makes 17, and on a busy machine a service is also looked at by time. With a call of each bystander
	// there are 33.
	mostCalls = 32
)

// testFleetCost counts what one more replica of one service costs on the real control plane. The number must not grow with the
// services that share the clusters: if each of them were called, there would be more calls than are allowed.
func testFleetCost(t *testing.T, h *controlPlane) {
	// Each cluster has room for a replica of each bystander, and for some more.
	h.joins(t, "cost", member{name: "cost-1", remote: "cluster-1", nodes: bystanders + 4, gateway: "10.1.0.10"})
	h.joins(t, "cost", member{name: "cost-2", remote: "cluster-2", nodes: bystanders + 4, gateway: "10.2.0.10"})
	ns := namespace(t, h.Cluster)
	for i := range bystanders {
		apply(t, h.Cluster, placedService(ns, fmt.Sprintf("other-%d", i), "Spread", "cost", engine("worker", "worker", 2, 1)))
	}
	llama := func(replicas int64) *unstructured.Unstructured {
		return prefers(placedService(ns, "llama", "Failover", "cost", engine("worker", "worker", replicas, 1)), "cost-1", "cost-2")
	}
	xr := llama(1)
	apply(t, h.Cluster, xr)
	at := func(replicas int) {
		h.lands(t, xr, map[string]string{"cost-1": "Placed [0]", "cost-2": notNeeded}, map[string]int{"cluster-1": replicas})
	}
	at(1)
	before := h.quietCalls(t)
	apply(t, h.Cluster, llama(2))
	at(2)
	calls := h.quietCalls(t)
	total := 0
	for kind := range calls {
		calls[kind] -= before[kind]
		total += calls[kind]
	}
	t.Logf("calls for one more replica: %v", calls)
	if calls["InferenceService"] == 0 || calls["InferenceCluster"] == 0 || total > mostCalls {
		t.Errorf("one more replica takes %v calls, at most %d are allowed", calls, mostCalls)
	}
	h.removeAll(t, ns)
}

// notNeeded is what a service says of a cluster that it does not need.
const notNeeded = "NotPlaced NotNeeded: it runs in cost-1"

// quietCalls waits until the function is not called for a while, and returns how often it was called for each kind.
func (h *controlPlane) quietCalls(t *testing.T) map[string]int {
	t.Helper()
	var calls map[string]int
	since := time.Now()
	until(t, h, "nothing happens", func(ctx context.Context) (bool, error) {
		now := map[string]int{}
		functions, err := h.FunctionMetrics(ctx)
		if err != nil {
			return false, err
		}
		for _, kind := range []string{"InferenceService", "InferenceCluster"} {
			for _, m := range functions {
				now[kind] += int(m.Sum("fusioninfer_function_calls_total", func(labels map[string]string) bool { return labels["kind"] == kind }))
			}
		}
		if !cmp.Equal(calls, now) {
			calls, since = now, time.Now()
		}
		return time.Since(since) >= quietFor, fmt.Errorf("the function was called %s ago: %v", time.Since(since), calls)
	})
	return calls
}
