package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestNoteIsReadBack proves that the note on a replica is that of the manifest that the function wrote
// last, and not what the cluster has. Beside the XR it is that of the LeaderWorkerSet itself.
func TestNoteIsReadBack(t *testing.T) {
	object := func(manifest, status string) string {
		return `{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "spec": {"providerConfigRef": {"name": "east"}, "forProvider": {"manifest": ` + manifest + `}}, "status": {"atProvider": {"manifest": ` + status + `}}}`
	}
	lws := func(annotations string) string {
		return `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"uid": "u", "annotations": {` + annotations + `}}}`
	}
	const noted, other = `"fusioninfer.io/pods-hash": "abc", "fusioninfer.io/home-epoch": "3"`, `"fusioninfer.io/pods-hash": "old", "fusioninfer.io/home-epoch": "2"`
	cases := map[string]struct {
		cluster, observed string
		want              scheduling.Note
	}{
		"Object":  {"east", object(lws(noted), lws(other)), scheduling.Note{PodsHash: "abc", HomeEpoch: 3}},
		"None":    {"east", object(lws(""), lws(other)), scheduling.Note{}},
		"Garbled": {"east", object(lws(`"fusioninfer.io/home-epoch": "three"`), lws("")), scheduling.Note{}},
		"Local":   {"", lws(noted), scheduling.Note{PodsHash: "abc", HomeEpoch: 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON([]byte(tc.observed)); err != nil {
				t.Fatal(err)
			}
			inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
			w := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
				key.New(tc.cluster, key.LeaderWorkerSet, "worker", "0").String(): {Resource: s},
			}}}), inFleet, time.Time{})
			if !w.States[tc.cluster].Present["worker/0"] {
				t.Fatal("the replica is not present")
			}
			if diff := cmp.Diff(tc.want, w.States[tc.cluster].Notes["worker/0"]); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
