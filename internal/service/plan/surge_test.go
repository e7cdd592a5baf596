package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestExtraInFleet shows which extra replicas stay in the clusters of a fleet, and which replicas are
// stopped because of them. The service wants two replicas in each cluster.
func TestExtraInFleet(t *testing.T) {
	old, done := rollout.State{Exists: true, Revision: "new", Held: true, Serving: true}, rollout.State{Exists: true, Revision: "new", Serving: true}
	starts := rollout.State{Exists: true, Revision: "new"}
	type states = map[key.ReplicaID]rollout.State
	cases := map[string]struct {
		reason string
		surge  int32
		// exist are the replicas that exist, by the cluster. All others of the first two are requested.
		exist map[string]states
		// policy is Replicate if it is empty.
		policy v1alpha1.PlacementPolicy
		// drained is a cluster that everything leaves.
		drained string
		want    []string
	}{
		"ReplacesOne": {
			reason: "An extra replica serves in the place of one of its cluster.", surge: 1,
			exist: map[string]states{"a": {"worker/0": old, "worker/1": old, "worker/2": done}},
			want:  []string{"a/worker/0 held", "a/worker/1", "a/worker/2"},
		},
		"Across": {
			reason: "It does not serve in the place of one in another cluster, whose requests would fail.", surge: 1,
			exist: map[string]states{"a": {"worker/0": done, "worker/1": starts, "worker/2": done, "worker/3": done}, "b": {"worker/0": old, "worker/1": old}},
			want:  []string{"a/worker/0", "a/worker/1", "a/worker/2", "b/worker/0 held", "b/worker/1 held"},
		},
		"Absent": {
			reason: "It stays while a replica that is wanted waits for its capacity.",
			exist:  map[string]states{"a": {"worker/0": done, "worker/2": done}},
			want:   []string{"a/worker/0", "a/worker/2"},
		},
		"AbsentCounts": {
			reason: "The one that waits does not serve, so no other one is stopped.", surge: 1,
			exist: map[string]states{"a": {"worker/0": old, "worker/2": done}},
			want:  []string{"a/worker/0 held", "a/worker/2"},
		},
		"AllAbsent": {
			reason: "So it does if all of them wait.",
			exist:  map[string]states{"a": {"worker/2": done}},
			want:   []string{"a/worker/2"},
		},
		"NotKnown": {
			reason: "So does one of which is not known whether it serves: after an edit the status is older than the spec.",
			exist:  map[string]states{"a": {"worker/0": done, "worker/1": starts, "worker/2": {Exists: true, Revision: "old"}}},
			want:   []string{"a/worker/0", "a/worker/1", "a/worker/2 held"},
		},
		"Broken": {
			reason: "One that is known to be broken serves in no place.",
			exist:  map[string]states{"a": {"worker/0": done, "worker/1": starts, "worker/2": {Exists: true, Revision: "new", Broken: true}}},
			want:   []string{"a/worker/0", "a/worker/1"},
		},
		"WithoutExtra": {
			reason: "One that waits for its capacity does not serve, with or without an extra one.", surge: 0,
			exist: map[string]states{"a": {"worker/0": old}},
			want:  []string{"a/worker/0 held"},
		},
		"NotTold": {
			reason: "Nothing is stopped while another one was not told of the newest template: it may be read as it was before it was stopped itself.", surge: 1,
			exist: map[string]states{"a": {"worker/0": {Exists: true, Revision: "old", Held: true, Serving: true}, "worker/1": old, "worker/2": done}},
			want:  []string{"a/worker/0 held", "a/worker/1 held", "a/worker/2"},
		},
		"NothingRunsThere": {
			reason: "A cluster in which nothing has capacity holds up nothing elsewhere.",
			exist:  map[string]states{"a": {"worker/0": old, "worker/1": old}, "b": {}},
			want:   []string{"a/worker/0 held", "a/worker/1"},
		},
		"Moves": {
			reason: "The replica that waits serves where it leaves. It is not missing, and needs the room.", policy: v1alpha1.PlacementSpread,
			exist: map[string]states{"a": {"worker/0": done, "worker/2": done}, "b": {"worker/1": done}},
			want:  []string{"a/worker/0", "b/worker/1"},
		},
		"MovesNot": {
			reason: "It serves nowhere.", policy: v1alpha1.PlacementSpread,
			exist: map[string]states{"a": {"worker/0": done, "worker/2": done}, "b": {"worker/1": starts}},
			want:  []string{"a/worker/0", "a/worker/2", "b/worker/1"},
		},
		"MovesInRollout": {
			reason: "The rollout goes on, and its extra replica leaves the room for the one that moves.", surge: 1, policy: v1alpha1.PlacementSpread, drained: "b",
			exist: map[string]states{"a": {"worker/0": old, "worker/2": done}, "b": {"worker/1": old}},
			want:  []string{"a/worker/0", "a/worker/2", "b/worker/1 held"},
		},
		"MovesNotInRollout": {
			reason: "It does not serve where it leaves, so no other one is stopped.", surge: 1, policy: v1alpha1.PlacementSpread, drained: "b",
			exist: map[string]states{"a": {"worker/0": old, "worker/2": done}, "b": {"worker/1": starts}},
			want:  []string{"a/worker/0 held", "a/worker/2", "b/worker/1"},
		},
		"Gap": {
			reason: "It stays whether or not those before it exist.",
			exist:  map[string]states{"a": {"worker/0": done, "worker/1": starts, "worker/3": done}},
			want:   []string{"a/worker/0", "a/worker/1", "a/worker/3"},
		},
		"GapIsUsed": {
			reason: "The rollout asks for one more, which exists under another number.", surge: 1,
			exist: map[string]states{"a": {"worker/0": old, "worker/1": done, "worker/3": done}},
			want:  []string{"a/worker/0", "a/worker/1", "a/worker/3"},
		},
		"Done": {
			reason: "It goes once all others serve.", surge: 1,
			exist: map[string]states{"a": {"worker/0": done, "worker/1": done, "worker/2": done}},
			want:  []string{"a/worker/0", "a/worker/1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot()
			placement := &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate}
			if tc.policy != "" {
				placement.Policy = tc.policy
			}
			running := &RunningView{Revision: map[string]string{"worker": "new"}, Extra: map[string][]key.ReplicaID{}, PodGroup: func(key.Key) PodGroupView { return PodGroupView{} }, ServiceRole: func(key.Key) string { return "" }, SidecarAccounts: func(key.Key) []string { return nil }}
			running.Leader = func(*Replica) (Leader, bool) { return Leader{}, false }
			running.Recovery = func(key.Key) Recovery { return Recovery{} }
			running.Admitted, running.Observed = func(key.Key) bool { return false }, func(key.Key) bool { return false }
			running.Replica = func(k key.Key) rollout.State {
				id, _ := k.ReplicaID()
				return tc.exist[k.Cluster][id]
			}
			// The first cluster says what the request has for all of them.
			for _, cluster := range slices.Sorted(maps.Keys(tc.exist)) {
				exist := slices.SortedFunc(maps.Keys(tc.exist[cluster]), func(a, b key.ReplicaID) int { return strings.Compare(string(a), string(b)) })
				for _, id := range exist {
					if _, _, index, _ := id.Parts(); index >= 2 {
						running.Extra[cluster] = append(running.Extra[cluster], id)
					}
				}
				at := schedulingtest.Cluster(cluster+"-1", schedulingtest.Reserved(exist...))
				more := schedulingtest.Snapshot(at)
				snapshot.Clusters[at.Name], snapshot.Configs = at, append(snapshot.Configs, more.Configs...)
				if cluster == tc.drained {
					at.Spec.StopPolicy = v1alpha1.StopDrain
				}
				request := more.Request.Clusters[at.Name]
				request.Name = cluster
				// Each extra replica is a group by itself.
				for i := range request.Groups[0].Replicas {
					if r := request.Groups[0].Replicas[i]; slices.Contains(running.Extra[cluster], r.Name) {
						r.Required = true
						request.Groups = append(request.Groups, reservation.ReplicaGroup{Name: key.GroupID(r.Name), Replicas: []reservation.ReplicaRequest{r}})
					}
				}
				request.Groups[0].Replicas = slices.DeleteFunc(request.Groups[0].Replicas, func(r reservation.ReplicaRequest) bool { return slices.Contains(running.Extra[cluster], r.Name) })
				for _, id := range []key.ReplicaID{"worker/0", "worker/1"} {
					if !slices.Contains(exist, id) {
						request.Groups[0].Replicas = append(request.Groups[0].Replicas, reservation.ReplicaRequest{Name: id, Generation: 2, Pods: map[string]int64{"worker/leader": 1}})
					}
				}
				if snapshot.Request == nil {
					snapshot.Request = more.Request
				}
				snapshot.Request.Clusters[at.Name] = request
				snapshot.States[cluster] = schedulingtest.Existing(exist...)
				for id, state := range tc.exist[cluster] {
					snapshot.States[cluster].Ready[id], snapshot.States[cluster].WasReady[id] = state.Serving, state.Serving
				}
				placement.Clusters = append(placement.Clusters, v1alpha1.PlacementCluster{Name: cluster, InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: at.Name}})
			}
			slices.SortFunc(placement.Clusters, func(a, b v1alpha1.PlacementCluster) int { return strings.Compare(a.Name, b.Name) })
			spec := &v1alpha1.InferenceServiceSpec{
				Placement: placement, Rollout: &v1alpha1.Rollout{MaxSurge: ptr.To(tc.surge)},
				Roles: []v1alpha1.Role{{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](2), Template: document(t, `{"spec":{"containers":[{"name":"vllm","image":"x","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`)}},
			}
			in := &inputv1alpha1.Input{}
			inputv1alpha1.Default(in)
			p, errs := Build(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid"}, spec, in, snapshot, nil)
			if len(errs) == 0 {
				errs = p.Place(running)
			}
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			p.RollOut(running)
			var got []string
			for c, r := range p.Replicas() {
				is := fmt.Sprintf("%s/%s", c.Target.Cluster, r.ID)
				if r.Held {
					is += " held"
				}
				got = append(got, is)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestScaledDownPairs removes a prefill and a decode replica while the decode replica that remains does not serve, and the prefill replica that
// goes is broken. The decode replica that goes answers without it.
func TestScaledDownPairs(t *testing.T) {
	done, broken := rollout.State{Exists: true, Revision: "new", Serving: true}, rollout.State{Exists: true, Revision: "new", Broken: true}
	cases := map[string]struct {
		reason string
		// decode is the state of the decode replica that goes.
		decode rollout.State
		want   []string
	}{
		"Serves":  {reason: "It is all that decodes.", decode: done, want: []string{"decode/0", "decode/1", "prefill/0", "prefill/1"}},
		"Unknown": {reason: "It may serve: its status is older than its spec.", decode: rollout.State{Exists: true, Revision: "new"}, want: []string{"decode/0", "decode/1", "prefill/0", "prefill/1"}},
		"Broken":  {reason: "It is of no use.", decode: broken, want: []string{"decode/0", "prefill/0", "prefill/1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			states := map[key.ReplicaID]rollout.State{"prefill/0": done, "prefill/1": done, "prefill/2": broken, "decode/0": broken, "decode/1": tc.decode}
			running := &RunningView{Revision: map[string]string{"prefill": "new", "decode": "new"}, Extra: map[string][]key.ReplicaID{"": {"decode/1"}}, Others: map[string][]key.ReplicaID{"": {"prefill/2"}}}
			running.Replica = func(k key.Key) rollout.State {
				id, _ := k.ReplicaID()
				return states[id]
			}
			template := document(t, `{"spec":{"containers":[{"name":"vllm","image":"vllm/vllm-openai:v0.11.0","args":["--model=m"]}]}}`)
			spec := &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{
				{Name: "prefill", ComponentType: v1alpha1.ComponentTypePrefiller, Replicas: ptr.To[int32](2), Template: template},
				{Name: "decode", ComponentType: v1alpha1.ComponentTypeDecoder, Replicas: ptr.To[int32](1), Template: template},
			}}
			in := &inputv1alpha1.Input{}
			inputv1alpha1.Default(in)
			p, errs := Build(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid"}, spec, in, scheduling.Snapshot{}, nil)
			if len(errs) == 0 {
				errs = p.Place(running)
			}
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			p.surge(running)
			var got []string
			for _, r := range p.Replicas() {
				got = append(got, string(r.ID))
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestScaledDownInGroups lowers the replicas of a role from two to one in the only group, in a cluster of the fleet. The
// replica that goes is requested by itself until the other one serves.
func TestScaledDownInGroups(t *testing.T) {
	const stays, goes = key.ReplicaID("0/worker/0"), key.ReplicaID("0/worker/1")
	done, broken := rollout.State{Exists: true, Revision: "new", Serving: true}, rollout.State{Exists: true, Revision: "new", Broken: true}
	group, alone := key.GroupOf(0), key.GroupID(goes)
	cases := map[string]struct {
		reason string
		exist  map[key.ReplicaID]rollout.State
		want   map[key.GroupID]key.ReplicaID
		runs   []key.ReplicaID
	}{
		"Crashed": {"It is all that serves.", map[key.ReplicaID]rollout.State{stays: broken, goes: done}, map[key.GroupID]key.ReplicaID{group: stays, alone: goes}, []key.ReplicaID{stays, goes}},
		"Absent":  {"The other one waits for its capacity.", map[key.ReplicaID]rollout.State{goes: done}, map[key.GroupID]key.ReplicaID{group: stays, alone: goes}, []key.ReplicaID{goes}},
		"Serves":  {"The other one serves.", map[key.ReplicaID]rollout.State{stays: done, goes: done}, map[key.GroupID]key.ReplicaID{group: stays}, []key.ReplicaID{stays}},
		"Both":    {"None serves.", map[key.ReplicaID]rollout.State{stays: broken, goes: broken}, map[key.GroupID]key.ReplicaID{group: stays}, []key.ReplicaID{stays}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			exist := slices.Sorted(maps.Keys(tc.exist))
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved(exist...)))
			snapshot.States["east"] = schedulingtest.Existing(exist...)
			running := &RunningView{Others: map[string][]key.ReplicaID{"east": exist}}
			running.Replica = func(k key.Key) rollout.State {
				id, _ := k.ReplicaID()
				return tc.exist[id]
			}
			in := &inputv1alpha1.Input{}
			inputv1alpha1.Default(in)
			p, errs := Build(naming.Identity{Name: "svc", Namespace: "ns", UID: "uid", Grouped: true}, &v1alpha1.InferenceServiceSpec{
				Replicas:  ptr.To[int32](1),
				Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: "east", InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: "east"}}}},
				Roles:     []v1alpha1.Role{{Name: "worker", ComponentType: v1alpha1.ComponentTypeWorker, Replicas: ptr.To[int32](1), Template: document(t, `{"spec":{"containers":[{"name":"vllm","image":"x","resources":{"limits":{"nvidia.com/gpu":8}}}]}}`)}},
			}, in, snapshot, nil)
			if len(errs) == 0 {
				errs = p.Place(running)
			}
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			requested, runs := map[key.GroupID]key.ReplicaID{}, []key.ReplicaID(nil)
			for _, g := range p.Schedule.Request.Clusters["east"].Groups {
				for _, r := range g.Replicas {
					requested[g.Name] += r.Name
				}
			}
			for _, r := range p.Replicas() {
				runs = append(runs, r.ID)
			}
			if diff := cmp.Diff(tc.want, requested); diff != "" {
				t.Errorf("%s Requested: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.runs, runs); diff != "" {
				t.Errorf("%s Run: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
