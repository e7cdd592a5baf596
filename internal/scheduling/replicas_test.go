package scheduling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestGrantsToStatus proves that replicas with different grants are different entries.
func TestGrantsToStatus(t *testing.T) {
	s := &reservation.Service{Shapes: []capacity.PodRequirements{{Requests: capacity.Resources{"nvidia.com/gpu": 8000}}, {Requests: capacity.Resources{"nvidia.com/gpu": 4000}}}, Grants: []reservation.Grant{
		{Generation: 1, Pods: []int64{2}, Pin: &capacity.Pin{Pool: "h100"}, Replicas: []key.ReplicaID{"w/0", "w/2"}},
		{Generation: 1, Pods: []int64{2}, Replicas: []key.ReplicaID{"w/1"}},
		{Generation: 1, Pods: []int64{3}, Pin: &capacity.Pin{Pool: "h100"}, Replicas: []key.ReplicaID{"w/3"}},
		{Generation: 1, Pods: []int64{1, 1}, Replicas: []key.ReplicaID{"w/4"}},
		{Generation: 1, Pin: &capacity.Pin{Pool: "h100"}, Replicas: []key.ReplicaID{"w/5"}},
		// It has pods from before besides those that it requests, which are the same as those of the first ones.
		{Generation: 1, Pods: []int64{2, 1}, Requested: []int64{2}, Replicas: []key.ReplicaID{"w/6"}},
	}}
	got := scheduling.GrantsToStatus(s)
	two := s.Hasher()(&s.Grants[0])
	want := []v1alpha1.Replicas{
		{Role: "w", Indexes: []int32{0, 2}, Generation: 1, Nodes: 2, Pool: "h100", PodsHash: two},
		{Role: "w", Indexes: []int32{1}, Generation: 1, Nodes: 2, PodsHash: two},
		{Role: "w", Indexes: []int32{3}, Generation: 1, Nodes: 3, Pool: "h100", PodsHash: s.Hasher()(&s.Grants[2])},
		{Role: "w", Indexes: []int32{4}, Generation: 1, Nodes: 2, PodsHash: s.Hasher()(&s.Grants[3])},
		{Role: "w", Indexes: []int32{5}, Generation: 1, Pool: "h100"},
		{Role: "w", Indexes: []int32{6}, Generation: 1, Nodes: 3, PodsHash: two},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReplicas(t *testing.T) {
	cases := map[string]struct {
		reason   string
		replicas []key.ReplicaID
		want     []v1alpha1.Replicas
	}{
		"None":    {reason: "Nothing is reserved."},
		"Roles":   {reason: "The replicas of a role are one entry.", replicas: []key.ReplicaID{"prefill/0", "decode/0", "decode/2"}, want: []v1alpha1.Replicas{{Role: "prefill", Indexes: []int32{0}}, {Role: "decode", Indexes: []int32{0, 2}}}},
		"Groups":  {reason: "Each group has entries of its own.", replicas: []key.ReplicaID{"0/decode/0", "1/decode/0"}, want: []v1alpha1.Replicas{{Group: ptr.To[int32](0), Role: "decode", Indexes: []int32{0}}, {Group: ptr.To[int32](1), Role: "decode", Indexes: []int32{0}}}},
		"Number":  {reason: "A role may be called like a group.", replicas: []key.ReplicaID{"0/1"}, want: []v1alpha1.Replicas{{Role: "0", Indexes: []int32{1}}}},
		"Unknown": {reason: "Text that is no replica is left out.", replicas: []key.ReplicaID{"decode", "decode/0"}, want: []v1alpha1.Replicas{{Role: "decode", Indexes: []int32{0}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := scheduling.ReplicasToStatus(tc.replicas)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(got, scheduling.ReplicasToStatus(scheduling.ReplicasFromStatus(got))); diff != "" {
				t.Errorf("ReplicasFromStatus is not the inverse: -want +got:\n%s", diff)
			}
		})
	}
}
