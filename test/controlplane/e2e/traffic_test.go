package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
	"github.com/fusioninfer/function-inferenceservice/test/controlplane/traffic"
)

// unusedPrometheus lets roles have targets. There is no Prometheus, and nobody asks for one.
const unusedPrometheus = "scaling: {prometheus: {serverAddress: 'http://prometheus.monitoring:9090'}}\n"

// TestTraffic proves that a service goes on answering while it is changed, while nodes are drained, and while it moves
// to another cluster. It sends 20 requests each second, every fourth for a stream, through gateways and the real
// endpoint picker to stand-ins for engines. None may fail or be cut, and a rollout stops one unit at a time. It counts
// what fails while a cluster is cut off, and while no endpoint picker answers.
func TestTraffic(t *testing.T) {
	h := &controlPlane{cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 8, GPUs: 8, Engines: true, Clusters: 2, CoreArgs: cluster.RecommendedCoreArgs})}
	h.installWith(t, unusedPrometheus)
	h.installRoles(t)
	t.Run("Workers", func(t *testing.T) { testTrafficToWorkers(t, h.Cluster) })
	t.Run("Pairs", func(t *testing.T) { testTrafficToPairs(t, h) })
	t.Run("OnePrefill", func(t *testing.T) { testTrafficToOnePrefill(t, h.Cluster) })
	t.Run("Nodes", func(t *testing.T) { testTrafficToNodes(t, h.Cluster) })
	t.Run("Surge", func(t *testing.T) { testTrafficToSurge(t, h.Cluster) })
	t.Run("Drains", func(t *testing.T) { testTrafficInDrains(t, h.Cluster) })
	t.Run("FromZero", func(t *testing.T) { testFromZeroInFleet(t, h) })
	t.Run("Clusters", func(t *testing.T) { testTrafficToClusters(t, h) })
}

// testTrafficToWorkers changes a service of four replicas in each way that its users do.
func testTrafficToWorkers(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	worker := briefly(engine("worker", "worker", 4, 1), 5)
	router := picker("chat.example.com")
	chat := inference(ns, "chat", worker, router)
	apply(t, c, chat)
	settled(t, c, chat)

	l := send(t, c, ns, "chat.example.com")
	l.while("another image", func() {
		updatesTo(t, c, chat, nextImage, 3, everyPod, worker)
	})
	l.while("an image that does not start", func() {
		before := identities(t, c, "Pod", chat)
		setImage(worker, "example.com/missing:v1")
		apply(t, c, chat)
		rolledOut(t, c, chat, `False UpdateFailed: .*\bpod chat-worker-3-0: container engine: (ErrImagePull|ImagePullBackOff)\b.*`)
		setImage(worker, nextImage)
		apply(t, c, chat)
		settled(t, c, chat)
		same(t, "put back", only(before, "chat-worker-0", "chat-worker-1", "chat-worker-2"), only(identities(t, c, "Pod", chat), "chat-worker-0", "chat-worker-1", "chat-worker-2"))
	})
	l.while("another strategy", func() {
		router["strategy"] = "queue-size"
		apply(t, c, chat)
		settled(t, c, chat)
	})
	l.while("an endpoint picker that is restarted", func() {
		if _, err := c.Kubectl(t.Context(), "rollout", "restart", "--namespace="+ns, "deployment/chat-epp"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Kubectl(t.Context(), "rollout", "status", "--namespace="+ns, "deployment/chat-epp", "--timeout=5m"); err != nil {
			t.Fatal(err)
		}
		settled(t, c, chat)
	})
	l.while("drains of all nodes with replicas", func() {
		for _, p := range enginePods(t, c, chat) {
			node := p.Spec.NodeName
			if _, err := c.Kubectl(t.Context(), "drain", node, "--pod-selector=fusioninfer.io/role-name=worker", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5m"); err != nil {
				t.Fatal(err)
			}
			if err := c.Cordon(t.Context(), node, false); err != nil {
				t.Fatal(err)
			}
		}
		settled(t, c, chat)
	})
	l.while("two replicas less", func() {
		worker["replicas"] = int64(2)
		apply(t, c, chat)
		settled(t, c, chat)
	})
}

// newPickerFor is how long requests are sent to a new endpoint picker. It is longer than the stand-in answers
// none of them after its start (test/tools/llm-d/picker/revision.go).
const newPickerFor = 5 * time.Second

// testTrafficToPairs changes prefill and decode replicas, which answer only each other's version, by edits
// and by the Input.
func testTrafficToPairs(t *testing.T, h *controlPlane) {
	c := h.Cluster
	ns := namespace(t, c)
	prefill, decode := briefly(engine("prefill", "prefiller", 1, 1), 5), briefly(engine("decode", "decoder", 1, 1), 5)
	router := picker("pairs.example.com")
	router["strategy"] = "pd-disaggregation"
	pairs := inference(ns, "pairs", prefill, decode, router)
	pairs.Object["spec"].(map[string]any)["replicas"] = int64(2)
	apply(t, c, pairs)
	settled(t, c, pairs)

	l := send(t, c, ns, "pairs.example.com")
	prefilled(t, l.while("another image", func() {
		updatesTo(t, c, pairs, nextImage, 1, group, prefill, decode)
	}))
	// The router touches no engine.
	for _, strategy := range []string{"prefix-cache", "pd-disaggregation"} {
		l.while("strategy "+strategy, func() {
			before := identities(t, c, "Pod", pairs)
			router["strategy"] = strategy
			apply(t, c, pairs)
			settled(t, c, pairs)
			if _, err := c.Kubectl(t.Context(), "rollout", "status", "--namespace="+ns, "deployment/pairs-epp", "--timeout=5m"); err != nil {
				t.Fatal(err)
			}
			// From here on, requests go to the new endpoint picker.
			time.Sleep(newPickerFor)
			engines := []string{"pairs-0-", "pairs-1-"}
			same(t, "strategy "+strategy, only(before, engines...), only(identities(t, c, "Pod", pairs), engines...))
		})
	}
	prefilled(t, l.while("another image of the routing sidecar, by the Input", func() {
		before := engineUIDs(t, c, pairs)
		pods := record(t, c, podKind, ns)
		kubectl(t, c, "apply", "-f", compositionWith(t, "xr", fleetInput+h.directConfigs()+unusedPrometheus+"sidecar: {image: '"+nextSidecar+"'}\n"))
		until(t, c, "all decode pods have the new sidecar", func(context.Context) (bool, error) {
			n := 0
			for _, p := range enginePods(t, c, pairs) {
				if slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Image == nextSidecar }) && isReady(p) {
					n++
				}
			}
			return n == 2, fmt.Errorf("%d of 2 do", n)
		})
		settled(t, c, pairs)
		if n := fewestReady(t, pods, before, group); n != 1 {
			t.Errorf("another sidecar: %d groups were ready at one time, want 1", n)
		}
		for pod, uid := range engineUIDs(t, c, pairs) {
			if before[pod] == uid {
				t.Errorf("another sidecar: pod %s is not replaced with its group", pod)
			}
		}
	}))
}

// prefilled wants nearly all requests of a phase to have been prefilled at another pod than the one that answered. Decode
// answers alone while no prefill pod of its version is ready.
func prefilled(t *testing.T, got *traffic.Phase) {
	t.Helper()
	n := got.Prefilled()
	t.Logf("%d of %d requests were prefilled at another pod", n, got.Sent)
	if n < got.Sent*9/10 {
		t.Errorf("%d of %d requests were prefilled at another pod, want nine of ten at least", n, got.Sent)
	}
}

// nextSidecar is an image of the routing sidecar that is not the default.
const nextSidecar = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.1"

// testTrafficToSurge changes services of one unit, each of which gets a second one meanwhile: a prefill and a
// decode replica, and a replica on two nodes.
func testTrafficToSurge(t *testing.T, c *cluster.Cluster) {
	change := func(router map[string]any, roles ...map[string]any) {
		ns := namespace(t, c)
		single := inference(ns, "single", append(roles, router)...)
		single.Object["spec"].(map[string]any)["rollout"] = map[string]any{"maxSurge": int64(1)}
		apply(t, c, single)
		settled(t, c, single)

		l := send(t, c, ns, "single.example.com")
		l.while("another image of the only unit, with maxSurge: 1", func() {
			updatesTo(t, c, single, nextImage, 1, replica, roles...)
		})
	}
	disaggregated := picker("single.example.com")
	disaggregated["strategy"] = "pd-disaggregation"
	change(disaggregated, briefly(engine("prefill", "prefiller", 1, 1), 5), briefly(engine("decode", "decoder", 1, 1), 5))
	change(picker("single.example.com"), briefly(engine("worker", "worker", 1, 2), ofSeveralNodes))
}

// testTrafficToOnePrefill changes two decode replicas that share one of prefill. Each answers alone while no prefill
// has its version.
func testTrafficToOnePrefill(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	prefill, decode := briefly(engine("prefill", "prefiller", 1, 1), 5), briefly(engine("decode", "decoder", 2, 1), 5)
	router := picker("shared.example.com")
	router["strategy"] = "pd-disaggregation"
	shared := inference(ns, "shared", prefill, decode, router)
	apply(t, c, shared)
	settled(t, c, shared)

	l := send(t, c, ns, "shared.example.com")
	l.while("another image", func() {
		updatesTo(t, c, shared, nextImage, 1, everyPod, prefill, decode)
	})
}

// testTrafficToNodes changes replicas on two nodes each, whose leader waits for its worker.
func testTrafficToNodes(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	worker := briefly(engine("worker", "worker", 2, 2), ofSeveralNodes)
	wide := inference(ns, "wide", worker, picker("wide.example.com"))
	apply(t, c, wide)
	settled(t, c, wide)

	l := send(t, c, ns, "wide.example.com")
	l.while("another image", func() {
		updatesTo(t, c, wide, nextImage, 1, replica, worker)
	})
	spec := wide.Object["spec"].(map[string]any)
	for _, nodes := range []int64{3, 1} {
		l.while(fmt.Sprintf("nodeCount %d", nodes), func() {
			before := identities(t, c, "Pod", wide)
			setNodes(worker, nodes)
			spec["rollout"] = map[string]any{"paused": true}
			apply(t, c, wide)
			rolledOut(t, c, wide, "False Paused: .*")
			same(t, "paused", only(before, "wide-worker-"), only(identities(t, c, "Pod", wide), "wide-worker-"))
			restarts(t, c, wide, "wide-worker-1-0-1")
			delete(spec, "rollout")
			apply(t, c, wide)
			settled(t, c, wide)
		})
	}
}

// restarts evicts a pod of a service, and waits until all its pods are ready again.
func restarts(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured, pod string) {
	t.Helper()
	before := engineUIDs(t, c, s)
	if _, err := c.Kubectl(t.Context(), "delete", "pod", "--namespace="+s.GetNamespace(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, c, pod+" is back", func(context.Context) (bool, error) {
		pods := enginePods(t, c, s)
		for _, p := range pods {
			if p.Name == pod && string(p.UID) == before[pod] || !isReady(p) {
				return false, fmt.Errorf("%s is not ready", p.Name)
			}
		}
		return len(pods) == len(before), nil
	})
}

// setNodes gives each replica of a role so many nodes.
func setNodes(role map[string]any, nodes int64) {
	delete(role, "multinode")
	if nodes > 1 {
		role["multinode"] = map[string]any{"nodeCount": nodes}
	}
	container := podSpec(role)["containers"].([]any)[0].(map[string]any)
	container["args"] = []any{"--model=Qwen/Qwen3-8B", fmt.Sprintf("--tensor-parallel-size=%d", nodes)}
}

// A caller sends requests to a service until the test ends. None may fail between two changes either.
type caller struct {
	*traffic.Sender

	t       *testing.T
	host    string
	stop    context.CancelFunc
	between []*traffic.Phase
}

// sendEvery is the time between two requests of a caller.
const sendEvery = 50 * time.Millisecond

// send starts to send requests for a host, through the only gateway of a namespace.
func send(t *testing.T, c *cluster.Cluster, namespace, host string) *caller {
	t.Helper()
	to := behindGateway(t, c, namespace, host)
	ctx, stop := context.WithCancel(t.Context())
	l := &caller{Sender: traffic.Send(ctx, to, sendEvery), t: t, host: host, stop: stop}
	t.Cleanup(l.end)
	return l
}

// behindGateway is the service of a host behind the only gateway of a namespace, once it answers.
func behindGateway(t *testing.T, c *cluster.Cluster, namespace, host string) traffic.Target {
	t.Helper()
	to := traffic.Target{Host: host, Model: "Qwen/Qwen3-8B"}
	until(t, c, "the gateway listens", func(context.Context) (bool, error) {
		for _, o := range list(t, c, gatewayKind, namespace) {
			if at := c.GatewayAddress(o.GetNamespace(), o.GetName()); at != "" {
				to.Gateway = at
			}
		}
		return to.Gateway != "", nil
	})
	until(t, c, "the first request is answered", func(ctx context.Context) (bool, error) {
		_, err := to.Ask(ctx, false)
		return err == nil, err
	})
	return to
}

// end stops to send requests, and checks that none failed between two changes, or after the last one.
func (l *caller) end() {
	l.t.Helper()
	l.stop()
	l.Wait()
	sum := traffic.NewPhase()
	for _, p := range append(l.between, l.Next()) {
		sum.Add(p)
	}
	l.between = nil
	l.t.Logf("%s, between changes: %d requests, %d failed or cut", l.host, sum.Sent, sum.Failed())
	for why, n := range sum.Wrong {
		l.t.Errorf("%s, between changes: %d requests: %s", l.host, n, why)
	}
}

// during returns what came of the requests that were sent during a change, once all have ended.
func (l *caller) during(what string, change func()) *traffic.Phase {
	l.t.Helper()
	l.between = append(l.between, l.Next())
	return l.phase(what, change)
}

// cut is the same for a change that cuts requests that are in progress. Those before it are not counted.
func (l *caller) cut(what string, change func()) *traffic.Phase {
	l.t.Helper()
	l.Next()
	return l.phase(what, change)
}

func (l *caller) phase(what string, change func()) *traffic.Phase {
	l.t.Helper()
	change()
	got := l.Next()
	got.Wait()
	if got.Sent == 0 {
		l.t.Errorf("%s, %s: no request was sent", l.host, what)
	}
	l.t.Logf("%s, %s: %d requests in %.0f s, %d failed or cut, answered by %v", l.host, what, got.Sent, got.Took.Seconds(), got.Failed(), got.Answered)
	return got
}

// while checks that no request fails that is sent during a change, and returns what came of them.
func (l *caller) while(what string, change func()) *traffic.Phase {
	l.t.Helper()
	got := l.during(what, change)
	for why, n := range got.Wrong {
		l.t.Errorf("%s, %s: %d requests: %s", l.host, what, n, why)
	}
	return got
}
