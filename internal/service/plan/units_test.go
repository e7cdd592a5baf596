package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestAbsent shows the units of a cluster in which some replicas wait for their capacity, and which of them one that may be
// unavailable lets change. Decode answers nothing without prefill, and all that run serve with a former template.
func TestAbsent(t *testing.T) {
	cases := map[string]struct {
		reason          string
		prefill, decode int32
		groups          int32
		// pending replicas wait, and kept ones are beyond those that are wanted.
		pending, kept []key.ReplicaID
		// want are the units with the indexes of their replicas, in the order in which they are counted.
		want []string
	}{
		"None":        {"All replicas run.", 3, 3, 0, nil, nil, []string{"0: p/0 d/0", "1: p/1 d/1", "2: p/2 d/2 changes"}},
		"Pair":        {"The pair that waits does not serve, and no other one may stop.", 3, 3, 0, []key.ReplicaID{"p/0", "d/0"}, nil, []string{"0: p/1 d/1", "1: p/2 d/2", "2:"}},
		"OnlyPrefill": {"Two prefill replicas make two pairs with all of decode.", 3, 3, 0, []key.ReplicaID{"p/1"}, nil, []string{"0: p/0 d/0 d/1", "1: p/2 d/2", "2:"}},
		"Unequal":     {"Each pair waits for one decode replica at least.", 3, 3, 0, []key.ReplicaID{"p/2", "d/1", "d/2"}, nil, []string{"0: p/0 p/1 d/0", "1:", "2:"}},
		"ToSpare":     {"No pair needs the third prefill replica.", 3, 2, 0, []key.ReplicaID{"p/0"}, nil, []string{"0: p/1 d/0", "1: p/2 d/1 changes"}},
		"AllWait":     {"A cluster in which nothing runs holds up no other one.", 1, 1, 0, []key.ReplicaID{"p/0", "d/0"}, nil, nil},
		"Group":       {"A group is a unit by its index, wherever the others are.", 1, 1, 3, []key.ReplicaID{"0/p/0", "0/d/0"}, nil, []string{"1: 1/p/0 1/d/0", "2: 2/p/0 2/d/0", "0:"}},
		"PartOfGroup": {"What runs of a group is its unit, which serves.", 1, 2, 2, []key.ReplicaID{"0/d/1"}, nil, []string{"0: 0/p/0 0/d/0", "1: 1/p/0 1/d/0 1/d/1 changes"}},
		"Kept":        {"A replica that the group was scaled down by serves in the place of none.", 1, 1, 2, []key.ReplicaID{"0/p/0", "0/d/0"}, []key.ReplicaID{"0/d/1"}, []string{"0: 0/d/1", "1: 1/p/0 1/d/0", "0:"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Plan{
				Service: naming.Identity{Name: "svc", Grouped: tc.groups > 0}, groups: max(tc.groups, 1),
				Rollout: Rollout{Rollout: v1alpha1.Rollout{MaxUnavailable: ptr.To[int32](1), MaxSurge: ptr.To[int32](0), Partition: ptr.To[int32](0)}},
				Roles: []*Role{
					{Name: "p", Type: v1alpha1.ComponentTypePrefiller, Replicas: tc.prefill, engine: launch.EngineSGLang},
					{Name: "d", Type: v1alpha1.ComponentTypeDecoder, Replicas: tc.decode, engine: launch.EngineSGLang},
				},
			}
			c := ClusterPlan{}
			for group := range p.groups {
				g := Group{Index: group}
				for _, r := range p.Roles {
					for i := range r.Replicas + 1 {
						replica := p.replica(&c, r, group, i)
						switch kept := slices.Contains(tc.kept, replica.ID); {
						case slices.Contains(tc.pending, replica.ID):
							c.Pending = append(c.Pending, replica)
						case i < r.Replicas || kept:
							replica.Extra, replica.Kept = kept, kept
							g.Replicas = append(g.Replicas, replica)
						}
					}
				}
				c.Groups = append(c.Groups, g)
			}
			p.Clusters = []ClusterPlan{c}
			running := &RunningView{Revision: map[string]string{"p": "new", "d": "new"}, Replica: func(key.Key) rollout.State {
				return rollout.State{Exists: true, Revision: "old", RunningRevision: "old", Serving: true}
			}}
			units := p.units(running)
			states := make([]rollout.Unit, len(units))
			for i := range units {
				states[i] = units[i].state(running)
			}
			var got []string
			for i, changes := range rollout.Release(states, rollout.Policy{MaxUnavailable: 1}) {
				text := []string{fmt.Sprintf("%d:", units[i].index)}
				for _, r := range units[i].replicas {
					text = append(text, string(r.ID))
				}
				if changes {
					text = append(text, "changes")
				}
				got = append(got, strings.Join(text, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAbsentElsewhere changes a single replica that runs, while two others wait in a cluster in which nothing runs so far.
func TestAbsentElsewhere(t *testing.T) {
	cases := map[string]struct {
		reason string
		policy v1alpha1.PlacementPolicy
		want   []bool
	}{
		"Spread":    {"One of three replicas serves, and two have to.", v1alpha1.PlacementSpread, []bool{false, false, false}},
		"Replicate": {"Each cluster has replicas of its own.", v1alpha1.PlacementReplicate, []bool{true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Plan{
				Service: naming.Identity{Name: "svc"}, groups: 1, snapshot: &scheduling.Snapshot{}, inFleet: true,
				spec:    &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{Policy: tc.policy}},
				Rollout: Rollout{Rollout: v1alpha1.Rollout{Partition: ptr.To[int32](0)}},
				Roles:   []*Role{{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 3}},
			}
			here, there := ClusterPlan{Target: scheduling.Target{Cluster: "a"}}, ClusterPlan{Target: scheduling.Target{Cluster: "b"}}
			here.Groups = []Group{{Replicas: []Replica{p.replica(&here, p.Roles[0], 0, 0)}}}
			there.Pending = []Replica{p.replica(&there, p.Roles[0], 0, 1), p.replica(&there, p.Roles[0], 0, 2)}
			p.Clusters = []ClusterPlan{here, there}
			running := &RunningView{Revision: map[string]string{"w": "new"}, Replica: func(key.Key) rollout.State {
				return rollout.State{Exists: true, Revision: "old", RunningRevision: "old", Serving: true}
			}}
			units := p.units(running)
			states := make([]rollout.Unit, len(units))
			for i := range units {
				states[i] = units[i].state(running)
			}
			if diff := cmp.Diff(tc.want, rollout.Release(states, rollout.Policy{MaxUnavailable: 1})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAbsentWhereLeft changes one of two replicas that run, while the other one leaves its cluster and waits for room in that of the first one.
func TestAbsentWhereLeft(t *testing.T) {
	serving := rollout.State{Exists: true, Revision: "old", RunningRevision: "old", Serving: true}
	replacing := rollout.State{Exists: true, Revision: "new", FormerRevision: "old"}
	answers := scheduling.ClusterState{RouterWasReady: true, HasRoute: true, HasPool: true}
	noPicker, refused := answers, answers
	noPicker.RouterWasReady, refused.RouteRefused = false, true
	cases := map[string]struct {
		reason string
		state  rollout.State
		at     scheduling.ClusterState
		routed bool
		// unplaced tells that the other one has no place in the cluster of the first one.
		unplaced bool
		want     int
	}{
		"Answers":          {"The other one answers where it leaves.", serving, answers, true, false, 1},
		"Replacing":        {"The pods of the other one are being replaced, although they were seen ready.", replacing, answers, true, false, 0},
		"NoPicker":         {"Nobody picks the other one.", serving, noPicker, true, false, 0},
		"Refused":          {"The gateway there refuses the service.", serving, refused, true, false, 0},
		"NoFleetRoute":     {"Without a fleet route, nothing tells whether requests are answered there.", serving, noPicker, false, false, 1},
		"AnswersUnplaced":  {"The other one answers where it leaves.", serving, answers, true, true, 1},
		"NoPickerUnplaced": {"Nobody picks the other one.", serving, noPicker, true, true, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.at.Ready = map[key.ReplicaID]bool{"w/1": true}
			p := &Plan{
				Service: naming.Identity{Name: "svc"}, groups: 1, snapshot: &scheduling.Snapshot{States: map[string]*scheduling.ClusterState{"b": &tc.at}}, inFleet: true,
				spec:    &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementSpread}},
				Rollout: Rollout{Rollout: v1alpha1.Rollout{Partition: ptr.To[int32](0)}},
				Roles:   []*Role{{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 2}},
			}
			if tc.routed {
				p.FleetRoute = &FleetRoute{}
			}
			here, left := ClusterPlan{Target: scheduling.Target{Cluster: "a"}}, ClusterPlan{Target: scheduling.Target{Cluster: "b"}, Leaving: true}
			here.Groups = []Group{{Replicas: []Replica{p.replica(&here, p.Roles[0], 0, 0)}}}
			if !tc.unplaced {
				here.Pending = []Replica{p.replica(&here, p.Roles[0], 0, 1)}
			}
			left.Groups = []Group{{Replicas: []Replica{p.replica(&left, p.Roles[0], 0, 1)}}}
			p.Clusters = []ClusterPlan{here, left}
			running := &RunningView{Revision: map[string]string{"w": "new"}, Replica: func(k key.Key) rollout.State {
				if k.Cluster == "b" {
					return tc.state
				}
				return serving
			}}
			units := p.units(running)
			states := make([]rollout.Unit, len(units))
			for i := range units {
				states[i] = units[i].state(running)
			}
			released := 0
			for _, is := range rollout.Release(states, rollout.Policy{MaxUnavailable: 1}) {
				if is {
					released++
				}
			}
			if diff := cmp.Diff(tc.want, released); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGapsBesideLeft shows in which clusters a change of prefill and decode stops all requests, while another pair leaves its cluster under
// Spread, has no place in another one, and answers nothing. The latter is named.
func TestGapsBesideLeft(t *testing.T) {
	roles := []*Role{{Name: "p", Type: v1alpha1.ComponentTypePrefiller, Replicas: 1}, {Name: "d", Type: v1alpha1.ComponentTypeDecoder, Replicas: 1}}
	for name, route := range map[string]*FleetRoute{"NoRoute": nil, "Route": {Backends: []Backend{{Cluster: "a"}, {Cluster: "b"}}}} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{
				Service: naming.Identity{Name: "svc", Grouped: true}, groups: 2, inFleet: true, Roles: roles, FleetRoute: route,
				snapshot: &scheduling.Snapshot{States: map[string]*scheduling.ClusterState{"b": {}}},
				spec:     &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{Policy: v1alpha1.PlacementSpread}},
				Rollout:  Rollout{Rollout: v1alpha1.Rollout{MaxSurge: ptr.To[int32](0), Partition: ptr.To[int32](0)}},
			}
			here, left := ClusterPlan{Target: scheduling.Target{Cluster: "a"}}, ClusterPlan{Target: scheduling.Target{Cluster: "b"}, Leaving: true}
			for group, c := range []*ClusterPlan{&here, &left} {
				g := Group{Index: int32(group)}
				for _, r := range roles {
					g.Replicas = append(g.Replicas, p.replica(c, r, int32(group), 0))
				}
				c.Groups = []Group{g}
			}
			p.Clusters = []ClusterPlan{here, left}
			running := &RunningView{Replica: func(key.Key) rollout.State { return rollout.State{Exists: true} }}
			units := p.units(running)
			if diff := cmp.Diff([][]string{{"a"}, {left.Groups[0].Replicas[0].Name}}, [][]string{p.gaps(units), silent(units)}); diff != "" {
				t.Errorf("gaps, and what answers nothing: -want, +got:\n%s", diff)
			}
		})
	}
}
