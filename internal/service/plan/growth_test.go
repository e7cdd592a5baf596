package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestGrowth proves that replicas with a reservation cannot grow by more than is free in their
// cluster. Whether a smaller change fits is decided by the cluster.
func TestGrowth(t *testing.T) {
	// A cluster of one node with 8 GPUs, of which some are free.
	cluster := func(free string) *v1alpha1.InferenceCluster {
		return schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0", "worker/1"), func(c *v1alpha1.InferenceCluster) {
			c.Status.Reservations[0].Resources = resources("nvidia.com/gpu", "2")
			c.Status.Pools = []v1alpha1.PoolStatus{{Name: "h100", NodeCount: 1, Capacity: resources("nvidia.com/gpu", "8"), Free: []v1alpha1.FreeNodes{{NodeCount: 1, Resources: resources("nvidia.com/gpu", free)}}}}
		})
	}
	build := func(w scheduling.Snapshot, replicas, nodes int32, gpus int) (*Plan, []string) {
		spec := &v1alpha1.InferenceServiceSpec{
			Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementFailover, FailoverAfterSeconds: ptr.To[int32](300), ClusterSelector: &metav1.LabelSelector{}},
			Roles: []v1alpha1.Role{{
				Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To(replicas), Multinode: &v1alpha1.Multinode{NodeCount: &nodes, Launcher: v1alpha1.LauncherNone},
				Template: document(t, fmt.Sprintf(`{"spec":{"containers":[{"name":"vllm","image":"i","resources":{"limits":{"nvidia.com/gpu":%d}}}]}}`, gpus)),
			}},
		}
		p, errs := Build(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid"}, spec, defaultInput(), w, nil)
		var all []string
		for _, err := range errs {
			all = append(all, err.Error())
		}
		return p, all
	}
	refused := func(what string) []string {
		return []string{`spec.roles: Invalid value: "east": what runs in this cluster must not grow by more than is free there: ` + what + `. Request less, or move it to another cluster first`}
	}
	cases := map[string]struct {
		reason          string
		free            string
		replicas, nodes int32
		gpus            int
		change          func(w *scheduling.Snapshot)
		want            []string
	}{
		"Same":    {reason: "Nothing has changed.", free: "0", replicas: 2, nodes: 1, gpus: 1},
		"Grows":   {reason: "More GPUs than the cluster has.", free: "6", replicas: 2, nodes: 1, gpus: 320, want: refused("6 of 8 nvidia.com/gpu free in pool h100, and 638 more are needed")},
		"Others":  {reason: "More GPUs than others leave free.", free: "2", replicas: 2, nodes: 1, gpus: 3, want: refused("2 of 8 nvidia.com/gpu free in pool h100, and 4 more are needed")},
		"Nodes":   {reason: "More pods for each replica.", free: "2", replicas: 2, nodes: 3, gpus: 1, want: refused("2 of 8 nvidia.com/gpu free in pool h100, and 4 more are needed")},
		"MayFit":  {reason: "The cluster decides whether it fits node by node.", free: "6", replicas: 2, nodes: 1, gpus: 4},
		"Shrinks": {reason: "Less always fits.", free: "0", replicas: 2, nodes: 1, gpus: 0},
		"Fewer":   {reason: "The capacity of a replica that goes is free for the other.", free: "0", replicas: 1, nodes: 1, gpus: 2},
		"More":    {reason: "Further replicas need a reservation of their own.", free: "0", replicas: 320, nodes: 1, gpus: 1},
		"Counted": {reason: "The cluster has counted it already, and the observed capacity request is an older one.", free: "0", replicas: 2, nodes: 1, gpus: 4, change: func(w *scheduling.Snapshot) {
			w.Clusters["east"].Status.Reservations[0].Resources = resources("nvidia.com/gpu", "8")
		}},
		"Unfit": {reason: "What does not fit since an earlier change does not grow.", free: "6", replicas: 2, nodes: 1, gpus: 2, want: refused("what an earlier change needs does not fit there"), change: func(w *scheduling.Snapshot) { w.Clusters["east"].Status.Reservations[0].RequirementsChanged = true }},
		"Again": {
			reason: "The next edit is compared with the reservation, not with an edit that has none.", free: "6", replicas: 2, nodes: 1, gpus: 5, want: refused("6 of 8 nvidia.com/gpu free in pool h100, and 8 more are needed"),
			change: func(w *scheduling.Snapshot) {
				shape := w.Request.PodRequirements["worker/leader"]
				shape.Requests = capacity.Resources{"nvidia.com/gpu": 4000}
				w.Request.PodRequirements = map[string]capacity.PodRequirements{"worker/leader": shape}
			},
		},
		"Abandoned": {reason: "Nothing is counted in an abandoned cluster.", free: "0", replicas: 2, nodes: 1, gpus: 4, change: func(w *scheduling.Snapshot) {
			w.Clusters["east"].Spec.StopPolicy = v1alpha1.StopAbandon
		}},
		"NotThere": {reason: "What neither runs nor has a reservation is requested anew.", free: "0", replicas: 2, nodes: 1, gpus: 4, change: func(w *scheduling.Snapshot) {
			w.Clusters["east"].Status.Reservations, w.States = nil, map[string]*scheduling.ClusterState{}
		}},
		"NotReserved": {
			reason: "What runs without a reservation does not grow either.", free: "0", replicas: 2, nodes: 1, gpus: 2, want: refused("0 of 8 nvidia.com/gpu free in pool h100, and 2 more are needed"),
			change: func(w *scheduling.Snapshot) { w.Clusters["east"].Status.Reservations = nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := schedulingtest.Snapshot(cluster("6"))
			w.States["east"] = schedulingtest.Existing("worker/0", "worker/1")
			first, errs := build(w, 2, 1, 1)
			if errs != nil {
				t.Fatal(errs)
			}
			w = schedulingtest.Snapshot(cluster(tc.free))
			w.States["east"], w.Request = schedulingtest.Existing("worker/0", "worker/1"), first.Schedule.Request
			if tc.change != nil {
				tc.change(&w)
			}
			_, got := build(w, tc.replicas, tc.nodes, tc.gpus)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			// Once a change is in the capacity request, reservations of others do not stop the service.
			p, errs := build(func() scheduling.Snapshot {
				w := w
				w.Clusters = map[string]*v1alpha1.InferenceCluster{"east": cluster("8")}
				return w
			}(), 2, 1, 4)
			if errs != nil {
				return
			}
			w = schedulingtest.Snapshot(cluster("0"))
			w.States["east"], w.Request = schedulingtest.Existing("worker/0", "worker/1"), p.Schedule.Request
			if _, errs := build(w, 2, 1, 4); errs != nil {
				t.Errorf("a change that was made before is refused: %v", errs)
			}
		})
	}
}
