package podspec_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
)

func template(t testing.TB, doc string) *corev1.PodTemplateSpec {
	t.Helper()
	tpl := &corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(doc), tpl); err != nil {
		t.Fatal(err)
	}
	return tpl
}

// container returns a template with one container, which has these fields besides its name
// and image.
func container(fields string) string {
	return `{spec: {containers: [{name: vllm, image: x, ` + fields + `}]}}`
}

// The message about an unknown field names the version of Kubernetes in go.mod.
func TestUnknownField(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\tk8s\.io/api v0(\.[0-9]+)\.`).FindSubmatch(mod)
	if found == nil {
		t.Fatal("go.mod requires no k8s.io/api")
	}
	message := podspec.UnknownField
	if !strings.Contains(message, " 1"+string(found[1])+" ") {
		t.Errorf("go.mod has k8s.io/api v0%s, and the message is %q", found, podspec.UnknownField)
	}
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		want   []string
	}{
		"Minimal": {
			reason: "A name and an image are enough: the API server defaults the rest.",
			doc:    `{spec: {containers: [{name: vllm, image: x}]}}`,
		},
		"Usual": {
			reason: "The usual fields of an engine are valid.",
			doc: `{metadata: {labels: {a: b}, annotations: {A.example.com/b: "{}"}}, spec: {restartPolicy: Always, priorityClassName: high, hostNetwork: true, tolerations: [{operator: Exists}],
				containers: [{name: vllm, image: x, ports: [{containerPort: 8000, name: http}], resources: {limits: {nvidia.com/gpu: 8, rdma/hca: 1, memory: 1Ti}, requests: {cpu: 32}},
				readinessProbe: {httpGet: {path: /health, port: http}}, volumeMounts: [{name: shm, mountPath: /dev/shm}, {name: models, mountPath: /models}], securityContext: {privileged: true, capabilities: {add: [IPC_LOCK]}}}],
				volumes: [{name: shm, emptyDir: {medium: Memory}}, {name: models, persistentVolumeClaim: {claimName: models}}]}}`,
		},
		"Gated": {
			reason: "Fields behind feature gates are accepted: the cluster may have the gate enabled.",
			doc: `{spec: {hostNetwork: true, hostUsers: false, resources: {limits: {cpu: 4}}, tolerations: [{key: a, operator: Gt, value: "1", effect: NoSchedule}], dnsConfig: {searches: [a_b.example.com, "."]},
				topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [b], labelSelector: {}}],
				initContainers: [{name: side, image: x, restartPolicy: Always, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]}],
				containers: [{name: vllm, image: x, env: [{name: "1.a b", value: c}, {name: F, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: K}}}], lifecycle: {preStop: {sleep: {seconds: 0}}},
				restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [1]}}]}],
				volumes: [{name: v, emptyDir: {}}, {name: model, image: {reference: "r:1"}}]}}`,
		},
		"NoImage": {
			reason: "A container needs an image.",
			doc:    `{spec: {containers: [{name: vllm}]}}`,
			want:   []string{`spec.containers[0].image: Required value: must be set: Kubernetes creates no pod without it`},
		},
		"SpacesAroundImage": {
			reason: "A template may have spaces around an image, and a pod may not.",
			doc:    `{spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.27.1 "}], initContainers: [{name: first, image: "\tx"}, {name: second, image: y}]}}`,
			want: []string{
				`spec.containers[0].image: Invalid value: "vllm/vllm-openai:v0.27.1 ": must not have spaces before or after it: write "vllm/vllm-openai:v0.27.1"`,
				`spec.initContainers[0].image: Invalid value: "\tx": must not have spaces before or after it: write "x"`,
			},
		},
		"Names": {
			reason: "Invalid names are refused.",
			doc: `{spec: {hostname: A.b, serviceAccountName: "a b", nodeSelector: {"a b": c}, containers: [{name: VLLM, image: x, ports: [{containerPort: 1, name: HTTP_server}]}],
				volumes: [{name: a.b, emptyDir: {}}]}}`,
			want: []string{
				`spec.containers[0].name: Invalid value: "VLLM": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
				`spec.containers[0].ports[0].name: Invalid value: "HTTP_server": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`,
				`spec.hostname: Invalid value: "A.b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
				`spec.nodeSelector: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
				`spec.serviceAccountName: Invalid value: "a b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
				`spec.volumes[0].name: Invalid value: "a.b": must not contain dots`,
			},
		},
		"Ports": {
			reason: "Ports must be from 1 to 65535.",
			doc:    container(`ports: [{containerPort: 0}, {containerPort: 65536}, {containerPort: -1}]`),
			want: []string{
				`spec.containers[0].ports[0].containerPort: Required value: must be set: Kubernetes creates no pod without it`,
				`spec.containers[0].ports[1].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive`,
				`spec.containers[0].ports[2].containerPort: Invalid value: -1: must be between 1 and 65535, inclusive`,
			},
		},
		"Devices": {
			reason: "Numbers of devices must be whole and not negative, and requests must equal limits.",
			doc:    container(`resources: {limits: {nvidia.com/gpu: 1500m, amd.com/gpu: -1, "a b/c": 1, gpu: 1, intel.com/gpu: 2}, requests: {intel.com/gpu: 1}}`),
			want: []string{
				`spec.containers[0].resources.limits[a b/c]: Invalid value: "a b/c": doesn't follow extended resource name standard`,
				`spec.containers[0].resources.limits[a b/c]: Invalid value: "a b/c": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
				`spec.containers[0].resources.limits[amd.com/gpu]: Invalid value: "-1": must be greater than or equal to 0`,
				`spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers`,
				`spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified`,
				`spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "1500m": must be an integer`,
				`spec.containers[0].resources.requests: Invalid value: "1": must be equal to intel.com/gpu limit of 2`,
			},
		},
		"RequestsAboveLimits": {
			reason: "A request may not exceed its limit.",
			doc:    container(`resources: {requests: {cpu: 2}, limits: {cpu: 1}}`),
			want:   []string{`spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
		},
		"RequestsAbovePodLimits": {
			reason: "A request may not exceed the limit of the whole pod.",
			doc:    `{spec: {resources: {limits: {memory: 1Gi}}, containers: [{name: a, image: x, resources: {requests: {memory: 2Gi}}}]}}`,
			want:   []string{`spec.resources.requests: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi`},
		},
		"Labels": {
			reason: "The paths of labels and annotations have metadata, which the library leaves out.",
			doc:    `{metadata: {labels: {a: b c}, annotations: {"a b": c}}, spec: {containers: [{name: vllm, image: x}]}}`,
			want: []string{
				`metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
				`metadata.labels[a]: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
			},
		},
		"Mounts": {
			reason: "Mounts and devices must name a volume of the template.",
			doc:    container(`volumeMounts: [{name: models, mountPath: /models}], volumeDevices: [{name: disk, devicePath: /dev/x}]`),
			want: []string{
				`spec.containers[0].volumeDevices[0].name: Not found: "disk": must be the name of one of the template's volumes`,
				`spec.containers[0].volumeMounts[0].name: Not found: "models": must be the name of one of the template's volumes`,
			},
		},
		"NotServing": {
			reason: "Fields that end a pod are refused: a StatefulSet's pods must keep running.",
			doc:    `{spec: {restartPolicy: OnFailure, activeDeadlineSeconds: 0, nodeName: node-1, schedulingGates: [{name: g}], containers: [{name: vllm, image: x}]}}`,
			want: []string{
				`spec.activeDeadlineSeconds: Invalid value: 0: must be left out: the pods serve until they are deleted`,
				`spec.nodeName: Invalid value: "node-1": must be left out if there are schedulingGates: a pod with gates has no node yet`,
				`spec.restartPolicy: Invalid value: "OnFailure": must be Always, or left out: the pods serve until they are deleted`,
			},
		},
		"UnknownRestartPolicy": {
			reason: "An invalid restart policy has one error, not also the library's.",
			doc:    `{spec: {restartPolicy: Sometimes, containers: [{name: vllm, image: x}]}}`,
			want:   []string{`spec.restartPolicy: Invalid value: "Sometimes": must be Always, or left out: the pods serve until they are deleted`},
		},
		"Long": {
			reason: "Long values are shortened, and objects are not repeated.",
			doc:    container(`imagePullPolicy: ` + strings.Repeat("x", 200) + `, securityContext: {privileged: true, allowPrivilegeEscalation: false}`),
			want: []string{
				`spec.containers[0].imagePullPolicy: Unsupported value: "` + strings.Repeat("x", 80) + `...": supported values: "Always", "IfNotPresent", "Never"`,
				`spec.containers[0].securityContext: Invalid value: "{...}": cannot set ` + "`allowPrivilegeEscalation` to false and `privileged` to true",
			},
		},
		"TooManyConstraints": {
			reason: "The number of constraints is limited, because the library compares each with each.",
			doc:    `{spec: {containers: [{name: vllm, image: x}], topologySpreadConstraints: [` + strings.Repeat(`{maxSkew: 1},`, 101) + `]}}`,
			want:   []string{`spec.topologySpreadConstraints: Too many: 101: must have at most 100 items`},
		},
		"TooManyProfiles": {
			reason: "The number of AppArmor profiles is limited, because the library compares each with each container.",
			doc:    `{metadata: {annotations: {` + profiles(129) + `}}, spec: {containers: [{name: vllm, image: x}]}}`,
			want:   []string{`metadata.annotations[container.apparmor.security.beta.kubernetes.io/*]: Too many: 129: must have at most 128 items`},
		},
		"Annotations": {
			reason: "Other annotations do not count.",
			doc:    `{metadata: {annotations: {` + strings.ReplaceAll(profiles(129), "container.apparmor.security.beta.kubernetes.io", "example.com") + `}}, spec: {containers: [{name: vllm, image: x}]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tpl := template(t, tc.doc)
			var got []string
			for _, e := range podspec.Validate(tpl, nil) {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(template(t, tc.doc), tpl); diff != "" {
				t.Errorf("%s\nthe template was changed: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// profiles returns n annotations with AppArmor profiles.
func profiles(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("container.apparmor.security.beta.kubernetes.io/c-%d: runtime/default", i))
	}
	return strings.Join(all, ", ")
}

// TestValidateIsBounded shows that a template with many problems always has the same few
// errors, although the library finds them in any order.
func TestValidateIsBounded(t *testing.T) {
	tpl := &corev1.PodTemplateSpec{}
	tpl.Labels = map[string]string{}
	for i := range 20000 {
		tpl.Labels[fmt.Sprintf("a b %d", i)] = strings.Repeat("x", 100)
		tpl.Spec.Containers = append(tpl.Spec.Containers, corev1.Container{Name: "A"})
	}
	first := podspec.Validate(tpl, field.NewPath("template"))
	if len(first) != 50 {
		t.Errorf("want 50 errors, got %d", len(first))
	}
	if last := first[len(first)-1].Error(); !strings.Contains(last, "more problems in this template)") {
		t.Errorf("want the last error to count the others, got %s", last)
	}
	if n := len(first.ToAggregate().Error()); n > 50*700 {
		t.Errorf("want short errors, got %d bytes", n)
	}
	if diff := cmp.Diff(first, podspec.Validate(tpl, field.NewPath("template"))); diff != "" {
		t.Errorf("want the same errors each time: -first +second:\n%s", diff)
	}
}

// TestOptionsAreComplete fails if a newer library has an option that options does not decide
// on. Each must be on, or be one of those that only tolerate invalid fields.
func TestOptionsAreComplete(t *testing.T) {
	off := []string{
		// For objects that exist already.
		"AllowInvalidPodDeletionCost", "AllowInvalidLabelValueInSelector", "AllowIndivisibleHugePagesValues",
		"AllowInvalidTopologySpreadConstraintLabelSelector", "AllowNonLocalProjectedTokenPath", "AllowNamespacedSysctlsForHostNetAndHostIPC",
		"AllowInvalidLabelValueInRequiredNodeAffinity", "OldPodViolatesMatchLabelKeysValidation", "OldPodViolatesLegacyMatchLabelKeysValidation",
		"AllowExistingRestartContainerForNonSidecarInitContainer", "AllowUserNamespacesWithVolumeDevices",
		// A template is not a pod, and the second one allows only one value.
		"ResourceIsPod", "AllowOnlyRecursiveSELinuxChangePolicy",
	}
	v := reflect.ValueOf(podspec.Options())
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if on, want := v.Field(i).Bool(), !slices.Contains(off, name); on != want {
			t.Errorf("want %s %t, got %t", name, want, on)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	tpl := template(b, `{metadata: {labels: {a: b}}, spec: {containers: [{name: vllm, image: x, ports: [{containerPort: 8000, name: http}], resources: {limits: {nvidia.com/gpu: 8, memory: 1Ti}, requests: {cpu: 32}},
		env: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}], readinessProbe: {httpGet: {path: /health, port: http}},
		volumeMounts: [{name: shm, mountPath: /dev/shm}, {name: models, mountPath: /models}]}], volumes: [{name: shm, emptyDir: {medium: Memory}}, {name: models, persistentVolumeClaim: {claimName: models}}]}}`)
	for b.Loop() {
		if errs := podspec.Validate(tpl, nil); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
