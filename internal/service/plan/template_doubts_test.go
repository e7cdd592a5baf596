package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// TestTemplateDoubts plans templates that are valid and probably not what their author meant.
func TestTemplateDoubts(t *testing.T) {
	const spec = "spec.roles[0].template.spec"
	cases := map[string]struct {
		reason           string
		template, leader string
		want             []Warning
	}{
		"Fine": {
			reason: "Fields of every kind, nulls, and metadata that is checked elsewhere.",
			template: `{metadata: {creationTimestamp: null, labels: {any: label}, annotations: {any: "text"}}, spec: {future: null, nodeSelector: {any: label}, tolerations: [{operator: Exists}],
				volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}],
				containers: [{name: vllm, image: x, resources: {limits: {cpu: 1, nvidia.com/gpu: 1}}, ports: [{containerPort: 8000, name: web}], readinessProbe: {httpGet: {port: web}}, livenessProbe: {tcpSocket: {port: 8000}}, startupProbe: {httpGet: {port: web}}}]}}`,
		},
		"Probes": {
			reason: "A kubelet finds a port by its name in the container of the probe alone.",
			template: `{spec: {containers: [
				{name: vllm, image: x, ports: [{containerPort: 8000, name: http}], readinessProbe: {httpGet: {port: web}}, livenessProbe: {tcpSocket: {port: metrics}}, startupProbe: {grpc: {port: 8000}}},
				{name: metrics, image: x, ports: [{containerPort: 9090, name: metrics}], startupProbe: {httpGet: {port: http}}, readinessProbe: {exec: {command: [a]}}}],
				initContainers: [{name: side, image: x, restartPolicy: Always, readinessProbe: {httpGet: {port: web}}}, {name: first, image: x}]}}`,
			want: []Warning{
				{Path: spec + ".initContainers[0].readinessProbe.httpGet.port", Message: `no port of this container is named "web"`},
				{Path: spec + ".containers[0].readinessProbe.httpGet.port", Message: `no port of this container is named "web"`},
				{Path: spec + ".containers[0].livenessProbe.tcpSocket.port", Message: `no port of this container is named "metrics"`},
				{Path: spec + ".containers[1].startupProbe.httpGet.port", Message: `no port of this container is named "http"`},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, tc.template), LeaderTemplate: document(t, tc.leader)}
			if tc.leader != "" {
				role.Multinode = multinode(2, v1alpha1.LauncherRay)
			}
			_, got, errs := planRole(0, role, loads{}, defaultInput(), false)
			if len(errs) > 0 {
				t.Fatalf("%s\nwant no errors, got %v", tc.reason, errs)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnknownFields plans roles with fields that Kubernetes does not have. An API server refuses to apply them.
func TestUnknownFields(t *testing.T) {
	const unknown = ": Forbidden: unknown field: Kubernetes 1.36 has none of that name"
	const spec = "spec.roles[0].template.spec"
	cases := map[string]struct {
		template, leader string
		want             []string
	}{
		"Worker": {
			template: `{kind: Pod, spec: {nodeSelectors: {a: b}, tolerations: [{key: a, operater: Exists, operator: Exists}],
				containers: [{name: vllm, image: vllm-openai, args: [m], readynessProbe: {}, resources: {limit: {nvidia.com/gpu: 1}}}]}}`,
			want: []string{
				spec + ".containers[0].resources.limit" + unknown + ". Did you mean limits?",
				spec + ".containers[0].readynessProbe" + unknown + ". Did you mean readinessProbe?",
				spec + ".tolerations[0].operater" + unknown + ". Did you mean operator?",
				spec + ".nodeSelectors" + unknown + ". Did you mean nodeSelector?",
				"spec.roles[0].template.kind" + unknown,
			},
		},
		"Leader": {
			template: seedWorker,
			leader:   strings.Replace(seedWorker, "{containers:", "{hostname: a, hostNme: a, containers:", 1),
			want:     []string{"spec.roles[0].leaderTemplate.spec.hostNme" + unknown + ". Did you mean hostname?"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, tc.template), LeaderTemplate: document(t, tc.leader)}
			if tc.leader != "" {
				role.Multinode = multinode(2, v1alpha1.LauncherRay)
			}
			_, _, errs := planRole(0, role, loads{}, defaultInput(), false)
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// The errors about unknown fields are limited in number and length.
func TestUnknownFieldsAreLimited(t *testing.T) {
	var fields []string
	for i := range 900 {
		fields = append(fields, fmt.Sprintf("%s%03d: 1", strings.Repeat("x", 1000), i))
	}
	_, _, errs := planRole(0, v1alpha1.Role{Template: document(t, strings.Replace(seedWorker, "{containers:", "{"+strings.Join(fields, ", ")+", containers:", 1))}, loads{}, defaultInput(), false)
	if len(errs) != kube.MaxProblems {
		t.Fatalf("want %d errors, got %d", kube.MaxProblems, len(errs))
	}
	for _, err := range errs {
		if len(err.Error()) > 300 {
			t.Errorf("an error has %d bytes", len(err.Error()))
		}
	}
}
