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
	chat, l, roles := a.alone(t)
	a.growsAndShrinks(t, chat, l)
	l.endsAfterGrowth(t, roles)
}

// alone makes a service with a single role that follows its load, and sends it the base rate, for which one replica suffices.
func (a *autoscaling) alone(t *testing.T) (*unstructured.Unstructured, *demand, *recording) {
	t.Helper()
	worker := briefly(engine("worker", "worker", 1, 1), 5)
	delete(worker, "replicas")
	worker["scaling"] = toTarget(1, 4)
	ns := namespace(t, a.Cluster)
	chat := inference(ns, "chat", worker, picker("alone.example.com"))
	roles := record(t, a, roleKind, ns)
	apply(t, a.Cluster, chat)
	settled(t, a.Cluster, chat)
	l := a.demand(t, chat, "alone.example.com")
	l.times(1)
	a.scalesTo(t, chat, 1, 1)
	return chat, l, roles
}

// growsAndShrinks sends four times the load to the only role of a service, and the base rate again.
func (a *autoscaling) growsAndShrinks(t *testing.T, s *unstructured.Unstructured, l *demand) {
	t.Helper()
	l.times(4)
	a.scalesTo(t, s, 3, 4)
	l.times(1)
	a.scalesTo(t, s, 1, 1)
	settled(t, a.Cluster, s)
}

// endsAfterGrowth ends the load on the only role of a service, and fails unless three of its replicas have answered, and they
// went up and down seldom.
func (l *demand) endsAfterGrowth(t *testing.T, roles *recording) {
	t.Helper()
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
