package scheduling_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestOrder proves that services that select clusters by labels do not all ask the same one, whether they start or leave a
// drained one. Services that list their clusters ask the first.
func TestOrder(t *testing.T) {
	const services = 90
	listed := func(names ...string) *v1alpha1.Placement {
		p := &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover}
		for _, n := range names {
			p.Clusters = append(p.Clusters, v1alpha1.PlacementCluster{Name: n, InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: n}})
		}
		return p
	}
	selected := &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, ClusterSelector: &metav1.LabelSelector{}}
	drained := func(c *v1alpha1.InferenceCluster) { c.Spec.StopPolicy = v1alpha1.StopDrain }
	free := []*v1alpha1.InferenceCluster{schedulingtest.Cluster("a"), schedulingtest.Cluster("b"), schedulingtest.Cluster("c")}
	cases := map[string]struct {
		reason    string
		placement *v1alpha1.Placement
		fleet     []*v1alpha1.InferenceCluster
		runsIn    string
		// want are the clusters that at least a fifth of the services ask.
		want map[string]bool
	}{
		"Selected": {reason: "Each has an order of its own.", placement: selected, fleet: free, want: map[string]bool{"a": true, "b": true, "c": true}},
		"Listed":   {reason: "The tenant prefers b.", placement: listed("b", "a", "c"), fleet: free, want: map[string]bool{"b": true}},
		"Drained": {
			reason: "The others share what runs in a.", placement: selected, runsIn: "a", want: map[string]bool{"b": true, "c": true},
			fleet: []*v1alpha1.InferenceCluster{schedulingtest.Cluster("a", schedulingtest.Reserved("worker/0"), drained), free[1], free[2]},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := map[string]int{}
			for i := range services {
				snapshot := schedulingtest.Snapshot(tc.fleet...)
				if tc.runsIn != "" {
					snapshot.States[tc.runsIn] = schedulingtest.Existing("worker/0")
				}
				service := schedulingtest.Service
				service.UID = fmt.Sprint("uid-", i)
				r := scheduling.Schedule(&scheduling.Demand{
					ServiceID: service, Placement: tc.placement,
					Groups: schedulingtest.Requested(nil, "a", 0, "worker/0").Clusters["a"].Groups,
				}, &snapshot)
				for cluster := range r.Request.Clusters {
					if cluster != tc.runsIn {
						asked[cluster]++
					}
				}
			}
			got := map[string]bool{}
			for cluster, n := range asked {
				got[cluster] = n >= services/5
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s %v\n-want, +got:\n%s", tc.reason, asked, diff)
			}
		})
	}
}
