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
	const unknown = "unknown field: Kubernetes 1.36 has none of that name"
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
		"UnknownFields": {
			reason: "A field that Kubernetes does not have is rendered, because a later version may have it.",
			template: `{kind: Pod, spec: {nodeSelectors: {a: b}, tolerations: [{key: a, operater: Exists, operator: Exists}],
				containers: [{name: vllm, image: vllm-openai, args: [m], readynessProbe: {}, resources: {limit: {nvidia.com/gpu: 1}}}]}}`,
			want: []Warning{
				{Path: spec + ".containers[0].resources.limit", Message: unknown},
				{Path: spec + ".containers[0].readynessProbe", Message: unknown},
				{Path: spec + ".tolerations[0].operater", Message: unknown},
				{Path: spec + ".nodeSelectors", Message: unknown},
				{Path: "spec.roles[0].template.kind", Message: unknown},
			},
		},
		"UnknownFieldsOfLeader": {
			reason:   "Both templates are checked.",
			template: seedWorker,
			leader:   strings.Replace(seedWorker, "{containers:", "{hostname: a, hostNme: a, containers:", 1),
			want:     []Warning{{Path: "spec.roles[0].leaderTemplate.spec.hostNme", Message: unknown}},
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

// The warnings of a template are limited in number and length.
func TestTemplateDoubtsAreLimited(t *testing.T) {
	var fields []string
	for i := range 900 {
		fields = append(fields, fmt.Sprintf("%s%03d: 1", strings.Repeat("x", 1000), i))
	}
	_, warnings, errs := planRole(0, v1alpha1.Role{Template: document(t, strings.Replace(seedWorker, "{containers:", "{"+strings.Join(fields, ", ")+", containers:", 1))}, loads{}, defaultInput(), false)
	if len(errs) > 0 || len(warnings) != kube.MaxProblems {
		t.Fatalf("want %d warnings and no errors, got %d and %v", kube.MaxProblems, len(warnings), errs)
	}
	for _, w := range warnings {
		if len(w.Path) > 200 {
			t.Errorf("The path of a warning has %d bytes", len(w.Path))
		}
	}
}
