package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestReplica proves what a rollout goes by of a replica whose state is not known: what the function
// wrote last, here or in the manifest of an Object.
func TestReplica(t *testing.T) {
	object := func(manifest string) string {
		return `{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "spec": {"forProvider": {"manifest": ` + manifest + `}}}`
	}
	const (
		held = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"labels": {"fusioninfer.io/spec-hash": "abc"}}, "spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1}}}}`
		back = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"labels": {"fusioninfer.io/spec-hash": "abc"}, "annotations": {"fusioninfer.io/running-spec-hash": "old"}}, "spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1}}}}`
		gone = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"labels": {"fusioninfer.io/spec-hash": "abc"}, "annotations": {"fusioninfer.io/former-spec-hash": "old"}}}`
		made = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"generation": 2, "labels": {"fusioninfer.io/spec-hash": "abc"}, "annotations": {"fusioninfer.io/former-spec-hash": "old"}}, "status": {"observedGeneration": 2, "updatedReplicas": 1, "readyReplicas": 1, "conditions": [{"type": "Available", "status": "True"}]}}`
		gang = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"labels": {"fusioninfer.io/spec-hash": "abc"}}, "spec": {"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "chat"}}}}}}`
		kept = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"labels": {"fusioninfer.io/spec-hash": "abc"}, "annotations": {"fusioninfer.io/running-pod-group": "former"}}, "spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 1}}, "leaderWorkerTemplate": {"workerTemplate": {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "chat"}}}}}}`
		more = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"labels": {"fusioninfer.io/spec-hash": "abc"}, "annotations": {"fusioninfer.io/extra": "true"}}}`
	)
	cases := map[string]struct {
		cluster, observed string
		want              rollout.State
		extra, others     map[string][]key.ReplicaID
	}{
		"Held":           {"", held, rollout.State{Exists: true, Revision: "abc", Held: true}, nil, map[string][]key.ReplicaID{"": {"worker/0"}}},
		"Noted":          {"", back, rollout.State{Exists: true, Revision: "abc", Held: true, RunningRevision: "old"}, nil, map[string][]key.ReplicaID{"": {"worker/0"}}},
		"NotedRemote":    {"east", object(back), rollout.State{Exists: true, Revision: "abc", Held: true, RunningRevision: "old"}, nil, map[string][]key.ReplicaID{"east": {"worker/0"}}},
		"Replacing":      {"", gone, rollout.State{Exists: true, Revision: "abc", FormerRevision: "old", RunningRevision: "abc"}, nil, map[string][]key.ReplicaID{"": {"worker/0"}}},
		"Replaced":       {"", made, rollout.State{Exists: true, Revision: "abc", Runs: true, RunningRevision: "abc", Serving: true}, nil, map[string][]key.ReplicaID{"": {"worker/0"}}},
		"ReplacingThere": {"east", object(gone), rollout.State{Exists: true, Revision: "abc", FormerRevision: "old", RunningRevision: "abc"}, nil, map[string][]key.ReplicaID{"east": {"worker/0"}}},
		"Extra":          {"", more, rollout.State{Exists: true, Revision: "abc", RunningRevision: "abc"}, map[string][]key.ReplicaID{"": {"worker/0"}}, nil},
		"HeldRemote":     {"east", object(held), rollout.State{Exists: true, Revision: "abc", Held: true}, nil, map[string][]key.ReplicaID{"east": {"worker/0"}}},
		"Gang":           {"", gang, rollout.State{Exists: true, Revision: "abc", RunningRevision: "abc", RunningPodGroup: "chat"}, nil, map[string][]key.ReplicaID{"": {"worker/0"}}},
		"GangRemote":     {"east", object(gang), rollout.State{Exists: true, Revision: "abc", RunningRevision: "abc", RunningPodGroup: "chat"}, nil, map[string][]key.ReplicaID{"east": {"worker/0"}}},
		"Former":         {"", kept, rollout.State{Exists: true, Revision: "abc", Held: true, RunningPodGroup: "former"}, nil, map[string][]key.ReplicaID{"": {"worker/0"}}},
		"ExtraRemote":    {"east", object(more), rollout.State{Exists: true, Revision: "abc", RunningRevision: "abc"}, map[string][]key.ReplicaID{"east": {"worker/0"}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON([]byte(tc.observed)); err != nil {
				t.Fatal(err)
			}
			k := key.New(tc.cluster, key.LeaderWorkerSet, "worker", "0")
			r := Read(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{k.String(): {Resource: s}}}}), &plan.Plan{})
			if diff := cmp.Diff(tc.want, r.Replica(k)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			extra, others := r.Extra()
			if diff := cmp.Diff([]map[string][]key.ReplicaID{tc.extra, tc.others}, []map[string][]key.ReplicaID{extra, others}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("extra replicas and others: -want +got:\n%s", diff)
			}
		})
	}
}

// TestSince proves since when a replica is as it is.
func TestSince(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		observed *lws.LeaderWorkerSet
		broken   bool
		want     time.Time
	}{
		"Ready":    {reason: "Its condition changed last then.", observed: workload("x"), want: at(5).Time},
		"Restarts": {reason: "So it did here.", observed: workload("x", progressing), broken: true, want: at(1).Time},
		"New":      {reason: "It was made then.", observed: workload("x", func(w *lws.LeaderWorkerSet) { w.Status = lws.LeaderWorkerSetStatus{} }), want: at(0).Time},
		"Unknown":  {reason: "Its cluster reports nothing."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if tc.observed != nil {
				s.see(lws0, tc.observed)
			} else {
				s.seeRemote(lws0, nil)
			}
			got := Read(s.request(), s.plan).Replica(key.Parse(lws0))
			if !got.Since.Equal(tc.want) || got.Broken != tc.broken {
				t.Errorf("%s got %s, broken %t", tc.reason, got.Since, got.Broken)
			}
		})
	}
}

// TestProgress proves what RolledOut says of the replicas of a service.
func TestProgress(t *testing.T) {
	cases := map[string]struct {
		progress progress
		paused   bool
		want     string
	}{
		"First":      {progress: progress{desired: 3}, want: "0 of 3 replicas are updated"},
		"OneByOne":   {progress: progress{desired: 4, updated: 1, replaced: 1, held: 2, waiting: 2}, want: "1 of 4 replicas are updated, 1 is being updated, 2 wait for their turn"},
		"NotReady":   {progress: progress{desired: 4, updated: 2, starting: 1, held: 2, waiting: 2}, want: "2 of 4 replicas are updated (1 of them not ready), 2 wait for their turn"},
		"Partition":  {progress: progress{desired: 4, updated: 2, replaced: 1, held: 1}, want: "2 of 4 replicas are updated, 1 is being updated, 1 is held back by spec.rollout.partition"},
		"Paused":     {progress: progress{desired: 4, updated: 1, held: 3, waiting: 2}, paused: true, want: "1 of 4 replicas are updated, 1 is held back by spec.rollout.partition, 2 are held back by spec.rollout.paused"},
		"Unreserved": {progress: progress{desired: 3, updated: 1, held: 2, waiting: 2, pending: 1}, want: "1 of 3 replicas are updated, 1 waits for reserved capacity, 1 waits for its turn"},
		"Unread":     {progress: progress{desired: 3, updated: 1, unread: []string{"a", "b"}}, want: "1 of 3 replicas are known to be updated, 2 cannot be read"},
		"Surge":      {progress: progress{desired: 2, held: 2, waiting: 2, extra: 2}, want: "0 of 2 replicas are updated, 2 wait for their turn, 2 extra ones run meanwhile"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.progress.text(tc.paused)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestCapacity proves what RolledOut says of replicas that hold up the others.
func TestCapacity(t *testing.T) {
	const left = ", and these use up spec.rollout.maxUnavailable, because they answer nothing in a cluster that they leave, and have no place in another one: a"
	cases := map[string]struct {
		progress progress
		want     string
	}{
		"None":       {progress: progress{waiting: 1}},
		"Absent":     {progress: progress{waiting: 1, absent: []string{"a"}}, want: ", and these use up spec.rollout.maxUnavailable while they wait for capacity: a"},
		"Silent":     {progress: progress{waiting: 1, silent: []string{"a"}}, want: left},
		"NoneWaits":  {progress: progress{silent: []string{"a"}}},
		"Unreserved": {progress: progress{waiting: 1, unreserved: []string{"a"}}, want: ", and maxSurge waits for capacity: a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.progress.capacity(1)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestGapMessage proves that a gap names its clusters where there are several.
func TestGapMessage(t *testing.T) {
	const tail = " until the new ones are ready, because they are one unit. To avoid this, set spec.rollout.maxSurge to 1 before it"
	cases := map[string]struct {
		clusters int
		gaps     []string
		want     string
	}{
		"None":       {clusters: 2},
		"OneCluster": {clusters: 1, gaps: []string{"a"}, want: "A change of pods stops prefill and decode" + tail},
		"OneOfTwo":   {clusters: 2, gaps: []string{"a"}, want: "A change of pods stops prefill and decode in a" + tail},
		"Both":       {clusters: 2, gaps: []string{"a", "b"}, want: "A change of pods stops prefill and decode in a, b" + tail},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &evaluator{plan: &plan.Plan{Clusters: make([]plan.ClusterPlan, tc.clusters), Rollout: plan.Rollout{Gaps: tc.gaps}}}
			if diff := cmp.Diff(tc.want, e.gap()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestUnread proves that what cannot be read is neither said to be ready and updated nor to be the contrary.
func TestUnread(t *testing.T) {
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}}
	const in = "cluster/east/"
	ok, lost := synced("True", ""), synced("False", "observe failed: cannot get object: no route to host")
	type want struct {
		RolledOut, Summary, Updated string
		Ready, UpdatedReplicas      int32
	}
	cases := map[string]struct {
		reason        string
		first, second map[string]any
		edit          edit[lws.LeaderWorkerSet]
		want          want
	}{
		"Read": {"Both are ready.", ok, ok, nil, want{"True AllUpdated", "engine 2/2", "2/2", 2, 2}},
		"None": {"Nothing is known of either.", lost, lost, nil, want{"Unknown CannotBeRead: 0 of 2 replicas are known to be updated, 2 cannot be read", "engine ?/2", "?/2", 0, 0}},
		"One":  {"One of them is known to be ready.", ok, lost, nil, want{"Unknown CannotBeRead: 1 of 2 replicas are known to be updated, 1 cannot be read", "engine 1+?/2", "1+?/2", 1, 1}},
		"NotReady": {
			"One is known not to be ready, so the rollout has not ended.", ok, lost, progressing,
			want{"False NotReady: 1 of 2 replicas are known to be updated (1 of them not ready), 1 cannot be read", "engine ?/2", "1+?/2", 0, 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, east)
			first := workload("qwen-engine-0")
			if tc.edit != nil {
				tc.edit(first)
			}
			s.seeRemote(in+svcKey, map[string]any{"kind": "Service"}, ok).seeRemote(in+pgKey, podGroup("qwen", volcano.PodGroupRunning), ok).
				seeRemote(in+lws0, first, tc.first).seeRemote(in+lws1, workload("qwen-engine-1"), tc.second)
			v := s.evaluate()
			role := v.Status.Components["engine"]
			got := want{conditionLine(v, RolledOut), v.Status.Summary, v.Status.Rollout.Summary, role.ReadyReplicas, role.UpdatedReplicas}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestApplyRefused proves what is said of an update that the cluster of a replica refuses: what was read there counts.
func TestApplyRefused(t *testing.T) {
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}}
	const in = "cluster/east/"
	const denied = "observe failed: cannot get desired state: cannot dry run SSA: admission webhook denied the request"
	ok, refused := synced("True", ""), synced("False", denied)
	former := func(w *lws.LeaderWorkerSet) { w.Labels[naming.LabelSpecHash] = "former" }
	unready := func(w *lws.LeaderWorkerSet) { former(w); progressing(w) }
	const because = "cluster east: LeaderWorkerSet qwen-engine-0: the cluster does not take its newest spec: " + denied
	type want struct {
		Workloads, RolledOut, Summary, Updated string
		Phase                                  v1alpha1.ComponentPhase
		Ready, ReadyPods                       int32
		Object                                 bool
	}
	cases := map[string]struct {
		reason string
		edit   edit[lws.LeaderWorkerSet]
		synced map[string]any
		want   want
	}{
		"Serves": {
			"It serves with its former pods, and is not updated.", former, refused,
			want{"False ApplyRefused: " + because, "False ApplyRefused: 1 of 2 replicas are updated, 1 has a change that its cluster refuses", "engine 2/2", "1/2", v1alpha1.ComponentPhaseRunning, 2, 8, false},
		},
		"NotReady": {
			"Its former pods do not serve.", unready, refused,
			want{"False ApplyRefused: cluster east: LeaderWorkerSet qwen-engine-0: not all of its pods are ready, and the cluster does not take its newest spec: " + denied, "False ApplyRefused: 1 of 2 replicas are updated, 1 has a change that its cluster refuses", "engine 1/2", "1/2", v1alpha1.ComponentPhaseDeploying, 1, 4, false},
		},
		"NewestPods": {
			"Another change is refused: the newest pods run.", func(*lws.LeaderWorkerSet) {}, refused,
			want{"False ApplyRefused: " + because, "False ApplyRefused: 2 of 2 replicas are updated, 1 has a change that its cluster refuses", "engine 2/2", "2/2", v1alpha1.ComponentPhaseRunning, 2, 8, false},
		},
		"CannotBeRead": {
			"What was read before may be old.", former, synced("False", "observe failed: cannot get object: no"),
			want{
				"Unknown CannotBeRead: cluster east: LeaderWorkerSet qwen-engine-0: provider-kubernetes cannot reach or change it: observe failed: cannot get object: no",
				"Unknown CannotBeRead: 1 of 2 replicas are known to be updated, 1 cannot be read", "engine 1+?/2", "1+?/2", v1alpha1.ComponentPhaseUnknown, 1, 4, false,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, east)
			s.seeRemote(in+svcKey, map[string]any{"kind": "Service"}, ok).seeRemote(in+pgKey, podGroup("qwen", volcano.PodGroupRunning), ok).
				seeRemote(in+lws1, workload("qwen-engine-1"), ok)
			o := encode(t, map[string]any{
				"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "metadata": map[string]any{"name": "x"},
				"spec":   map[string]any{"forProvider": map[string]any{"manifest": encode(t, workload("qwen-engine-0"))}},
				"status": map[string]any{"conditions": []any{tc.synced}, "atProvider": map[string]any{"manifest": encode(t, workload("qwen-engine-0", tc.edit))}},
			})
			s.see(in+lws0, o)
			v := s.evaluate()
			role := v.Status.Components["engine"]
			got := want{conditionLine(v, WorkloadsReady), conditionLine(v, RolledOut), v.Status.Summary, v.Status.Rollout.Summary, role.Phase, role.ReadyReplicas, role.ReadyPods, v.Ready[key.Parse(in+lws0)]}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
