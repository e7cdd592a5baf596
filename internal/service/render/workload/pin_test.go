package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestPin proves that a pin adds labels to the node selectors of its replica's pods, and changes
// nothing else: no other replica, and nothing that the user wrote.
func TestPin(t *testing.T) {
	const selects = `
spec:
  nodeSelector: {disk: ssd}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}}}
  containers: [{name: vllm, image: vllm}]
`
	pin := &capacity.Pin{Pool: "h100", NodeSelector: map[string]string{"gpu": "h100", "disk": "ssd"}}
	nodeSelectors := func(o kube.Object) map[string]any {
		all := map[string]any{}
		for _, name := range []string{"leaderTemplate", "workerTemplate"} {
			if s := kube.Lookup(o.Resource, "spec", "leaderWorkerTemplate", name, "spec", "nodeSelector"); s != nil {
				all[name] = s.GetStructValue().AsMap()
			}
		}
		return all
	}
	pinned, disk := map[string]any{"gpu": "h100", "disk": "ssd"}, map[string]any{"disk": "ssd"}
	cases := map[string]struct {
		role *plan.Role
		// want has the node selectors of the pinned replica, and other those of the other one.
		want, other map[string]any
	}{
		"one node": {
			role: &plan.Role{Nodes: 1, Leader: pods(t, qwen)},
			want: map[string]any{"workerTemplate": pinned}, other: map[string]any{},
		},
		"one template for several nodes": {
			role: func() *plan.Role {
				both := pods(t, selects)
				return &plan.Role{Nodes: 2, Leader: both, Worker: both}
			}(),
			want:  map[string]any{"leaderTemplate": pinned, "workerTemplate": pinned},
			other: map[string]any{"leaderTemplate": disk, "workerTemplate": disk},
		},
		"two templates": {
			role: &plan.Role{Nodes: 2, Leader: pods(t, qwen), Worker: pods(t, selects)},
			want: map[string]any{"leaderTemplate": pinned, "workerTemplate": pinned}, other: map[string]any{"workerTemplate": disk},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.role.Name, c.role.Type, c.role.Replicas, c.role.Port, c.role.EnginePort = "w", v1alpha1.ComponentTypeWorker, 2, 8000, 8000
			p := service("svc", c.role)
			plain := render(t, p)
			p.Clusters[0].Groups[0].Replicas[1].Pin = pin
			got := render(t, p)
			if diff := cmp.Diff(c.other, nodeSelectors(got[0])); diff != "" {
				t.Errorf("node selectors of the replica without a pin (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, nodeSelectors(got[1])); diff != "" {
				t.Errorf("node selectors of the pinned replica (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff("h100", kube.Lookup(got[1].Resource, "metadata", "labels", naming.LabelPool).GetStringValue()); diff != "" {
				t.Errorf("label of the pool (-want +got):\n%s", diff)
			}
			text := kube.Lookup(got[1].Resource, "metadata", "annotations", naming.AnnotationPoolNodeSelector).GetStringValue()
			if diff := cmp.Diff(pin, capacity.ParsePin("h100", text)); diff != "" {
				t.Errorf("the pin as it is read back (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(kube.AsMap(without(plain[1].Resource)), kube.AsMap(without(got[1].Resource))); diff != "" {
				t.Errorf("the pin changes more than that (-without +with):\n%s", diff)
			}
		})
	}
}

// TestPinOfHeld proves that the pin of pods that run stays noted while they are held, although the newest
// template does not have it. It is gone once they are replaced.
func TestPinOfHeld(t *testing.T) {
	pin := &capacity.Pin{Pool: "h100", NodeSelector: map[string]string{"gpu": "h100"}}
	for held, want := range map[bool]string{true: "h100", false: ""} {
		p := service("svc", &plan.Role{
			Name: "w", Type: v1alpha1.ComponentTypeWorker, Nodes: 1, Replicas: 1, Port: 8000, EnginePort: 8000,
			Leader: pods(t, "spec: {nodeSelector: {gpu: l40s}, containers: [{name: vllm, image: vllm}]}"),
		})
		r := &p.Clusters[0].Groups[0].Replicas[0]
		r.FormerPin, r.Held = pin, held
		o := render(t, p)[0].Resource
		if diff := cmp.Diff(want, kube.Lookup(o, "metadata", "labels", naming.LabelPool).GetStringValue()); diff != "" {
			t.Errorf("held %t: pool: -want, +got:\n%s", held, diff)
		}
		selector := kube.Lookup(o, "spec", "leaderWorkerTemplate", "workerTemplate", "spec", "nodeSelector").GetStructValue().AsMap()
		if diff := cmp.Diff(map[string]any{"gpu": "l40s"}, selector); diff != "" {
			t.Errorf("held %t: node selector: -want, +got:\n%s", held, diff)
		}
	}
}

// without returns a LeaderWorkerSet without what a pin adds.
func without(o *structpb.Struct) *structpb.Struct {
	o = kube.Copy(o)
	metadata := kube.CopyChild(o, "metadata")
	delete(kube.CopyChild(metadata, "labels").GetFields(), naming.LabelPool)
	delete(metadata.GetFields(), "annotations")
	template := kube.CopyChild(kube.CopyChild(o, "spec"), "leaderWorkerTemplate")
	for _, name := range []string{"leaderTemplate", "workerTemplate"} {
		if template.GetFields()[name] != nil {
			delete(kube.CopyChild(kube.CopyChild(template, name), "spec").GetFields(), "nodeSelector")
		}
	}
	return o
}
