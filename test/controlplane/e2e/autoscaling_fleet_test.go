package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestAutoscalingFleet scales a role of a fleet with SGLang by its load, until there is no room. The service says so, and what runs
// answers all requests. As soon as there is room, the role has what its target says.
func TestAutoscalingFleet(t *testing.T) {
	h := &controlPlane{cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 4, GPUs: 8, Engines: true, Autoscaling: true, Clusters: 1, CoreArgs: cluster.RecommendedCoreArgs})}
	remote := h.Remote("cluster-1")
	a := &autoscaling{Cluster: h.Cluster, pods: remote}
	h.installWith(t, a.input())
	h.installRoles(t)
	east := h.joinsForGood(t, "scaling", member{name: "east", remote: remote.Name(), nodes: 2, gateway: observedGateway})
	worker := withSGLang(briefly(engine("worker", "worker", 1, 1), 5))
	delete(worker, "replicas")
	worker["scaling"] = toTarget(1, 4)
	chat := placedService(namespace(t, h.Cluster), "chat", "Failover", "scaling", entrance("fleet.example.com", "prefix-cache"), worker)
	apply(t, h.Cluster, chat)
	h.is(t, chat, "Ready")

	l := a.demandBehind(t, "gateway-system", "fleet.example.com")
	l.times(1)
	a.follows(t, chat, "worker", 1, 1)
	l.times(4)
	a.full(t, chat)
	time.Sleep(still) // What runs has too much to do, and answers.
	if err := a.isFull(t.Context(), t, chat); err != nil {
		t.Error(err)
	}

	pools, _, _ := unstructured.NestedSlice(east.Object, "spec", "pools")
	pools[0].(map[string]any)["nodeCount"] = int64(4)
	east.Object["spec"].(map[string]any)["pools"] = pools
	apply(t, h.Cluster, east)
	a.follows(t, chat, "worker", 3, 4)
	h.is(t, chat, "Ready", "Scaled", "Placed")
	l.times(1)
	a.follows(t, chat, "worker", 1, 1)
	h.is(t, chat, "Ready")
	if pods := l.end(); pods < 3 {
		t.Errorf("%d pods have answered, want 3 at least", pods)
	}
}

// installRoles installs the API of scale targets beside that of services.
func (h *controlPlane) installRoles(t *testing.T) {
	t.Helper()
	kubectl(t, h.Cluster, "apply", "-f", "package/xr/role-definition.yaml", "-f", "package/xr/role-composition.yaml")
	kubectl(t, h.Cluster, "wait", "--for=condition=Established", "--timeout=3m", "xrd", "--all")
}

// withSGLang makes the engine of a role one of SGLang that serves metrics.
func withSGLang(role map[string]any) map[string]any {
	container := podSpec(role)["containers"].([]any)[0].(map[string]any)
	container["image"] = "lmsysorg/sglang:v0.5.5"
	container["command"] = []any{"python3", "-m", "sglang.launch_server"}
	container["args"] = []any{"--model-path=Qwen/Qwen3-8B", "--enable-metrics", "--host=0.0.0.0", "--port=8000"}
	return role
}

// full waits until a service isFull.
func (a *autoscaling) full(t *testing.T, s *unstructured.Unstructured) {
	t.Helper()
	until(t, a, "the role wants more replicas than there is room for", func(ctx context.Context) (bool, error) {
		err := a.isFull(ctx, t, s)
		return err == nil, err
	})
}

// isFull returns an error unless a role of a service wants more than the two replicas for which there is room, and the service
// and the InferenceRole say so.
func (a *autoscaling) isFull(ctx context.Context, t *testing.T, s *unstructured.Unstructured) error {
	t.Helper()
	o, err := a.Get(ctx, s)
	if err != nil {
		return err
	}
	role, err := a.Get(ctx, object(roleKind, s.GetNamespace(), s.GetName()+"-worker"))
	if err != nil {
		return err
	}
	wanted, _, _ := unstructured.NestedInt64(role.Object, "spec", "replicas")
	status, reason, message := condition(o, "Scaled")
	if ready := a.ready(t, s, "worker"); wanted <= 2 || ready != 2 || status != "False" || reason != "NoCapacity" {
		return fmt.Errorf("%d replicas are wanted and %d are ready, and Scaled is %s (%s: %s)", wanted, ready, status, reason, message)
	}
	if status, reason, message := condition(role, "Scaled"); status != "False" || reason != "NoCapacity" {
		return fmt.Errorf("Scaled of the InferenceRole is %s (%s: %s)", status, reason, message)
	}
	return nil
}
