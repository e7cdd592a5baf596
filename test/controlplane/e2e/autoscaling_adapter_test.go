package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestAutoscalingAdapter scales a role by an HPA of the service, which prometheus-adapter tells what the replicas do.
func TestAutoscalingAdapter(t *testing.T) {
	c := cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 4, GPUs: 8, Engines: true, Autoscaling: true, Adapter: true, CoreArgs: cluster.RecommendedCoreArgs})
	a := &autoscaling{Cluster: c, pods: c}
	a.installWith(t, "monitoring:\n  podMonitors: {interval: 2s}\nscaling: {provider: HPA}\n")
	chat, l, roles := a.alone(t)
	a.growsAndShrinks(t, chat, l)
	a.servesRules(t, chat)

	before := requested(t, roles, "chat-worker")
	c.StopPrometheus()
	l.times(4)
	time.Sleep(still)
	if diff := cmp.Diff(before, requested(t, roles, "chat-worker")); diff != "" {
		t.Errorf("while Prometheus is stopped, the role is scaled: -before +after\n%s", diff)
	}
	if err := c.StartPrometheus(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.scalesTo(t, chat, 3, 4)
	l.endsAfterGrowth(t, roles)
}

// servesRules waits until each rule of package/monitoring/prometheus-adapter.yaml has the value of the only role of a service.
func (a *autoscaling) servesRules(t *testing.T, s *unstructured.Unstructured) {
	t.Helper()
	of := labels.Set{"inferenceservice_namespace": s.GetNamespace(), "inferenceservice": s.GetName(), "role": "worker"}
	var config struct {
		ExternalRules []struct {
			Name struct{ As string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "package", "monitoring", "prometheus-adapter.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.ExternalRules) == 0 {
		t.Fatal("package/monitoring/prometheus-adapter.yaml has no rules")
	}
	for _, r := range config.ExternalRules {
		at := fmt.Sprintf("/apis/external.metrics.k8s.io/v1beta1/namespaces/%s/%s?labelSelector=%s", s.GetNamespace(), r.Name.As, url.QueryEscape(of.String()))
		until(t, a, r.Name.As+" has a value", func(ctx context.Context) (bool, error) {
			out, err := a.Kubectl(ctx, "get", "--raw", at)
			if err != nil {
				return false, err
			}
			var list struct{ Items []struct{ Value string } }
			if err := json.Unmarshal([]byte(out), &list); err != nil {
				return false, err
			}
			return len(list.Items) == 1 && list.Items[0].Value != "", fmt.Errorf("the answer is %s", out)
		})
	}
}
