package plan

import (
	"cmp"
	"testing"
	"time"

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
		// requested replicas, or 2.
		requested int32
		want      bool
		due       time.Time
	}{
		"Ready":     {reason: "Prometheus may not have read it so far.", state: rollout.State{Exists: true, Serving: true, Since: ago(2)}, replica: Replica{Updated: true}, target: target, want: true, due: now.Add(time.Minute)},
		"OneOfMany": {reason: "It changes the sum by a tenth at most, and in a large role some replica may start at any time.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}, replica: Replica{Updated: true}, target: target, requested: 10},
		"OneOfNine": {reason: "It changes the sum by more.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}, replica: Replica{Updated: true}, target: target, requested: 9, want: true, due: now.Add(time.Minute)},
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
		"Triggers":  {reason: "What the user measures need not be engines.", state: rollout.State{Exists: true, Broken: true, Since: ago(9)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := &Role{Name: "w", Autoscaler: &Autoscaler{Min: tc.least}, scaling: &v1alpha1.RoleScaling{Target: tc.target}}
			first := Replica{Key: key.Parse("leaderworkerset/w/0"), Role: role, Updated: true}
			tc.replica.Key, tc.replica.Role = key.Parse("leaderworkerset/w/1"), role
			p := &Plan{
				Scales:   map[string]*Scale{"w": {Requested: cmp.Or(tc.requested, 2)}},
				spec:     &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{{Name: "router"}, {Name: "w", Lifecycle: &v1alpha1.Lifecycle{StartupSeconds: ptr.To[int32](600)}}}},
				Clusters: []ClusterPlan{{Leaving: tc.leaving, Groups: []Group{{Replicas: []Replica{tc.replica, first}}}}},
			}
			p.pauseScaleIn(&Running{Now: now, Replica: func(k key.Key) rollout.State {
				if k == first.Key {
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
