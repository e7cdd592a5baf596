package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestBootstrapVariable proves that a port reaches the sidecar by the variable of its connector.
func TestBootstrapVariable(t *testing.T) {
	cases := map[string]struct {
		reason, connector string
		port              int32
		want              any
	}{
		"SGLang":   {"It reads this one (connector_sglang.go of llm-d-router v0.10.0).", "sglang", 9000, []any{map[string]any{"name": "SGLANG_BOOTSTRAP_PORT", "value": "9000"}}},
		"Mooncake": {"It reads this one (options.go).", "mooncake", 9000, []any{map[string]any{"name": "MOONCAKE_BOOTSTRAP_PORT", "value": "9000"}}},
		"Default":  {"It knows its default.", "mooncake", 0, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &structpb.Struct{Fields: map[string]*structpb.Value{}}
			if err := addSidecar(&plan.Sidecar{Image: "x", Connector: tc.connector, BootstrapPort: tc.port}, &plan.Role{}, spec); err != nil {
				t.Fatal(err)
			}
			got := kube.Elements(spec, "initContainers")[0].GetStructValue().AsMap()["env"]
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
