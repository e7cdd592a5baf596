package plan

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// TestPauseScaleIn proves that no replicas are removed while others start, and only for as long as these may take.
func TestPauseScaleIn(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	serving := rollout.State{Exists: true, Serving: true, Since: ago(600)}
	target := &v1alpha1.ScalingTarget{WaitingRequests: ptr.To[int32](3)}
	cases := map[string]struct {
		reason  string
		state   rollout.State
		replica Replica
		target  *v1alpha1.ScalingTarget
		leaving bool
		least   int32
		// requested replicas, or 2, and how many run, or as many.
		requested, runs int32
		want            bool
		due             time.Time
	}{
		"Ready":     {reason: "Prometheus may not have read it so far.", state: rollout.State{Exists: true, Serving: true, Since: ago(2)}, replica: Replica{Updated: true}, target: target, want: true, due: now.Add(time.Minute)},
		"OneOfMany": {reason: "It changes the sum by a tenth at most, and in a large role some replica may start at any time.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}, replica: Replica{Updated: true}, target: target, requested: 10},
		"OneOfNine": {reason: "It changes the sum by more.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}, replica: Replica{Updated: true}, target: target, requested: 9, want: true, due: now.Add(time.Minute)},
		"AsksMore":  {reason: "More are asked for than run, by a ratio or without capacity.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}, replica: Replica{Updated: true}, target: target, requested: 40, runs: 4, want: true, due: now.Add(time.Minute)},
		"Serves":    {reason: "All replicas have metrics.", state: serving, replica: Replica{Updated: true}, target: target},
		"Restarts":  {reason: "Its engine counts as one without load.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}, replica: Replica{Updated: true}, target: target, want: true, due: now.Add(time.Minute)},
		"Unseen":    {reason: "It was made just now, and its controller has said nothing.", state: rollout.State{Exists: true, Since: ago(0)}, replica: Replica{Updated: true}, target: target, want: true, due: now.Add(settles)},
		"Rollout":   {reason: "Its controller has not seen the next template.", state: rollout.State{Exists: true, Since: ago(600)}, replica: Replica{Updated: true}, target: target, want: true, due: now.Add(settles)},
		"Released":  {reason: "This response gives it the next template.", state: serving, target: target, want: true, due: now.Add(settles)},
		"Held":      {reason: "It keeps its pods.", state: serving, replica: Replica{Held: true}, target: target},
		"Minimum":   {reason: "No replica can be removed, and the role may go to 0.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}, replica: Replica{Updated: true}, target: target, least: 2},
		"Fails":     {reason: "It may have to start for ten minutes at most.", state: rollout.State{Exists: true, Broken: true, Since: ago(11)}, replica: Replica{Updated: true}, target: target},
		"Unknown":   {reason: "Its cluster may be out of reach for ever.", state: rollout.State{Exists: true}, target: target},
		"Missing":   {reason: "It may wait for its weights or its gang.", target: target},
		"Extra":     {reason: "It is beyond what the autoscaler asks for.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}, replica: Replica{Extra: true}, target: target},
		"Leaving":   {reason: "It runs elsewhere instead.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}, leaving: true, target: target},
		"Window":    {reason: "The mean has minutes in which the replica did not serve.", state: rollout.State{Exists: true, Serving: true, Since: ago(7)}, replica: Replica{Updated: true}, target: &v1alpha1.ScalingTarget{TokensPerSecond: ptr.To[int32](900)}, want: true, due: now.Add(time.Minute)},
		"NoWindow":  {reason: "A gauge has no former minutes.", state: rollout.State{Exists: true, Serving: true, Since: ago(7)}, replica: Replica{Updated: true}, target: target},
		"Triggers":  {reason: "What the user measures need not be engines.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := &Role{Name: "w", Autoscaler: &Autoscaler{Min: tc.least}, startup: 10 * time.Minute, scaling: &v1alpha1.RoleScaling{Target: tc.target}}
			tc.replica.Key, tc.replica.Role = key.Parse("leaderworkerset/w/1"), role
			replicas := []Replica{tc.replica}
			for range cmp.Or(tc.runs, tc.requested, 2) - 1 {
				replicas = append(replicas, Replica{Key: key.Parse("leaderworkerset/w/0"), Role: role, Updated: true})
			}
			p := &Plan{
				Roles:    []*Role{role},
				Scales:   map[string]*Scale{"w": {Requested: cmp.Or(tc.requested, 2)}},
				Clusters: []ClusterPlan{{Leaving: tc.leaving, Groups: []Group{{Replicas: replicas}}}},
			}
			p.pauseScaleIn(&RunningView{Now: now, Replica: func(k key.Key) rollout.State {
				if k != tc.replica.Key {
					return serving
				}
				return tc.state
			}})
			if role.Autoscaler.Starting != tc.want {
				t.Errorf("%s want %t", tc.reason, tc.want)
			}
			if !p.Due.Equal(tc.due) {
				t.Errorf("%s it is decided anew at %s, want %s", tc.reason, p.Due, tc.due)
			}
		})
	}
}

// TestPausePair proves that decode loses no replicas while those of prefill start, and the other way round. A role that is in no pair may lose some.
func TestPausePair(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, want := range map[string]map[string]bool{"p": {"p": true, "d": true, "w": false}, "d": {"p": true, "d": true, "w": false}, "w": {"p": false, "d": false, "w": true}} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Scales: map[string]*Scale{}}
			group := Group{}
			for _, of := range []struct {
				name string
				kind v1alpha1.ComponentType
			}{{"p", v1alpha1.ComponentTypePrefiller}, {"d", v1alpha1.ComponentTypeDecoder}, {"w", v1alpha1.ComponentTypeWorker}} {
				role := &Role{Name: of.name, Type: of.kind, Autoscaler: &Autoscaler{}, startup: time.Hour, scaling: &v1alpha1.RoleScaling{Target: &v1alpha1.ScalingTarget{RunningRequests: ptr.To[int32](3)}}}
				p.Roles, p.Scales[of.name] = append(p.Roles, role), &Scale{Requested: 2}
				group.Replicas = append(group.Replicas, Replica{Key: key.Parse("leaderworkerset/" + of.name + "/0"), Role: role, Updated: true})
			}
			p.Clusters = []ClusterPlan{{Groups: []Group{group}}}
			p.pauseScaleIn(&RunningView{Now: now, Replica: func(k key.Key) rollout.State {
				starts := k == key.Parse("leaderworkerset/"+name+"/0")
				return rollout.State{Exists: true, Serving: !starts, Broken: starts, Since: now.Add(-9 * time.Minute)}
			}})
			got := map[string]bool{}
			for _, r := range p.Roles {
				got[r.Name] = r.Autoscaler.Starting
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("while %s starts, -want +got:\n%s", name, diff)
			}
		})
	}
}

// TestKeepHeld proves that an autoscaler removes no replicas that would come back with a template that nobody has released, or that
// does not start.
func TestKeepHeld(t *testing.T) {
	held, updated := Replica{Held: true, serving: true}, Replica{Updated: true, serving: true}
	below, failing, extra, broken := held, Replica{Updated: true, broken: true}, held, held
	below.BelowPartition, extra.Extra, broken.broken = true, true, true
	cases := map[string]struct {
		reason   string
		replicas []Replica
		paused   bool
		leaving  bool
		most     int32
		want     int32
	}{
		"Paused":    {reason: "All keep their template.", replicas: []Replica{held, held}, paused: true, want: 2},
		"Added":     {reason: "What was added since has the newest template.", replicas: []Replica{held, held, updated}, paused: true, want: 2},
		"Partition": {reason: "Those above it have the newest template.", replicas: []Replica{below, below, updated, updated}, want: 2},
		"Fails":     {reason: "The newest template may not start.", replicas: []Replica{held, held, failing}, want: 2},
		"InTurn":    {reason: "The rollout goes on, or waits for capacity.", replicas: []Replica{held, broken, updated}},
		"Done":      {reason: "All have the newest template.", replicas: []Replica{updated, failing}, paused: true},
		"Extra":     {reason: "No autoscaler counts it.", replicas: []Replica{held, extra}, paused: true, want: 1},
		"Leaving":   {reason: "It runs elsewhere instead.", replicas: []Replica{held}, paused: true, leaving: true},
		"Maximum":   {reason: "The user has lowered maxReplicas.", replicas: []Replica{held, held, held}, paused: true, most: 1, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := &Role{Name: "w", Autoscaler: &Autoscaler{Max: cmp.Or(tc.most, 9)}}
			for i := range tc.replicas {
				tc.replicas[i].Role, tc.replicas[i].Index = role, int32(i)
			}
			p := &Plan{Rollout: Rollout{Rollout: v1alpha1.Rollout{Paused: tc.paused}}, Clusters: []ClusterPlan{{Leaving: tc.leaving, Groups: []Group{{Replicas: tc.replicas}}}}}
			p.keepHeld()
			if got := role.Autoscaler.Floor; got != tc.want {
				t.Errorf("%s It keeps %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
