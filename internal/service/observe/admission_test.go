package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// kueueWorkload is an observed Workload of Kueue with these conditions.
func kueueWorkload(conditions ...condition) map[string]any {
	all := make([]any, 0, len(conditions))
	for _, c := range conditions {
		all = append(all, map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message})
	}
	return map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": map[string]any{"name": "w"}, "status": map[string]any{"conditions": all}}
}

// inFleet places the service of a scene in clusters of the fleet.
func (s *scene) inFleet() *scene {
	s.plan.Schedule = &scheduling.Result{}
	for i := range s.plan.Clusters {
		c := &s.plan.Clusters[i]
		d := scheduling.Decision{Name: c.Target.Cluster, State: v1alpha1.StatePlaced, Run: map[key.ReplicaID]bool{}}
		g := reservation.ReplicaGroup{Name: key.GroupOf(0)}
		for r := range c.Replicas() {
			r.ID = key.ReplicaOf(r.Role.Name, r.Index)
			d.Run[r.ID] = true
			g.Replicas = append(g.Replicas, reservation.ReplicaRequest{Name: r.ID})
		}
		d.Groups = []reservation.ReplicaGroup{g}
		s.plan.Schedule.Assignments = append(s.plan.Schedule.Assignments, scheduling.Assignment{Decision: d, Target: c.Target})
	}
	return s
}

func TestAdmission(t *testing.T) {
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}}
	const in, w0, w1 = "cluster/east/", "cluster/east/workload/engine/0", "cluster/east/workload/engine/1"
	ok := synced("True", "")
	isTrue := func(kind, reason, message string) condition {
		return condition{Type: kind, Status: composite.True, Reason: reason, Message: message}
	}
	isFalse := func(kind, reason, message string) condition {
		return condition{Type: kind, Status: composite.False, Reason: reason, Message: message}
	}
	admitted := kueueWorkload(isTrue("QuotaReserved", "QuotaReserved", "q"), isTrue("Admitted", "Admitted", "a"))
	pending := kueueWorkload(isFalse("QuotaReserved", "Pending", "insufficient unused quota\nfor nvidia.com/gpu"))
	evicted := func(reason string) map[string]any {
		return kueueWorkload(isFalse("QuotaReserved", "Pending", "no quota"), isFalse("Admitted", "NoReservation", "x"), isTrue("Evicted", reason, "to accommodate a workload"))
	}
	running := []v1alpha1.Replicas{{Group: ptr.To[int32](0)}}

	type want struct {
		cluster v1alpha1.ClusterStatus
		placed  string
		ready   map[string]bool
	}
	status := func(state v1alpha1.PlacementState, reason, message string, assigned []v1alpha1.Replicas) v1alpha1.ClusterStatus {
		return v1alpha1.ClusterStatus{Name: "east", State: state, Reason: reason, Message: message, Assigned: assigned}
	}
	cases := map[string]struct {
		reason string
		see    func(s *scene)
		want   want
	}{
		"Admitted": {
			reason: "What Kueue admitted starts like anything else.",
			see:    func(s *scene) { s.seeRemote(w0, admitted, ok).seeRemote(w1, admitted, ok) },
			want:   want{cluster: status(v1alpha1.StatePlaced, "", "", running), placed: "True Placed", ready: map[string]bool{w0: true, w1: true}},
		},
		"Waiting": {
			reason: "While nothing is admitted, the service is pending there. Kueue's words are on one line, each once.",
			see:    func(s *scene) { s.seeRemote(w0, pending, ok).seeRemote(w1, pending, ok) },
			want: want{
				cluster: status(v1alpha1.StatePending, "WaitingForAdmission", "qwen-engine-0, qwen-engine-1: insufficient unused quota for nvidia.com/gpu", nil),
				placed:  "False WaitingForAdmission: east: qwen-engine-0, qwen-engine-1: insufficient unused quota for nvidia.com/gpu",
				ready:   map[string]bool{w0: false, w1: false},
			},
		},
		"Partly": {
			reason: "One replica may be admitted before the other. The service is placed there then.",
			see:    func(s *scene) { s.seeRemote(w0, admitted, ok).seeRemote(w1, evicted("Preempted"), ok) },
			want: want{
				cluster: status(v1alpha1.StatePlaced, "Preempted", "qwen-engine-1: to accommodate a workload", running),
				placed:  "False Preempted: east: qwen-engine-1: to accommodate a workload",
				ready:   map[string]bool{w0: true, w1: false},
			},
		},
		"Evicted": {
			reason: "Kueue evicts for other reasons, too.",
			see:    func(s *scene) { s.seeRemote(w0, admitted, ok).seeRemote(w1, evicted("PodsReadyTimeout"), ok) },
			want: want{
				cluster: status(v1alpha1.StatePlaced, "Evicted", "qwen-engine-1: PodsReadyTimeout: to accommodate a workload", running),
				placed:  "False Evicted: east: qwen-engine-1: PodsReadyTimeout: to accommodate a workload",
				ready:   map[string]bool{w0: true, w1: false},
			},
		},
		"AdmittedAgain": {
			reason: "An eviction is over once Kueue has admitted the Workload again.",
			see: func(s *scene) {
				s.seeRemote(w0, admitted, ok).seeRemote(w1, kueueWorkload(isTrue("Admitted", "Admitted", "a"), isTrue("Evicted", "Preempted", "p")), ok)
			},
			want: want{cluster: status(v1alpha1.StatePlaced, "", "", running), placed: "True Placed", ready: map[string]bool{w0: true, w1: true}},
		},
		"Checks": {
			reason: "With a quota, a Workload may still wait for admission checks.",
			see: func(s *scene) {
				s.seeRemote(w0, admitted, ok).seeRemote(w1, kueueWorkload(isTrue("QuotaReserved", "QuotaReserved", "q")), ok)
			},
			want: want{
				cluster: status(v1alpha1.StatePlaced, "WaitingForAdmission", "qwen-engine-1: Kueue has reserved its quota, and not admitted it yet", running),
				placed:  "False WaitingForAdmission: east: qwen-engine-1: Kueue has reserved its quota, and not admitted it yet",
				ready:   map[string]bool{w0: true, w1: false},
			},
		},
		"Unreported": {
			reason: "A Workload that Kueue has not looked at has no condition.",
			see:    func(s *scene) { s.seeRemote(w0, admitted, ok).seeRemote(w1, kueueWorkload(), ok) },
			want: want{
				cluster: status(v1alpha1.StatePlaced, "WaitingForAdmission", "qwen-engine-1: Kueue has not reported on it yet", running),
				placed:  "False WaitingForAdmission: east: qwen-engine-1: Kueue has not reported on it yet",
				ready:   map[string]bool{w0: true, w1: false},
			},
		},
		"NotAllowed": {
			reason: "provider-kubernetes may lack the permission to read Workloads.",
			see: func(s *scene) {
				s.seeRemote(w0, admitted, ok).seeRemote(w1, nil, synced("False", "workloads is forbidden"))
			},
			want: want{
				cluster: status(v1alpha1.StatePlaced, "WaitingForAdmission", "qwen-engine-1: its Workload cannot be read: provider-kubernetes cannot reach or change it: workloads is forbidden", running),
				placed:  "False WaitingForAdmission: east: qwen-engine-1: its Workload cannot be read: provider-kubernetes cannot reach or change it: workloads is forbidden",
				ready:   map[string]bool{w0: true, w1: false},
			},
		},
		"Runs": {
			reason: "What is ready has started, whatever is known of its Workload.",
			see: func(s *scene) {
				s.seeRemote(in+lws0, workload("qwen-engine-0"), ok).seeRemote(w0, nil, synced("False", "workloads is forbidden"))
				s.seeRemote(in+lws1, workload("qwen-engine-1"), ok).seeRemote(w1, pending, ok)
			},
			want: want{cluster: status(v1alpha1.StatePlaced, "", "", running), placed: "True Placed", ready: map[string]bool{w0: true, w1: true}},
		},
		"RunsAsBefore": {
			reason: "So has what serves, although its cluster refuses a change of it.",
			see: func(s *scene) {
				denied := synced("False", "observe failed: cannot get desired state: cannot dry run SSA: admission webhook denied the request")
				s.seeRemote(in+lws0, workload("qwen-engine-0"), denied).seeRemote(w0, nil, synced("False", "workloads is forbidden"))
				s.seeRemote(in+lws1, workload("qwen-engine-1"), denied).seeRemote(w1, pending, ok)
			},
			want: want{cluster: status(v1alpha1.StatePlaced, "", "", running), placed: "True Placed", ready: map[string]bool{w0: true, w1: true}},
		},
		"Stopping": {
			reason: "A replica that is preempted stays ready until its pods have ended.",
			see: func(s *scene) {
				s.seeRemote(in+lws0, workload("qwen-engine-0"), ok).seeRemote(w0, admitted, ok)
				s.seeRemote(in+lws1, workload("qwen-engine-1"), ok).seeRemote(w1, evicted("Preempted"), ok)
			},
			want: want{
				cluster: status(v1alpha1.StatePlaced, "Preempted", "qwen-engine-1: to accommodate a workload", running),
				placed:  "False Preempted: east: qwen-engine-1: to accommodate a workload",
				ready:   map[string]bool{w0: true, w1: false},
			},
		},
		"NotLookedAt": {
			reason: "Until its LeaderWorkerSet exists, a replica has no Workload.",
			see:    func(*scene) {},
			want:   want{cluster: status(v1alpha1.StatePlaced, "", "", running), placed: "True Placed", ready: map[string]bool{w0: false, w1: false}},
		},
		"StartTimedOut": {
			reason: "That it did not start in time is said after the cause.",
			see: func(s *scene) {
				d := &s.plan.Schedule.Assignments[0].Decision
				d.Reason, d.Message = scheduling.ReasonStartTimedOut, "it did not become ready in time"
				s.seeRemote(w0, admitted, ok).seeRemote(w1, pending, ok)
			},
			want: want{
				cluster: status(v1alpha1.StatePlaced, "WaitingForAdmission", "qwen-engine-1: insufficient unused quota for nvidia.com/gpu; it did not become ready in time", running),
				placed:  "False WaitingForAdmission: east: qwen-engine-1: insufficient unused quota for nvidia.com/gpu; it did not become ready in time",
				ready:   map[string]bool{w0: true, w1: false},
			},
		},
		"StartTimedOutAlone": {
			reason: "It has a cluster, and the condition says why it looks for another one.",
			see: func(s *scene) {
				d := &s.plan.Schedule.Assignments[0].Decision
				d.Reason, d.Message = scheduling.ReasonStartTimedOut, "it did not become ready in time"
				s.seeRemote(w0, admitted, ok).seeRemote(w1, admitted, ok)
			},
			want: want{
				cluster: status(v1alpha1.StatePlaced, "StartTimedOut", "it did not become ready in time", running),
				placed:  "True Placed: east: it did not become ready in time",
				ready:   map[string]bool{w0: true, w1: true},
			},
		},
		"Unreachable": {
			reason: "What cannot be read of a cluster that is out of reach is no cause.",
			see: func(s *scene) {
				d := &s.plan.Schedule.Assignments[0].Decision
				d.Reason, d.Message = scheduling.ReasonUnreachable, "out of reach"
				s.seeRemote(w0, pending, synced("False", "no route")).seeRemote(w1, pending, synced("False", "no route"))
			},
			want: want{
				cluster: status(v1alpha1.StatePlaced, "Unreachable", "out of reach", running),
				placed:  "True Unreachable: east: out of reach",
				ready:   map[string]bool{w0: false, w1: false},
			},
		},
		"Leaving": {
			reason: "Why the service leaves is more important.",
			see: func(s *scene) {
				d := &s.plan.Schedule.Assignments[0].Decision
				d.State, d.Reason, d.Message = v1alpha1.StateLeaving, "Draining", "the cluster is drained"
				s.seeRemote(w0, pending, ok).seeRemote(w1, pending, ok)
			},
			want: want{
				cluster: status(v1alpha1.StateLeaving, "Draining", "the cluster is drained", running),
				placed:  "False Draining: east: the cluster is drained",
				ready:   map[string]bool{w0: false, w1: false},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, east).inFleet()
			c := &s.plan.Clusters[0]
			c.LocalQueue, c.Groups[0].PodGroup = "default", nil
			s.drop(in + pgKey)
			for _, k := range []string{w0, w1} {
				s.want(east, k, kueueWorkload())
			}
			s.seeRemote(in+lws0, workload("qwen-engine-0", progressing), ok).seeRemote(in+lws1, workload("qwen-engine-1", progressing), ok)
			tc.see(s)
			v := s.evaluate()
			got := want{cluster: v.Status.Clusters[0], placed: conditionLine(v, IsPlaced), ready: map[string]bool{}}
			got.cluster.Components, got.cluster.URL = nil, ""
			for _, k := range []string{w0, w1} {
				got.ready[k] = v.Ready[key.Parse(k)]
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAwaits shows of which Workloads it is known that Kueue has not admitted them.
func TestAwaits(t *testing.T) {
	const workload = "cluster/east/workload/engine/0"
	pending := kueueWorkload(condition{Type: "QuotaReserved", Status: composite.False, Reason: "Pending"})
	cases := map[string]struct {
		reason string
		see    func(s *scene)
		want   bool
	}{
		"Absent":  {reason: "Nothing is known of what is not observed.", see: func(*scene) {}},
		"Pending": {reason: "It waits for its quota.", see: func(s *scene) { s.seeRemote(workload, pending, synced("True", "")) }, want: true},
		"Admitted": {reason: "It waits for nothing.", see: func(s *scene) {
			s.seeRemote(workload, kueueWorkload(condition{Type: "Admitted", Status: composite.True}), synced("True", ""))
		}},
		"NotRead": {reason: "It may be admitted by now.", see: func(s *scene) { s.seeRemote(workload, pending, synced("False", "no route")) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tc.see(s)
			if diff := cmp.Diff(tc.want, Read(s.request(), s.plan).Awaits(key.Parse(workload))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGangInCluster proves that the status of a cluster says why Volcano has not started a gang there.
func TestGangInCluster(t *testing.T) {
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}}
	cases := map[string]struct {
		reason string
		group  *volcano.PodGroup
		want   v1alpha1.ClusterStatus
	}{
		"Unschedulable": {
			reason: "Volcano says what is missing.",
			group:  podGroup("qwen", volcano.PodGroupInqueue, gangCondition(volcano.PodGroupUnschedulableType, 3)),
			want:   v1alpha1.ClusterStatus{Name: "east", State: v1alpha1.StatePlaced, Reason: "Unschedulable", Message: "PodGroup qwen: NotEnoughResources: 8/8 tasks in gang unschedulable: 0/5 nodes are available"},
		},
		"Queued": {
			reason: "A gang may wait for its queue.",
			group:  podGroup("qwen", volcano.PodGroupPending),
			want:   v1alpha1.ClusterStatus{Name: "east", State: v1alpha1.StatePlaced, Reason: "NotScheduled", Message: "PodGroup qwen: is in phase Pending"},
		},
		"Running": {
			reason: "A gang that runs waits for nothing.",
			group:  podGroup("qwen", volcano.PodGroupRunning),
			want:   v1alpha1.ClusterStatus{Name: "east", State: v1alpha1.StatePlaced},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, east)
			s.seeRemote("cluster/east/"+pgKey, tc.group, synced("True", ""))
			got := s.evaluate().Status.Clusters[0]
			got.Components, got.URL = nil, ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEventsOfAdmission proves that a service whose start Kueue delays, or that Kueue stops, starts once and leaves nothing.
func TestEventsOfAdmission(t *testing.T) {
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}}
	s := newScene(t, east).inFleet()
	s.plan.Clusters[0].LocalQueue = "default"
	workloads := []string{"cluster/east/workload/engine/0", "cluster/east/workload/engine/1"}
	for _, k := range workloads {
		s.want(east, k, kueueWorkload())
	}
	pending := kueueWorkload(condition{Type: "QuotaReserved", Status: composite.False, Message: "insufficient quota"})
	admitted := kueueWorkload(condition{Type: "Admitted", Status: composite.True})
	preempted := kueueWorkload(condition{Type: "Evicted", Status: composite.True, Reason: "Preempted", Message: "to accommodate a workload"})

	var events []string
	status := v1alpha1.InferenceServiceStatus{}
	next := func(workload map[string]any) {
		for _, k := range workloads {
			if workload != nil {
				s.seeRemote(k, workload, synced("True", ""))
			}
		}
		v := s.evaluateNext(status)
		status, events = v.Status, append(events, v.Events...)
	}
	for _, workload := range []map[string]any{nil, pending, admitted, preempted, admitted} {
		next(workload)
	}
	if diff := cmp.Diff([]string{"group 0 starts in east"}, events); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
