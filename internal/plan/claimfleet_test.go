package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
)

// TestComesIntoTheFleet proves that a cluster that a service named itself is the same one when it is
// named as one of the fleet and reached in the same way. Objects of claims do not say of which kind
// their provider configuration is.
func TestComesIntoTheFleet(t *testing.T) {
	for kind, claimed := range map[string]bool{"ClusterProviderConfig": false, "": true} {
		w := world(aCluster("us-east"))
		w.Places["east"] = there("worker/0")
		w.Places["east"].Config = v1alpha1.ProviderConfigRef{Kind: kind, Name: "us-east-config"}
		f := &fleetPlanner{
			p: &Plan{Service: Service{Name: "svc", Namespace: "ns", UID: "uid", Claimed: claimed}}, world: w,
			placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, Clusters: []v1alpha1.Cluster{{Name: "east", InferenceCluster: "us-east"}}},
		}
		all := f.findMembers()
		if len(all) != 1 || all[0].target.Cluster != "east" || len(f.p.Warnings) > 0 {
			t.Errorf("claimed %t: it is %+v, want one cluster that is called east; warnings: %v", claimed, all, f.p.Warnings)
		}
	}
}

// TestTwins proves that a service is not twice in a cluster that is reached in the same way under
// two names.
func TestTwins(t *testing.T) {
	for kind, claimed := range map[string]bool{"ClusterProviderConfig": false, "": true} {
		there := Target{Cluster: "old", Namespace: "ns", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: kind, Name: "c"}}
		again := Target{Cluster: "new", Namespace: "ns", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}}
		f := &fleetPlanner{
			p:       &Plan{Service: Service{Claimed: claimed}},
			world:   World{Places: map[string]*Place{"old": {}}},
			members: []member{{target: again}, {target: there}},
		}
		all := []fleet.Candidate{{Name: "new"}, {Name: "old"}}
		f.findTwins(all)
		if all[0].Twin != "old" || all[1].Twin != "" {
			t.Errorf("claimed %t: new is the twin of %q and old of %q, want that of old and of none", claimed, all[0].Twin, all[1].Twin)
		}
	}
}

// TestUnplaced proves that what no cluster takes waits where the rest of its unit is.
func TestUnplaced(t *testing.T) {
	unit := func(name string, replicas ...string) fleet.Unit {
		u := fleet.Unit{Name: name}
		for _, r := range replicas {
			u.Replicas = append(u.Replicas, fleet.Replica{Name: r})
		}
		return u
	}
	run := func(replicas ...string) map[string]bool {
		m := map[string]bool{}
		for _, r := range replicas {
			m[r] = true
		}
		return m
	}
	f := &fleetPlanner{
		p: &Plan{Fleet: &Fleet{Decisions: []fleet.Decision{
			{Name: "west", State: fleet.Placed, Run: run("0/w/0", "0/w/1")},
			{Name: "east", State: fleet.Placed, Run: run("1/w/0")},
		}}},
		units: []fleet.Unit{unit("0", "0/w/0", "0/w/1"), unit("1", "1/w/0", "1/w/1"), unit("2", "2/w/0")},
	}
	f.countUnplaced()
	got := map[string][]string{}
	for _, d := range f.p.Fleet.Decisions {
		got[d.Name] = d.Wait
	}
	if diff := cmp.Diff(map[string][]string{"west": {"2/w/0"}, "east": {"1/w/1"}}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
