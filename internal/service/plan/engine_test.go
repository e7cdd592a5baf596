package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// document reads YAML as the function gets it.
func document(t *testing.T, text string) *kube.Document {
	t.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := protojson.Unmarshal(data, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func defaultInput() *inputv1alpha1.Input {
	in := &inputv1alpha1.Input{}
	inputv1alpha1.Default(in)
	return in
}

const (
	seedWorker = `{spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.11.0", args: [--model, M], ports: [{containerPort: 8000, name: http}], resources: {limits: {example.com/gpu: "8"}}}]}}`
	headM      = "ray start --head --port=6379 && vllm serve --model M --distributed-executor-backend ray"
	joinM      = "ray start --address=$LWS_LEADER_ADDRESS:6379 --block"
)

func multinode(n int32, l v1alpha1.Launcher) *v1alpha1.Multinode {
	return &v1alpha1.Multinode{NodeCount: &n, Launcher: l}
}

// noConnector is said of prefill and decode engines that cannot hand over the KV
// cache.
var noConnector = []Warning{{
	Path:    "spec.roles[1].template.spec.containers[0].args",
	Message: `prefill cannot pass the KV cache to decode: add --kv-transfer-config and {"kv_connector":"NixlConnector","kv_role":"kv_both"}, as two elements, to both roles`,
}}

func TestPlanRole(t *testing.T) {
	// Of the two templates, what is decided about them is compared.
	type pod struct {
		Engine        int
		Command, Args []string
		Env           []string
		Headless      bool
		SharedMemory  bool
	}
	type want struct {
		role           Role
		leader, worker pod
		resources      map[string]string
		warnings       []Warning
	}
	shell := []string{"/bin/sh", "-c"}
	nixlEnv := []string{"VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDE_CHANNEL_PORT"}
	sglangSidecar := &Sidecar{Image: inputv1alpha1.DefaultSidecarImage, Connector: "sglang", PoolOnly: true, ServiceAccount: "default"}
	sidecar := &Sidecar{Image: inputv1alpha1.DefaultSidecarImage, Connector: inputv1alpha1.DefaultKVConnector, PoolOnly: true, ServiceAccount: "default"}
	cases := map[string]struct {
		reason   string
		role     v1alpha1.Role
		template string
		leader   string
		input    func(*inputv1alpha1.Input)
		pairs    bool
		want     want
	}{
		"Worker": {
			reason:   "One node needs no launcher, and only shared memory is added.",
			role:     v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker},
			template: seedWorker,
			want: want{
				role:      Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8000},
				leader:    pod{SharedMemory: true},
				worker:    pod{SharedMemory: true},
				resources: map[string]string{"example.com/gpu": "8"},
			},
		},
		"OneNode": {
			reason:   "nodeCount 1 is the same as none, and needs no leader of its own.",
			role:     v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](0), Multinode: multinode(1, v1alpha1.LauncherRay)},
			template: seedWorker,
			leader:   seedWorker,
			want: want{
				role:      Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Nodes: 1, Port: 8000, EnginePort: 8000},
				leader:    pod{SharedMemory: true},
				worker:    pod{SharedMemory: true},
				resources: map[string]string{"example.com/gpu": "8"},
				warnings:  []Warning{{Path: "spec.roles[1].leaderTemplate", Message: "has no effect: a replica on one node uses template"}},
			},
		},
		"Ray": {
			reason:   "The leader starts Ray and the engine, workers join.",
			role:     v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](2), Multinode: multinode(4, v1alpha1.LauncherRay)},
			template: seedWorker,
			want: want{
				role:      Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 2, Nodes: 4, Port: 8000, EnginePort: 8000, RayPort: 6379},
				leader:    pod{Command: shell, Args: []string{headM}, SharedMemory: true},
				worker:    pod{Command: shell, Args: []string{joinM}, SharedMemory: true, Headless: true},
				resources: map[string]string{"example.com/gpu": "32"},
			},
		},
		"None": {
			reason:   "The user's own commands: nothing is known of their ports and probes.",
			role:     v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker, Multinode: multinode(2, v1alpha1.LauncherNone)},
			template: seedWorker,
			want: want{
				role:      Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 1, Nodes: 2, Port: 8000, EnginePort: 8000},
				leader:    pod{SharedMemory: true},
				worker:    pod{SharedMemory: true},
				resources: map[string]string{"example.com/gpu": "16"},
				warnings: []Warning{{
					Path:    "spec.roles[1].multinode.launcher",
					Message: "each of the 2 pods starts vLLM with the whole model, because nothing connects them: set launcher: VLLM, or tell the engine of the other nodes by its flags and $(LWS_LEADER_ADDRESS)",
				}},
			},
		},
		"SidecarFirst": {
			reason:   "The engine is found behind another container, and its other ports are not the serving one.",
			role:     v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker, Multinode: multinode(2, v1alpha1.LauncherVLLM)},
			template: `{spec: {containers: [{name: logs, image: fluent, ports: [{containerPort: 24224}]}, {name: main, image: mine, args: [--port, "9001"], ports: [{containerPort: 6379}, {containerPort: 5600, protocol: UDP}, {containerPort: 9000}, {containerPort: 9001}], volumeMounts: [{name: shm, mountPath: /dev/shm/}]}], volumes: [{name: shm, emptyDir: {}}]}}`,
			want: want{
				role:      Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 1, Nodes: 2, Port: 9001, EnginePort: 9001},
				leader:    pod{Engine: 1, Args: []string{"--port", "9001", "--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)"}},
				worker:    pod{Engine: 1, Args: []string{"--port", "9001", "--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(LWS_WORKER_INDEX)", "--master-addr", "$(LWS_LEADER_ADDRESS)", "--headless"}, Headless: true},
				resources: map[string]string{},
			},
		},
		"LeaderTemplate": {
			reason:   "A leader of its own, with other needs.",
			role:     v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker, Multinode: multinode(3, v1alpha1.LauncherRay)},
			template: `{spec: {containers: [{name: vllm, image: vllm-openai, resources: {requests: {cpu: 500m}}}]}}`,
			leader:   `{spec: {hostIPC: true, containers: [{name: logs, image: vllm-openai}, {name: vllm, image: vllm-openai, args: [--model, M], ports: [{containerPort: 8001, name: http}], resources: {requests: {cpu: "1"}}}]}}`,
			want: want{
				role:      Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 1, Nodes: 3, Port: 8001, EnginePort: 8001, RayPort: 6379},
				leader:    pod{Engine: 1, Command: shell, Args: []string{headM}},
				worker:    pod{Command: shell, Args: []string{joinM}, SharedMemory: true, Headless: true},
				warnings:  []Warning{{"spec.roles[1].leaderTemplate.spec.containers[1].ports", "clients connect to port 8001, but vLLM listens on 8000 without --port: set --port 8001, or name the port of vLLM http"}},
				resources: map[string]string{"cpu": "2"},
			},
		},
		"Prefill": {
			reason:   "Prefill pods serve themselves; the environment that is there is kept.",
			role:     v1alpha1.Role{Name: "p", ComponentType: v1alpha1.ComponentTypePrefiller},
			template: `{spec: {containers: [{name: prefill, image: vllm/vllm-openai, args: [M], env: [{name: VLLM_NIXL_SIDE_CHANNEL_PORT, value: "5700"}]}]}}`,
			pairs:    true,
			want: want{
				role:      Role{Name: "p", Type: v1alpha1.ComponentTypePrefiller, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8000, PodLabels: map[string]string{"llm-d.ai/role": "prefill"}},
				leader:    pod{SharedMemory: true, Env: nixlEnv[:1]},
				worker:    pod{SharedMemory: true, Env: nixlEnv[:1]},
				resources: map[string]string{},
				warnings:  noConnector,
			},
		},
		"Decode": {
			reason:   "A decode leader has the sidecar in front, whose resources count once.",
			role:     v1alpha1.Role{Name: "d", ComponentType: v1alpha1.ComponentTypeDecoder, Multinode: multinode(2, v1alpha1.LauncherRay)},
			template: seedWorker,
			input: func(in *inputv1alpha1.Input) {
				in.Sidecar.Resources = &corev1.ResourceRequirements{Requests: resources("cpu", "1")}
			},
			pairs: true,
			want: want{
				role: Role{
					Name: "d", Type: v1alpha1.ComponentTypeDecoder, Replicas: 1, Nodes: 2, Port: 8000, EnginePort: 8200, RayPort: 6379,
					Sidecar:   &Sidecar{Image: inputv1alpha1.DefaultSidecarImage, Connector: inputv1alpha1.DefaultKVConnector, PoolOnly: true, ServiceAccount: "default", Resources: &corev1.ResourceRequirements{Requests: resources("cpu", "1")}},
					PodLabels: map[string]string{"llm-d.ai/role": "decode"},
				},
				leader:    pod{Command: shell, Args: []string{"ray start --head --port=6379 && vllm serve --model M --port 8200 --distributed-executor-backend ray"}, SharedMemory: true, Env: nixlEnv},
				worker:    pod{Command: shell, Args: []string{joinM}, SharedMemory: true, Headless: true, Env: nixlEnv},
				resources: map[string]string{"example.com/gpu": "16", "cpu": "1"},
				warnings:  noConnector,
			},
		},
		"DecodeOnOneNode": {
			reason:   "Without a launcher only the port moves, past one that is taken.",
			role:     v1alpha1.Role{Name: "d", ComponentType: v1alpha1.ComponentTypeDecoder},
			template: `{spec: {containers: [{name: decode, image: vllm/vllm-openai, args: [--model, M]}, {name: logs, image: x, ports: [{containerPort: 8200}]}]}}`,
			pairs:    true,
			want: want{
				role:      Role{Name: "d", Type: v1alpha1.ComponentTypeDecoder, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8201, Sidecar: sidecar, PodLabels: map[string]string{"llm-d.ai/role": "decode"}},
				leader:    pod{Args: []string{"--model", "M", "--port", "8201"}, SharedMemory: true, Env: nixlEnv},
				worker:    pod{SharedMemory: true, Env: nixlEnv},
				resources: map[string]string{},
				warnings:  noConnector,
			},
		},
		"DecodeWithItsOwnSidecar": {
			reason:   "A routing sidecar of the user's stays the only one.",
			role:     v1alpha1.Role{Name: "d", ComponentType: v1alpha1.ComponentTypeDecoder},
			template: `{spec: {initContainers: [{name: proxy, image: "ghcr.io/llm-d/llm-d-routing-sidecar:v0.7", args: [--port=8080]}], containers: [{name: vllm, image: vllm-openai, args: [M, --port, "8200"]}]}}`,
			pairs:    true,
			want: want{
				role:      Role{Name: "d", Type: v1alpha1.ComponentTypeDecoder, Replicas: 1, Nodes: 1, Port: 8080, EnginePort: 8200, PodLabels: map[string]string{"llm-d.ai/role": "decode"}},
				leader:    pod{SharedMemory: true, Env: nixlEnv},
				worker:    pod{SharedMemory: true, Env: nixlEnv},
				resources: map[string]string{},
				warnings: append([]Warning{{
					Path:    "spec.roles[1].template.spec",
					Message: "container proxy sends prefill requests wherever a client's header x-prefiller-host-port says: add --enable-ssrf-protection and --inference-pool={namespace}/{pool}, and let its service account list and watch the pool and pods",
				}}, noConnector...),
			},
		},
		"DecodeWithItsOwnProtectedSidecar": {
			reason:   "One that looks at the pool needs no warning.",
			role:     v1alpha1.Role{Name: "d", ComponentType: v1alpha1.ComponentTypeDecoder},
			template: `{spec: {initContainers: [{name: proxy, image: "ghcr.io/llm-d/llm-d-routing-sidecar:v0.7", args: [--port=8080, --enable-ssrf-protection, --inference-pool=ns/svc-pool]}], containers: [{name: vllm, image: vllm-openai, args: [M, --port, "8200"]}]}}`,
			pairs:    true,
			want: want{
				role:      Role{Name: "d", Type: v1alpha1.ComponentTypeDecoder, Replicas: 1, Nodes: 1, Port: 8080, EnginePort: 8200, PodLabels: map[string]string{"llm-d.ai/role": "decode"}},
				leader:    pod{SharedMemory: true, Env: nixlEnv},
				worker:    pod{SharedMemory: true, Env: nixlEnv},
				resources: map[string]string{},
				warnings:  noConnector,
			},
		},
		"DecodeWithConnector": {
			reason:   "Nothing is missing where the engine has a KV connector, from its arguments or the environment.",
			role:     v1alpha1.Role{Name: "d", ComponentType: v1alpha1.ComponentTypePrefiller},
			template: `{spec: {containers: [{name: vllm, image: vllm-openai, args: [M], env: [{name: VLLM_ARGS, value: "--kv-transfer-config {}"}]}]}}`,
			pairs:    true,
			want: want{
				role:      Role{Name: "d", Type: v1alpha1.ComponentTypePrefiller, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8000, PodLabels: map[string]string{"llm-d.ai/role": "prefill"}},
				leader:    pod{SharedMemory: true, Env: nixlEnv},
				worker:    pod{SharedMemory: true, Env: nixlEnv},
				resources: map[string]string{},
			},
		},
		"DecodeAlone": {
			reason:   "Without prefill pods there is nothing to route between.",
			role:     v1alpha1.Role{Name: "d", ComponentType: v1alpha1.ComponentTypeDecoder},
			template: seedWorker,
			want: want{
				role:      Role{Name: "d", Type: v1alpha1.ComponentTypeDecoder, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8000},
				leader:    pod{SharedMemory: true},
				worker:    pod{SharedMemory: true},
				resources: map[string]string{"example.com/gpu": "8"},
			},
		},
		"SGLangDecode": {
			reason:   "The variables of vLLM are for vLLM.",
			role:     v1alpha1.Role{Name: "d", ComponentType: v1alpha1.ComponentTypeDecoder},
			template: `{spec: {containers: [{name: x, image: vllm-and-sglang, command: [python3, -m, sglang.launch_server], args: [--model-path, M, --disaggregation-mode, decode, --host, 0.0.0.0, --port, "8000"]}]}}`,
			pairs:    true,
			want: want{
				role:      Role{Name: "d", Type: v1alpha1.ComponentTypeDecoder, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8200, Sidecar: sglangSidecar, PodLabels: map[string]string{"llm-d.ai/role": "decode", "inference.networking.k8s.io/engine-type": "sglang"}},
				leader:    pod{Command: []string{"python3", "-m", "sglang.launch_server"}, Args: []string{"--model-path", "M", "--disaggregation-mode", "decode", "--host", "0.0.0.0", "--port", "8200"}, SharedMemory: true},
				worker:    pod{SharedMemory: true},
				resources: map[string]string{},
			},
		},
		"SGLang": {
			reason:   "Endpoint pickers would look for vLLM's metrics otherwise.",
			role:     v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker},
			template: `{spec: {containers: [{name: x, image: x, command: [python3, -m, sglang.launch_server], args: [--model-path, M, --host, 0.0.0.0, --port, "8000"]}]}}`,
			want: want{
				role:   Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8000, PodLabels: map[string]string{"inference.networking.k8s.io/engine-type": "sglang"}},
				leader: pod{SharedMemory: true}, worker: pod{SharedMemory: true},
				resources: map[string]string{},
			},
		},
		"SGLangSaidByUser": {
			reason:   "The user has said so by a label that llm-d's endpoint picker reads.",
			role:     v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker},
			template: `{metadata: {labels: {llm-d.ai/engine-type: sglang}}, spec: {containers: [{name: x, image: x, command: [python3, -m, sglang.launch_server], args: [--model-path, M, --host, 0.0.0.0, --port, "8000"]}]}}`,
			want: want{
				role:   Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8000},
				leader: pod{SharedMemory: true}, worker: pod{SharedMemory: true},
				resources: map[string]string{},
			},
		},
		"MoreNodes": {
			reason:   "Without a launcher the user is in charge, and hears of what can hardly be meant.",
			role:     v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker},
			template: `{spec: {containers: [{name: vllm, image: vllm-openai, args: [M, --nnodes, "2"]}]}}`,
			want: want{
				role:   Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8000},
				leader: pod{SharedMemory: true}, worker: pod{SharedMemory: true},
				resources: map[string]string{},
				warnings: []Warning{{
					Path:    "spec.roles[1].template.spec.containers[0].args",
					Message: "--nnodes 2 makes the engine wait for more nodes than the 1 of the replica: set multinode.nodeCount to the same number",
				}},
			},
		},
		"Mistyped": {
			reason:   "Arguments that cannot be parsed, and ports that contradict each other, are passed on with a warning.",
			role:     v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker},
			template: `{spec: {containers: [{name: vllm, image: x, command: [vllm, serve], args: ["--kv-transfer-config '{\"a\":1}'", "--x='y'", --port, "8001"], ports: [{containerPort: 8000}]}]}}`,
			want: want{
				role:      Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 1, Nodes: 1, Port: 8000, EnginePort: 8000},
				leader:    pod{SharedMemory: true},
				worker:    pod{SharedMemory: true},
				resources: map[string]string{},
				warnings: []Warning{
					{Path: "spec.roles[1].template.spec.containers[0].args[0]", Message: `no shell splits this element into a flag and its value, so the engine cannot parse it: write two elements, --kv-transfer-config and {"a":1}, without quotes around the value, or one of the form --kv-transfer-config=value`},
					{Path: "spec.roles[1].template.spec.containers[0].args[1]", Message: "no shell removes the quotes, so the engine receives them: write --x=y"},
					{Path: "spec.roles[1].template.spec.containers[0].ports", Message: "clients connect to port 8000, but --port makes the engine listen on 8001: use one port for both"},
				},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := defaultInput()
			if tc.input != nil {
				tc.input(in)
			}
			tc.role.Template, tc.role.LeaderTemplate = document(t, tc.template), document(t, tc.leader)
			got, warnings, errs := planRole(1, tc.role, loads{}, in, tc.pairs)
			if len(errs) > 0 {
				t.Fatalf("%s: %v", tc.reason, errs)
			}
			tc.want.role.Recovery = v1alpha1.RecoverRole // The default.
			if diff := cmp.Diff(tc.want.role, *got, cmpopts.IgnoreUnexported(Role{}), cmpopts.IgnoreFields(Role{}, "Leader", "Worker")); diff != "" {
				t.Errorf("%s\nrole: -want, +got:\n%s", tc.reason, diff)
			}
			view := func(p PodTemplate) pod {
				v := pod{Engine: p.Engine, Command: p.Command, Args: p.Args, Headless: p.Headless, SharedMemory: p.SharedMemory}
				for _, e := range p.Env {
					v.Env = append(v.Env, e.Name)
				}
				return v
			}
			if diff := cmp.Diff(tc.want.leader, view(got.Leader), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nleader: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.worker, view(got.Worker), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nworker: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.resources, written(got.replicaResources)); diff != "" {
				t.Errorf("%s\nresources: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.warnings, warnings); diff != "" {
				t.Errorf("%s\nwarnings: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlanRoleRefuses(t *testing.T) {
	cases := map[string]struct {
		reason   string
		role     v1alpha1.Role
		template string
		leader   string
		pairs    bool
		want     []string
	}{
		"NoPodTemplate": {
			reason:   "A pod spec is not a pod template.",
			template: `{containers: [{name: vllm, image: x}]}`,
			want: []string{
				"spec.roles[0].template.containers: Forbidden: unknown field (did you mean spec.roles[0].template.spec.containers?): Kubernetes 1.36 has none of that name",
				"spec.roles[0].template.spec.containers: Required value: a pod template has at least one container",
			},
		},
		"NoContainers": {
			reason:   "Nothing would run.",
			template: `{spec: {containers: []}}`,
			want:     []string{"spec.roles[0].template.spec.containers: Required value: a pod template has at least one container"},
		},
		"WrongTypes": {
			reason:   "Every value of a wrong type is named, in both templates.",
			role:     v1alpha1.Role{Multinode: multinode(2, v1alpha1.LauncherRay)},
			template: `{metadata: {labels: {a: 1}}, spec: {containers: [{name: vllm, image: x, args: [8000], ports: [{containerPort: "8000"}]}]}}`,
			leader:   `{spec: {containers: {}}}`,
			want: []string{
				`spec.roles[0].template.metadata.labels[a]: Invalid value: 1: must be a string`,
				`spec.roles[0].template.spec.containers[0].args[0]: Invalid value: 8000: must be a string`,
				`spec.roles[0].template.spec.containers[0].ports[0].containerPort: Invalid value: "8000": must be a whole number`,
				`spec.roles[0].leaderTemplate.spec.containers: Invalid value: "{...}": must be a list`,
			},
		},
		"NoSpec": {
			reason:   "A spec of the wrong type.",
			template: `{spec: vllm}`,
			want:     []string{`spec.roles[0].template.spec: Invalid value: "vllm": must be an object`},
		},
		"WhichEngine": {
			reason:   "The function does not guess which container is the engine.",
			template: `{spec: {containers: [{name: a, image: x}, {name: b, image: x}]}}`,
			want:     []string{`spec.roles[0].template.spec.containers: Invalid value: "a, b": cannot tell which of these containers is the engine: name the engine's container vllm, sglang or engine, or give it a port named http`},
		},
		"Launcher": {
			reason:   "What a launcher cannot do is said once, where it is written.",
			role:     v1alpha1.Role{Multinode: multinode(2, v1alpha1.LauncherVLLM)},
			template: `{spec: {containers: [{name: logs, image: x}, {name: vllm, image: x, command: [sh, -c], args: ["vllm serve M | tee log"]}]}}`,
			want:     []string{`spec.roles[0].template.spec.containers[1].args: Invalid value: "vllm serve M | tee log": launcher VLLM adds flags to the engine's command, which it cannot find in this script: make the engine's command the script's last line and leave out conditions, loops, functions, backquotes and here-documents, run the engine without a shell, or set launcher: None and tell leader and workers apart by $LWS_WORKER_INDEX`},
		},
		"NoScript": {
			reason:   "A shell without a script, in any container; a launcher does not speak of it as well.",
			role:     v1alpha1.Role{Multinode: multinode(2, v1alpha1.LauncherRay)},
			template: `{spec: {initContainers: [{name: init, image: x, command: [sh, -c, ""]}], containers: [{name: vllm, image: x, command: [bash, -lc]}]}}`,
			want: []string{
				`spec.roles[0].template.spec.initContainers[0].command: Invalid value: "sh -c ": a shell with -c needs a script as the next argument: add it as one element of args`,
				`spec.roles[0].template.spec.containers[0].command: Invalid value: "bash -lc": a shell with -c needs a script as the next argument: add it as one element of args`,
			},
		},
		"NodeCount": {
			reason:   "A number of nodes that is not the replica's is said once.",
			role:     v1alpha1.Role{Multinode: multinode(2, v1alpha1.LauncherVLLM)},
			template: `{spec: {containers: [{name: vllm, image: x, args: [--nnodes, "4"]}]}}`,
			want:     []string{`spec.roles[0].template.spec.containers[0].args: Invalid value: "--nnodes 4": --nnodes 4 contradicts multinode.nodeCount, which is 2: leave the flag out, launcher VLLM sets it`},
		},
		"Ranks": {
			reason:   "Leader and workers that count different ranks wait for each other for ever.",
			role:     v1alpha1.Role{Multinode: multinode(2, v1alpha1.LauncherVLLMDataParallel)},
			leader:   `{spec: {containers: [{name: vllm, image: x, args: [-dp=16]}]}}`,
			template: `{spec: {containers: [{name: vllm, image: x, args: [-dpl=4]}]}}`,
			want:     []string{`spec.roles[0].template.spec.containers[0].args: Invalid value: "-dpl=4": each node has as many data-parallel ranks, and workers have 4 here while the leader has 8 in leaderTemplate: set the same --data-parallel-size-local in both`},
		},
		"Port": {
			reason:   "A decode engine that cannot move out of the sidecar's way.",
			role:     v1alpha1.Role{ComponentType: v1alpha1.ComponentTypeDecoder},
			template: `{spec: {containers: [{name: vllm, image: x, command: [/start.sh]}]}}`,
			pairs:    true,
			want:     []string{`spec.roles[0].template.spec.containers[0].command: Invalid value: "/start.sh": the routing sidecar takes the serving port, so the engine has to listen on 8200, and it is unknown how "/start.sh" takes its port: add --port`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.role.Template, tc.role.LeaderTemplate = document(t, tc.template), document(t, tc.leader)
			r, _, errs := planRole(0, tc.role, loads{}, defaultInput(), tc.pairs)
			if r == nil {
				t.Errorf("%s: want a role beside the errors", tc.reason)
			}
			var got []string
			for _, e := range errs {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEngineOfImage shows which engine an image is taken for, where no command and no name of a container says it.
func TestEngineOfImage(t *testing.T) {
	cases := map[string]struct {
		reason string
		image  string
		want   launch.Engine
	}{
		"VLLM":      {"Its own image.", "vllm/vllm-openai:v0.11.0", launch.EngineVLLM},
		"SGLang":    {"Its own image.", "lmsysorg/sglang:v0.5.5", launch.EngineSGLang},
		"LLMD":      {"llm-d's images have vLLM.", "ghcr.io/llm-d/llm-d-cuda:v0.3.0", launch.EngineVLLM},
		"Mirror":    {"The last element says more than those before it.", "harbor.corp/vllm/sglang:v0.5.5", launch.EngineSGLang},
		"Directory": {"Without it they tell the engine.", "harbor.corp/sglang/server:v1", launch.EngineSGLang},
		"Unknown":   {"Nothing names an engine.", "registry.corp/server:v1", launch.EngineUnknown},
		"Tag":       {"A tag names the engine where the repository does not.", "registry.corp/tritonserver:25.01-vllm-python-py3", launch.EngineVLLM},
		"NameFirst": {"The repository says more than the tag.", "registry.corp/sglang:v0.5.5-vllm", launch.EngineSGLang},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{Name: "w", ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, "{spec: {containers: [{name: engine, image: '"+tc.image+"'}]}}")}
			r, _, _ := planRole(0, role, loads{}, defaultInput(), false)
			if diff := cmp.Diff(tc.want, r.engine); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFindEngine(t *testing.T) {
	c := func(name string, more ...func(*corev1.Container)) corev1.Container {
		c := corev1.Container{Name: name}
		for _, f := range more {
			f(&c)
		}
		return c
	}
	port := func(n int32, name string) func(*corev1.Container) {
		return func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: n, Name: name}} }
	}
	cases := map[string]struct {
		reason     string
		containers []corev1.Container
		want       int
	}{
		"Only":    {"One container is the engine.", []corev1.Container{c("a")}, 0},
		"Command": {"Its command says most.", []corev1.Container{c("vllm"), c("a", func(c *corev1.Container) { c.Command = []string{"bash", "-c", "exec vllm serve M"} })}, 1},
		"Name":    {"A known name, though another one has a port named http.", []corev1.Container{c("proxy", port(8080, "http")), c("vllm")}, 1},
		"Image":   {"A known image.", []corev1.Container{c("a"), c("b", func(c *corev1.Container) { c.Image = "example.org/x/my-vllm:1" })}, 1},
		"Port":    {"The serving port.", []corev1.Container{c("a", port(9090, "metrics")), c("b", port(8000, ""))}, 1},
		"GPU":     {"The one with devices.", []corev1.Container{c("a"), c("b", func(c *corev1.Container) { c.Resources.Limits = resources("amd.com/gpu", "1") })}, 1},
		"Narrow":  {"Two that have known names are told apart by the next hint.", []corev1.Container{c("server"), c("main", port(9000, "http")), c("x", port(8000, "http"))}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := findEngine(tc.containers)
			if err != nil || got != tc.want {
				t.Errorf("%s\nwant %d, got %d (%t)", tc.reason, tc.want, got, err != nil)
			}
		})
	}
}

// TestPlanRoleAnyType makes sure that what the validation refuses elsewhere does
// no harm here: roles are planned before the answer is refused.
func TestPlanRoleAnyType(t *testing.T) {
	for _, n := range []int32{-1, 0, 1, 2, 2147483647} {
		for _, l := range []v1alpha1.Launcher{"", "Nobody", v1alpha1.LauncherRay} {
			role := v1alpha1.Role{Name: strings.Repeat("x", 100), ComponentType: "nothing", Replicas: ptr.To(n), Multinode: multinode(n, l), Template: document(t, seedWorker)}
			if r, _, _ := planRole(0, role, loads{}, defaultInput(), true); r == nil || r.Nodes < 1 {
				t.Errorf("nodeCount %d, launcher %q: got %v", n, l, r)
			}
			role.Template = nil
			if r, _, _ := planRole(0, role, loads{}, defaultInput(), true); r == nil {
				t.Errorf("nodeCount %d, launcher %q without a template: want a role", n, l)
			}
		}
	}
}
