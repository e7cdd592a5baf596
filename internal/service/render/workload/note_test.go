package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestNote proves that a note is on the LeaderWorkerSet of its replica alone, and that no pod template
// changes with it.
func TestNote(t *testing.T) {
	p := service("svc", &plan.Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 2, Nodes: 1, Port: 8000, EnginePort: 8000, Leader: pods(t, qwen)})
	plain := render(t, p)
	p.Clusters[0].Groups[0].Replicas[1].Note = scheduling.Note{PodsHash: "abc", HomeEpoch: 3}
	got := render(t, p)
	annotations := func(o kube.Object) map[string]any {
		return kube.Lookup(o.Resource, "metadata", "annotations").GetStructValue().AsMap()
	}
	want := []map[string]any{{}, {"fusioninfer.io/pods-hash": "abc", "fusioninfer.io/home-epoch": "3"}}
	if diff := cmp.Diff(want, []map[string]any{annotations(got[0]), annotations(got[1])}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for i := range got {
		if diff := cmp.Diff(kube.Canonical(kube.Lookup(plain[i].Resource, "spec").GetStructValue()), kube.Canonical(kube.Lookup(got[i].Resource, "spec").GetStructValue())); diff != "" {
			t.Errorf("the spec of replica %d: -without, +with the note:\n%s", i, diff)
		}
	}
}
