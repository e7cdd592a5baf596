package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
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

// TestPoolNotTurned proves that workers stay where the pool goes on selecting them, because their cluster refuses its change.
func TestPoolNotTurned(t *testing.T) {
	ready := func(role, componentType string) string {
		manifest := `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "` + role + `", "generation": 1, "labels": {"fusioninfer.io/spec-hash": "abc", "fusioninfer.io/component-type": "` + componentType + `"}}`
		return object(manifest+`}`, manifest+`, "status": {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "conditions": [{"type": "Available", "status": "True"}]}}`, `{"type": "Synced", "status": "True"}`)
	}
	selects := func(componentType string) string {
		return `{"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool", "metadata": {"name": "pool"}, "spec": {"selector": {"matchLabels": {"fusioninfer.io/component-type": "` + componentType + `"}}}}`
	}
	const ok = `{"type": "Synced", "status": "True"}`
	says := func(message string) string {
		return `{"type": "Synced", "status": "False", "message": "` + message + `"}`
	}
	const denied = "observe failed: cannot get desired state: cannot dry run SSA: forbidden"
	cases := map[string]struct {
		reason, told, has, synced, want string
	}{
		"Turned":  {"It selects decode there.", "decoder", "decoder", ok, ""},
		"Refused": {"It selects nothing that is left.", "decoder", "worker", says(denied), "the InferencePool in east, because the cluster does not take its newest spec"},
		"Other":   {"Its cluster refuses something else of it.", "decoder", "decoder", says(denied), ""},
		"Lost":    {"A cluster out of reach deletes nothing either.", "decoder", "worker", says("observe failed: cannot get object: no route to host"), ""},
		"Turning": {"The provider turns it when it removes the workers.", "decoder", "worker", ok, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]*fnv1.Resource{}
			for k, o := range map[key.Key]string{
				key.New("east", key.LeaderWorkerSet, "before", "0"): ready("before", "worker"),
				key.New("east", key.LeaderWorkerSet, "after", "0"):  ready("after", "decoder"),
				key.New("east", key.InferencePool):                  object(selects(tc.told), selects(tc.has), tc.synced),
			} {
				s := &structpb.Struct{}
				if err := s.UnmarshalJSON([]byte(o)); err != nil {
					t.Fatal(err)
				}
				observed[k.String()] = &fnv1.Resource{Resource: s}
			}
			after := &plan.Role{Name: "after", Type: "decoder", Replicas: 1}
			east := plan.ClusterPlan{
				Target: scheduling.Target{Cluster: "east"}, PoolSelector: map[string]string{naming.LabelComponentType: "decoder"},
				Groups: []plan.Group{{Replicas: []plan.Replica{{Role: after, Key: key.New("east", key.LeaderWorkerSet, "after", "0")}}}},
			}
			p := &plan.Plan{Roles: []*plan.Role{after}, Router: &plan.Router{}, Clusters: []plan.ClusterPlan{east}}
			r := Read(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: observed}}), p)
			want := ""
			if tc.want != "" {
				want = "spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: before. Not ready: " + tc.want + ". To remove a role at once, set its replicas to 0 first"
			}
			got := ""
			if errs := r.servingRolesRemoved(); len(errs) > 0 {
				got = errs[0].Error()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// object is an Object with what it tells its cluster, what it has read there, and a condition.
func object(told, read, condition string) string {
	return `{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "metadata": {"name": "x"}, "spec": {"forProvider": {"manifest": ` + told + `}},
		"status": {"atProvider": {"manifest": ` + read + `}, "conditions": [` + condition + `]}}`
}
