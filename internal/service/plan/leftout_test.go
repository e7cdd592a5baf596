package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// TestLeaveTaken shows which replicas are left out, and what the gangs of the others count.
func TestLeaveTaken(t *testing.T) {
	const (
		role    = "multinode: {nodeCount: 2}, template: {spec: {containers: [{name: vllm, image: x, args: [--model, m]}]}}}"
		one     = "roles: [{name: w, componentType: worker, replicas: 3, " + role + "]\n"
		grouped = "replicas: 2\nroles: [{name: a, componentType: worker, replicas: 2, " + role + ", {name: b, componentType: worker, " + role + "]\n"
	)
	type group struct {
		// Runs and LeftOut are the replicas of a group, and Tasks those that its gang counts.
		Runs, LeftOut []key.ReplicaID
		Tasks         map[string]int32
		GangLeftOut   bool
	}
	ids := func(all []Replica) []key.ReplicaID {
		var names []key.ReplicaID
		for i := range all {
			names = append(names, all[i].ID)
		}
		return names
	}
	all := []key.ReplicaID{"0/a/0", "0/a/1", "0/b/0"}
	cases := map[string]struct {
		reason string
		spec   string
		// exist are the replicas that exist, and taken the names that somebody else has.
		exist []key.ReplicaID
		taken []string
		want  []group
	}{
		"None":     {"Nobody has a name.", one, []key.ReplicaID{"w/0"}, nil, []group{{Runs: []key.ReplicaID{"w/0", "w/1", "w/2"}, Tasks: map[string]int32{"w-0": 2, "w-1": 2, "w-2": 2}}}},
		"Replica":  {"The gang does not wait for it.", one, []key.ReplicaID{"w/0", "w/1"}, []string{"svc-w-2"}, []group{{Runs: []key.ReplicaID{"w/0", "w/1"}, LeftOut: []key.ReplicaID{"w/2"}, Tasks: map[string]int32{"w-0": 2, "w-1": 2}}}},
		"Exists":   {"What exists is never left out.", one, []key.ReplicaID{"w/0"}, []string{"svc-w-0"}, []group{{Runs: []key.ReplicaID{"w/0", "w/1", "w/2"}, Tasks: map[string]int32{"w-0": 2, "w-1": 2, "w-2": 2}}}},
		"OwnGang":  {"Without its only gang a service cannot run, so it is refused.", one, []key.ReplicaID{"w/0"}, []string{"svc"}, []group{{Runs: []key.ReplicaID{"w/0", "w/1", "w/2"}, Tasks: map[string]int32{"w-0": 2, "w-1": 2, "w-2": 2}}}},
		"Group":    {"It is left out as a whole.", grouped, all, []string{"svc-1-b-0"}, []group{{Runs: all, Tasks: map[string]int32{"a-0": 2, "a-1": 2, "b-0": 2}}, {LeftOut: []key.ReplicaID{"1/a/0", "1/a/1", "1/b/0"}, GangLeftOut: true}}},
		"Gang":     {"Its gang's name counts, too.", grouped, all, []string{"svc-1"}, []group{{Runs: all, Tasks: map[string]int32{"a-0": 2, "a-1": 2, "b-0": 2}}, {LeftOut: []key.ReplicaID{"1/a/0", "1/a/1", "1/b/0"}, GangLeftOut: true}}},
		"InAGroup": {"Of a group that runs, only what does not exist is left out.", grouped, []key.ReplicaID{"0/a/0", "0/b/0", "1/a/0", "1/a/1", "1/b/0"}, []string{"svc-0-a-1"}, []group{{Runs: []key.ReplicaID{"0/a/0", "0/b/0"}, LeftOut: []key.ReplicaID{"0/a/1"}, Tasks: map[string]int32{"a-0": 2, "b-0": 2}}, {Runs: []key.ReplicaID{"1/a/0", "1/a/1", "1/b/0"}, Tasks: map[string]int32{"a-0": 2, "a-1": 2, "b-0": 2}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, tc.spec, "")
			if err != nil {
				t.Fatal(err)
			}
			p.leaveTaken(&RunningView{
				Observed: func(k key.Key) bool { id, is := k.ReplicaID(); return is && slices.Contains(tc.exist, id) },
				Taken:    func(_ key.Key, name string) bool { return slices.Contains(tc.taken, name) },
			})
			c := &p.Clusters[0]
			got := make([]group, len(c.Groups))
			for i := range c.Groups {
				got[i].Runs = ids(c.Groups[i].Replicas)
				if pg := c.Groups[i].PodGroup; pg != nil {
					got[i].Tasks = pg.MinTaskMember
				}
			}
			for i := range c.LeftOut {
				of := &got[c.LeftOut[i].Index]
				of.LeftOut, of.GangLeftOut = ids(c.LeftOut[i].Replicas), c.LeftOut[i].PodGroup != nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
