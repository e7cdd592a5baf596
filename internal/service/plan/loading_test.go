package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestFindsLoaderPods shows in which clusters the pods of a loading Job are found, and which of them are observed.
func TestFindsLoaderPods(t *testing.T) {
	type want struct {
		Finds  bool
		Pods   []string
		Failed int32
		Later  int
	}
	made := time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)
	active := JobView{Exists: true, Active: true, FailedPods: 2, Created: made}
	cases := map[string]struct {
		reason string
		edit   func(*Plan)
		// found are the names of pods that the collection has found.
		found []string
		job   JobView
		// loaded tells that the status of the last call has the weights.
		loaded bool
		want   want
	}{
		"NoPod":    {reason: "While the Job has no pod, none is looked for.", job: JobView{Exists: true, Created: made}, want: want{Later: 4}},
		"Active":   {reason: "They have random names.", job: active, want: want{Finds: true, Failed: 2, Later: 3}},
		"Found":    {reason: "Each is observed.", job: active, found: []string{"a", "b"}, want: want{Finds: true, Failed: 2, Pods: []string{"a", "b"}, Later: 1}},
		"Many":     {reason: "A Job has one at a time.", job: active, found: []string{"a", "b", "c", "d"}, want: want{Finds: true, Failed: 2, Pods: []string{"a", "b", "c"}}},
		"Limited":  {reason: "The platform team may want fewer.", job: active, found: []string{"a", "b"}, edit: func(p *Plan) { p.PodLimit = 1 }, want: want{Finds: true, Failed: 2, Pods: []string{"a"}}},
		"Never":    {reason: "Or none at all.", job: active, found: []string{"a"}, edit: func(p *Plan) { p.PodLimit = 0 }, want: want{}},
		"Here":     {reason: "In the cluster of the XR they are read by their label.", job: active, found: []string{"a"}, edit: func(p *Plan) { p.Clusters[0].Target.Cluster = "" }, want: want{}},
		"Complete": {reason: "A Job that is complete has none that could say anything.", job: JobView{Exists: true, Complete: true, Created: made}, found: []string{"a"}, want: want{}},
		"Loaded":   {reason: "The Job goes, and what finds its pods.", job: active, loaded: true, found: []string{"a"}, want: want{}},
		"Leaving":  {reason: "Nothing is loaded in a cluster that is left.", job: active, edit: func(p *Plan) { p.Clusters[0].Leaving = true }, want: want{Later: 4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, cachedModel(`uri: "hf://a/b", cache: {claimName: weights}`), "")
			if err != nil {
				t.Fatal(err)
			}
			p.Clusters = []ClusterPlan{{
				Target: scheduling.Target{Cluster: "east", Namespace: "ns"},
				Groups: []Group{{Replicas: []Replica{{Role: p.Roles[0]}}}},
			}}
			v := WeightsView{
				Loaded:   func(string, string) (string, bool) { return "", tc.loaded },
				Job:      func(key.Key) JobView { return tc.job },
				PodNames: func(limit int) []string { return tc.found[:min(len(tc.found), limit)] },
			}
			if tc.edit != nil {
				tc.edit(p)
			}
			p.load(&RunningView{Now: made, Loader: "x", Replica: func(key.Key) rollout.State { return rollout.State{} }, Weights: func(*ClusterPlan) WeightsView { return v }})
			l := p.Clusters[0].Loading
			if diff := cmp.Diff(tc.want, want{l.FindsPods, l.PodNames, l.FailedPods, p.LaterLoaderObjects()}); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMayUse shows which claims of former weights stay while a replica has a former template.
func TestMayUse(t *testing.T) {
	held := rollout.State{Exists: true, Revision: "unfinished", Held: true, RunningRevision: "serving"}
	cases := map[string]struct {
		reason               string
		state                rollout.State
		deleting, unfinished bool
		loaded               bool
		want                 bool
	}{
		"Loaded":     {reason: "Pods may use what was complete.", state: held, loaded: true, want: true},
		"Unfinished": {reason: "No pod has a template whose weights were not there.", state: held, unfinished: true},
		"Unknown":    {reason: "The status says nothing of it.", state: held, want: true},
		"Deleting":   {reason: "It would be made anew.", state: held, deleting: true},
		"LoadedGoes": {reason: "Pods may use it as long as it is there.", state: held, loaded: true, deleting: true, want: true},
		"Given":      {reason: "Weights that are lost load again, and pods have the claim.", state: rollout.State{Exists: true, Revision: "unfinished"}, unfinished: true, want: true},
		"Runs":       {reason: "They were put back behind a partition.", state: rollout.State{Exists: true, Revision: "unfinished", Held: true, Runs: true}, unfinished: true, want: true},
		"Silent":     {reason: "Nobody knows what a replica was given.", state: rollout.State{Exists: true}, unfinished: true, want: true},
		"Newest":     {reason: "It does not serve yet, and has the newest template.", state: rollout.State{Exists: true, Revision: "newest"}, unfinished: true},
		"Served":     {reason: "All replicas serve with the newest one.", state: rollout.State{Exists: true, Revision: "newest", Serving: true}},
		"NoReplica":  {reason: "There is none.", loaded: false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, cachedModel(`uri: "hf://a/b", cache: {size: 1Gi}`), "")
			if err != nil {
				t.Fatal(err)
			}
			c := &p.Clusters[0]
			running := &RunningView{Revision: map[string]string{"w": "newest"}, Replica: func(key.Key) rollout.State { return tc.state }}
			view := &WeightsView{
				Loaded:     func(string, string) (string, bool) { return "", tc.loaded },
				Unfinished: func(string, string) bool { return tc.unfinished },
			}
			claim := &ClaimView{Key: c.Key(key.PersistentVolumeClaim, "0123"), Deleting: tc.deleting}
			if got := c.mayUse(p.Service, view, running)(claim); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestLoadLooksOnce shows that replicas are looked at as often for many claims as for none: a tenant may have thousands of both.
func TestLoadLooksOnce(t *testing.T) {
	looked := map[int]int{}
	for _, claims := range []int{0, 100} {
		p, err := build(t, cachedModel(`uri: "hf://a/b", cache: {size: 1Gi}`), "")
		if err != nil {
			t.Fatal(err)
		}
		c := &p.Clusters[0]
		v := WeightsView{
			Loaded:     func(string, string) (string, bool) { return "", false },
			Unfinished: func(string, string) bool { return true },
			Job:        func(key.Key) JobView { return JobView{} },
		}
		for i := range claims {
			v.Claims = append(v.Claims, ClaimView{Key: c.Key(key.PersistentVolumeClaim, fmt.Sprint("former-", i))})
		}
		p.load(&RunningView{
			Replica: func(key.Key) rollout.State { looked[claims]++; return rollout.State{Exists: true, Held: true} },
			Weights: func(*ClusterPlan) WeightsView { return v },
		})
	}
	if looked[0] == 0 || looked[0] != looked[100] {
		t.Errorf("want as many looks with and without claims, got by the number of claims: %v", looked)
	}
}
