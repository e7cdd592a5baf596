package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestRayPort shows that no engine and no routing sidecar gets the port of the Ray head, and that the port counts for launcher Ray alone.
func TestRayPort(t *testing.T) {
	type want struct {
		Port, EnginePort, RayPort int32
		Errors                    []string
	}
	const (
		plain  = `{spec: {containers: [{name: vllm, image: x, command: [vllm, serve, M]}]}}`
		at9000 = `{spec: {containers: [{name: vllm, image: x, command: [vllm, serve, M, --port, "9000"], ports: [{name: http, containerPort: 9000}]}]}}`
	)
	const declared = `{spec: {containers: [{name: vllm, image: x, command: [vllm, serve, M, --config, /c], ports: [{name: http, containerPort: 9000}]}]}}`
	taken := func(at, port string) []string {
		return []string{at + ": Invalid value: " + port + ": must be another port: the Ray head takes it, by ray.port of the Composition's input"}
	}
	worker, decoder := v1alpha1.ComponentTypeWorker, v1alpha1.ComponentTypeDecoder
	const containers, leaders = "spec.roles[0].template.spec.containers", "spec.roles[0].leaderTemplate.spec.containers"
	cases := map[string]struct {
		reason   string
		kind     v1alpha1.ComponentType
		nodes    int32
		launcher v1alpha1.Launcher
		ray      int32
		template string
		leader   string
		want     want
	}{
		"Default":      {"Ray's own port is no engine's.", worker, 2, v1alpha1.LauncherRay, 6379, plain, "", want{8000, 8000, 6379, nil}},
		"Moved":        {"The engine behind the routing sidecar moves past Ray's port.", decoder, 2, v1alpha1.LauncherRay, 8200, plain, "", want{8000, 8201, 8200, nil}},
		"Engine":       {"Both would listen on it.", worker, 2, v1alpha1.LauncherRay, 8000, plain, "", want{8000, 8000, 8000, taken(containers, "8000")}},
		"Declared":     {"The flag says that the engine listens there.", worker, 2, v1alpha1.LauncherRay, 9000, at9000, "", want{9000, 9000, 9000, taken(containers, "9000")}},
		"Leader":       {"Only leaders start the Ray head.", worker, 2, v1alpha1.LauncherRay, 9000, plain, at9000, want{9000, 9000, 9000, taken(leaders, "9000")}},
		"Sidecar":      {"The routing sidecar is in the pod of the Ray head.", decoder, 2, v1alpha1.LauncherRay, 8000, plain, "", want{8000, 8200, 8000, taken(containers, "8000")}},
		"OneNode":      {"No Ray runs.", worker, 1, v1alpha1.LauncherRay, 9000, declared, "", want{9000, 9000, 0, nil}},
		"OwnRay":       {"The engine's script may start Ray.", worker, 1, v1alpha1.LauncherNone, 6380, `{spec: {containers: [{name: vllm, image: x, command: [/serve.sh], ports: [{containerPort: 6380}, {containerPort: 8080}]}]}}`, "", want{8080, 8080, 0, nil}},
		"OtherStarter": {"No Ray runs.", worker, 2, v1alpha1.LauncherVLLM, 9000, declared, "", want{9000, 9000, 0, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := defaultInput()
			in.Ray.Port = ptr.To(tc.ray)
			role := v1alpha1.Role{Name: "r", ComponentType: tc.kind, Multinode: multinode(tc.nodes, tc.launcher), Template: document(t, tc.template), LeaderTemplate: document(t, tc.leader)}
			r, _, errs := planRole(0, role, loads{}, in, true)
			got := want{r.Port, r.EnginePort, r.RayPort, nil}
			for _, e := range errs {
				got.Errors = append(got.Errors, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPortOfVariable shows that a variable of Kubernetes says the port as well as a number, where its value is known.
func TestPortOfVariable(t *testing.T) {
	type want struct {
		Port, EnginePort int32
		Warnings         []string
	}
	const engine = `{name: vllm, image: x, command: [vllm, serve, M, --kv-transfer-config, X, --port, $(PORT)], env: [{name: PORT, value: "9000"}]`
	const own = `initContainers: [{name: proxy, image: "llm-d-routing-sidecar:v0.7", args: [--port=$(PORT), --enable-ssrf-protection, --inference-pool=a/b], env: [{name: PORT, value: "8080"}]}], `
	const proxy = `{name: proxy, image: nginx, restartPolicy: Always, ports: [{containerPort: 8000}]}`
	worker, decoder := v1alpha1.ComponentTypeWorker, v1alpha1.ComponentTypeDecoder
	cases := map[string]struct {
		reason string
		kind   v1alpha1.ComponentType
		spec   string
		want   want
	}{
		"Worker":     {"Clients go where the engine listens.", worker, `containers: [` + engine + `}]`, want{9000, 9000, nil}},
		"Ports":      {"Of several ports, it is that of the flag.", worker, `containers: [` + engine + `, ports: [{containerPort: 8080}, {containerPort: 9000}]}]`, want{9000, 9000, nil}},
		"Other":      {"The two differ.", worker, `containers: [` + engine + `, ports: [{containerPort: 8000}]}]`, want{8000, 8000, []string{"clients connect to port 8000, but --port makes the engine listen on 9000: use one port for both"}}},
		"Sidecar":    {"The routing sidecar takes the engine's port.", decoder, `containers: [` + engine + `}]`, want{9000, 8200, nil}},
		"OwnSidecar": {"So does one of the user's.", decoder, own + `containers: [` + engine + `}]`, want{8080, 9000, nil}},
		"BehindOwn":  {"The probe asks the engine, and clients the user's routing sidecar.", decoder, own + `containers: [` + engine + `, ports: [{containerPort: 8000}]}]`, want{8080, 8000, []string{"the readiness probe connects to port 8000, but --port makes the engine listen on 9000: use one port for both"}}},
		"OwnProbe":   {"Nobody asks the engine at the port that it lists.", decoder, own + `containers: [` + engine + `, ports: [{containerPort: 8000}], readinessProbe: {exec: {command: [ok]}}}]`, want{8080, 8000, nil}},
		"OwnHTTP":    {"The user's probe may have its reason for that port.", decoder, own + `containers: [` + engine + `, ports: [{containerPort: 8000}], readinessProbe: {httpGet: {path: /health, port: 8000}}}]`, want{8080, 8000, nil}},
		"PortOfOwn":  {"The engine lists the port of the user's routing sidecar.", decoder, own + `containers: [` + engine + `, ports: [{containerPort: 8080}]}]`, want{8080, 8080, nil}},
		"Proxy":      {"Clients connect to a proxy of the user's.", worker, `containers: [` + engine + `, ports: [{name: http, containerPort: 8000}]}, ` + proxy + `]`, want{8000, 8000, nil}},
		"InitProxy":  {"It may start before the engine.", worker, `initContainers: [` + proxy + `], containers: [` + engine + `, ports: [{containerPort: 8000}]}]`, want{8000, 8000, nil}},
		"InitEnds":   {"It has ended when the engine starts.", worker, `initContainers: [{name: first, image: x, ports: [{containerPort: 8000}]}], containers: [` + engine + `, ports: [{containerPort: 8000}]}]`, want{8000, 8000, []string{"clients connect to port 8000, but --port makes the engine listen on 9000: use one port for both"}}},
		"NoProxy":    {"Another container has another port.", worker, `containers: [` + engine + `, ports: [{containerPort: 8001}]}, ` + proxy + `]`, want{8001, 8001, []string{"clients connect to port 8001, but --port makes the engine listen on 9000: use one port for both"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{Name: "r", ComponentType: tc.kind, Template: document(t, `{spec: {`+tc.spec+`}}`)}
			r, warnings, errs := planRole(0, role, loads{}, defaultInput(), true)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := want{r.Port, r.EnginePort, nil}
			for _, w := range warnings {
				got.Warnings = append(got.Warnings, w.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPortOf finds the port that clients of a rendered pod use.
func TestPortOf(t *testing.T) {
	cases := map[string]struct {
		reason, pod string
		want        int32
	}{
		"Default": {"The engine says nothing.", `{containers: [{name: vllm}]}`, 8000},
		"Flag":    {"Its command does.", `{containers: [{name: vllm, args: [m, --port, "8100"]}]}`, 8100},
		"Engine":  {"Another container is before it.", `{containers: [{name: logger, ports: [{containerPort: 9000}]}, {name: vllm}]}`, 8000},
		"Ray":     {"Ray's port serves no requests.", `{containers: [{name: vllm, ports: [{containerPort: 6379}, {containerPort: 8080}]}]}`, 8080},
		"RayHead": {
			"Nor does that of the Ray head which the launcher starts.",
			`{containers: [{name: vllm, command: [/bin/sh, -c], args: ["ray start --head --port=6380 && vllm serve m --port 8100"], ports: [{containerPort: 6380}]}]}`, 8100,
		},
		"Sidecar": {
			"The routing sidecar receives the requests of its engine.",
			`{initContainers: [{name: logs, restartPolicy: Always, ports: [{containerPort: 9000}]}, {name: routing-sidecar-2, image: proxy, restartPolicy: Always, ports: [{containerPort: 8001}]}], containers: [{name: vllm, args: [--port=8200]}]}`, 8001,
		},
		"OwnSidecar": {
			"So does one of the template.",
			`{containers: [{name: vllm, args: [--port=8200]}, {name: proxy, image: llm-d-routing-sidecar:v0.1, ports: [{containerPort: 8002}]}]}`, 8002,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.PodSpec{}
			if err := yaml.UnmarshalStrict([]byte(tc.pod), pod); err != nil {
				t.Fatal(err)
			}
			if got := PortOf(pod); got != tc.want {
				t.Errorf("%s: want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

// TestFreePortOfVariables shows that the engine does not move to a port that a variable gives to something else.
func TestFreePortOfVariables(t *testing.T) {
	cases := map[string]struct {
		reason string
		env    corev1.EnvVar
		want   int32
	}{
		"Taken": {"vLLM offers its KV cache there, and would not start.", corev1.EnvVar{Name: "VLLM_NIXL_SIDE_CHANNEL_PORT", Value: "8200"}, 8201},
		"Other": {"It is another port.", corev1.EnvVar{Name: "VLLM_NIXL_SIDE_CHANNEL_PORT", Value: "5600"}, 8200},
		"Size":  {"It is no port.", corev1.EnvVar{Name: "MAX_TOKENS", Value: "8200"}, 8200},
		"Text":  {"It is no number.", corev1.EnvVar{Name: "ITS_PORT", Value: "$(PORT)"}, 8200},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, freePort(&corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{tc.env}}}}, 8000)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
