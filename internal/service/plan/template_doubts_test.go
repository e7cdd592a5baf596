package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// planTemplates plans a worker with a template, on two nodes if its leader has another one.
func planTemplates(t *testing.T, template, leader string) ([]Warning, field.ErrorList) {
	t.Helper()
	role := v1alpha1.Role{ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, template), LeaderTemplate: document(t, leader)}
	if leader != "" {
		role.Multinode = multinode(2, v1alpha1.LauncherRay)
	}
	_, warnings, errs := planRole(0, role, loads{}, defaultInput(), false)
	return warnings, errs
}

// TestTemplateDoubts plans templates that are valid and probably not what their author meant.
func TestTemplateDoubts(t *testing.T) {
	const unknown = "unknown field: Kubernetes 1.36 has none of that name, and an API server that does not have it either applies nothing of the service"
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
			reason:   "A field that resembles no other one is rendered, because the cluster may have a later version.",
			template: `{kind: Pod, spec: {hostname: a, younger: {a: b}, containers: [{name: vllm, image: vllm-openai, args: [m]}]}}`,
			want: []Warning{
				{Path: spec + ".younger", Message: unknown},
				{Path: "spec.roles[0].template.kind", Message: unknown},
			},
		},
		"NotMisplaced": {
			reason:   "A claim of a volume has a spec of its own, and is no template of pods.",
			template: `{spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {resources: {}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}], containers: [{name: vllm, image: vllm-openai, args: [m]}]}}`,
			want:     []Warning{{Path: spec + ".volumes[0].ephemeral.volumeClaimTemplate.resources", Message: unknown}},
		},
		"Resources": {
			reason: "No device plugin has such a resource, so the pods would stay Pending. Only names that are nearly those of a plugin are told.",
			template: `{spec: {containers: [
				{name: vllm, image: x, readinessProbe: {httpGet: {port: 8000}}, resources: {limits: {nvidia.com/gpus: 1, nvidia/gpu: 1, nvidia.com/gpu: 1}, requests: {nvidia.com/gpus: 1}}},
				{name: other, image: x, resources: {limits: {example.com/gpus: 1, nvidia.com/hostdev: 1}}}],
				initContainers: [{name: first, image: x, resources: {limits: {huawei.com/ascend910: 1}}}]}}`,
			want: []Warning{
				{Path: spec + ".initContainers[0].resources.limits[huawei.com/ascend910]", Message: `no known device plugin has this resource (did you mean "huawei.com/Ascend910"?): pods stay Pending until a node has it`},
				{Path: spec + ".containers[0].resources.limits[nvidia.com/gpus]", Message: `no known device plugin has this resource (did you mean "nvidia.com/gpu"?): pods stay Pending until a node has it`},
				{Path: spec + ".containers[0].resources.limits[nvidia/gpu]", Message: `no known device plugin has this resource (did you mean "nvidia.com/gpu"?): pods stay Pending until a node has it`},
			},
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
			got, errs := planTemplates(t, tc.template, tc.leader)
			if len(errs) > 0 {
				t.Fatalf("%s\nwant no errors, got %v", tc.reason, errs)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnknownFields plans roles with misspelt fields. An API server refuses to apply them.
func TestUnknownFields(t *testing.T) {
	refused := func(path, meant string) string {
		return fmt.Sprintf("%s: Forbidden: unknown field (did you mean %q?): Kubernetes 1.36 has none of that name", path, meant)
	}
	misplaced := func(path, place string) string {
		return fmt.Sprintf("%s: Forbidden: unknown field (did you mean %s?): Kubernetes 1.36 has none of that name", path, place)
	}
	const spec = "spec.roles[0].template.spec"
	cases := map[string]struct {
		template, leader string
		want             []string
	}{
		"Worker": {
			template: `{kind: Pod, spec: {nodeSelectors: {a: b}, tolerations: [{key: a, operater: Exists, operator: Exists}],
				containers: [{name: vllm, image: vllm-openai, args: [m], readynessProbe: {}, resources: {limit: {nvidia.com/gpu: 1}}}]}}`,
			want: []string{
				refused(spec+".containers[0].resources.limit", "limits"),
				refused(spec+".containers[0].readynessProbe", "readinessProbe"),
				refused(spec+".tolerations[0].operater", "operator"),
				refused(spec+".nodeSelectors", "nodeSelector"),
			},
		},
		"Misplaced": {
			template: `{nodeSelector: {a: b}, image: x, spec: {image: x, args: [m], env: [], hostname: a, containers: [{name: vllm, image: vllm-openai, args: [m], tolerations: [], hostNetwork: true}]}}`,
			want: []string{
				misplaced(spec+".containers[0].hostNetwork", spec+".hostNetwork"),
				misplaced(spec+".containers[0].tolerations", spec+".tolerations"),
				misplaced(spec+".args", spec+".containers[].args"),
				misplaced(spec+".env", spec+".containers[].env"),
				misplaced(spec+".image", spec+".containers[].image"),
				misplaced("spec.roles[0].template.image", spec+".containers[].image"),
				misplaced("spec.roles[0].template.nodeSelector", spec+".nodeSelector"),
			},
		},
		"Leader": {
			template: seedWorker,
			leader:   strings.Replace(seedWorker, "{containers:", "{hostname: a, hostNme: a, containers:", 1),
			want:     []string{refused("spec.roles[0].leaderTemplate.spec.hostNme", "hostname")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := planTemplates(t, tc.template, tc.leader)
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

// The warnings and errors about unknown fields are limited in number and length.
func TestUnknownFieldsAreLimited(t *testing.T) {
	plan := func(name string) ([]Warning, field.ErrorList) {
		var fields []string
		for i := range 900 {
			fields = append(fields, fmt.Sprintf(name, i))
		}
		_, warnings, errs := planRole(0, v1alpha1.Role{Template: document(t, strings.Replace(seedWorker, "{containers:", "{"+strings.Join(fields, ", ")+", containers:", 1))}, loads{}, defaultInput(), false)
		return warnings, errs
	}
	warnings, errs := plan(strings.Repeat("x", 1000) + "%03d: 1")
	if len(warnings) != kube.MaxProblems || len(errs) > 0 {
		t.Errorf("want %d warnings and no errors, got %d and %v", kube.MaxProblems, len(warnings), errs)
	}
	for _, w := range warnings {
		if len(w.Path) > 200 {
			t.Errorf("the path of a warning has %d bytes", len(w.Path))
		}
	}
	if _, errs := plan("terminationGracePeriodSeconds%03d: 1"); len(errs) != kube.MaxProblems {
		t.Errorf("want %d errors, got %d", kube.MaxProblems, len(errs))
	}
}
