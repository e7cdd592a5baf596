package observe

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestServingRoleRemoved shows when a role whose replica serves in another cluster may not be removed.
// The role that takes its place does not serve.
func TestServingRoleRemoved(t *testing.T) {
	const manifest = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "x", "generation": 1, "labels": {"fusioninfer.io/spec-hash": "abc"}}`
	object := func(metadata string) string {
		return `{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "metadata": {` + metadata + `}, "spec": {"forProvider": {"manifest": ` + manifest + `}}}, 
			"status": {"atProvider": {"manifest": ` + manifest + `, "status": {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "conditions": [{"type": "Available", "status": "True"}]}}}}}`
	}
	cases := map[string]struct {
		metadata string
		refused  bool
	}{
		"Serves": {refused: true},
		// What holds the deletion up must not keep the user from editing the service.
		"IsBeingDeleted": {metadata: `"deletionTimestamp": "2026-05-04T08:00:00Z"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON([]byte(object(tc.metadata))); err != nil {
				t.Fatal(err)
			}
			k := key.New("east", key.LeaderWorkerSet, "before", "0")
			p := &plan.Plan{Roles: []*plan.Role{{Name: "after", Replicas: 1}}}
			r := Read(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{k.String(): {Resource: s}}}}), p)
			if got := r.servingRolesRemoved(); len(got) > 0 != tc.refused {
				t.Errorf("refused: %v, want %t", got, tc.refused)
			}
		})
	}
}
