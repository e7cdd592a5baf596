package e2e

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestAutoscalingPicker scales a role by what its endpoint picker knows of the engines, while Prometheus is stopped.
func TestAutoscalingPicker(t *testing.T) {
	c := cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 4, GPUs: 8, Engines: true, Autoscaling: true, CoreArgs: cluster.RecommendedCoreArgs})
	c.StopPrometheus()
	a := &autoscaling{Cluster: c, pods: c}
	a.installWith(t, "scaling: {source: EndpointPicker, pollingSeconds: 5}\n")
	worker := briefly(engine("worker", "worker", 1, 1), 5)
	delete(worker, "replicas")
	worker["scaling"] = toTarget(1, 4)
	ns := namespace(t, c)
	chat := inference(ns, "chat", worker, picker("picker.example.com"))
	roles := record(t, a, roleKind, ns)
	apply(t, c, chat)
	settled(t, c, chat)

	l := a.demand(t, chat, "picker.example.com")
	l.times(1)
	a.scalesTo(t, chat, 1, 1)
	l.times(4)
	a.scalesTo(t, chat, 3, 4)
	l.times(1)
	a.scalesTo(t, chat, 1, 1)
	settled(t, c, chat)
	if pods := l.end(); pods < 3 {
		t.Errorf("%d pods have answered, want 3 at least", pods)
	}
	few(t, requested(t, roles, "chat-worker"))
}

// scalesTo waits until the only role of a service has some number of replicas, all of which are ready.
func (a *autoscaling) scalesTo(t *testing.T, s *unstructured.Unstructured, least, most int64) {
	t.Helper()
	until(t, a, fmt.Sprintf("there are %d to %d replicas", least, most), lasting(func(ctx context.Context) (bool, error) {
		o, err := a.Get(ctx, object(roleKind, s.GetNamespace(), s.GetName()+"-worker"))
		if err != nil {
			return false, err
		}
		n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		ready := a.ready(t, s, "worker")
		return n >= least && n <= most && ready == n, fmt.Errorf("%d are wanted, and %d ready", n, ready)
	}))
}
