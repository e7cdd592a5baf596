package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// TestSections writes the sections of a summary for objects beside the XR.
//
//nolint:dupword // A role has the name of its type.
func TestSections(t *testing.T) {
	of := func(kind string) object {
		return object{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "a", "namespace": "team"}}}
	}
	engine := of("LeaderWorkerSet")
	engine.Object["spec"] = map[string]any{"leaderWorkerTemplate": map[string]any{"workerTemplate": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "side", "image": "s"}, map[string]any{"name": "vllm", "image": "i"},
	}}}}}
	named := *engine.DeepCopy()
	named.SetLabels(map[string]string{naming.LabelRoleName: "prefill"})
	gaudi := *engine.DeepCopy()
	containers, _, _ := unstructured.NestedSlice(gaudi.Object, "spec", "leaderWorkerTemplate", "workerTemplate", "spec", "containers")
	containers[1].(map[string]any)["resources"] = map[string]any{"limits": map[string]any{"habana.ai/gaudi": "8", "nvidia.com/hostdev": "4"}}
	if err := unstructured.SetNestedSlice(gaudi.Object, containers, "spec", "leaderWorkerTemplate", "workerTemplate", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason   string
		spec     v1alpha1.InferenceServiceSpec
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
		"GPUs": {
			reason:   "A pod has GPUs of any vendor, and a network device is none.",
			composed: []object{gaudi},
			want: `
In this cluster, namespace team: 1 object
  ROLE   TYPE  REPLICAS  NODES  PODS  GPUS/POD  GPUS  LAUNCHER  PORT  SCHEDULER  IMAGE
               1         1      1     8         8     -         8000  default    i
  total                         1               8

  Gang  none
`,
		},
		"NoReplicas": {
			reason: "A role without replicas is there, too. It has no pods to describe.",
			spec: v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{
				{Name: "router", ComponentType: v1alpha1.ComponentTypeRouter},
				{Name: "prefill", ComponentType: v1alpha1.ComponentTypePrefiller, Replicas: ptr.To[int32](2)},
				{Name: "decode", ComponentType: v1alpha1.ComponentTypeDecoder, Replicas: ptr.To[int32](0)},
				{Name: "scaled", ComponentType: v1alpha1.ComponentTypeWorker, Scaling: &v1alpha1.RoleScaling{}},
			}},
			composed: []object{of("Service"), named},
			want: `
In this cluster, namespace team: 2 objects
  ROLE     TYPE     REPLICAS  NODES  PODS  GPUS/POD  GPUS  LAUNCHER  PORT  SCHEDULER  IMAGE
  decode   decoder  0         -      0     -         0     -         -     -          -
  prefill           1 of 2    1      1     0         0     -         8000  default    i
  scaled   worker   0         -      0     -         0     -         -     -          -
  total                              1               0

  Gang  none

Scaling
  ROLE    MIN  MAX  ASKED  AUTOSCALER
  scaled  1    1    -      -
`,
		},
		"NothingRuns": {
			reason:   "Of a service that is stopped, nothing else would say so.",
			spec:     v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](0)}}},
			composed: []object{of("Service")},
			want: `
In this cluster, namespace team: 1 object
  ROLE    TYPE    REPLICAS  NODES  PODS  GPUS/POD  GPUS  LAUNCHER  PORT  SCHEDULER  IMAGE
  worker  worker  0         -      0     -         0     -         -     -          -
  total                            0               0

  Gang  none
`,
		},
		"ControlPlane": {
			reason:   "With a placement, the roles are in other clusters.",
			spec:     v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{}, Roles: []v1alpha1.Role{{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker}}},
			composed: []object{of("ConfigMap")},
			want: `
On the control plane, namespace team: 1 object
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &strings.Builder{}
			if err := writeSummary(b, &rendered{xr: of("InferenceService"), composed: tc.composed, spec: &tc.spec}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("InferenceService team/a\n"+tc.want, b.String()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestScalingSection writes the section of a summary for roles with scaling. It says nothing of what cannot be read.
func TestScalingSection(t *testing.T) {
	roles := []any{
		"cannot be read", map[string]any{"name": "odd", "scaling": "cannot be read"},
		map[string]any{"name": "fixed", "replicas": int64(2)},
		map[string]any{"name": "manual", "scaling": map[string]any{"maxReplicas": int64(4)}},
		map[string]any{"name": "target", "scaling": map[string]any{"minReplicas": int64(2), "maxReplicas": int64(8), "target": map[string]any{"waitingRequests": int64(4)}}},
		map[string]any{"name": "metrics", "scaling": map[string]any{"minReplicas": int64(1), "maxReplicas": int64(8), "metrics": []any{map[string]any{"type": "External"}}}},
		map[string]any{"name": "triggers", "scaling": map[string]any{"minReplicas": int64(0), "maxReplicas": int64(8), "triggers": []any{map[string]any{"type": "cron"}, map[string]any{"type": "kafka"}}}},
	}
	xr := object{Object: map[string]any{
		"apiVersion": "fusioninfer.io/v1alpha1", "kind": "InferenceService", "metadata": map[string]any{"name": "a", "namespace": "team"},
		"spec": map[string]any{"roles": roles},
		"status": map[string]any{"components": map[string]any{
			"manual": map[string]any{"scaling": map[string]any{"requestedReplicas": int64(3)}}, "triggers": map[string]any{"scaling": map[string]any{"requestedReplicas": float64(0)}},
		}},
	}}
	b := &strings.Builder{}
	if err := writeSummary(b, &rendered{xr: xr, spec: serviceSpec(xr)}); err != nil {
		t.Fatal(err)
	}
	want := `InferenceService team/a

Scaling
  ROLE      MIN  MAX  ASKED  AUTOSCALER
  manual    1    4    3      -
  target    2    8    -      target waitingRequests 4
  metrics   1    8    -      metric External
  triggers  0    8    0      trigger cron, trigger kafka
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
