package scheduling_test

import (
	stdcmp "cmp"
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
		// kind of the configuration. Empty means ClusterProviderConfig.
		kind     string
		want     []string
		warnings int
	}{
		"Unknown":    {reason: "There is no such InferenceCluster, so it may be the same.", placement: fleet("gone"), config: "us-east-config", want: []string{"east is gone"}},
		"Other":      {reason: "It is another cluster, by its configuration.", placement: fleet("us-east"), config: "other", want: []string{"us-east is us-east", "east is , deselected"}, warnings: 1},
		"OtherKind":  {reason: "Its configuration has another kind.", placement: fleet("us-east"), config: "us-east-config", kind: "ProviderConfig", want: []string{"us-east is us-east", "east is , deselected"}, warnings: 1},
		"Invalid":    {reason: "A selector that is invalid selects nothing.", placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: "Near"}}}}, config: "us-east-config", requested: true, want: []string{"east is us-east, deselected"}},
		"Outside":    {reason: "It leaves the fleet, and stays the same.", placement: &v1alpha1.Placement{Clusters: []v1alpha1.PlacementCluster{{Name: "east", ProviderConfigRef: &v1alpha1.ProviderConfigRef{Name: "us-east-config"}}}}, config: "us-east-config", requested: true, want: []string{"east is "}},
		"Selected":   {reason: "Until the clusters are known, the selector may still select it.", placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}, config: "us-east-config", requested: true, unresolved: true, want: []string{"east is us-east"}},
		"NotNamed":   {reason: "The placement does not name it, whatever clusters there are.", placement: &v1alpha1.Placement{Clusters: []v1alpha1.PlacementCluster{{Name: "west", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "west"}}}}, config: "us-east-config", requested: true, unresolved: true, want: []string{"west is west", "east is us-east, deselected"}},
		"Deselected": {reason: "The selector does not select it.", placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}}, config: "us-east-config", requested: true, want: []string{"east is us-east, deselected"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("us-east"))
			snapshot.States["east"] = schedulingtest.Existing("worker/0")
			snapshot.States["east"].ProviderConfig = v1alpha1.ProviderConfigRef{Kind: stdcmp.Or(tc.kind, "ClusterProviderConfig"), Name: tc.config}
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

// TestTargets proves where the objects of a service go, and how they are reached. The placement names the InferenceCluster us-east
// as east, and the request knows it by that name.
func TestTargets(t *testing.T) {
	ref := func(kind, name string) v1alpha1.ProviderConfigRef {
		return v1alpha1.ProviderConfigRef{Kind: kind, Name: name}
	}
	const kind = "ClusterProviderConfig"
	exists := func(config v1alpha1.ProviderConfigRef, namespace string) func(*scheduling.Snapshot) {
		return func(s *scheduling.Snapshot) {
			s.States["east"] = schedulingtest.Existing("worker/0")
			s.States["east"].ProviderConfig, s.States["east"].Namespace = config, namespace
		}
	}
	gone := func(s *scheduling.Snapshot) { delete(s.Clusters, "us-east") }
	forget := func(s *scheduling.Snapshot) { s.Request = schedulingtest.RequestOf() }
	named := &v1alpha1.Placement{Clusters: []v1alpha1.PlacementCluster{{Name: "east", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "us-east"}}}}
	outside := &v1alpha1.Placement{Clusters: []v1alpha1.PlacementCluster{{Name: "east", ProviderConfigRef: &v1alpha1.ProviderConfigRef{Kind: kind, Name: "new"}}}}
	cases := map[string]struct {
		reason    string
		placement *v1alpha1.Placement
		claimed   bool
		changes   []func(*scheduling.Snapshot)
		want      scheduling.Target
	}{
		"New":     {reason: "The InferenceCluster says how it is reached.", placement: named, want: scheduling.Target{Cluster: "east", Namespace: "ns", ProviderConfig: ref(kind, "us-east-config")}},
		"Exists":  {reason: "What exists stays in its namespace.", placement: named, changes: []func(*scheduling.Snapshot){exists(ref(kind, "us-east-config"), "theirs")}, want: scheduling.Target{Cluster: "east", Namespace: "theirs", ProviderConfig: ref(kind, "us-east-config")}},
		"Claimed": {reason: "What exists keeps its configuration, as its objects name it.", placement: named, claimed: true, changes: []func(*scheduling.Snapshot){exists(ref("", "us-east-config"), "theirs")}, want: scheduling.Target{Cluster: "east", Namespace: "theirs", ProviderConfig: ref("", "us-east-config")}},
		"Unnamed": {reason: "The configuration of what exists was not read.", placement: named, changes: []func(*scheduling.Snapshot){exists(ref("", ""), "")}, want: scheduling.Target{Cluster: "east", Namespace: "ns", ProviderConfig: ref(kind, "us-east-config")}},
		"Gone":    {reason: "There is no such InferenceCluster, and the request remembers it.", placement: named, changes: []func(*scheduling.Snapshot){gone}, want: scheduling.Target{Cluster: "east", Namespace: "ns", ProviderConfig: ref(kind, "remembered")}},
		"GoneExists": {
			reason: "Only what exists knows its configuration.", placement: named, changes: []func(*scheduling.Snapshot){gone, forget, exists(ref(kind, "own"), "theirs")},
			want: scheduling.Target{Cluster: "east", Namespace: "theirs", ProviderConfig: ref(kind, "own")},
		},
		"GoneRenamed": {reason: "The request has it under another name.", placement: named, changes: []func(*scheduling.Snapshot){gone, func(s *scheduling.Snapshot) {
			s.Request = schedulingtest.RequestedAs("us-east", "other")
		}}, want: scheduling.Target{Cluster: "east", Namespace: "ns"}},
		"Outside": {reason: "An entry with a configuration says itself how the cluster is reached.", placement: outside, changes: []func(*scheduling.Snapshot){forget, exists(ref(kind, "old"), "theirs")}, want: scheduling.Target{Cluster: "east", Namespace: "ns", ProviderConfig: ref(kind, "new")}},
		"Left": {reason: "The placement names it no longer, and its objects name no namespace.", placement: placementIn("west"), changes: []func(*scheduling.Snapshot){exists(ref(kind, "us-east-config"), ""), func(s *scheduling.Snapshot) {
			at := s.Request.Clusters["us-east"]
			at.Namespace = "theirs"
			s.Request.Clusters["us-east"] = at
		}}, want: scheduling.Target{Cluster: "east", Namespace: "theirs", ProviderConfig: ref(kind, "us-east-config")}},
		"LeftLost": {reason: "The same, and the request is lost.", placement: placementIn("west"), changes: []func(*scheduling.Snapshot){exists(ref(kind, "us-east-config"), ""), func(s *scheduling.Snapshot) {
			s.Request = nil
			schedulingtest.Reserved("worker/0")(s.Clusters["us-east"])
		}}, want: scheduling.Target{Cluster: "east", Namespace: "ns", ProviderConfig: ref(kind, "us-east-config")}},
		"LeftOutside": {reason: "It was never of the fleet.", placement: placementIn("west"), changes: []func(*scheduling.Snapshot){forget, exists(ref(kind, "own"), "theirs")}, want: scheduling.Target{Cluster: "east", Namespace: "theirs", ProviderConfig: ref(kind, "own")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("us-east"))
			snapshot.Request = schedulingtest.RequestedAs("us-east", "east")
			for _, change := range tc.changes {
				change(&snapshot)
			}
			for _, a := range scheduling.Schedule(&scheduling.Demand{ServiceID: schedulingtest.Service, Claimed: tc.claimed, Placement: tc.placement}, &snapshot).Assignments {
				if a.Name != "east" {
					continue
				}
				if diff := cmp.Diff(tc.want, a.Target); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestKeepsRouter proves where a service without replicas keeps its endpoint picker. It had one in east.
func TestKeepsRouter(t *testing.T) {
	stop := func(policy v1alpha1.StopPolicy) func(*scheduling.Demand, *scheduling.Snapshot) {
		return func(_ *scheduling.Demand, s *scheduling.Snapshot) { s.Clusters["east"].Spec.StopPolicy = policy }
	}
	cases := map[string]struct {
		reason  string
		changes []func(*scheduling.Demand, *scheduling.Snapshot)
		want    bool
	}{
		"Stopped":    {reason: "It stays while the service has stopped.", want: true},
		"Nothing":    {reason: "There is none.", changes: []func(*scheduling.Demand, *scheduling.Snapshot){func(_ *scheduling.Demand, s *scheduling.Snapshot) { s.States = nil }}},
		"Groups":     {reason: "What runs decides where the service has groups.", changes: []func(*scheduling.Demand, *scheduling.Snapshot){func(d *scheduling.Demand, _ *scheduling.Snapshot) { d.Groups = oneWorker }}},
		"Deselected": {reason: "The service leaves the cluster.", changes: []func(*scheduling.Demand, *scheduling.Snapshot){func(d *scheduling.Demand, _ *scheduling.Snapshot) { d.Placement = placementIn("west") }}},
		"Drained":    {reason: "So it does when the cluster is drained.", changes: []func(*scheduling.Demand, *scheduling.Snapshot){stop(v1alpha1.StopDrain)}},
		"NotAllowed": {reason: "So it does when the cluster no longer allows the namespace, although the placement names it.", changes: []func(*scheduling.Demand, *scheduling.Snapshot){func(_ *scheduling.Demand, s *scheduling.Snapshot) {
			s.Clusters["east"].Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesNames, Names: []string{"theirs"}}
		}}},
		"OnHold":    {reason: "It stays where nothing new goes.", changes: []func(*scheduling.Demand, *scheduling.Snapshot){stop(v1alpha1.StopHold)}, want: true},
		"Abandoned": {reason: "It would be deleted in the cluster.", changes: []func(*scheduling.Demand, *scheduling.Snapshot){stop(v1alpha1.StopAbandon)}, want: true},
		"Orphaned": {reason: "It can be forgotten.", changes: []func(*scheduling.Demand, *scheduling.Snapshot){stop(v1alpha1.StopAbandon), func(_ *scheduling.Demand, s *scheduling.Snapshot) {
			s.States["east"].Orphaned = true
		}}},
		"OrphanedOnly": {reason: "The cluster is not abandoned any more.", changes: []func(*scheduling.Demand, *scheduling.Snapshot){func(_ *scheduling.Demand, s *scheduling.Snapshot) {
			s.States["east"].Orphaned = true
		}}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("west"))
			snapshot.Request = schedulingtest.RequestedAs("east", "east")
			snapshot.States["east"] = schedulingtest.Existing()
			demand := &scheduling.Demand{ServiceID: schedulingtest.Service, Placement: placementIn("east"), PodRequirements: gpus(8)}
			for _, change := range tc.changes {
				change(demand, &snapshot)
			}
			got := map[string]bool{}
			for _, a := range scheduling.Schedule(demand, &snapshot).Assignments {
				if a.KeepsRouter {
					got[a.Name] = true
				}
			}
			want := map[string]bool{}
			if tc.want {
				want["east"] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNewDuplicates proves which of three clusters with one provider configuration is used.
func TestNewDuplicates(t *testing.T) {
	const none, asA, asB, asC = "it runs in no cluster", "it has the same provider configuration and namespace as a", "it has the same provider configuration and namespace as b", "it has the same provider configuration and namespace as c"
	cases := map[string]struct {
		reason string
		exist  []string
		want   map[string]string
	}{
		"None": {reason: "The first is used where nothing exists.", want: map[string]string{"a": none, "b": asA, "c": asA}},
		"One":  {reason: "What exists comes first.", exist: []string{"b"}, want: map[string]string{"a": asB, "b": none, "c": asB}},
		"Two":  {reason: "What exists twice is used twice.", exist: []string{"b", "c"}, want: map[string]string{"a": asC, "b": none, "c": none}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"))
			config := &v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "east-config"}
			for _, name := range tc.exist {
				snapshot.States[name] = schedulingtest.Existing()
				snapshot.States[name].ProviderConfig, snapshot.States[name].Namespace = *config, "ns"
			}
			got := map[string]string{}
			for _, a := range scheduling.Schedule(&scheduling.Demand{ServiceID: schedulingtest.Service, Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{
				{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}, {Name: "b", ProviderConfigRef: config}, {Name: "c", ProviderConfigRef: config},
			}}}, &snapshot).Assignments {
				got[a.Name] = a.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
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
		// also is another name under which something exists.
		also string
	}{
		"Another":      {"The cluster where the service runs keeps its name.", in(of("b", "east"), of("east", "west")), "east", []string{"east is east", "west is west"}, fmt.Sprintf(called, "west"), ""},
		"AnyOrder":     {"The order in the placement does not matter.", in(of("east", "west"), of("b", "east")), "east", []string{"west is west", "east is east"}, fmt.Sprintf(called, "west"), ""},
		"Instead":      {"The service leaves the cluster where it runs.", in(of("east", "west")), "east", []string{"west is west", "east is east, deselected"}, fmt.Sprintf(called, "west"), ""},
		"BothUsed":     {"The name of the InferenceCluster is used as well.", in(of("b", "east"), of("west", "other"), of("east", "west")), "east", []string{"east is east", "west is other", "east-west-0c3e77c0bc15 is west"}, "", ""},
		"Selected":     {"The name of a selected cluster is used for another one.", &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}, "west", []string{"west is east", "west-west-9e4ae96c14f2 is west"}, "", ""},
		"BothExist":    {"Something exists under the name of the InferenceCluster.", in(of("b", "east"), of("east", "west")), "east", []string{"east is east", "east-west-0c3e77c0bc15 is west", "west is , deselected"}, "", "west"},
		"OutsideFirst": {"Nor can one that comes first.", in(byConfig("east", "c"), of("b", "east")), "east", []string{"east is east"}, `"east" is left out, because the service already uses this name for east: use another name`, ""},
		"Outside":      {"A cluster outside of the fleet cannot get another name.", in(of("b", "east"), byConfig("east", "c")), "east", []string{"east is east"}, `"east" is left out, because the service already uses this name for east: use another name`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0")), schedulingtest.Cluster("west"))
			snapshot.States[tc.as], snapshot.Request = schedulingtest.Existing("worker/0"), schedulingtest.RequestedAs("east", tc.as)
			if tc.also != "" {
				snapshot.States[tc.also] = schedulingtest.Existing("worker/0")
			}
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
		"Hold": {reason: "The condition is older than the spec.", change: func(c *v1alpha1.InferenceCluster) {
			schedulingtest.Schedulable(metav1.ConditionTrue)(c)
			c.Spec.StopPolicy, c.Spec.StopMessage = v1alpha1.StopHold, "a test"
		}, want: "the cluster is on hold: a test"},
		"HoldSays": {reason: "The condition says so itself.", change: func(c *v1alpha1.InferenceCluster) {
			schedulingtest.Schedulable(metav1.ConditionFalse)(c)
			c.Spec.StopPolicy = v1alpha1.StopHold
		}, want: "it says why"},
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
