package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

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
			container: `{name: engine, image: x, command: [python3, -m, sglang.launch_server, --port, "30000"]}`,
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
			r, warnings, errs := planRole(0, role, nil, defaultInput(), false)
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
