package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// testTrafficToClusters takes a cluster away from two services, first by a drain and then by a cut. One
// has its only copy there, and the other one of two. What fails during a cut does so until the fleet
// route has left the cluster. With retries, only requests that were in progress fail. In the end it
// changes the image in both clusters, with an extra replica and then with a single one in each.
func testTrafficToClusters(t *testing.T, h *controlPlane) {
	ns := namespace(t, h.Cluster)
	east := h.joinsForGood(t, "traffic", member{name: "traffic-east", remote: "cluster-1", nodes: 4, gateway: observedGateway})
	h.joinsForGood(t, "traffic", member{name: "traffic-west", remote: "cluster-2", nodes: 4, gateway: observedGateway})
	worker := briefly(engine("worker", "worker", 2, 1), 5)
	place := func(name, policy string) *unstructured.Unstructured {
		s := prefers(placedService(ns, name, policy, "traffic", entrance(name+".example.com", "prefix-cache"), worker), "traffic-east", "traffic-west")
		apply(t, h.Cluster, s)
		return s
	}
	single, double := place("single", "Failover"), place("double", "Replicate")
	inEast := map[string]int64{"traffic-east": 2}
	leads := func(s *unstructured.Unstructured, pods map[string]int, east, west string, weights map[string]int64) {
		t.Helper()
		h.lands(t, s, map[string]string{"traffic-east": east, "traffic-west": west}, pods)
		h.routes(t, s, weights)
	}
	const whole, drained = "Placed [0] weight 2", "NotPlaced Draining: the cluster is drained: a test"
	singleInEast := func() {
		t.Helper()
		leads(single, map[string]int{"cluster-1": 2}, whole, "NotPlaced NotNeeded: it runs in traffic-east", inEast)
	}
	doubleInBoth := func() {
		t.Helper()
		leads(double, map[string]int{"cluster-1": 2, "cluster-2": 2}, whole, whole, map[string]int64{"traffic-east": 2, "traffic-west": 2})
	}
	oneInBoth := func() {
		t.Helper()
		const one = "Placed [0] weight 1"
		leads(double, map[string]int{"cluster-1": 1, "cluster-2": 1}, one, one, map[string]int64{"traffic-east": 1, "traffic-west": 1})
	}
	singleInEast()
	doubleInBoth()

	toSingle, toDouble := send(t, h.Cluster, "gateway-system", "single.example.com"), send(t, h.Cluster, "gateway-system", "double.example.com")
	while := func(what string, change func()) {
		t.Helper()
		toSingle.while(what, func() { toDouble.while(what, change) })
	}
	while("a drain of a cluster", func() {
		h.stop(t, east, "Drain")
		for _, s := range []*unstructured.Unstructured{single, double} {
			leads(s, map[string]int{"cluster-2": 2}, drained, whole, map[string]int64{"traffic-west": 2})
			h.gone(t, s, "cluster-1")
		}
	})
	while("the end of a drain", func() {
		h.stop(t, east, "None")
		doubleInBoth()
	})

	r := h.Remote("cluster-2")
	t.Cleanup(r.Reconnect)
	lost := toSingle.cut("a cluster that is cut off, until the route leads elsewhere", func() {
		share := toDouble.cut("a cluster that is cut off, until the route has left it", func() {
			r.CutOff()
			h.routes(t, double, inEast)
		})
		if share.Failed() == 0 || share.Failed() == share.Sent {
			t.Errorf("of a service with a copy in another cluster %d of %d requests fail, want some", share.Failed(), share.Sent)
		}
		toDouble.while("a cluster that is cut off, after that", func() { h.routes(t, single, inEast) })
	})
	if lost.Failed() == 0 {
		t.Error("no request of a service without another copy fails, so its cluster is not cut off")
	}
	while("a cluster that is back", func() {
		r.Reconnect()
		h.gone(t, single, "cluster-2")
		singleInEast()
		doubleInBoth()
	})

	toDouble.while("the fleet's gateway is told to retry", func() {
		kubectl(t, h.Cluster, "apply", "--validate=strict", "-f", written(t, "fleet-envoy-gateway.yaml", read(t, "package", "install", "fleet-envoy-gateway.yaml")))
		until(t, h, "the fleet's gateway retries", func(context.Context) (bool, error) {
			return h.GatewayRetries("gateway-system", "fleet-gateway") > 0, nil
		})
		// So that requests are sent with retries before the cut, too.
		time.Sleep(3 * time.Second)
	})
	// That has waited for its last stream to end. So others are in progress in either cluster by now. They began
	// a stream's length before the cut, or later.
	r.CutOff()
	cut := toDouble.Next()
	toDouble.while("a cluster that is cut off, with retries", func() { h.routes(t, double, inEast) })
	cut.Wait()
	t.Logf("of %d requests that began before the cut, %d were in progress and cut", cut.Sent, cut.Failed())
	if cut.Failed() == 0 || cut.Failed() == cut.Sent {
		t.Errorf("of %d requests that began right before the cut %d fail, want some: those that were in progress in the cluster", cut.Sent, cut.Failed())
	}
	toDouble.while("a cluster that is back, with retries", func() {
		r.Reconnect()
		doubleInBoth()
	})

	// An extra replica needs the room of the other service.
	toSingle.end()
	kubectl(t, h.Cluster, "delete", "--wait", "--namespace="+ns, "inferenceservices.fusioninfer.io", "single")
	toDouble.while("another image with an extra replica in each cluster", func() {
		setImage(worker, nextImage)
		double.Object["spec"].(map[string]any)["rollout"] = map[string]any{"maxSurge": int64(1), "maxUnavailable": int64(0)}
		apply(t, h.Cluster, double)
		seen := map[string]bool{}
		until(t, h, "an extra replica runs in each cluster", func(ctx context.Context) (bool, error) {
			for _, name := range []string{"cluster-1", "cluster-2"} {
				_, err := h.Remote(name).Get(ctx, object(podKind, ns, "double-worker-2-0"))
				seen[name] = seen[name] || err == nil
			}
			return seen["cluster-1"] && seen["cluster-2"], fmt.Errorf("it runs in %v", seen)
		})
		rolledOut(t, h.Cluster, double, "True AllUpdated: ")
		doubleInBoth()
	})
	toDouble.while("one replica less in each cluster", func() {
		worker["replicas"] = int64(1)
		apply(t, h.Cluster, double)
		oneInBoth()
	})
	toDouble.while("another image of the only replica in each cluster", func() {
		setImage(worker, engineImage)
		delete(double.Object["spec"].(map[string]any), "rollout")
		apply(t, h.Cluster, double)
		rolledOut(t, h.Cluster, double, "True AllUpdated: ")
		oneInBoth()
	})
	toDouble.while("an engine that crashes in another cluster", func() {
		broken := briefly(engine("worker", "worker", 1, 1), 0)
		setEnv(broken, "STANDIN_EXIT_CODE", "3")
		s := placedService(ns, "broken", "Failover", "traffic", broken)
		apply(t, h.Cluster, s)
		says(t, h.Cluster, s, map[string]string{"worker": "Failed 0/1 0/1"}, "False", "Failed", "pod broken-worker-0-0: container engine: Error (exit code 3)")
	})
}
