package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestScrapes checks what Prometheus scrapes for a PodMonitor.
func TestScrapes(t *testing.T) {
	const monitor = `
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: chat-decode-engines, namespace: team}
spec:
  podMetricsEndpoints:
  - interval: 15s
    port: metrics
    relabelings:
    - {action: Keep, regex: vllm, sourceLabels: [__meta_kubernetes_pod_container_name]}
    - {regex: '([^:]+)', replacement: '$1:8200', sourceLabels: [__meta_kubernetes_pod_ip], targetLabel: __address__}
    - {replacement: decode, targetLabel: role}
  selector:
    matchLabels: {fusioninfer.io/role-name: decode}
`
	const want = `
scrape_configs:
- job_name: east/podMonitor/team/chat-decode-engines/0
  scrape_interval: 15s
  kubernetes_sd_configs:
  - role: pod
    kubeconfig_file: /kubeconfig
    namespaces: {names: [team]}
  relabel_configs:
  - {action: drop, source_labels: [__meta_kubernetes_pod_phase], regex: (Failed|Succeeded)}
  - action: keep
    source_labels: [__meta_kubernetes_pod_label_fusioninfer_io_role_name, __meta_kubernetes_pod_labelpresent_fusioninfer_io_role_name]
    regex: (decode);true
  - {action: keep, source_labels: [__meta_kubernetes_pod_container_port_name], regex: metrics}
  - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
  - {source_labels: [__meta_kubernetes_pod_container_name], target_label: container}
  - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
  - {target_label: job, replacement: team/chat-decode-engines}
  - {action: keep, source_labels: [__meta_kubernetes_pod_container_name], regex: vllm}
  - {source_labels: [__meta_kubernetes_pod_ip], regex: '([^:]+)', replacement: '$1:8200', target_label: __address__}
  - {target_label: role, replacement: decode}
`
	all, err := Documents([]byte(monitor))
	if err != nil {
		t.Fatal(err)
	}
	got, err := scrapes([]unstructured.Unstructured{*all[0]}, "east", "/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	b, err := yaml.Marshal(prometheusConfig{ScrapeConfigs: got})
	if err != nil {
		t.Fatal(err)
	}
	var gotAny, wantAny any
	if err := yaml.Unmarshal(b, &gotAny); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(want), &wantAny); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantAny, gotAny); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if err := unstructured.SetNestedField(all[0].Object, "x", "spec", "jobLabel"); err != nil {
		t.Fatal(err)
	}
	if _, err := scrapes([]unstructured.Unstructured{*all[0]}, "east", "/kubeconfig"); err == nil || !strings.Contains(err.Error(), "jobLabel") {
		t.Errorf("a PodMonitor with a field that is not known gives the error %v, want one that names the field", err)
	}
}
