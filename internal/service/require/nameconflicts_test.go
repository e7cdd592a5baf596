package require

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestNameConflicts proves that of two services that want the same StatefulSet, the second
// requires the LeaderWorkerSet of the first. Service s with role a on two nodes and service s-a
// with role 1 both want a StatefulSet named s-a-1-0.
func TestNameConflicts(t *testing.T) {
	const lws = "leaderworkerset.x-k8s.io/v1"
	east := scheduling.Target{Cluster: "east", Namespace: "llm", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ProviderConfig", Name: "east"}}
	object := remote.ObjectName(naming.Identity{}, east, "leaderworkerset.x-k8s.io", "LeaderWorkerSet", "s-a-1")
	workersObject := remote.ObjectName(naming.Identity{}, east, "leaderworkerset.x-k8s.io", "LeaderWorkerSet", "s-a-1-0")
	cases := map[string]struct {
		reason   string
		name     string
		key      string
		nodes    int32
		target   scheduling.Target
		observed bool
		// size is how many pods the observed replica has.
		size float64
		want map[string]string
	}{
		"Workers": {
			reason: "Another LeaderWorkerSet may have the name of our workers.", name: "s-a-1", key: "leaderworkerset/a/1", nodes: 2,
			want: map[string]string{"below/leaderworkerset/a/1": "s-a-1-0"},
		},
		"WorkersExist": {
			reason: "Workers that exist have their name.", name: "s-a-1", key: "leaderworkerset/a/1", nodes: 2, observed: true, size: 2,
			want: map[string]string{},
		},
		"WorkersCome": {
			reason: "A replica that runs on one node so far has no workers.", name: "s-a-1", key: "leaderworkerset/a/1", nodes: 2, observed: true, size: 1,
			want: map[string]string{"below/leaderworkerset/a/1": "s-a-1-0"},
		},
		"WorkersComeRemote": {
			reason: "In another cluster, the Object that wraps it says how many pods there are.", name: "s-a-1", key: "cluster/east/leaderworkerset/a/1", nodes: 2, observed: true, size: 1, target: east,
			want: map[string]string{"below/cluster/east/leaderworkerset/a/1": workersObject},
		},
		"WorkersExistRemote": {
			reason: "Workers that exist there have their name.", name: "s-a-1", key: "cluster/east/leaderworkerset/a/1", nodes: 2, observed: true, size: 3, target: east,
			want: map[string]string{},
		},
		"WorkersGo": {
			reason: "A replica on one node will have none.", name: "s-a-1", key: "leaderworkerset/a/1", nodes: 1, observed: true, size: 1,
			want: map[string]string{},
		},
		"OneNode": {
			reason: "Without workers there is only one StatefulSet.", name: "s-a-1", key: "leaderworkerset/a/1", nodes: 1,
			want: map[string]string{},
		},
		"Number": {
			reason: "The workers of another LeaderWorkerSet may have our name.", name: "s-a-1-0", key: "leaderworkerset/1/0", nodes: 1,
			want: map[string]string{"above/leaderworkerset/1/0": "s-a-1"},
		},
		"NumberExists": {
			reason: "Of two that are created at once, one still sees the other.", name: "s-a-1-0", key: "leaderworkerset/1/0", nodes: 1, observed: true,
			want: map[string]string{"above/leaderworkerset/1/0": "s-a-1"},
		},
		"NumberRemote": {
			reason: "In another cluster, the Object that wraps it is required.", name: "s-a-1-0", key: "cluster/east/leaderworkerset/1/0", nodes: 1, observed: true, target: east,
			want: map[string]string{"above/cluster/east/leaderworkerset/1/0": object},
		},
		"OtherReplica": {
			reason: "Only replicas of index 0 have workers with such names.", name: "s-a-1-1", key: "leaderworkerset/1/1", nodes: 1,
			want: map[string]string{},
		},
		"Usual": {
			reason: "The name of a role without a number cannot conflict.", name: "s-a-0", key: "leaderworkerset/a/0", nodes: 1,
			want: map[string]string{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &plan.Plan{Clusters: []plan.ClusterPlan{{Target: tc.target, Groups: []plan.Group{{Replicas: []plan.Replica{{Key: key.Parse(tc.key), Name: tc.name, Role: &plan.Role{Nodes: tc.nodes}}}}}}}}
			s, err := structpb.NewStruct(map[string]any{"apiVersion": lws, "kind": "LeaderWorkerSet", "metadata": map[string]any{"name": tc.name, "namespace": "llm"}})
			if err != nil {
				t.Fatal(err)
			}
			req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{}}}
			if tc.observed {
				at := []string{"spec", "leaderWorkerTemplate", "size"}
				if tc.target.Remote() {
					at = append([]string{"spec", "forProvider", "manifest"}, at...)
				}
				req.Observed.Resources[tc.key] = &fnv1.Resource{Resource: kube.With(s, structpb.NewNumberValue(tc.size), at...)}
			}
			rsp := &fnv1.RunFunctionResponse{}
			Declare(incomingtest.Request(t, req), rsp, p, []kube.Object{{Key: key.Parse(tc.key), Resource: s}})
			got := rsp.GetRequirements().GetResources()
			maps.DeleteFunc(got, func(k string, _ *fnv1.ResourceSelector) bool {
				return k == composite.Existing(key.Parse(tc.key)) || k == Headless(key.Parse(tc.key)) || k == Pods
			})
			names := map[string]string{}
			for k, sel := range got {
				names[k] = sel.GetMatchName()
				if sel.GetKind() != "LeaderWorkerSet" || sel.GetApiVersion() != lws || sel.GetNamespace() != "llm" {
					t.Errorf("%s: want the kind and namespace of the object, got %v", k, sel)
				}
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
