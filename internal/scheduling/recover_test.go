package scheduling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestLostRequest proves that a service that has lost its request still knows the clusters of the
// fleet where it runs, by the configuration of its Objects and by its grants.
func TestLostRequest(t *testing.T) {
	entry := func(name, cluster string) v1alpha1.PlacementCluster {
		return v1alpha1.PlacementCluster{Name: name, InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: cluster}}
	}
	outside := v1alpha1.PlacementCluster{Name: "old", ProviderConfigRef: &v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "east-config"}}
	cases := map[string]struct {
		reason   string
		clusters []v1alpha1.PlacementCluster
		config   string
		claimed  bool
		grants   bool
		want     []string
	}{
		"Deselected": {reason: "The placement does not name it any more.", clusters: []v1alpha1.PlacementCluster{entry("west", "west")}, config: "east-config", grants: true, want: []string{"west is west", "old is east, deselected"}},
		"Claim":      {reason: "Its Objects do not name the kind of their configuration.", clusters: []v1alpha1.PlacementCluster{entry("west", "west")}, config: "east-config", claimed: true, grants: true, want: []string{"west is west", "old is east, deselected"}},
		"Renamed":    {reason: "The placement has another name for it.", clusters: []v1alpha1.PlacementCluster{entry("new", "east")}, config: "east-config", grants: true, want: []string{"old is east"}},
		"NoGrants":   {reason: "The cluster has granted nothing.", clusters: []v1alpha1.PlacementCluster{entry("west", "west")}, config: "east-config", want: []string{"west is west", "old is , deselected"}},
		"Other":      {reason: "It is another cluster.", clusters: []v1alpha1.PlacementCluster{entry("west", "west")}, config: "other-config", grants: true, want: []string{"west is west", "old is , deselected"}},
		"OtherNamed": {reason: "It is not the cluster that has the grants, although that is named.", clusters: []v1alpha1.PlacementCluster{entry("east", "east")}, config: "other-config", grants: true, want: []string{"east is east", "old is , deselected"}},
		"NameTaken":  {reason: "The placement has its name for another cluster.", clusters: []v1alpha1.PlacementCluster{entry("old", "west")}, config: "east-config", grants: true, want: []string{"west is west", "old is east, deselected"}},
		"Both":       {reason: "The placement names it in both ways, and its objects are those of the configuration.", clusters: []v1alpha1.PlacementCluster{outside, entry("east", "east")}, config: "east-config", grants: true, want: []string{"old is ", "east is east"}},
		"Outside":    {reason: "The placement names the configuration itself.", clusters: []v1alpha1.PlacementCluster{outside, entry("west", "west")}, config: "east-config", grants: true, want: []string{"old is ", "west is west"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			east := schedulingtest.Cluster("east")
			if tc.grants {
				schedulingtest.Reserved("worker/0")(east)
			}
			snapshot := schedulingtest.Snapshot(east, schedulingtest.Cluster("west"))
			snapshot.Request = nil
			snapshot.States["old"] = schedulingtest.Existing("worker/0")
			snapshot.States["old"].ProviderConfig = v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: tc.config}
			if tc.claimed {
				snapshot.States["old"].ProviderConfig.Kind = ""
			}
			demand := &scheduling.Demand{ServiceID: schedulingtest.Service, Claimed: tc.claimed, Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, Clusters: tc.clusters}}
			got, _ := scheduling.MembersOf(demand, &snapshot)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLostRequestKeepsGrants proves that a request that is written again still has what runs in a
// cluster that the placement does not name any more.
func TestLostRequestKeepsGrants(t *testing.T) {
	snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0")), schedulingtest.Cluster("west"))
	snapshot.Request = nil
	snapshot.States["east"] = schedulingtest.Existing("worker/0")
	snapshot.States["east"].ProviderConfig = v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "east-config"}
	snapshot.States["east"].Namespace = "ns"
	result := scheduling.Schedule(&scheduling.Demand{
		ServiceID:       schedulingtest.Service,
		Placement:       &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, Clusters: []v1alpha1.PlacementCluster{{Name: "west", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "west"}}}},
		Groups:          []reservation.ReplicaGroup{{Name: "0", Replicas: []reservation.ReplicaRequest{{Name: "worker/0", Pods: map[string]int64{"worker/leader": 1}}}}},
		PodRequirements: map[string]capacity.PodRequirements{"worker/leader": {Requests: capacity.Resources{"nvidia.com/gpu": 8000}}},
	}, &snapshot)
	type requested struct {
		Running             []key.ReplicaID
		Namespace, Withdraw string
	}
	got := requested{Running: result.Request.Clusters["east"].Running, Namespace: result.Request.Clusters["east"].Namespace}
	for _, name := range result.Withdrawn {
		got.Withdraw += name
	}
	if diff := cmp.Diff(requested{Running: []key.ReplicaID{"worker/0"}, Namespace: "ns"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestLostGeneration proves that a request which replaces a lost one has a generation that nothing was granted for before.
func TestLostGeneration(t *testing.T) {
	granted := func(generation int64) func(*scheduling.Snapshot) {
		return func(s *scheduling.Snapshot) {
			schedulingtest.Reserved("worker/0")(s.Clusters["west"])
			s.Clusters["west"].Status.Reservations[0].Replicas[0].Generation = generation
		}
	}
	pending := func(uid string, generation int64) func(*scheduling.Snapshot) {
		return func(s *scheduling.Snapshot) {
			s.Clusters["west"].Status.Pending = []v1alpha1.PendingRequest{{UID: uid, Namespace: "ns", Name: "svc", Generation: generation}}
		}
	}
	told := func(generation int64) func(*scheduling.Snapshot) {
		return func(s *scheduling.Snapshot) {
			s.States["east"] = schedulingtest.Existing("worker/0")
			s.States["east"].Told = map[key.ReplicaID]scheduling.Told{"worker/0": {Generation: generation}}
		}
	}
	cases := map[string]struct {
		reason  string
		changes []func(*scheduling.Snapshot)
		want    int64
	}{
		"New":     {reason: "Nothing was answered.", want: 1},
		"Granted": {reason: "A cluster has granted the generation 5.", changes: []func(*scheduling.Snapshot){granted(5)}, want: 6},
		"Pending": {reason: "A cluster has refused the generation 7.", changes: []func(*scheduling.Snapshot){granted(5), pending("uid", 7)}, want: 8},
		"Other":   {reason: "What another service waits for does not count.", changes: []func(*scheduling.Snapshot){granted(5), pending("other", 7)}, want: 6},
		"Told":    {reason: "An object has the generation 9.", changes: []func(*scheduling.Snapshot){granted(5), told(9)}, want: 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("west"))
			for _, change := range tc.changes {
				change(&snapshot)
			}
			result := scheduling.Schedule(&scheduling.Demand{ServiceID: schedulingtest.Service, Placement: placementIn("east"), Groups: oneWorker, PodRequirements: gpus(8)}, &snapshot)
			if diff := cmp.Diff(tc.want, result.Request.Generation); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
