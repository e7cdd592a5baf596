package observe

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestPortChangedThere shows when the port of an InferencePool in another cluster may not change. The
// cluster is out of reach, so nobody knows that its replica does not serve.
func TestPortChangedThere(t *testing.T) {
	cases := map[string]struct {
		was, is int
		cluster string
		updated bool
		refused bool
	}{
		"Changed":        {was: 8000, is: 9000, cluster: "east", refused: true},
		"Same":           {was: 8000, is: 8000, cluster: "east"},
		"NewestTemplate": {was: 8000, is: 9000, cluster: "east", updated: true},
		"RunsElsewhere":  {was: 8000, is: 9000, cluster: "west"},
		"PortIsNotKnown": {is: 9000, cluster: "east"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := func(kind, spec string) *structpb.Struct {
				s := &structpb.Struct{}
				text := fmt.Sprintf(`{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "spec": {"forProvider": {"manifest": {"kind": %q, "spec": {%s}}}}}`, kind, spec)
				if err := s.UnmarshalJSON([]byte(text)); err != nil {
					t.Fatal(err)
				}
				return s
			}
			pool := func(port int) *structpb.Struct {
				if port == 0 {
					return object("InferencePool", "")
				}
				return object("InferencePool", fmt.Sprintf(`"targetPorts": [{"number": %d}]`, port))
			}
			at, set := key.New("east", key.InferencePool), key.New(tc.cluster, key.LeaderWorkerSet, "w", "0")
			replica := plan.Replica{Key: set, Role: &plan.Role{Name: "w", Replicas: 1}, Updated: tc.updated}
			p := &plan.Plan{Roles: []*plan.Role{replica.Role}, Clusters: []plan.ClusterPlan{{Target: scheduling.Target{Cluster: tc.cluster}, Groups: []plan.Group{{Replicas: []plan.Replica{replica}}}}}}
			r := Read(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
				at.String(): {Resource: pool(tc.was)}, set.String(): {Resource: object("LeaderWorkerSet", "")},
			}}}), p)
			if got := r.podsLoseRequests([]kube.Object{{Key: at, Resource: pool(tc.is)}}); len(got) > 0 != tc.refused {
				t.Errorf("refused: %v, want %t", got, tc.refused)
			}
		})
	}
}
