package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

func TestGangQueue(t *testing.T) {
	queue := func(c *v1alpha1.InferenceCluster) { c.Spec.Volcano = &v1alpha1.Volcano{QueueName: "of-cluster"} }
	both := schedulingtest.Reserved("worker/0", "worker/1")
	observed := func(s scheduling.Snapshot) scheduling.Snapshot {
		s.States["east"] = schedulingtest.Existing("worker/0", "worker/1")
		s.States["east"].GangQueue = "observed"
		return s
	}
	cases := map[string]struct {
		reason   string
		service  string
		snapshot scheduling.Snapshot
		want     string
	}{
		"Input":   {reason: "A cluster without a queue of its own has that of the Input.", snapshot: onTwoNodes(schedulingtest.Snapshot(schedulingtest.Cluster("east", both))), want: "of-input"},
		"Cluster": {reason: "Queues differ from cluster to cluster.", snapshot: onTwoNodes(schedulingtest.Snapshot(schedulingtest.Cluster("east", both, queue))), want: "of-cluster"},
		"Service": {reason: "A service may name one that it is allowed.", service: "of-service", snapshot: onTwoNodes(schedulingtest.Snapshot(schedulingtest.Cluster("east", both, queue))), want: "of-service"},
		"Default": {reason: "To name the Input's is to name none.", service: "of-input", snapshot: onTwoNodes(schedulingtest.Snapshot(schedulingtest.Cluster("east", both, queue))), want: "of-cluster"},
		"Changes": {reason: "What runs gets the queue of today.", snapshot: observed(onTwoNodes(schedulingtest.Snapshot(schedulingtest.Cluster("east", both, queue)))), want: "of-cluster"},
		"Removed": {reason: "So it does when the cluster has none any more.", snapshot: observed(onTwoNodes(schedulingtest.Snapshot(schedulingtest.Cluster("east", both)))), want: "of-input"},
		"Gone": {
			reason: "While the InferenceCluster cannot be read, what runs keeps its queue.",
			snapshot: func() scheduling.Snapshot {
				s := observed(schedulingtest.Snapshot())
				s.Request = schedulingtest.RequestedAs("east", "east")
				return s
			}(),
			want: "observed",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &v1alpha1.InferenceServiceSpec{
				Placement:          &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}},
				SchedulingStrategy: &v1alpha1.SchedulingStrategy{QueueName: tc.service},
				Roles: []v1alpha1.Role{{
					Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](2),
					Multinode: &v1alpha1.Multinode{NodeCount: ptr.To[int32](2), Launcher: v1alpha1.LauncherNone},
					Template:  document(t, `{"spec":{"containers":[{"name":"vllm","image":"x","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`),
				}},
			}
			in := &inputv1alpha1.Input{}
			in.Defaults.SchedulingStrategy.QueueName = "of-input"
			in.AllowedQueues = []string{"of-service"}
			inputv1alpha1.Default(in)
			p, errs := place(naming.Identity{Name: "batch", Namespace: schedulingtest.Service.Namespace, UID: schedulingtest.Service.UID}, spec, in, renamed(tc.snapshot, "batch"), nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := map[string]string{}
			for _, c := range p.Clusters {
				for _, g := range c.Groups {
					if g.PodGroup != nil {
						got[c.Target.Cluster] = g.PodGroup.Queue
					}
				}
			}
			if diff := cmp.Diff(map[string]string{"east": tc.want}, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
