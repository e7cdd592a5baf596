package plan

import (
	stdcmp "cmp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestShutdownTimeout shows which engines are told to finish requests after SIGTERM.
func TestShutdownTimeout(t *testing.T) {
	cases := map[string]struct {
		reason, image, pod string
		args               string
		role               v1alpha1.Role
		want               string
	}{
		"Release":   {reason: "The tag says that the release has the flag.", image: "vllm/vllm-openai:v0.19.0", want: "--model m --shutdown-timeout 25"},
		"Mirror":    {reason: "So does that of a copy.", image: "example.com/vllm-openai:v0.27.1@sha256:00", want: "--model m --shutdown-timeout 25"},
		"Older":     {reason: "It would not start.", image: "vllm/vllm-openai:v0.11.0", want: "--model m"},
		"Latest":    {reason: "Nobody knows which release that is.", image: "vllm/vllm-openai:latest", want: "--model m"},
		"OwnImage":  {reason: "Nor does the tag of another image say it.", image: "example.com/mine:v0.27.1", want: "--model m"},
		"Own":       {reason: "The user's value stays.", image: "vllm/vllm-openai:v0.19.0", args: ", --shutdown-timeout=5", want: "--model m --shutdown-timeout=5"},
		"Config":    {reason: "The file may say it.", image: "vllm/vllm-openai:v0.19.0", args: ", --config=/c", want: "--model m --config=/c"},
		"Longer":    {reason: "It follows the time that the pod has.", image: "vllm/vllm-openai:v0.19.0", role: v1alpha1.Role{Lifecycle: &v1alpha1.Lifecycle{ShutdownSeconds: ptr.To[int32](60)}}, want: "--model m --shutdown-timeout 55"},
		"OwnGrace":  {reason: "So it does if the template says it.", image: "vllm/vllm-openai:v0.19.0", pod: "terminationGracePeriodSeconds: 20, ", want: "--model m --shutdown-timeout 15"},
		"NoTime":    {reason: "There is no time to finish anything.", image: "vllm/vllm-openai:v0.19.0", pod: "terminationGracePeriodSeconds: 5, ", want: "--model m"},
		"TwoNodes":  {reason: "The workers end at the same time.", image: "vllm/vllm-openai:v0.19.0", role: v1alpha1.Role{Multinode: multinode(2, v1alpha1.LauncherNone)}, want: "--model m"},
		"OtherName": {reason: "The function does not know what it starts.", image: "vllm/vllm-openai:v0.19.0", args: "], command: [./start", want: "--model m"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := tc.role
			role.Name, role.ComponentType = "w", v1alpha1.ComponentTypeWorker
			role.Template = document(t, `{spec: {`+tc.pod+`containers: [{name: engine, image: "`+tc.image+`", args: [--model, m`+tc.args+`]}]}}`)
			r, _, errs := planRole(0, role, loads{}, defaultInput(), false)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(tc.want, strings.Join(r.Leader.engine().Args, " ")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLifecycle(t *testing.T) {
	type want struct {
		Probe              *Probe
		Drain, Grace       int32
		WorkerProbe        *Probe
		WorkerDrain        int32
		WarnsOfNoReadiness bool
	}
	hour := func(port int32) *Probe {
		return &Probe{Port: port, TimeoutSeconds: 5, PeriodSeconds: 5, StartupSeconds: 3600}
	}
	cases := map[string]struct {
		reason    string
		role      v1alpha1.Role
		container string
		pod       string
		want      want
	}{
		"VLLM": {
			reason:    "vLLM answers at /health on its port.",
			container: `{name: engine, image: x, command: [vllm, serve, /m, --port, "9000"]}`,
			want:      want{Probe: hour(9000), Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"SGLang": {
			reason:    "So does SGLang, which takes longer to answer.",
			container: `{name: engine, image: x, command: [python3, -m, sglang.launch_server, --host, 0.0.0.0, --port, "30000"]}`,
			want:      want{Probe: &Probe{Port: 30000, TimeoutSeconds: 30, PeriodSeconds: 10, StartupSeconds: 3600}, Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"Entrypoint": {
			reason:    "The entrypoint of vLLM's image is vllm serve.",
			container: `{name: engine, image: "mirror.example.com/vllm/vllm-openai:v0.11.0@sha256:00", args: [--model, m]}`,
			want:      want{Probe: hour(8000), Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"TLS": {
			reason:    "An engine with a certificate serves TLS only.",
			container: `{name: engine, image: x, command: [vllm, serve, /m, --ssl-certfile=/c]}`,
			want:      want{Probe: &Probe{Port: 8000, TimeoutSeconds: 5, PeriodSeconds: 5, HTTPS: true, StartupSeconds: 3600}, Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"Socket": {
			reason:    "On a Unix socket nothing can be probed.",
			container: `{name: engine, image: x, command: [vllm, serve, /m, --uds, /s]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"Headless": {
			reason:    "Nor can a part of an engine whose head is elsewhere. It would never be ready, and be stopped after an hour.",
			container: `{name: engine, image: x, command: [vllm, serve, /m, --headless, --data-parallel-address, head]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"Localhost": {
			reason:    "Nor can what listens on localhost.",
			container: `{name: engine, image: x, command: [vllm, serve, /m, --host, 127.0.0.1]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"GRPC": {
			reason:    "vLLM's gRPC server speaks no HTTP.",
			container: `{name: engine, image: x, command: [python3, -m, vllm.entrypoints.grpc_server]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"TLSInScript": {
			reason:    "A script says it as well.",
			container: `{name: engine, image: x, command: [sh, -c, "exec vllm serve /m --ssl-certfile=/c"]}`,
			want:      want{Probe: &Probe{Port: 8000, TimeoutSeconds: 5, PeriodSeconds: 5, HTTPS: true, StartupSeconds: 3600}, Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"TLSWithUnderscore": {
			reason:    "vLLM takes both spellings.",
			container: `{name: engine, image: x, command: [vllm, serve, /m, --ssl_certfile=/c]}`,
			want:      want{Probe: &Probe{Port: 8000, TimeoutSeconds: 5, PeriodSeconds: 5, HTTPS: true, StartupSeconds: 3600}, Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"SocketInScript": {
			reason:    "So does a script on a Unix socket.",
			container: `{name: engine, image: x, command: [sh, -c, "exec vllm serve /m --uds /s"]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"LocalhostInScript": {
			reason:    "And one on localhost.",
			container: `{name: engine, image: x, command: [sh, -c, "exec vllm serve /m --host 127.0.0.1"]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"SGLangOnLocalhost": {
			reason:    "SGLang listens on localhost unless a flag says otherwise.",
			container: `{name: engine, image: x, command: [python3, -m, sglang.launch_server, --port, "8000"]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"SGLangLauncher": {
			reason:    "The launcher adds host and port.",
			role:      v1alpha1.Role{Multinode: multinode(2, v1alpha1.LauncherSGLang)},
			container: `{name: engine, image: x, command: [python3, -m, sglang.launch_server]}`,
			want:      want{Probe: &Probe{Port: 8000, TimeoutSeconds: 30, PeriodSeconds: 10, StartupSeconds: 3600}, Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"SGLangPort": {
			reason:    "SGLang listens on port 30000 unless a flag says otherwise.",
			container: `{name: engine, image: x, command: [python3, -m, sglang.launch_server, --host, 0.0.0.0]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"GRPCModel": {
			reason:    "A model may have any name.",
			container: `{name: engine, image: x, command: [vllm, serve, /models/grpc-bert]}`,
			want:      want{Probe: hour(8000), Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"File": {
			reason:    "The file may say the port.",
			container: `{name: engine, image: x, command: [vllm, serve, --config, /c]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"FileAndPort": {
			reason:    "The command line has the last word.",
			container: `{name: engine, image: x, command: [vllm, serve, --config, /c, --port, '9000']}`,
			want:      want{Probe: hour(9000), Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"FileAndContainerPort": {
			reason:    "So has the port of the container.",
			container: `{name: engine, image: x, command: [vllm, serve, --config, /c], ports: [{containerPort: 9000}]}`,
			want:      want{Probe: hour(9000), Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"PortOfVariable": {
			reason:    "The value of a variable is known.",
			container: `{name: engine, image: x, command: [vllm, serve, /m, --port, $(PORT)], env: [{name: PORT, value: "9000"}]}`,
			want:      want{Probe: hour(9000), Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"PortOfVariableInScript": {
			reason:    "Kubernetes expands it in a script, too.",
			container: `{name: engine, image: x, command: [sh, -c, "exec vllm serve /m --port=$(PORT)"], env: [{name: PORT, value: "9000"}]}`,
			want:      want{Probe: hour(9000), Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"PortOfObject": {
			reason:    "A value that only the cluster has is not known.",
			container: `{name: engine, image: x, command: [vllm, serve, /m, --port, $(PORT)], env: [{name: PORT, valueFrom: {configMapKeyRef: {name: c, key: port}}}]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"PortOfObjectAndContainerPort": {
			reason:    "The port of the container says it.",
			container: `{name: engine, image: x, command: [vllm, serve, /m, --port, $(PORT)], env: [{name: PORT, valueFrom: {configMapKeyRef: {name: c, key: port}}}], ports: [{containerPort: 9000}]}`,
			want:      want{Probe: hour(9000), Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"PortOfShell": {
			reason:    "A shell may change a variable before it starts the engine.",
			container: `{name: engine, image: x, command: [sh, -c, "PORT=9001; exec vllm serve /m --port $PORT"], env: [{name: PORT, value: "9000"}]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"SGLangLauncherWithPortOfObject": {
			reason:    "The launcher adds no port beside that of the user.",
			role:      v1alpha1.Role{Multinode: multinode(2, v1alpha1.LauncherSGLang)},
			container: `{name: engine, image: x, command: [python3, -m, sglang.launch_server, --port=$(PORT)], envFrom: [{configMapRef: {name: c}}]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"ShortGrace": {
			reason:    "A grace period that leaves no time to wait stays as well.",
			pod:       "terminationGracePeriodSeconds: 30, ",
			container: `{name: engine, image: x, command: [vllm, serve, /m]}`,
			want:      want{Probe: hour(8000)},
		},
		"RayAlone": {
			reason:    "Ray starts any program.",
			role:      v1alpha1.Role{Multinode: multinode(2, v1alpha1.LauncherRay)},
			container: `{name: engine, image: x, command: [python3, serve.py]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"Unknown": {
			reason:    "What an unknown engine answers is not known.",
			container: `{name: engine, image: x, command: [serve]}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30, WarnsOfNoReadiness: true},
		},
		"OwnReadiness": {
			reason:    "A probe of the user's stays the only one.",
			container: `{name: engine, image: x, command: [vllm, serve, /m], readinessProbe: {exec: {command: [ready]}}}`,
			want:      want{Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"OwnStartup": {
			reason:    "The same applies to the startup probe.",
			container: `{name: engine, image: x, command: [vllm, serve, /m], startupProbe: {exec: {command: [ready]}}}`,
			want:      want{Probe: &Probe{Port: 8000, TimeoutSeconds: 5, PeriodSeconds: 5}, Drain: 30, Grace: 60, WorkerDrain: 30},
		},
		"OwnPreStop": {
			reason:    "A hook of the user's stays.",
			container: `{name: engine, image: x, command: [vllm, serve, /m], lifecycle: {preStop: {exec: {command: [wait]}}}}`,
			want:      want{Probe: hour(8000), Grace: 60},
		},
		"OwnGrace": {
			reason:    "A grace period of the user's stays, and the wait leaves time to shut down.",
			pod:       "terminationGracePeriodSeconds: 50, ",
			container: `{name: engine, image: x, command: [vllm, serve, /m]}`,
			want:      want{Probe: hour(8000), Drain: 20, WorkerDrain: 20},
		},
		"Set": {
			reason:    "The role says how long it takes.",
			role:      v1alpha1.Role{Lifecycle: &v1alpha1.Lifecycle{StartupSeconds: ptr.To[int32](60), DrainSeconds: ptr.To[int32](0), ShutdownSeconds: ptr.To[int32](10)}},
			container: `{name: engine, image: x, command: [vllm, serve, /m]}`,
			want:      want{Probe: &Probe{Port: 8000, TimeoutSeconds: 5, PeriodSeconds: 5, StartupSeconds: 60}, Grace: 10},
		},
		"Workers": {
			reason:    "Workers serve no HTTP. They go on as long as their leader, which needs them.",
			role:      v1alpha1.Role{Multinode: multinode(2, v1alpha1.LauncherVLLM)},
			container: `{name: engine, image: x, command: [vllm, serve, /m]}`,
			want:      want{Probe: hour(8000), Drain: 30, Grace: 60, WorkerDrain: 30},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := tc.role
			role.ComponentType, role.Template = v1alpha1.ComponentTypeWorker, document(t, "{spec: {"+tc.pod+"containers: ["+tc.container+"]}}")
			r, warnings, errs := planRole(0, role, loads{}, defaultInput(), false)
			if len(errs) > 0 {
				t.Fatalf("%s\nwant no errors, got %v", tc.reason, errs)
			}
			got := want{Probe: r.Leader.Readiness, Drain: r.Leader.DrainSeconds, Grace: r.Leader.GraceSeconds, WorkerProbe: r.Worker.Readiness, WorkerDrain: r.Worker.DrainSeconds}
			for _, w := range warnings {
				got.WarnsOfNoReadiness = got.WarnsOfNoReadiness || strings.Contains(w.Message, "has no readinessProbe")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNoReadiness shows that the warning says why no probe is added, and what helps.
func TestNoReadiness(t *testing.T) {
	const ends = ". Requests come, and rollouts go on, before the model is loaded"
	cases := map[string]struct{ container, want string }{
		"Unknown":      {`command: [serve]`, "has no readinessProbe, and the engine is not known: requests come, and rollouts go on, before the model is loaded"},
		"Socket":       {`command: [vllm, serve, /m, --uds=/s]`, "has no readinessProbe, and the function adds none, because the engine listens on a Unix socket" + ends},
		"GRPC":         {`command: [vllm, serve, /m, --grpc]`, "has no readinessProbe, and the function adds none, because the engine speaks gRPC" + ends},
		"Certificates": {`command: [vllm, serve, /m, --ssl-cert-reqs=2]`, "has no readinessProbe, and the function adds none, because the engine wants certificates of its clients" + ends},
		"Localhost":    {`command: [vllm, serve, /m, --host=localhost]`, "has no readinessProbe, and the function adds none, because the engine listens on localhost: set --host 0.0.0.0" + ends},
		"SGLang":       {`command: [sglang, serve, --model-path, m]`, "has no readinessProbe, and the function adds none, because SGLang listens on localhost without --host: set --host 0.0.0.0" + ends},
		"SGLangPort":   {`command: [sglang, serve, --model-path, m, --host=::]`, "has no readinessProbe, and the function adds none, because SGLang listens on port 30000 without --port: set --port 8000" + ends},
		"Variable":     {`command: [sglang, serve, --model-path, m, --host=::, --port=$(PORT)]`, "has no readinessProbe, and the function adds none, because the port that --port sets is not known: name the port in ports" + ends},
		"File":         {`command: [vllm, serve, --config=/c]`, "has no readinessProbe, and the function adds none, because the file of --config may say the port: set --port, or name the port in ports" + ends},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, "{spec: {containers: [{name: engine, image: x, "+tc.container+"}]}}")}
			_, warnings, errs := planRole(0, role, loads{}, defaultInput(), false)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var got []string
			for _, w := range warnings {
				if strings.Contains(w.Message, "readinessProbe") {
					got = append(got, w.Message)
				}
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestHiddenBehindSidecar shows that the sidecar gives the engine its port, and not its host.
func TestHiddenBehindSidecar(t *testing.T) {
	for host, probed := range map[string]bool{"": false, ", --host=0.0.0.0": true} {
		role := v1alpha1.Role{ComponentType: v1alpha1.ComponentTypeDecoder, Template: document(t, "{spec: {containers: [{name: engine, image: x, command: [sglang, serve, --model-path, m"+host+"]}]}}")}
		r, _, errs := planRole(0, role, loads{}, defaultInput(), true)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if got := r.Leader.Readiness != nil; got != probed {
			t.Errorf("host %q: the engine is probed: %t, want %t", host, got, probed)
		}
	}
}

// TestProxiesWait shows which containers beside the engine's go on as long as it once their pod is deleted.
func TestProxiesWait(t *testing.T) {
	const socket, behind = "command: [vllm, serve, /m, --uds=/s]", "command: [vllm, serve, /m, --port=8200]"
	const hook = "lifecycle: {preStop: {exec: {command: [wait]}}}"
	cases := map[string]struct {
		reason, engine, other, pod string
		role                       v1alpha1.ComponentType
		want                       []int
	}{
		"Proxy":     {reason: "It has the port to which requests come.", engine: socket, other: "image: p, ports: [{containerPort: 8000}]", want: []int{1}},
		"Named":     {reason: "The port may have any name.", engine: socket, other: "image: p, ports: [{name: metrics, containerPort: 9000}, {name: http, containerPort: 8000}]", want: []int{1}},
		"OtherPort": {reason: "Nobody sends requests there.", engine: socket, other: "image: p, ports: [{containerPort: 9000}]"},
		"UDP":       {reason: "Nor there.", engine: socket, other: "image: p, ports: [{containerPort: 8000, protocol: UDP}]"},
		"Helper":    {reason: "It has no port.", engine: socket, other: "image: logs"},
		"OwnHook":   {reason: "A hook of the user's stays.", engine: socket, other: "image: p, ports: [{containerPort: 8000}], " + hook},
		"OwnSocket": {reason: "Then the user decides how the pod stops.", engine: socket + ", " + hook, other: "image: p, ports: [{containerPort: 8000}]"},
		"NoTime":    {reason: "There is nothing to wait for.", pod: "terminationGracePeriodSeconds: 30, ", engine: socket, other: "image: p, ports: [{containerPort: 8000}]"},
		"Sidecar":   {reason: "A routing sidecar of the user's is known by its image.", engine: behind, other: "image: routing-sidecar", role: v1alpha1.ComponentTypeDecoder, want: []int{1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{ComponentType: stdcmp.Or(tc.role, v1alpha1.ComponentTypeWorker), Template: document(t, "{spec: {"+tc.pod+"containers: [{name: engine, image: x, "+tc.engine+"}, {name: other, "+tc.other+"}]}}")}
			r, _, errs := planRole(0, role, loads{}, defaultInput(), tc.role != "")
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(tc.want, r.Leader.Proxies); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if r.Worker.Proxies != nil {
				t.Error("workers serve no HTTP, and have a proxy that waits")
			}
		})
	}
}
