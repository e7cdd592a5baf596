package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// TestSnapshotTold proves when the cluster is known to run what an Object tells it, and that the pods
// of the Object are read as a whole.
func TestSnapshotTold(t *testing.T) {
	const object = `{
		"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "metadata": {"name": "o", "generation": 5},
		"spec": {"providerConfigRef": {"name": "east"}, "forProvider": {"manifest": {
			"kind": "LeaderWorkerSet", "metadata": {"name": "l", "annotations": {"fusioninfer.io/capacity-generation": "7"}},
			"spec": {"replicas": 1, "rolloutStrategy": {"rollingUpdateConfiguration": {"partition": %d}}, "leaderWorkerTemplate": {"size": 3, "workerTemplate": {"spec": {"newer": true}}}}
		}}},
		"status": {
			"conditions": [{"type": "Synced", "status": "True", "observedGeneration": %d}],
			"atProvider": {"manifest": {
				"kind": "LeaderWorkerSet", "metadata": {"name": "l", "namespace": "n", "generation": 3, "annotations": {"fusioninfer.io/capacity-generation": "%d"}},
				"status": {"observedGeneration": 3, "readyReplicas": %d, "updatedReplicas": %d, "conditions": [{"type": "UpdateInProgress", "status": "%s"}]}
			}}
		}
	}`
	type told struct {
		Nodes      int32
		Generation int64
		Runs       bool
		Pods       map[string]any
	}
	cases := map[string]struct {
		reason                             string
		synced, generation, ready, updated int
		updating                           string
		partition                          int
		runs                               bool
	}{
		"Runs":        {"Its pods are ready, and nothing is replaced.", 5, 7, 1, 1, "False", 0, true},
		"NotApplied":  {"The cluster has an older spec.", 4, 7, 1, 1, "False", 0, false},
		"OldProvider": {"A provider that does not say which spec it applied has applied an older one.", 0, 6, 1, 1, "False", 0, false},
		"Updating":    {"Pods from before are ready, and go next.", 5, 7, 1, 1, "True", 0, false},
		"Held":        {"Pods from before stay, whatever the template says.", 5, 7, 1, 0, "False", 1, false},
		"HeldLater":   {"These pods stay, and the next ones wait.", 5, 7, 1, 1, "False", 1, true},
		"NotReady":    {"Pods from before may still stop.", 5, 7, 0, 1, "False", 0, false},
	}
	spec := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON(fmt.Appendf(nil, object, tc.partition, tc.synced, tc.generation, tc.ready, tc.updated, tc.updating)); err != nil {
				t.Fatal(err)
			}
			got := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
				"cluster/east/leaderworkerset/worker/0": {Resource: s},
			}}}), spec, time.Time{}).States["east"].Told["worker/0"]
			want := told{3, 7, tc.runs, map[string]any{"size": int64(3), "workerTemplate": map[string]any{"spec": map[string]any{"newer": true}}}}
			if diff := cmp.Diff(want, told{got.Nodes, got.Generation, got.Runs, kube.AsMap(got.Pods)}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
