package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

func owned(kind, name, uid string) edit[lws.LeaderWorkerSet] {
	return func(w *lws.LeaderWorkerSet) {
		w.OwnerReferences = []metav1.OwnerReference{
			{Kind: "Bystander", Name: "b", UID: "other"},
			{Kind: kind, Name: name, UID: types.UID(uid), Controller: ptr.To(true)},
		}
	}
}

// composed has the mark that Crossplane leaves on what it composes.
func composed(w *lws.LeaderWorkerSet) {
	w.Annotations = map[string]string{composite.AnnotationResourceName: lws0}
}

func TestConflicts(t *testing.T) {
	const rename = "give this role or this service another name"
	const role = rename + ", or delete what is there"
	cases := map[string]struct {
		reason   string
		uid      string
		observed bool
		existing []any
		want     []string
	}{
		"NotAnswered": {reason: "Before names are required, there is no conflict.", uid: ownUID},
		"None":        {reason: "Nothing of that name exists.", uid: ownUID, existing: []any{}},
		"Ours":        {reason: "What this service controls is its own, even if it is not observed yet.", uid: ownUID, existing: []any{workload("qwen-engine-0", owned("InferenceService", "qwen", ownUID), composed)}},
		"Before": {
			reason: "A controller that had this kind before Crossplane left objects with the same UID.", uid: ownUID,
			existing: []any{workload("qwen-engine-0", owned("InferenceService", "qwen", ownUID))},
			want:     []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": already exists and belongs to InferenceService "qwen"; ` + role},
		},
		"Observed": {reason: "A composed resource is this service's own.", uid: ownUID, observed: true, existing: []any{workload("qwen-engine-0")}},
		"SomebodyElse": {
			reason: "Service a-b with role c and service a with role b-c want one name: the second is refused. What serves the first must not be deleted.", uid: ownUID,
			existing: []any{workload("qwen-engine-0", owned("InferenceService", "qwen-engine", "other"))},
			want:     []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": already exists and belongs to InferenceService "qwen-engine"; ` + rename},
		},
		"AnotherKind": {
			reason: "What a controller of another kind has made may be deleted.", uid: ownUID,
			existing: []any{workload("qwen-engine-0", owned("Deployer", "qwen", "other"))},
			want:     []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": already exists and belongs to Deployer "qwen"; ` + role},
		},
		"Nobody": {
			reason: "What nobody controls would be adopted, and deleted later.", uid: ownUID,
			existing: []any{workload("qwen-engine-0")},
			want:     []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": already exists and belongs to nobody; ` + role},
		},
		"Bystander": {
			reason: "An owner that does not control an object does not own it in the sense that counts.", uid: "other",
			existing: []any{workload("qwen-engine-0", owned("InferenceService", "qwen-engine", ownUID))},
			want:     []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": already exists and belongs to InferenceService "qwen-engine"; ` + rename},
		},
		"NoUID": {
			reason:   "Without a UID of its own a service owns nothing, not even what has an owner without one.",
			existing: []any{workload("qwen-engine-0", owned("InferenceService", "qwen", ""))},
			want:     []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": already exists and belongs to InferenceService "qwen"; ` + rename},
		},
		"Deleting": {
			reason: "What is going away is waited for.", uid: ownUID,
			existing: []any{workload("qwen-engine-0", owned("InferenceService", "qwen", "before"), deletedWorkload)},
			want:     []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": already exists and belongs to InferenceService "qwen"; it is being deleted, which this service waits for`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.plan.Service.UID = tc.uid
			if tc.observed {
				s.see(lws0, workload("qwen-engine-0"))
			}
			if tc.existing != nil {
				r := &fnv1.Resources{}
				for _, e := range tc.existing {
					r.Items = append(r.Items, &fnv1.Resource{Resource: encode(t, e)})
				}
				s.required[composite.Existing(key.Parse(lws0))] = r
			}
			var got []string
			for _, e := range Read(s.request(), s.plan).Conflicts(s.objects).Refused {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConflictPath(t *testing.T) {
	s := newScene(t)
	for k, want := range map[string]string{
		svcKey:                       "metadata.name",
		"cluster/east/inferencepool": "spec.placement.clusters[east]",
	} {
		if got, _ := Read(s.request(), s.plan).pathOf(key.Parse(k)); got.String() != want {
			t.Errorf("path of %s: want %s, got %s", k, want, got)
		}
	}
}

// LeaderWorkerSets of others whose StatefulSets meet ours are refused, in both directions.
func TestNeighbours(t *testing.T) {
	const role = "; give this role or this service another name, or delete what is there"
	nodes := func(n int32) edit[lws.LeaderWorkerSet] {
		return func(w *lws.LeaderWorkerSet) { w.Spec.LeaderWorkerTemplate.Size = &n }
	}
	cases := map[string]struct {
		reason      string
		observed    bool
		requirement string
		existing    any
		want        []string
	}{
		"Above": {
			reason: "Its workers have our name.", requirement: require.WorkersOwner(key.Parse(lws0)), existing: workload("qwen", nodes(2)),
			want: []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": has the name of the workers' StatefulSet of LeaderWorkerSet qwen` + role},
		},
		"AboveLater": {
			reason: "Also where both came at once.", requirement: require.WorkersOwner(key.Parse(lws0)), observed: true, existing: workload("qwen", nodes(2)),
			want: []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": has the name of the workers' StatefulSet of LeaderWorkerSet qwen` + role},
		},
		"AboveAlone": {reason: "On one node it has no workers.", requirement: require.WorkersOwner(key.Parse(lws0)), existing: workload("qwen", nodes(1))},
		"Below": {
			reason: "It has our workers' name, whatever its size.", requirement: require.WorkersName(key.Parse(lws0)), existing: workload("qwen-engine-0-0", nodes(1)),
			want: []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": needs a StatefulSet for its workers that has the name of LeaderWorkerSet qwen-engine-0-0` + role},
		},
		"BelowAnothers": {
			reason: "What serves another service must not be deleted.", requirement: require.WorkersName(key.Parse(lws0)), existing: workload("qwen-engine-0-0", owned("InferenceService", "qwen-engine-0", "other")),
			want: []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": needs a StatefulSet for its workers that has the name of LeaderWorkerSet qwen-engine-0-0; give this role or this service another name`},
		},
		"Ours": {reason: "The API's validation speaks of roles of one service.", requirement: require.WorkersName(key.Parse(lws0)), existing: workload("qwen-engine-0-0", owned("InferenceService", "qwen", ownUID))},
		"Elsewhere": {
			reason: "In another cluster it is in an Object.", requirement: require.WorkersName(key.Parse(lws0)),
			existing: map[string]any{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "metadata": map[string]any{"name": "o"}, "spec": map[string]any{"forProvider": map[string]any{"manifest": workload("qwen-engine-0-0")}}},
			want:     []string{`name: Invalid value: "LeaderWorkerSet qwen-engine-0": needs a StatefulSet for its workers that has the name of LeaderWorkerSet qwen-engine-0-0` + role},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.plan.Service.UID = ownUID
			if tc.observed {
				s.see(lws0, workload("qwen-engine-0"))
			}
			s.required[tc.requirement] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: encode(t, tc.existing)}}}
			var got []string
			for _, e := range Read(s.request(), s.plan).Conflicts(s.objects).Refused {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOwnWorkers lets a replica wait for workers of the same service that have its name, in its cluster.
func TestOwnWorkers(t *testing.T) {
	nodes := func(n int32) edit[lws.LeaderWorkerSet] {
		return func(w *lws.LeaderWorkerSet) { w.Spec.LeaderWorkerTemplate.Size = &n }
	}
	const waits = `name: Invalid value: "LeaderWorkerSet qwen-0-0": has the name of the workers' StatefulSet of LeaderWorkerSet qwen-0; it is made once that one runs on one node`
	cases := map[string]struct {
		reason string
		see    func(s *scene)
		want   []string
	}{
		"Workers":   {"A rollout has not taken them away so far.", func(s *scene) { s.see("leaderworkerset/a/0", workload("qwen-0", nodes(2))) }, []string{waits}},
		"OneNode":   {"They are gone.", func(s *scene) { s.see("leaderworkerset/a/0", workload("qwen-0", nodes(1))) }, nil},
		"Another":   {"The workers have another name.", func(s *scene) { s.see("leaderworkerset/a/0", workload("qwen-1", nodes(2))) }, nil},
		"Elsewhere": {"They are in another cluster.", func(s *scene) { s.seeRemote("cluster/east/leaderworkerset/a/0", workload("qwen-0", nodes(2))) }, nil},
		"Exists": {"What exists stays.", func(s *scene) {
			s.see("leaderworkerset/a/0", workload("qwen-0", nodes(2)))
			s.see(lws0, workload("qwen-0-0"))
		}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.plan.Clusters[0].Groups[0].Replicas[0].Name = "qwen-0-0"
			s.drop(lws0)
			s.want(s.plan.Clusters[0].Target, lws0, workload("qwen-0-0"))
			tc.see(s)
			var got []string
			for _, e := range Read(s.request(), s.plan).Conflicts(s.objects).Refused {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
