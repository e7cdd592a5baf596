package scheduling_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestJoinsTheFleet proves that a cluster of the placement stays the same when it is named as a
// cluster of the fleet with the same provider configuration. Objects of claims do not name the
// kind of their configuration.
func TestJoinsTheFleet(t *testing.T) {
	for kind, claimed := range map[string]bool{"ClusterProviderConfig": false, "": true} {
		snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("us-east"))
		snapshot.States["east"] = schedulingtest.Existing("worker/0")
		snapshot.States["east"].ProviderConfig = v1alpha1.ProviderConfigRef{Kind: kind, Name: "us-east-config"}
		s := &scheduling.Demand{
			ServiceID: schedulingtest.Service, Claimed: claimed,
			Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, Clusters: []v1alpha1.PlacementCluster{{Name: "east", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "us-east"}}}},
		}
		all, warnings := scheduling.MembersOf(s, &snapshot)
		if diff := cmp.Diff([]string{"east is us-east"}, all); diff != "" || len(warnings) > 0 {
			t.Errorf("claimed %t: warnings %v, -want, +got:\n%s", claimed, warnings, diff)
		}
	}
}

// TestSameName proves which cluster a name of the placement stands for where something exists under it.
func TestSameName(t *testing.T) {
	fleet := func(cluster string) *v1alpha1.Placement {
		return &v1alpha1.Placement{Clusters: []v1alpha1.PlacementCluster{{Name: "east", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: cluster}}}}
	}
	cases := map[string]struct {
		reason     string
		placement  *v1alpha1.Placement
		config     string
		requested  bool
		unresolved bool
		want       []string
		warnings   int
	}{
		"Unknown":    {reason: "There is no such InferenceCluster, so it may be the same.", placement: fleet("gone"), config: "us-east-config", want: []string{"east is gone"}},
		"Other":      {reason: "It is another cluster, by its configuration.", placement: fleet("us-east"), config: "other", want: []string{"us-east is us-east", "east is , deselected"}, warnings: 1},
		"Outside":    {reason: "It leaves the fleet, and stays the same.", placement: &v1alpha1.Placement{Clusters: []v1alpha1.PlacementCluster{{Name: "east", ProviderConfigRef: &v1alpha1.ProviderConfigRef{Name: "us-east-config"}}}}, config: "us-east-config", requested: true, want: []string{"east is "}},
		"Selected":   {reason: "Until the clusters are known, the selector may still select it.", placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}, config: "us-east-config", requested: true, unresolved: true, want: []string{"east is us-east"}},
		"NotNamed":   {reason: "The placement does not name it, whatever clusters there are.", placement: &v1alpha1.Placement{Clusters: []v1alpha1.PlacementCluster{{Name: "west", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "west"}}}}, config: "us-east-config", requested: true, unresolved: true, want: []string{"west is west", "east is us-east, deselected"}},
		"Deselected": {reason: "The selector does not select it.", placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}}, config: "us-east-config", requested: true, want: []string{"east is us-east, deselected"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("us-east"))
			snapshot.States["east"] = schedulingtest.Existing("worker/0")
			snapshot.States["east"].ProviderConfig = v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: tc.config}
			snapshot.Request = schedulingtest.RequestOf()
			if tc.requested {
				snapshot.Request = schedulingtest.RequestedAs("us-east", "east")
			}
			if tc.unresolved {
				snapshot.Resolved, snapshot.Clusters = false, nil
			}
			got, warnings := scheduling.MembersOf(&scheduling.Demand{ServiceID: schedulingtest.Service, Placement: tc.placement}, &snapshot)
			if diff := cmp.Diff(tc.want, got); diff != "" || len(warnings) != tc.warnings {
				t.Errorf("%s It warns of %q.\n-want, +got:\n%s", tc.reason, warnings, diff)
			}
		})
	}
}

// TestNewDuplicates proves that of clusters with one provider configuration, where nothing exists, the first is used.
func TestNewDuplicates(t *testing.T) {
	snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"))
	config := &v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "east-config"}
	got := map[string]string{}
	for _, a := range scheduling.Schedule(&scheduling.Demand{ServiceID: schedulingtest.Service, Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{
		{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}, {Name: "b", ProviderConfigRef: config}, {Name: "c", ProviderConfigRef: config},
	}}}, &snapshot).Assignments {
		got[a.Name] = a.Message
	}
	const same = "it has the same provider configuration and namespace as a"
	if diff := cmp.Diff(map[string]string{"a": "it runs in no cluster", "b": same, "c": same}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestDuplicates proves that a service does not run twice in a cluster whose provider
// configuration is known by two names.
func TestDuplicates(t *testing.T) {
	for kind, claimed := range map[string]bool{"ClusterProviderConfig": false, "": true} {
		existing := schedulingtest.Existing("worker/0")
		existing.ProviderConfig, existing.Namespace = v1alpha1.ProviderConfigRef{Kind: kind, Name: "east-config"}, "ns"
		snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"))
		snapshot.States["old"] = existing
		s := &scheduling.Demand{
			ServiceID: schedulingtest.Service, Claimed: claimed,
			Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "new", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}},
		}
		got := map[string]string{}
		for _, a := range scheduling.Schedule(s, &snapshot).Assignments {
			got[a.Name] = a.Reason
		}
		if diff := cmp.Diff(map[string]string{"new": scheduling.ReasonDuplicate, "old": scheduling.ReasonDeselected}, got); diff != "" {
			t.Errorf("claimed %t: -want, +got:\n%s", claimed, diff)
		}
	}
}

// TestUnassigned proves that a replica that no cluster accepts is pending where the rest of its
// group is.
func TestUnassigned(t *testing.T) {
	group := func(name string, replicas ...key.ReplicaID) reservation.ReplicaGroup {
		g := reservation.ReplicaGroup{Name: key.GroupID(name)}
		for _, r := range replicas {
			g.Replicas = append(g.Replicas, reservation.ReplicaRequest{Name: r})
		}
		return g
	}
	run := func(replicas ...key.ReplicaID) map[key.ReplicaID]bool {
		m := map[key.ReplicaID]bool{}
		for _, r := range replicas {
			m[r] = true
		}
		return m
	}
	decisions := []scheduling.Decision{
		{Name: "west", State: v1alpha1.StatePlaced, Run: run("0/w/0", "0/w/1")},
		{Name: "east", State: v1alpha1.StatePlaced, Run: run("1/w/0")},
	}
	scheduling.AddUnassigned([]reservation.ReplicaGroup{group("0", "0/w/0", "0/w/1"), group("1", "1/w/0", "1/w/1"), group("2", "2/w/0")}, decisions)
	got := map[string][]key.ReplicaID{}
	for _, d := range decisions {
		got[d.Name] = d.Pending
	}
	if diff := cmp.Diff(map[string][]key.ReplicaID{"west": {"2/w/0"}, "east": {"1/w/1"}}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestNameInUse proves that a cluster gets another name if the service already uses its name
// for another cluster where it runs. The service leaves that one like any other.
func TestNameInUse(t *testing.T) {
	in := func(clusters ...v1alpha1.PlacementCluster) *v1alpha1.Placement {
		return &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, Clusters: clusters}
	}
	of := func(name, cluster string) v1alpha1.PlacementCluster {
		return v1alpha1.PlacementCluster{Name: name, InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: cluster}}
	}
	byConfig := func(name, config string) v1alpha1.PlacementCluster {
		return v1alpha1.PlacementCluster{Name: name, ProviderConfigRef: &v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: config}}
	}
	const called = `west is named %q, because the service already uses the name "east" for east`
	cases := map[string]struct {
		reason    string
		placement *v1alpha1.Placement
		as        string
		want      []string
		warning   string
	}{
		"Another":      {"The cluster where the service runs keeps its name.", in(of("b", "east"), of("east", "west")), "east", []string{"east is east", "west is west"}, fmt.Sprintf(called, "west")},
		"AnyOrder":     {"The order in the placement does not matter.", in(of("east", "west"), of("b", "east")), "east", []string{"west is west", "east is east"}, fmt.Sprintf(called, "west")},
		"Instead":      {"The service leaves the cluster where it runs.", in(of("east", "west")), "east", []string{"west is west", "east is east, deselected"}, fmt.Sprintf(called, "west")},
		"BothUsed":     {"The name of the InferenceCluster is used as well.", in(of("b", "east"), of("west", "other"), of("east", "west")), "east", []string{"east is east", "west is other", "east-west-0c3e77c0bc15 is west"}, ""},
		"Selected":     {"The name of a selected cluster is used for another one.", &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}, "west", []string{"west is east", "west-west-9e4ae96c14f2 is west"}, ""},
		"OutsideFirst": {"Nor can one that comes first.", in(byConfig("east", "c"), of("b", "east")), "east", []string{"east is east"}, `"east" is left out, because the service already uses this name for east: use another name`},
		"Outside":      {"A cluster outside of the fleet cannot get another name.", in(of("b", "east"), byConfig("east", "c")), "east", []string{"east is east"}, `"east" is left out, because the service already uses this name for east: use another name`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0")), schedulingtest.Cluster("west"))
			snapshot.States[tc.as], snapshot.Request = schedulingtest.Existing("worker/0"), schedulingtest.RequestedAs("east", tc.as)
			got, warnings := scheduling.MembersOf(&scheduling.Demand{ServiceID: schedulingtest.Service, Placement: tc.placement}, &snapshot)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if len(warnings) != 1 || tc.warning != "" && warnings[0] != tc.warning {
				t.Errorf("warnings: %v, want %q", warnings, tc.warning)
			}
		})
	}
}

// TestNotSchedulable proves that a cluster reserves nothing new unless it says so or has no
// conditions yet, and that its message is kept.
func TestNotSchedulable(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.InferenceCluster)
		want   string
	}{
		"True":    {reason: "The cluster is schedulable.", change: schedulingtest.Schedulable(metav1.ConditionTrue)},
		"False":   {reason: "The cluster is not schedulable.", change: schedulingtest.Schedulable(metav1.ConditionFalse), want: "it says why"},
		"Unknown": {reason: "The spec is refused or the reconcile fails, so the status is outdated.", change: schedulingtest.Schedulable(metav1.ConditionUnknown), want: "it says why"},
		"NoReason": {reason: "There is always a message.", change: func(c *v1alpha1.InferenceCluster) {
			c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSchedulable, Status: metav1.ConditionUnknown}}
		}, want: "it does not say that it reserves anything new"},
		"Paused": {reason: "Crossplane does not reconcile it, so no request is answered. Its conditions are as old as the pause.", change: func(c *v1alpha1.InferenceCluster) {
			schedulingtest.Schedulable(metav1.ConditionTrue)(c)
			c.Annotations = map[string]string{"crossplane.io/paused": "true"}
		}, want: "Crossplane does not reconcile it, because it has the annotation crossplane.io/paused"},
		"NoConditions": {reason: "A file that is planned offline has no conditions.", change: func(*v1alpha1.InferenceCluster) {}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, scheduling.ReadCluster(schedulingtest.Cluster("east", tc.change)).NotSchedulable); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
