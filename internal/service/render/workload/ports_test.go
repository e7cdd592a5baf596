package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// TestMovedAddresses proves that a probe asks the engine itself: the routing sidecar, which takes the port, answers before the engine does.
func TestMovedAddresses(t *testing.T) {
	cases := map[string]struct{ reason, command, want string }{
		"Number":  {"This is the engine.", "curl -f localhost:8000/health", "curl -f localhost:8200/health"},
		"All":     {"So is the address of all interfaces.", "curl -f http://0.0.0.0:8000/health", "curl -f http://0.0.0.0:8200/health"},
		"Shell":   {"A variable has the port.", `curl -f "localhost:$PORT/health" 127.0.0.1:${PORT}`, `curl -f "localhost:8200/health" 127.0.0.1:8200`},
		"Kubelet": {"The kubelet replaces it in probes (pkg/kubelet/prober/prober.go of Kubernetes).", "curl localhost:$(PORT)", "curl localhost:8200"},
		"Dashes":  {"Kubernetes has such variables, too.", "curl localhost:$(the-port)", "curl localhost:8200"},
		"Digits":  {"This is a parameter of the shell.", "curl localhost:$8000 localhost:${8000}", "curl localhost:$8000 localhost:${8000}"},
		"Longer":  {"This is another variable.", "curl localhost:$PORTS", "curl localhost:$PORTS"},
		"Other":   {"This one has another port.", "curl localhost:$METRICS 10.0.0.0:8000 localhost:80001", "curl localhost:$METRICS 10.0.0.0:8000 localhost:80001"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			engine, err := structpb.NewStruct(map[string]any{
				"env":            []any{map[string]any{"name": "PORT", "value": "8000"}, map[string]any{"name": "the-port", "value": "8000"}, map[string]any{"name": "METRICS", "value": "9000"}},
				"readinessProbe": map[string]any{"exec": map[string]any{"command": []any{"sh", "-c", tc.command}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			movePort(engine, 8000, 8200)
			got := kube.Lookup(engine, "readinessProbe", "exec", "command").GetListValue().AsSlice()
			if diff := cmp.Diff([]any{"sh", "-c", tc.want}, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
