package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestRecover shows what two replicas of a group note, and which of them is made anew. The first one
// has the policy InferGroupRestart, and the other one has RoleRestart.
func TestRecover(t *testing.T) {
	now := time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)
	pod := func(uid string) LeaderID { return LeaderID{"r1", uid} }
	noted := func(failures, restart int64, leader string) Recovery {
		r := Recovery{Failures: failures, Restart: restart}
		if leader != "" {
			r.Leader = pod(leader)
		}
		return r
	}
	serving := rollout.State{Exists: true, Revision: "new", Serving: true}
	starting, held := serving, serving
	starting.Serving = false
	held.Held = true
	former := rollout.State{Exists: true, Revision: "old", Serving: true}
	ready := func(uid string) Leader {
		return Leader{LeaderID: pod(uid), Created: now.Add(-time.Minute), Ready: true}
	}
	unready := func(uid string) Leader { return Leader{LeaderID: pod(uid), Created: now.Add(-time.Minute)} }
	updated := ready("b")
	updated.Revision = "r2"

	type replica struct {
		State  rollout.State
		Note   Recovery
		Leader Leader
	}
	type outcome struct {
		First, Second Recovery
		// Recreated are the replicas that are made anew.
		Recreated []string
		Failed    []string
		Due       time.Time
	}
	cases := map[string]struct {
		reason        string
		first, second replica
		grace         time.Duration
		want          outcome
	}{
		"Serves": {
			reason: "A replica that serves notes its leader.",
			first:  replica{serving, Recovery{}, ready("a")}, second: replica{serving, Recovery{}, ready("x")},
			want: outcome{First: noted(0, 0, "a")},
		},
		"Starts": {
			reason: "One that does not serve notes nothing.",
			first:  replica{starting, Recovery{}, ready("a")}, second: replica{State: serving},
		},
		"PodNotReady": {
			reason: "The status of its LeaderWorkerSet may be older than the pod.",
			first:  replica{serving, Recovery{}, unready("a")}, second: replica{State: serving},
		},
		"NotReadyAnyMore": {
			reason: "A pod that is not ready for a while has not failed.",
			first:  replica{starting, noted(0, 0, "a"), unready("a")}, second: replica{State: serving},
			want: outcome{First: noted(0, 0, "a")},
		},
		"NoPod": {
			reason: "A pod that is not there says nothing.",
			first:  replica{starting, noted(0, 0, "a"), Leader{}}, second: replica{State: serving},
			want: outcome{First: noted(0, 0, "a")},
		},
		"Failed": {
			reason: "Another leader of the same template is a failure.",
			first:  replica{starting, noted(4, 3, "a"), unready("b")}, second: replica{serving, noted(4, 4, ""), ready("x")},
			want: outcome{First: noted(5, 3, ""), Second: noted(5, 5, ""), Recreated: []string{"second"}, Failed: []string{"first"}},
		},
		"FailedAndBack": {
			reason: "It serves again, and still its group is made anew.",
			first:  replica{serving, noted(0, 0, "a"), ready("b")}, second: replica{State: serving},
			want: outcome{First: noted(1, 0, ""), Second: noted(1, 1, ""), Recreated: []string{"second"}, Failed: []string{"first"}},
		},
		"SecondAppliedOnly": {
			reason: "An apply that stopped half way gives the same number again.",
			first:  replica{starting, noted(4, 3, "a"), unready("b")}, second: replica{starting, noted(5, 5, ""), Leader{}},
			want: outcome{First: noted(5, 3, ""), Second: noted(5, 5, ""), Failed: []string{"first"}},
		},
		"FirstAppliedOnly": {
			reason: "The failed replica was written, and the other one was not.",
			first:  replica{starting, noted(5, 3, ""), unready("b")}, second: replica{serving, noted(4, 4, ""), ready("x")},
			want: outcome{First: noted(5, 3, ""), Second: noted(5, 5, ""), Recreated: []string{"second"}},
		},
		"ActedUpon": {
			reason: "What was acted upon is not acted upon again.",
			first:  replica{starting, noted(5, 3, ""), unready("c")}, second: replica{serving, noted(5, 5, ""), ready("x")},
			want: outcome{First: noted(5, 3, ""), Second: noted(5, 5, "")},
		},
		"OtherPolicy": {
			reason: "A role with RoleRestart fails alone.",
			first:  replica{serving, noted(0, 0, "a"), ready("a")}, second: replica{starting, noted(0, 0, "x"), unready("y")},
			want: outcome{First: noted(0, 0, "a")},
		},
		"FirstIsRemade": {
			reason: "A replica that is made anew is not taken for one that fails.",
			first:  replica{serving, noted(4, 4, "a"), ready("a")}, second: replica{starting, noted(5, 3, ""), Leader{}},
			want: outcome{First: noted(5, 5, ""), Second: noted(5, 3, ""), Recreated: []string{"first"}},
		},
		"Updated": {
			reason: "A leader of another revision was made for an update.",
			first:  replica{serving, noted(0, 0, "a"), updated}, second: replica{State: serving},
			want: outcome{First: Recovery{Leader: LeaderID{"r2", "b"}}},
		},
		"Outdated": {
			reason: "A replica that is to get another template forgets its leader.",
			first:  replica{former, noted(2, 1, "a"), ready("b")}, second: replica{State: serving, Note: noted(2, 0, "")},
			want: outcome{First: noted(2, 1, ""), Second: noted(2, 0, "")},
		},
		"HeldOne": {
			reason: "A held replica knows of the failure, and keeps its pods for good.",
			first:  replica{starting, noted(0, 0, "a"), unready("b")}, second: replica{State: held},
			want: outcome{First: noted(1, 0, ""), Second: noted(1, 0, ""), Failed: []string{"first"}},
		},
		"New": {
			reason: "A new replica has nothing to be made anew.",
			first:  replica{serving, noted(3, 3, "a"), ready("a")}, second: replica{},
			want: outcome{First: noted(3, 3, "a"), Second: noted(3, 0, "")},
		},
		"InGracePeriod": {
			reason: "The rest of the group waits.", grace: 2 * time.Minute,
			first: replica{starting, noted(0, 0, "a"), unready("b")}, second: replica{State: serving},
			want: outcome{First: noted(0, 0, "a"), Due: now.Add(time.Minute)},
		},
		"BackInGracePeriod": {
			reason: "It serves again in time.", grace: 2 * time.Minute,
			first: replica{serving, noted(0, 0, "a"), ready("b")}, second: replica{State: serving},
			want: outcome{First: noted(0, 0, "b")},
		},
		"AfterGracePeriod": {
			reason: "It does not.", grace: time.Minute,
			first: replica{starting, noted(0, 0, "a"), unready("b")}, second: replica{State: serving},
			want: outcome{First: noted(1, 0, ""), Second: noted(1, 1, ""), Recreated: []string{"second"}, Failed: []string{"first"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := map[string]replica{"first": tc.first, "second": tc.second}
			of := func(k key.Key) replica { return at[k.Name] }
			p := &Plan{Roles: []*Role{{Name: "p", Recovery: v1alpha1.RecoverGroup, RestartGrace: tc.grace}, {Name: "d", Recovery: v1alpha1.RecoverRole}}}
			replicas := []Replica{
				{Name: "first", Key: key.New("", key.LeaderWorkerSet, "first"), Role: p.Roles[0]},
				{Name: "second", Key: key.New("", key.LeaderWorkerSet, "second"), Role: p.Roles[1]},
			}
			p.Clusters = []ClusterPlan{{Groups: []Group{{Replicas: replicas}}}}
			p.recover(&RunningView{
				Now: now, Revision: map[string]string{"p": "new", "d": "new"},
				Replica:  func(k key.Key) rollout.State { return of(k).State },
				Recovery: func(k key.Key) Recovery { return of(k).Note },
				Leader:   func(r *Replica) (Leader, bool) { l := of(r.Key).Leader; return l, l.UID != "" },
			})
			got := outcome{First: replicas[0].Recovery, Second: replicas[1].Recovery, Failed: p.Failed, Due: p.Due}
			for _, r := range replicas {
				if r.Recreated {
					got.Recreated = append(got.Recreated, r.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRecoverNobody proves that without the policy nothing is made anew, that pods keep what they were
// made from, and that a new replica knows as much as the others.
func TestRecoverNobody(t *testing.T) {
	role := &Role{Name: "w", Recovery: v1alpha1.RecoverRole}
	notes := map[string]Recovery{"a": {Failures: 2, Restart: 2, Leader: LeaderID{"r", "u"}}, "b": {Failures: 1}}
	var replicas []Replica
	for _, name := range []string{"a", "b", "new"} {
		replicas = append(replicas, Replica{Key: key.New("", key.LeaderWorkerSet, name), Role: role})
	}
	p := &Plan{Roles: []*Role{role}, Clusters: []ClusterPlan{{Groups: []Group{{Replicas: replicas}}}}}
	p.recover(&RunningView{Recovery: func(k key.Key) Recovery { return notes[k.Name] }})
	var got []Recovery
	for _, r := range replicas {
		if r.Recreated {
			t.Errorf("%s is made anew", r.Key)
		}
		got = append(got, r.Recovery)
	}
	if diff := cmp.Diff([]Recovery{{Failures: 2, Restart: 2}, {Failures: 2}, {Failures: 2}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRecoverElsewhere proves that nothing is decided about pods of other clusters, and nothing read.
func TestRecoverElsewhere(t *testing.T) {
	p := &Plan{Roles: []*Role{{Name: "p", Recovery: v1alpha1.RecoverGroup}}}
	p.Clusters = []ClusterPlan{{Target: scheduling.Target{Cluster: "east"}, Groups: []Group{{Replicas: []Replica{{Role: p.Roles[0]}, {Role: p.Roles[0]}}}}}}
	p.recover(&RunningView{})
	if got := p.Clusters[0].Groups[0].Replicas[0].Recovery; got != (Recovery{}) {
		t.Errorf("got %v", got)
	}
}

func TestLeaderID(t *testing.T) {
	cases := map[string]LeaderID{
		"":                  {},
		"none":              {},
		"r1/7d1f3c52-0b5e":  {"r1", "7d1f3c52-0b5e"},
		"/a":                {"", "a"},
		"7f9c/7d1f/further": {"7f9c", "7d1f/further"},
	}
	for text, want := range cases {
		got := ParseLeaderID(text)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
		if back := ParseLeaderID(got.Text()); back != got {
			t.Errorf("%q comes back as %v", text, back)
		}
	}
}

// TestWarnOfRecovery shows where the failure of a replica cannot be told.
func TestWarnOfRecovery(t *testing.T) {
	const roles = `
- {name: w, componentType: worker, replicas: %REPLICAS%, recoveryPolicy: %POLICY%, template: {spec: {containers: [{name: engine, image: x, command: [vllm, serve, /m]}]}}}`
	const path = "spec.roles[0].recoveryPolicy"
	cases := map[string]struct {
		policy, replicas, more string
		want                   []Warning
	}{
		"Read":   {policy: "InferGroupRestart", replicas: "64"},
		"Large":  {policy: "InferGroupRestart", replicas: "65", want: []Warning{{path, "works like RoleRestart with 65 pods, because of more than 64 not all are read: a replica that fails is made anew alone"}}},
		"Other":  {policy: "None", replicas: "65"},
		"Remote": {policy: "InferGroupRestart", replicas: "1", more: "\nplacement: {clusters: [{name: east, providerConfigRef: {name: east}, namespace: ns}]}", want: []Warning{{path, "works like RoleRestart in other clusters, where not all pods are read: a replica that fails is made anew alone"}}},
		"Fleet":  {policy: "InferGroupRestart", replicas: "1", more: "\nplacement: {clusterSelector: {matchLabels: {a: b}}}", want: []Warning{{path, "works like RoleRestart in other clusters, where not all pods are read: a replica that fails is made anew alone"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, "roles:"+strings.NewReplacer("%REPLICAS%", tc.replicas, "%POLICY%", tc.policy).Replace(roles)+tc.more, "allowedProviderConfigs: [{name: east}]")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, p.Warnings); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
