package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestClosedPaths proves that paths which no route passes on have a rule without a backend, beside the rules
// of the service.
func TestClosedPaths(t *testing.T) {
	p := &plan.Plan{
		Service:    naming.Identity{Name: "chat", Namespace: "team"},
		FleetRoute: &plan.FleetRoute{Name: "chat-fleet", Matches: [][]any{nil}, ClosedPaths: []string{"/x"}, Backends: []plan.Backend{{Name: "east", Port: 80, Weight: 1, Named: true}}},
	}
	spec, _ := route(p)["spec"].(map[string]any)
	want := []any{
		map[string]any{
			"timeouts":    map[string]any{"request": "0s"},
			"backendRefs": []any{map[string]any{"group": "", "kind": "Service", "name": "east", "port": int64(80), "weight": int64(1)}},
		},
		map[string]any{"matches": []any{map[string]any{"path": map[string]any{"type": "Exact", "value": "/x"}}}},
	}
	if diff := cmp.Diff(want, spec["rules"]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
