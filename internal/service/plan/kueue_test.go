package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// kueueIn leaves the admission of a cluster to Kueue. It counts no capacity.
func kueueIn(queue string) schedulingtest.Change {
	return func(c *v1alpha1.InferenceCluster) {
		c.Spec.Admission, c.Spec.Kueue = v1alpha1.AdmissionKueue, &v1alpha1.Kueue{LocalQueueName: queue}
		c.Status.Pools, c.Status.Summary = nil, "admission by Kueue"
	}
}

// existingAs has replicas that exist in a cluster as LeaderWorkerSets of these UIDs.
func existingAs(queue string, uids map[key.ReplicaID]string) *scheduling.ClusterState {
	s := schedulingtest.Existing()
	for r := range uids {
		s.Present[r] = true
	}
	s.UIDs, s.LocalQueue = uids, queue
	return s
}

func TestKueue(t *testing.T) {
	const uid = "071c526c-6a3a-436b-a6d7-23ce2a04ca53"
	both := schedulingtest.Reserved("worker/0", "worker/1")
	runs := func(s scheduling.Snapshot, at *scheduling.ClusterState) scheduling.Snapshot {
		s.States["east"] = at
		return s
	}
	alone := &v1alpha1.SchedulingStrategy{Gang: &v1alpha1.Gang{Mode: v1alpha1.GangNone}}
	type want struct {
		// Queue of the cluster, and the Workloads of the replicas that run there.
		Queue     string
		Workloads map[key.ReplicaID]string
		Pending   int
		// State and Reason of the cluster, with the start of the message.
		State   v1alpha1.PlacementState
		Reason  string
		Message string
	}
	cases := map[string]struct {
		reason   string
		nodes    int32
		strategy *v1alpha1.SchedulingStrategy
		snapshot scheduling.Snapshot
		want     want
		refused  string
	}{
		"Requests": {
			reason:   "Whatever is requested fits, but nothing starts before the cluster has answered.",
			snapshot: schedulingtest.Snapshot(schedulingtest.Cluster("east", kueueIn(""))),
			want:     want{Queue: "default", Pending: 2, State: v1alpha1.StatePending, Reason: scheduling.ReasonRequested, Message: "capacity was requested"},
		},
		"Unreported": {
			reason: "A cluster that has never been reconciled has no ledger.",
			snapshot: schedulingtest.Snapshot(schedulingtest.Cluster("east", kueueIn(""), func(c *v1alpha1.InferenceCluster) {
				c.Status = v1alpha1.InferenceClusterStatus{}
			})),
			want: want{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonUnknown, Message: "it has not reported"},
		},
		"Starts": {
			reason:   "The name of a Workload follows from the UID of its LeaderWorkerSet, which does not exist yet.",
			snapshot: schedulingtest.Snapshot(schedulingtest.Cluster("east", kueueIn("team"), both)),
			want:     want{Queue: "team", Workloads: map[key.ReplicaID]string{"worker/0": "", "worker/1": ""}, State: v1alpha1.StatePlaced},
		},
		"Exists": {
			reason:   "Each LeaderWorkerSet that exists has a Workload. Its name is the one that Kueue makes.",
			snapshot: runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", kueueIn(""), both)), existingAs("default", map[key.ReplicaID]string{"worker/0": uid})),
			want:     want{Queue: "default", Workloads: map[key.ReplicaID]string{"worker/0": "leaderworkerset-batch-worker-0-0-57fe9", "worker/1": ""}, State: v1alpha1.StatePlaced},
		},
		"Ledger": {
			reason:   "Where the ledger admits, there is neither a queue nor a Workload, whatever label is there.",
			snapshot: runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", both)), existingAs("other", map[key.ReplicaID]string{"worker/0": uid})),
			want:     want{Workloads: map[key.ReplicaID]string{"worker/0": "", "worker/1": ""}, State: v1alpha1.StatePlaced},
		},
		"Gone": {
			reason: "While the InferenceCluster cannot be read, what runs keeps its queue. Kueue refuses another one.",
			snapshot: func() scheduling.Snapshot {
				s := runs(schedulingtest.Snapshot(), existingAs("team", map[key.ReplicaID]string{"worker/0": uid, "worker/1": uid}))
				s.Request = schedulingtest.RequestedAs("east", "east")
				return s
			}(),
			want: want{
				Queue: "team", State: v1alpha1.StatePlaced, Reason: scheduling.ReasonUnknown, Message: "there is no InferenceCluster",
				Workloads: map[key.ReplicaID]string{"worker/0": "leaderworkerset-batch-worker-0-0-57fe9", "worker/1": "leaderworkerset-batch-worker-1-0-352d3"},
			},
		},
		"Gang": {
			reason:   "Kueue would admit a part of a gang.",
			nodes:    2,
			snapshot: schedulingtest.Snapshot(schedulingtest.Cluster("east", kueueIn(""))),
			want:     want{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonGang, Message: "Kueue admits each replica by itself there, and this service starts as a gang: set spec.schedulingStrategy.gang.mode to None"},
		},
		"NoGang": {
			reason:   "Kueue admits all pods of a replica at once.",
			nodes:    2,
			strategy: alone,
			snapshot: onTwoNodes(schedulingtest.Snapshot(schedulingtest.Cluster("east", kueueIn(""), both))),
			want:     want{Queue: "default", Workloads: map[key.ReplicaID]string{"worker/0": "", "worker/1": ""}, State: v1alpha1.StatePlaced},
		},
		"BecomesGang": {
			reason:   "What runs cannot become a gang there.",
			nodes:    2,
			snapshot: runs(schedulingtest.Snapshot(schedulingtest.Cluster("east", kueueIn(""), both)), existingAs("default", map[key.ReplicaID]string{"worker/0": uid})),
			refused:  `spec.schedulingStrategy.gang.mode: Invalid value: "AllOrNothing": must be None while the service runs in cluster east: Kueue admits each replica by itself there`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](2), Template: document(t, `{"spec":{"containers":[{"name":"vllm","image":"x","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`)}
			if tc.nodes > 0 {
				role.Multinode = &v1alpha1.Multinode{NodeCount: ptr.To(tc.nodes), Launcher: v1alpha1.LauncherNone}
			}
			spec := &v1alpha1.InferenceServiceSpec{
				Placement:          &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}},
				SchedulingStrategy: tc.strategy,
				Roles:              []v1alpha1.Role{role},
			}
			in := &inputv1alpha1.Input{}
			inputv1alpha1.Default(in)
			p, errs := place(naming.Identity{Name: "batch", Namespace: schedulingtest.Service.Namespace, UID: schedulingtest.Service.UID}, spec, in, renamed(tc.snapshot, "batch"), nil)
			if tc.refused != "" {
				if len(errs) != 1 || errs[0].Error() != tc.refused {
					t.Errorf("%s\nwant %s, got %v", tc.reason, tc.refused, errs)
				}
				return
			}
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := want{}
			for i := range p.Clusters {
				c := &p.Clusters[i]
				if c.Unschedulable {
					continue
				}
				got.Queue, got.Pending = c.LocalQueue, len(c.Pending)
				for r := range c.Replicas() {
					if got.Workloads == nil {
						got.Workloads = map[key.ReplicaID]string{}
					}
					got.Workloads[r.ID] = r.Workload
					if r.PodGroup != "" {
						t.Errorf("replica %s is in gang %s", r.ID, r.PodGroup)
					}
				}
			}
			a := p.Schedule.Assignments[0]
			got.State, got.Reason = a.State, a.Reason
			if got.Message = a.Message; tc.want.Message != "" && strings.HasPrefix(a.Message, tc.want.Message) {
				got.Message = tc.want.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPriorityClass shows which priority class replicas keep, because Kueue lets none that exists gain or lose one.
func TestPriorityClass(t *testing.T) {
	const path = "spec.roles[0].template.metadata.labels[kueue.x-k8s.io/priority-class]"
	existing := func(class string) map[key.ReplicaID]string { return map[key.ReplicaID]string{"worker/0": class} }
	type want struct {
		Kept     map[key.ReplicaID]string
		Warnings []Warning
	}
	cases := map[string]struct {
		reason   string
		class    string
		scaling  *v1alpha1.RoleScaling
		existing map[key.ReplicaID]string
		want     want
	}{
		"Same":    {reason: "Nothing changes.", class: "high", existing: existing("high")},
		"Other":   {reason: "Kueue lets one class take the place of another.", class: "low", existing: existing("high")},
		"None":    {reason: "It never had one.", existing: existing("")},
		"NotRead": {reason: "Nothing exists yet.", class: "high"},
		"Gains": {
			reason: "The replica that exists stays without one. The new one gets it.", class: "high", existing: existing(""),
			want: want{
				Kept:     map[key.ReplicaID]string{"worker/0": ""},
				Warnings: []Warning{{Path: path, Message: "replicas that exist have no priority class of Kueue, which lets none gain one: to change that, set replicas to 0, and start them again"}},
			},
		},
		"Loses": {
			reason: "The replica that exists keeps its class.", existing: existing("high"),
			want: want{
				Kept:     map[key.ReplicaID]string{"worker/0": "high"},
				Warnings: []Warning{{Path: path, Message: "replicas that exist keep the priority class high of Kueue, which lets none lose it: to change that, set replicas to 0, and start them again"}},
			},
		},
		"Scales": {
			reason: "With scaling, only a number in the spec stops a role.", existing: existing("high"), scaling: &v1alpha1.RoleScaling{MaxReplicas: ptr.To[int32](2)},
			want: want{
				Kept:     map[key.ReplicaID]string{"worker/0": "high"},
				Warnings: []Warning{{Path: path, Message: "replicas that exist keep the priority class high of Kueue, which lets none lose it: to change that, set replicas to 0, in place of scaling, and start them again"}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := renamed(schedulingtest.Snapshot(schedulingtest.Cluster("east", kueueIn(""), schedulingtest.Reserved("worker/0", "worker/1"))), "batch")
			at := existingAs("default", map[key.ReplicaID]string{"worker/0": "uid"})
			at.PriorityClasses = tc.existing
			snapshot.States["east"] = at
			template := `{"metadata":{"labels":{"kueue.x-k8s.io/priority-class":"` + tc.class + `"}},"spec":{"containers":[{"name":"vllm","image":"x","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`
			if tc.class == "" {
				template = `{"spec":{"containers":[{"name":"vllm","image":"x","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`
			}
			spec := &v1alpha1.InferenceServiceSpec{
				Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}},
				Roles:     []v1alpha1.Role{{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](2), Scaling: tc.scaling, Template: document(t, template)}},
			}
			in := &inputv1alpha1.Input{Policy: inputv1alpha1.Policy{AllowedPriorityClassNames: []string{"high", "low"}}}
			inputv1alpha1.Default(in)
			p, errs := place(naming.Identity{Name: "batch", Namespace: schedulingtest.Service.Namespace, UID: schedulingtest.Service.UID}, spec, in, snapshot, nil)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got := want{}
			for _, r := range p.Replicas() {
				if r.KeptPriorityClass != nil {
					if got.Kept == nil {
						got.Kept = map[key.ReplicaID]string{}
					}
					got.Kept[r.ID] = *r.KeptPriorityClass
				}
			}
			for _, w := range p.Warnings {
				if w.Path == path {
					got.Warnings = append(got.Warnings, w)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// renamed is a snapshot of a service of another name.
func renamed(s scheduling.Snapshot, name string) scheduling.Snapshot {
	for _, c := range s.Clusters {
		for i := range c.Status.Reservations {
			c.Status.Reservations[i].Name = name
		}
	}
	return s
}

// TestWorkloadOf compares the names of Workloads with those that Kueue v0.15.0 gave to real ones.
func TestWorkloadOf(t *testing.T) {
	cases := map[string]struct{ name, uid, want string }{
		"Batch":  {"batch-worker-0", "071c526c-6a3a-436b-a6d7-23ce2a04ca53", "leaderworkerset-batch-worker-0-0-57fe9"},
		"Second": {"batch-worker-1", "38298710-3ee9-4750-9cb5-c2d0e8080611", "leaderworkerset-batch-worker-1-0-97f1f"},
		"Nodes":  {"urgent-worker-0", "cae37e34-fb90-42b2-be4e-0e782e4d974d", "leaderworkerset-urgent-worker-0-0-9c418"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := workloadOf(tc.name, tc.uid); got != tc.want {
				t.Errorf("want %s, got %s", tc.want, got)
			}
		})
	}
}

// onTwoNodes makes the last request one for replicas of two nodes.
func onTwoNodes(s scheduling.Snapshot) scheduling.Snapshot {
	s.Request.PodRequirements["worker/worker"] = s.Request.PodRequirements["worker/leader"]
	for _, r := range s.Request.Clusters["east"].Groups[0].Replicas {
		r.Pods["worker/worker"] = 1
	}
	return s
}
