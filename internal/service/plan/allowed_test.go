package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// allows is a cluster that allows some namespaces only.
func allows(names ...string) func(*v1alpha1.InferenceCluster) {
	return func(c *v1alpha1.InferenceCluster) {
		c.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesNames, Names: names}
	}
}

// allowsGold is a cluster that allows namespaces with a label.
func allowsGold(c *v1alpha1.InferenceCluster) {
	c.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesSelector, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
}

func planFor(t *testing.T, placement *v1alpha1.Placement, w scheduling.Snapshot) *Plan {
	t.Helper()
	placement.FailoverAfterSeconds = ptr.To[int32](300)
	p, errs := place(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid"}, &v1alpha1.InferenceServiceSpec{
		Placement: placement,
		Roles: []v1alpha1.Role{
			{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](1), Template: document(t, `{"spec":{"containers":[{"name":"vllm","image":"i","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`)},
		},
	}, defaultInput(), w, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return p
}

// TestAllowedNamespaces proves where a service runs, and which clusters it leaves, if clusters do not
// allow its namespace.
func TestAllowedNamespaces(t *testing.T) {
	selected := v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, ClusterSelector: &metav1.LabelSelector{}}
	named := v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, Clusters: []v1alpha1.PlacementCluster{{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}, {Name: "b", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "west"}}}}
	labelled := func(w scheduling.Snapshot, tier string) scheduling.Snapshot {
		w.NamespaceResolved, w.NamespaceLabels = true, map[string]string{"tier": tier}
		return w
	}
	runs := func(w scheduling.Snapshot, cluster, as string) scheduling.Snapshot {
		w.Request, w.States[as] = schedulingtest.RequestedAs(cluster, as), schedulingtest.Existing("worker/0")
		return w
	}
	const gone = "the cluster no longer allows this namespace, and is left once it runs elsewhere"
	cases := map[string]struct {
		reason    string
		placement v1alpha1.Placement
		snapshot  scheduling.Snapshot
		// want has the decision about each cluster, and requested the clusters in the capacity request.
		want      []string
		requested []string
		reads     bool
	}{
		"Selected": {reason: "A cluster that does not allow the namespace is no candidate, and not described.", placement: selected, snapshot: schedulingtest.Snapshot(schedulingtest.Cluster("east", allows("other")), schedulingtest.Cluster("west", allows("ns"))), want: []string{"west Pending Requested: capacity was requested, and the cluster has not answered yet"}, requested: []string{"west"}},
		"None":     {reason: "No cluster allows the namespace.", placement: selected, snapshot: schedulingtest.Snapshot(schedulingtest.Cluster("east", allows("other")))},
		"Named": {
			reason: "A named cluster that does not allow it is described like one that does not exist.", placement: named, snapshot: schedulingtest.Snapshot(schedulingtest.Cluster("west", allows("other"))),
			want: []string{"a NotPlaced ClusterUnknown: there is no InferenceCluster east, or none with a profile in fleet.namespace of the Input", "b NotPlaced ClusterUnknown: there is no InferenceCluster west, or none with a profile in fleet.namespace of the Input"},
		},
		"Labels":      {reason: "The labels of the namespace are read.", placement: selected, snapshot: labelled(schedulingtest.Snapshot(schedulingtest.Cluster("east", allowsGold)), "gold"), want: []string{"east Pending Requested: capacity was requested, and the cluster has not answered yet"}, requested: []string{"east"}, reads: true},
		"OtherLabels": {reason: "A namespace with other labels is not allowed.", placement: selected, snapshot: labelled(schedulingtest.Snapshot(schedulingtest.Cluster("east", allowsGold)), "free"), reads: true},
		"NotRead":     {reason: "Until the labels are known, the cluster is no candidate and is not described.", placement: selected, snapshot: schedulingtest.Snapshot(schedulingtest.Cluster("east", allowsGold)), reads: true},
		"NotReadRuns": {
			reason: "Until the labels are known, the service does not leave a cluster either.", placement: selected, snapshot: runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", allowsGold), schedulingtest.Cluster("west")), "east", "east"), reads: true,
			want:      []string{"east Placed ClusterUnknown: it is not known yet whether it allows namespace ns", "west NotPlaced NotNeeded: it runs in east"},
			requested: []string{"east"},
		},
		"Runs": {
			reason: "Where the service runs, it stays until it runs elsewhere.", placement: selected, snapshot: runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", allows("other")), schedulingtest.Cluster("west")), "east", "east"),
			want:      []string{"west Pending Requested: capacity was requested, and the cluster has not answered yet", "east Leaving NotSelected: " + gone},
			requested: []string{"east", "west"},
		},
		"RunsNamed": {
			reason: "The cluster keeps the name that the service knows it by.", placement: named, snapshot: runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", allows("other")), schedulingtest.Cluster("west")), "east", "a"),
			want:      []string{"b Pending Requested: capacity was requested, and the cluster has not answered yet", "a Leaving NotSelected: " + gone},
			requested: []string{"east", "west"},
		},
		"RunsOnly": {
			reason: "What serves stays if it can run nowhere else.", placement: selected, snapshot: runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", allows("other"))), "east", "east"),
			want:      []string{"east Leaving NotSelected: " + gone},
			requested: []string{"east"},
		},
		"RequestedOnly": {
			reason: "A capacity request is withdrawn.", placement: selected, snapshot: func() scheduling.Snapshot {
				w := schedulingtest.Snapshot(schedulingtest.Cluster("east", allows("other")))
				w.Request = schedulingtest.RequestedAs("east", "east")
				return w
			}(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planFor(t, &tc.placement, tc.snapshot)
			var got []string
			for _, d := range p.Schedule.Assignments {
				got = append(got, strings.TrimSpace(d.Name+" "+string(d.State)+" "+d.Reason+": "+d.Message))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ndecisions: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.requested, slices.Sorted(maps.Keys(p.Schedule.Request.Clusters))); diff != "" {
				t.Errorf("%s\nrequested: -want, +got:\n%s", tc.reason, diff)
			}
			if p.Schedule.ReadsNamespace != tc.reads {
				t.Errorf("%s: the namespace is required: %t", tc.reason, p.Schedule.ReadsNamespace)
			}
		})
	}
}

// TestNoOracle proves that a tenant finds out nothing about clusters that it may not use: the
// plan is the same as if they did not exist, whatever the placement names or selects.
func TestNoOracle(t *testing.T) {
	secret := schedulingtest.Cluster("secret", allows("other"), schedulingtest.Reserved("worker/0"))
	secret.Status.Reservations[0].Namespace = "other"
	placements := map[string]v1alpha1.Placement{
		"Selected": {Policy: v1alpha1.PlacementSpread, ClusterSelector: &metav1.LabelSelector{}},
		"Named":    {Policy: v1alpha1.PlacementFailover, Clusters: []v1alpha1.PlacementCluster{{Name: "x", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "secret"}}, {Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}},
		"NameOfIt": {Policy: v1alpha1.PlacementFailover, Clusters: []v1alpha1.PlacementCluster{{Name: "secret", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}, {Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "secret"}}}},
		// The same configuration, and so another name of the same cluster.
		"Twin": {Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "a", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}, {Name: "b", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "secret"}}}},
	}
	for name, placement := range placements {
		t.Run(name, func(t *testing.T) {
			with, without := schedulingtest.Snapshot(schedulingtest.Cluster("east"), secret), schedulingtest.Snapshot(schedulingtest.Cluster("east"))
			with.Request = nil
			if name == "Twin" {
				secret.Spec.ProviderConfigRef.Name = "east-config"
			}
			first, second := placement, placement
			there, absent := planFor(t, &first, with), planFor(t, &second, without)
			there.Schedule.Awaits, absent.Schedule.Awaits = nil, nil // Nobody sees what is required.
			for _, diff := range []string{cmp.Diff(absent.Schedule, there.Schedule), cmp.Diff(absent.Warnings, there.Warnings), cmp.Diff(absent.Deferred, there.Deferred), cmp.Diff(len(absent.Clusters), len(there.Clusters))} {
				if diff != "" {
					t.Errorf("-no such cluster, +not allowed:\n%s", diff)
				}
			}
		})
	}
}
