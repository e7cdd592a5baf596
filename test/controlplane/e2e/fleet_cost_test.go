package e2e

import (
	"context"
	"fmt"
	"math"
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
	// report more often, which makes 17. With a call of each bystander there are 33.
	mostCalls = 32
	// mostReplicas is the most replicas for which there is room beside the bystanders.
	mostReplicas = 4
)

// testFleetCost counts what one more replica of one service costs on the real control plane. The number must not grow with the
// services that share the clusters: if each of them were called, there would be more calls than are allowed. A busy machine adds calls,
// because services are also looked at by time. So one of several changes has to do with so few.
func testFleetCost(t *testing.T, h *controlPlane) {
	// Each cluster has room for a replica of each bystander, and for some more.
	h.joins(t, "cost", member{name: "cost-1", remote: "cluster-1", nodes: bystanders + mostReplicas, gateway: "10.1.0.10"})
	h.joins(t, "cost", member{name: "cost-2", remote: "cluster-2", nodes: bystanders + mostReplicas, gateway: "10.2.0.10"})
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
	before, fewest := h.quietCalls(t), math.MaxInt
	for replicas := 2; replicas <= mostReplicas && fewest > mostCalls; replicas++ {
		apply(t, h.Cluster, llama(int64(replicas)))
		at(replicas)
		now := h.quietCalls(t)
		services, clusters := now["InferenceService"]-before["InferenceService"], now["InferenceCluster"]-before["InferenceCluster"]
		t.Logf("the replica %d takes %d calls for services, and %d for clusters", replicas, services, clusters)
		if services == 0 || clusters == 0 {
			t.Fatal("the calls are not counted")
		}
		before, fewest = now, min(fewest, services+clusters)
	}
	if fewest > mostCalls {
		t.Errorf("one more replica takes %d calls or more, at most %d are allowed", fewest, mostCalls)
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
