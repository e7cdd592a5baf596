package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSections writes the sections of a summary for objects beside the XR.
func TestSections(t *testing.T) {
	of := func(kind string) object {
		return object{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "a", "namespace": "team"}}}
	}
	engine := of("LeaderWorkerSet")
	engine.Object["spec"] = map[string]any{"leaderWorkerTemplate": map[string]any{"workerTemplate": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "side", "image": "s"}, map[string]any{"name": "vllm", "image": "i"},
	}}}}}
	cases := map[string]struct {
		reason   string
		placed   bool
		composed []object
		want     string
	}{
		"Here": {
			reason:   "A section with a role has the image of its engine, and says whether there is a gang.",
			composed: []object{engine, of("Service")},
			want: `
In this cluster, namespace team: 2 objects
  ROLE   TYPE  REPLICAS  NODES  PODS  GPUS/POD  GPUS  LAUNCHER  PORT  SCHEDULER  IMAGE
               1         1      1     0         0     -         8000  default    i
  total                         1               0

  Gang  none
`,
		},
		"ControlPlane": {
			reason:   "With a placement, the roles are in other clusters.",
			placed:   true,
			composed: []object{of("ConfigMap")},
			want: `
On the control plane, namespace team: 1 object
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &strings.Builder{}
			if err := writeSummary(b, &rendered{xr: of("InferenceService"), composed: tc.composed, placed: tc.placed}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("InferenceService team/a\n"+tc.want, b.String()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
