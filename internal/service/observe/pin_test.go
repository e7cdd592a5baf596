package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// TestPinIsReadBack proves that the pin of a replica is that of its Object's manifest, whether or
// not the cluster has it already.
func TestPinIsReadBack(t *testing.T) {
	object := func(status string) string {
		return `{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "spec": {"providerConfigRef": {"name": "east"}, "forProvider": {"manifest": {"kind": "LeaderWorkerSet",
			"metadata": {"labels": {"fusioninfer.io/pool": "h100"}, "annotations": {"fusioninfer.io/pool-node-selector": "example.com/gpu=h100"}}}}}` + status + `}`
	}
	h100 := &capacity.Pin{Pool: "h100", NodeSelector: map[string]string{"example.com/gpu": "h100"}}
	cases := map[string]struct {
		observed string
		want     *capacity.Pin
	}{
		"not applied yet": {object(""), h100},
		"applied":         {object(`, "status": {"atProvider": {"manifest": {"kind": "LeaderWorkerSet", "metadata": {"uid": "u"}}}}`), h100},
		"without a pin":   {`{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "spec": {"providerConfigRef": {"name": "east"}, "forProvider": {"manifest": {"kind": "LeaderWorkerSet"}}}}`, nil},
		"garbled":         {`{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "spec": {"forProvider": {"manifest": {"metadata": {"labels": {"fusioninfer.io/pool": "h100"}, "annotations": {"fusioninfer.io/pool-node-selector": "a b"}}}}}}`, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON([]byte(c.observed)); err != nil {
				t.Fatal(err)
			}
			inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
			w := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
				key.New("east", key.LeaderWorkerSet, "worker", "0").String(): {Resource: s},
			}}}), inFleet, time.Time{})
			if !w.States["east"].Present["worker/0"] {
				t.Fatal("the replica is not present")
			}
			if diff := cmp.Diff(c.want, w.States["east"].Pins["worker/0"]); diff != "" {
				t.Errorf("pin (-want +got):\n%s", diff)
			}
		})
	}
}
