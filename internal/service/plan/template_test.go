package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

func TestReadTemplate(t *testing.T) {
	const spec = `, spec: {containers: [{name: vllm, image: x}]}}`
	cases := map[string]struct {
		reason   string
		doc      string
		warnings []Warning
		want     []string
	}{
		"Exported": {
			reason: "What kubectl writes for a template has a null, and nothing else that is not the user's.",
			doc:    `{metadata: {creationTimestamp: null, finalizers: [], name: "", labels: {a: b}, annotations: {c: d, leaderworkerset.sigs.k8s.io/exclusive-topology: rack}}` + spec,
		},
		"NoEffect": {
			reason: "Names that pods do not get, and labels that the service sets, are passed over.",
			doc:    `{metadata: {name: chat, namespace: llm, labels: {fusioninfer.io/role-name: mine}}` + spec,
			warnings: []Warning{
				{Path: "template.metadata.labels[fusioninfer.io/role-name]", Message: "has no effect: the function sets this label on the service's pods"},
				{Path: "template.metadata.name", Message: "has no effect: pods are named after their replica and run in the namespace of their service"},
				{Path: "template.metadata.namespace", Message: "has no effect: pods are named after their replica and run in the namespace of their service"},
			},
		},
		"Metadata": {
			reason: "Server-side apply fails as a whole on fields that a template's metadata does not have.",
			doc:    `{metadata: {ownerReferences: [{kind: Pod}], generateName: a, uid: b, finalizers: [example.com/f]}` + spec,
			want: []string{
				`template.metadata.finalizers: Invalid value: "[...]": must be left out: a pod with a finalizer stays until somebody removes it, so its replica cannot restart`,
				`template.metadata.generateName: Forbidden: must be left out: a template has labels and annotations only`,
				`template.metadata.ownerReferences: Forbidden: must be left out: a template has labels and annotations only`,
				`template.metadata.uid: Forbidden: must be left out: a template has labels and annotations only`,
			},
		},
		"Kueue": {
			reason: "A pod could enter another queue, or another service's group.",
			doc:    `{metadata: {labels: {kueue.x-k8s.io/queue-name: other, kueue.x-k8s.io/prebuilt-workload-name: w}, annotations: {kueue.x-k8s.io/pod-suspending-parent: x}}` + spec,
			want: []string{
				`template.metadata.annotations[kueue.x-k8s.io/pod-suspending-parent]: Invalid value: "x": must be left out: the queue is that of the InferenceCluster, and Kueue identifies its pods by its own labels and annotations`,
				`template.metadata.labels[kueue.x-k8s.io/prebuilt-workload-name]: Invalid value: "w": must be left out: the queue is that of the InferenceCluster, and Kueue identifies its pods by its own labels and annotations`,
				`template.metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: "other": must be left out: the queue is that of the InferenceCluster, and Kueue identifies its pods by its own labels and annotations`,
			},
		},
		"KueueTopology": {
			reason: "The priority class has a policy of its own. A topology is for the pods alone.",
			doc:    `{metadata: {labels: {kueue.x-k8s.io/priority-class: high}, annotations: {kueue.x-k8s.io/podset-required-topology: rack}}` + spec,
		},
		"LeaderWorkerSet": {
			reason: "A worker with the index 0 is a leader to LeaderWorkerSet.",
			doc:    `{metadata: {labels: {leaderworkerset.sigs.k8s.io/worker-index: "0", leaderworkerset.sigs.k8s.io/name: other}, annotations: {leaderworkerset.sigs.k8s.io/subgroup-size: x}}` + spec,
			want: []string{
				`template.metadata.annotations[leaderworkerset.sigs.k8s.io/subgroup-size]: Invalid value: "x": must be left out: LeaderWorkerSet sets it and creates its pods from it`,
				`template.metadata.labels[leaderworkerset.sigs.k8s.io/name]: Invalid value: "other": must be left out: LeaderWorkerSet sets it and identifies its pods by it`,
				`template.metadata.labels[leaderworkerset.sigs.k8s.io/worker-index]: Invalid value: "0": must be left out: LeaderWorkerSet sets it and identifies its pods by it`,
			},
		},
		"Gateway": {
			reason: "Istio's Service of a Gateway would send its requests to this pod, and a NetworkPolicy would let it reach the engines of another service.",
			doc:    `{metadata: {labels: {gateway.networking.k8s.io/gateway-name: chat-gateway}}` + spec,
			want: []string{
				`template.metadata.labels[gateway.networking.k8s.io/gateway-name]: Invalid value: "chat-gateway": must be left out: it identifies the pods of a Gateway, so this pod would get the requests of one`,
			},
		},
		"Function": {
			reason: "A NetworkPolicy may let the pods of loading Jobs reach more than engines.",
			doc:    `{metadata: {labels: {fusioninfer.io/model-loader: x, example.com/model-loader: x}}` + spec,
			want: []string{
				`template.metadata.labels[fusioninfer.io/model-loader]: Invalid value: "x": must be left out: the function identifies what it makes by labels of fusioninfer.io/`,
			},
		},
		"Twice": {
			reason: "What server-side apply and the API server refuse alike is said once.",
			doc: `{spec: {containers: [{name: vllm, image: x, volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: /v}]}, {name: vllm, image: x}, {image: x}, null],
				volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]}}`,
			want: []string{
				`template.spec.containers: Invalid value: "vllm, vllm": cannot tell which of these containers is the engine: name the engine's container vllm, sglang or engine, or give it a port named http`,
				`template.spec.containers[0].volumeMounts[1]: Duplicate value: "/v"`,
				`template.spec.containers[1]: Duplicate value: "vllm"`,
				`template.spec.containers[2].name: Required value: must be set: it identifies the elements of this list`,
				`template.spec.containers[3]: Required value: must not be null: it is an element of a list`,
				`template.spec.volumes[1]: Duplicate value: "v"`,
			},
		},
		"AllAtOnce": {
			reason: "Problems of all kinds are said together.",
			doc:    `{metadata: {finalizers: [a]}, spec: {restartPolicy: Never, containers: [{name: vllm, env: [{name: A}, {name: A}]}]}}`,
			want: []string{
				`template.metadata.finalizers: Invalid value: "[...]": must be left out: a pod with a finalizer stays until somebody removes it, so its replica cannot restart`,
				`template.spec.containers[0].env[1]: Duplicate value: "A"`,
				`template.spec.containers[0].image: Required value: must be set: Kubernetes creates no pod without it`,
				`template.spec.restartPolicy: Invalid value: "Never": must be Always, or left out: the pods serve until they are deleted`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, warnings, errs := readTemplate(document(t, tc.doc), field.NewPath("template"))
			if diff := cmp.Diff(tc.want, sorted(errs)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s\nwarnings: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A limit of the whole pod has to include what the sidecar requests.
func TestSidecarFits(t *testing.T) {
	in := defaultInput()
	in.Sidecar.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}
	for limit, want := range map[string][]string{
		"9": nil,
		"8": {`spec.roles[0].template.spec.resources.requests: Invalid value: "8100m": must be less than or equal to cpu limit of 8 (this includes the routing sidecar, which is added to the pod)`},
	} {
		role := v1alpha1.Role{Name: "d", ComponentType: v1alpha1.ComponentTypeDecoder,
			Template: document(t, `{spec: {resources: {limits: {cpu: `+limit+`}}, containers: [{name: vllm, image: x, args: [--model, M], resources: {requests: {cpu: 8}}}]}}`)}
		_, _, errs := planRole(0, role, loads{}, in, true)
		if diff := cmp.Diff(want, sorted(errs)); diff != "" {
			t.Errorf("limit %s: -want +got:\n%s", limit, diff)
		}
	}
}

// sorted are errors in the order in which users see them.
func sorted(errs field.ErrorList) []string {
	var all []string
	for _, e := range errs {
		all = append(all, e.Error())
	}
	slices.Sort(all)
	return all
}
