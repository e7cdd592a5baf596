package profile

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
)

func object(tb testing.TB, o map[string]any) incoming.Object {
	tb.Helper()
	s, err := structpb.NewStruct(o)
	if err != nil {
		tb.Fatal(err)
	}
	return incoming.ObjectOf(s)
}

// TestSplit shows that each service finds its answers in the part of its UID, and nobody's are lost.
func TestSplit(t *testing.T) {
	all, used := Answers{}, map[int]bool{}
	for i := range 1000 {
		uid := fmt.Sprintf("uid-%d", i)
		all.Reservations = append(all.Reservations, v1alpha1.Reservation{UID: uid})
		all.Pending = append(all.Pending, v1alpha1.PendingRequest{UID: uid})
	}
	found := 0
	for i, part := range all.Split() {
		if part == nil {
			continue
		}
		used[i] = true
		for j := range part.Reservations {
			found++
			if uid := part.Reservations[j].UID; PartOf(uid) != i || part.Pending[j].UID != uid {
				t.Errorf("%s is in part %d, want %d", uid, i, PartOf(uid))
			}
		}
	}
	if found != 1000 || len(used) != Parts {
		t.Errorf("%d of 1000 services have answers, in %d of %d parts", found, len(used), Parts)
	}
}

// TestPartOf holds the parts of some UIDs. If they changed, a service would look for its answer in
// another part than the one to which an older version of the function writes it.
func TestPartOf(t *testing.T) {
	want := map[string]int{
		"3f0c2a5e-7b1d-4e6f-9a8b-0c1d2e3f4a5b": 0,
		"d9428888-122b-11e1-b85c-61cd3cbb3210": 6,
		"00000000-0000-0000-0000-000000000000": 11,
	}
	got := map[string]int{}
	for uid := range want {
		got[uid] = PartOf(uid)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNames shows that the ConfigMaps of no two clusters have one name, whatever numbers their names
// end with.
func TestNames(t *testing.T) {
	of := map[string]string{}
	for _, cluster := range []string{"a", "a-1", "a-11", "a-1-1", "profile-a", "answers-a-1", "a-profile"} {
		names := []string{"inferencecluster-" + cluster, Name(cluster), EstimatesName(cluster)}
		for i := range Parts {
			names = append(names, PartName(cluster, i))
		}
		for _, n := range names {
			if other, taken := of[n]; taken {
				t.Errorf("%s and %s both have %s", cluster, other, n)
			}
			of[n] = cluster
		}
	}
}

// TestOffline shows what services read of an InferenceCluster in a file: all of its status but what is
// about other services.
func TestOffline(t *testing.T) {
	told, err := Offline("fleet", map[string]any{
		"metadata": map[string]any{"name": "east", "labels": map[string]any{"region": "us"}, "annotations": map[string]any{"not": "told"}},
		"spec":     map[string]any{"stopPolicy": "Hold"},
		"status": map[string]any{
			"clusterUID": "real", "pools": []any{map[string]any{"name": "p", "nodeCount": int64(4), "nodeSelector": map[string]any{"gpu": "a"}, "free": []any{map[string]any{"nodeCount": int64(2)}}}},
			"reservations": []any{map[string]any{"uid": "u1", "name": "s1"}},
			"pending":      []any{map[string]any{"uid": "u2", "name": "s2", "message": "8 short"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "clusterprofile-east", "namespace": "fleet", "labels": map[string]any{"fusioninfer.io/cluster-profile": "true"}},
		"data":     map[string]any{"inferencecluster": `{"metadata":{"labels":{"region":"us"},"name":"east"},"spec":{"stopPolicy":"Hold"},"status":{"clusterUID":"real","pools":[{"name":"p","nodeSelector":{"gpu":"a"}}]}}`},
	}, told[0]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	estimated := object(t, map[string]any{
		"metadata": map[string]any{"name": "east"},
		"status":   map[string]any{"pools": []any{map[string]any{"name": "p", "nodeCount": 4, "nodeSelector": map[string]any{"gpu": "a"}, "free": []any{map[string]any{"nodeCount": 2}}}}},
	})
	if got := Estimated(object(t, told[1])); !reflect.DeepEqual(got, estimated) {
		t.Errorf("the estimates are %v, want %v", got, estimated)
	}
	answers := Answers{}
	for _, o := range told[2:] {
		a, err := ReadAnswers(object(t, o))
		if err != nil {
			t.Fatal(err)
		}
		answers.Reservations, answers.Pending = append(answers.Reservations, a.Reservations...), append(answers.Pending, a.Pending...)
	}
	if diff := cmp.Diff(Answers{
		Reservations: []v1alpha1.Reservation{{UID: "u1", Name: "s1"}}, Pending: []v1alpha1.PendingRequest{{UID: "u2", Name: "s2", Message: "8 short"}},
	}, answers); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestUnreadable shows that what somebody has damaged is a cluster that is not known, or an error.
func TestUnreadable(t *testing.T) {
	for name, text := range map[string]string{"Nothing": "", "NoJSON": "{", "List": "[]", "Number": "7"} {
		t.Run(name, func(t *testing.T) {
			damaged := object(t, map[string]any{"data": map[string]any{"inferencecluster": text, "pools": text, "estimates": text}, "binaryData": map[string]any{"answers": text}})
			if got := Cluster(damaged).Name(); got != "" {
				t.Errorf("the name is %q, want none", got)
			}
			if diff := cmp.Diff(map[string]capacity.Estimate{}, Estimates(damaged)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if got, none := Estimated(damaged), Estimated(object(t, map[string]any{})); !reflect.DeepEqual(got, none) {
				t.Errorf("the estimates are %v, want %v", got, none)
			}
			if a, err := ReadAnswers(damaged); err == nil {
				t.Errorf("there is no error, and the answers are %v", a)
			}
		})
	}
}
