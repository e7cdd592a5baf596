package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestSaidTargets shows how many replicas a role counts with at first, of which only the status of its service says anything.
func TestSaidTargets(t *testing.T) {
	cases := map[string]struct {
		reason, scaled string
		want           any
	}{
		"Scaled":   {"It has what was asked for, and its third replica loads.", `status: "True", reason: AsRequested`, map[string]any{"replicas": 3.0}},
		"Waits":    {"One may wait for capacity.", `status: "False", reason: NoCapacity`, map[string]any{"replicas": 3.0, "current": map[string]any{"replicas": 2.0}}},
		"Inactive": {"An autoscaler that does not scale changes nothing of what was asked for.", `status: "False", reason: AutoscalerInactive`, map[string]any{"replicas": 3.0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr := object{}
			if err := yaml.Unmarshal([]byte(`
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: chat, namespace: team}
spec: {roles: [{name: worker, componentType: worker, scaling: {maxReplicas: 5}}]}
status:
  components: {worker: {readyReplicas: 2, scaling: {requestedReplicas: 3}}}
  conditions: [{type: Scaled, `+tc.scaled+`}]`), &xr.Object); err != nil {
				t.Fatal(err)
			}
			targets := saidTargets([]object{xr})
			if len(targets) != 1 {
				t.Fatalf("got %d InferenceRoles, want 1", len(targets))
			}
			got := map[string]any{}
			text, err := yaml.Marshal(targets[0].Object["spec"])
			if err == nil {
				err = yaml.Unmarshal(text, &got)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, any(got)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
